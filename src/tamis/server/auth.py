"""Who asks, and whether they may."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from fastapi import Depends
from starlette.requests import HTTPConnection, Request

from tamis.broker.keys import NO_LIMITS, KeyLimits
from tamis.broker.rights import LOCAL, Actor, Role
from tamis.broker.secrets import Secret
from tamis.server.context import context_of, in_thread, needs_no_key
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime
    from typing import Any

    from tamis.server.context import ServerContext
    from tamis.subscriptions import Subscription

TICKET: Final = "tamis-ticket"  # the header with the ticket of a subscription
TOKEN: Final = "tamis-token"  # the header that proves that a change comes from the console
_SAFE: Final = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
_CHALLENGE: Final = {"www-authenticate": 'Bearer realm="tamis"'}
_ANONYMOUS: Final = Actor("")


class Caller(NamedTuple):
    """Whoever makes a request."""

    actor: Actor
    roles: frozenset[Role]
    limits: KeyLimits
    ticket: str | None  # as it was shown; not verified
    runs_server: bool = False  # the user who runs the server: files of this machine may be named
    expires: datetime | None = None  # when the key or the session does

    def may(self, role: Role) -> bool:
        """Whether the caller has a role."""
        return self.actor.is_admin or role in self.roles


async def find_caller(request: HTTPConnection) -> Caller:
    """The caller of a request; raises a `Problem` for a wrong key."""
    context, headers = context_of(request), request.headers
    if "authorization" not in headers and not await needs_no_key(context):
        text = show_session(request)
        if text is not None:
            return await _resume(context, request, text)
    return await identify(context, headers.get("authorization"), headers.get(TICKET))


def show_session(request: HTTPConnection) -> str | None:
    """The text of the session in the cookies of a request. A socket has none: pages of other
    origins can open sockets.
    """
    if request.scope["type"] != "http":
        return None
    return request.cookies.get(context_of(request).match_server.broker.sessions.cookie)


async def _resume(context: ServerContext, request: HTTPConnection, text: str) -> Caller:
    """The caller of a session. A change must show the token, which other pages cannot read."""
    sessions = context.match_server.broker.sessions
    session = await in_thread(sessions.find, text)
    if session is None:
        raise Problem(
            401,
            "session-ended",
            "the session has ended",
            hint="sign in again",
            headers=_CHALLENGE,
        )
    shown = request.headers.get(TOKEN, "")
    if request.scope["method"] not in _SAFE and not sessions.is_token(session, shown):
        raise Problem(
            403,
            "forged-request",
            "a change by a session needs the token of the page",
            hint=f"send the header {TOKEN} with the token that GET /v1/session returns",
        )
    key, ticket = session.key, request.headers.get(TICKET)
    return Caller(key.actor, key.roles, key.limits, ticket, expires=session.expires)


async def identify(context: ServerContext, shown: str | None, ticket: str | None) -> Caller:
    """Whoever shows this Authorization header and this ticket."""
    if shown is None:
        if await needs_no_key(context):
            return Caller(LOCAL, frozenset(Role), NO_LIMITS, ticket)
        roles = {Role.PUBLISH} if context.settings.server.allow_anonymous_publishing else set()
        return Caller(_ANONYMOUS, frozenset(roles), NO_LIMITS, ticket)
    scheme, _, text = shown.partition(" ")
    if scheme.lower() != "bearer":
        raise wrong_key("the Authorization header does not begin with Bearer")
    text = text.strip()
    if context.local_key is not None and context.local_key == Secret(text):
        return Caller(LOCAL, frozenset(Role), NO_LIMITS, ticket, runs_server=True)
    key = await in_thread(context.match_server.broker.keys.authenticate, text)
    if key is None:
        raise wrong_key()
    return Caller(key.actor, key.roles, key.limits, ticket, expires=key.expires)


def needs(role: Role | None) -> Callable[[Request], Coroutine[Any, Any, Caller]]:
    """A dependency: the caller, if they have a role; None: anybody who is known or has a ticket."""

    async def expect(request: Request) -> Caller:
        caller = await find_caller(request)
        request.state.key_id = caller.actor.key_id  # for the log
        request.state.caller = caller  # for errors, which must not show what others have
        limit_rate(request, caller)
        if role is not None:
            expect_role(caller, role)
        return caller

    return expect


Publishing = Annotated[Caller, Depends(needs(Role.PUBLISH))]
Subscribing = Annotated[Caller, Depends(needs(Role.SUBSCRIBE))]
Reading = Annotated[Caller, Depends(needs(Role.READ))]
Administrating = Annotated[Caller, Depends(needs(Role.ADMIN))]
Anybody = Annotated[Caller, Depends(needs(None))]


def limit_rate(request: HTTPConnection, caller: Caller) -> None:
    """Raise a `Problem` if the caller makes too many requests."""
    context = context_of(request)
    if caller.actor is LOCAL:
        return
    own = caller.limits.requests_per_second
    rate = context.settings.limits.requests_per_second if own is None else own
    client = request.client.host if request.client else ""
    wait = context.rates.take(caller.actor.key_id or f"address {client}", rate)
    if wait:
        raise Problem(
            429,
            "too-many-requests",
            f"more than {rate:g} requests per second",
            hint="wait, or send several events in one request",
            headers={"retry-after": str(math.ceil(wait))},
        )


def expect_role(caller: Caller, role: Role) -> None:
    """Raise a `Problem` unless the caller has a role."""
    if not caller.may(role):
        raise refuse(caller, role)


def refuse(caller: Caller, role: Role) -> Problem:
    """The problem of a caller without a role."""
    if not caller.actor.key_id:
        return wrong_key("this needs a key")
    return Problem(
        403, "missing-role", f"this needs a key with the role {role}", hint="ask an administrator"
    )


def wrong_key(detail: str = "the key is unknown, expired or revoked") -> Problem:
    """The problem of a caller who needs another key."""
    return Problem(
        401,
        "key-required",
        detail,
        hint="send Authorization: Bearer KEY; make a key with: tamis keys create",
        headers=_CHALLENGE,
    )


def may_see(caller: Caller, owner: str) -> bool:
    """Whether the caller may read what belongs to an owner."""
    is_owner = owner != "" and caller.actor.owner == owner
    return caller.actor.is_admin or is_owner


def choose_most(caller: Caller, most: int) -> int | None:
    """How many things of a kind an owner may have; None, for no limit, if an admin makes them."""
    return None if caller.actor.is_admin else most


def shows_ticket(context: ServerContext, caller: Caller, subscription: Subscription | None) -> bool:
    """Whether the caller has shown the ticket of a subscription; takes the same time if there is
    no subscription.
    """
    tickets = context.match_server.broker.tickets
    return tickets.verify(caller.ticket, subscription and subscription.ticket_hash)


def expect_change(
    context: ServerContext, caller: Caller, subscription: Subscription | None, unknown: Problem
) -> Subscription:
    """The subscription, if the caller may change it: with its ticket, or as an admin. Raises a
    `Problem`, which is `unknown` if the caller may not see it or if there is none.
    """
    is_right = shows_ticket(context, caller, subscription)  # always: it takes the same time
    if subscription is None:
        raise unknown
    if not (is_right or may_see(caller, subscription.owner)):
        raise unknown
    if not (is_right or caller.actor.is_admin):
        raise Problem(
            403,
            "wrong-ticket",
            f'subscription "{subscription.id}" can be changed only with its ticket',
            hint="send the header Tamis-Ticket, or use a key of an admin",
        )
    return subscription
