"""Reads the index of one closed segment: tantivy's files, and what they depend on."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import orjson

from tamis import durable
from tamis.errors import TamisError
from tamis.search.columns import Column
from tamis.search.event_file import EventFile
from tamis.search.fields import Field, spell_term
from tamis.search.library import load_tantivy
from tamis.search.relaxing import (
    Every,
    FitsWord,
    HasText,
    HasWords,
    InRange,
    IsPresent,
    Narrowed,
    Never,
    SomeOf,
    Unknown,
    Without,
    narrow,
)
from tamis.search.segment_writer import (
    DOUBTFUL,
    FACTS,
    FOLDED,
    MARKS,
    NUMBER,
    WORDS,
    describe,
    spell_mark,
)
from tamis.search.sources import Sources
from tamis.text.wildcards import ANY_TEXT, ONE_CHARACTER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tamis.archive import ArchivedEvent
    from tamis.search.relaxing import Leaf, Relaxed, Source

T = TypeVar("T")
_BASIC: Final = "basic"
_SHAPES: Final[dict[Any, object]] = {}


class SegmentFacts(NamedTuple):
    """What the file of facts says."""

    sources: Sources
    n_events: int
    n_words: int
    first: int  # the numbers of the first and the last event
    last: int
    present: dict[str, int]  # by mark: how many events have it, without doubtful ones
    doubtful: frozenset[int]
    checksums: dict[str, int]  # by name of a file


def read_facts(folder: Path) -> SegmentFacts | None:
    """The facts of an index; None if it is damaged, or depends on other versions."""
    try:
        found = orjson.loads((folder / FACTS).read_bytes())
        sources = Sources.read(found["sources"])
        facts = SegmentFacts(
            sources,
            n_events=found["n_events"],
            n_words=found["n_words"],
            first=found["first"],
            last=found["last"],
            present=found["present"],
            doubtful=frozenset(found["doubtful"]),
            checksums=found["checksums"],
        )
        is_same = all(found[name] == value for name, value in describe(sources).items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, TamisError):
        return None
    return facts if is_same else None


def is_intact(folder: Path, facts: SegmentFacts) -> bool:
    """Whether all files are as they were written."""
    try:
        return all(durable.checksum(folder / name) == own for name, own in facts.checksums.items())
    except OSError:
        return False


class Cut(Generic[T]):
    """A long list, read in parts."""

    def __init__(self, fetch: Callable[[int, int], list[T]]) -> None:
        self._fetch = fetch
        self._offset = 0
        self._is_over = False

    def take(self, limit: int) -> list[T] | None:
        """The next ones; None at the end."""
        if self._is_over:
            return None
        found = self._fetch(limit, self._offset)
        self._offset += len(found)
        self._is_over = len(found) < limit
        return found or None


class Prepared(NamedTuple):
    """A relaxation as an index answers it."""

    narrowed: Narrowed
    query: Any  # tantivy's; doubtful events satisfy it too


class SegmentIndex:
    """An open index of one segment. Any number of threads read it."""

    def __init__(self, folder: Path, facts: SegmentFacts) -> None:
        self.facts = facts
        sources = facts.sources
        self._slots = sources.number()
        n_certain = facts.n_events - len(facts.doubtful)
        self._present: dict[Source, Relaxed | None] = {}
        for own, slot in self._slots.items():
            n_present = facts.present.get(f"{'c' if isinstance(own, Column) else 'f'}{slot}", 0)
            every = Every() if n_present == n_certain else None
            self._present[own] = every if n_present else Never()
        self._tantivy = load_tantivy()
        index = self._tantivy.Index.open(os.fspath(folder))
        self._schema, self._searcher = index.schema, index.searcher()
        self._events = EventFile(folder)
        # Indexes of one shape answer a relaxation with the same query. It is compared by identity.
        shape = (sources, *self._present.values(), bool(facts.doubtful))
        self.shape = _SHAPES.setdefault(shape, object())

    def prepare(self, relaxed: Relaxed) -> Prepared:
        """What this index can answer of a relaxation."""
        narrowed = narrow(relaxed, self._answer)
        try:
            query = self._spell(narrowed.condition)
        except ValueError:
            # tantivy refuses patterns whose automaton has more than 1,000 states, such as
            # *a??????b: the events are compared with them.
            narrowed = narrow(relaxed, self._answer_without_patterns)
            query = self._spell(narrowed.condition)
        if self.facts.doubtful:
            occur = self._tantivy.Occur.Should
            query = self._tantivy.Query.boolean_query(
                [(occur, query), (occur, self._term(MARKS, DOUBTFUL))]
            )
        return Prepared(narrowed, query)

    def _answer(self, leaf: Leaf) -> Relaxed:
        if leaf.source not in self._slots:
            return Unknown()
        if not isinstance(leaf, IsPresent):
            return leaf
        known = self._present[leaf.source]
        return leaf if known is None else known

    def _answer_without_patterns(self, leaf: Leaf) -> Relaxed:
        return Unknown() if isinstance(leaf, FitsWord) else self._answer(leaf)

    # ── lists of events ─────────────────────────────────────────────────────────────────────

    def list_newest(self, prepared: Prepared, after: int, up_to: int) -> Cut[int]:
        """The events in (after, up_to] that satisfy a relaxation, the newest first."""
        query = self._within(prepared.query, after, up_to)

        def fetch(limit: int, offset: int) -> list[int]:
            found = self._searcher.search(
                query, limit, count=False, order_by_field=NUMBER, offset=offset
            )
            return [number for number, _ in found.hits]

        return Cut(fetch)

    def list_numbers(self, prepared: Prepared, after: int, up_to: int) -> np.ndarray:
        """The same, all of them and in order."""
        found = self.list_newest(prepared, after, up_to).take(max(1, self.facts.n_events))
        return np.array(found or [], np.int64)[::-1]

    def rank(
        self, prepared: Prepared, words: Sequence[HasWords], after: int, up_to: int
    ) -> Cut[tuple[float, int]]:
        """The events in (after, up_to] that satisfy a relaxation, with scores, the best first.

        Scores are those of the `words`.
        """
        occur, own = self._tantivy.Occur, self._tantivy.Query
        chosen = own.const_score_query(self._within(prepared.query, after, up_to), 0.0)
        known = [self._spell_words(one, "freq") for one in words if one.field in self._slots]
        query = own.boolean_query([(occur.Must, chosen), *((occur.Should, one) for one in known)])

        def fetch(limit: int, offset: int) -> list[tuple[float, int]]:
            hits = self._searcher.search(query, limit, count=False, offset=offset).hits
            numbers = self._searcher.fast_field_values(NUMBER, [place for _, place in hits])
            return [(score, number) for (score, _), number in zip(hits, numbers, strict=True)]

        return Cut(fetch)

    def count_events(self, field: Field, word: str) -> int:
        """The number of events that have a word in a field."""
        slot = self._slots.get(field)
        if slot is None:
            return 0
        found: int = self._searcher.doc_freq(WORDS, spell_term(slot, word))
        return found

    def has(self, fields: Iterable[Field]) -> bool:
        """Whether it has the words of the fields."""
        return all(own in self._slots for own in fields)

    def read_events(self, numbers: Sequence[int]) -> dict[int, ArchivedEvent]:
        """Events that a search has found."""
        return self._events.read(numbers)

    # ── queries ─────────────────────────────────────────────────────────────────────────────

    def _within(self, query: Any, after: int, up_to: int) -> Any:
        if after < self.facts.first and up_to >= self.facts.last:
            return query
        own, kind = self._tantivy.Query, self._tantivy.FieldType.Unsigned
        numbers = own.range_query(self._schema, NUMBER, kind, after + 1, up_to)
        occur = self._tantivy.Occur
        return own.boolean_query(
            [(occur.Must, query), (occur.Must, own.const_score_query(numbers, 0.0))]
        )

    def _spell(self, relaxed: Relaxed) -> Any:
        """The relaxation as tantivy's query."""
        own = self._tantivy.Query
        match relaxed:
            case Every():
                return own.all_query()
            case Never():
                return own.empty_query()
            case HasWords():
                return self._spell_words(relaxed, _BASIC)
            case FitsWord(source=source, pattern=pattern):
                spelled = _spell_pattern(self._slots[source], pattern)
                return own.regex_query(self._schema, FOLDED, spelled)
            case IsPresent(source=source):
                letter = "c" if isinstance(source, Column) else "f"
                return self._term(MARKS, f"{letter}{self._slots[source]}")
            case HasText(source=source, text=text):
                return self._term(MARKS, spell_mark(self._slots[source], text))
            case InRange(source=source, low=low, high=high):
                return self._spell_range(f"n{self._slots[source]}", low, high)
            case SomeOf() | Without():
                return self._spell_inner(relaxed)
            case _:
                raise TamisError(f"an index does not answer {relaxed!r:.60}")

    def _spell_inner(self, relaxed: SomeOf | Without) -> Any:
        own, occur = self._tantivy.Query, self._tantivy.Occur
        if isinstance(relaxed, SomeOf) and relaxed.k < len(relaxed.operands):
            each = [(occur.Should, self._spell(one)) for one in relaxed.operands]
            return own.boolean_query(each) if relaxed.k == 1 else own.boolean_query(each, relaxed.k)
        # Negations are part of the conjunction around them: a word AND NOT another one.
        operands = relaxed.operands if isinstance(relaxed, SomeOf) else (relaxed,)
        wanted: list[Relaxed] = []
        unwanted: list[Relaxed] = []
        for one in operands:
            wanted.append(one.base if isinstance(one, Without) else one)
            if isinstance(one, Without):
                unwanted.append(one.less)
        kept = [one for one in dict.fromkeys(wanted) if one != Every()] or [Every()]
        return own.boolean_query(
            [(occur.Must, self._spell(one)) for one in kept]
            + [(occur.MustNot, self._spell(one)) for one in unwanted]
        )

    def _spell_range(self, name: str, low: int, high: int) -> Any:
        kind = self._tantivy.FieldType.Integer
        if low > high:
            return self._tantivy.Query.empty_query()
        return self._tantivy.Query.range_query(self._schema, name, kind, low, high)

    def _spell_words(self, wanted: HasWords, option: str) -> Any:
        slot = self._slots[wanted.field]
        terms = [(at, spell_term(slot, word)) for at, word in enumerate(wanted.words) if word]
        if len(terms) == 1:
            return self._term(WORDS, terms[0][1], option)
        return self._tantivy.Query.phrase_query(self._schema, WORDS, terms)

    def _term(self, name: str, text: str, option: str = _BASIC) -> Any:
        return self._tantivy.Query.term_query(self._schema, name, text, option)


def _spell_pattern(slot: int, pattern: str) -> str:
    """The terms that a pattern fits, as tantivy's regular expression."""
    wild = {ANY_TEXT: ".*", ONE_CHARACTER: "."}
    return f"{slot}:" + "".join(wild.get(own) or re.escape(own) for own in pattern)
