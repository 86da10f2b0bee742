"""Recognises the format of a file by its first bytes, whatever its name."""

from __future__ import annotations

import csv
from typing import Any, Final

from tamis.errors import InputError
from tamis.input.compression import codec_of_head
from tamis.input.formats import FORMATS

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
                hint=f"give the format: {known}",
            )
    codec = codec_of_head(head)
    if codec is not None:
        raise InputError(
            f"{name} {codec.tells}, not {file_format}",
            hint=f"rename it so that it ends in {codec.ending}"
            if codec.arrow
            else f"unpack it first: {codec.unpack}",
        )
    for opening, encoding in _ENCODINGS:
        if head.startswith(opening):
            raise InputError(
                f"{name} is {encoding} text, not {file_format}", hint="save it as UTF-8"
            )


_DELIMITERS: Final = {",": "comma-separated", "\t": "tab-separated", ";": "semicolon-separated"}
_FORMAT_HINTS: Final = {
    ",": "--format csv",
    "\t": "--format tsv",
    ";": "write it with commas, and --format csv",
}


def guess_lines(head: bytes) -> str | None:
    """A guess at the format of a text that is not JSON lines, by its beginning; None if unclear."""
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
            hint = _FORMAT_HINTS[delimiter]
            return f"it seems to be {what} text (CSV): {hint}"
    return None


def refuse_json(header: list[str], name: str) -> None:
    """Raise an `InputError` for a header line that is an object or an array of JSON."""
    if header[0].lstrip().startswith(("{", "[")):
        raise InputError(
            f"{name} seems to be JSON, not csv: its first line begins with {header[0][:20]}",
            hint="give the format: --format jsonl",
        )
