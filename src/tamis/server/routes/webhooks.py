"""Webhooks: register, watch, pause, send again."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tamis.broker.checking import expect_url
from tamis.broker.states import LetterState, WebhookState
from tamis.broker.webhook_messages import WebhookMessage, name_test, spell_test
from tamis.outgoing import RefusedAddressError
from tamis.server.auth import Anybody, choose_most
from tamis.server.context import context_of, in_thread
from tamis.server.contract import problems
from tamis.server.mailbox_reader import read_position, spell_position
from tamis.server.models import Asked
from tamis.server.problems import Problem
from tamis.server.targets import (
    OnMailbox,
    find_actor,
    find_target,
    name_mailboxes,
    read_list,
    unknown,
)

if TYPE_CHECKING:
    from tamis.broker.rights import Actor
    from tamis.broker.webhooks import Webhook
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], responses=problems(404, 409, 410))

MOST_PAGE: Final = 1_000
Number = Annotated[int, Path(ge=1, lt=1 << 63)]
Cursor = Annotated[int | None, Query(ge=0, lt=1 << 63)]
Limit = Annotated[int, Query(ge=1, le=MOST_PAGE)]


class NewWebhook(OnMailbox):
    """A webhook to register, for matches from now on."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"subscription": "adults", "url": "https://example.com/hook"}]
        },
    )

    url: str
    secret: str | None = Field(None, description="whsec_ and base64; by default a random one.")


class Resumption(Asked):
    """How to go on."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"after": None}]})

    after: str | None = Field(None, description="A cursor; by default after the last delivery.")


class Rotation(Asked):
    """A new secret."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"overlap": 3_600}]})

    secret: str | None = Field(None, description="whsec_ and base64; by default a random one.")
    overlap: int = Field(86_400, ge=0, le=30 * 86_400, description="Seconds with both secrets.")


class LetterChoice(Asked):
    """Which dead letters; all of them by default."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"numbers": [3, 4]}]})

    numbers: list[int] | None = Field(None, max_length=MOST_PAGE)


class WebhookAnswer(BaseModel):
    """A webhook."""

    number: int
    mailbox: str
    mailbox_name: str | None = Field(
        None, description="If it is looked up: the subscription's id, or the channel's name."
    )
    owner: str
    url: str
    created: datetime
    state: WebhookState
    reason: str | None = Field(description="Why it is disabled.")
    cursor: str = Field(description="Events up to this one are delivered or given up.")
    failed_attempts: int
    next_attempt: datetime | None
    last_status: int | None
    last_error: str | None
    failing_since: datetime | None


class NewWebhookAnswer(WebhookAnswer):
    """A new webhook, with its secret, which is shown once."""

    secret: str


class WebhookPage(BaseModel):
    """A page of webhooks."""

    webhooks: list[WebhookAnswer]
    cursor: int | None


class SecretAnswer(BaseModel):
    """A signing secret, which is shown once."""

    secret: str


class DeliveryAnswer(BaseModel):
    """One attempt."""

    number: int
    moment: datetime
    event: int
    attempt: int
    status: int | None
    milliseconds: int
    error: str | None


class DeliveryPage(BaseModel):
    """A page of recent attempts, the newest first."""

    deliveries: list[DeliveryAnswer]
    cursor: int | None


class LetterAnswer(BaseModel):
    """An event that was given up."""

    number: int
    event: int
    epoch: str
    died: datetime
    attempts: int
    state: LetterState
    last_status: int | None
    last_error: str | None


class LetterPage(BaseModel):
    """A page of dead letters, the oldest first."""

    letters: list[LetterAnswer]
    cursor: int | None


class CountAnswer(BaseModel):
    """How many."""

    changed: int


class TestAnswer(BaseModel):
    """What came of a test."""

    delivered: bool
    status: int | None
    milliseconds: int
    error: str | None


# ── registration ────────────────────────────────────────────────────────────────────────────


@router.post("", status_code=201, summary="Register a webhook")
async def create_webhook(
    request: Request, response: Response, caller: Anybody, asked: NewWebhook
) -> NewWebhookAnswer:
    """Send the matches of a mailbox, from now on, to a URL. The secret in the answer is shown only
    here: requests are signed with it as Standard Webhooks says.
    """
    context = context_of(request)
    server = context.match_server
    target = await find_target(context, caller, asked.subscription, asked.channel)
    await _expect_allowed(context, expect_url(asked.url))
    made = await in_thread(
        server.broker.webhooks.create,
        target.actor,
        target.mailbox,
        asked.url,
        server.mailboxes.head,
        asked.secret,
        most=choose_most(caller, context.settings.limits.webhooks),
    )
    await context.deliveries.refresh_webhook(made.webhook.number)
    response.headers["location"] = f"{router.prefix}/{made.webhook.number}"
    return NewWebhookAnswer(**_describe(made.webhook).model_dump(), secret=made.secret.reveal())


@router.get("", summary="List webhooks")
async def list_webhooks(  # noqa: PLR0913 - one argument for each way to choose
    request: Request,
    caller: Anybody,
    subscription: str | None = None,
    channel: str | None = None,
    state: WebhookState | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> WebhookPage:
    """A page of webhooks, the oldest first: of a mailbox, or your own."""
    context = context_of(request)
    read = partial(
        context.match_server.broker.webhooks.list, state=state, after=cursor, limit=limit
    )
    page = await read_list(context, caller, (subscription, channel), read, _describe)
    return WebhookPage(webhooks=page.items, cursor=page.cursor)


@router.get("/{number}", summary="Get a webhook")
async def get_webhook(request: Request, caller: Anybody, number: Number) -> WebhookAnswer:
    """The webhook, and the state of its deliveries."""
    context = context_of(request)
    webhook, _ = await _find(context, caller, number)
    names = await name_mailboxes(context, {webhook.mailbox})
    return _describe(webhook, names.get(webhook.mailbox))


@router.delete("/{number}", status_code=204, summary="Delete a webhook")
async def delete_webhook(request: Request, caller: Anybody, number: Number) -> None:
    """Send nothing more, and forget its deliveries and dead letters."""
    context = context_of(request)
    _, actor = await _find(context, caller, number)
    await in_thread(context.match_server.broker.webhooks.delete, actor, number)
    await context.deliveries.refresh_webhook(number)


# ── changes ─────────────────────────────────────────────────────────────────────────────────


@router.post("/{number}/pause", summary="Pause a webhook")
async def pause_webhook(request: Request, caller: Anybody, number: Number) -> WebhookAnswer:
    """Send nothing until it is resumed; nothing is lost, except by retention."""
    context = context_of(request)
    _, actor = await _find(context, caller, number)
    webhook = await in_thread(context.match_server.broker.webhooks.pause, actor, number)
    await context.deliveries.refresh_webhook(number)
    return _describe(webhook)


@router.post("/{number}/resume", summary="Resume a webhook")
async def resume_webhook(
    request: Request, caller: Anybody, number: Number, asked: Resumption
) -> WebhookAnswer:
    """Go on after the last delivered event, or after a cursor; also if it was disabled."""
    context = context_of(request)
    server = context.match_server
    _, actor = await _find(context, caller, number)
    if asked.after is not None:
        head = server.mailboxes.head
        position = read_position(asked.after, head)
        await in_thread(server.broker.webhooks.move, actor, number, position, head)
    webhook = await in_thread(server.broker.webhooks.resume, actor, number)
    await context.deliveries.refresh_webhook(number)
    return _describe(webhook)


@router.post("/{number}/rotate", summary="Replace the secret of a webhook")
async def rotate_secret(
    request: Request, caller: Anybody, number: Number, asked: Rotation
) -> SecretAnswer:
    """Sign with a new secret, which is shown only here. For the overlap, requests have a signature
    with each of both.
    """
    context = context_of(request)
    _, actor = await _find(context, caller, number)
    rotate = context.match_server.broker.webhooks.rotate
    made = await in_thread(
        rotate, actor, number, overlap_seconds=asked.overlap, secret=asked.secret
    )
    return SecretAnswer(secret=made.reveal())


@router.post("/{number}/test", summary="Send a test to a webhook")
async def test_webhook(request: Request, caller: Anybody, number: Number) -> TestAnswer:
    """Send a signed message of the type "test" once, and report the result."""
    context = context_of(request)
    server = context.match_server
    webhook, _ = await _find(context, caller, number)
    secrets = await in_thread(server.broker.webhooks.secrets, number)
    body = spell_test(number, server.live.store.moment)
    message = WebhookMessage(webhook.url, name_test(), body, secrets)
    result = await context.deliveries.sender.send(message)
    return TestAnswer(
        delivered=result.is_success(),
        status=result.status,
        milliseconds=result.milliseconds,
        error=result.error,
    )


# ── what happened ───────────────────────────────────────────────────────────────────────────


@router.get("/{number}/deliveries", summary="List recent deliveries")
async def list_deliveries(
    request: Request, caller: Anybody, number: Number, cursor: Cursor = None, limit: Limit = 100
) -> DeliveryPage:
    """The recent attempts, the newest first."""
    context = context_of(request)
    await _find(context, caller, number)
    deliveries = context.match_server.broker.webhooks.deliveries
    page = await in_thread(deliveries, number, before=cursor, limit=limit)
    shown = [DeliveryAnswer(**own._asdict()) for own in page.items]
    return DeliveryPage(deliveries=shown, cursor=page.cursor)


@router.get("/{number}/dead-letters", summary="List dead letters")
async def list_letters(
    request: Request, caller: Anybody, number: Number, cursor: Cursor = None, limit: Limit = 100
) -> LetterPage:
    """The events that were given up, the oldest first."""
    context = context_of(request)
    await _find(context, caller, number)
    letters = context.match_server.broker.webhooks.dead_letters
    page = await in_thread(letters.list, number, after=cursor, limit=limit)
    shown = [
        LetterAnswer(
            number=own.number,
            event=own.position.event,
            epoch=own.position.epoch,
            died=own.died,
            attempts=own.total_attempts,
            state=own.state,
            last_status=own.attempt.last_status,
            last_error=own.attempt.last_error,
        )
        for own in page.items
    ]
    return LetterPage(letters=shown, cursor=page.cursor)


@router.post("/{number}/dead-letters/send", summary="Send dead letters again")
async def send_letters(
    request: Request, caller: Anybody, number: Number, asked: LetterChoice
) -> CountAnswer:
    """Queue dead letters; those that are delivered are no longer listed."""
    context = context_of(request)
    _, actor = await _find(context, caller, number)
    letters = context.match_server.broker.webhooks.dead_letters
    return CountAnswer(changed=await in_thread(letters.send_again, actor, number, asked.numbers))


@router.post("/{number}/dead-letters/delete", summary="Delete dead letters")
async def delete_letters(
    request: Request, caller: Anybody, number: Number, asked: LetterChoice
) -> CountAnswer:
    """Forget dead letters."""
    context = context_of(request)
    _, actor = await _find(context, caller, number)
    letters = context.match_server.broker.webhooks.dead_letters
    return CountAnswer(changed=await in_thread(letters.delete, actor, number, asked.numbers))


async def _find(context: ServerContext, caller: Caller, number: int) -> tuple[Webhook, Actor]:
    """A webhook that the caller may handle."""
    webhook = await in_thread(context.match_server.broker.webhooks.get, number)
    if webhook is None:
        raise unknown(f"webhook {number}")
    what = f"webhook {number}"
    return webhook, await find_actor(context, caller, webhook.mailbox, webhook.owner, what)


async def _expect_allowed(context: ServerContext, url: str) -> None:
    """Refuse at once what every attempt would refuse. A name that is unknown now may be known
    later.
    """
    try:
        await context.deliveries.sender.expect_allowed(url)
    except RefusedAddressError as error:
        raise Problem(
            422,
            "refused-address",
            str(error),
            hint="delivery.allow_private_addresses of the server's settings allows it",
        ) from None
    except (OSError, UnicodeError):
        return


def _describe(webhook: Webhook, name: str | None = None) -> WebhookAnswer:
    attempt = webhook.attempt
    return WebhookAnswer(
        number=webhook.number,
        mailbox=str(webhook.mailbox),
        mailbox_name=name,
        owner=webhook.owner,
        url=webhook.url,
        created=webhook.created,
        state=webhook.state,
        reason=webhook.reason,
        cursor=spell_position(*webhook.position),
        failed_attempts=attempt.n_failed,
        next_attempt=attempt.next_at,
        last_status=attempt.last_status,
        last_error=attempt.last_error,
        failing_since=attempt.failing_since,
    )
