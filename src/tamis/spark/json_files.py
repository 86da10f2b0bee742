"""JSON files as texts of single objects, from lines or from one array."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.errors import InputError
from tamis.input.json_lines import json_texts
from tamis.input.rows import CutOffError
from tamis.input.sniffing import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVENTS_AT_ONCE: Final = 4_096
VALUE_SCHEMA: Final = "value string"


def split_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of whole files, one text each; a function for `mapInArrow`."""
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
    for line, text in json_texts(io.BytesIO(content), content[:HEAD_BYTES]):
        if isinstance(text, CutOffError):
            raise InputError(
                f"a file begins as a JSON array and cannot be read from line {line} on: "
                f"{text.reason}"
            )
        yield text.decode()


@dataclass(frozen=True, slots=True)
class MarkRepeated:
    """Objects with a repeated key, with that key under the name `mark` and the last of its values;
    other texts unchanged. A function for `mapInArrow`.
    """

    mark: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _to_batch([self._mark(text) for text in batch.column(0).to_pylist()])

    def _mark(self, text: str) -> str:
        repeated: list[str] = []

        def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            made: dict[str, Any] = {}
            for name, value in pairs:
                if name in made:
                    repeated.append(name)
                made[name] = value
            return made

        try:
            found = json.loads(text, object_pairs_hook=to_object)
        except (ValueError, RecursionError):
            return text  # Spark marks texts that are not JSON
        if not repeated or not isinstance(found, dict):
            return text
        return json.dumps(found | {self.mark: repeated[0]}, ensure_ascii=False)


def _to_batch(texts: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(texts, pa.string())})
