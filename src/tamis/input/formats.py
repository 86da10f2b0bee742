"""The formats of files, in one table.

To add a format, add a row to `FORMATS` and a module with a function `read_rows`, which returns the
rows of a stream in batches: see `rows.Rows`.
"""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import InputError
from tamis.input.compression import codec_of_name, strip_ending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.input.rows import Rows, Wanted
    from tamis.input.sources import Stream


class Format(StrEnum):
    """How the rows of a file are written."""

    JSONL = "jsonl"  # one JSON object on each line, or one array of objects
    CSV = "csv"  # comma-separated, with a header line
    TSV = "tsv"  # the same with tabs
    PARQUET = "parquet"
    ARROW = "arrow"  # Arrow's file and stream formats
    AVRO = "avro"


class Traits(NamedTuple):
    """The properties of a format."""

    title: str
    endings: tuple[str, ...]  # of the names of its files
    module: str  # of this package: the module that reads it
    openings: tuple[bytes, ...] = ()  # the first bytes of its files, if always the same
    is_typed: bool = True  # values have types; otherwise they are texts
    spark: str | None = None  # Spark's reader for it
    # In which a server takes it, the usual one first; none if a damaged file could harm a server.
    media_types: tuple[str, ...] = ()


FORMATS: Final = {
    Format.JSONL: Traits(
        "JSON",
        (".jsonl", ".ndjson", ".json"),
        "json_lines",
        spark="json",
        media_types=("application/x-ndjson", "application/jsonl", "application/json"),
    ),
    Format.CSV: Traits(
        "CSV", (".csv",), "delimited", is_typed=False, spark="csv", media_types=("text/csv",)
    ),
    Format.PARQUET: Traits(
        "Parquet",
        (".parquet", ".pq"),
        "parquet",
        (b"PAR1",),
        spark="parquet",
        media_types=("application/vnd.apache.parquet",),
    ),
    Format.TSV: Traits(
        "TSV",
        (".tsv",),
        "delimited",
        is_typed=False,
        spark="csv",
        media_types=("text/tab-separated-values",),
    ),
    Format.ARROW: Traits(
        "Arrow", (".arrow", ".arrows", ".feather"), "arrow_ipc", (b"ARROW1", b"\xff\xff\xff\xff")
    ),
    Format.AVRO: Traits("Avro", (".avro",), "avro", (b"Obj\x01",)),
}
DELIMITERS: Final = {Format.CSV: ",", Format.TSV: "\t"}
FORMAT_BY_ENDING: Final = {
    ending: known for known, traits in FORMATS.items() for ending in traits.endings
}
SENT_FORMATS: Final = {  # to a server
    known: traits.media_types[0] for known, traits in FORMATS.items() if traits.media_types
}
KNOWN_ENDINGS: Final = ", ".join(FORMAT_BY_ENDING)


def list_titles(*, is_typed: bool = False) -> str:
    """The titles of all formats in a phrase, or of those whose values have types."""
    known = [FORMATS[own] for own in Format]
    *others, last = [own.title for own in known if own.is_typed or not is_typed]
    return f"{', '.join(others)} or {last}"


def find_format(name: str) -> Format | None:
    """The format for a file's name, compressed or not."""
    return FORMAT_BY_ENDING.get(PurePath(strip_ending(name)).suffix.lower())


def detect_format(name: str) -> Format:
    """The format for a file's name; raises an `InputError` if it is unknown."""
    codec_of_name(name)  # raises an error that shows how to unpack the file
    found = find_format(name)
    if found is None:
        raise InputError(
            f"cannot tell the format of {name} by its name; known endings: "
            f"{' '.join(FORMAT_BY_ENDING)}",
            hint=f"rename it, or in the shell write --format {', '.join(Format)}",
        )
    return found


def expect_format(name: str) -> Format:
    """The format of that name."""
    if name not in tuple(Format):
        raise InputError(f'unknown format "{name}"; allowed: {", ".join(Format)}')
    return Format(name)


def read_rows(stream: Stream, wanted: Wanted) -> Iterator[Rows]:
    """The rows of a stream in batches, by the module of its format."""
    module: Any = import_module(f"tamis.input.{FORMATS[stream.file_format].module}")
    number = 1
    for rows in module.read_rows(stream, wanted):
        rows.numbers = range(number, number + len(rows))
        number += len(rows)
        yield rows
