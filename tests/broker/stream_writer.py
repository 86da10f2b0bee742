"""Writes batches as `tamis spark stream` does, without Spark."""

from __future__ import annotations

import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.live import LiveIndex
from tamis.versions.log_position import LogPosition
from tamis.versions.storage import Storage
from tamis.versions.stream_output import BatchRecord, folder_of

STREAM = "7f0c2e0a"
Rows = list[tuple[object, str, str | None]]  # event id, subscription, event


class StreamWriter:
    """The output of a stream; `live` is the set whose versions it matches by."""

    def __init__(self, folder: Path, live: LiveIndex | None = None, stream: str = STREAM) -> None:
        self.folder, self.live, self.stream = folder, live, stream
        self.position: LogPosition | None = None
        if live is not None:
            self.publish()

    def publish(self) -> None:
        """The following batches are matched by the set as it is now."""
        self.position = LogPosition(self.live.store.epoch, self.live.change)

    def begin(self, batch: int) -> Path:
        """The folder of a batch, without what was there."""
        folder = self.folder / folder_of(batch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def write(self, batch: int, rows: Rows, *, n_files: int = 1, column: str = "attributes"):
        """Write a batch as a whole, and its record last."""
        folder = self.begin(batch)
        run = secrets.token_hex(4)
        for n in range(n_files):
            write_file(folder / f"part-{n:05}-{run}.snappy.parquet", rows[n::n_files], column)
        (folder / "_SUCCESS").touch()
        self.record(batch, len(rows))
        return folder

    def record(self, batch: int, n_rows: int) -> None:
        """Record that a batch is complete."""
        moment = datetime.now(UTC).isoformat()
        run = secrets.token_hex(4)
        BatchRecord(self.stream, batch, "v00000001", self.position, moment, n_rows, run).write(
            Storage(self.folder)
        )


def write_file(path: Path, rows: Rows, column: str = "attributes") -> None:
    ids, names, texts = zip(*rows, strict=True) if rows else ([], [], [])
    columns = {
        "event_id": pa.array(ids, None if rows else pa.int64()),
        "subscription_id": pa.array(names, pa.string()),
        column: pa.array(texts, pa.string()),
        "version": pa.array(["v00000001"] * len(ids), pa.string()),
    }
    draft = path.with_name(f".{path.name}")
    pq.write_table(pa.table(columns), draft)
    draft.rename(path)
