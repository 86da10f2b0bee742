"""An index that changes while it answers."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.arguments import expect_path
from tamis.errors import InputError, TamisError, warn
from tamis.input.events import expect_events
from tamis.input.schemas import open_schema
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.lookalikes import describe_lookalikes
from tamis.live.committer import Committer, expect
from tamis.live.deciders import name_users
from tamis.live.looking import LiveReader
from tamis.live.maintenance import Maintenance
from tamis.live.misspelt import find_misspelt
from tamis.live.opening import (
    expect_one_history,
    find_store,
    open_set,
    read_keep_log,
    read_settings,
    remember_types,
    write_expected,
)
from tamis.live.requests import ask_to_add
from tamis.live.sampling import EventSample
from tamis.match.operators import read_registry
from tamis.subscriptions import (
    KEEP,
    Accepted,
    Refused,
    Renew,
    Replace,
    Subscribe,
    SubscriptionStore,
    Unsubscribe,
)
from tamis.versions.copying import copy_version

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from datetime import datetime, timedelta

    from tamis.language.lookalikes import Lookalike
    from tamis.language.schema import Schema
    from tamis.live.live_set import LiveSet
    from tamis.live.opening import OpenedSet
    from tamis.live.settings import Settings
    from tamis.live.stats import LiveStats
    from tamis.logic.evaluate import Missing
    from tamis.subscriptions import Change
    from tamis.subscriptions.model import Keep, Request, Result
    from tamis.versions.manifest import Version
    from tamis.versions.store import IndexStore


class LiveIndex(LiveReader):
    """A durable set of subscriptions that answers like an `Index` and can be changed at any time.

    Every method may be called from any thread. A method that changes the set returns when the
    change is on disk; every later match, in any thread, sees it. Readers never wait.
    """

    def __init__(  # noqa: PLR0913 - all that `open` has found
        self,
        folder: Path,
        store: SubscriptionStore,
        opened: OpenedSet,
        changes: list[Change],
        registry: Any,
        keep_log: timedelta | None = None,
    ) -> None:
        """Use `open`."""
        self.rejects = []
        self.place = None
        self._folder = folder.absolute()  # the working directory may change
        self._store = store
        self._registry = registry
        self._sample = EventSample()
        self._remembered: Schema | None = None  # the types that the folder remembers
        self._remember_types(opened.live_set.settings)
        self.view = self._make_view(opened.live_set, None)
        if registry is not None:
            self.operators.expect_all()
        self._committer = Committer(store, opened.live_set, changes, self._show)
        self._maintenance = Maintenance(
            self._folder,
            store,
            self._committer,
            self._sample,
            opened.saved_change,
            lambda: self.view,
            keep_log,
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
        keep_log: timedelta | None = None,
    ) -> LiveIndex:
        """Open the live index in a folder, or create it.

        `schema` declares types; without it they are inferred from the subscriptions, and fixed by
        the first one that uses an attribute. It may be declared later, if nothing contradicts it.
        `missing` is chosen when the index is created. `store` is the address of a PostgreSQL
        database that holds the subscriptions, which the folder remembers without the password; by
        default they are in the folder. `keep_log` is how long the log keeps what only earlier
        states need, which the folder remembers too; by default for ever. One process may open a
        folder; for a second one this raises a `StoreInUseError`.
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
            if declared is not None and declared.is_open:
                raise InputError(
                    "the schema has definitions, but no types",
                    hint="declare the attributes of a live index together with its definitions",
                )
            database = None if store is None else opened.where
            settings = read_settings(
                path, declared, missing, limits, tuple(signatures), database=database
            )
            expect_one_history(path, opened)
            found = open_set(path, opened, settings, declared)
            kept = read_keep_log(path, keep_log)
            return cls(path, opened, found, changes, registry, kept)
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
        try:
            # So that they stay ended if the clock is set back before the next start.
            self._maintenance.end_leases()
            self._committer.close()
            self._maintenance.save_last(self._committer.current, saves_few=saves_few)
        except (TamisError, OSError) as error:
            warn(f"{error}; the set was not saved. Nothing is lost: the store has all changes")
        finally:
            self._committer.close()
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
        exists. With `valid_until` it is a lease, which `renew` extends. A new attribute that
        resembles one that many subscriptions use is a warning.
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
        return self._change_one(request)

    def _change_one(self, request: Subscribe | Replace) -> int:
        before = self.settings.schema
        number = expect(self.apply([request])[0])
        texts = [request.expression] if isinstance(request.expression, str) else []
        if found := self.find_newly_misspelt(before, texts):
            warn(describe_lookalikes(found))
        return number

    def find_newly_misspelt(
        self, before: Schema, texts: Collection[str] | None = None
    ) -> list[Lookalike]:
        """The attributes that were added since the set had the schema `before`, by some of these
        expressions, and that resemble one that many subscriptions use.
        """
        return find_misspelt(self._live_set, before, self._likenesses, texts)

    def add_many(self, subscriptions: Any) -> list[Result]:
        """Add subscriptions in any form that `tamis.build` takes; returns a result for each.

        One that is wrong or refused does not affect the others: its result says why. Many are added
        some thousand at a time; if then the rest cannot be read or stored, the error has a note
        that says how many were added.
        """
        before = self.settings.schema
        results = self._add_in_turn(subscriptions)
        if found := self.find_newly_misspelt(before):
            warn(describe_lookalikes(found))
        return self._explained(results)

    def _add_in_turn(self, subscriptions: Any) -> list[Result]:
        """As `add_many`; the next rows are read while some are written, and no more."""
        results: list[Result] = []
        waiting: deque[Future[list[Result]]] = deque()
        try:
            for some in ask_to_add(subscriptions):
                waiting.append(self._committer.submit(some))
                if len(waiting) > 1:
                    results += waiting.popleft().result()
            while waiting:
                results += waiting.popleft().result()
        except Exception as error:
            for future in waiting:
                with suppress(Exception):  # the first error is raised
                    results += future.result()
            n_added = sum(isinstance(result, Accepted) for result in results)
            if n_added:
                error.add_note(f"{n_added:,} subscriptions of this call were added")
            raise
        return results

    def apply(self, requests: Iterable[Request]) -> list[Result]:
        """Apply requests of `tamis.subscriptions` in order; returns a result for each.

        A refused request changes nothing and does not affect the others.
        """
        return self._explained(self.submit(requests).result())

    def submit(self, requests: Iterable[Request]) -> Future[list[Result]]:
        """As `apply`, without waiting."""
        return self._committer.submit(list(requests))

    def _explained(self, results: list[Result]) -> list[Result]:
        """The same results. What contradicts a type names those who use the attribute: on this
        thread, since all parts are searched for them.
        """
        wrong = [own.error for own in results if isinstance(own, Refused)]
        name_users([error for error in wrong if error is not None], self._live_set)
        return results

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
        return self._change_one(request)

    def renew(
        self,
        subscription_id: str,
        valid_until: datetime | str | None,
        *,
        if_revision: int | None = None,
    ) -> int:
        """Extend a lease; None removes its end. Returns the new revision."""
        request = Renew(subscription_id, valid_until, if_revision)
        return expect(self.apply([request])[0])

    def remove(self, subscription_id: str, *, if_revision: int | None = None) -> int:
        """Remove a subscription; returns the number of the change."""
        request = Unsubscribe(subscription_id, if_revision)
        return expect(self.apply([request])[0])

    def remove_many(self, ids: Iterable[str]) -> list[Result]:
        """Remove subscriptions; returns a result for each."""
        return self._committer.submit([Unsubscribe(name) for name in ids]).result()

    def expect_types(self, schema: Any, origin: str) -> None:
        """Give attributes types that hold from their first use on, whatever that use implies.

        An attribute that a subscription uses already keeps its type, and a declared schema decides
        alone. The folder remembers them. `origin` says in errors where events have these types.
        """
        types = open_schema(schema)

        def expect_in(live_set: LiveSet) -> LiveSet:
            settings = live_set.settings.expect(types, origin)
            known = live_set.settings.expected
            if settings.expected.schema.to_json() == known.schema.to_json():
                return live_set
            write_expected(self._folder, settings.expected)
            return replace(live_set, settings=settings)

        self._committer.run(expect_in)

    # ── maintaining ────────────────────────────────────────────────────────────────────────

    def compact(self) -> None:
        """Merge all parts into one, without the subscriptions that were replaced or removed."""
        self._maintenance.compact()

    def prune(self, keep: timedelta) -> int:
        """Delete what only states before that time need from the log; returns how many entries.

        Later states can still be rebuilt, and followers that have not read so far begin again.
        """
        return self._maintenance.prune(keep)

    def tidy(self) -> None:
        """Merge parts now if there are many; otherwise this happens in the background."""
        self._maintenance.tidy()

    def stats(self) -> LiveStats:
        """The parts, merges and saved changes, and the failures of the work in the background."""
        return self._maintenance.stats()

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

    @property
    def _live_set(self) -> LiveSet:
        return self._committer.current

    @property
    def settings(self) -> Settings:
        """How expressions are read: types, limits, operators."""
        return self._live_set.settings

    def _show(self, live_set: LiveSet) -> None:
        self._remember_types(live_set.settings)
        self.view = self._make_view(live_set, self.view)

    def _remember_types(self, settings: Settings) -> None:
        """Before a change that fixes types is acknowledged: later ones may rely on them."""
        if settings.schema is not self._remembered:
            with suppress(TamisError):  # it is tried with the next change; versions have them too
                remember_types(self._folder, settings)
                self._remembered = settings.schema

    def match(self, event: Any, **options: Any) -> list[str]:
        """As `Index.match`; a few of the events are kept, to learn which tests seldom hold."""
        found = super().match(event, **options)
        self._sample.add(event)  # afterwards: what is not an event has raised an error
        return found

    def match_many(self, events: Iterable[Any], **options: Any) -> list[list[str]]:
        """As `Index.match_many`; a few of the events are kept, as by `match`."""
        given = tuple(expect_events(events))
        found = super().match_many(given, **options)
        for event in given:
            self._sample.add(event)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a live index cannot be pickled", hint="publish it, and open the store: tamis.open"
        )

    def __repr__(self) -> str:
        shown = super().__repr__()
        return shown if not self.__dict__ else f"{shown[:-1]}, change {self.change:,})"
