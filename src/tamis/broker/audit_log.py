"""The log of what administrators did. Entries are added, and removed by age only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from sqlalchemy import delete, insert, select

from tamis.broker.checking import expect_moment, expect_text
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page
from tamis.broker.secrets import redact
from tamis.broker.tables import AUDIT_LOG, take_numbers
from tamis.errors import InputError
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.broker.rights import Actor
    from tamis.subscriptions import SubscriptionStore

DETAIL_BYTES: Final = 4_096
_PRUNE_SIZE: Final = 10_000


class AuditEntry(NamedTuple):
    """One action."""

    number: int
    moment: datetime
    key_id: str
    action: str  # such as "key.revoke"
    target: str  # what was acted on
    detail: Mapping[str, Any]  # a small JSON object without secrets


class Action(NamedTuple):
    """What is to be logged."""

    actor: Actor
    name: str
    target: str
    detail: Mapping[str, Any] = {}


def write_entry(connection: Connection, now: int, action: Action) -> None:
    """Add an entry in the transaction of the action itself: neither exists without the other."""
    try:
        detail = redact(orjson.dumps(action.detail).decode())
    except TypeError:
        raise InputError(f"the detail of {action.name} is not a JSON object") from None
    if len(detail.encode()) > DETAIL_BYTES:
        raise InputError(f"the detail of {action.name} has more than {DETAIL_BYTES:,} bytes")
    row = {
        "number": take_numbers(connection),
        "moment": now,
        "key_id": action.actor.key_id,
        "action": expect_text(action.name, "action"),
        "target": redact(action.target),
        "detail": detail,
    }
    connection.execute(insert(AUDIT_LOG), row)


def write_if_admin(connection: Connection, now: int, action: Action) -> None:
    """Add an entry if an administrator acts; owners handle their own things without one."""
    if action.actor.is_admin:
        write_entry(connection, now, action)


class AuditLog:
    """Reads the log, and adds what the server does itself."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store

    def append(self, action: Action) -> None:
        """Add an entry; returns when it is on disk. Secrets in it are replaced."""
        expect_text(action.target, "target", DETAIL_BYTES, may_be_empty=True)
        now = self._store.now()
        self._store.run(lambda connection: write_entry(connection, now, action))

    def list(
        self,
        *,
        key_id: str | None = None,
        before: int | None = None,
        limit: int = PAGE_SIZE,
    ) -> Page[AuditEntry]:
        """A page of the log, the newest entries first; `before` is the cursor of the last page."""
        query = select(AUDIT_LOG)
        if key_id is not None:
            query = query.where(AUDIT_LOG.c.key_id == expect_text(key_id, "key_id"))
        cut = Cut(AUDIT_LOG.c.number, before, limit, is_descending=True)
        return read_page(self._store, query, cut, _to_entry)

    def prune(self, before: Any) -> int:
        """Delete the entries before a moment; returns how many."""
        if (moment := expect_moment(before)) is None:
            raise InputError("before is None; a moment is expected")
        oldest = select(AUDIT_LOG.c.number).where(AUDIT_LOG.c.moment < moment).limit(_PRUNE_SIZE)
        statement = delete(AUDIT_LOG).where(AUDIT_LOG.c.number.in_(oldest))
        n_deleted, n_page = 0, _PRUNE_SIZE
        while n_page == _PRUNE_SIZE:
            n_page = self._store.run(lambda connection: connection.execute(statement).rowcount)
            n_deleted += n_page
        return n_deleted


def _to_entry(row: Any) -> AuditEntry:
    kept = (row.key_id, row.action, row.target, orjson.loads(row.detail))
    return AuditEntry(row.number, from_microseconds(row.moment), *kept)
