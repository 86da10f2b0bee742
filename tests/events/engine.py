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
from tamis.logic.evaluate import Missing, evaluate
from tamis.match.batch import make_scratch, match_block_pairs

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
        self.encoder = EventEncoder(self.contents)

    def match(self, source: Any, **options: Any) -> Matches:
        """The matches of a source of events, through the batch kernel."""
        return self.match_arrays(self.encoder.encode(source, **options).arrays)

    def match_arrays(self, arrays: EventArrays) -> Matches:
        """The matches of events in codes."""
        contents = self.contents
        scratch = make_scratch(contents, 1)
        n_rows = len(arrays.row_starts) - 1
        found: Matches = set()
        for first_row in range(0, n_rows, scratch.n_rows):
            for pairs in match_block_pairs(first_row, arrays, contents, contents.roots, scratch):
                for at in range(len(pairs.starts) - 1):
                    own = pairs.subscriptions[pairs.starts[at] : pairs.starts[at + 1]]
                    found.update((pairs.first_row + at, int(ordinal)) for ordinal in own)
        found.update(
            (row, int(ordinal)) for ordinal in contents.roots.always for row in range(n_rows)
        )
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
        """How many values of each attribute `read_value` refuses."""
        refused: Counter[str] = Counter()
        table = self.encoder.table
        for event in events:
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


def count_by_attribute(rejects: Rejects) -> Counter[str]:
    """The rejects of each attribute, of all kinds."""
    counts: Counter[str] = Counter()
    for (attribute, _), n_rejects in rejects.counts.items():
        counts[str(attribute)] += n_rejects
    return counts
