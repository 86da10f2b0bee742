"""Search: what would an expression have matched among the archived events?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from tamis.broker.searching import spell_page
from tamis.language.search_box import SearchExpression
from tamis.search import Asked as Wanted
from tamis.search import Budget, Order, Place
from tamis.server.answers import answer_json
from tamis.server.archived import expect_reader
from tamis.server.auth import Reading
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.exact_bodies import document_body, read_question
from tamis.server.long_questions import run_cancellable
from tamis.server.models import Asked
from tamis.server.problems import Problem
from tamis.server.routes.subscriptions import limit_expression

if TYPE_CHECKING:
    from tamis.broker.searching import Searcher

router = APIRouter(prefix="/v1", tags=["questions"])

MOST_PAGE: Final = 1_000


class SearchQuestion(Asked):
    """An expression, or what people type into a search box, and which events are wanted."""

    expression: str | None = None
    query: str | None = Field(None, description="Instead of an expression: words, quotes, -word.")
    attributes: list[str] | None = Field(None, description="Those in which the query searches.")
    languages: list[str] | None = Field(
        None, description="Of title and body: documents in these are searched with their stems."
    )
    since: datetime | None = None
    until: datetime | None = Field(None, description="Events before this moment.")
    order: Order = Order.NEWEST
    limit: int = Field(10, ge=1, le=MOST_PAGE)
    cursor: str | None = Field(None, description="Of the page before.")


class SearchHit(BaseModel):
    """An event that the expression matches."""

    event: int
    moment: datetime
    content: Any
    score: float | None = Field(description="The larger, the more relevant; null if newest first.")
    highlights: dict[str, list[list[int]]] = Field(
        description="By attribute: where found words begin and end, in characters."
    )


class SearchAnswer(BaseModel):
    """A page of hits."""

    epoch: str
    expression: str
    notes: list[str] = Field(
        description="What in the query may mean something else; if nothing is found, which of its "
        "attributes no archived event has."
    )
    hits: list[SearchHit]
    cursor: str | None = Field(description="Of the next page; null if there is none.")
    is_complete: bool = Field(description="False if a limit of the server ended the page.")
    events: int = Field(description="Whose texts were read.")
    scanned: int = Field(description="Of them, those that no index chose.")


@router.post(
    "/search",
    summary="Search the archived events",
    response_model=SearchAnswer,
    responses=problems(410),
    openapi_extra=document_body(
        SearchQuestion,
        an_expression={"expression": "age >= 18 AND country = 'FR'", "limit": 5},
        a_search_box={"query": "oil -gas", "attributes": ["title", "body"], "order": "relevance"},
    ),
)
async def search_events(request: Request, caller: Reading) -> Response:
    """The archived events that an expression would have matched as a subscription: exactly those.
    It is for those who may read all events. The newest come first, or the most relevant. A page
    may be short or empty because a limit ended it; then `is_complete` is false, and its cursor
    goes on.
    """
    context = context_of(request)
    asked = await read_question(request, SearchQuestion)
    expect_reader(context, caller)
    searcher = context.match_server.searcher
    expression, notes = await in_thread(_read_expression, searcher, asked)
    limit_expression(context, caller, expression)
    searcher = context.match_server.searcher
    wanted = await in_thread(_choose, searcher, asked)
    limits = context.settings.limits
    seconds = limits.search_time.total_seconds()
    page = await run_cancellable(
        request,
        context,
        lambda is_cancelled: searcher.find(
            expression, wanted, Budget(limits.search_events, seconds, is_cancelled)
        ),
    )
    is_first = wanted.place is None
    nothing = await in_thread(searcher.note_nothing, expression, page, is_first=is_first)
    notes = [*notes, *nothing]
    found = spell_page(page, searcher.archive.epoch)
    return answer_json(found | {"expression": expression, "notes": notes})


def _read_expression(searcher: Searcher, asked: SearchQuestion) -> SearchExpression:
    if (asked.expression is None) == (asked.query is None):
        raise Problem(422, "bad-request", "one of expression and query is expected")
    if asked.expression is not None:
        for name in ("attributes", "languages"):
            if getattr(asked, name) is not None:
                raise Problem(422, "bad-request", f"{name} belong to a query, not to an expression")
        return SearchExpression(asked.expression, [])
    if not asked.attributes:
        raise Problem(
            422,
            "bad-request",
            "the attributes are missing in which the query searches",
            hint='send them, such as "attributes": ["title", "body"]',
        )
    assert asked.query is not None
    return searcher.convert(asked.query, asked.attributes, asked.languages or ())


def _choose(searcher: Searcher, asked: SearchQuestion) -> Wanted:
    """The events and the page that are wanted."""
    after = 0 if asked.since is None else searcher.last_before(asked.since)
    up_to = None if asked.until is None else searcher.last_before(asked.until)
    place = None
    if asked.cursor is not None:
        place = _read_place(asked.cursor, searcher.archive.epoch)
    return Wanted(after, up_to, asked.order, asked.limit, place)


def _read_place(cursor: str, epoch: str) -> Place:
    """EPOCH:EVENT, or EPOCH:EVENT:HITS for a ranking."""
    named, *numbers = cursor.split(":")
    if len(numbers) not in (1, 2) or not all(map(_is_number, numbers)):
        raise Problem(422, "bad-cursor", f"{cursor[:100]!r} is not the cursor of a search")
    if named != epoch:
        raise Problem(
            410,
            "history-lost",
            f"the cursor is of the epoch {named[:100]!r}; the server has {epoch!r}",
            hint="the server was restored from a backup: search again from the first page",
            epoch=epoch,
        )
    return Place(*map(int, numbers))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
