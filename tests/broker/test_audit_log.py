"""The audit log: in order, without secrets, kept for a time."""

from __future__ import annotations

import pytest

from tamis.broker.audit_log import Action
from tamis.broker.rights import LOCAL
from tamis.broker.secrets import new_ticket
from tamis.errors import InputError
from tests.broker.places import ADMIN, read_all
from tests.subscriptions.places import after


def test_entries_are_listed_newest_first(broker, clock):
    for n in range(5):
        broker.audit_log.append(Action((ADMIN, LOCAL)[n % 2], "test", f"t{n}", {"n": n}))
        clock.move(1)
    entries = read_all(broker.audit_log.list, cursor="before")
    assert [entry.target for entry in entries] == ["t4", "t3", "t2", "t1", "t0"]
    assert [entry.moment for entry in entries] == [after(n) for n in (4, 3, 2, 1, 0)]
    assert entries[0].detail == {"n": 4}
    local = read_all(broker.audit_log.list, cursor="before", key_id="local")
    assert [entry.target for entry in local] == ["t3", "t1"]


def test_secrets_are_replaced(broker):
    ticket = new_ticket().reveal()
    broker.audit_log.append(Action(ADMIN, "test", f"at {ticket}", {"a": [ticket], ticket: 1}))
    (entry,) = broker.audit_log.list().items
    assert ticket not in repr(entry)
    assert entry.detail == {"a": ["tkt_…"], "tkt_…": 1}


def test_retention(broker, clock, monkeypatch):
    monkeypatch.setattr("tamis.broker.audit_log._PRUNE_SIZE", 3)
    for n in range(10):
        broker.audit_log.append(Action(ADMIN, "test", f"t{n}"))
        clock.move(1)
    assert broker.audit_log.prune(before=after(7)) == 7
    assert [one.target for one in broker.audit_log.list().items] == ["t9", "t8", "t7"]
    assert broker.audit_log.prune(before=after(7)) == 0
    with pytest.raises(InputError, match="is not a moment"):
        broker.audit_log.prune(before="never")


@pytest.mark.parametrize(
    "action",
    [
        Action(ADMIN, "", "t"),
        Action(ADMIN, "a\nb", "t"),
        Action(ADMIN, "a", "t\r\n"),
        Action(ADMIN, "a", "t", {"k": object()}),
        Action(ADMIN, "a", "t", {"k": "x" * 5000}),
    ],
)
def test_wrong_entries(broker, action):
    with pytest.raises(InputError):
        broker.audit_log.append(action)
    assert broker.audit_log.list().items == []
