"""Subscriptions that ask for similar stories to be grouped, and how.

It is the attribute `group_similar` of a subscription. So it is changed, logged, exported and backed
up with the subscription; what is here is read from the log of changes.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import orjson
from sqlalchemy import func, select

from tamis.errors import InputError
from tamis.language.moments import AGE_HINT, read_age
from tamis.subscriptions.tables import CHANGES, HAS_STATE, IS_REVISED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tamis.subscriptions import SubscriptionStore

GROUP_SIMILAR: Final = "group_similar"
LONGEST: Final = timedelta(days=30)
_log = logging.getLogger(__name__)


def read_window(attributes: Mapping[str, Any]) -> timedelta | None:
    """For how long similar stories are grouped; None if they are not.

    Raises an `InputError` if the attribute has another value.
    """
    given = attributes.get(GROUP_SIMILAR)
    if given is None:
        return None
    try:
        window = read_age(given) if isinstance(given, str) else None
    except OverflowError:
        window = timedelta.max
    if window is None or not timedelta(0) < window <= LONGEST:
        raise InputError(
            f"{GROUP_SIMILAR} is {given!r:.100}; an age of at most {LONGEST.days} days is expected",
            hint=AGE_HINT,
        )
    return window


class Groupings:
    """The windows of all subscriptions that have one. Every method may be called from any thread.

    An ended subscription keeps its own as long as the log of changes has it.
    """

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store
        self._lock = Lock()
        self._windows: dict[int, timedelta] = {}
        self._seen: tuple[str, int] = ("", 0)  # the epoch of the log, and its last read change

    def of(self, subscriptions: Collection[int]) -> dict[int, timedelta]:
        """The windows of those of the subscriptions that have one."""
        with self._lock:
            self._follow()
            if not self._windows:
                return {}
            return {
                number: self._windows[number] for number in subscriptions if number in self._windows
            }

    def _follow(self) -> None:
        """Read what has changed."""
        epoch, last = self._store.epoch, self._store.last_change
        if (epoch, last) == self._seen:
            return
        if self._seen[0] != epoch:
            self._windows, self._seen = {}, (epoch, 0)
        changes, first = CHANGES.c, self._seen[1]
        is_new = (changes.number > first) & (changes.number <= last)
        has_window = func.coalesce(changes.attributes, "").contains(f'"{GROUP_SIMILAR}"')
        later = CHANGES.alias("later")
        is_revised = select(later.c.number).where(
            later.c.created == changes.created,
            later.c.created != later.c.number,
            later.c.number > changes.number,
            later.c.number <= last,
        )
        given = select(changes.created, changes.attributes)
        given = given.where(is_new, HAS_STATE, has_window, ~is_revised.exists())
        revised = select(changes.created).where(is_new, IS_REVISED).distinct()
        with self._store.read() as connection:
            if self._windows:
                for number in connection.execute(revised).scalars():
                    self._windows.pop(number, None)
            for number, attributes in connection.execute(given):
                if (window := _read(number, attributes)) is not None:
                    self._windows[number] = window
        self._seen = epoch, last


def _read(number: int, attributes: str) -> timedelta | None:
    try:
        return read_window(orjson.loads(attributes))
    except InputError as error:  # it was subscribed without the server
        _log.warning("subscription %d: %s; its matches are not grouped", number, error)
        return None
