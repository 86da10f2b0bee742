"""An index that changes while it answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.arguments import expect_count, expect_path
from tamis.errors import InputError, TamisError, warn
from tamis.input.schemas import open_schema
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.live.committer import Committer, expect
from tamis.live.maintenance import Maintenance
from tamis.live.opening import find_store, open_as_of, open_set, read_settings
from tamis.live.requests import ask_to_add
from tamis.live.sampling import EventSample
from tamis.match.index import Index
from tamis.match.operators import read_registry
from tamis.match.view import View
from tamis.subscriptions import (
    KEEP,
    Page,
    Renew,
    Replace,
    Subscribe,
    SubscriptionStore,
    Unsubscribe,
)
from tamis.versions.copying import copy_version

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from tamis.live.live_set import LiveSet
    from tamis.live.opening import OpenedSet
    from tamis.logic.evaluate import Missing
    from tamis.subscriptions import Change, Subscription
    from tamis.subscriptions.model import Keep, Request, Result
    from tamis.versions.manifest import Version
    from tamis.versions.store import IndexStore


class LiveIndex(Index):
    """A durable set of subscriptions that answers like an `Index` and can be changed at any time.

    Every method may be called from any thread. A method that changes the set returns when the
    change is on disk; every later match, in any thread, sees it. Readers never wait.
    """

    def __init__(
        self,
        folder: Path,
        store: SubscriptionStore,
        opened: OpenedSet,
        changes: list[Change],
        registry: Any,
    ) -> None:
        """Use `open`."""
        self.rejects = []
        self.place = None
        self._folder = folder
        self._store = store
        self._registry = registry
        self._sample = EventSample()
        self.view = self._make_view(opened.live_set, None)
        if registry is not None:
            self.operators.expect_all()
        self._committer = Committer(store, opened.live_set, changes, self._show)
        self._maintenance = Maintenance(
            folder,
            store,
            self._committer,
            self._sample,
            opened.saved_change,
            lambda: self.view,
        )

    @classmethod
    def open(  # type: ignore[override] # noqa: PLR0913 - all that decides how it is opened
        cls,
        folder: str | os.PathLike[str],
        *,
        schema: Any = None,
        missing: str | Missing | None = None,
        operators: Any = (),
        limits: Limits = DEFAULT_LIMITS,
        store: str | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> LiveIndex:
        """Open the live index in a folder, or create it.

        `schema` declares types; without it they are inferred from the subscriptions, and fixed by
        the first one that uses an attribute. It may be declared later, if nothing contradicts it.
        `missing` is chosen when the index is created. `store` is the address of a PostgreSQL
        database that holds the subscriptions, which the folder remembers without the password; by
        default they are in the folder. One process may open a folder; for a second one this raises
        a `StoreInUseError`.
        """
        expect_path(folder)
        path = Path(folder)
        registry = read_registry(operators)
        changes: list[Change] = []
        options: dict[str, Any] = {} if clock is None else {"clock": clock}
        place = find_store(path, store)
        opened = SubscriptionStore.open(place, on_commit=changes.extend, **options)
        try:
            signatures = () if registry is None else registry.signatures
            declared = None if schema is None else open_schema(schema)
            database = None if store is None else opened.where
            settings = read_settings(
                path, declared, missing, limits, tuple(signatures), database=database
            )
            found = open_set(path, opened, settings, declared)
            return cls(path, opened, found, changes, registry)
        except BaseException:
            opened.close()
            raise

    def close(self, *, saves_few: bool = True) -> None:
        """Finish waiting changes, save the set, and release the folder.

        All changes are in the store; a saved version makes the next start faster. Without
        `saves_few`, it is saved only after many changes: for a process that makes one and ends.
        """
        if not self.__dict__:
            return
        self._maintenance.close()
        self._committer.close()
        try:
            self._maintenance.save_last(self._committer.current, saves_few=saves_few)
        except (TamisError, OSError) as error:
            warn(f"{error}; the set was not saved. Nothing is lost: the store has all changes")
        finally:
            self._store.close()
            super().close()

    # ── changing ───────────────────────────────────────────────────────────────────────────

    def add(  # noqa: PLR0913 - everything that a subscription has
        self,
        subscription_id: str,
        expression: str,
        *,
        owner: str = "",
        tags: Sequence[str] = (),
        attributes: Mapping[str, Any] | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
    ) -> int:
        """Add a subscription; returns the number of the change, which is its revision.

        Raises an `ExpressionError` if the expression is wrong, and a `RefusedError` if the id
        exists. With `valid_until` it is a lease, which `renew` extends.
        """
        request = Subscribe(
            subscription_id,
            expression,
            owner,
            tuple(tags) if not isinstance(tags, str) else tags,  # type: ignore[arg-type]
            {} if attributes is None else attributes,
            valid_from,
            valid_until,
        )
        return expect(self._committer.submit([request]).result()[0])

    def add_many(self, subscriptions: Any) -> list[Result]:
        """Add subscriptions in any form that `tamis.build` takes; returns a result for each.

        One that is wrong or refused does not affect the others: its result says why.
        """
        waiting = [self._committer.submit(some) for some in ask_to_add(subscriptions)]
        return [result for future in waiting for result in future.result()]

    def apply(self, requests: Iterable[Request]) -> list[Result]:
        """Apply requests of `tamis.subscriptions` in order; returns a result for each.

        A refused request changes nothing and does not affect the others.
        """
        return self._committer.submit(list(requests)).result()

    def replace(  # noqa: PLR0913 - everything that a subscription has
        self,
        subscription_id: str,
        expression: str | Keep = KEEP,
        *,
        owner: str | Keep = KEEP,
        tags: Sequence[str] | Keep = KEEP,
        attributes: Mapping[str, Any] | Keep = KEEP,
        valid_from: datetime | str | Keep | None = KEEP,
        valid_until: datetime | str | Keep | None = KEEP,
        if_revision: int | None = None,
    ) -> int:
        """Change a subscription; what is not given stays. Returns its new revision.

        With `if_revision` it is refused if the subscription was changed since that revision.
        """
        request = Replace(
            subscription_id,
            expression,
            owner,
            tuple(tags) if isinstance(tags, list) else tags,  # type: ignore[arg-type]
            attributes,
            valid_from,
            valid_until,
            if_revision=if_revision,
        )
        return expect(self._committer.submit([request]).result()[0])

    def renew(
        self,
        subscription_id: str,
        valid_until: datetime | str | None,
        *,
        if_revision: int | None = None,
    ) -> int:
        """Extend a lease; None removes its end. Returns the new revision."""
        request = Renew(subscription_id, valid_until, if_revision)
        return expect(self._committer.submit([request]).result()[0])

    def remove(self, subscription_id: str, *, if_revision: int | None = None) -> int:
        """Remove a subscription; returns the number of the change."""
        request = Unsubscribe(subscription_id, if_revision)
        return expect(self._committer.submit([request]).result()[0])

    def remove_many(self, ids: Iterable[str]) -> list[Result]:
        """Remove subscriptions; returns a result for each."""
        return self._committer.submit([Unsubscribe(name) for name in ids]).result()

    # ── looking ────────────────────────────────────────────────────────────────────────────

    @property
    def change(self) -> int:
        """The number of the last change that the next match sees."""
        return self._committer.current.change

    @property
    def store(self) -> SubscriptionStore:
        """The store: lists, states as of a change, the log."""
        return self._store

    def get(self, subscription_id: str) -> Subscription | None:
        """A subscription; None if there is none, or its lease has ended."""
        return self._store.get(subscription_id)

    def snapshot(self) -> Index:
        """The index as it is now, which never changes: for many answers as of one moment."""
        while True:
            view, moment = self.view, self._store.moment
            if self.view is view:  # otherwise the moment may be that of a later view
                return Index.showing(view.frozen(moment))

    def as_of(self, change: int) -> Index:
        """The index as it was after a change, by its number, at the moment of that change.

        It is read from the nearest saved version and the log, which takes a while for a large set.
        Raises a `HistoryError` if that state was pruned from the store.
        """
        change = expect_count(change, "change", least=0)
        settings = self._committer.current.settings
        live_set = open_as_of(self._folder, self._store, settings, change)
        moment = self._store.moment_of(change)
        view = View(live_set.index_parts(), self._registry, clock=lambda: moment)
        return Index.showing(view)

    # ── maintaining ────────────────────────────────────────────────────────────────────────

    def compact(self) -> None:
        """Merge all parts into one, without the subscriptions that were replaced or removed."""
        self._maintenance.compact()

    def tidy(self) -> None:
        """Merge parts now if there are many; otherwise this happens in the background."""
        self._maintenance.tidy()

    def save(self, *args: Any, **options: Any) -> None:
        """A live index is saved in its folder by itself."""
        raise InputError(
            "a live index is saved in its folder by itself",
            hint="to give it to others, publish it: live.publish(store)",
        )

    def publish(self, target: str | os.PathLike[str] | IndexStore) -> Version:
        """Publish the set as the next version of a store, for `tamis.open` and Spark."""
        version = self._maintenance.save(self._committer.current)
        return copy_version(self._folder, version, target)

    # ── views ──────────────────────────────────────────────────────────────────────────────

    def _show(self, live_set: LiveSet) -> None:
        self.view = self._make_view(live_set, self.view)

    def _make_view(self, live_set: LiveSet, like: View | None) -> View:
        return View(live_set.index_parts(), self._registry, clock=self._read_clock, like=like)

    def _read_clock(self) -> datetime:
        return self._store.moment

    def match(self, event: Any, **options: Any) -> list[str]:
        """As `Index.match`; a few of the events are kept, to learn which tests seldom hold."""
        found = super().match(event, **options)
        self._sample.add(event)  # afterwards: what is not an event has raised an error
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a live index cannot be pickled", hint="publish it, and open the store: tamis.open"
        )

    def __repr__(self) -> str:
        shown = super().__repr__()
        return shown if not self.__dict__ else f"{shown[:-1]}, change {self.change:,})"

    # Last, since annotations above mean the class `list`.
    def list(self, **filters: Any) -> Page:
        """A page of subscriptions; see `SubscriptionStore.list`."""
        return self._store.list(**filters)
