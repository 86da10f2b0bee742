"""Searches what was published: expressions are read as those of subscriptions."""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import orjson

from tamis.broker.event_texts import to_strict_json
from tamis.broker.item_types import TEXTS, find_contradictions
from tamis.errors import ExpressionError, SchemaError
from tamis.language.check import check
from tamis.language.moments import read_at, spell_moment
from tamis.language.names import parse_path, print_path
from tamis.language.parser import parse
from tamis.language.search_box import SearchExpression, convert_query
from tamis.language.types.texts import STRING
from tamis.live.settings import NOTHING_EXPECTED
from tamis.search import Asked, Budget, Indexer, Order, Query, Search, SearchIndexes
from tamis.search.unseen import note_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from tamis.archive import Archive
    from tamis.live.index import LiveIndex
    from tamis.live.settings import Settings
    from tamis.search import Hit, Page

_NAME: Final = "search"
_N_QUERIES: Final = 64  # that are remembered: the pages of one search ask the same


class Searcher:
    """Answers searches of one archive. Every method may be called from any thread."""

    def __init__(self, live: LiveIndex, archive: Archive, *, is_writer: bool) -> None:
        """Only a writer of the archive builds indexes."""
        self._live = live
        self.archive = archive
        indexes = SearchIndexes(archive)
        self.search = Search(archive, indexes)
        self._indexer = Indexer(archive, indexes) if is_writer else None
        self._queries: OrderedDict[str, tuple[Settings, Query]] = OrderedDict()
        self._lock = Lock()

    def start(self) -> None:
        """Build indexes in the background."""
        if self._indexer is not None:
            self._indexer.start()

    def close(self) -> None:
        """End what runs in the background."""
        if self._indexer is not None:
            self._indexer.close()

    def read(self, expression: str) -> Query:
        """The query of an expression; raises the `ExpressionError` of one that is wrong.

        The last ones are remembered, as long as expressions are read with the same types.
        """
        settings = self._live.settings
        with self._lock:
            read_with, query = self._queries.get(expression, (None, None))
            if query is not None and read_with is settings:
                self._queries.move_to_end(expression)
                return query
        query = self._read(expression, settings)
        with self._lock:
            self._queries[expression] = settings, query
            self._queries.move_to_end(expression)
            while len(self._queries) > _N_QUERIES:
                self._queries.popitem(last=False)
        return query

    def _read(self, expression: str, settings: Settings) -> Query:
        try:
            index = self._live.draft({_NAME: expression})
        except ExpressionError as error:
            error.subscription_id = None
            raise
        schema = settings.schema_for([expression]).with_operators(settings.operators)
        parsed = parse(expression, settings.limits)
        condition = check(parsed, schema, settings.limits, expression)
        return Query.make(index, condition, settings.missing)

    def convert(
        self, query: str, attributes: Sequence[str], languages: Sequence[str] = ()
    ) -> SearchExpression:
        """What a search-box query means over some attributes; by the types of the subscriptions
        and of items of feeds, some of them may be arrays of texts. Title and body have versions for
        languages.
        """
        settings = self._live.settings
        arrays = [name for name in attributes if _is_array(settings, name)]
        texts = [name for name in attributes if name not in arrays]
        shared = [name for name in texts if name not in TEXTS]
        found = convert_query(query, texts, arrays=arrays, languages=languages, shared=shared)
        return found._replace(notices=[*found.notices, *_find_unseen(settings, texts)])

    def find(self, expression: str, asked: Asked, budget: Budget) -> Page:
        """A page of the events that an expression would have matched."""
        return self.search.find(self.read(expression), asked, budget)

    def note_nothing(self, expression: str, page: Page, *, is_first: bool) -> list[str]:
        """Notes on why nothing was found, if an attribute that no event has explains it."""
        if page.hits or page.place is not None or not page.is_complete or not is_first:
            return []
        return note_missing(self.read(expression), self.archive)

    def last_before(self, moment: datetime | str) -> int:
        """The number of the last event before a moment."""
        try:
            before = read_at(moment) - timedelta(microseconds=1)
        except OverflowError:
            return 0
        return max(0, self.archive.event_at(before))


def search_pages(
    searcher: Searcher, asked: Mapping[str, Any], limit: int
) -> Iterator[dict[str, Any]]:
    """All pages of a question that is spelled as clients send it, as they get them."""
    notices: list[str] = []
    expression = asked.get("expression")
    if expression is None:
        languages = asked.get("languages", ())
        expression, notices = searcher.convert(asked["query"], asked["attributes"], languages)
    bounds = [asked.get(name) for name in ("since", "until")]
    after, up_to = (None if own is None else searcher.last_before(own) for own in bounds)
    wanted = Asked(after or 0, up_to, Order(asked["order"]), limit)
    query = searcher.read(expression)
    while True:
        page = searcher.search.find(query, wanted, Budget())
        nothing = searcher.note_nothing(expression, page, is_first=wanted.place is None)
        spelled = spell_page(page, searcher.archive.epoch) | {"notes": [*notices, *nothing]}
        yield orjson.loads(orjson.dumps(spelled))
        if page.place is None:
            return
        wanted = wanted._replace(place=page.place)


def spell_page(page: Page, epoch: str) -> dict[str, Any]:
    """A page as clients see it, for orjson."""
    place = page.place
    cursor = None if place is None else f"{epoch}:{place.before}"
    if place is not None and place.skip:
        cursor = f"{cursor}:{place.skip}"
    return {
        "epoch": epoch,
        "hits": [_spell_hit(own) for own in page.hits],
        "cursor": cursor,
        "is_complete": page.is_complete,
        "events": page.n_events,
        "scanned": page.n_scanned,
    }


def _spell_hit(hit: Hit) -> dict[str, Any]:
    event = hit.event
    assert event.event is not None  # without its text, it is not found
    return {
        "event": event.number,
        "moment": spell_moment(event.moment),
        "content": orjson.Fragment(to_strict_json(event.event)),
        "score": hit.score,
        "highlights": hit.highlights,
    }


def _is_array(settings: Settings, name: str) -> bool:
    try:
        found = settings.find_type(parse_path(name))
    except SchemaError:  # an empty name
        return False
    return found is not None and found.element == STRING


def _find_unseen(settings: Settings, names: Sequence[str]) -> list[str]:
    """Notices about attributes of items in which nothing is found: their type is another one."""
    if settings.expected is NOTHING_EXPECTED:
        return []
    wrong = {print_path(own.path): own for own in find_contradictions(settings)}
    return [f"{wrong[name].message}: nothing is found there" for name in names if name in wrong]
