"""Sign in to the console with a key, sign out, and who is signed in."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from tamis import __version__
from tamis.broker.keys import NO_LIMITS
from tamis.broker.rights import LOCAL, Actor, Role
from tamis.server.archived import may_read_archive
from tamis.server.auth import Anybody, Caller, find_caller, limit_rate, show_session, wrong_key
from tamis.server.context import ServerContext, context_of, in_thread, needs_no_key

if TYPE_CHECKING:
    from tamis.broker.sessions import Session

router = APIRouter(prefix="/v1/session", tags=["session"])

_NOBODY: Final = Caller(Actor(""), frozenset(), NO_LIMITS, None)
_COOKIE: Final[dict[str, Any]] = {
    "headers": {"Set-Cookie": {"description": "The session.", "schema": {"type": "string"}}}
}


class SessionAnswer(BaseModel):
    """Who asks, and what they may do."""

    state: Literal["open", "signed-in", "signed-out", "ended"] = Field(
        description="open: no key is needed, since there are none; ended: sign in again."
    )
    owner: str
    key_id: str
    roles: list[Role]
    reads_archive: bool = Field(description="Whether all events may be read.")
    token: str | None = Field(description="For the header Tamis-Token of each change.")
    expires: datetime | None
    instance: str = Field(description="Another one after a restart of the server.")
    version: str


@router.get("", summary="Who is signed in?")
async def get_session(request: Request) -> SessionAnswer:
    """Who asks: by a key, by the cookie of a session, or without either."""
    context = context_of(request)
    text = None if "authorization" in request.headers else show_session(request)
    if text is None or await needs_no_key(context):
        caller = await find_caller(request)
        limit_rate(request, caller)
        return _describe(context, caller)
    limit_rate(request, _NOBODY)
    session = await in_thread(context.match_server.broker.sessions.find, text)
    if session is None:
        return _describe(context, _NOBODY).model_copy(update={"state": "ended"})
    return _describe_session(context, session)


@router.post("", summary="Sign in", responses={200: _COOKIE})
async def sign_in(request: Request, response: Response, caller: Anybody) -> SessionAnswer:
    """Begin a session of the key in the Authorization header, as a cookie that scripts cannot read.
    A change by the cookie needs the header Tamis-Token.
    """
    context = context_of(request)
    broker = context.match_server.broker
    if caller.actor is LOCAL and await needs_no_key(context):
        return _describe(context, caller)
    key = await in_thread(broker.keys.find_valid, caller.actor.key_id)
    if key is None:
        raise wrong_key("a key is needed to sign in")
    session = broker.sessions.begin(key)
    response.set_cookie(
        broker.sessions.cookie,
        session.text.reveal(),
        expires=session.expires,
        secure=_is_secure(request),
        httponly=True,
        samesite="strict",
    )
    return _describe_session(context, session)


@router.delete("", status_code=204, summary="Sign out")
async def sign_out(request: Request, response: Response) -> None:
    """Remove the cookie."""
    limit_rate(request, _NOBODY)
    sessions = context_of(request).match_server.broker.sessions
    response.delete_cookie(
        sessions.cookie, secure=_is_secure(request), httponly=True, samesite="strict"
    )


def _is_secure(request: Request) -> bool:
    """Whether clients reach the server by HTTPS: its own, or that of a proxy."""
    public = context_of(request).settings.server.public_url
    return request.url.scheme == "https" or public.startswith("https:")


def _describe_session(context: ServerContext, session: Session) -> SessionAnswer:
    key = session.key
    caller = Caller(key.actor, key.roles, key.limits, None)
    token = context.match_server.broker.sessions.make_token(session)
    return _describe(context, caller).model_copy(
        update={"token": token, "expires": session.expires}
    )


def _describe(context: ServerContext, caller: Caller) -> SessionAnswer:
    is_known = caller.actor.key_id != ""
    is_open = caller.actor is LOCAL and not caller.runs_server
    return SessionAnswer(
        state="open" if is_open else "signed-in" if is_known else "signed-out",
        owner=caller.actor.owner,
        key_id=caller.actor.key_id,
        roles=sorted(set(Role) if caller.actor.is_admin else caller.roles),
        reads_archive=may_read_archive(context, caller),
        token=None,
        expires=None,
        instance=context.instance,
        version=__version__,
    )
