"""JSON files as texts of single events, whether they are lines or one array."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tamis.errors import InputError
from tamis.json_arrays import BrokenArrayError, is_array, read_elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVENTS_AT_ONCE: Final = 4_096
VALUE_SCHEMA: Final = "value string"


def split_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of whole files, a text for each; a function for `mapInArrow`."""
    waiting: list[str] = []
    for batch in batches:
        for file in batch.column(0).to_pylist():
            for text in _split(file):
                waiting.append(text)
                if len(waiting) == EVENTS_AT_ONCE:
                    yield _to_batch(waiting)
                    waiting = []
    if waiting:
        yield _to_batch(waiting)


def _split(file: str) -> Iterator[str]:
    content = file.encode()
    if is_array(content[:4096]):
        try:
            for element in read_elements(io.BytesIO(content)):
                yield element.text
        except BrokenArrayError as error:
            raise InputError(
                "a file of events begins as a JSON array and cannot be read from line "
                f"{error.line} on: {error.message}"
            ) from None
    else:
        yield from file.split("\n")


def _to_batch(texts: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(texts, pa.string())})
