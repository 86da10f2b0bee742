"""`python -m tamis`, and where the command `tamis` begins."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # what shells expect after Ctrl-C


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, from the first import on."""
    try:
        from tamis.cli import main as run

        run(prog_name="tamis", standalone_mode=True)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
