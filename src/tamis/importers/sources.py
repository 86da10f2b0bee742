"""Finds the files of rules, and splits them into documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tamis.errors import InputError, RowError
from tamis.importers.model import Document
from tamis.input.sources import opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.input.sources import Source

File: TypeAlias = tuple[str, bytes | RowError]  # its name and its content
MOST_BYTES: Final = 1_000_000  # of one rule; the largest that people write have 100,000
_NEXT_DOCUMENT: Final = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
# A document of blank lines, comments and directives is none.
_NOTHING: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:---)?\s*(?:[#%][^\n]*(?:\n\s*|\Z))*(?:\.\.\.\s*)?"
)
_BOMS: Final = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def read_files(sources: Iterable[Source], endings: tuple[str, ...]) -> Iterator[File]:
    """The name and the content of each file; of a folder, of all files below it that have one of
    the endings. Of a file in a folder that cannot be read, the error instead of the content.
    """
    for source in sources:
        if isinstance(source, str | Path) and Path(source).is_dir():
            found = sorted(p for p in Path(source).rglob("*") if p.suffix.lower() in endings)
            if not found:
                raise InputError(
                    f"{source} has no file that ends in {' or '.join(endings)}",
                    hint="name the folder that holds the rules, or the files themselves",
                )
            for path in found:
                if not path.is_dir():
                    yield str(path), _read(path)
            continue
        with opened(source) as stream:
            name = str(source) if isinstance(source, str | Path) else "stdin"
            yield name, stream.read()


def _read(path: Path) -> bytes | RowError:
    try:
        return path.read_bytes()
    except OSError as error:
        target = f", a link to {path.readlink()}," if path.is_symlink() else ""
        return RowError("cannot-read", f"the file{target} cannot be read: {error.strerror}")


def split_documents(name: str, content: bytes) -> list[Document]:
    """The documents of a YAML file; in YAML, a line that begins with --- always starts one."""
    starts = [0, *(found.start() for found in _NEXT_DOCUMENT.finditer(content))]
    documents: list[Document] = []
    line = 1
    for start, end in zip(starts, [*starts[1:], len(content)], strict=True):
        part = content[start:end]
        if not _NOTHING.fullmatch(part):
            documents.append(Document(name, len(documents) + 1, line, part))
        line += part.count(b"\n")
    return documents


def check_size(n_bytes: int) -> None:
    """Raise an error for a rule of so many bytes if it is too large."""
    if n_bytes > MOST_BYTES:
        raise RowError("rule-too-large", f"the rule has {n_bytes:,} bytes; at most {MOST_BYTES:,}")


def decode(document: Document) -> str:
    """The text of a document; raises an error if it is not UTF-8."""
    content = document.content
    for bom, encoding in _BOMS.items():
        if content.startswith(bom):
            raise RowError(
                "bad-encoding", f"the file is {encoding}; UTF-8 is expected", hint="convert it"
            )
    if b"\0" in content:
        raise RowError("bad-encoding", "the file has NUL bytes, as UTF-16 does; UTF-8 is expected")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise RowError(
            "bad-encoding", f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8", hint="convert it"
        ) from None
