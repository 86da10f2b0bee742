"""Reads JSON arrays one element at a time: files of any size, elements that fit in memory."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from tamis.errors import InputError
from tamis.input.batches import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES: Final = 1 << 16
_OPENING: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*(?:[{\]]|\Z)")
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str)  # only its end matters
# How far before the end of the buffer the decoder may fail on a truncated token.
_CUT: Final = len(r"\ud83d\ude00")


class BrokenArrayError(InputError):
    """The text is not an array from some line on."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class Element:
    """One element, unchanged."""

    file_line: int
    text: str  # bytes that are not UTF-8 are lone surrogates in it


def is_array(head: bytes) -> bool:
    """Whether a text with this beginning is an array of objects; a line such as `[1, 2]` is not."""
    return _OPENING.match(head) is not None


def read_elements(stream: IO[bytes]) -> Iterator[Element]:
    """The elements of the array, as they are read.

    Invalid syntax raises a `BrokenArrayError` at its place, since the start of the next element is
    unknown.
    """
    text = _Text(stream)
    text.expect("[", "the beginning of an array")
    is_open = not text.has("]")
    while is_open:
        yield text.take_element()
        is_open = not text.has("]")
        if is_open:
            text.expect(",", "a comma or the end of the array")
    text.expect_end()


class _Text:
    """The part of a stream that has been read and not yet consumed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._decoder = getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._rest = ""
        self._at = 0
        self._line = 1
        self._is_read = False

    def expect_end(self) -> None:
        """Raise an error for anything but blanks."""
        self._skip_blanks()
        if self._at < len(self._rest):
            raise self._refuse("the file continues after the end of its array", self._at)

    def has(self, character: str) -> bool:
        """Consume the character if it comes next."""
        self._skip_blanks()
        is_next = self._rest.startswith(character, self._at)
        self._at += is_next
        return is_next

    def expect(self, character: str, what: str) -> None:
        """Consume the character, which must come next."""
        if not self.has(character):
            found = self._rest[self._at : self._at + 1]
            shown = f'"{found}"' if found else "the end of the file"
            raise self._refuse(f"{what} is expected, not {shown}", self._at)

    def take_element(self) -> Element:
        """The next element; reads as much as needed."""
        self._skip_blanks()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._rest, self._at)
            except json.JSONDecodeError as error:
                if not self._is_cut(error) or not self._read_more():
                    reason = error.msg.removesuffix(" at").removesuffix(" starting")
                    raise self._refuse(reason, error.pos) from None
            except (ValueError, RecursionError) as error:  # too many digits, nested too deep
                raise self._refuse(str(error), self._at) from None
            else:
                # A number may continue after the buffer; an object is returned at once.
                is_whole = isinstance(value, dict) or end < len(self._rest)
                if is_whole or not self._read_more():
                    return self._take(end)

    def _take(self, end: int) -> Element:
        element = Element(self._line, self._rest[self._at : end])
        self._line += element.text.count("\n")
        self._at = end
        return element

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the element may be valid but incomplete."""
        is_open = error.msg.startswith("Unterminated string")
        return is_open or error.pos >= len(self._rest) - _CUT

    def _skip_blanks(self) -> None:
        while True:
            blanks = _BLANK.match(self._rest, self._at)
            assert blanks is not None
            self._line += blanks[0].count("\n")
            self._at = blanks.end()
            if self._at < len(self._rest) or not self._read_more():
                return

    def _read_more(self) -> bool:
        """Read more; False at the end. The size doubles each time, since an element is decoded
        again.
        """
        if self._is_read:
            return False
        self._rest = self._rest[self._at :]
        self._at = 0
        if len(self._rest) > MOST_BYTES:
            raise self._refuse(f"an element has more than {MOST_BYTES >> 20} MiB", 0)
        wanted = max(CHUNK_BYTES, len(self._rest))
        while not self._is_read:
            chunk = self._read(wanted)
            self._is_read = not chunk
            more = self._decoder.decode(chunk, final=self._is_read)
            self._rest += more
            if more:
                return True
        return False

    def _refuse(self, reason: str, at: int) -> BrokenArrayError:
        return BrokenArrayError(reason, self._line + self._rest.count("\n", self._at, at))
