"""The texts of archived events, as they are given to others."""

from __future__ import annotations

import json
import re
from typing import Final

_STRING_OR_CONSTANT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|-?Infinity|NaN', re.DOTALL)
_BREAKS_TO_BLANKS: Final = bytes.maketrans(b"\r\n", b"  ")


def to_strict_json(text: bytes) -> bytes:
    """The text of an event as one line of JSON by RFC 8259, in UTF-8 without a byte order mark.

    The archive keeps what publishers send. NaN and infinities, which JSON does not have, are null
    here, and line breaks are blanks: a line break would end a field of a stream. JSON has none
    inside strings. All else stays as it is written.
    """
    text = _to_utf8(text).strip()
    if b"\n" in text or b"\r" in text:
        text = text.translate(_BREAKS_TO_BLANKS)
    if b"NaN" not in text and b"Infinity" not in text:
        return text
    return _STRING_OR_CONSTANT.sub(
        lambda found: found[0] if found[0][:1] == b'"' else b"null", text
    )


def _to_utf8(text: bytes) -> bytes:
    """The text, with what is not UTF-8 replaced. The parser takes all encodings of JSON."""
    encoding = json.detect_encoding(text)
    if encoding == "utf-8":
        try:
            text.decode()
        except UnicodeDecodeError:
            pass
        else:
            return text
    return text.decode(encoding, errors="replace").encode()
