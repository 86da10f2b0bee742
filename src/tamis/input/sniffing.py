"""Recognises the format of a file by its first bytes, whatever its name."""

from __future__ import annotations

import csv
from typing import Any, Final

from tamis.errors import InputError
from tamis.input.compression import codec_of_head
from tamis.input.formats import DELIMITERS, FORMATS, Format

SNIFFED_LINES: Final = 5
HEAD_BYTES: Final = 4096

_ENCODINGS: Final = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


def read_head(stream: Any, name: str, file_format: str) -> bytes:
    """The beginning of the stream; raises an `InputError` if all of its lines would be errors."""
    head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
    refuse_signature(head, name, file_format)
    # In the first line it indicates another kind of file; later, an error of its row.
    if b"\0" in head.split(b"\n", 1)[0]:
        raise InputError(f"{name} is not text: it contains zero bytes; {file_format} is UTF-8 text")
    return bytes(head)


def refuse_signature(head: bytes, name: str, file_format: str) -> None:
    """Raise an `InputError` for a file that begins like another kind of file."""
    for known, traits in FORMATS.items():
        if traits.openings and head.startswith(traits.openings):
            article = "an" if traits.title[0] == "A" else "a"
            raise InputError(
                f"{name} is {article} {traits.title} file, not {file_format}",
                hint=name_format(known),
            )
    codec = codec_of_head(head)
    if codec is not None:
        raise InputError(
            f"{name} {codec.description}, not {file_format}",
            hint=f"rename it so that it ends in {codec.ending}"
            if codec.arrow
            else f"unpack it first: {codec.unpack} {name}",
        )
    for opening, encoding in _ENCODINGS:
        if head.startswith(opening):
            raise InputError(
                f"{name} is {encoding} text, not {file_format}", hint="save it as UTF-8"
            )


SHOWN_HEADER: Final = 40
_SEPARATORS: Final = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
_DELIMITERS: Final = {",": "comma-separated", "\t": "tab-separated", ";": "semicolon-separated"}
_FORMAT_HINTS: Final = {
    ",": "--format csv",
    "\t": "--format tsv",
    ";": "write it with commas, and --format csv",
}


def guess_lines(head: bytes, remedy: str | None = None) -> str | None:
    """A guess at the format of a text that is not JSON lines, by its beginning; None if unclear.

    The remedy is for delimited texts, if not to read them as such.
    """
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text.startswith("<"):
        return "it seems to be XML or HTML: convert it to JSON lines"
    first = text.partition("\n")[0].rstrip()
    if first.startswith("{") and not first.endswith("}"):
        return (
            "it seems to be JSON with objects over several lines: write one object on each line "
            "(jq -c . FILE), or a JSON array of them"
        )
    # The last line may be truncated, and counts only if it is the only other one.
    lines = [line for line in text.splitlines() if line.strip()][:SNIFFED_LINES]
    for delimiter, what in _DELIMITERS.items():
        fields = {len(row) for row in csv.reader(lines[:-1] or lines, delimiter=delimiter)}
        if len(lines) > 1 and len(fields) == 1 and fields != {1}:
            hint = remedy or _FORMAT_HINTS[delimiter]
            return f"it seems to be {what} text (CSV): {hint}"
    return None


def name_format(known: Format) -> str:
    """The hint that explains how to read a file as another format."""
    ending = FORMATS[known].endings[0]
    return f"rename it so that it ends in {ending}, or in the shell write --format {known}"


def expect_opening(stream: Any, name: str, file_format: Format) -> None:
    """Raise an `InputError` for a file that does not begin like its binary format and that seems to
    be of another one; other files are left to their reader.
    """
    head = bytes(stream.peek(HEAD_BYTES)[:HEAD_BYTES])
    traits = FORMATS[file_format]
    if not head or head.startswith(traits.openings):
        return
    refuse_signature(head, name, file_format)
    if head.decode("utf-8-sig", "replace").lstrip().startswith(("{", "[")):
        raise InputError(
            f"{name} seems to be JSON, not {file_format}", hint=name_format(Format.JSONL)
        )
    guess = guess_lines(head)
    if guess is not None and b"\0" not in head:
        raise InputError(f"{name} is text, not {file_format}", hint=guess)


def refuse_json(header: list[str], name: str) -> None:
    """Raise an `InputError` for a header line that is an object or an array of JSON."""
    if header[0].lstrip().startswith(("{", "[")):
        raise InputError(
            f"{name} seems to be JSON, not csv: its first line begins with {header[0][:20]}",
            hint=name_format(Format.JSONL),
        )


def refuse_delimiter(head: bytes, name: str, delimiter: str) -> None:
    """Raise an `InputError` for a file whose fields are separated by another character, so that
    each line would be one field, and for one that begins with Excel's line `sep=,`.
    """
    lines = head.decode("utf-8-sig", "replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.lower().startswith("sep=") and len(first.strip()) <= len("sep=,"):
        raise InputError(
            f"{name} begins with the line {first.strip()!r}, which is for Excel; the first line "
            "must be the header",
            hint="delete that line",
        )
    # The last line may be truncated.
    rows = [line for line in lines[:SNIFFED_LINES] if line.strip()][: max(1, len(lines) - 1)]
    by_delimiter = {own: known for known, own in DELIMITERS.items()}
    for other, what in _SEPARATORS.items():
        sizes = {len(row) for row in csv.reader(rows, delimiter=other)}
        if delimiter not in first and len(sizes) == 1 and sizes != {1}:
            raise InputError(
                f"{name} seems to be separated by {what}, not by {_SEPARATORS[delimiter]}: its "
                f"header line is {first[:SHOWN_HEADER]!r}",
                hint=name_format(by_delimiter[other])
                if other in by_delimiter
                else "write it with commas",
            )
