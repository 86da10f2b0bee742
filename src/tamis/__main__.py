"""`python -m tamis`, and where the command `tamis` begins."""

from __future__ import annotations

import os
import sys
from pathlib import Path

INTERRUPTED = 130  # what shells expect after Ctrl-C


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, from the first import on."""
    if sys.stderr is None:  # closed: the next file that is opened must not take its number
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
    if sys.stdout is None:
        sys.stderr.write("error: standard output is closed; nothing can be printed\n")
        sys.exit(1)
    try:
        from tamis.cli import main as run

        run(prog_name="tamis", standalone_mode=True)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
