"""Rows of Avro's object container files, as Python values; `fastavro` reads them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from tamis.errors import InputError, MissingDependencyError
from tamis.input.rows import ObjectRows
from tamis.input.sniffing import expect_opening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.input.rows import Wanted
    from tamis.input.sources import Stream

    Convert: TypeAlias = Callable[[Any], Any]

# The codecs whose packages the extra `avro` installs.
_CODECS: Final = ("snappy", "zstandard")
_MISSING_CODEC: Final = re.compile(r"(\w+) codec is supported but you need to install ([\w.]+)")


def read_rows(stream: Stream, wanted: Wanted) -> Iterator[ObjectRows]:
    """The rows of a stream in batches."""
    expect_opening(stream.file, stream.name, stream.file_format)
    for batch in wanted.gather(stream, _read_records(stream, wanted), _weigh):
        yield ObjectRows(batch)


def _read_records(stream: Stream, wanted: Wanted) -> Iterator[dict[str, Any]]:
    fastavro = _import_fastavro()
    try:
        reader = _open(fastavro, stream, None)
        schema = reader.writer_schema
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise InputError(f"{stream.name} contains Avro values that are not records")
        names = wanted.choose([field["name"] for field in schema["fields"]])
        if names is not None and stream.file.seekable():
            stream.file.seek(0)
            reader = _open_projected(fastavro, stream, schema, names)
        convert = _find_conversion(schema)
        yield from reader if convert is None else map(convert, reader)
    except (ValueError, LookupError, TypeError, EOFError, OverflowError) as error:
        _refuse_codec(stream, str(error))
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{stream.name} cannot be read as Avro: {reason}") from None


def _import_fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise MissingDependencyError(
            "Avro files are read by the package fastavro, which is not installed",
            hint="pip install 'tamis[avro]'",
        ) from None
    return fastavro


def _refuse_codec(stream: Stream, reason: str) -> None:
    """Raise an error for a file whose codec needs a package that is not installed."""
    missing = _MISSING_CODEC.search(reason)
    if missing is None:
        return
    codec, package = missing.groups()
    raise MissingDependencyError(
        f"{stream.name} is compressed by the codec {codec}, which needs the package {package}",
        hint="pip install 'tamis[avro]'" if codec in _CODECS else f"pip install {package}",
    ) from None


def _open(fastavro: Any, stream: Stream, schema: Any) -> Any:
    # Text that is not UTF-8 becomes lone surrogates: it is rejected with its value.
    return fastavro.reader(stream.file, schema, handle_unicode_errors="surrogateescape")


def _open_projected(fastavro: Any, stream: Stream, schema: dict[str, Any], names: list[str]) -> Any:
    """Reads some fields; others are skipped and not decoded."""
    chosen = schema | {"fields": [own for own in schema["fields"] if own["name"] in names]}
    try:
        return _open(fastavro, stream, chosen)
    except fastavro.schema.UnknownType:  # whose definition is in a skipped field
        stream.file.seek(0)
        return _open(fastavro, stream, None)


def _weigh(record: dict[str, Any]) -> int:
    """An estimate of the bytes of a record's texts and lists; its numbers take little."""
    return sum(len(value) for value in record.values() if isinstance(value, str | bytes | list))


# ── floats and UUIDs ────────────────────────────────────────────────────────────────────────


def _find_conversion(schema: Any) -> Convert | None:
    """A function that converts 32-bit floats to the doubles that they print as, as for Arrow: a
    float written as 0.1 is then equal to 0.1. UUIDs become the strings that files have. None if the
    schema has neither.
    """
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and schema.get("logicalType") == "uuid":
        return _to_text
    if kind == "float":
        return _to_float
    if isinstance(kind, list):
        branches = [own for own in kind if own != "null"]
        if len(branches) == 1:
            return _find_conversion(branches[0])
        return _to_text if any(_find_conversion(own) is _to_text for own in branches) else None
    if kind == "array":
        inner = _find_conversion(schema["items"])
        return None if inner is None else partial(_convert_list, inner)
    if kind == "map":
        inner = _find_conversion(schema["values"])
        return None if inner is None else partial(_convert_map, inner)
    if kind == "record":
        return _convert_fields(schema)
    return _find_conversion(kind) if isinstance(kind, dict) else None


def _convert_fields(schema: dict[str, Any]) -> Convert | None:
    fields = {own["name"]: _find_conversion(own["type"]) for own in schema["fields"]}
    known = {name: convert for name, convert in fields.items() if convert is not None}

    def convert_record(record: dict[str, Any] | None) -> dict[str, Any] | None:
        for name, convert in known.items():
            if record and name in record:
                record[name] = convert(record[name])
        return record

    return convert_record if known else None


def _convert_list(convert: Convert, found: list[Any] | None) -> list[Any] | None:
    return None if found is None else [convert(own) for own in found]


def _convert_map(convert: Convert, found: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if found is None else {name: convert(own) for name, own in found.items()}


def _to_float(value: float | None) -> Any:
    import numpy as np

    return None if value is None else np.float32(value)


def _to_text(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value
