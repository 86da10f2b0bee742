"""`python -m tamis`, the entry point of the command `tamis`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

INTERRUPTED = 130  # the exit code of shells for Ctrl-C
# Commands for which PyArrow need not import pandas, which takes as long as importing Numba.
WITHOUT_PANDAS = frozenset("build check dot eval explain match stats verify".split())


class _WithoutPandas:
    """Makes the import of pandas fail: PyArrow imports it, if it can, with the first array."""

    def find_spec(self, name: str, *rest: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("this command does without pandas", name=name)


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, from the first import on."""
    if sys.stderr is None:  # closed: its number must not be reused for the next opened file
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
    if sys.stdout is None:
        sys.stderr.write("error: standard output is closed; nothing can be printed\n")
        sys.exit(1)
    if _needs_no_pandas(sys.argv[1:]):
        sys.meta_path.insert(0, _WithoutPandas())
    try:
        from tamis.cli import main as run

        run(prog_name="tamis", standalone_mode=True)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


def _needs_no_pandas(arguments: list[str]) -> bool:
    """Whether the command runs without pandas; operators are user code, which may need it."""
    has_operators = any(argument.startswith("--op") for argument in arguments)
    return arguments[:1] != [] and arguments[0] in WITHOUT_PANDAS and not has_operators


if __name__ == "__main__":
    main()
