"""Sources: feeds of others that the server reads; for administrators."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tamis.broker.pages import PAGE_SIZE
from tamis.broker.sources import NewSource, Source
from tamis.broker.states import SourceState
from tamis.server.auth import Administrating
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.models import Asked
from tamis.server.targets import unknown

router = APIRouter(prefix="/v1/sources", tags=["sources"], responses=problems(404, 409))

MOST_PAGE: Final = 1_000
MOST_IMPORTED: Final = 10_000

Number = Annotated[int, Path(ge=1, lt=1 << 63)]


class Activity(StrEnum):
    """What an administrator can make of a source."""

    ACTIVE = "active"
    PAUSED = "paused"


class SourceRequest(Asked):
    """A feed to read."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"url": "https://example.com/feed", "tags": ["news"]}]},
    )

    url: str = Field(description="The address of a feed, or of a page that names one.")
    title: str = Field("", description="By default the one that the feed has.")
    tags: list[str] = Field(default_factory=list, description="The attribute `tags` of its items.")


class SourceImport(Asked):
    """Feeds to read."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"sources": [{"url": "https://example.com/feed"}]}]},
    )

    sources: list[SourceRequest] = Field(max_length=MOST_IMPORTED)


class SourceChange(Asked):
    """What to change of a source."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"state": "paused"}]})

    title: str | None = None
    tags: list[str] | None = None
    state: Activity | None = None


class Note(BaseModel):
    """What was mended in the last document of a source."""

    kind: str
    count: int
    example: str
    meaning: str


class SourceAnswer(BaseModel):
    """A source."""

    number: int
    url: str
    added_url: str
    title: str
    tags: list[str]
    created: datetime
    state: SourceState
    reason: str | None
    kind: str
    home: str
    policy: str
    notes: list[Note]
    interval: int
    next_fetch: datetime
    last_fetch: datetime | None
    last_success: datetime | None
    last_item: datetime | None
    n_items: int
    n_failed: int
    failing_since: datetime | None
    last_status: int | None
    last_error: str | None


class SourcePage(BaseModel):
    """A page of sources."""

    sources: list[SourceAnswer]
    cursor: int | None


class ImportAnswer(BaseModel):
    """What became of the sources to add."""

    added: list[int]
    known: list[str]
    refused: list[str]


@router.post("", status_code=201, summary="Add a source")
async def create_source(
    request: Request,
    response: Response,
    caller: Administrating,
    asked: SourceRequest,
    fetch: Annotated[bool, Query(description="Whether to wait for its first fetch.")] = True,
) -> SourceAnswer:
    """Read a feed from now on: its items are published as events. If the first fetch fails, the
    answer has the error, and the source is tried again later.
    """
    context = context_of(request)
    new = NewSource(asked.url, asked.title, asked.tags)
    source = await in_thread(context.match_server.broker.sources.create, caller.actor, new)
    await in_thread(context.match_server.expect_items)
    if fetch:
        source = await context.feed_reading.fetch(source.number)
    response.headers["location"] = f"/v1/sources/{source.number}"
    return _describe(source)


@router.post("/import", summary="Add many sources")
async def import_sources(
    request: Request, caller: Administrating, asked: SourceImport
) -> ImportAnswer:
    """Read many feeds from now on. Those that are known or cannot be used do not affect the
    others.
    """
    match_server = context_of(request).match_server
    given = [NewSource(own.url, own.title, own.tags) for own in asked.sources]
    added = await in_thread(match_server.broker.sources.create_many, caller.actor, given)
    if added.added:
        await in_thread(match_server.expect_items)
    return ImportAnswer(**added._asdict())


@router.get("", summary="List sources")
async def list_sources(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Administrating,
    state: SourceState | None = None,
    failing: Annotated[bool | None, Query(description="Whether its last fetch failed.")] = None,
    url: Annotated[str | None, Query(description="Only the source at this address.")] = None,
    cursor: Annotated[int | None, Query(ge=0, lt=1 << 63)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = PAGE_SIZE,
) -> SourcePage:
    """A page of the sources, the oldest first, with their state."""
    sources = context_of(request).match_server.broker.sources
    if url is not None:
        found = await in_thread(sources.find, url)
        return SourcePage(sources=[] if found is None else [_describe(found)], cursor=None)
    page = await in_thread(sources.list, state=state, is_failing=failing, after=cursor, limit=limit)
    return SourcePage(sources=[_describe(own) for own in page.items], cursor=page.cursor)


@router.get("/{number}", summary="Get a source")
async def get_source(request: Request, caller: Administrating, number: Number) -> SourceAnswer:
    """A source, with its state and what was mended in its last document."""
    source = await in_thread(context_of(request).match_server.broker.sources.get, number)
    if source is None:
        raise unknown(f"source {number}")
    return _describe(source)


@router.patch("/{number}", summary="Change a source")
async def change_source(
    request: Request, caller: Administrating, number: Number, asked: SourceChange
) -> SourceAnswer:
    """Rename, tag, pause or resume a source. One that is resumed is fetched at once."""
    given: dict[str, Any] = asked.model_dump(exclude_none=True)
    if asked.state is not None:
        given["state"] = SourceState(asked.state.value)
    sources = context_of(request).match_server.broker.sources
    return _describe(await in_thread(sources.change, caller.actor, number, **given))


@router.post("/{number}/fetch", summary="Fetch a source now")
async def fetch_source(request: Request, caller: Administrating, number: Number) -> SourceAnswer:
    """Fetch a source now, whatever its state; the answer comes when its items are published."""
    return _describe(await context_of(request).feed_reading.fetch(number))


@router.delete("/{number}", status_code=204, summary="Remove a source")
async def delete_source(request: Request, caller: Administrating, number: Number) -> None:
    """Stop reading the feed. What was published stays in the archive. If the feed is added again,
    all items that it shows are new.
    """
    sources = context_of(request).match_server.broker.sources
    await in_thread(sources.delete, caller.actor, number)


def _describe(source: Source) -> SourceAnswer:
    return SourceAnswer(**source.to_json())
