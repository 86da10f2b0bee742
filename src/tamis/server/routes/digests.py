"""Digests: matches by e-mail, one message an hour or a day."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import HTMLResponse

from tamis.broker.digest_times import DigestTime, Period
from tamis.broker.rights import Actor
from tamis.broker.secrets import Purpose
from tamis.server.auth import Anybody
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.mailer import find_number
from tamis.server.problems import Problem
from tamis.server.targets import (
    OnMailbox,
    find_actor,
    find_target,
    read_list,
    unknown,
)

if TYPE_CHECKING:
    from tamis.broker.digests import Digest
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(tags=["digests"], responses=problems(404, 409, 410, 421))

MOST_PAGE: Final = 1_000
Number = Annotated[int, Path(ge=1, lt=1 << 63)]
_PAGE_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
    # With `no-referrer`, browsers send the buttons of these pages with `Origin: null`. The address
    # of the page, which is a secret, is shown to no other site.
    "referrer-policy": "same-origin",
}


def _write_page(body: str) -> str:
    head = '<!doctype html><html lang="en"><head><title>Digests</title></head>'
    return f"{head}<body>{body}</body></html>"


def _write_form(question: str, button: str) -> str:
    return _write_page(f'<form method="post"><p>{question}</p><button>{button}</button></form>')


_ASK: Final = _write_form("End these digests?", "End them")
_DONE: Final = _write_page("<p>No more digests will be sent.</p>")
_ASK_FIRST: Final = _write_form("Do you want these digests?", "Send them")
_CONFIRMED: Final = _write_page("<p>The digests will be sent. Each has a link to end them.</p>")


class NewDigest(OnMailbox):
    """A digest to send, of the matches from now on."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"subscription": "adults", "address": "ann@example.com"}]},
    )

    address: str = Field(description="An e-mail address, without a name.")
    period: Period = Period.DAILY
    hour: int = Field(0, ge=0, le=23, description="Of a daily digest.")
    minute: int = Field(0, ge=0, le=59)
    zone: str = "UTC"


class DigestAnswer(BaseModel):
    """A digest."""

    number: int
    mailbox: str
    mailbox_name: str | None = Field(
        None, description="If it is looked up: the subscription's id, or the channel's name."
    )
    owner: str
    address: str
    period: Period
    hour: int
    minute: int
    zone: str
    created: datetime
    next_due: datetime
    last_sent: datetime | None
    confirmed: datetime | None = Field(description="Null until the address has confirmed it.")
    failed_attempts: int
    last_error: str | None


class DigestPage(BaseModel):
    """A page of digests."""

    digests: list[DigestAnswer]
    cursor: int | None


@router.post("/v1/digests", status_code=201, summary="Make a digest")
async def create_digest(request: Request, caller: Anybody, asked: NewDigest) -> DigestAnswer:
    """Send one message for all matches of an hour or a day, and no message if nothing matched. The
    address gets a link to confirm it first, which is valid for three days; until then, nothing
    else is sent to it.
    """
    context = context_of(request)
    server = context.match_server
    target = await find_target(context, caller, asked.subscription, asked.channel)
    if not context.deliveries.mailer.is_configured:
        raise Problem(
            409,
            "no-mail-server",
            "this server has no mail server",
            hint="its owner has to set delivery.smtp_host and delivery.smtp_sender",
        )
    made = await in_thread(
        server.broker.digests.create,
        target.actor,
        target.mailbox,
        asked.address,
        DigestTime(asked.period, asked.minute, asked.hour, asked.zone),
        server.mailboxes.head,
        must_confirm=context.deliveries.mailer.must_confirm(asked.address),
    )
    return _describe(made)


@router.get("/v1/digests", summary="List digests")
async def list_digests(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Anybody,
    subscription: str | None = None,
    channel: str | None = None,
    cursor: Annotated[int | None, Query(ge=0, lt=1 << 63)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = 100,
) -> DigestPage:
    """A page of digests, the oldest first: of a mailbox, or your own."""
    context = context_of(request)
    read = partial(context.match_server.broker.digests.list, after=cursor, limit=limit)
    page = await read_list(context, caller, (subscription, channel), read, _describe)
    return DigestPage(digests=page.items, cursor=page.cursor)


@router.get("/v1/digests/{number}", summary="Get a digest")
async def get_digest(request: Request, caller: Anybody, number: Number) -> DigestAnswer:
    """The digest, and its state."""
    digest, _ = await _find(context_of(request), caller, number)
    return _describe(digest)


@router.delete("/v1/digests/{number}", status_code=204, summary="Delete a digest")
async def delete_digest(request: Request, caller: Anybody, number: Number) -> None:
    """Stop sending messages."""
    context = context_of(request)
    _, actor = await _find(context, caller, number)
    await in_thread(context.match_server.broker.digests.delete, actor, number)


@router.get(
    "/digests/confirm/{token}",
    summary="Ask whether to confirm a digest",
    response_class=HTMLResponse,
)
async def ask_to_confirm(request: Request, caller: Anybody, token: str) -> HTMLResponse:
    """A page with a button: programs that look at links in messages confirm nothing."""
    await _find_by_token(context_of(request), Purpose.CONFIRM, token)
    return HTMLResponse(_ASK_FIRST, headers=_PAGE_HEADERS)


@router.post("/digests/confirm/{token}", summary="Confirm a digest", response_class=HTMLResponse)
async def confirm_by_token(request: Request, caller: Anybody, token: str) -> HTMLResponse:
    """From now on, the digest is sent to its address."""
    context = context_of(request)
    digest = await _find_by_token(context, Purpose.CONFIRM, token)
    await in_thread(context.match_server.broker.digests.confirm, digest.number)
    return HTMLResponse(_CONFIRMED, headers=_PAGE_HEADERS)


@router.get("/digests/{token}", summary="Ask whether to end a digest", response_class=HTMLResponse)
async def ask_to_end(request: Request, caller: Anybody, token: str) -> HTMLResponse:
    """A page with a button: programs that look at links in messages end nothing."""
    await _find_by_token(context_of(request), Purpose.UNSUBSCRIBE, token)
    return HTMLResponse(_ASK, headers=_PAGE_HEADERS)


@router.post("/digests/{token}", summary="End a digest", response_class=HTMLResponse)
async def end_by_token(request: Request, caller: Anybody, token: str) -> HTMLResponse:
    """Ends the digest, as mail programs do with one click (RFC 8058)."""
    context = context_of(request)
    digest = await _find_by_token(context, Purpose.UNSUBSCRIBE, token)
    actor = Actor("", mailboxes=frozenset({digest.mailbox}))
    await in_thread(context.match_server.broker.digests.delete, actor, digest.number)
    return HTMLResponse(_DONE, headers=_PAGE_HEADERS)


async def _find(context: ServerContext, caller: Caller, number: int) -> tuple[Digest, Actor]:
    what = f"digest {number}"
    digest = await in_thread(context.match_server.broker.digests.get, number)
    if digest is None:
        raise unknown(what)
    return digest, await find_actor(context, caller, digest.mailbox, digest.owner, what)


async def _find_by_token(context: ServerContext, purpose: Purpose, token: str) -> Digest:
    number = find_number(token)
    digest = None
    if number is not None:
        digest = await in_thread(context.match_server.broker.digests.get, number)
    if digest is None or not context.deliveries.mailer.verify(purpose, token, digest):
        raise Problem(404, "unknown-digest", "there is no such digest, or it has ended already")
    return digest


def _describe(digest: Digest, name: str | None = None) -> DigestAnswer:
    return DigestAnswer(
        number=digest.number,
        mailbox=str(digest.mailbox),
        mailbox_name=name,
        owner=digest.owner,
        address=digest.address,
        period=digest.at.period,
        hour=digest.at.hour,
        minute=digest.at.minute,
        zone=digest.at.zone,
        created=digest.created,
        next_due=digest.next_due,
        last_sent=digest.last_sent,
        confirmed=digest.confirmed,
        failed_attempts=digest.n_failed,
        last_error=digest.last_error,
    )
