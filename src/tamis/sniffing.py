"""What does a file seem to be, by its beginning, whatever its name says?"""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

SNIFFED_LINES: Final = 5
HEAD_BYTES: Final = 4096

_SIGNATURES: Final = (  # how a file that is not UTF-8 text begins, and what it is then
    (b"PAR1", "is a Parquet file", "say so: the format is parquet"),
    (b"ARROW1", "is an Arrow file", "say so: the format is arrow"),
    (b"\x1f\x8b", "is compressed with gzip", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with Zstandard", "unpack it first"),
    (b"\xfd7zXZ\0", "is compressed with xz", "unpack it first"),
    (b"\x04\x22\x4d\x18", "is compressed with LZ4", "unpack it first"),
    *((b"BZh%d1AY&SY" % n, "is compressed with bzip2", "unpack it first") for n in range(1, 10)),
    (b"PK\x03\x04", "is a ZIP archive", "unpack it first"),
    (b"\xff\xfe", "is UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "save it as UTF-8"),
)


@contextmanager
def peeking(stream: Any) -> Iterator[Any]:
    """The stream, of which the beginning can be looked at; it stays its owner's."""
    if hasattr(stream, "peek"):
        yield stream
        return
    buffered = io.BufferedReader(stream)
    try:
        yield buffered
    finally:
        if not stream.closed:
            buffered.detach()


def read_head(stream: Any, name: str, file_format: str) -> bytes:
    """How the stream begins; refused is what would give an error for each of a million lines."""
    head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
    refuse_signature(head, name, file_format)
    # In the first line it is a file of another kind; further down, an error of its row.
    if b"\0" in head.split(b"\n", 1)[0]:
        raise InputError(f"{name} is not text: it holds zero bytes; {file_format} is UTF-8 text")
    return bytes(head)


def refuse_signature(head: bytes, name: str, file_format: str) -> None:
    """Refuse a file that begins as another kind of file does."""
    for opening, what, hint in _SIGNATURES:
        if head.startswith(opening):
            raise InputError(f"{name} {what}, not {file_format}", hint=hint)


_UNPACKED_BY: Final = {  # how the names of compressed files end
    ".gz": "gzip -d",
    ".zst": "zstd -d",
    ".bz2": "bzip2 -d",
    ".xz": "xz -d",
    ".lz4": "lz4 -d",
    ".zip": "unzip",
}
COMPRESSED: Final = frozenset(_UNPACKED_BY)


def refuse_compressed(name: str) -> None:
    """Refuse a file that its name tells to be compressed."""
    suffix = PurePath(name).suffix.lower()
    if suffix in COMPRESSED:
        raise InputError(
            f"{name} is compressed: files that end in {suffix} are not read yet",
            hint=f"unpack it first: {_UNPACKED_BY[suffix]} {name}; tamis spark reads .gz files",
        )


_DELIMITERS: Final = {",": "comma-separated", "\t": "tab-separated", ";": "semicolon-separated"}
_FORMAT_HINTS: Final = {
    ",": "--format csv",
    "\t": "--format tsv",
    ";": "write it with commas, and --format csv",
}


def guess_lines(head: bytes) -> str | None:
    """What a text that is not JSON lines seems to be, by its beginning; None if that is unclear."""
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text.startswith("<"):
        return "it seems to be XML or HTML: convert it to JSON lines"
    first = text.partition("\n")[0].rstrip()
    if first.startswith("{") and not first.endswith("}"):
        return (
            "it seems to be JSON with objects over several lines: write one object on each line "
            "(jq -c . FILE), or a JSON array of them"
        )
    # The last line may be cut off, and counts only where it is the only other one.
    lines = [line for line in text.splitlines() if line.strip()][:SNIFFED_LINES]
    for delimiter, what in _DELIMITERS.items():
        fields = {len(row) for row in csv.reader(lines[:-1] or lines, delimiter=delimiter)}
        if len(lines) > 1 and len(fields) == 1 and fields != {1}:
            hint = _FORMAT_HINTS[delimiter]
            return f"it seems to be {what} text (CSV): {hint}"
    return None


def refuse_json(header: list[str], name: str) -> None:
    """Refuse a header line that is an object or an array, before all columns are unknown."""
    if header[0].lstrip().startswith(("{", "[")):
        raise InputError(
            f"{name} seems to be JSON, not csv: its first line begins with {header[0][:20]}",
            hint="say so: --format jsonl",
        )
