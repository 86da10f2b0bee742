"""Declared encodings that the bytes themselves disprove; feedparser believes them."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tamis.feeds.documents import Notes

_DECLARED: Final = re.compile(rb"""^(\s*<\?xml[^>]*?encoding\s*=\s*["'])([\w.:-]+)(["'])""")
_CHARSET: Final = re.compile(r";?\s*charset\s*=\s*[\"']?([\w.:-]+)[\"']?", re.IGNORECASE)
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_ONE_BYTE: Final = (
    "iso-8859-1",
    "latin1",
    "latin-1",
    "windows-1252",
    "cp1252",
    "us-ascii",
    "ascii",
)


def mend_encoding(body: bytes, content_type: str, notes: Notes) -> tuple[bytes, str]:
    """The body and its content type, with an encoding that cannot be true replaced by UTF-8.

    Bytes that are valid UTF-8 beyond ASCII are practically never an encoding of one byte for each
    character.
    """
    if body.startswith(_UTF_16) and not body.startswith(codecs.BOM_UTF32_LE):
        # A half character at the end is left out, where a document was cut off.
        body = body.decode("utf-16", "ignore").encode()
        return _declare(body), _CHARSET.sub("", content_type)
    declared = _DECLARED.match(body)
    names = {declared[2].decode().lower()} if declared else set()
    names |= {name.lower() for name in _CHARSET.findall(content_type)}
    if not names.intersection(_ONE_BYTE) or body.isascii():
        return body, content_type
    try:
        body.decode()
    except UnicodeDecodeError:
        return body, content_type
    notes.add("wrong-encoding", f"declared as {', '.join(sorted(names))}, but it is UTF-8")
    return _declare(body), _CHARSET.sub("", content_type)


def _declare(body: bytes) -> bytes:
    return _DECLARED.sub(rb"\g<1>utf-8\g<3>", body, count=1)
