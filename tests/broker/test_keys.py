"""API keys: made once, found by their text, refused when expired or revoked."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from sqlalchemy import select

from tamis.broker.key_cache import KeyCache
from tamis.broker.keys import KeyLimits
from tamis.broker.rights import LOCAL, Role
from tamis.broker.store import Broker
from tamis.broker.tables import AUDIT_LOG, KEYS
from tamis.errors import InputError, NotAllowedError, StoreError, StoreFormatError, UnknownItemError
from tamis.subscriptions import SubscriptionStore
from tests.broker.places import ADMIN, ANN, BOB, SECRET, Timer, read_all
from tests.subscriptions.places import START, after
from tests.waiting import HANG_SECONDS


def test_a_key_is_found_by_its_text(broker):
    limits = KeyLimits(requests_per_second=2.5, subscriptions=0, streams=3)
    made = broker.keys.create(LOCAL, "ann", ["read", Role.PUBLISH], limits=limits)
    assert broker.keys.authenticate(made.secret.reveal()) == made.key
    assert broker.keys.get(made.key.id) == made.key
    assert made.key.owner == "ann"
    assert made.key.roles == {Role.READ, Role.PUBLISH}
    assert made.key.created == START
    assert made.key.limits == limits
    assert (made.key.may(Role.READ), made.key.may(Role.SUBSCRIBE)) == (True, False)
    assert made.key.actor == ANN._replace(key_id=made.key.id)
    admin = broker.keys.create(LOCAL, "root", "admin").key
    assert all(admin.may(role) for role in Role)
    assert admin.actor.is_admin


def test_wrong_texts(broker):
    made = broker.keys.create(LOCAL, "ann", ["read"])
    other = broker.keys.create(LOCAL, "bob", ["read"])
    text = made.secret.reveal()
    mixed = text[:19] + other.secret.reveal()[19:]
    for wrong in ("", None, 5, text[:-1], text + "=", mixed, "tamis_000000000000_" + "A" * 43):
        assert broker.keys.authenticate(wrong) is None
    assert broker.keys.authenticate(text) is not None
    assert Broker(broker.store, type(SECRET)(bytes(32))).keys.authenticate(text) is None


def test_the_database_has_no_secret(broker):
    made = broker.keys.create(LOCAL, "ann", ["read"])
    secret = made.secret.reveal()[19:]
    with broker.store.read() as connection:
        rows = [*connection.execute(select(KEYS)), *connection.execute(select(AUDIT_LOG))]
    assert len(rows) == 2
    assert secret not in repr(rows)
    assert secret not in repr(made)


def test_expiry(broker, clock):
    made = broker.keys.create(LOCAL, "ann", ["read"], expires=after(10))
    assert made.key.expires == after(10)
    clock.move(9.5)
    assert broker.keys.authenticate(made.secret.reveal()) == made.key
    clock.move(0.5)
    assert broker.keys.authenticate(made.secret.reveal()) is None
    with pytest.raises(InputError, match="not in the future"):
        broker.keys.create(LOCAL, "ann", ["read"], expires=after(10))


def test_revoking_is_seen_at_once(broker, clock):
    made = broker.keys.create(LOCAL, "ann", ["read"])
    assert broker.keys.authenticate(made.secret.reveal()) is not None
    clock.move(3)
    revoked = broker.keys.revoke(ADMIN, made.key.id)
    assert revoked == made.key._replace(revoked=after(3))
    assert broker.keys.authenticate(made.secret.reveal()) is None
    clock.move(3)
    assert broker.keys.revoke(ADMIN, made.key.id) == revoked
    with pytest.raises(UnknownItemError, match='no key "nobody"'):
        broker.keys.revoke(ADMIN, "nobody")
    actions = [(one.action, one.target) for one in read_all(broker.audit_log.list, cursor="before")]
    assert actions == [("key.revoke", made.key.id), ("key.create", made.key.id)]


def test_revoking_is_seen_by_another_process_within_a_second(broker, place):
    made = broker.keys.create(LOCAL, "ann", ["read"])
    timer = Timer()
    with SubscriptionStore.open(place, read_only=True) as store:
        other = Broker(store, SECRET, timer=timer)
        assert other.keys.authenticate(made.secret.reveal()) == made.key
        broker.keys.revoke(ADMIN, made.key.id)
        timer.seconds += 1.0
        assert other.keys.authenticate(made.secret.reveal()) is None
        with pytest.raises(StoreError, match="reading only"):
            other.keys.create(LOCAL, "ann", ["read"])


def test_what_was_read_before_a_revocation_is_not_kept_after_it(broker):
    made = broker.keys.create(LOCAL, "ann", ["read"])
    was_read, may_go_on, found = Event(), Event(), []
    cache = KeyCache(Timer())

    def read_slowly(key_id: str):
        stored = broker.keys._read(key_id)
        was_read.set()
        assert may_go_on.wait(HANG_SECONDS)
        return stored

    thread = Thread(target=lambda: found.append(cache.find(made.key.id, read_slowly)))
    thread.start()
    assert was_read.wait(HANG_SECONDS)
    broker.keys.revoke(ADMIN, made.key.id)
    cache.clear()
    may_go_on.set()
    thread.join(HANG_SECONDS)
    assert found[0].key.revoked is None  # asked before the revocation
    assert cache.find(made.key.id, broker.keys._read).key.revoked is not None


def test_the_cache_is_bounded_and_unknown_ids_are_not_kept():
    cache, reads = KeyCache(Timer(), capacity=3), []

    def read(key_id: str):
        reads.append(key_id)
        return None if key_id.startswith("?") else (key_id, b"")

    for name in ("a", "b", "c", "a", "?", "?", "d", "a", "b"):
        cache.find(name, read)
    assert reads == ["a", "b", "c", "?", "?", "d", "b"]
    assert len(cache) == 3


def test_rights(broker):
    key = broker.keys.create(LOCAL, "ann", ["read"]).key
    for actor in (ANN, BOB):
        with pytest.raises(NotAllowedError, match="only an administrator may make keys"):
            broker.keys.create(actor, "ann", ["read"])
    with pytest.raises(NotAllowedError, match="belongs to another owner"):
        broker.keys.revoke(BOB, key.id)
    assert broker.keys.revoke(ANN, key.id).revoked is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"roles": ["reed"]}, 'did you mean "read"'),
        ({"roles": [5]}, "one of publish, subscribe, read, admin is expected"),
        ({"roles": []}, "roles is empty"),
        ({"owner": ""}, "owner is empty"),
        ({"owner": "a" * 513}, "513 bytes; at most 512"),
        ({"owner": "a\nb"}, "control character"),
        ({"owner": None}, "text is expected"),
        ({"expires": "tomorrow"}, "is not a moment"),
        ({"limits": {}}, "KeyLimits is expected"),
        ({"limits": KeyLimits(streams=-1)}, "streams is -1"),
        ({"limits": KeyLimits(requests_per_second=0)}, "greater than 0"),
        ({"limits": KeyLimits(requests_per_second=float("nan"))}, "greater than 0"),
    ],
)
def test_wrong_values(broker, change, message):
    given = {"owner": "ann", "roles": ["read"]} | change
    with pytest.raises(InputError) as raised:
        broker.keys.create(LOCAL, **given)
    assert message in str(raised.value)


def test_lists(broker):
    made = [broker.keys.create(LOCAL, owner, ["read"]).key for owner in ("ann", "bob") * 3]
    assert read_all(broker.keys.list) == made
    assert read_all(broker.keys.list, owner="bob") == made[1::2]
    assert broker.keys.list(owner="nobody") == ([], None)
    for wrong in ("x", -(2**63), True):
        with pytest.raises(InputError, match="the cursor is"):
            broker.keys.list(after=wrong)
    with pytest.raises(InputError, match="limit is 0"):
        broker.keys.list(limit=0)


def test_tables_are_there_for_readers_only_once_a_writer_made_them(place):
    SubscriptionStore.open(place).close()
    with (
        SubscriptionStore.open(place, read_only=True) as store,
        pytest.raises(StoreFormatError, match="no store of keys and mailboxes"),
    ):
        Broker(store, SECRET)
    with SubscriptionStore.open(place) as store:
        made = Broker(store, SECRET).keys.create(LOCAL, "ann", ["read"])
    with SubscriptionStore.open(place) as store:
        assert Broker(store, SECRET).keys.authenticate(made.secret.reveal()) == made.key
