"""Matches one event against some parts of an index, by one call of a kernel."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.kernels.records import Records, bind
from tamis.match.kernels.single import UNDECIDED, Joint, match_parts, match_settled
from tamis.match.single_scratch import make_single_scratch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.part_coder import PartCoder
    from tamis.events.single_space import EventBuffer
    from tamis.kernels.arrays import Int32
    from tamis.match.engine import Engine
    from tamis.match.wanted_subscriptions import WantedSubscriptions


class MatchScratch:
    """Scratch space for one event and some parts."""

    __slots__ = ("addresses", "buffers", "found", "n_found", "records")

    def __init__(self, engines: Sequence[Engine], coders: Sequence[PartCoder]) -> None:
        scratches = [make_single_scratch(own.contents, own.root_table) for own in engines]
        self.found = [own.found for own in scratches]
        self.buffers = [own.patterns.make_buffer() for own in coders]
        self.n_found = np.zeros(len(engines), dtype=np.int64)
        n_patterns = [len(own.patterns.arrays) for own in coders]
        first_patterns = np.cumsum(n_patterns, dtype=np.int64) - n_patterns
        self.records = (
            Records([own for buffer in self.buffers for own in buffer.scratches.records]),
            Records([own.space for own in self.buffers]),
            Records(scratches),
            Records([Joint(first_patterns, self.n_found)]),
        )
        self.addresses = tuple(own.address for own in self.records)


class SingleKernels(NamedTuple):
    """Compiled kernels."""

    match_parts: Any
    match_settled: Any


class SingleMatcher:
    """Matches single events against parts whose arrays have the same types. Threads share it.

    Of several parts, none has operators, or columns that no kernel computes.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        coders: Sequence[PartCoder],
        wanted: Sequence[WantedSubscriptions],
    ) -> None:
        self._engines, self._coders, self._wanted = engines, coders, wanted
        self._records = (
            Records.join([own.arrays for own in engines]),
            Records.join([own.records for own in coders]),
            Records.join([own.patterns.records for own in coders]),
            Records.join([own.records for own in wanted]),
        )
        self._addresses = tuple(own.address for own in self._records)
        # A part has its own scratch, which later questions use again.
        self._scratches: list[MatchScratch] = engines[0].scratches if len(engines) == 1 else []
        self._kernels = engines[0].single_kernels

    @staticmethod
    def can_join(engines: Sequence[Engine], coders: Sequence[PartCoder]) -> bool:
        """Whether one call matches all parts."""
        return (
            not any(own.has_operators for own in engines)
            and not any(own.has_extras for own in coders)
            and Records.are_alike([own.arrays for own in engines])
        )

    @cached_property
    def _always(self) -> list[list[str]]:
        """The ids of the wanted subscriptions of each part that every event matches."""
        return [
            engine.names.always
            if own.is_wanted is None or not engine.names.always
            else engine.names.of(own.keep(engine.contents.roots.always))
            for engine, own in zip(self._engines, self._wanted, strict=True)
        ]

    @cached_property
    def _all_always(self) -> list[str]:
        return [name for own in self._always for name in own]

    def match_names(self, event: EventBuffer) -> list[str]:
        """The ids of the wanted subscriptions that the event satisfies, part by part."""
        scratch = self._take()
        if not self._match(event, scratch):
            found = self._all_always.copy()
        elif len(self._engines) == 1:
            names = self._engines[0].names
            found = names.at(scratch.found[0], int(scratch.n_found[0]), self._always[0])
        else:
            found = self._join_names(event, scratch)
        self._scratches.append(scratch)
        return found

    def match_ordinals(self, event: EventBuffer) -> Int32:
        """The same for one part, by ordinal of the part."""
        (found,) = self.match_parts(event)
        return found

    def match_parts(self, event: EventBuffer) -> list[Int32]:
        """The same for each part, by ordinal of the part."""
        scratch = self._take()
        self._match(event, scratch)
        found = [
            self._alone[part].match_ordinals(event)
            if n_found == UNDECIDED
            else self._ordinals(part, scratch.found[part][:n_found])
            for part, n_found in enumerate(scratch.n_found.tolist())
        ]
        self._scratches.append(scratch)
        return found

    def _ordinals(self, part: int, found: Int32) -> Int32:
        roots = self._engines[part].contents.roots
        always = self._wanted[part].keep(roots.always)
        return np.concatenate((always, roots.subscriptions[found]))

    def _join_names(self, event: EventBuffer, scratch: MatchScratch) -> list[str]:
        found: list[str] = []
        for part, n_found in enumerate(scratch.n_found.tolist()):
            always = self._always[part]
            if n_found > 0:
                names = self._engines[part].names
                found += names.at(scratch.found[part], n_found, always)
            elif n_found == UNDECIDED:
                found += self._alone[part].match_names(event)
            elif always:
                found += always
        return found

    @cached_property
    def _alone(self) -> list[SingleMatcher]:
        """A matcher for each part."""
        parts = zip(self._engines, self._coders, self._wanted, strict=True)
        return [SingleMatcher((engine,), (coder,), (own,)) for engine, coder, own in parts]

    def _take(self) -> MatchScratch:
        try:
            return self._scratches.pop()
        except IndexError:
            return MatchScratch(self._engines, self._coders)

    def _match(self, event: EventBuffer, scratch: MatchScratch) -> int:
        """Write the number of matches of each part; return the number of parts that have some, or
        are undecided.
        """
        n_entries = n_marks = 0
        if event.exact or self._coders[0].has_extras:
            if len(self._coders) > 1:
                scratch.n_found[:] = UNDECIDED
                return len(self._coders)
            n_entries, n_marks = self._coders[0].add_extras(event)
        kernels = self._kernels
        if kernels is None:
            kernels = self._kernels = self._bind(event, scratch)
        n_answers: int = kernels.match_parts(
            *self._addresses,
            *scratch.addresses,
            event.address,
            event.n_words,
            n_entries,
            n_marks,
        )
        if n_answers and len(self._coders) == 1 and scratch.n_found[0] == UNDECIDED:
            self._coders[0].patterns.settle(event, scratch.buffers[0])
            arrays, _, _, wanted = self._addresses
            n_answers = kernels.match_settled(arrays, wanted, *scratch.addresses[1:], event.address)
        return n_answers

    def _bind(self, event: EventBuffer, scratch: MatchScratch) -> SingleKernels:
        """The kernels for the types of the arrays, which are the same for each event."""
        engine = self._engines[0]
        if engine.single_kernels is None:
            arrays, _, _, wanted = self._records
            settled = (arrays, wanted, *scratch.records[1:], event.records)
            engine.single_kernels = SingleKernels(
                bind(match_parts, (*self._records, *scratch.records, event.records), 3),
                bind(match_settled, settled, 0),
            )
        return engine.single_kernels
