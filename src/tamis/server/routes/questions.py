"""Ask without storing: what would match, and why not?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from tamis.broker.questions import explain_draft, match_event
from tamis.broker.rights import Role
from tamis.events.json_texts import parse_event
from tamis.language.moments import spell_moment
from tamis.server.answers import answer_json
from tamis.server.archived import expect_reader, has_matched, may_read_archive, read_archived
from tamis.server.auth import Anybody, Reading, expect_role
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.exact_bodies import document_body, expect_event, read_question
from tamis.server.models import Asked, IgnoredValue
from tamis.server.problems import Problem
from tamis.server.routes.subscriptions import limit_expression, read_visible
from tamis.server.visible import expect_visible, keep_visible

if TYPE_CHECKING:
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext
    from tamis.subscriptions import Subscription

router = APIRouter(prefix="/v1", tags=["questions"])

LARGEST_NUMBER: Final = (1 << 63) - 1
_EVENT: Final = Field(
    None,
    description="The event; its numbers count as they are written.",
    json_schema_extra={"type": "object"},
)
_EVENT_NUMBER: Final = Field(
    None, ge=1, le=LARGEST_NUMBER, description="The number of an archived event, instead of it."
)


class EventQuestion(Asked):
    """An event: itself, or its number in the archive."""

    event: Any = _EVENT
    event_number: int | None = _EVENT_NUMBER


class MatchQuestion(EventQuestion):
    """An event, and which subscriptions to consider."""

    tagged: list[str] | None = Field(None, description="Those that have one of these tags.")
    subset: list[str] | None = Field(None, description="Those with these ids.")


class ExplainQuestion(EventQuestion):
    """A subscription or a draft, and an event."""

    subscription_id: str | None = None
    expression: str | None = Field(None, description="A draft, instead of a subscription.")


class MatchAnswer(BaseModel):
    """The subscriptions that an event satisfies."""

    ids: list[str]
    change: int = Field(description="By the set as of this change.")
    moment: datetime
    ignored_values: list[IgnoredValue]


class ExplainedStep(BaseModel):
    """A part of an expression, and its truth for the event."""

    expression: str
    truth: str = Field(description="true, false or undefined.")
    values: dict[str, Any] = {}
    notes: list[str] = []
    operands: list[ExplainedStep] = []


class ExplainAnswer(BaseModel):
    """Why an expression matches an event, or why not."""

    subscription_id: str | None = Field(description="Null for a draft.")
    matches: bool
    truth: str = Field(description="true, false or undefined.")
    valid: bool = Field(description="Whether the subscription is valid now.")
    sentence: str
    changes: list[str] = Field(description="The fewest tests that would have to be true.")
    tree: ExplainedStep


@router.post(
    "/match",
    summary="Match an event without publishing it",
    response_model=MatchAnswer,
    responses=problems(404, 410),
    openapi_extra=document_body(
        MatchQuestion,
        an_event={"event": {"age": 20, "price": 10.1}},
        some_subscriptions={"event": {"age": 20}, "tagged": ["news"]},
        an_archived_event={"event_number": 17},
    ),
)
async def match(request: Request, caller: Reading) -> Response:
    """The ids of the subscriptions that the event satisfies; without the role admin, your own.
    They are those that publishing it would return.
    """
    context = context_of(request)
    asked = await read_question(request, MatchQuestion)
    if asked.event_number is not None:
        expect_reader(context, caller)
    event = await _find_event(context, asked)
    if asked.subset is not None:
        await expect_visible(context, caller, asked.subset)
    found = await in_thread(
        match_event,
        context.match_server.live,
        event,
        tagged=asked.tagged,
        subset=asked.subset,
    )
    (ids,) = await keep_visible(context, caller, [found.ids])
    return answer_json(
        {
            "ids": ids,
            "change": found.change,
            "moment": spell_moment(found.moment),
            "ignored_values": [own.to_json() for own in found.ignored],
        }
    )


@router.post(
    "/explain",
    summary="Why does a subscription match, or why not?",
    response_model=ExplainAnswer,
    responses=problems(404, 410),
    openapi_extra=document_body(
        ExplainQuestion,
        a_subscription={"subscription_id": "adults", "event": {"age": 17}},
        a_draft={"expression": "age >= 18", "event": {"age": 17}},
        an_archived_event={"subscription_id": "adults", "event_number": 17},
    ),
)
async def explain(request: Request, caller: Anybody) -> Response:
    """The expression as a tree with the truth of each part, and the smallest change that would
    make it match. A draft needs the role read.
    """
    context = context_of(request)
    asked = await read_question(request, ExplainQuestion)
    if (asked.subscription_id is None) == (asked.expression is None):
        raise Problem(
            422, "bad-request", "exactly one of subscription_id and expression is expected"
        )
    live = context.match_server.live
    if asked.expression is not None:
        expect_role(caller, Role.READ)
        limit_expression(context, caller, asked.expression)
        if asked.event_number is not None:
            expect_reader(context, caller)
        event = await _find_event(context, asked)
        explained = await in_thread(explain_draft, live, asked.expression, event)
        return answer_json({**explained.to_dict(), "subscription_id": None})
    assert asked.subscription_id is not None
    found = await read_visible(context, caller, asked.subscription_id)
    if asked.event_number is not None:
        await _expect_seen(context, caller, found, asked.event_number)
    event = await _find_event(context, asked)
    explained = await in_thread(live.explain, found.id, event)
    return answer_json(explained.to_dict())


async def _find_event(context: ServerContext, asked: EventQuestion) -> dict[str, Any]:
    has_event = "event" in asked.model_fields_set
    if has_event == (asked.event_number is not None):
        raise Problem(422, "bad-request", "exactly one of event and event_number is expected")
    if asked.event_number is None:
        return expect_event(asked.event)
    return parse_event(await read_archived(context, asked.event_number))


async def _expect_seen(
    context: ServerContext, caller: Caller, found: Subscription, number: int
) -> None:
    """Raise a `Problem` unless the caller may read an event: all, or those of the mailbox."""
    if may_read_archive(context, caller):
        return
    if not await has_matched(context, found.created, number):
        expect_reader(context, caller)
