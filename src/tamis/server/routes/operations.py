"""Is the server alive, is it ready, what does it do?"""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

import orjson
from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse, Response

from tamis import __version__
from tamis.broker.rights import Role
from tamis.broker.state import describe_state
from tamis.server.auth import Administrating, needs
from tamis.server.context import context_of, in_thread, needs_no_key
from tamis.server.metrics import measure_memory
from tamis.server.problems import Problem

router = APIRouter(tags=["operations"])


class ReadyAnswer(BaseModel):
    """Where a server stands."""

    status: str
    role: str = Field(description="writer, or follower: that one only reads.")
    change: int = Field(description="The last change of the set that answers include.")
    last_event: int
    epoch: str


@router.get("/healthz", summary="Is the process alive?")
async def health() -> dict[str, str]:
    """Answers as long as the process runs."""
    return {"status": "alive", "version": __version__}


@router.get("/readyz", summary="Can it answer?", response_model=ReadyAnswer)
async def ready(request: Request) -> Response:
    """Where the server stands; 503 with the reasons if it cannot do its work: the disk, the store
    or the archive cannot be written, the set is behind the store, or the server is stopping.
    """
    context = context_of(request)
    if context.is_closing.is_set():
        raise _not_ready(["the server is stopping"])
    reasons = context.readiness.recall()
    if reasons is None:
        reasons = await in_thread(context.readiness.find_reasons)
    if reasons:
        raise _not_ready(reasons)
    server = context.match_server
    found = {
        "status": "ready",
        "role": "follower" if server.is_follower else "writer",
        "change": server.live.change,
        "last_event": server.archive.last_event,
        "epoch": server.archive.epoch,
    }
    return Response(orjson.dumps(found), media_type="application/json")


def _not_ready(reasons: list[str]) -> Problem:
    return Problem(503, "not-ready", reasons[0], headers={"retry-after": "1"}, reasons=reasons)


@router.get("/metrics", summary="Numbers for Prometheus", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms. If `operations.metrics_need_key` is set, they need the key
    of an admin.
    """
    context = context_of(request)
    if context.settings.operations.metrics_need_key:
        await needs(Role.ADMIN)(request)
    found = await in_thread(generate_latest, context.metrics.registry)
    return Response(found, media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/stats", summary="What the server has and does")
async def stats(request: Request, caller: Administrating) -> dict[str, Any]:
    """The numbers of /metrics and more: operators and their faults, disagreements of the audit,
    limits, and how long things take.
    """
    context = context_of(request)
    reasons = await in_thread(context.readiness.find_reasons)
    found = await in_thread(describe_state, context.match_server)
    return found | {
        "version": __version__,
        "ready": not reasons,
        "not_ready_because": reasons,
        "requests": dict(context.metrics.n_requests),
        "open_streams": dict(context.metrics.n_streams),
        "seconds": context.metrics.estimate_times(),
        "memory_bytes": measure_memory(),
        "limits": {
            own.name: _to_json(getattr(context.settings.limits, own.name))
            for own in fields(context.settings.limits)
        },
        "needs_keys": not await needs_no_key(context),
    }


def _to_json(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
