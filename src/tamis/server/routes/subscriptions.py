"""Subscribe, replace, renew, unsubscribe, look."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from tamis.broker.audit_log import Action
from tamis.broker.histories import subscribe_since
from tamis.errors import RefusedError
from tamis.language.moments import AGE_HINT, read_age, read_at, spell_moment
from tamis.live.committer import expect
from tamis.server.archived import expect_reader
from tamis.server.auth import (
    Anybody,
    Caller,
    Reading,
    Subscribing,
    expect_change,
    may_see,
    shows_ticket,
)
from tamis.server.context import context_of, in_thread, result_of
from tamis.server.contract import problems
from tamis.server.grouping import add_grouping, expect_grouping
from tamis.server.misspelt import note_misspelt
from tamis.server.models import (
    ChangedSubscription,
    NewSubscription,
    NewSubscriptionAnswer,
    PathText,
    Renewal,
    SubscriptionAnswer,
    SubscriptionPage,
)
from tamis.server.problems import Problem
from tamis.subscriptions import KEEP, Reason, Renew, Replace, State, Subscribe, Unsubscribe

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.server.context import ServerContext
    from tamis.subscriptions import Subscription
    from tamis.subscriptions.model import Request as Change

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"])

MOST_PAGE: Final = 1_000
RESERVED: Final = ("export", "import")  # paths of `routes/bulk.py`
_ATTEMPTS: Final = 20  # to change a subscription that others change at the same time

_ETAG: Final[dict[str, Any]] = {
    "headers": {"ETag": {"description": "The revision.", "schema": {"type": "string"}}}
}
_MADE: Final[dict[str, Any]] = {
    "headers": {
        **_ETAG["headers"],
        "Location": {"description": "Its path.", "schema": {"type": "string"}},
    }
}

IfMatch = Annotated[str | None, Header(alias="If-Match")]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]


@router.post("", status_code=201, summary="Subscribe", responses={201: _MADE, **problems(409, 410)})
async def subscribe(
    request: Request, response: Response, caller: Subscribing, asked: NewSubscription
) -> NewSubscriptionAnswer:
    """Make a subscription. The ticket in the answer is shown only here: whoever has it may renew,
    replace and end the subscription. With `history`, its mailbox begins with what it would have
    matched before: no event is missing or twice where the live matches begin. That is for those
    who may read all events.
    """
    context = context_of(request)
    live = context.match_server.live
    owner = choose_owner(caller, asked.owner)
    limit_expression(context, caller, asked.expression)
    attributes = asked.attributes
    if asked.group_similar is not None:
        attributes = add_grouping(attributes, asked.group_similar)
    expect_grouping(context, attributes)
    await _limit_number(context, caller, owner)
    ticket = context.match_server.broker.tickets.make()
    name = f"sub_{secrets.token_hex(8)}" if asked.id is None else asked.id
    wanted = Subscribe(
        name,
        asked.expression,
        owner,
        tuple(asked.tags),
        attributes,
        asked.valid_from,
        choose_end(context, asked.valid_until, asked.lease),
        ticket.hash,
    )
    since = await find_since(context, caller, asked.history)
    before = live.settings.schema
    if since is None:
        (result,) = await result_of(live.submit([wanted]))
    else:
        histories = context.match_server.broker.histories
        result = await in_thread(subscribe_since, live, histories, wanted, since)
    expect(result)
    made = await _read(context, name)
    _describe(response, made)
    response.headers["location"] = path_of(name)
    notes: list[str] = []
    if live.settings.schema is not before:
        notes = await in_thread(note_misspelt, context, caller, before, asked.expression)
    return NewSubscriptionAnswer(**to_json(made), ticket=ticket.secret.reveal(), notes=notes)


@router.get("", summary="List subscriptions")
async def list_subscriptions(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Reading,
    cursor: str | None = None,
    owner: str | None = None,
    tag: str | None = None,
    text: str | None = None,
    state: State | None = None,
    ends_before: Annotated[
        datetime | None, Query(description="Those whose leases end before this moment.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = 100,
) -> SubscriptionPage:
    """A page of subscriptions, by id. Without the role admin, only your own."""
    context = context_of(request)
    owner = choose_listed(caller, owner)
    page = await in_thread(
        context.match_server.live.list,
        after=cursor,
        owner=owner,
        tag=tag,
        text=text,
        state=state,
        ends_before=ends_before,
        limit=limit,
    )
    found = [SubscriptionAnswer(**to_json(one)) for one in page.subscriptions]
    return SubscriptionPage(subscriptions=found, cursor=page.cursor)


@router.get(
    "/{subscription_id}",
    summary="Get a subscription",
    responses={200: _ETAG, 304: {"description": "It has that revision still.", **_ETAG}},
)
async def get_subscription(
    request: Request,
    response: Response,
    caller: Anybody,
    subscription_id: PathText,
    if_none_match: IfNoneMatch = None,
) -> SubscriptionAnswer:
    """The subscription, for its owner, an admin, and whoever shows its ticket."""
    context = context_of(request)
    found = await read_visible(context, caller, subscription_id)
    _describe(response, found)
    if if_none_match is not None and _names_revision(if_none_match, found.revision):
        return Response(status_code=304, headers={"etag": f'"{found.revision}"'})  # type: ignore[return-value]
    return SubscriptionAnswer(**to_json(found))


@router.patch("/{subscription_id}", summary="Replace a subscription", responses={200: _ETAG})
async def replace_subscription(  # noqa: PLR0913
    request: Request,
    response: Response,
    caller: Anybody,
    subscription_id: PathText,
    asked: ChangedSubscription,
    if_match: IfMatch = None,
) -> SubscriptionAnswer:
    """Change the given fields; the others stay as they are. It needs the ticket."""
    context = context_of(request)
    given = {name: getattr(asked, name) for name in asked.model_fields_set}
    for name in ("expression", "tags", "attributes"):
        if given.get(name, KEEP) is None:
            raise Problem(422, "bad-request", f"{name} is null; leave it out to keep it")
    if "tags" in given:
        given["tags"] = tuple(given["tags"])
    if "expression" in given:
        limit_expression(context, caller, given["expression"])
    if "valid_until" in given:
        given["valid_until"] = _limit_end(context, given["valid_until"])
    names_window, window = "group_similar" in given, given.pop("group_similar", None)

    def change(found: Subscription) -> Change:
        fields = dict(given)
        if names_window:
            fields["attributes"] = add_grouping(given.get("attributes", found.attributes), window)
        if "attributes" in fields:
            expect_grouping(context, fields["attributes"])
        return Replace(found.id, **fields, if_revision=found.revision)

    await _change(context, caller, subscription_id, if_match, change)
    return await _answer(context, response, subscription_id)


@router.post("/{subscription_id}/renew", summary="Renew a subscription", responses={200: _ETAG})
async def renew_subscription(  # noqa: PLR0913
    request: Request,
    response: Response,
    caller: Anybody,
    subscription_id: PathText,
    asked: Renewal,
    if_match: IfMatch = None,
) -> SubscriptionAnswer:
    """Move the end of the lease to a later moment. It needs the ticket."""
    context = context_of(request)
    end = choose_end(context, asked.valid_until, asked.lease)

    def change(found: Subscription) -> Change:
        return Renew(found.id, end, if_revision=found.revision)

    await _change(context, caller, subscription_id, if_match, change)
    return await _answer(context, response, subscription_id)


@router.delete("/{subscription_id}", status_code=204, summary="Unsubscribe")
async def unsubscribe(
    request: Request, caller: Anybody, subscription_id: PathText, if_match: IfMatch = None
) -> None:
    """End a subscription. It needs the ticket. Its mailbox stays until retention removes it."""
    context = context_of(request)

    def change(found: Subscription) -> Change:
        return Unsubscribe(found.id, if_revision=found.revision)

    await _change(context, caller, subscription_id, if_match, change)


# ── history ─────────────────────────────────────────────────────────────────────────────────


async def find_since(
    context: ServerContext, caller: Caller, history: int | str | None
) -> int | None:
    """The event after which a history begins; None if there is none. Raises a `Problem` if the
    caller may not have it.
    """
    if history is None:
        return None
    expect_reader(context, caller)
    server = context.match_server
    if server.intake is not None:
        raise Problem(422, "no-history", "a stream matches the events: there is no history")
    if isinstance(history, int):
        return history
    age = read_age(history)
    if age is None:
        raise Problem(422, "bad-request", f"history is {history[:100]!r}", hint=AGE_HINT)
    try:
        moment = server.live.store.moment - age
    except OverflowError:
        return 0
    return await in_thread(server.searcher.last_before, moment)


# ── reading ─────────────────────────────────────────────────────────────────────────────────


def choose_listed(caller: Caller, owner: str | None) -> str | None:
    """The owner whose subscriptions are listed; None for all. Without the role admin, the caller;
    raises a `Problem` for another.
    """
    if caller.actor.is_admin:
        return owner
    if owner not in (None, caller.actor.owner):
        raise Problem(403, "not-yours", f"subscriptions of {owner!r} are not yours")
    return caller.actor.owner


def path_of(name: str) -> str:
    """The path of a subscription. The first letter of one that is named as another path is encoded:
    paths are compared as they came.
    """
    encoded = quote(name, safe="")
    if name in RESERVED:
        encoded = f"%{ord(name[0]):02X}{name[1:]}"
    return f"{router.prefix}/{encoded}"


async def read_visible(
    context: ServerContext, caller: Caller, subscription_id: str
) -> Subscription:
    """A subscription that the caller may see; the same error if it is hidden or unknown."""
    found: Subscription | None
    found = await in_thread(context.match_server.live.get, subscription_id)
    has_ticket = shows_ticket(context, caller, found)  # always: it takes the same time
    if found is not None and (has_ticket or may_see(caller, found.owner)):
        return found
    raise _unknown(caller, subscription_id)


def _unknown(caller: Caller, subscription_id: str) -> Problem:
    hint = None
    if not caller.actor.is_admin:
        hint = "others are visible only with the key of their owner, or their ticket"
    return Problem(
        404, "unknown-subscription", f'there is no subscription "{subscription_id}"', hint=hint
    )


async def _read(context: ServerContext, subscription_id: str) -> Subscription:
    found: Subscription | None
    found = await in_thread(context.match_server.live.get, subscription_id)
    if found is None:
        raise Problem(404, "unknown-subscription", f'subscription "{subscription_id}" has ended')
    return found


async def _answer(
    context: ServerContext, response: Response, subscription_id: str
) -> SubscriptionAnswer:
    found = await _read(context, subscription_id)
    _describe(response, found)
    return SubscriptionAnswer(**to_json(found))


def _describe(response: Response, found: Subscription) -> None:
    response.headers["etag"] = f'"{found.revision}"'


def to_json(found: Subscription) -> dict[str, Any]:
    """The fields of a subscription that its owner sees."""
    return {
        "id": found.id,
        "number": found.created,
        "revision": found.revision,
        "expression": found.expression,
        "owner": found.owner,
        "tags": list(found.tags),
        "attributes": dict(found.attributes),
        "valid_from": found.valid_from,
        "valid_until": found.valid_until,
        "expires_soon": found.expires_soon,
    }


# ── changing ────────────────────────────────────────────────────────────────────────────────


_VERBS: Final = {Replace: "replace", Renew: "renew", Unsubscribe: "end"}  # in the log


async def _change(
    context: ServerContext,
    caller: Caller,
    subscription_id: str,
    if_match: str | None,
    make: Callable[[Subscription], Change],
) -> None:
    """Change the subscription that the caller has the right to, and no later one with its id.

    What an admin does with that of somebody else is in the log before it is done.
    """
    live, is_logged = context.match_server.live, False
    for _ in range(_ATTEMPTS):
        unknown = _unknown(caller, subscription_id)
        found = expect_change(context, caller, await in_thread(live.get, subscription_id), unknown)
        if if_match is not None and not _names_revision(if_match, found.revision):
            raise Problem(
                412,
                "refused-revision",
                f'subscription "{found.id}" has revision {found.revision}, not {if_match}',
                hint="get it again, and apply your change to what it is now",
                revision=found.revision,
            )
        change = make(found)
        if caller.actor.is_admin and caller.actor.owner != found.owner and not is_logged:
            detail = {"owner": found.owner, "revision": found.revision}
            action = Action(caller.actor, f"subscription.{_VERBS[type(change)]}", found.id, detail)
            await in_thread(context.match_server.broker.audit_log.append, action)
            is_logged = True
        (result,) = await result_of(live.submit([change]))
        try:
            expect(result)
        except RefusedError as error:
            if error.reason != Reason.REVISION:
                raise
        else:
            return
    raise Problem(409, "busy", f'subscription "{subscription_id}" is changed all the time')


def _names_revision(header: str, revision: int) -> bool:
    """Whether a header with entity tags names a revision."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or f'"{revision}"' in tags


def choose_owner(caller: Caller, asked: str | None) -> str:
    """The owner of a new subscription; raises a `Problem` if it may not be that one."""
    own = caller.actor.owner
    if asked is None or asked == own or caller.actor.is_admin:
        return own if asked is None else asked
    raise Problem(403, "not-yours", f"only an admin may subscribe for {asked!r}")


def choose_end(
    context: ServerContext, until: datetime | None, seconds: float | None
) -> datetime | None:
    """The end of a lease; raises a `Problem` if it is too late."""
    if until is not None and seconds is not None:
        raise Problem(422, "bad-request", "valid_until and lease are both given")
    settings, now = context.settings.subscriptions, context.match_server.live.store.moment
    if until is None:
        try:
            lease = settings.default_lease if seconds is None else timedelta(seconds=seconds)
            until = now + lease
        except OverflowError:
            raise Problem(
                422, "lease-too-long", f"a lease of {seconds:g} s ends after the year 9999"
            ) from None
    return _limit_end(context, until)


def _limit_end(context: ServerContext, until: datetime | None) -> datetime | None:
    longest = context.settings.subscriptions.longest_lease
    if longest is None:
        return until
    latest = context.match_server.live.store.moment + longest
    if until is None or read_at(until) > latest:
        raise Problem(
            422,
            "lease-too-long",
            f"a subscription is valid for at most {longest.total_seconds():g} s",
            hint="renew it before it ends",
            latest=spell_moment(latest),
        )
    return until


def limit_expression(context: ServerContext, caller: Caller, expression: str) -> None:
    """Raise a `Problem` if an expression is too large."""
    own = caller.limits.expression_bytes
    most = context.settings.limits.expression_size if own is None else own
    if len(expression.encode(errors="surrogatepass")) > most:
        raise Problem(
            413, "too-large", f"the expression is larger than {most:,} bytes", limit=int(most)
        )


async def _limit_number(context: ServerContext, caller: Caller, owner: str) -> None:
    own = caller.limits.subscriptions
    most = context.settings.limits.subscriptions if own is None else own
    if caller.actor.is_admin or not await in_thread(context.owners.is_full, owner, most):
        return
    raise too_many(owner, most)


def too_many(owner: str, most: int) -> Problem:
    """The problem of an owner who has as many subscriptions as allowed."""
    return Problem(
        403,
        "too-many-subscriptions",
        f"{owner!r} has {most:,} subscriptions, which is the limit",
        hint="unsubscribe some, or ask an administrator",
        limit=most,
    )
