"""How often subscriptions matched: sparklines, and who matched most or never."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from tamis.broker.activity import RankingPlace, count_activity, list_chosen, rank_by_matches
from tamis.server.auth import Reading
from tamis.server.context import context_of, in_thread
from tamis.server.models import Asked, SubscriptionAnswer
from tamis.server.problems import Problem
from tamis.server.routes.subscriptions import choose_listed, to_json
from tamis.server.visible import keep_visible

if TYPE_CHECKING:
    from tamis.broker.activity import Ranked
    from tamis.subscriptions import Subscription

router = APIRouter(prefix="/v1/activity", tags=["questions"])

MOST_ASKED: Final = 200  # subscriptions


class ActivityQuestion(Asked):
    """Subscriptions, and how far to look back."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"subscriptions": ["adults"], "days": 7, "parts": 28}]},
    )

    subscriptions: list[str] = Field(max_length=MOST_ASKED)
    days: int = Field(7, ge=1, le=366)
    parts: int = Field(28, ge=1, le=100, description="Spans of equal length.")


class ActivityAnswer(BaseModel):
    """Numbers of matches."""

    since: datetime
    step: float = Field(description="Seconds of each span.")
    counts: dict[str, list[int]] = Field(description="The oldest span first, by id.")


class RankedSubscription(BaseModel):
    """A subscription and its matches."""

    id: str
    matches: int
    subscription: SubscriptionAnswer | None = Field(
        None, description="If details were asked for, and it still exists."
    )


class RankingAnswer(BaseModel):
    """Subscriptions by their number of matches."""

    since: datetime
    total: int = Field(description="Subscriptions that were counted.")
    silent: int = Field(description="Those without a match.")
    subscriptions: list[RankedSubscription]
    cursor: str | None = Field(description="Of the next page; null if there is none.")


@router.post("", summary="Count matches over time")
async def count_matches(
    request: Request, caller: Reading, asked: ActivityQuestion
) -> ActivityAnswer:
    """The number of archived matches of each subscription in each span of the last days. Those
    that do not exist, or that you may not see, are left out.
    """
    context = context_of(request)
    server = context.match_server
    (ids,) = await keep_visible(context, caller, [asked.subscriptions])
    known = await in_thread(server.live.store.get_many, ids)
    numbers = {name: own.created for name, own in known.items()}
    found = await in_thread(
        count_activity,
        server.archive,
        numbers,
        server.live.store.moment,
        timedelta(days=asked.days),
        asked.parts,
    )
    return ActivityAnswer(since=found.since, step=found.step.total_seconds(), counts=found.counts)


@router.get("", summary="Which subscriptions matched most, or never?")
async def rank_subscriptions(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Reading,
    order: Literal["most", "none"] = "most",
    days: Annotated[int, Query(ge=1, le=366)] = 7,
    owner: str | None = None,
    tag: str | None = None,
    text: Annotated[str | None, Query(description="A part of the id or the expression.")] = None,
    details: Annotated[bool, Query(description="Whether to return the subscriptions.")] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
) -> RankingAnswer:
    """A page of the subscriptions with the most archived matches in the last days, or of those
    without any, the oldest first. Without the role admin, only your own.
    """
    context = context_of(request)
    server = context.match_server
    filters = {"owner": choose_listed(caller, owner), "tag": tag, "text": text}
    after = None if cursor is None else _read_place(cursor)
    numbers = None  # all
    if any(own is not None for own in filters.values()):
        numbers = await in_thread(list_chosen, server.live, **filters)
    since = server.live.store.moment - timedelta(days=days)
    found = await in_thread(
        rank_by_matches,
        server.live,
        server.archive,
        numbers,
        since,
        limit,
        is_silent=order == "none",
        after=after,
    )
    known: dict[str, Subscription] = {}
    if details:
        ids = [own.id for own in found.subscriptions]
        known = await in_thread(server.live.store.get_many, ids)
    return RankingAnswer(
        since=found.since,
        total=found.n_subscriptions,
        silent=found.n_silent,
        subscriptions=[_describe(own, known.get(own.id)) for own in found.subscriptions],
        cursor=None if found.next is None else "{}:{}".format(*found.next),
    )


def _describe(ranked: Ranked, known: Subscription | None) -> RankedSubscription:
    subscription = None if known is None else SubscriptionAnswer(**to_json(known))
    return RankedSubscription(id=ranked.id, matches=ranked.n_matches, subscription=subscription)


def _read_place(cursor: str) -> RankingPlace:
    n_matches, _, number = cursor.partition(":")
    if not all(own.isascii() and own.isdigit() and len(own) < 19 for own in (n_matches, number)):
        raise Problem(422, "bad-cursor", f"{cursor[:100]!r} is not the cursor of a ranking")
    return RankingPlace(int(n_matches), int(number))
