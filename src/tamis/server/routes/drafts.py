"""Drafts: what is wrong with an expression, and what would it have matched?"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from tamis.broker.drafts import check_draft, spell_canonical, warn_misspelt
from tamis.broker.event_texts import to_strict_json
from tamis.broker.forecasting import AskedForecast, Budget, Forecast, Matches, forecast
from tamis.broker.similar import MOST_SHOWN, Similar
from tamis.language.moments import spell_moment
from tamis.logic.digest import digest
from tamis.server.answers import answer_json
from tamis.server.archived import expect_reader
from tamis.server.auth import Reading
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.exact_bodies import document_body, read_question
from tamis.server.long_questions import run_cancellable
from tamis.server.misspelt import keep_known
from tamis.server.models import Asked
from tamis.server.problems import Problem
from tamis.server.routes.subscriptions import limit_expression, read_visible
from tamis.server.visible import conceal

if TYPE_CHECKING:
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(prefix="/v1", tags=["questions"])

MOST_OWN: Final = 10_000  # subscriptions of an owner among which similar ones are found


class CheckQuestion(Asked):
    """A draft."""

    expression: str
    similar: bool = Field(True, description="Whether to look for similar subscriptions.")


class FoundProblem(BaseModel):
    """An error or a warning, with its place."""

    severity: str
    code: str
    message: str
    hint: str | None = None
    line: int | None = None
    column: int | None = None
    span: list[int] | None = None


class CheckedAttribute(BaseModel):
    """An attribute of a draft."""

    name: str
    type: str
    is_known: bool = Field(description="The set fixes its type; otherwise the draft implies it.")


class SimilarAnswer(BaseModel):
    """Subscriptions that you may see, and that are certainly similar."""

    equal: list[str]
    wider: list[str] = Field(description="They match every event that the draft matches.")
    narrower: list[str] = Field(description="The draft matches every event that they match.")
    is_complete: bool = Field(description="False if more might be similar than were compared.")


class CheckAnswer(BaseModel):
    """What is known of a draft."""

    is_valid: bool
    problems: list[FoundProblem]
    canonical: str | None = Field(description="The same condition, simplified and sorted.")
    digest: str | None = Field(description="Equal for equal canonical forms.")
    attributes: list[CheckedAttribute]
    similar: SimilarAnswer | None


@router.post(
    "/check",
    summary="Check a draft",
    response_model=CheckAnswer,
    openapi_extra=document_body(CheckQuestion, a_draft={"expression": "age >= 18 AND age >= 21"}),
)
async def check(request: Request, caller: Reading) -> Response:
    """Errors and warnings with their places, the types of attributes, and similar subscriptions.
    Similar are those with an equal canonical form, and those of which AND and OR alone show that
    they are wider or narrower; constants are not compared.
    """
    context = context_of(request)
    asked = await read_question(request, CheckQuestion)
    limit_expression(context, caller, asked.expression)
    live = context.match_server.live
    found = await in_thread(check_draft, live, asked.expression)
    misspelt = await in_thread(keep_known, context, caller, found.misspelt)
    warned = [warn_misspelt(found, asked.expression, own) for own in misspelt]
    for own in found.problems:
        await in_thread(conceal, context, caller, own.reason)
    similar = None
    if asked.similar and found.canonical is not None:
        visible = await in_thread(_list_own, context, caller)
        similar = await in_thread(context.similar.find, found.canonical, visible)
        if visible is not None and len(visible) == MOST_OWN:
            similar = similar._replace(is_complete=False)
    canonical = found.canonical
    return answer_json(
        {
            "is_valid": found.condition is not None,
            "problems": [own.to_dict() for own in (*found.problems, *warned)],
            "canonical": None if canonical is None else spell_canonical(canonical),
            "digest": None if canonical is None else digest(canonical).hex(),
            "attributes": [
                {"name": own.name, "type": own.type, "is_known": own.is_known}
                for own in found.attributes
            ],
            "similar": None if similar is None else _spell_similar(similar),
        }
    )


def _list_own(context: ServerContext, caller: Caller) -> list[str] | None:
    """The ids that the caller may see; None for all."""
    if caller.actor.is_admin:
        return None
    page = context.match_server.live.list(owner=caller.actor.owner, limit=MOST_OWN)
    return [one.id for one in page.subscriptions] if caller.actor.owner else []


def _spell_similar(similar: Similar) -> dict[str, Any]:
    lists = {"equal": similar.equal, "wider": similar.wider, "narrower": similar.narrower}
    is_cut = any(len(own) > MOST_SHOWN for own in lists.values())
    return {
        **{name: own[:MOST_SHOWN] for name, own in lists.items()},
        "is_complete": similar.is_complete and not is_cut,
    }


# ── forecasts ───────────────────────────────────────────────────────────────────────────────


class ForecastQuestion(Asked):
    """A draft, and how far to look back."""

    expression: str
    days: int = Field(7, ge=1, le=3_660)
    samples: int = Field(10, ge=0, le=100)
    subscription_id: str | None = Field(
        None, description="Compare with the expression that this subscription has now."
    )


class ForecastDay(BaseModel):
    """One day, in UTC."""

    day: date
    events: int
    matches: int


class ForecastEvent(BaseModel):
    """An archived event."""

    event: int
    moment: datetime
    content: Any


class ForecastMatches(BaseModel):
    """Some events: how many, and the newest of them."""

    events: int
    sample: list[ForecastEvent]


class ForecastPart(BaseModel):
    """An operand of the AND or OR that the draft is."""

    expression: str
    matches: int = Field(description="Events that satisfy this part alone.")
    microseconds: float | None = Field(description="CPU time per event, alone and in a batch.")


class LookedAt(BaseModel):
    """The events of the archive that were looked at, the newest."""

    first: int | None
    last: int | None
    events: int
    without_text: int = Field(description="Events whose texts are not archived.")
    is_complete: bool = Field(description="Whether these are all events of the days.")
    stopped_by: str | None = Field(description="events, time or cancelled.")


class ForecastAnswer(BaseModel):
    """What a draft would have matched."""

    looked_at: LookedAt
    days: list[ForecastDay]
    matches: ForecastMatches
    parts: list[ForecastPart]
    combined_by: Literal["and", "or"] | None = Field(description="What the parts are operands of.")
    rarest: str | None = Field(description="The part that holds for the fewest events.")
    slowest: str | None
    newly_matching: ForecastMatches | None
    no_longer_matching: ForecastMatches | None
    notes: list[str] = Field(description="On attributes that none of these events has.")


@router.post(
    "/forecast",
    summary="What would a draft have matched?",
    response_model=ForecastAnswer,
    responses=problems(404, 410),
    openapi_extra=document_body(
        ForecastQuestion,
        a_draft={"expression": "age >= 18 AND country = 'FR'", "days": 30},
        a_change={"expression": "age >= 21", "subscription_id": "adults"},
    ),
)
async def forecast_draft(request: Request, caller: Reading) -> Response:
    """Matches per day among the archived events of the last days, with a sample, and how often
    each part holds. It is for those who may read all events. The newest events are read first,
    within a limit of events and of time; `looked_at` says if that were not all.
    """
    context = context_of(request)
    asked = await read_question(request, ForecastQuestion)
    expect_reader(context, caller)
    limit_expression(context, caller, asked.expression)
    before = None
    if asked.subscription_id is not None:
        before = (await read_visible(context, caller, asked.subscription_id)).expression
    wanted = AskedForecast(asked.expression, asked.days, asked.samples, before)
    found = await _run(request, context, wanted)
    return answer_json(_spell_forecast(found))


async def _run(request: Request, context: ServerContext, wanted: AskedForecast) -> Forecast:
    """The forecast, in another thread; it ends early if the client goes away."""
    limits, server = context.settings.limits, context.match_server
    seconds = limits.forecast_time.total_seconds()
    found = await run_cancellable(
        request,
        context,
        lambda is_cancelled: forecast(
            server.live,
            server.published,
            wanted,
            Budget(limits.forecast_events, seconds, is_cancelled),
        ),
    )
    if found.stopped_by == "cancelled":
        raise Problem(503, "cancelled", "the forecast was cancelled")
    return found


def _spell_forecast(found: Forecast) -> dict[str, Any]:
    rarest = min(found.parts, key=lambda own: own.n_matches, default=None)
    timed = [own for own in found.parts if own.microseconds is not None]
    slowest = max(timed, key=lambda own: own.microseconds or 0.0, default=None)
    return {
        "looked_at": {
            "first": found.first,
            "last": found.last,
            "events": found.n_events,
            "without_text": found.n_without_text,
            "is_complete": found.is_complete,
            "stopped_by": found.stopped_by,
        },
        "days": [
            {"day": day.date().isoformat(), "events": n_events, "matches": n_matches}
            for day, n_events, n_matches in found.days
        ],
        "matches": _spell_matches(found.matches),
        "parts": [
            {
                "expression": own.expression,
                "matches": own.n_matches,
                "microseconds": own.microseconds,
            }
            for own in found.parts
        ],
        "combined_by": found.combined_by,
        "rarest": rarest and rarest.expression,
        "slowest": slowest and slowest.expression,
        "newly_matching": _spell_matches(found.new),
        "no_longer_matching": _spell_matches(found.lost),
        "notes": found.notes,
    }


def _spell_matches(matches: Matches | None) -> dict[str, Any] | None:
    if matches is None:
        return None
    sample = [
        {
            "event": own.number,
            "moment": spell_moment(own.moment),
            "content": orjson.Fragment(to_strict_json(own.text)),
        }
        for own in matches.sample
    ]
    return {"events": matches.n_events, "sample": sample}
