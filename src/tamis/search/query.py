"""A query: the same expression as a standing one, ready to decide about archived events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import InputError
from tamis.events.json_source import hold_arrow_texts
from tamis.language.check import check
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.parser import parse
from tamis.logic.canonical import to_nnf
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tamis.match.readouts.counts import EventCounts
from tamis.search.relaxing import HasWords, Relaxed, list_plain, list_words, relax

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tamis.language.ast import Condition
    from tamis.language.schema import Schema
    from tamis.match.index import Index
    from tamis.search.segment_index import Prepared, SegmentIndex

_NAME: Final = "query"


@dataclass(frozen=True)
class Query:
    """An index of one expression, and what its words say."""

    index: Index
    relaxed: Relaxed  # all matches satisfy it
    words: tuple[HasWords, ...]  # to be highlighted
    scored: tuple[HasWords, ...]  # those that make an event relevant: without wildcards
    _prepared: dict[Any, Prepared] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def make(cls, index: Index, condition: Condition, missing: Missing) -> Query:
        """The query of an index that has one expression, which is also given as a typed tree.

        Raises an `InputError` if it has operators.
        """
        if index.view.has_operators:
            raise InputError(
                "a search does not call operators",
                hint="search for the rest of the expression: operators may be slow, and cost money",
            )
        normal = to_nnf(condition, missing)
        words = tuple(dict.fromkeys(list_words(normal)))
        scored = tuple(dict.fromkeys(own for one in words for own in list_plain(one)))
        return cls(index, relax(normal, missing), words, scored)

    @classmethod
    def of(
        cls, expression: str, schema: Schema, missing: Missing = Missing.UNDEFINED, **options: Any
    ) -> Query:
        """The query of an expression over a schema; `options` are those of `tamis.build`."""
        index = build({_NAME: expression}, schema, missing=missing, **options)
        if index.rejects:
            raise index.rejects[0]
        condition = check(parse(expression, DEFAULT_LIMITS), schema, DEFAULT_LIMITS, expression)
        return cls.make(index, condition, missing)

    def prepare(self, index: SegmentIndex) -> Prepared:
        """What an index can answer of the query; remembered for all indexes of the same shape."""
        found = self._prepared.get(index.shape)
        if found is None:
            found = self._prepared[index.shape] = index.prepare(self.relaxed)
        return found

    def decide(self, texts: pa.Array) -> np.ndarray:
        """bool[n_texts]: which events, as JSON texts, it matches."""
        view = self.index.view
        encoded = view.encoder.encode(hold_arrow_texts([texts]))
        is_found: np.ndarray = view.ask(None, None, None).put([encoded], EventCounts()) > 0
        return is_found
