"""One question to an index: which subscriptions of which parts answer, and how.

Applied to events, it returns verified blocks: rows without a valid event match nothing, always-true
subscriptions match every event, and operators have been evaluated. A read-out (see `readouts`)
defines what is read from each block and how the blocks of all parts are combined to a result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from tamis.errors import InputError
from tamis.events.rows import EventRows
from tamis.match.ahead import map_ahead
from tamis.match.kernels.readout import add_bits
from tamis.match.kernels.rows import ROW
from tamis.match.single_matcher import SingleMatcher
from tamis.operators.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tamis.events.encoder import EncodedEvents
    from tamis.events.part_coder import PartCoder
    from tamis.events.rejects import Rejects
    from tamis.events.single_space import EventBuffer
    from tamis.index.layout import RootArrays
    from tamis.kernels.arrays import Int32, Int64
    from tamis.match.batch import Group, Pairs, Scratch
    from tamis.match.catalogue import Numbering
    from tamis.match.engine import Engine
    from tamis.match.single_events import Event, SingleEvents
    from tamis.match.wanted_subscriptions import WantedSubscriptions

Read = TypeVar("Read")
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


class Readout(Protocol[Read, Answer_co]):
    """What is read from a block, and how results are combined."""

    def read(self, block: Block) -> Read:
        """The result of one part for one block of events; called by several threads at once."""

    def answer(self, blocks: Iterable[BlockRead[Read]]) -> Answer_co:
        """The combined result of all blocks."""


class BlockRead(NamedTuple, Generic[Read]):
    """The results of the parts for one block of events."""

    batch: EncodedEvents
    batch_row: int  # of the first event of the batch among all events
    first_row: int  # of the first event of the block in the batch
    parts: list[Read]


@dataclass(frozen=True)
class AskedPart:
    """A part of an index, and which of its subscriptions answer."""

    number: int  # of the part
    engine: Engine
    coder: PartCoder  # of single events
    wanted: WantedSubscriptions
    numbering: Numbering
    listing: Numbering  # in the list by which results name subscriptions

    @cached_property
    def matcher(self) -> SingleMatcher:
        """Matches single events."""
        return SingleMatcher((self.engine,), (self.coder,), (self.wanted,))

    def match_names(self, event: EventBuffer) -> list[str]:
        """The ids of the subscriptions that one event satisfies."""
        if not self.engine.has_operators:
            return self.matcher.match_names(event)
        ordinals, _ = self._match(event)
        return list(self.engine.contents.ids.take(pa.array(ordinals)).to_pylist())

    def match_bindings(self, event: EventBuffer) -> dict[str, dict[str, Any]]:
        """The same, each with its substitution."""
        ids = self.engine.contents.ids
        ordinals, verdict = self._match(event, with_bindings=True)
        return {
            str(ids[ordinal].as_py()): verdict.bindings.get(ordinal, {})
            for ordinal in ordinals.tolist()
        }

    def match_ordinals(self, event: EventBuffer) -> Int32:
        """The same by ordinal of the listing."""
        return self.listing.to_index(self._match(event)[0])

    def match_numbers(self, event: EventBuffer) -> Int64:
        """The same by number of the subscription, as its store gave it."""
        return self.numbers[self._match(event)[0]]

    @property
    def numbers(self) -> Int64:
        """The numbers of subscriptions, by ordinal of the part."""
        contents = self.engine.contents
        if len(contents.numbers) != len(contents.ids):
            raise InputError(
                "the subscriptions of this index have no numbers",
                hint="only those of a live index have",
            )
        return contents.numbers

    def _match(self, event: EventBuffer, *, with_bindings: bool = False) -> tuple[Int32, Verdict]:
        engine = self.engine
        ordinals = self.matcher.match_ordinals(event)
        if not engine.has_operators:
            return ordinals, _NO_VERDICT
        is_open = engine.operators.is_decided_here[ordinals]
        if not is_open.any():
            return ordinals, _NO_VERDICT
        asked = [(event.event, ordinals[is_open].tolist())]
        verdict = next(engine.operators.decide(asked, with_bindings=with_bindings))
        is_kept = ~is_open
        is_kept[is_open] = [ordinal in verdict.ordinals for ordinal in asked[0][1]]
        return ordinals[is_kept], verdict


_NO_VERDICT = Verdict(set(), {})


class NamedPairs(NamedTuple):
    """Matches of consecutive events by number of the subscription, and its id for each."""

    pairs: Pairs
    ids: pa.StringArray


@dataclass(frozen=True)
class Block:
    """A block of events matched against one part of an index. Its answers are verified."""

    part: AskedPart
    batch: EncodedEvents
    bad_rows: Int64  # of the batch
    first_row: int
    n_rows: int
    rows: EventRows | None  # the events themselves, for operators
    with_bindings: bool

    @property
    def span(self) -> range:
        """The rows of the block in the batch; the same for all parts, of whatever size they are."""
        return range(self.first_row, self.first_row + self.n_rows)

    @property
    def wanted(self) -> WantedSubscriptions:
        """The subscriptions that answer."""
        return self.part.wanted

    def read_settled(self, read: Callable[[Group, Scratch], Any]) -> list[Any]:
        """The results of `read` for each group of events and the roots, of `wanted.settled`, that
        it satisfies: no match is listed.
        """
        events = self.batch.parts[self.part.number]
        return self.part.engine.read_groups(
            events, self.span, self.bad_rows, self.wanted.settled, read
        )

    def decided(self) -> list[Pairs]:
        """The matches of the other subscriptions, those with operators, by ordinal of the part;
        empty if there are none.
        """
        return self._verified(_DECIDED) if self.part.engine.has_operators else []

    @property
    def is_quick_to_list(self) -> bool:
        """Whether matches take less time to list than to count: few events were matched since a
        removal. Then `local_pairs` have all of them.
        """
        return self.wanted.source is not self.wanted

    def local_pairs(self) -> list[Pairs]:
        """All matches, by ordinal of the part; each event's in the order of roots."""
        return self._verified(_ALL)

    def pairs(self) -> list[Pairs]:
        """The same by ordinal of the index."""
        return _renumbered(self.local_pairs(), self.part.numbering)

    def listed(self) -> list[Pairs]:
        """The same by ordinal of the list by which results name subscriptions."""
        return _renumbered(self.local_pairs(), self.part.listing)

    def numbered(self) -> list[Pairs]:
        """The same by number of the subscription, as its store gave it."""
        numbers = self.part.numbers
        return [
            pairs._replace(subscriptions=numbers[pairs.subscriptions])
            for pairs in self.local_pairs()
        ]

    def named(self) -> list[NamedPairs]:
        """All matches, by number of the subscription, with their ids."""
        numbers, ids = self.part.numbers, self.part.engine.contents.ids
        return [
            NamedPairs(
                pairs._replace(subscriptions=numbers[pairs.subscriptions]),
                ids.take(pa.array(pairs.subscriptions)),
            )
            for pairs in self.local_pairs()
        ]

    def count_settled(self, counts: Int64) -> None:
        """Add the counts of `read_settled` to each subscription's count, by ordinal of the part."""
        wanted, bad_rows = self.wanted, self.bad_rows
        span = self.span
        n_bad = 0
        if len(bad_rows):
            n_bad = int(np.count_nonzero((bad_rows >= span.start) & (bad_rows < span.stop)))
        if n_bad:
            roots = wanted.settled
            for found, own in self.read_settled(_count_roots):
                sizes = np.diff(roots.subscription_starts)
                by_root = np.zeros(len(sizes), dtype=np.int64)
                by_root[found] = own
                counts[roots.subscriptions] += np.repeat(by_root, sizes)
        else:
            events = self.batch.parts[self.part.number]
            self.part.engine.count_by_subscription(events, span, wanted.settled, counts)
        if len(wanted.settled.always):
            counts[wanted.settled.always] += self.n_rows - n_bad

    def _verified(self, choose: Callable[[WantedSubscriptions], RootArrays]) -> list[Pairs]:
        events, engine = self.batch.parts[self.part.number], self.part.engine
        source = self.wanted.source  # read once: it changes
        found = engine.match_pairs(events, self.span, self.bad_rows, choose(source))
        if source is not self.wanted:
            found = [self.wanted.keep_pairs(pairs) for pairs in found]
        if self.rows is None:
            return found
        verify, rows = engine.operators.verify, self.rows
        return [verify(pairs, rows, with_bindings=self.with_bindings) for pairs in found]


_ALL = attrgetter("roots")
_DECIDED = attrgetter("decided")


def _renumbered(found: list[Pairs], numbering: Numbering) -> list[Pairs]:
    to_index = numbering.to_index
    return [pairs._replace(subscriptions=to_index(pairs.subscriptions)) for pairs in found]


@dataclass(frozen=True)
class Question:
    """Which subscriptions are requested, and the number of threads."""

    parts: Sequence[AskedPart]
    singles: SingleEvents
    n_groups: int  # of 512 events in a block
    threads: int = 1
    with_bindings: bool = False

    def match_names(self, event: Event) -> list[str]:
        """The ids of the subscriptions that one event satisfies, in the order of parts."""
        read = self.singles.read(event)
        if self._matcher is not None:
            found = self._matcher.match_names(read)
        else:
            found = [name for part in self.parts for name in part.match_names(read)]
        self.singles.give_back(read)
        return found

    def match_each(self, events: Iterable[Event]) -> list[list[str]]:
        """The same for each of some events."""
        found: list[list[str]] = []
        for event in events:
            try:
                found.append(self.match_names(event))
            except InputError as error:
                place = f"row {len(found)}: {error.message}"
                raise InputError(place, hint=error.hint) from None
        return found

    @cached_property
    def _matcher(self) -> SingleMatcher | None:
        """Matches single events against all parts; None if they are matched one by one."""
        parts = self.parts
        if len(parts) == 1:
            return None if parts[0].engine.has_operators else parts[0].matcher
        engines, coders = [own.engine for own in parts], [own.coder for own in parts]
        if not SingleMatcher.can_join(engines, coders):
            return None
        return SingleMatcher(engines, coders, [own.wanted for own in parts])

    def match_bindings(self, event: Event) -> dict[str, dict[str, Any]]:
        """The same, each with its substitution."""
        read = self.singles.read(event)
        found: dict[str, dict[str, Any]] = {}
        for part in self.parts:
            found |= part.match_bindings(read)
        self.singles.give_back(read)
        return found

    def match_ordinals(self, event: Event) -> Int32:
        """The same by ordinal of the list by which results name subscriptions."""
        read = self.singles.read(event)
        found = [part.match_ordinals(read) for part in self.parts]
        self.singles.give_back(read)
        return np.concatenate([_NO_ORDINALS, *found])

    def match_numbers(self, event: Event) -> Int64:
        """The same by number of the subscription, as its store gave it."""
        read = self.singles.read(event)
        if self._matcher is not None:
            ordinals = self._matcher.match_parts(read)
            found = [part.numbers[own] for part, own in zip(self.parts, ordinals, strict=True)]
        else:
            found = [part.match_numbers(read) for part in self.parts]
        self.singles.give_back(read)
        return np.concatenate([_NO_NUMBERS, *found])

    def reporting_to(self, rejects: Rejects) -> Question:
        """The same question; values of single events that cannot be read are added to these
        rejects.
        """
        return replace(self, singles=self.singles.reporting_to(rejects))

    def put(self, batches: Iterable[EncodedEvents], readout: Readout[Read, Answer]) -> Answer:
        """The answer to the question for all events."""
        return readout.answer(self._read_blocks(batches, readout.read))

    def _read_blocks(
        self, batches: Iterable[EncodedEvents], read: Callable[[Block], Read]
    ) -> Iterator[BlockRead[Read]]:
        batch_row = 0
        for batch in batches:
            yield from self._read_batch(batch, batch_row, read)
            batch_row += batch.n_rows

    def _read_batch(
        self, batch: EncodedEvents, batch_row: int, read: Callable[[Block], Read]
    ) -> Iterator[BlockRead[Read]]:
        bad_rows = batch.bad_rows
        rows = [_open_rows(part.engine, batch) for part in self.parts]
        size = ROW * self.n_groups

        def run(first_row: int) -> BlockRead[Read]:
            n_rows = min(size, batch.n_rows - first_row)
            blocks = (
                Block(part, batch, bad_rows, first_row, n_rows, own, self.with_bindings)
                for part, own in zip(self.parts, rows, strict=True)
            )
            return BlockRead(batch, batch_row, first_row, [read(one) for one in blocks])

        if not batch.n_rows:  # the columns of its events have a type nevertheless
            yield BlockRead(batch, batch_row, 0, [])
        yield from map_ahead(run, range(0, batch.n_rows, size), self.threads)


_NO_ORDINALS = np.empty(0, dtype=np.int32)
_NO_NUMBERS = np.empty(0, dtype=np.int64)


def _open_rows(engine: Engine, batch: EncodedEvents) -> EventRows | None:
    """The events in the form that operators get; None if there are no operators."""
    if not engine.has_operators:
        return None
    names = engine.operators.attribute_names
    return EventRows(batch.source, batch.column, engine.contents.schema, names)


def _count_roots(group: Group, scratch: Scratch) -> tuple[Int32, Int64]:
    counts = np.zeros(len(group.found), dtype=np.int64)
    add_bits(group.masks, counts)
    return group.found.copy(), counts
