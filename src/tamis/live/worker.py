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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import TamisError
from tamis.index import artefact
from tamis.index.attributes import parse_attributes
from tamis.index.build import build_contents
from tamis.index.contents import NO_NUMBERS
from tamis.index.text_columns import Columns
from tamis.language.limits import NO_LIMITS
from tamis.language.schema import Schema
from tamis.live.part_rows import NUMBER, list_rows
from tamis.live.sampling import EVENT
from tamis.logic.evaluate import Missing
from tamis.match.index import Index
from tamis.match.learn import learn
from tamis.versions.part_files import digest_rows, write_part
from tamis.versions.storage import Storage
from tamis.versions.tables import PACKED

if TYPE_CHECKING:
    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int64

NICENESS: Final = 10  # matching is more urgent
_LIMITED: Final = ["subscription_id", "valid_from", "valid_until"]


def run() -> None:
    """Do jobs until the standard input ends."""
    os.nice(NICENESS)
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    for line in sys.stdin:
        job = json.loads(line)
        sys.stdout.write(f"{json.dumps(answer(job))}\n")
        sys.stdout.flush()
        if job["is_last"]:
            return


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """The part that a job describes, or why it was not made."""
    try:
        return {"part": asdict(merge(job))}
    except TamisError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def merge(job: dict[str, Any]) -> Any:
    """Build and write the part that a job describes; returns its description."""
    rows = pa.concat_tables(map(_read_rows, job["sources"]), promote_options="permissive")
    contents = _build(rows, Schema.of(job["schema"]), Missing(job["missing"]))
    if job["sample"]:
        with pa.memory_map(job["sample"]) as source:
            sample = pa.ipc.open_file(source).read_all()
        contents = learn(contents, Index(contents, registry=None).encode(sample, column=EVENT))
    digest = digest_rows(rows.select(["subscription_id", "expression"]), job["missing"], NO_LIMITS)
    contents = replace(contents, provenance={"change": job["change"]})
    return write_part(Storage(job["folder"]), contents, digest, job["kind"], [])


def _read_rows(source: dict[str, Any]) -> pa.Table:
    if "rows" in source:
        with pa.memory_map(source["rows"]) as file:
            return pa.ipc.open_file(file).read_all()
    is_hidden = None if source["hidden"] is None else np.load(source["hidden"])
    return list_rows(artefact.open_contents(source["part"]), is_hidden)


def _build(rows: pa.Table, schema: Schema, missing: Missing) -> Contents:
    built = build_contents(
        Columns(rows["subscription_id"], rows["expression"]),
        schema,
        missing,
        NO_LIMITS,  # they were checked when they were added
        tags=_given(rows, "tags", pc.greater(pc.list_value_length(rows["tags"]), 0)),
        validity=_validity(rows),
        attributes={name: parse_attributes(own) for name, own in _given(rows, PACKED).items()},
        numbers=_numbers(rows[NUMBER]),
    )
    if built.rejects:
        raise built.rejects[0]
    return built.contents


def _given(rows: pa.Table, name: str, is_given: pa.ChunkedArray | None = None) -> dict[str, Any]:
    """The values of a column by id, without missing ones."""
    is_kept = rows[name].is_valid() if is_given is None else is_given
    given = rows.select(["subscription_id", name]).filter(is_kept)
    return dict(zip(given["subscription_id"].to_pylist(), given[name].to_pylist(), strict=True))


def _validity(rows: pa.Table) -> dict[str, Any]:
    is_timed = pc.or_(rows["valid_from"].is_valid(), rows["valid_until"].is_valid())
    timed = rows.select(_LIMITED).filter(is_timed)
    ids, start, end = (timed[own].to_pylist() for own in _LIMITED)
    return {name: limits for name, *limits in zip(ids, start, end, strict=True)}


def _numbers(column: pa.ChunkedArray) -> Int64:
    """All subscriptions have one, or none has."""
    if column.null_count == len(column):
        return NO_NUMBERS
    assert not column.null_count, "all parts of a live set come from one store"
    return np.concatenate([chunk.to_numpy() for chunk in column.chunks])


def _watch_parent(parent: int) -> None:
    """End with the process that started this one, also if that was killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    run()
