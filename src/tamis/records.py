"""Records of JSON lines, JSON arrays, CSV, TSV, Parquet and Arrow files.

A record that cannot be read comes with its own error.
"""

from __future__ import annotations

import csv
import io
import json
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from tamis.batches import first_repeated
from tamis.errors import InputError
from tamis.json_arrays import BrokenArrayError, is_array, read_elements
from tamis.language.types import Written
from tamis.repeated_keys import find_repeated_key, has_plain_keys
from tamis.sniffing import (
    HEAD_BYTES,
    guess_lines,
    peeking,
    read_head,
    refuse_compressed,
    refuse_json,
    refuse_signature,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

Source: TypeAlias = str | Path | IO[bytes]
Values: TypeAlias = dict[str, Any]

BATCH = 10_000  # rows of Parquet converted at a time


class Format(StrEnum):
    """How the rows of a file are written."""

    JSONL = "jsonl"  # one JSON object on each line, or one array of objects
    CSV = "csv"  # comma-separated, with a header line
    TSV = "tsv"  # the same with tabs
    PARQUET = "parquet"
    ARROW = "arrow"  # Arrow's file and stream formats


FORMAT_BY_SUFFIX: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".tsv": Format.TSV,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
}
DELIMITERS: Final = {Format.CSV: ",", Format.TSV: "\t"}
COLUMNAR: Final = (Format.PARQUET, Format.ARROW)


REPEATED_HINT: Final = "keep one of the two values"


class UnreadableError(InputError):
    """Stands where a value cannot be read, and is none of any type."""


class RowError(InputError):
    """One row cannot be read; the code is for programs, as that of an `ExpressionError`."""

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code

    def to_dict(self) -> dict[str, Any]:
        """The error for programs, with the keys of `ExpressionError.to_dict`."""
        nowhere = {"line": None, "column": None, "span": None}
        return {"code": self.code, **nowhere, "message": self.message, "hint": self.hint}


class CutOffError(RowError):
    """The file cannot be read from this row on: nobody knows where the next one begins."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "bad-json",
            f"the array cannot be read from here on: {reason}",
            hint="JSON lines have one object on each line, without brackets and commas around them",
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """Under which names (columns or keys) a row has the two parts of a subscription."""

    subscription_id: str | None = None  # None takes "subscription_id", else "id"
    expression: str = "expression"

    def find(self, names: Iterable[str]) -> tuple[str | None, str | None]:
        """The names as they are among `names`; None for what is missing."""
        known = set(names)
        wanted = [self.subscription_id] if self.subscription_id else ["subscription_id", "id"]
        id_name = next((name for name in wanted if name in known), None)
        return id_name, self.expression if self.expression in known else None

    def describe_missing(self, found: tuple[str | None, str | None]) -> str:
        """What `find` did not find, as a message names it."""
        missing = []
        if found[0] is None:
            wanted = self.subscription_id
            missing.append(f'"{wanted}"' if wanted else '"subscription_id" (or "id")')
        if found[1] is None:
            missing.append(f'"{self.expression}"')
        return " and no ".join(missing)


def detect_format(name: str) -> Format:
    """The format that a file's name tells."""
    refuse_compressed(name)
    suffix = Path(name).suffix.lower()
    if suffix not in FORMAT_BY_SUFFIX:
        raise InputError(
            f"cannot tell the format of {name} by its name; "
            f"known endings: {' '.join(FORMAT_BY_SUFFIX)}",
            hint=f"say which it is: {', '.join(Format)}",
        )
    return FORMAT_BY_SUFFIX[suffix]


@dataclass(frozen=True, slots=True)
class Record:
    """One record, by name; with an error, it is empty."""

    number: int
    file_line: int | None
    values: Values
    error: RowError | None = None
    n_bytes: int = 0  # about as many as it takes


def read_records(
    source: Source, file_format: Format | None, columns: Columns | None
) -> Iterator[Record]:
    """The records of a source; `columns` are those that a table with a header must have."""
    name = _name_of(source)
    file_format = Format(file_format) if file_format else detect_format(name)
    if columns is None and file_format in DELIMITERS:
        raise InputError(
            f"{name}: events in {file_format.upper()} have no types",
            hint="write them as JSON lines or Parquet",
        )
    with opened(source) as stream:
        try:
            if file_format in COLUMNAR:
                yield from _read_columnar(stream, name, file_format, columns)
            else:
                yield from _read_text_records(stream, name, file_format, columns)
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror}") from None


def _read_text_records(
    stream: IO[bytes], name: str, file_format: Format, columns: Columns | None
) -> Iterator[Record]:
    with peeking(stream) as buffered:
        head = read_head(buffered, name, file_format)
        if file_format in DELIMITERS:
            yield from _read_csv(buffered, name, columns or Columns(), DELIMITERS[file_format])
        else:
            yield from _read_jsonl(buffered, _load_fast if columns else parse_event, head)


def _name_of(source: Source) -> str:
    if isinstance(source, str | Path):
        return str(source)
    name = getattr(source, "name", None)
    return name.strip("<>") if isinstance(name, str) else "the stream"


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """The stream of a source, closed afterwards if it was opened here."""
    if not isinstance(source, str | Path):
        yield source
        return
    try:
        stream = Path(source).open("rb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read {source}: {reason}") from None
    with stream:
        yield stream


# ── JSON lines ──────────────────────────────────────────────────────────────────────────────


def parse_event(text: str | bytes) -> Values:
    """The event that one JSON object spells; numbers with a point stay exact."""
    try:
        event = json.loads(text, parse_float=Written)
    except UnicodeDecodeError as error:
        raise refuse_encoding(error) from None
    except json.JSONDecodeError as error:
        raise RowError("bad-json", f"not JSON: {error.msg} (column {error.pos + 1})") from None
    except (ValueError, RecursionError) as error:
        raise RowError("bad-json", f"not JSON that can be read: {error}") from None
    return _expect_object(event)


def _read_jsonl(
    stream: IO[bytes], load: Callable[[bytes], Values], head: bytes
) -> Iterator[Record]:
    for number, (file_line, content) in enumerate(json_texts(stream), start=1):
        try:
            if isinstance(content, RowError):
                raise content
            yield Record(number, file_line, load(content), n_bytes=len(content))
        except RowError as error:
            if number == 1 and not isinstance(error, CutOffError):
                error.hint = guess_lines(head) or error.hint
            yield Record(number, file_line, {}, error)


def json_texts(
    stream: IO[bytes], name: str = "the stream"
) -> Iterator[tuple[int, bytes | RowError]]:
    """The line number and the text of each object: on a line each, or the elements of one array."""
    with peeking(stream) as buffered:
        head = buffered.peek(HEAD_BYTES)[:HEAD_BYTES]
        refuse_signature(head, name, Format.JSONL)
        if not is_array(head):
            yield from _filled_lines(buffered)
            return
        try:
            for element in read_elements(buffered):
                yield element.file_line, element.text.encode(errors="surrogateescape")
        except BrokenArrayError as error:
            yield error.line, CutOffError(error.message)


def _filled_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(stream, start=1):
        content = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip()
        if content:
            yield number, content


def is_json(text: bytes) -> bool:
    """Whether the text is one value of JSON."""
    import orjson

    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def expect_utf8(text: str) -> None:
    """Refuse a text in which bytes that could not be decoded are lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(error.object[error.start]) & 0xFF
        message = f"not UTF-8: byte 0x{byte:02X}"
        raise RowError("bad-encoding", message, hint="save the file as UTF-8") from None


def _load_fast(line: bytes) -> Values:
    """One JSON object; no number of it is of interest but an integer id."""
    import orjson

    try:
        found = _expect_object(orjson.loads(line))
    except orjson.JSONDecodeError as error:
        try:
            line.decode()
        except UnicodeDecodeError as encoding_error:
            raise refuse_encoding(encoding_error) from None
        reason = error.msg.partition(": line ")[0]
        raise RowError("bad-json", f"not JSON: {reason} (column {error.pos + 1})") from None
    if not has_plain_keys(line, found) and (key := find_repeated_key(line)) is not None:
        raise RowError("repeated-key", f'the row has the key "{key}" twice', hint=REPEATED_HINT)
    return found


def _expect_object(value: Any) -> Values:
    if not isinstance(value, dict):
        raise RowError(
            "bad-row",
            f"expected a JSON object, found {json_kind(value)}",
            hint="write one object on each line, or one list around all objects"
            if isinstance(value, list)
            else None,
        )
    return value


def json_kind(value: Any) -> str:
    """What a value is in JSON, as a message says it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return f"the number {value}"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a value of type {type(value).__name__}"


def refuse_encoding(error: UnicodeDecodeError) -> RowError:
    """The error of a row that is not UTF-8."""
    byte = error.object[error.start]
    return RowError("bad-encoding", f"not UTF-8: byte 0x{byte:02X}", hint="save the file as UTF-8")


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────


def _read_csv(stream: IO[bytes], name: str, columns: Columns, delimiter: str) -> Iterator[Record]:
    # Undecodable bytes become lone surrogates here, and errors of their rows below.
    text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
    # The default limit on one field, 128 KiB, is ours to set: the limit is on the expression.
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(text, strict=True, delimiter=delimiter)
    try:
        header = _read_header(rows, name, columns)
        number = 0
        while True:
            file_line = rows.line_num + 1
            values, error = _next_csv_row(rows, header)
            if values is None and error is None:
                return
            if values or error:
                number += 1
                yield Record(number, file_line, values or {}, error)
    finally:
        text.detach()  # the stream belongs to the caller


def _read_header(rows: Any, name: str, columns: Columns) -> list[str]:
    try:
        header: list[str] = next((row for row in rows if row), [])
    except csv.Error as error:
        raise InputError(f"{name}: the header line cannot be read: {error}") from None
    if not header:
        raise InputError(f"{name} is empty; a CSV file begins with a header line")
    refuse_json(header, name)
    expect_columns(header, name, columns)
    twice = first_repeated(header)
    if twice is not None:
        raise InputError(f'{name} has two columns "{twice}"; each needs a name of its own')
    return header


def _next_csv_row(rows: Any, header: list[str]) -> tuple[Values | None, RowError | None]:
    """The next row, or its error; an empty record for a blank line, twice None at the end."""
    try:
        fields = next(rows)
    except StopIteration:
        return None, None
    except csv.Error as error:
        if "unexpected end" in str(error):
            message = "a double quote opened in this row is not closed before the end of the file"
        else:
            message = f"not CSV: {error}"
        return None, RowError("bad-csv", message, hint=CSV_HINT)
    if fields and len(fields) != len(header):
        message = f"{len(fields)} fields; the header has {len(header)}"
        hint = CSV_HINT if len(fields) > len(header) else None
        return None, RowError("bad-csv", message, hint=hint)
    try:
        expect_utf8("".join(fields))
    except RowError as error:
        return None, error
    return dict(zip(header, fields, strict=True)) if fields else {}, None


CSV_HINT: Final = (
    "an expression with a comma or a double quote in it is written in double quotes, "
    'and a double quote inside as ""'
)


def expect_columns(names: list[str], name: str, columns: Columns, what: str = "column") -> None:
    """Refuse a table without the columns of a subscription."""
    found = columns.find(names)
    if None in found:
        raise InputError(
            f"{name} has no {what} {columns.describe_missing(found)}; "
            f"its {what}s: {', '.join(names) or 'none'}"
        )


# ── Parquet and Arrow ───────────────────────────────────────────────────────────────────────


def _read_columnar(
    stream: IO[bytes], name: str, file_format: Format, columns: Columns | None
) -> Iterator[Record]:
    number = 0
    for batch, sizes in _read_batches(stream, name, file_format, columns):
        for values, n_bytes in zip(batch, sizes, strict=True):
            number += 1
            yield Record(number, None, values, n_bytes=n_bytes)


def _read_batches(
    stream: IO[bytes], name: str, file_format: Format, columns: Columns | None
) -> Iterator[tuple[Iterable[Values], list[int]]]:
    """The rows of the file, some at a time, and how large each is."""
    import pyarrow as pa

    from tamis.columnar import read_arrow, read_parquet, row_sizes

    def choose(names: list[str]) -> list[str] | None:
        if columns is not None:
            expect_columns(names, name, columns)
        return None

    try:
        read = read_parquet if file_format is Format.PARQUET else read_arrow
        for batch in read(stream, choose, BATCH):
            rows = batch_rows(batch) if columns is None else batch_records(batch, columns)
            yield rows, row_sizes(batch).tolist()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{name} cannot be read as {file_format.capitalize()}: {reason}") from None


def batch_rows(batch: pa.RecordBatch) -> list[Values]:
    """The rows of a table; a value that Python cannot have is an `UnreadableError` in its place."""
    try:
        rows: list[Values] = batch.to_pylist()
    except Exception:  # a date of the year 20000, text that is not UTF-8, a zone nobody knows
        columns = {name: list(map(_to_python, batch.column(name))) for name in batch.schema.names}
        rows = [{name: own[at] for name, own in columns.items()} for at in range(len(batch))]
    return rows


def _to_python(scalar: pa.Scalar) -> Any:
    """The value; of one that Python cannot have, what it is, which is no value of any type."""
    try:
        return scalar.as_py()
    except Exception as error:
        return UnreadableError(f"{scalar.type}: {error}")


def batch_records(batch: pa.RecordBatch, columns: Columns) -> Iterator[Values]:
    """The rows of a table of subscriptions."""
    named = [found for found in columns.find(batch.schema.names) if found]
    others = batch.drop_columns([name for name in named if name in batch.schema.names])
    values = [_to_values(batch.column(batch.schema.get_field_index(name))) for name in named]
    rest: list[Values] = batch_rows(others) if others.num_columns else []
    for at, row in enumerate(zip(*values, strict=True)):
        own = dict(zip(named, row, strict=True))
        yield rest[at] | own if rest else own


def _to_values(column: pa.Array) -> list[Any]:
    """The column's values; text that is not UTF-8 comes as bytes, for its row to say so."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(pa.large_binary()).to_pylist()
    return [_decode(value) if isinstance(value, bytes) else value for value in values]


def _decode(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
