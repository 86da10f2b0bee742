"""The process that merges parts: it builds one part from the subscriptions of several.

It reads one job per line on its standard input, and writes one answer per line. Matching goes on in
the other process, undisturbed by Python's global lock; a crash here costs nothing but the merge.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.errors import TamisError
from tamis.index.attributes import parse_attributes
from tamis.index.build import build_contents
from tamis.language.limits import NO_LIMITS
from tamis.language.schema import Schema
from tamis.live.sampling import EVENT
from tamis.logic.evaluate import Missing
from tamis.match.index import Index
from tamis.match.learn import learn
from tamis.versions.part_files import digest_rows, write_part
from tamis.versions.storage import Storage
from tamis.versions.tables import NUMBER, PACKED

if TYPE_CHECKING:
    from tamis.index.contents import Contents

NICENESS: Final = 10  # matching is more urgent


def run() -> None:
    """Do jobs until the standard input ends."""
    os.nice(NICENESS)
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    for line in sys.stdin:
        job = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"part": asdict(merge(job))}
        except TamisError as error:
            answer = {"error": str(error)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
        if job["is_last"]:
            return


def merge(job: dict[str, Any]) -> Any:
    """Build and write the part that a job describes; returns its description."""
    with pa.memory_map(job["rows"]) as source:
        rows = pa.ipc.open_file(source).read_all()
    contents = _build(rows, Schema.of(job["schema"]), Missing(job["missing"]))
    if job["sample"]:
        with pa.memory_map(job["sample"]) as source:
            sample = pa.ipc.open_file(source).read_all()
        contents = learn(contents, Index(contents, registry=None).encode(sample, column=EVENT))
    digest = digest_rows(rows.select(["subscription_id", "expression"]), job["missing"], NO_LIMITS)
    contents = replace(contents, provenance={"change": job["change"]})
    return write_part(Storage(job["folder"]), contents, digest, job["kind"], [])


def _build(rows: pa.Table, schema: Schema, missing: Missing) -> Contents:
    ids = rows["subscription_id"].to_pylist()
    pairs = list(zip(ids, rows["expression"].to_pylist(), strict=True))
    built = build_contents(
        pairs,
        schema,
        missing,
        NO_LIMITS,  # they were checked when they were added
        tags={i: own for i, own in _given(ids, rows["tags"]) if own},
        validity=_validity(ids, rows),
        attributes={i: parse_attributes(own) for i, own in _given(ids, rows[PACKED])},
        numbers=dict(_given(ids, rows[NUMBER])),
    )
    if built.rejects:
        raise built.rejects[0]
    return built.contents


def _given(ids: list[str], column: pa.ChunkedArray) -> Any:
    """The ids that have a value, and the value."""
    if column.null_count == len(column):
        return ()
    pairs = zip(ids, column.to_pylist(), strict=True)
    return ((name, value) for name, value in pairs if value is not None)


def _validity(ids: list[str], rows: pa.Table) -> dict[str, Any]:
    start, end = rows["valid_from"], rows["valid_until"]
    if start.null_count == len(rows) and end.null_count == len(rows):
        return {}
    limits = zip(ids, start.to_pylist(), end.to_pylist(), strict=True)
    return {name: (first, last) for name, first, last in limits if first or last}


def _watch_parent(parent: int) -> None:
    """End with the process that started this one, also if that was killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    run()
