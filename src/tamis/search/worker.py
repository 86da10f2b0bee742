"""The process that indexes a segment: a job as a line of JSON, an answer as another."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from tamis.archive import Archive, HeldSegment
from tamis.errors import TamisError
from tamis.search.indexes import FOLDER, Job
from tamis.search.sources import Sources

NICENESS = 10  # publishers and searches come first


def main() -> None:
    """Do one job."""
    os.nice(NICENESS)
    folder, segment, sources = json.loads(sys.stdin.readline())
    job = Job(HeldSegment(*segment), Sources.read(sources))
    answer: dict[str, str] = {}
    try:
        with Archive.open(folder, read_only=True) as archive:
            job.run(archive, Path(folder) / FOLDER)
    except (OSError, ValueError, TamisError) as error:
        answer["error"] = str(error)
    with suppress(BrokenPipeError):  # the parent was killed
        os.write(sys.stdout.fileno(), f"{json.dumps(answer)}\n".encode())


if __name__ == "__main__":
    main()
