"""Webhooks: where matches are sent, how far that is, and what follows from a failure.

Events are sent in order, one at a time: the one on its way is the first after `position`. The
network is elsewhere; this module remembers and decides.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import func, insert, select, update

from tamis.arguments import expect_count
from tamis.broker.audit_log import Action, write_if_admin
from tamis.broker.backlogs import Backlog, read_backlog
from tamis.broker.checking import clean_error, expect_member, expect_url
from tamis.broker.dead_letters import DeadLetters, add_dead_letter
from tamis.broker.deliveries import (
    Delivery,
    Logged,
    log_delivery,
    to_attempt,
    to_columns,
    to_delivery,
)
from tamis.broker.ending import delete_webhooks
from tamis.broker.mailbox import Mailbox, Position, expect_position
from tamis.broker.owners import expect_mailbox
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page, select_owned
from tamis.broker.quotas import expect_room
from tamis.broker.retries import (
    DEFAULT_POLICY,
    Attempt,
    Decision,
    DeliveryResult,
    RetryPolicy,
    Verdict,
    decide_next,
)
from tamis.broker.rights import Actor, expect_right
from tamis.broker.signing import add_secret, find_secrets, make_secret, rotate_secret
from tamis.broker.states import WebhookState
from tamis.broker.tables import DELIVERIES, WEBHOOKS, take_numbers
from tamis.errors import UnknownItemError
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.broker.secrets import Secret
    from tamis.subscriptions import SubscriptionStore

OVERLAP_SECONDS: Final = 24 * 3600  # in which a replaced secret stays valid


class Webhook(NamedTuple):
    """A registered webhook, without its secrets."""

    number: int
    mailbox: Mailbox
    owner: str
    url: str
    created: datetime
    state: WebhookState
    reason: str | None  # why it is disabled
    position: Position  # events up to this one are delivered or given up
    attempt: Attempt  # of the next event


class NewWebhook(NamedTuple):
    """A webhook that was just registered."""

    webhook: Webhook
    secret: Secret


class Sent(NamedTuple):
    """An attempt that is over."""

    webhook: int
    position: Position  # of the event that was sent
    subscriptions: Sequence[int]  # the numbers of those that it matched, in this mailbox
    begun: int  # `Webhook.attempt.n_failed` when it was sent
    result: DeliveryResult


class Recorded(NamedTuple):
    """What followed from an attempt."""

    webhook: Webhook
    verdict: Verdict | None  # None: it was late, and only logged


class Webhooks:
    """The webhooks of a server."""

    def __init__(
        self,
        store: SubscriptionStore,
        policy: RetryPolicy = DEFAULT_POLICY,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._policy = policy
        self._dice = dice
        self.dead_letters = DeadLetters(store, policy, dice)

    # ── registration ────────────────────────────────────────────────────────────────────────

    def create(  # noqa: PLR0913 - all that a webhook has
        self,
        actor: Actor,
        mailbox: Mailbox,
        url: str,
        archive: Position,
        secret: str | None = None,
        *,
        most: int | None = None,
    ) -> NewWebhook:
        """Register a webhook for the events after the last one of the archive. An owner may have
        `most` webhooks.
        """
        url, signing, now = expect_url(url), make_secret(secret), self._store.now()

        def write(connection: Connection) -> Webhook:
            owner = expect_mailbox(connection, actor, mailbox)
            expect_room(connection, WEBHOOKS, owner, most)
            row = {
                "number": take_numbers(connection),
                "mailbox": str(mailbox),
                "owner": owner,
                "url": url,
                "created": now,
                "state": WebhookState.ACTIVE.value,
                "reason": None,
                "epoch": archive.epoch,
                "position": archive.event,
                "n_deliveries": 0,
            }
            connection.execute(insert(WEBHOOKS), row | to_columns(Attempt()))
            webhook = _get(connection, row["number"])
            add_secret(connection, webhook.number, signing, now)
            _log(connection, now, actor, "create", webhook)
            return webhook

        return NewWebhook(self._store.run(write), signing)

    def get(self, number: int) -> Webhook | None:
        """The webhook with this number."""
        query = select(WEBHOOKS).where(WEBHOOKS.c.number == expect_count(number, "number"))
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _to_webhook(row)

    def list(
        self,
        *,
        mailbox: Mailbox | None = None,
        owner: str | None = None,
        state: WebhookState | str | None = None,
        after: int | None = None,
        limit: int = PAGE_SIZE,
    ) -> Page[Webhook]:
        """A page of the webhooks, the oldest first."""
        query = select_owned(WEBHOOKS, mailbox, owner)
        if state is not None:
            wanted = expect_member(state, WebhookState, "state")
            query = query.where(WEBHOOKS.c.state == wanted.value)
        return read_page(self._store, query, Cut(WEBHOOKS.c.number, after, limit), _to_webhook)

    def list_due(self, *, limit: int = PAGE_SIZE) -> Sequence[Webhook]:
        """Active webhooks whose next attempt after a failure is due, the longest waiting first."""
        is_due = WEBHOOKS.c.next_attempt <= self._store.now()
        query = select(WEBHOOKS).where(WEBHOOKS.c.state == WebhookState.ACTIVE.value, is_due)
        query = query.order_by(WEBHOOKS.c.next_attempt, WEBHOOKS.c.number)
        with self._store.read() as connection:
            rows = connection.execute(query.limit(expect_count(limit, "limit")))
            return [_to_webhook(row) for row in rows]

    def backlog(self, epoch: str) -> Backlog | None:
        """What active webhooks whose last attempt failed still have to get; None if all succeed."""
        table = WEBHOOKS.c
        query = select(func.min(table.position), func.min(table.failing_since)).where(
            table.state == WebhookState.ACTIVE.value, table.attempts > 0, table.epoch == epoch
        )
        return read_backlog(self._store, query)

    def delete(self, actor: Actor, number: int) -> int:
        """Delete a webhook; returns how many dead letters went with it."""
        now = self._store.now()

        def write(connection: Connection) -> int:
            webhook = _expect(connection, actor, number)
            _log(connection, now, actor, "delete", webhook)
            return delete_webhooks(connection, [number])

        return self._store.run(write)

    # ── changes by its owner ────────────────────────────────────────────────────────────────

    def set_url(self, actor: Actor, number: int, url: str) -> Webhook:
        """Send to another address; an event that is waiting is tried there at once."""
        return self._change(actor, number, "set_url", {"url": expect_url(url)})

    def pause(self, actor: Actor, number: int) -> Webhook:
        """Send nothing until it is resumed; nothing is lost, except by retention."""
        return self._change(actor, number, "pause", {"state": WebhookState.PAUSED.value})

    def resume(self, actor: Actor, number: int) -> Webhook:
        """Go on after the last delivered event, also if it was disabled."""
        values = {"state": WebhookState.ACTIVE.value, "reason": None}
        return self._change(actor, number, "resume", values)

    def move(self, actor: Actor, number: int, position: Position, archive: Position) -> Webhook:
        """Go on after another event, back too, or in another epoch."""
        epoch, event = expect_position(position, archive, "the position")
        return self._change(actor, number, "move", {"epoch": epoch, "position": event})

    def rotate(
        self,
        actor: Actor,
        number: int,
        *,
        overlap_seconds: int = OVERLAP_SECONDS,
        secret: str | None = None,
    ) -> Secret:
        """Sign with a new secret; for the overlap, requests are signed with the old one too."""
        signing, now = make_secret(secret), self._store.now()
        overlap = expect_count(overlap_seconds, "overlap_seconds", least=0) * 1_000_000

        def write(connection: Connection) -> None:
            webhook = _expect(connection, actor, number)
            rotate_secret(connection, number, signing, now, overlap)
            _log(connection, now, actor, "rotate", webhook)

        self._store.run(write)
        return signing

    def secrets(self, number: int) -> Sequence[Secret]:
        """The secrets to sign with now, the newest first."""
        with self._store.read() as connection:
            return find_secrets(connection, number, self._store.now())

    def deliveries(
        self, number: int, *, before: int | None = None, limit: int = PAGE_SIZE
    ) -> Page[Delivery]:
        """A page of the recent deliveries, the newest first."""
        query = select(DELIVERIES).where(DELIVERIES.c.webhook == expect_count(number, "number"))
        cut = Cut(DELIVERIES.c.number, before, limit, is_descending=True)
        return read_page(self._store, query, cut, to_delivery)

    # ── results of deliveries ───────────────────────────────────────────────────────────────

    def record(self, sent: Sent) -> Recorded | None:
        """Store the result of an attempt, and decide what follows; None if it was deleted.

        A late result is not credited to another delivery: a failure counts only for the attempt
        that it belongs to, and neither counts for an event that is behind the position.
        """
        return self.submit(sent).result()

    def submit(self, sent: Sent) -> Future[Recorded | None]:
        """As `record`, without waiting. Those that wait share a transaction."""
        now, dice = self._store.now(), self._dice()

        def write(connection: Connection) -> Recorded | None:
            webhook = _find(connection, sent.webhook)
            if webhook is None:
                return None
            logged = Logged(sent.position.event, sent.begun + 1, sent.result)
            log_delivery(connection, webhook.number, now, logged)
            if _is_late(webhook, sent):
                return Recorded(webhook, None)
            moment = from_microseconds(now)
            decision = decide_next(webhook.attempt, sent.result, moment, dice, self._policy)
            _apply(connection, webhook, sent, decision, now)
            return Recorded(_get(connection, webhook.number), decision.verdict)

        return self._store.submit_task(write)

    def advance(self, number: int, position: Position) -> bool:
        """Move past events that are not for this webhook; returns whether it moved.

        Without this, retention would report events as missed that the mailbox never had.
        """
        table = WEBHOOKS.c
        is_behind = (table.epoch == position.epoch, table.position < position.event)
        statement = (
            update(WEBHOOKS)
            .where(table.number == number, table.attempts == 0, *is_behind)
            .values(position=position.event)
        )
        return self._store.run(lambda connection: connection.execute(statement).rowcount > 0)

    def disable(self, number: int, reason: str) -> None:
        """Send nothing more, for a reason of the server."""
        self._store.run(lambda connection: disable(connection, number, reason))

    def _change(self, actor: Actor, number: int, action: str, values: dict[str, Any]) -> Webhook:
        now = self._store.now()

        def write(connection: Connection) -> Webhook:
            _expect(connection, actor, number)
            _update(connection, number, values | to_columns(Attempt()))
            webhook = _get(connection, number)
            _log(connection, now, actor, action, webhook)
            return webhook

        return self._store.run(write)


def disable(connection: Connection, number: int, reason: str) -> None:
    """Send nothing more to a webhook."""
    state = WebhookState.DISABLED.value
    _update(connection, number, {"state": state, "reason": clean_error(reason)})


def _is_late(webhook: Webhook, sent: Sent) -> bool:
    if sent.position.epoch != webhook.position.epoch:
        return True
    if sent.position.event <= webhook.position.event:
        return True
    is_same = webhook.state is WebhookState.ACTIVE and webhook.attempt.n_failed == sent.begun
    return not sent.result.is_success() and not is_same


def _apply(
    connection: Connection, webhook: Webhook, sent: Sent, decision: Decision, now: int
) -> None:
    values = to_columns(decision.attempt)
    if decision.verdict in (Verdict.DELIVERED, Verdict.DEAD):
        values["position"] = sent.position.event
    _update(connection, webhook.number, values)
    if decision.verdict is Verdict.DEAD:
        n_attempts = webhook.attempt.n_failed + 1
        add_dead_letter(connection, sent, n_attempts, now)
    elif decision.verdict is Verdict.DISABLE:
        disable(connection, webhook.number, decision.reason or "")


def _update(connection: Connection, number: int, values: dict[str, Any]) -> None:
    connection.execute(update(WEBHOOKS).where(WEBHOOKS.c.number == number).values(values))


def _find(connection: Connection, number: int) -> Webhook | None:
    row = connection.execute(select(WEBHOOKS).where(WEBHOOKS.c.number == number)).one_or_none()
    return None if row is None else _to_webhook(row)


def _get(connection: Connection, number: Any) -> Webhook:
    webhook = _find(connection, expect_count(number, "number"))
    if webhook is None:
        raise UnknownItemError(f"there is no webhook {number}")
    return webhook


def _expect(connection: Connection, actor: Actor, number: int) -> Webhook:
    webhook = _get(connection, number)
    expect_right(actor, webhook.owner, f"webhook {number}", webhook.mailbox)
    return webhook


def _log(connection: Connection, now: int, actor: Actor, action: str, webhook: Webhook) -> None:
    detail = {"mailbox": str(webhook.mailbox), "owner": webhook.owner}
    target = str(webhook.number)
    write_if_admin(connection, now, Action(actor, f"webhook.{action}", target, detail))


def _to_webhook(row: Any) -> Webhook:
    return Webhook(
        row.number,
        Mailbox.parse(row.mailbox),
        row.owner,
        row.url,
        from_microseconds(row.created),
        WebhookState(row.state),
        row.reason,
        Position(row.epoch, row.position),
        to_attempt(row),
    )
