"""Matches of a subscription or of a channel: read by cursor, acknowledge, follow."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tamis.broker.followers import PAGE
from tamis.broker.mail_highlights import highlight_matches
from tamis.broker.mailbox import Position
from tamis.server.context import context_of, in_thread
from tamis.server.event_stream import EventStream
from tamis.server.mailbox_access import OpenMailbox, open_channel, open_subscription
from tamis.server.mailbox_reader import DEFAULT_CONSUMER, MailboxReader, read_position, spell_page
from tamis.server.models import Asked, MatchesAnswer, PathText
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.broker.cursors import Cursor

LONGEST_WAIT: Final = 60.0
MOST_PAGE: Final = 1_000
_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}

After = Annotated[str | None, Query(description="A cursor: the events after it are returned.")]
Consumer = Annotated[
    str, Query(description="Without `after`, begin after what this consumer has acknowledged.")
]

Highlights = Annotated[bool, Query(description="Whether to find the words of the subscriptions.")]


class NewPosition(Asked):
    """Where a consumer goes on: a cursor, or an event and its epoch."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"cursor": "0123456789abcdef:17"},
                {"event": 17, "epoch": "0123456789abcdef"},
            ]
        },
    )

    cursor: str | None = Field(None, description="That of a page or of a match.")
    event: int | None = Field(None, ge=0, description="Instead of a cursor, with its epoch.")
    epoch: str | None = None

    def find(self, head: Position) -> Position:
        """The position; raises a `Problem` if it is not said in one way."""
        if self.cursor is not None and self.event is None and self.epoch is None:
            return read_position(self.cursor, head)
        if self.cursor is None and self.event is not None and self.epoch is not None:
            return Position(self.epoch, self.event)
        raise Problem(422, "bad-request", "either cursor, or event and epoch are expected")


class Acknowledgement(NewPosition):
    """All matches up to a cursor or an event have been handled."""

    consumer: str = DEFAULT_CONSUMER


class ConsumerAnswer(BaseModel):
    """How far a consumer has acknowledged."""

    consumer: str
    epoch: str
    event: int


class KnownConsumer(ConsumerAnswer):
    """How far a consumer has acknowledged, and when."""

    moment: datetime


class ConsumerPage(BaseModel):
    """A page of consumers."""

    consumers: list[KnownConsumer]
    cursor: str | None


def make_router(kind: str, prefix: str, open_mailbox: Callable[..., Any]) -> APIRouter:
    """The routes of one kind of mailbox; all kinds have the same."""
    router = APIRouter(
        prefix=prefix,
        tags=["mailboxes"],
        generate_unique_id_function=lambda route: f"{route.name}_of_{kind}",
    )
    opened = Depends(open_mailbox)

    @router.get("/matches", summary="Read a mailbox", response_model=MatchesAnswer)
    async def read_matches(  # noqa: PLR0913
        request: Request,
        after: After = None,
        consumer: Consumer = DEFAULT_CONSUMER,
        limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = PAGE,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0,
        highlights: Highlights = False,
        box: OpenMailbox = opened,
    ) -> Response:
        """Matches after a cursor, in order of event numbers. With `wait`, the answer comes when
        there is a match, or after so many seconds. With `highlights`, each match tells where the
        words of the subscriptions are, as they are now.
        """
        reader = MailboxReader(context_of(request), box.mailbox)
        start = await reader.find_start(after, consumer, otherwise=0)
        page = await reader.read(start.event, limit)
        if not page.matches and wait:
            page = await reader.wait(box.caller, start.event, limit, wait)
        spelled = spell_page(start.epoch, page)
        if highlights:
            live = context_of(request).match_server.live
            found = await in_thread(highlight_matches, live, page.matches)
            for match, own in zip(spelled["matches"], found, strict=True):
                match["highlights"] = own
        content = orjson.dumps(spelled)
        return Response(content, media_type="application/json")

    @router.get(
        "/stream",
        status_code=200,
        summary="Follow a mailbox",
        response_class=EventStream,
        responses=_STREAM,
    )
    async def stream_matches(
        request: Request,
        last_event_id: Annotated[str | None, Header()] = None,
        after: After = None,
        consumer: Annotated[str | None, Query()] = None,
        box: OpenMailbox = opened,
    ) -> EventStream:
        """Matches as Server-Sent Events. A client that reconnects sends the id of the last event,
        and misses nothing. Without a cursor and a consumer, the stream begins with the next event.
        """
        reader = MailboxReader(context_of(request), box.mailbox)
        begin = after if last_event_id is None else last_event_id
        start = await reader.find_start(begin, consumer, otherwise=reader.head.event)
        return EventStream(reader, box.caller, start)

    @router.post("/acknowledge", summary="Acknowledge matches")
    async def acknowledge(
        request: Request, asked: Acknowledgement, box: OpenMailbox = opened
    ) -> ConsumerAnswer:
        """All matches up to the cursor or the event have been handled by a consumer. A consumer
        never moves back: the answer has where it is.
        """
        reader = MailboxReader(context_of(request), box.mailbox)
        found = await reader.acknowledge(asked.consumer, asked.find(reader.head))
        return ConsumerAnswer(consumer=asked.consumer, epoch=found.epoch, event=found.event)

    @router.get("/consumers", summary="List consumers")
    async def list_consumers(
        request: Request,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = PAGE,
        box: OpenMailbox = opened,
    ) -> ConsumerPage:
        """A page of those who acknowledge matches of this mailbox."""
        cursors = context_of(request).match_server.broker.cursors
        page = await in_thread(cursors.list, box.mailbox, after=cursor, limit=limit)
        return ConsumerPage(consumers=[_describe(own) for own in page.items], cursor=page.cursor)

    @router.put("/consumers/{consumer}", summary="Move a consumer")
    async def move_consumer(
        request: Request, consumer: PathText, asked: NewPosition, box: OpenMailbox = opened
    ) -> ConsumerAnswer:
        """Let a consumer go on after a cursor or an event, also before what it has acknowledged."""
        server = context_of(request).match_server
        head = server.mailboxes.head
        position = asked.find(head)
        found = await in_thread(server.broker.cursors.reset, box.mailbox, consumer, position, head)
        return ConsumerAnswer(consumer=consumer, epoch=found.epoch, event=found.event)

    @router.delete("/consumers/{consumer}", status_code=204, summary="Forget a consumer")
    async def forget_consumer(
        request: Request, consumer: PathText, box: OpenMailbox = opened
    ) -> None:
        """Forget what a consumer has acknowledged."""
        cursors = context_of(request).match_server.broker.cursors
        await in_thread(cursors.delete, box.mailbox, consumer)

    return router


def _describe(cursor: Cursor) -> KnownConsumer:
    epoch, event = cursor.position
    return KnownConsumer(consumer=cursor.consumer, epoch=epoch, event=event, moment=cursor.moment)


subscription_router = make_router(
    "subscription", "/v1/subscriptions/{subscription_id}", open_subscription
)
channel_router = make_router("channel", "/v1/channels/{channel}", open_channel)
