"""One run of `tamis match`: matches or counts batch after batch, and prints the results."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from tamis.cli.match_output import PRINTERS
from tamis.index.attributes import plain_number
from tamis.language.names import print_path
from tamis.language.weights import WEIGHT
from tamis.logic.evaluate import value_at
from tamis.match.details import expect_columns
from tamis.match.event_columns import EventColumnReader
from tamis.match.readouts.summaries import Counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    import tamis
    from tamis.events.encoder import EncodedEvents
    from tamis.input.rows import Rows

    Batches: TypeAlias = Iterator[
        tuple[list[Any], EncodedEvents]
    ]  # names of events, and the events

PRINTED: Final = ("event", "subscription_id")  # of each match, with any options


class Run:
    """How to match, and what to print."""

    def __init__(
        self,
        index: tamis.Index,
        output: str,
        *,
        only_matches: bool,
        threads: int,
        bindings: bool = False,
    ) -> None:
        self.index = index
        self.printer = PRINTERS[output](index.ids)
        self.only_matches = only_matches
        self.threads = threads
        self.subset: list[str] | None = None
        self.tagged: list[str] | None = None
        self.top: int | None = None  # print so many matches of each event; all if None
        self.at: datetime | None = None  # None: the time of each batch
        self.event_id: tuple[str, ...] | None = None
        self.is_named = False  # an event has had that attribute
        self.columns: list[str] = []
        self.is_changing = False  # subscriptions come and go between batches
        self.event_values: EventColumnReader | None = None  # to be printed with each match
        self.n_matches = 0
        self.ways: dict[str | None, Callable[[Batches], None]] = {
            None: self.print_bound if bindings else self.print_matches,
            "event": self.count_by_event,
            "subscription": self.count_by_subscription,
        }

    def show_details(self, columns: list[str]) -> None:
        """Print these columns of each subscription with its matches."""
        known = columns if self.is_changing else self.index.view.details.names
        self.columns = expect_columns(columns, known, PRINTED)
        self.ways[None] = self.print_detailed

    def show_events(self, names: list[str]) -> None:
        """Print these attributes of each event with its matches."""
        self.event_values = EventColumnReader(names, PRINTED, self.columns)
        self.ways[None] = self.print_detailed

    def show(self, index: tamis.Index) -> None:
        """Match further events against another index."""
        self.index = index
        self.printer.show(index.ids)

    @property
    def needed(self) -> set[str] | None:
        """The attributes of events that are printed, by their first names; None for all."""
        named = set() if self.event_id is None else {self.event_id[0]}
        shown = frozenset[str]() if self.event_values is None else self.event_values.first_names
        return None if shown is None else named | shown

    def name_events(self, rows: Rows, events: list[Any] | None) -> list[Any]:
        """The name of each event, and with it the requested values of the event."""
        if events is None or (self.event_id is None and self.event_values is None):
            return list(rows.numbers)
        names: list[Any] = list(rows.numbers)
        if self.event_id is not None:
            names = [self._name(event, self.event_id) for event in events]
        if self.event_values is None:
            return names
        return list(zip(names, map(self.event_values.read, events), strict=True))

    def _name(self, event: dict[str, Any], path: tuple[str, ...]) -> Any:
        value = value_at(event, path)
        self.is_named = self.is_named or value is not None
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return plain_number(value) if isinstance(value, Decimal) else str(value)

    def missing_attributes(self) -> Iterator[tuple[str, str]]:
        """The requested attributes that no event had, each with its option."""
        if self.event_id is not None and not self.is_named:
            yield "--event-id", print_path(self.event_id)
        if self.event_values is not None:
            yield from (("--with-event", name) for name in self.event_values.missing)

    @property
    def _asked(self) -> dict[str, Any]:
        """Which subscriptions are to answer, and by how many threads."""
        wanted = self.subset
        if wanted is not None and self.is_changing:
            wanted = [one for one in wanted if one in self.index]
        if self.tagged is not None:
            with_tag = self.index.list_tagged(self.tagged)
            chosen = set(with_tag)
            is_both = (one for one in wanted or () if one in chosen)
            wanted = with_tag if wanted is None else list(is_both)
        return {"subset": wanted, "threads": self.threads, "at": self.at}

    def _match(self, batch: EncodedEvents, columns: list[str]) -> pa.Table:
        """The matches to be printed, or the best of them."""
        known = self.index.view.details.names
        own = [name for name in columns if name in known]
        if self.top is None:
            pairs = self.index.match_batch(batch, columns=own, **self._asked)
        else:
            own = [name for name in own if name != WEIGHT]  # which is there
            pairs = self.index.match_top(batch, self.top, columns=own, **self._asked)
        for name in (name for name in columns if name not in known):  # none has it any more
            pairs = pairs.append_column(name, pa.nulls(len(pairs)))
        return pairs

    def print_matches(self, batches: Batches) -> None:
        """Each event with its matches."""
        if self.top is not None:
            self._print_top(batches)
            return
        for names, batch in batches:
            lists = self.index.match_lists(batch, **self._asked)
            self.printer.print_matches(names, lists, only_matches=self.only_matches)
            self.n_matches += sum(map(_count_values, lists.chunks))

    def _print_top(self, batches: Batches) -> None:
        for names, batch in batches:
            pairs = self._match(batch, [])
            self.printer.print_pairs(names, pairs, only_matches=self.only_matches)
            self.n_matches += len(pairs)

    def print_bound(self, batches: Batches) -> None:
        """Each event with its matches and the values of their variables."""
        for names, batch in batches:
            pairs = self.index.match_batch(batch, bindings=True, **self._asked)
            self.printer.print_bound(names, pairs, only_matches=self.only_matches)
            self.n_matches += len(pairs)

    def print_detailed(self, batches: Batches) -> None:
        """Each event with its matches and the requested columns of it and of their
        subscriptions.
        """
        for names, batch in batches:
            pairs = self._match(batch, self.columns)
            called, values = names, None
            if self.event_values is not None:
                called, values = [name for name, _ in names], [own for _, own in names]
            self.printer.print_detailed(
                called, pairs, self.columns, values, only_matches=self.only_matches
            )
            self.n_matches += len(pairs)

    def count_by_event(self, batches: Batches) -> None:
        """Each event with the number of its matches and one of them, at the end."""
        all_names: list[Any] = []
        parts = [Counted.nothing(0)]
        for names, batch in batches:
            own = self.index.summarise_by_event(batch, **self._asked)
            all_names += names
            parts.append(own)
            self.n_matches += int(own.counts.sum())
        counted = Counted(*map(np.concatenate, zip(*parts, strict=True)))
        order = self._sort(counted.counts, np.arange(len(all_names)))
        self.printer.print_event_counts(
            [all_names[at] for at in order.tolist()],
            counted.counts[order].tolist(),
            counted.firsts[order],
        )

    def count_by_subscription(self, batches: Batches) -> None:
        """Each subscription with the number of events it matches and the first one, at the end."""
        counts = np.zeros(len(self.index), dtype=np.int64)
        examples = np.full(len(self.index), None, dtype=object)
        for names, batch in batches:
            own = self.index.summarise_by_subscription(batch, **self._asked)
            new = np.flatnonzero((own.counts > 0) & (counts == 0))
            examples[new] = [names[row] for row in own.firsts[new].tolist()]
            counts += own.counts
            self.n_matches = int(counts.sum())
        ordinals = np.arange(len(counts))
        wanted = self._asked["subset"]
        if wanted is not None:
            known = [self.index.ordinal(one) for one in wanted]
            ordinals = np.unique(np.array(known, dtype=np.int64))
        order = self._sort(counts, ordinals)
        self.printer.print_subscription_counts(
            order, counts[order].tolist(), examples[order].tolist()
        )

    def _sort(self, counts: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The positions sorted by descending number of matches; ties stay in order."""
        if self.only_matches:
            places = places[counts[places] > 0]
        return places[np.argsort(-counts[places], kind="stable")]


def _count_values(lists: pa.LargeListArray) -> int:
    """The number of values in the lists; `flatten` would load all functions of Arrow."""
    offsets = lists.offsets
    return int(offsets[-1].as_py() - offsets[0].as_py())
