"""What of the events could not be read or is missing: counted, told in short, listed on request."""

from __future__ import annotations

import json
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, Final

from tamis.cli.console import print_error, print_note
from tamis.files import CutOffError
from tamis.language.names import print_path
from tamis.language.spelled import SpelledEvent
from tamis.language.types import WrongTypeError, read_text, read_value
from tamis.logic.evaluate import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tamis
    from tamis.events.encoder import EncodedEvents
    from tamis.files import EventRow
    from tamis.language.schema import Path
    from tamis.language.types import Type

SHOWN_LINES: Final = 3
SHOWN_ATTRIBUTES: Final = 5


class EventRejects:
    """Lines that hold no event, and values that their attribute cannot have."""

    def __init__(self, index: tamis.Index, sink: IO[str] | None) -> None:
        from tamis.match.unseen import Watch  # NumPy and all that

        self.types: dict[Path, Type] = {
            attribute.path: attribute.type
            for column in index.contents.columns
            for attribute in column.attributes
            if attribute.type is not None
        }
        schema = index.contents.schema
        for path in index.contents.plan.paths:
            if (type_ := schema.get(path)) is not None:
                self.types.setdefault(path, type_)
        self.reads = {read for own in schema.operators for read in own.reads or () if read.type}
        self.sink = sink
        self.n_events = 0
        self.n_bad_rows = 0
        self._bad_rows: list[EventRow] = []  # the first of them
        self._cut_off: EventRow | None = None  # after which nothing could be read
        self._watch = Watch(index.asked)
        self._names: set[Path] = set()  # that the first events have
        self._n_values: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    @property
    def n_rejects(self) -> int:
        """Lines and values together."""
        return self.n_bad_rows + self._n_values.total()

    @property
    def is_useless(self) -> bool:
        """Whether more lines were left out than were used, or nobody knows how many."""
        return self.n_bad_rows > self.n_events or self._cut_off is not None

    def count(self, rows: list[EventRow], good: list[EventRow], batch: EncodedEvents) -> None:
        """Take in one chunk: all its rows, those that hold events, and what became of these."""
        from tamis.events.names import find_names

        self.n_events += len(good)
        self._watch.add(batch)
        self._names = self._names or find_names([row.event for row in good])
        bad = [row for row in rows if row.error is not None]
        cut_off = (row for row in bad if isinstance(row.error, CutOffError))
        self._cut_off = next(cut_off, self._cut_off)
        self.n_bad_rows += len(bad)
        self._bad_rows.extend(bad[: SHOWN_LINES - len(self._bad_rows)])
        for row in bad if self.sink else ():
            assert row.error is not None
            self._list(row, None, row.error.code, row.error.message, row.error.hint)
        if len(batch.rejects) or self.reads:
            self._count_values(good)

    def _count_values(self, rows: list[EventRow]) -> None:
        # The batch knows how many there are and shows a few; here each is named.
        for row in rows:
            wrong = dict(self._wrong_values(row.event)) | dict(self._wrong_reads(row.event))
            for attribute, reason in wrong.items():
                self._n_values[attribute] += 1
                self._examples.setdefault(attribute, f"event {row.number}: {reason}")
                if self.sink:
                    self._list(row, attribute, "wrong-type", reason, None)

    def _wrong_values(self, event: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for path, type_ in self.types.items():
            if (value := value_at(event, path)) is not None:
                # A text of CSV that spells no value stays: what it lacks is for its reader to say.
                read = read_text if isinstance(event, SpelledEvent) else read_value
                try:
                    (read if isinstance(value, str) else read_value)(value, type_)
                except WrongTypeError as error:
                    yield print_path(path), str(error)

    def _wrong_reads(self, event: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """The same for what operators read, of texts where these are what there is."""
        texts = event.texts if isinstance(event, SpelledEvent) else event
        for path, type_ in self.reads:
            assert type_ is not None
            if (value := value_at(texts, path)) is not None:
                is_text = texts is not event and isinstance(value, str)
                try:
                    read_text(value, type_) if is_text else read_value(value, type_)
                except WrongTypeError as error:
                    yield print_path(path), str(error)

    def _list(
        self, row: EventRow, attribute: str | None, code: str, message: str, hint: str | None
    ) -> None:
        assert self.sink is not None
        told = {
            "event": row.number,
            "file_line": row.file_line,
            "attribute": attribute,
            "code": code,
            "message": message,
            "hint": hint,
        }
        self.sink.write(json.dumps(told, ensure_ascii=False) + "\n")

    def report(self, source: str, *, is_listed: bool) -> None:
        """The counts and an example of each kind, on stderr; nothing where all is well."""
        from tamis.match.unseen import tell_no_events

        if not self.n_events and not self.n_bad_rows:
            print_note(tell_no_events("standard input" if source == "-" else source))
        if self.n_bad_rows:
            self._report_rows()
        for attribute, count in self._n_values.most_common(SHOWN_ATTRIBUTES):
            values = "value was" if count == 1 else "values were"
            told = f"{count:,} {values} treated as missing: {attribute}"
            print_note(f"{told}, {self._examples[attribute]}")
        n_more = len(self._n_values) - SHOWN_ATTRIBUTES
        if n_more > 0:
            print_note(f"the same for {n_more:,} more attribute{'s' * (n_more > 1)}")
        if self.n_rejects and not is_listed:
            print_note("--rejects FILE lists them all")
        missing = self._watch.tell_missing(lambda: self._names)
        if missing is not None:
            print_note(missing)
        for told in self._watch.tell_oddities():
            print_note(told)

    def _report_rows(self) -> None:
        first = self._cut_off or self._bad_rows[0]
        assert first.error is not None
        place = f"line {first.file_line}" if first.file_line else f"row {first.number}"
        if self._cut_off is not None:
            print_error(f"{place}: {first.error}")
        elif self.is_useless:
            n_rows = self.n_bad_rows + self.n_events
            told = f"{self.n_bad_rows:,} of {n_rows:,} lines hold no event, first {place}"
            print_error(f"{told}: {first.error}")
        else:
            told = f"{self.n_bad_rows:,} {_lines(self.n_bad_rows)} left out, first {place}"
            print_note(f"{told}: {first.error.message}")


def _lines(count: int) -> str:
    return "line that holds no event was" if count == 1 else "lines that hold no event were"
