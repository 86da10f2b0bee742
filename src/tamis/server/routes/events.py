"""Publish events."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from tamis.broker.matching import Publication
from tamis.server.answers import answer_json
from tamis.server.auth import Publishing
from tamis.server.bodies import read_body
from tamis.server.context import context_of, in_thread, result_of
from tamis.server.event_bodies import DOCUMENTED, digest_request, read_events
from tamis.server.models import PublishedAnswer
from tamis.server.problems import Problem
from tamis.server.visible import keep_visible

if TYPE_CHECKING:
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(prefix="/v1/events", tags=["events"])

LONGEST_KEY: Final = 255
_LARGE: Final = 1 << 16  # bytes: larger bodies are read in another thread


@router.post("", summary="Publish events", response_model=PublishedAnswer, openapi_extra=DOCUMENTED)
async def publish(
    request: Request,
    caller: Publishing,
    matches: Annotated[
        Literal["count", "ids"], Query(description="Whether the answer has the ids that matched.")
    ] = "count",
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=LONGEST_KEY)] = None,
) -> Response:
    """Publish one event or many. The answer comes when events and matches are on disk. It has
    the ids of those subscriptions that you may see: without the role admin, your own.

    With `ce-` headers, the request is one CloudEvent in binary mode: the headers are its
    attributes, and a body of any media type is its data.
    """
    context = context_of(request)
    limits, own = context.settings.limits, caller.limits.batch_bytes
    most = limits.batch_size if own is None else own
    body = await read_body(request, most, limits.request_timeout)
    is_arrow = "arrow" in request.headers.get("content-type", "")  # a few bytes may be many rows
    if len(body) < _LARGE and not is_arrow:
        given = read_events(request.headers, body, most, limits.batch_events)
    else:
        given = await in_thread(read_events, request.headers, body, most, limits.batch_events)
    _limit_event(context, caller, given.largest)
    asked = Publication(given.events, len(body), wants_ids=matches == "ids")
    if idempotency_key is not None:
        who = f"{caller.actor.key_id}\0{idempotency_key}".encode()
        given_by = (request.headers, body, matches)
        is_small = len(body) < _LARGE
        digest = (
            digest_request(*given_by) if is_small else await in_thread(digest_request, *given_by)
        )
        asked = asked._replace(key=hashlib.sha256(who).digest(), request=digest)
    began = time.perf_counter()
    published = await result_of(context.match_server.publisher.publish(asked))
    context.metrics.observe_publishing(time.perf_counter() - began)
    if published.ids is not None:
        published = published._replace(ids=await keep_visible(context, caller, published.ids))
    return answer_json(published.to_json())


def _limit_event(context: ServerContext, caller: Caller, largest: int) -> None:
    own = caller.limits.event_bytes
    most = context.settings.limits.event_size if own is None else own
    if largest > most:
        raise Problem(413, "too-large", f"an event is larger than {most:,} bytes", limit=int(most))
