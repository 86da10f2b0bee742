"""Matches the elements of arrays against the conditions of lambdas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.events.encoder import EventEncoder
from tamis.language.lambdas import ELEMENT
from tamis.match.engine import Engine
from tamis.match.single_matcher import SingleMatcher
from tamis.match.wanted_subscriptions import WantedSubscriptions

if TYPE_CHECKING:
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32, Int64

_NO_ROWS = np.empty(0, dtype=np.int64)
# The answers for strings are remembered: those of events repeat, and a look-up costs much less than
# a match. Both limits bound the memory.
_MOST_REMEMBERED: Final = 16_384
_LONGEST_REMEMBERED: Final = 256  # characters


class ElementMatcher:
    """An index whose subscriptions are conditions and whose events are elements. Threads share
    it.
    """

    def __init__(self, contents: Contents) -> None:
        self._engine = Engine(contents, None)
        self._encoder = EventEncoder(contents, match_elements=ElementMatcher)
        self.table = self._encoder.table
        everyone = WantedSubscriptions(contents, self._engine.operators)
        self._single = SingleMatcher((self._engine,), self._encoder.coders, (everyone,))
        self._remembered: dict[str, Int32] = {}
        # Functions of an element report that they have no result for it, each time.
        self._remembers = (ELEMENT,) in self.table.by_path and not self.table.derived

    def match_many(self, elements: EventValues) -> tuple[Int64, Int32]:
        """Pairs of an element, by row, and a condition that it satisfies, by ordinal."""
        events = self._encoder.encode_read(elements).arrays
        roots = self._engine.contents.roots
        rows, found = [_NO_ROWS], [np.empty(0, dtype=np.int32)]
        n_in_block = self._engine.n_groups * 512
        every = range(elements.n_rows)
        for first in every[::n_in_block]:
            block = every[first : first + n_in_block]
            for pairs in self._engine.match_pairs(events, block, _NO_ROWS, roots):
                own = np.arange(len(pairs.starts) - 1) + pairs.first_row
                rows.append(np.repeat(own, np.diff(pairs.starts)))
                found.append(pairs.subscriptions)
        return np.concatenate(rows), np.concatenate(found)

    def match_one(self, element: Any, rejects: Rejects | None) -> Int32:
        """The conditions that an element satisfies; NULL is an element too."""
        if not self._remembers or type(element) is not str or len(element) > _LONGEST_REMEMBERED:
            return self._find(element, rejects)
        found = self._remembered.get(element)
        if found is None:
            found = self._find(element, rejects)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered = {}
            self._remembered[element] = found
        return found

    def _find(self, element: Any, rejects: Rejects | None) -> Int32:
        reader = self._encoder.reader
        if (ELEMENT,) in self.table.by_path or element is None:
            buffer = reader.read_typed({(ELEMENT,): element}, rejects)
        else:  # a struct, whose fields have not been read
            buffer = reader.read({ELEMENT: element}, rejects)
        found = self._single.match_ordinals(buffer)
        reader.give_back(buffer)
        return found
