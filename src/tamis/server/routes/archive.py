"""Read published events: all in order, or one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from tamis.broker.event_texts import to_strict_json
from tamis.broker.questions import find_matched
from tamis.broker.tapping import Tap
from tamis.language.moments import read_at, spell_moment
from tamis.server.answers import answer_json
from tamis.server.archived import expect_reader, read_archived
from tamis.server.auth import Reading
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.mailbox_reader import read_position
from tamis.server.models import MissedEvents
from tamis.server.problems import Problem
from tamis.server.routes.subscriptions import limit_expression
from tamis.server.tap_stream import TapStream
from tamis.server.visible import keep_visible

if TYPE_CHECKING:
    from tamis.archive import ArchivedEvent
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(prefix="/v1/events", tags=["events"])

MOST_PAGE: Final = 1_000
MOST_NAMED: Final = 100  # events of a page that says whom each matched: an event may match many
LARGEST_NUMBER: Final = (1 << 63) - 1

Who = Annotated[
    bool, Query(description="Also the ids of subscriptions that matched, and still exist.")
]


class ArchivedAnswer(BaseModel):
    """A published event."""

    event: int = Field(description="Its number.")
    moment: datetime
    change: int = Field(description="It was matched by the set as of this change.")
    content: Any = Field(description="The event; null if the archive does not keep it.")
    subscriptions: list[str] | None = Field(None, description="Those that you may see.")


class ArchivePage(BaseModel):
    """Published events in order of their numbers."""

    epoch: str
    events: list[ArchivedAnswer]
    cursor: str
    missed: MissedEvents | None


@router.get(
    "", summary="Read published events", response_model=ArchivePage, responses=problems(410)
)
async def read_events(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Reading,
    after: Annotated[str | None, Query(description="The cursor of the page before.")] = None,
    since: Annotated[datetime | None, Query(description="Instead of a cursor.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = 100,
    who: Who = False,
) -> Response:
    """Events in order of their numbers, from a cursor or a moment on. Events may be confidential:
    only an admin may read them, unless the setting archive.readable says otherwise.
    """
    context = context_of(request)
    expect_reader(context, caller)
    start = await _find_start(context, after, since)
    archive = context.match_server.archive
    page = await in_thread(
        archive.read_events, after=start, limit=min(limit, MOST_NAMED) if who else limit
    )
    matched = await _find_matched(context, caller, page.events) if who else None
    missed = page.missed
    return answer_json(
        {
            "epoch": archive.epoch,
            "events": [_spell(own, matched) for own in page.events],
            "cursor": f"{archive.epoch}:{page.after}",
            "missed": missed and {"first": missed.start, "last": missed.stop - 1},
        }
    )


@router.get(
    "/tap",
    status_code=200,
    summary="Watch events as they pass",
    response_class=TapStream,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def tap_events(
    request: Request,
    caller: Reading,
    expression: Annotated[str | None, Query(description="Only events that satisfy it.")] = None,
    share: Annotated[float, Query(gt=0, le=1, description="A sample of this share.")] = 1.0,
) -> TapStream:
    """Published events from now on, as Server-Sent Events, with whom each matched. Each message has
    how many events passed, how many of them were chosen, and the newest of these: a look at the
    stream, not a copy of it.
    """
    context = context_of(request)
    expect_reader(context, caller)
    if expression is not None:
        limit_expression(context, caller, expression)
    server = context.match_server
    tap = await in_thread(Tap, server.live, server.archive, expression, share)
    return TapStream(request, caller, tap)


@router.get("/{number}", summary="Read a published event", response_model=ArchivedAnswer)
async def read_event(
    request: Request,
    caller: Reading,
    number: Annotated[int, Path(ge=1, le=LARGEST_NUMBER)],
    who: Who = False,
) -> Response:
    """One event by its number, for those who may read all."""
    context = context_of(request)
    expect_reader(context, caller)
    await read_archived(context, number)  # raises a problem that says why there is none
    page = await in_thread(context.match_server.archive.read_events, after=number - 1, limit=1)
    matched = await _find_matched(context, caller, page.events) if who else None
    return answer_json(_spell(page.events[0], matched))


async def _find_start(context: ServerContext, after: str | None, since: datetime | None) -> int:
    archive = context.match_server.archive
    if after is not None and since is not None:
        raise Problem(422, "bad-request", "after and since are both given")
    if since is None:
        head = context.match_server.mailboxes.head
        return 0 if after is None else read_position(after, head).event
    try:
        before = read_at(since) - timedelta(microseconds=1)
    except OverflowError:
        return 0
    return max(0, await in_thread(archive.event_at, before))


async def _find_matched(
    context: ServerContext, caller: Caller, events: list[ArchivedEvent]
) -> dict[int, list[str]]:
    """The subscriptions that each event matched, if the caller may see them."""
    if not events:
        return {}
    server = context.match_server
    first, last = events[0].number, events[-1].number
    found = await in_thread(find_matched, server.live, server.archive, first - 1, last)
    lists = await keep_visible(context, caller, list(found.values()))
    return dict(zip(found, lists, strict=True))


def _spell(own: ArchivedEvent, matched: dict[int, list[str]] | None) -> dict[str, Any]:
    content = None if own.event is None else orjson.Fragment(to_strict_json(own.event))
    shown = {
        "event": own.number,
        "moment": spell_moment(own.moment),
        "change": own.change,
        "content": content,
    }
    return shown if matched is None else shown | {"subscriptions": matched.get(own.number, [])}
