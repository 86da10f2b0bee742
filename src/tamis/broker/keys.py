"""API keys: who may publish, subscribe, read and administrate, and how much."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from sqlalchemy import insert, select, update

from tamis.arguments import expect_count
from tamis.broker.audit_log import Action, write_entry
from tamis.broker.checking import expect_member, expect_moment, expect_text, to_moment
from tamis.broker.key_cache import KeyCache, KeyExistence, StoredKey
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page
from tamis.broker.rights import Actor, Role, expect_admin, expect_right
from tamis.broker.secrets import Purpose, Secret, ServerSecret, find_key_id, new_api_key
from tamis.broker.tables import KEYS, take_numbers
from tamis.errors import InputError, UnknownItemError
from tamis.language.moments import spell_moment
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.subscriptions import SubscriptionStore


class KeyLimits(NamedTuple):
    """What a key may use; None is the default of the server."""

    requests_per_second: float | None = None
    subscriptions: int | None = None  # of its owner
    event_bytes: int | None = None
    batch_bytes: int | None = None
    expression_bytes: int | None = None
    streams: int | None = None  # open at the same time


NO_LIMITS: Final = KeyLimits()
_AT_ONCE: Final = 1_000  # keys that one query reads


class Key(NamedTuple):
    """An API key, without the secret."""

    number: int
    id: str  # a part of the key's text; not a secret
    owner: str
    roles: frozenset[Role]
    limits: KeyLimits
    created: datetime
    expires: datetime | None
    revoked: datetime | None

    def may(self, role: Role) -> bool:
        """Whether the key has a role."""
        return role in self.roles or Role.ADMIN in self.roles

    @property
    def actor(self) -> Actor:
        """Whoever uses the key."""
        return Actor(self.owner, self.id, is_admin=Role.ADMIN in self.roles)

    def to_json(self) -> dict[str, Any]:
        """The key as JSON values."""
        return {
            "id": self.id,
            "owner": self.owner,
            "roles": sorted(self.roles),
            "limits": {k: v for k, v in self.limits._asdict().items() if v is not None},
            "created": spell_moment(self.created),
            "expires": self.expires and spell_moment(self.expires),
            "revoked": self.revoked and spell_moment(self.revoked),
        }


class NewKey(NamedTuple):
    """A key that was just made."""

    key: Key
    secret: Secret  # its text, shown once


class Keys:
    """The keys of a server."""

    def __init__(
        self,
        store: SubscriptionStore,
        secret: ServerSecret,
        *,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._secret = secret
        self._cache = KeyCache(timer)
        self._existence = KeyExistence(timer)

    def create(
        self,
        actor: Actor,
        owner: str,
        roles: Iterable[Role | str],
        *,
        expires: Any = None,
        limits: KeyLimits = NO_LIMITS,
    ) -> NewKey:
        """Make a key; its text is returned here and never again."""
        expect_admin(actor, "make keys")
        owner = expect_text(owner, "owner")
        granted = _check_roles(roles)
        until, now = expect_moment(expires), self._store.now()
        if until is not None and until <= now:
            raise InputError(
                f"expires is {spell_moment(from_microseconds(until))}; that is not in the future"
            )
        key_id, text = new_api_key()
        row = {
            "key_id": key_id,
            "owner": owner,
            "roles": " ".join(sorted(granted)),
            "limits": _write_limits(limits),
            "hash": self._secret.hash(Purpose.API_KEY, text.reveal()),
            "created": now,
            "expires": until,
            "revoked": None,
        }

        def write(connection: Connection) -> int:
            number = take_numbers(connection)
            connection.execute(insert(KEYS), row | {"number": number})
            detail = {"owner": owner, "roles": sorted(granted)}
            write_entry(connection, now, Action(actor, "key.create", key_id, detail))
            return number

        number = self._store.run(write)
        self._existence.note(exist=True)
        self._cache.meet(key_id)
        made = from_microseconds(now)
        key = Key(number, key_id, owner, granted, limits, made, to_moment(until), None)
        return NewKey(key, text)

    def get(self, key_id: str) -> Key | None:
        """The key with this id; None if there is none."""
        stored = self._read(expect_text(key_id, "key_id"))
        return None if stored is None else stored.key

    def get_many(self, ids: Iterable[str]) -> dict[str, Key]:
        """The keys that exist among these ids, as the database has them now."""
        asked = sorted(set(ids))
        found: dict[str, Key] = {}
        for start in range(0, len(asked), _AT_ONCE):
            query = select(KEYS).where(KEYS.c.key_id.in_(asked[start : start + _AT_ONCE]))
            with self._store.read() as connection:
                found |= {row.key_id: _to_key(row) for row in connection.execute(query)}
        return found

    def is_valid(self, key: Key) -> bool:
        """Whether a key is neither revoked nor expired."""
        is_expired = key.expires is not None and key.expires <= self._store.moment
        return key.revoked is None and not is_expired

    def list(
        self, *, owner: str | None = None, after: int | None = None, limit: int = PAGE_SIZE
    ) -> Page[Key]:
        """A page of the keys, the oldest first; revoked and expired ones too."""
        query = select(KEYS)
        if owner is not None:
            query = query.where(KEYS.c.owner == expect_text(owner, "owner"))
        return read_page(self._store, query, Cut(KEYS.c.number, after, limit), _to_key)

    def revoke(self, actor: Actor, key_id: str) -> Key:
        """Make a key invalid, at once in this process and within a second in others.

        An owner may revoke their own keys. A key that is revoked already stays as it is.
        """
        key_id, now = expect_text(key_id, "key_id"), self._store.now()

        def write(connection: Connection) -> Key:
            row = connection.execute(select(KEYS).where(KEYS.c.key_id == key_id)).one_or_none()
            if row is None:
                raise UnknownItemError(f'there is no key "{key_id}"')
            expect_right(actor, row.owner, f'key "{key_id}"')
            if row.revoked is not None:
                return _to_key(row)
            connection.execute(update(KEYS).where(KEYS.c.key_id == key_id).values(revoked=now))
            detail = {"owner": row.owner}
            write_entry(connection, now, Action(actor, "key.revoke", key_id, detail))
            return _to_key(row)._replace(revoked=from_microseconds(now))

        key = self._store.run(write)
        self.forget_cached()
        return key

    def exist(self) -> bool:
        """Whether a key was ever made; keys that are revoked or expired count.

        A key of this process counts at once, one of another process within a second.
        """
        known = self.exist_if_known()
        if known is None:
            known = bool(self.list(limit=1).items)
            self._existence.note(exist=known)
        return known

    def exist_if_known(self) -> bool | None:
        """As `exist`, without waiting; None if the database must be read."""
        return self._existence.recall()

    def forget_cached(self) -> None:
        """Read all keys again at their next use."""
        self._cache.clear()

    def authenticate(self, text: Any) -> Key | None:
        """The key with this text; None if there is none, or it is expired or revoked.

        The secret part is compared in constant time. Whether an id exists may show in the time it
        takes: ids are not secret.
        """
        shown = text if isinstance(text, str) else ""
        key_id = find_key_id(shown)
        stored = None if key_id is None else self._cache.find(key_id, self._read)
        known = None if stored is None else stored.hash
        is_right = self._secret.verify(Purpose.API_KEY, shown, known)
        if stored is None or not is_right:
            return None
        return stored.key if self.is_valid(stored.key) else None

    def has_met(self, key_id: str) -> bool:
        """Whether there is a key with this id, without a look into the database: one that was
        never used since the server started may not be known.
        """
        return self._cache.has_met(key_id)

    def find_valid(self, key_id: str) -> Key | None:
        """The key with this id, unless it is expired or revoked; the secret is not checked."""
        stored = self._cache.find(key_id, self._read)
        return None if stored is None or not self.is_valid(stored.key) else stored.key

    def _read(self, key_id: str) -> StoredKey | None:
        with self._store.read() as connection:
            row = connection.execute(select(KEYS).where(KEYS.c.key_id == key_id)).one_or_none()
        return None if row is None else StoredKey(_to_key(row), row.hash)


def revoke_all(connection: Connection, owner: str, now: int) -> list[str]:
    """Revoke the keys of an owner; returns their ids."""
    is_valid = (KEYS.c.owner == owner, KEYS.c.revoked.is_(None))
    statement = update(KEYS).where(*is_valid).values(revoked=now).returning(KEYS.c.key_id)
    return sorted(connection.execute(statement).scalars())


def _check_roles(roles: Iterable[Role | str]) -> frozenset[Role]:
    given = [roles] if isinstance(roles, str) else list(roles)
    if not given:
        raise InputError(f"roles is empty; at least one of {', '.join(Role)} is expected")
    return frozenset(expect_member(role, Role, "role") for role in given)


def _write_limits(limits: KeyLimits) -> str:
    if not isinstance(limits, KeyLimits):
        raise InputError(f"limits is {limits!r:.100}; KeyLimits is expected")
    given = {name: value for name, value in limits._asdict().items() if value is not None}
    for name, value in given.items():
        if name != "requests_per_second":
            expect_count(value, name, least=0)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise InputError(f"{name} is {value!r:.100}; a number greater than 0 is expected")
    return orjson.dumps(given).decode()


def _to_key(row: Any) -> Key:
    return Key(
        row.number,
        row.key_id,
        row.owner,
        frozenset(map(Role, row.roles.split())),
        KeyLimits(**orjson.loads(row.limits)),
        from_microseconds(row.created),
        to_moment(row.expires),
        to_moment(row.revoked),
    )
