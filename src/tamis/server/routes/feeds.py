"""Feeds: matches for feed readers, behind an address that nobody can guess."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tamis.broker.feed_documents import ATOM, JSON_FEED, FeedContents, write_atom, write_json
from tamis.broker.headlines import clean_line
from tamis.server.auth import Anybody, choose_most
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.problems import Problem
from tamis.server.targets import (
    OnMailbox,
    find_actor,
    find_target,
    read_list,
    unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.broker.result_feeds import Feed
    from tamis.server.context import ServerContext
    from tamis.server.targets import Target

router = APIRouter(tags=["feeds"], responses=problems(404, 409, 410, 421))

MOST_ENTRIES: Final = 50
MOST_PAGE: Final = 1_000
# A younger match may get a neighbour of the same second, which a date could not tell from it.
_SETTLED: Final = timedelta(seconds=10)
_WRITERS: Final[dict[str, tuple[str, Callable[[FeedContents], bytes]]]] = {
    ".atom": (ATOM, write_atom),
    ".json": (JSON_FEED, write_json),
}

Number = Annotated[int, Path(ge=1, lt=1 << 63)]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]
IfModifiedSince = Annotated[str | None, Header(alias="If-Modified-Since")]


class NewFeed(OnMailbox):
    """A feed to make."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"subscription": "adults", "title": "Adults"}]},
    )

    title: str | None = Field(
        None, description="By default the attribute `title` of the subscription, or its id."
    )


class FeedAnswer(BaseModel):
    """A feed, without its address."""

    number: int
    mailbox: str
    mailbox_name: str | None = Field(
        None, description="If it is looked up: the subscription's id, or the channel's name."
    )
    owner: str
    title: str
    created: datetime
    revoked: datetime | None


class NewFeedAnswer(FeedAnswer):
    """A new feed, with its addresses, which are shown once."""

    atom: str
    json_feed: str


class FeedPage(BaseModel):
    """A page of feeds."""

    feeds: list[FeedAnswer]
    cursor: int | None


@router.post("/v1/feeds", status_code=201, summary="Make a feed")
async def create_feed(request: Request, caller: Anybody, asked: NewFeed) -> NewFeedAnswer:
    """Make an address at which feed readers find the newest matches of a mailbox, without a key.
    It is shown only here, and works until it is revoked.
    """
    context = context_of(request)
    target = await find_target(context, caller, asked.subscription, asked.channel)
    title = asked.title or await _choose_title(context, target)
    most = choose_most(caller, context.settings.limits.feeds)
    made = await in_thread(
        context.match_server.broker.feeds.create, target.actor, target.mailbox, title, most=most
    )
    base = f"{find_base(request)}/feeds/{made.token.reveal()}"
    shown = _describe(made.feed).model_dump()
    return NewFeedAnswer(**shown, atom=f"{base}.atom", json_feed=f"{base}.json")


@router.get("/v1/feeds", summary="List feeds")
async def list_feeds(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Anybody,
    subscription: str | None = None,
    channel: str | None = None,
    cursor: Annotated[int | None, Query(ge=0, lt=1 << 63)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = 100,
) -> FeedPage:
    """A page of feeds, the oldest first: of a mailbox, or your own; revoked ones too."""
    context = context_of(request)
    read = partial(context.match_server.broker.feeds.list, after=cursor, limit=limit)
    page = await read_list(context, caller, (subscription, channel), read, _describe)
    return FeedPage(feeds=page.items, cursor=page.cursor)


@router.delete("/v1/feeds/{number}", status_code=204, summary="Revoke a feed")
async def revoke_feed(request: Request, caller: Anybody, number: Number) -> None:
    """Make the address of a feed invalid."""
    context = context_of(request)
    feeds, what = context.match_server.broker.feeds, f"feed {number}"
    feed = await in_thread(feeds.get, number)
    if feed is None:
        raise unknown(what)
    actor = await find_actor(context, caller, feed.mailbox, feed.owner, what)
    await in_thread(feeds.revoke, actor, number)


@router.get(
    "/feeds/{name}",
    summary="Read a feed",
    responses={200: {"content": {ATOM: {}, JSON_FEED: {}}}, 304: {}},
    response_class=Response,
)
async def read_feed(
    request: Request,
    caller: Anybody,
    name: str,
    if_none_match: IfNoneMatch = None,
    if_modified_since: IfModifiedSince = None,
) -> Response:
    """The newest matches, as Atom (`.atom`) or as a JSON feed (`.json`). The address is the right
    to read it.
    """
    context = context_of(request)
    token, dot, suffix = name.rpartition(".")
    feed = await in_thread(context.match_server.broker.feeds.authenticate, token)
    kind, write = _WRITERS.get(dot + suffix, (None, None))
    if feed is None or kind is None or write is None:
        raise Problem(404, "unknown-feed", "there is no such feed, or it was revoked")
    address = f"{find_base(request)}/feeds/{name}"
    contents = await in_thread(_collect, context, feed, address)
    body = await in_thread(write, contents)
    headers = _make_validators(context, contents, body)
    if _is_known(headers, if_none_match, if_modified_since):
        return Response(status_code=304, headers=headers)
    shown = [own for story in contents.stories for own in story.matches]
    context.observe_delivery("feed", context.feed_marks.take_new(feed.number, shown))
    return Response(body, headers=headers, media_type=kind)


def find_base(request: Request) -> str:
    """The address by which clients reach the server, without a slash at its end."""
    public = context_of(request).settings.server.public_url
    return (public or str(request.base_url)).rstrip("/")


async def _choose_title(context: ServerContext, target: Target) -> str:
    found = await in_thread(context.match_server.live.get, target.name)
    title = None
    if found is not None and found.created == target.mailbox.number:
        title = found.attributes.get("title")
    is_usable = isinstance(title, str) and clean_line(title)
    return clean_line(title if is_usable else f"Matches of {target.name}")  # type: ignore[arg-type]


def _collect(context: ServerContext, feed: Feed, address: str) -> FeedContents:
    mailboxes = context.match_server.mailboxes
    stories = mailboxes.newest_stories(feed.mailbox, MOST_ENTRIES)
    newest = max((own.moment for story in stories for own in story.matches), default=feed.created)
    epoch = mailboxes.head.epoch
    return FeedContents(feed.title, feed.mailbox, epoch, newest, stories, address)


def _make_validators(context: ServerContext, contents: FeedContents, body: bytes) -> dict[str, str]:
    headers = {
        "etag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        "cache-control": "private, no-cache",
    }
    if context.match_server.live.store.moment - contents.updated > _SETTLED:
        moment = contents.updated.astimezone(UTC).replace(microsecond=0)
        headers["last-modified"] = format_datetime(moment, usegmt=True)
    return headers


def _is_known(headers: dict[str, str], tags: str | None, since: str | None) -> bool:
    """Whether the client has it already; a tag is better than a date (RFC 9110)."""
    if tags is not None:
        known = [tag.strip().removeprefix("W/") for tag in tags.split(",")]
        return "*" in known or headers["etag"] in known
    modified = headers.get("last-modified")
    if since is None or modified is None:
        return False
    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(since)
    except (ValueError, TypeError):
        return False


def _describe(feed: Feed, name: str | None = None) -> FeedAnswer:
    return FeedAnswer(
        number=feed.number,
        mailbox=str(feed.mailbox),
        mailbox_name=name,
        owner=feed.owner,
        title=feed.title,
        created=feed.created,
        revoked=feed.revoked,
    )
