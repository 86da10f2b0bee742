"""The process that merges, killed before a chosen write: `python -m … FILE [WRITE]`.

After each merge, the file has the number of writes so far.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from tamis.live import worker
from tests.live.killing import counting


def main(file: str, write: str = "") -> None:
    merge = worker.merge

    def merge_and_tell(job):
        part = merge(job)
        Path(file).write_text(str(writes.n_writes))
        return part

    with (
        counting(int(write) if write else None) as writes,
        patch.object(worker, "merge", merge_and_tell),
    ):
        worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
