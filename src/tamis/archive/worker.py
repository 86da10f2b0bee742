"""The process that closes a segment: a job as a line of JSON, an answer as another."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from tamis.archive.closed_files import close_journal
from tamis.errors import TamisError

NICENESS = 5  # publishers come first


def main() -> None:
    """Do one job."""
    os.nice(NICENESS)
    root, serial, end_event, parent = json.loads(sys.stdin.readline())
    try:
        # Without its parent, nobody wants the files, and another process may be writing them.
        name = close_journal(Path(root), serial, end_event, lambda: os.getppid() == parent)
    except (OSError, TamisError) as error:
        answer: dict[str, object] = {"error": str(error)}
    else:
        answer = {"name": name}
    with suppress(BrokenPipeError):  # the parent was killed
        os.write(sys.stdout.fileno(), f"{json.dumps(answer)}\n".encode())


if __name__ == "__main__":
    main()
