"""Searches an archive: an index gives events, or all are looked at.

Where the index knows all that a query asks, its events are the answer. Otherwise, and for events
that are doubtful, the kernels that match standing queries decide.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from tamis.arguments import expect_count
from tamis.errors import InputError
from tamis.search.highlights import Marker
from tamis.search.model import MOST_SKIPPED, Budget, Hit, Order, Page, Place
from tamis.search.scoring import Scorer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.archive import Archive, ArchivedEvent, HeldSegment
    from tamis.search.indexes import SearchIndexes
    from tamis.search.model import Asked
    from tamis.search.query import Query
    from tamis.search.segment_index import SegmentIndex

AT_ONCE: Final = 8_192  # events that are scanned at a time, the newest first
LEAST_CANDIDATES: Final = 16  # that are decided about at a time
MOST_CANDIDATES: Final = 8_192
_UNLIMITED: Final = Budget()


class _Range(NamedTuple):
    """The wanted events of one segment."""

    segment: HeldSegment
    after: int
    up_to: int


class _Ranked(NamedTuple):
    """A hit, before its page is chosen. Equal scores keep the order of their segment, so that the
    pages of a ranking fit together.
    """

    score: float
    serial: int
    rank: int  # within the segment; the first is 0
    number: int

    @property
    def key(self) -> tuple[float, int, int]:
        """The larger, the earlier."""
        return self.score, self.serial, -self.rank


class Spent:
    """What a search has read, whether that is enough, and what its hits show."""

    def __init__(self, budget: Budget, *, has_highlights: bool = True) -> None:
        self.has_highlights = has_highlights
        self.indexes: list[tuple[_Range, SegmentIndex]] = []  # that were used
        self._budget = budget
        self._deadline = budget.timer() + budget.seconds
        self.n_events = 0
        self.n_scanned = 0
        self.is_cut = False  # whether a limit has ended the search

    @property
    def is_over(self) -> bool:
        """Whether a limit is reached."""
        own = self._budget
        return self.n_scanned >= own.n_events or own.is_cancelled() or own.timer() >= self._deadline


class Search:
    """Answers queries about an archive. Every method may be called from any thread."""

    def __init__(self, archive: Archive, indexes: SearchIndexes) -> None:
        self._archive = archive
        self._indexes = indexes

    def find(self, query: Query, asked: Asked, budget: Budget) -> Page:
        """A page of the events that the query matches.

        A budget that runs out ends the page early, with the place to go on; a ranking cannot go on,
        and then has the best of what was looked at.
        """
        expect_count(asked.limit, "limit")
        end = self._archive.last_event
        end = end if asked.up_to is None else min(asked.up_to, end)
        skip = 0
        spent = Spent(budget, has_highlights=asked.highlights)
        if asked.place is not None:
            end, skip = min(end, asked.place.before - 1), asked.place.skip
        ranges = self._split(asked.after, end)
        self._indexes.look(query)
        if asked.order is Order.RELEVANCE:
            return self._rank(query, ranges, asked.limit, Place(end + 1, skip), spent)
        return self._find_newest(query, ranges, asked.limit, spent)

    def find_forward(self, query: Query, after: int, up_to: int) -> Iterator[tuple[int, list[int]]]:
        """The events in (after, up_to] that the query matches, in order: repeatedly up to where it
        has looked, and the numbers that were found since.
        """
        spent = Spent(_UNLIMITED)
        self._indexes.look(query)
        for own in reversed(self._split(after, up_to)):
            index = self._indexes.open(own.segment, query)
            if index is None:
                for batch in self._archive.scan(after=own.after, up_to=own.up_to):
                    found = self._decide(query, batch, spent)
                    yield int(batch.column("number")[-1].as_py()), found
            else:
                numbers = index.list_numbers(query.prepare(index), own.after, own.up_to)
                for start in range(0, len(numbers), MOST_CANDIDATES):
                    part = numbers[start : start + MOST_CANDIDATES]
                    yield int(part[-1]), self._verify(query, index, part.tolist(), spent)
            yield own.up_to, []

    # ── the newest first ────────────────────────────────────────────────────────────────────

    def _find_newest(self, query: Query, ranges: list[_Range], limit: int, spent: Spent) -> Page:
        numbers: list[int] = []
        for own in ranges:
            for looked, found in self._look_back(query, own, limit - len(numbers), spent):
                numbers += sorted(found, reverse=True)
                if len(numbers) >= limit:
                    chosen = numbers[:limit]
                    return self._finish(query, chosen, Place(chosen[-1]), spent)
                if spent.is_over and looked > ranges[-1].after + 1:
                    spent.is_cut = True
                    return self._finish(query, numbers, Place(looked), spent)
        return self._finish(query, numbers, None, spent)

    def _look_back(
        self, query: Query, own: _Range, limit: int, spent: Spent
    ) -> Iterator[tuple[int, list[int]]]:
        """Repeatedly down to where it has looked, and what was found there."""
        index = self._open(query, own, spent)
        if index is None:
            end = own.up_to
            while end > own.after:
                begin = max(own.after, end - AT_ONCE)
                batches = self._archive.scan(after=begin, up_to=end)
                yield begin + 1, [n for batch in batches for n in self._decide(query, batch, spent)]
                end = begin
            return
        prepared = query.prepare(index)
        is_exact = prepared.narrowed.is_exact and not index.facts.doubtful
        size = limit if is_exact else max(LEAST_CANDIDATES, 2 * limit)
        numbers = index.list_newest(prepared, own.after, own.up_to)
        while (part := numbers.take(size)) is not None:
            yield part[-1], self._verify(query, index, part[::-1], spent)
            size = min(4 * size, MOST_CANDIDATES)
        yield own.after + 1, []

    # ── the most relevant first ─────────────────────────────────────────────────────────────

    def _rank(
        self, query: Query, ranges: list[_Range], limit: int, place: Place, spent: Spent
    ) -> Page:
        if not query.scored:
            raise InputError(
                "the query has no words to rank by",
                hint="order by newest: words with wildcards and values have no relevance",
            )
        if place.skip + limit > MOST_SKIPPED:
            raise InputError(
                f"a ranking ends after {MOST_SKIPPED:,} hits", hint="narrow the query, or its dates"
            )
        n_wanted = place.skip + limit + 1
        found: list[_Ranked] = []
        scorer = Scorer(query, self._indexes.statistics(query))
        for own in ranges:
            index = self._open(query, own, spent)
            if index is not None and not index.has(one.field for one in query.scored):
                index = None  # it has no scores
            ranked = (
                self._rank_all(query, own, scorer, spent)
                if index is None
                else self._rank_candidates(query, own, index, n_wanted, spent)
            )
            found = nlargest(n_wanted, [*found, *ranked], key=lambda one: one.key)
            if spent.is_over:
                spent.is_cut = True
                break
        chosen = found[place.skip : place.skip + limit]
        is_more = len(found) == n_wanted
        following = (
            Place(place.before, place.skip + limit) if is_more and not spent.is_cut else None
        )
        scores = {one.number: one.score for one in chosen}
        return self._finish(query, list(scores), following, spent, scores)

    def _rank_candidates(
        self, query: Query, own: _Range, index: SegmentIndex, n_wanted: int, spent: Spent
    ) -> list[_Ranked]:
        """The first hits of a segment, by the scores of its index."""
        found: list[_Ranked] = []
        size = max(LEAST_CANDIDATES, 2 * n_wanted)
        ranking = index.rank(query.prepare(index), query.scored, own.after, own.up_to)
        while len(found) < n_wanted and (part := ranking.take(size)) is not None:
            hits = set(self._verify(query, index, [number for _, number in part], spent))
            for score, number in part:
                if number in hits:
                    found.append(_Ranked(score, own.segment.serial, len(found), number))
            size = min(4 * size, MOST_CANDIDATES)
            if spent.is_over:
                break
        return found

    def _rank_all(self, query: Query, own: _Range, scorer: Scorer, spent: Spent) -> list[_Ranked]:
        scored: list[tuple[float, int]] = []
        for batch in self._archive.scan(after=own.after, up_to=own.up_to):
            numbers = set(self._decide(query, batch, spent))
            texts = batch.column("event").cast(pa.binary())
            for number, text in zip(batch.column("number").to_pylist(), texts, strict=True):
                if number in numbers:
                    scored.append((scorer.score(text.as_py()), number))
            if spent.is_over:
                break
        scored.sort(reverse=True)
        serial = own.segment.serial
        return [_Ranked(score, serial, rank, n) for rank, (score, n) in enumerate(scored)]

    # ── what both need ──────────────────────────────────────────────────────────────────────

    def _split(self, after: int, up_to: int) -> list[_Range]:
        """The wanted events of each segment that has any, the newest segment first."""
        found = []
        for segment in reversed(self._archive.segments()):
            begin, end = max(after, segment.first_event - 1), min(up_to, segment.last_event)
            if begin < end:
                found.append(_Range(segment, begin, end))
        return found

    def _open(self, query: Query, own: _Range, spent: Spent) -> SegmentIndex | None:
        index = self._indexes.open(own.segment, query)
        if index is not None:
            spent.indexes.append((own, index))
        return index

    def _decide(self, query: Query, batch: pa.RecordBatch, spent: Spent) -> list[int]:
        """The numbers of those of the scanned events that the query matches."""
        spent.n_events += len(batch)
        spent.n_scanned += len(batch)
        is_found = query.decide(batch.column("event"))
        numbers: list[int] = batch.column("number").to_numpy()[is_found].tolist()
        return numbers

    def _verify(
        self, query: Query, index: SegmentIndex, numbers: list[int], spent: Spent
    ) -> list[int]:
        """Those of the candidates of an index that the query matches, in the same order."""
        spent.n_events += len(numbers)
        doubtful = index.facts.doubtful
        is_exact = query.prepare(index).narrowed.is_exact
        if is_exact and doubtful.isdisjoint(numbers):
            return numbers
        certain = {own for own in numbers if is_exact and own not in doubtful}
        events = index.read_events([own for own in numbers if own not in certain])
        is_found = query.decide(pa.array([own.event for own in events.values()], pa.binary()))
        hits = {own for own, is_hit in zip(events, is_found, strict=True) if is_hit}
        return [own for own in numbers if own in certain or own in hits]

    def _finish(
        self,
        query: Query,
        numbers: list[int],
        place: Place | None,
        spent: Spent,
        scores: dict[int, float] | None = None,
    ) -> Page:
        held = self._read(numbers, spent)
        marker = Marker(query.words if spent.has_highlights else ())
        hits = [
            Hit(
                held[number],
                None if scores is None else scores[number],
                marker.find(held[number].event),
            )
            for number in numbers
            if number in held  # otherwise retention has removed it meanwhile
        ]
        return Page(hits, place, spent.n_events, spent.n_scanned, not spent.is_cut)

    def _read(self, numbers: list[int], spent: Spent) -> dict[int, ArchivedEvent]:
        """The events of a page: indexes have them in smaller pieces than the archive."""
        held: dict[int, ArchivedEvent] = {}
        for own, index in spent.indexes:
            inside = [number for number in numbers if own.after < number <= own.up_to]
            if inside:
                held |= index.read_events(inside)
        rest = [number for number in numbers if number not in held]
        if rest:
            held |= {own.number: own for own in self._archive.get_archived(rest)}
        return held
