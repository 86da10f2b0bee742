"""Rows of JSON: an object on each line, or the elements of one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import RowError
from tamis.events.json_texts import parse_event, parse_record
from tamis.input.json_arrays import BrokenArrayError, is_array, read_elements
from tamis.input.rows import CutOffError, Rows
from tamis.input.sniffing import guess_lines, read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.events.json_source import JsonSpans
    from tamis.events.rejects import Rejects
    from tamis.input.rows import Columns, Types, Values, Wanted
    from tamis.input.sources import Stream


def read_rows(stream: Stream, wanted: Wanted) -> Iterator[JsonRows]:
    """The rows of a stream in batches."""
    head = read_head(stream.file, stream.name, stream.file_format)
    hint = guess_lines(head)
    read = _read_blocks if wanted.in_blocks and not is_array(head) else _read_texts
    if wanted.as_they_come and stream.is_pipe:
        read = _read_texts
    for texts, lines in read(stream, wanted, head):
        yield JsonRows(texts, lines, hint)
        hint = None


def _read_texts(
    stream: Stream, wanted: Wanted, head: bytes
) -> Iterator[tuple[list[bytes | RowError], list[int]]]:
    """The texts one by one, and their lines."""
    for batch in wanted.gather(stream, json_texts(stream.file, head), _weigh):
        yield [text for _, text in batch], [line for line, _ in batch]


def _read_blocks(
    stream: Stream, wanted: Wanted, head: bytes
) -> Iterator[tuple[JsonSpans, list[int]]]:
    """The texts of lines in the blocks of the file, and their lines."""
    from tamis.input.line_blocks import read_lines

    for found in read_lines(stream.file, wanted.n_rows):
        yield found.texts, found.numbers.tolist()


def json_texts(file: Any, head: bytes) -> Iterator[tuple[int, bytes | CutOffError]]:
    """The line number and the text of each object of a file that begins with `head`."""
    if not is_array(head):
        yield from _filled_lines(file)
        return
    try:
        for element in read_elements(file):
            yield element.file_line, element.text.encode(errors="surrogateescape")
    except BrokenArrayError as error:
        yield error.line, CutOffError(error.message)


def _filled_lines(file: Any) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, start=1):
        content = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip()
        if content:
            yield number, content


def _weigh(row: tuple[int, bytes | RowError]) -> int:
    return 0 if isinstance(row[1], RowError) else len(row[1])


class JsonRows(Rows):
    """Texts that contain an object each."""

    def __init__(
        self,
        texts: Sequence[bytes | RowError],
        lines: list[int],
        hint: str | None = None,  # a guess at the file's format, if its first row is not an object
    ) -> None:
        self.texts = texts
        self.lines: list[int] = lines
        self._hint = hint
        self._events: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def read(self, table: AttributeTable, rejects: Rejects) -> EventValues:
        from tamis.events.json_events import read_json

        values = read_json(self.texts, table, rejects)
        if 0 in rejects.row_errors:
            self._explain(rejects.row_errors[0])
        return values

    def hold(self, types: Types) -> Any:
        return self.texts if self._events is None else self._events

    def to_mappings(self, types: Types, names: Collection[str] | None = None) -> list[Any]:
        if self._events is None:
            self._events = list(self._parse_all(parse_event))
        return self._events

    def to_records(self, columns: Columns) -> Iterable[Values | RowError]:
        return self._parse_all(parse_record)

    def take(self, places: Sequence[int]) -> JsonRows:
        taken = JsonRows([self.texts[at] for at in places], [self.lines[at] for at in places])
        if self._events is not None:
            taken._events = [self._events[at] for at in places]
        return taken

    def _parse_all(self, parse: Callable[[bytes], Values]) -> Iterator[Values | RowError]:
        for at, text in enumerate(self.texts):
            try:
                yield text if isinstance(text, RowError) else parse(text)
            except RowError as error:
                if at == 0:
                    self._explain(error)
                yield error

    def _explain(self, error: RowError) -> None:
        if not isinstance(error, CutOffError):
            error.hint = self._hint or error.hint
