"""Values and lines of events that could not be read: counted, summarised, and listed on request."""

from __future__ import annotations

import json
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from tamis.cli.console import print_error, print_note
from tamis.input.rows import CutOffError
from tamis.language.names import print_path
from tamis.language.spelled import SpelledEvent
from tamis.language.types import WrongTypeError, read_text, read_value
from tamis.logic.evaluate import value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import tamis
    from tamis.errors import RowError
    from tamis.events.encoder import EncodedEvents
    from tamis.events.rejects import Rejects
    from tamis.input.rows import Rows
    from tamis.language.schema import Path
    from tamis.language.types import Type

SHOWN_LINES: Final = 3
SHOWN_ATTRIBUTES: Final = 5


class _BadRow(NamedTuple):
    number: int
    file_line: int | None
    error: RowError


class EventRejects:
    """Lines without a valid event, and values that are invalid for their attribute."""

    def __init__(self, index: tamis.Index, sink: IO[str] | None) -> None:
        self.sink = sink
        self.n_events = 0
        self.n_bad_rows = 0
        self._bad_rows: list[_BadRow] = []  # the first of them
        self._cut_off: _BadRow | None = None  # after which nothing could be read
        self._n_values: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self.show(index)

    def show(self, index: tamis.Index) -> None:
        """Look at further events for another index; attributes that no event has are those since
        then.
        """
        from tamis.match.unseen import Watch  # imports NumPy and more

        self.types: dict[Path, Type] = dict(index.view.encoder.table.by_path)
        for part in index.parts:
            for path in part.plan.paths:
                if (type_ := part.schema.get(path)) is not None:
                    self.types.setdefault(path, type_)
        # Attributes that operators decide on or read: the encoder does not read them.
        self._others = {
            path: type_
            for path, type_ in self.types.items()
            if path not in index.view.encoder.table.by_path
        }
        operators = [own for part in index.parts for own in part.schema.operators]
        self._reads = {read for own in operators for read in own.reads or () if read.type}
        self._watch = Watch(index.view.asked)

    @property
    def checked_paths(self) -> set[Path]:
        """The attributes whose values are checked here, one by one."""
        return {*self._others, *(path for path, _ in self._reads)}

    @property
    def n_rejects(self) -> int:
        """The number of lines and values."""
        return self.n_bad_rows + self._n_values.total()

    @property
    def is_useless(self) -> bool:
        """Whether more lines were skipped than used, or the number is unknown."""
        return self.n_bad_rows > self.n_events or self._cut_off is not None

    def count_rows(self, rows: Rows, errors: Mapping[int, RowError]) -> None:
        """Add the rows of a batch without a valid event."""
        self.n_bad_rows += len(errors)
        for at, error in errors.items():
            bad = _BadRow(rows.numbers[at], rows.lines[at] if rows.lines else None, error)
            if isinstance(error, CutOffError):
                self._cut_off = self._cut_off or bad
            if len(self._bad_rows) < SHOWN_LINES:
                self._bad_rows.append(bad)
            if self.sink:
                self._list(bad.number, bad.file_line, None, error.code, error.message, error.hint)

    def count(self, rows: Rows, events: list[Any] | None, batch: EncodedEvents) -> None:
        """Add the rows of a batch with events, and their rejects."""
        self.n_events += len(rows)
        self._watch.add(batch, rows.numbers)
        if self._others or self._reads:
            self._count_listed(rows, self._find_wrong(events or [], batch.rejects))
        elif self.sink and len(batch.rejects):
            self._count_listed(rows, self._find_wrong([], batch.rejects))
        elif len(batch.rejects):
            self._count_examples(rows, batch.rejects)

    def _find_wrong(self, events: list[Any], rejects: Rejects) -> dict[tuple[int, str], str]:
        """The error of each invalid value, by row and attribute, in the order of rows."""
        wrong = {
            (reject.row, reject.attribute or ""): reject.reason for reject in rejects.all_values()
        }
        for row, event in enumerate(events):
            found = dict(self._wrong_values(event)) | dict(self._wrong_reads(event))
            wrong |= {(row, attribute): reason for attribute, reason in found.items()}
        return dict(sorted(wrong.items(), key=lambda one: one[0][0]))

    def _count_listed(self, rows: Rows, wrong: dict[tuple[int, str], str]) -> None:
        for (row, attribute), reason in wrong.items():
            number, line = rows.numbers[row], rows.lines[row] if rows.lines else None
            self._n_values[attribute] += 1
            self._examples.setdefault(attribute, f"event {number}: {reason}")
            if self.sink:
                self._list(number, line, attribute, "wrong-type", reason, None)

    def _count_examples(self, rows: Rows, rejects: Rejects) -> None:
        for (attribute, _), n_values in rejects.counts.items():
            self._n_values[attribute or ""] += n_values
        if all(attribute in self._examples for attribute, _ in rejects.counts):
            return
        is_shown = {reject.attribute for reject in rejects}
        shown = list(rejects)
        if not all(attribute in is_shown for attribute, _ in rejects.counts):
            shown = rejects.all_values()  # more attributes than there are examples
        for reject in sorted(shown, key=lambda reject: reject.row):
            example = f"event {rows.numbers[reject.row]}: {reject.reason}"
            self._examples.setdefault(reject.attribute or "", example)

    def _wrong_values(self, event: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for path, type_ in self._others.items():
            if (value := value_at(event, path)) is not None:
                # A text of CSV that is not a valid value is kept: its reader reports the error.
                read = read_text if isinstance(event, SpelledEvent) else read_value
                try:
                    (read if isinstance(value, str) else read_value)(value, type_)
                except WrongTypeError as error:
                    yield print_path(path), str(error)

    def _wrong_reads(self, event: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """The same for attributes that operators read, as texts if these were given."""
        texts = event.texts if isinstance(event, SpelledEvent) else event
        for path, type_ in self._reads:
            assert type_ is not None
            if (value := value_at(texts, path)) is not None:
                is_text = texts is not event and isinstance(value, str)
                try:
                    read_text(value, type_) if is_text else read_value(value, type_)
                except WrongTypeError as error:
                    yield print_path(path), str(error)

    def _list(  # noqa: PLR0913 - the columns of the list
        self,
        number: int,
        file_line: int | None,
        attribute: str | None,
        code: str,
        message: str,
        hint: str | None,
    ) -> None:
        assert self.sink is not None
        fields = {
            "event": number,
            "file_line": file_line,
            "attribute": attribute,
            "code": code,
            "message": message,
            "hint": hint,
        }
        self.sink.write(json.dumps(fields, ensure_ascii=False) + "\n")

    def report(self, source: str, find_names: Callable[[], set[Path]], *, is_listed: bool) -> None:
        """The counts and an example of each kind, on stderr; nothing if there are none."""
        from tamis.match.unseen import describe_no_events

        if not self.n_events and not self.n_bad_rows:
            print_note(describe_no_events("standard input" if source == "-" else source))
        if self.n_bad_rows:
            self._report_rows()
        for attribute, count in self._n_values.most_common(SHOWN_ATTRIBUTES):
            values = "value was" if count == 1 else "values were"
            note = f"{count:,} {values} treated as missing: {attribute}"
            print_note(f"{note}, {self._examples[attribute]}")
        n_more = len(self._n_values) - SHOWN_ATTRIBUTES
        if n_more > 0:
            print_note(f"the same for {n_more:,} more attribute{'s' * (n_more > 1)}")
        if self.n_rejects and not is_listed:
            print_note("--rejects FILE lists them all")
        missing = self._watch.describe_missing(find_names, is_whole=True)
        if missing is not None:
            print_note(missing)
        for note in self._watch.describe_oddities("event"):
            print_note(note)

    def _report_rows(self) -> None:
        first = self._cut_off or self._bad_rows[0]
        place = f"line {first.file_line}" if first.file_line else f"row {first.number}"
        if self._cut_off is not None:
            print_error(f"{place}: {first.error}")
        elif self.is_useless:
            n_rows = self.n_bad_rows + self.n_events
            counted = f"{self.n_bad_rows:,} of {n_rows:,} lines contain no event, first {place}"
            print_error(f"{counted}: {first.error}")
        else:
            counted = f"{self.n_bad_rows:,} {_lines(self.n_bad_rows)} skipped, first {place}"
            print_note(f"{counted}: {first.error.message}")


def _lines(count: int) -> str:
    return "line without an event was" if count == 1 else "lines without an event were"
