"""Conditions as an index, events as codes, and what the kernels make of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tamis.events.encoder import EventEncoder
from tamis.events.rejects import Rejects
from tamis.index.build import build_contents
from tamis.language.names import print_path
from tamis.language.printer import print_expression
from tamis.language.types import WrongTypeError, read_value
from tamis.logic.derive import compute_derived
from tamis.logic.evaluate import Missing, attribute_value, evaluate
from tamis.match.batch import make_scratch, match_block_pairs
from tamis.match.elements import ElementMatcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.events.event_arrays import EventArrays
    from tamis.language.ast import Condition
    from tamis.language.schema import Schema

Matches = set[tuple[int, int]]  # rows and ordinals of conditions


class Engine:
    """An index of some conditions, with the encoder under test."""

    def __init__(
        self, schema: Schema, conditions: Sequence[Condition], missing: Missing = Missing.UNDEFINED
    ) -> None:
        texts = {str(at): print_expression(condition) for at, condition in enumerate(conditions)}
        self.schema = schema
        self.conditions = conditions
        self.missing = missing
        self.contents = build_contents(texts, schema, missing).contents
        self.encoder = EventEncoder(self.contents, match_elements=ElementMatcher)

    def match(self, source: Any, **options: Any) -> Matches:
        """The matches of a source of events, through the batch kernel."""
        return self.match_arrays(self.encoder.encode(source, **options).arrays)

    def match_arrays(self, arrays: EventArrays) -> Matches:
        """The matches of events in codes."""
        contents = self.contents
        scratch = make_scratch(contents, 1)
        every = range(len(arrays.row_starts) - 1)
        found: Matches = set()
        for first in every[:: scratch.n_rows]:
            rows = every[first : first + scratch.n_rows]
            for pairs in match_block_pairs(rows, arrays, contents, contents.roots, scratch):
                for at in range(len(pairs.starts) - 1):
                    own = pairs.subscriptions[pairs.starts[at] : pairs.starts[at + 1]]
                    found.update((pairs.first_row + at, int(ordinal)) for ordinal in own)
        found.update((row, int(ordinal)) for ordinal in contents.roots.always for row in every)
        return found

    def expected(self, events: Sequence[Mapping[str, Any] | None]) -> Matches:
        """The matches by the reference evaluator."""
        return {
            (row, ordinal)
            for row, event in enumerate(events)
            for ordinal, condition in enumerate(self.conditions)
            if evaluate(condition, event or {}, self.missing) is True
        }

    def expected_rejects(self, events: Iterable[Mapping[str, Any] | None]) -> Counter[str]:
        """How many values of each attribute `read_value` refuses, and for how many events each
        function has no result.
        """
        refused: Counter[str] = Counter()
        table = self.encoder.table
        for event in events:
            refused.update(self.without_result(event or {}))
            for path, type_ in zip(table.paths, table.types, strict=True):
                value: Any = event
                for name in path:
                    value = value.get(name) if hasattr(value, "get") else None
                if value is not None:
                    try:
                        read_value(value, type_)
                    except WrongTypeError:
                        refused[print_path(path)] += 1
        return refused

    def without_result(self, event: Mapping[str, Any]) -> set[str]:
        """The functions that have no result for an event, nested ones included."""
        found: set[str] = set()
        for own in self.encoder.table.derived:
            compute_derived(
                own,
                lambda argument: attribute_value(argument, event),
                lambda value, _: found.add(print_path(value.path)),
            )
        return found

    def count_rejects(self, rejects: Rejects) -> Counter[str]:
        """The rejects of each attribute; without those of the elements of arrays, which
        `tests/match/test_elements.py` counts.
        """
        table = self.encoder.table
        names = {print_path(path) for path in table.paths}
        arrays = tuple(
            print_path(path) + mark
            for path, type_ in zip(table.paths, table.types, strict=True)
            if type_.element is not None
            for mark in (".", ": ")
        )
        counts = count_by_attribute(rejects)
        return Counter(
            {own: n for own, n in counts.items() if own in names or not own.startswith(arrays)}
        )


def count_by_attribute(rejects: Rejects) -> Counter[str]:
    """The rejects of each attribute, of all kinds."""
    counts: Counter[str] = Counter()
    for (attribute, _), n_rejects in rejects.counts.items():
        counts[str(attribute)] += n_rejects
    return counts
