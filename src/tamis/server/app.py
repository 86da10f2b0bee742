"""The application: its routes, its error handlers, its OpenAPI document."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from tamis import __version__
from tamis.broker.readiness import Readiness
from tamis.broker.secrets import redact
from tamis.errors import TamisError
from tamis.server import console
from tamis.server.context import ServerContext, context_of, in_thread
from tamis.server.contract import complete_document, name_operation
from tamis.server.following import expect_writer, refresh_channels
from tamis.server.frame import Frame
from tamis.server.guard import Guard
from tamis.server.lags import BacklogCollector
from tamis.server.metrics import Metrics
from tamis.server.owner_counts import OwnerCounts
from tamis.server.problems import Problem, describe
from tamis.server.rates import RateLimits
from tamis.server.routes import (
    activity,
    archive,
    bulk,
    channels,
    digests,
    drafts,
    events,
    feeds,
    insight,
    keys,
    mailboxes,
    maintenance,
    operations,
    opml,
    questions,
    search,
    session,
    sockets,
    sources,
    subscriptions,
    webhooks,
)
from tamis.server.stream_rights import checking_streams
from tamis.server.tracing import Tracing, find_tracer
from tamis.server.visible import conceal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from tamis.broker.match_server import MatchServer
    from tamis.server.settings import Settings
    from tamis.server.warming import Warming

ROUTERS: Final = (
    bulk.router,  # before the others: its paths look like names of subscriptions
    subscriptions.router,
    events.router,
    archive.router,
    mailboxes.subscription_router,
    mailboxes.channel_router,
    channels.router,
    sockets.router,
    webhooks.router,
    feeds.router,
    digests.router,
    opml.router,  # before that of sources, whose numbers take every name
    sources.router,
    questions.router,
    drafts.router,
    search.router,
    activity.router,
    operations.router,
    insight.router,
    keys.router,
    session.router,
    maintenance.router,
    console.router,
)
READING: Final = (questions.router, drafts.router, search.router)  # their POSTs change nothing


def create_app(
    match_server: MatchServer,
    settings: Settings,
    *,
    is_open: bool = False,
    warming: Warming | None = None,
) -> FastAPI:
    """The application of a match server. If it `is_open`, requests need no key; it is not ready
    before `warming` has ended.
    """
    app = make_routes()
    owners = OwnerCounts(match_server.live.store)
    metrics = Metrics(match_server)
    readiness = Readiness(match_server, settings.operations.least_free_space)
    if warming is not None:
        readiness.await_first(lambda: warming.reason)
    app.state.context = ServerContext(
        match_server, settings, RateLimits(), owners, readiness, metrics, is_open
    )
    metrics.registry.register(BacklogCollector(app.state.context))
    app.add_middleware(Guard, settings, match_server.broker)
    app.add_middleware(Frame, metrics)
    if settings.operations.traces and (tracer := find_tracer()) is not None:
        app.add_middleware(Tracing, tracer)
    return app


def make_routes() -> FastAPI:
    """The routes and their document; without a match server, they answer nothing."""
    app = FastAPI(
        title="Tamis",
        version=__version__,
        summary="Which of many subscriptions does each event satisfy?",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        generate_unique_id_function=name_operation,
        separate_input_output_schemas=False,
        redirect_slashes=False,
        lifespan=_run,
    )
    for router in ROUTERS:
        app.include_router(
            router, dependencies=[] if router in READING else [Depends(expect_writer)]
        )
    app.add_exception_handler(Problem, _answer_problem)
    app.add_exception_handler(TamisError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    complete_document(app)
    return app


@asynccontextmanager
async def _run(app: FastAPI) -> AsyncIterator[None]:
    """Deliver as long as the application runs."""
    context: ServerContext = app.state.context
    delivering = _follow(context) if context.match_server.is_follower else context.deliveries
    async with delivering, context.feed_reading, checking_streams(context):
        try:
            yield
        finally:
            context.begin_closing()
            context.live_mail.shut_down()


@asynccontextmanager
async def _follow(context: ServerContext) -> AsyncIterator[None]:
    """What a follower does instead of delivering: the writer does that."""
    refreshing = asyncio.create_task(refresh_channels(context))
    try:
        yield
    finally:
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing


def _request_id(request: Request) -> str:
    return str(request.state.request_id)


async def _answer_problem(request: Request, error: Any) -> Response:
    problem: Problem = error
    return problem.to_response(_request_id(request))


async def _answer_error(request: Request, error: Any) -> Response:
    caller = getattr(request.state, "caller", None)
    shown = await in_thread(conceal, context_of(request), caller, error)
    return describe(shown).to_response(_request_id(request))


async def _answer_invalid(request: Request, error: Any) -> Response:
    """What does not fit the schema of a request, with its places."""
    problem = next(filter(None, map(_find_unread, error.errors())), None)
    if problem is None:
        found = [
            {"place": ".".join(map(str, one["loc"])), "message": one["msg"]}
            for one in error.errors()
        ]
        detail = f"{found[0]['place']}: {found[0]['message']}"
        problem = Problem(422, "bad-request", detail, errors=found)
    return problem.to_response(_request_id(request))


def _find_unread(error: Mapping[str, Any]) -> Problem | None:
    """The problem of a body that was not read as JSON; None if the error is another one."""
    if error["type"] == "json_invalid":
        _, place = error["loc"]
        reason = f"{error['ctx']['error']} (character {place + 1})"
        return Problem(400, "bad-json", f"the body: not JSON: {reason}")
    if error["loc"] == ("body",) and isinstance(error["input"], bytes):
        return Problem(
            415,
            "unknown-media-type",
            "the body has a media type that cannot be read here",
            hint="send JSON, with the header content-type: application/json",
        )
    return None


async def _answer_http(request: Request, error: Any) -> Response:
    if error.status_code == 400:  # of FastAPI, which could not read the body
        reason = "" if error.__cause__ is None else f": {error.__cause__}"
        unread = Problem(400, "bad-json", f"the body: not JSON that can be read{reason}")
        return unread.to_response(_request_id(request))
    codes = {404: "unknown-path", 405: "wrong-method"}
    detail = f"{request.method} {redact(request.scope['path'])[:200]}: {error.detail}"
    headers = {"allow": _list_methods(request)} if error.status_code == 405 else error.headers
    problem = Problem(
        error.status_code,
        codes.get(error.status_code, "error"),
        detail,
        hint="the paths are listed in /v1/openapi.json",
        headers=headers,
    )
    return problem.to_response(_request_id(request))


def _list_methods(request: Request) -> str:
    """The methods of all routes with this path."""
    found: set[str] = set()
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
                found |= route.methods or set()
    return ", ".join(sorted(found))
