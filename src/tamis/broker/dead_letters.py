"""Dead letters: events that a webhook did not take. They can be sent again, or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from sqlalchemy import and_, delete, insert, select, update

from tamis.arguments import expect_count
from tamis.broker.audit_log import Action, write_if_admin
from tamis.broker.checking import clean_error, expect_moment
from tamis.broker.deliveries import Logged, log_delivery, to_attempt, to_columns
from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page
from tamis.broker.retries import Attempt, Decision, DeliveryResult, Verdict, decide_next
from tamis.broker.rights import Actor, expect_right
from tamis.broker.states import LetterState, WebhookState
from tamis.broker.tables import DEAD_LETTERS, WEBHOOKS, take_numbers
from tamis.errors import InputError, UnknownItemError
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from tamis.broker.retries import RetryPolicy
    from tamis.broker.webhooks import Sent
    from tamis.subscriptions import SubscriptionStore


class DeadLetter(NamedTuple):
    """An event that was given up."""

    number: int
    webhook: int
    position: Position  # of the event
    subscriptions: tuple[int, ...]  # numbers of those that it matched, in the webhook's mailbox
    died: datetime
    total_attempts: int
    state: LetterState
    attempt: Attempt  # of sending it again


class DeadLetters:
    """The dead letters of all webhooks."""

    def __init__(
        self, store: SubscriptionStore, policy: RetryPolicy, dice: Callable[[], float]
    ) -> None:
        self._store = store
        self._policy = policy
        self._dice = dice

    def list(
        self, webhook: int, *, after: int | None = None, limit: int = PAGE_SIZE
    ) -> Page[DeadLetter]:
        """A page of the dead letters of a webhook, the oldest first."""
        is_own = DEAD_LETTERS.c.webhook == expect_count(webhook, "webhook")
        query = select(DEAD_LETTERS).where(is_own)
        return read_page(self._store, query, Cut(DEAD_LETTERS.c.number, after, limit), _to_letter)

    def send_again(self, actor: Actor, webhook: int, numbers: Iterable[int] | None = None) -> int:
        """Queue dead letters of a webhook, or all of them; returns how many."""
        now = self._store.now()
        values = to_columns(Attempt(next_at=from_microseconds(now))) | {
            "state": LetterState.QUEUED.value
        }
        wanted = and_(_wanted(webhook, numbers), DEAD_LETTERS.c.state == LetterState.DEAD.value)

        def write(connection: Connection) -> int:
            _expect_webhook(connection, actor, webhook)
            n_queued = connection.execute(
                update(DEAD_LETTERS).where(wanted).values(values)
            ).rowcount
            detail = {"n_letters": n_queued}
            action = Action(actor, "dead_letters.send_again", str(webhook), detail)
            write_if_admin(connection, now, action)
            return n_queued

        return self._store.run(write)

    def delete(self, actor: Actor, webhook: int, numbers: Iterable[int] | None = None) -> int:
        """Delete dead letters of a webhook, or all of them; returns how many."""
        now, wanted = self._store.now(), _wanted(webhook, numbers)

        def write(connection: Connection) -> int:
            _expect_webhook(connection, actor, webhook)
            n_deleted = connection.execute(delete(DEAD_LETTERS).where(wanted)).rowcount
            detail = {"n_letters": n_deleted}
            action = Action(actor, "dead_letters.delete", str(webhook), detail)
            write_if_admin(connection, now, action)
            return n_deleted

        return self._store.run(write)

    def prune(self, before: Any) -> int:
        """Delete the letters that died before a moment; returns how many."""
        moment = expect_moment(before)
        if moment is None:
            raise InputError("before is None; a moment is expected")
        statement = delete(DEAD_LETTERS).where(DEAD_LETTERS.c.died < moment)
        return self._store.run(lambda connection: connection.execute(statement).rowcount)

    def list_due(self, *, limit: int = PAGE_SIZE) -> Sequence[DeadLetter]:
        """Queued letters of active webhooks that are due, the longest waiting first."""
        table = DEAD_LETTERS.c
        query = (
            select(DEAD_LETTERS)
            .join(WEBHOOKS, WEBHOOKS.c.number == table.webhook)
            .where(table.state == LetterState.QUEUED.value)
            .where(WEBHOOKS.c.state == WebhookState.ACTIVE.value)
            .where(table.next_attempt <= self._store.now())
            .order_by(table.next_attempt, table.number)
            .limit(expect_count(limit, "limit"))
        )
        with self._store.read() as connection:
            return [_to_letter(row) for row in connection.execute(query)]

    def record(self, number: int, begun: int, result: DeliveryResult) -> Verdict | None:
        """Store the result of sending a letter again, begun with so many failed attempts.

        A delivered letter is deleted; one that failed too often is dead again. Returns None if the
        letter is gone, or the result is late.
        """
        now, dice = self._store.now(), self._dice()

        def write(connection: Connection) -> Verdict | None:
            query = select(DEAD_LETTERS).where(DEAD_LETTERS.c.number == number)
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            letter = _to_letter(row)
            logged = Logged(letter.position.event, begun + 1, result)
            log_delivery(connection, letter.webhook, now, logged)
            is_current = letter.state is LetterState.QUEUED and letter.attempt.n_failed == begun
            if not is_current and not result.is_success():
                return None
            moment = from_microseconds(now)
            decision = decide_next(letter.attempt, result, moment, dice, self._policy)
            _apply(connection, letter, decision)
            return decision.verdict

        return self._store.run(write)


def add_dead_letter(connection: Connection, sent: Sent, n_attempts: int, now: int) -> None:
    """Keep an event that was given up."""
    last = Attempt(0, None, sent.result.status, clean_error(sent.result.error))
    row = {
        "number": take_numbers(connection),
        "webhook": sent.webhook,
        "epoch": sent.position.epoch,
        "event": sent.position.event,
        "subscriptions": orjson.dumps(list(sent.subscriptions)).decode(),
        "died": now,
        "total_attempts": n_attempts,
        "state": LetterState.DEAD.value,
    }
    connection.execute(insert(DEAD_LETTERS), row | to_columns(last))


def _apply(connection: Connection, letter: DeadLetter, decision: Decision) -> None:
    is_own = DEAD_LETTERS.c.number == letter.number
    if decision.verdict is Verdict.DELIVERED:
        connection.execute(delete(DEAD_LETTERS).where(is_own))
        return
    values = to_columns(decision.attempt) | {"total_attempts": letter.total_attempts + 1}
    if decision.verdict is Verdict.DEAD:
        values["state"] = LetterState.DEAD.value
    elif decision.verdict is Verdict.DISABLE:
        # It stays queued: when the webhook is resumed, it is tried at once.
        values["next_attempt"] = 0
        reason = clean_error(decision.reason)
        disabled = {"state": WebhookState.DISABLED.value, "reason": reason}
        webhook = WEBHOOKS.c.number == letter.webhook
        connection.execute(update(WEBHOOKS).where(webhook).values(disabled))
    connection.execute(update(DEAD_LETTERS).where(is_own).values(values))


def _expect_webhook(connection: Connection, actor: Actor, webhook: int) -> None:
    query = select(WEBHOOKS.c.owner, WEBHOOKS.c.mailbox).where(WEBHOOKS.c.number == webhook)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownItemError(f"there is no webhook {webhook}")
    expect_right(actor, row.owner, f"webhook {webhook}", Mailbox.parse(row.mailbox))


def _wanted(webhook: int, numbers: Iterable[int] | None) -> ColumnElement[bool]:
    is_own = DEAD_LETTERS.c.webhook == expect_count(webhook, "webhook")
    if numbers is None:
        return is_own
    asked = [expect_count(number, "the number of a letter") for number in numbers]
    if len(asked) > 1_000:
        raise InputError(f"{len(asked):,} dead letters; at most 1,000 at once, or None for all")
    return and_(is_own, DEAD_LETTERS.c.number.in_(asked))


def _to_letter(row: Any) -> DeadLetter:
    return DeadLetter(
        row.number,
        row.webhook,
        Position(row.epoch, row.event),
        tuple(orjson.loads(row.subscriptions)),
        from_microseconds(row.died),
        row.total_attempts,
        LetterState(row.state),
        to_attempt(row),
    )
