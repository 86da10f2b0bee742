"""One question to an index: which subscriptions of which parts answer, and how.

Applied to events, it returns verified blocks: rows without a valid event match nothing, always-true
subscriptions match every event, and operators have been evaluated. A read-out (see `readouts`)
defines what is read from each block and how the blocks of all parts are combined to a result.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from tamis.events.rows import EventRows
from tamis.match.kernels.readout import add_bits
from tamis.match.kernels.rows import ROW
from tamis.operators.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tamis.events.encoder import EncodedEvents
    from tamis.events.event_arrays import EventArrays
    from tamis.events.part_encoder import PartEncoder
    from tamis.events.rejects import Rejects
    from tamis.index.layout import RootArrays
    from tamis.kernels.arrays import Int32, Int64
    from tamis.match.batch import Group, Pairs, Scratch
    from tamis.match.catalogue import Numbering
    from tamis.match.engine import Engine
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
    encoder: PartEncoder
    rejects: Rejects  # of single events
    wanted: WantedSubscriptions
    numbering: Numbering

    def match_names(self, event: Mapping[str, Any]) -> list[str]:
        """The ids of the subscriptions that one event satisfies."""
        if not self.engine.has_operators:
            return self.engine.match_names(self._encode(event), self.wanted.is_wanted)
        ordinals, _ = self._match(event)
        return list(self.engine.contents.ids.take(pa.array(ordinals)).to_pylist())

    def match_bindings(self, event: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The same, each with its substitution."""
        ids = self.engine.contents.ids
        ordinals, verdict = self._match(event, with_bindings=True)
        return {
            str(ids[ordinal].as_py()): verdict.bindings.get(ordinal, {})
            for ordinal in ordinals.tolist()
        }

    def match_ordinals(self, event: Mapping[str, Any]) -> Int32:
        """The same by ordinal of the index."""
        return self.numbering.to_index(self._match(event)[0])

    def _match(
        self, event: Mapping[str, Any], *, with_bindings: bool = False
    ) -> tuple[Int32, Verdict]:
        engine = self.engine
        ordinals = self.wanted.keep(engine.match_ordinals(self._encode(event)))
        if not engine.has_operators:
            return ordinals, _NO_VERDICT
        is_open = engine.operators.is_decided_here[ordinals]
        if not is_open.any():
            return ordinals, _NO_VERDICT
        asked = [(event, ordinals[is_open].tolist())]
        verdict = next(engine.operators.decide(asked, with_bindings=with_bindings))
        is_kept = ~is_open
        is_kept[is_open] = [ordinal in verdict.ordinals for ordinal in asked[0][1]]
        return ordinals[is_kept], verdict

    def _encode(self, event: Mapping[str, Any]) -> EventArrays:
        return self.encoder.encode_event(event, self.rejects)


_NO_VERDICT = Verdict(set(), {})


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
    def wanted(self) -> WantedSubscriptions:
        """The subscriptions that answer."""
        return self.part.wanted

    def read_settled(self, read: Callable[[Group, Scratch], Any]) -> list[Any]:
        """The results of `read` for each group of events and the roots, of `wanted.settled`, that
        it satisfies: no match is listed.
        """
        events = self.batch.parts[self.part.number]
        return self.part.engine.read_groups(
            events, self.first_row, self.bad_rows, self.wanted.settled, read
        )

    def decided(self) -> list[Pairs]:
        """The matches of the other subscriptions, those with operators, by ordinal of the part;
        empty if there are none.
        """
        return self._verified(self.wanted.decided) if self.part.engine.has_operators else []

    def pairs(self) -> list[Pairs]:
        """All matches, by ordinal of the index; each event's in the order of roots."""
        to_index = self.part.numbering.to_index
        return [
            pairs._replace(subscriptions=to_index(pairs.subscriptions))
            for pairs in self._verified(self.wanted.roots)
        ]

    def count_settled(self, counts: Int64) -> None:
        """Add the counts of `read_settled` to each subscription's count, by ordinal of the part."""
        wanted, bad_rows = self.wanted, self.bad_rows
        end_row = self.first_row + self.n_rows
        n_bad = 0
        if len(bad_rows):
            n_bad = int(np.count_nonzero((bad_rows >= self.first_row) & (bad_rows < end_row)))
        if n_bad:
            roots = wanted.settled
            for found, own in self.read_settled(_count_roots):
                sizes = np.diff(roots.subscription_starts)
                by_root = np.zeros(len(sizes), dtype=np.int64)
                by_root[found] = own
                counts[roots.subscriptions] += np.repeat(by_root, sizes)
        else:
            events = self.batch.parts[self.part.number]
            self.part.engine.count_by_subscription(events, self.first_row, wanted.settled, counts)
        if len(wanted.settled.always):
            counts[wanted.settled.always] += self.n_rows - n_bad

    def _verified(self, roots: RootArrays) -> list[Pairs]:
        events, engine = self.batch.parts[self.part.number], self.part.engine
        found = engine.match_pairs(events, self.first_row, self.bad_rows, roots)
        if self.rows is None:
            return found
        verify, rows = engine.operators.verify, self.rows
        return [verify(pairs, rows, with_bindings=self.with_bindings) for pairs in found]


@dataclass(frozen=True)
class Question:
    """Which subscriptions are requested, and the number of threads."""

    parts: Sequence[AskedPart]
    n_groups: int  # of 512 events in a block
    threads: int = 1
    with_bindings: bool = False

    def match_names(self, event: Mapping[str, Any]) -> list[str]:
        """The ids of the subscriptions that one event satisfies, in the order of parts."""
        found = [part.match_names(event) for part in self.parts]
        return found[0] if len(found) == 1 else [name for own in found for name in own]

    def match_bindings(self, event: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The same, each with its substitution."""
        found: dict[str, dict[str, Any]] = {}
        for part in self.parts:
            found |= part.match_bindings(event)
        return found

    def match_ordinals(self, event: Mapping[str, Any]) -> Int32:
        """The same by ordinal."""
        return np.concatenate([_NO_ORDINALS, *(part.match_ordinals(event) for part in self.parts)])

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
        yield from _in_order(run, range(0, batch.n_rows, size), self.threads)


_NO_ORDINALS = np.empty(0, dtype=np.int32)


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


def _in_order(function: Callable[[int], Read], rows: range, threads: int) -> Iterator[Read]:
    """The results for all blocks, in order, computed by the given number of threads."""
    if threads == 1:
        yield from map(function, rows)
        return
    with ThreadPoolExecutor(threads) as pool:
        # A window of blocks ahead: only as many results wait in memory as threads work.
        pending = [pool.submit(function, row) for row in rows[: 2 * threads]]
        for row in rows[2 * threads :]:
            yield pending.pop(0).result()
            pending.append(pool.submit(function, row))
        for future in pending:
            yield future.result()
