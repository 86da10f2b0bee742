"""What a live index and its followers can be asked, besides what every index can."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamis.arguments import expect_count
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.lookalikes import Likenesses
from tamis.live.misspelt import find_misspelt_drafted
from tamis.live.opening import open_as_of
from tamis.match.index import Index
from tamis.match.view import View
from tamis.subscriptions import Page, Subscription, SubscriptionStore

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from pathlib import Path

    from tamis.language.lookalikes import Lookalike
    from tamis.language.schema import Path as AttributePath
    from tamis.live.live_set import LiveSet
    from tamis.live.settings import Settings


class LiveReader(Index):
    """A set of subscriptions in a store, as of its last change or a moment behind.

    Every method may be called from any thread.
    """

    _folder: Path
    _store: SubscriptionStore
    _registry: Any
    _limits: Limits = DEFAULT_LIMITS  # of drafts

    @property
    def _live_set(self) -> LiveSet:
        """The current set."""
        raise NotImplementedError

    @property
    def change(self) -> int:
        """The number of the last change that the next match sees."""
        change = self.view.change
        assert change is not None
        return change

    @property
    def folder(self) -> Path:
        """The folder with the parts."""
        return self._folder

    @property
    def store(self) -> SubscriptionStore:
        """The store: lists, states as of a change, the log."""
        return self._store

    def get(self, subscription_id: str) -> Subscription | None:
        """A subscription; None if there is none, or its lease has ended."""
        return self._store.get(subscription_id)

    def snapshot(self) -> Index:
        """The index as it is now, which never changes: for many answers as of one moment."""
        view, moment = self.view_now()
        return Index.showing(view.frozen(moment))

    @property
    def settings(self) -> Settings:
        """How expressions are read: types, limits, operators."""
        own = self._live_set.settings
        # The same object as long as the types are the same: what was read with it can be kept.
        return own if own.limits == self._limits else replace(own, limits=self._limits)

    def draft(self, expressions: Mapping[str, str]) -> Index:
        """An index of expressions, by name, that are read as those of subscriptions; nothing is
        stored. Raises the `ExpressionError` of one that is wrong.
        """
        rows = [
            Subscription(name, text, "", (), {}, None, None, None, number, number)
            for number, (name, text) in enumerate(expressions.items(), start=1)
        ]
        built = self.settings.build(rows)
        if built.rejects:
            raise built.rejects[0]
        return Index(built.contents, registry=self._registry)

    def find_misspelt(self, paths: Collection[AttributePath]) -> list[Lookalike]:
        """The attributes of an expression that no subscription has used and that resemble one that
        many use.
        """
        return find_misspelt_drafted(self._live_set, paths, self._likenesses)

    @cached_property
    def _likenesses(self) -> Likenesses:
        return Likenesses()

    def as_of(self, change: int) -> Index:
        """The index as it was after a change, by its number, at the moment of that change.

        It is read from the nearest saved version and the log, which takes a while for a large set.
        Raises a `HistoryError` if that state was pruned from the store.
        """
        change = expect_count(change, "change", least=0)
        live_set = open_as_of(self._folder, self._store, self._live_set.settings, change)
        moment = self._store.moment_of(change)
        parts = live_set.index_parts()
        view = View(parts, self._registry, clock=lambda: moment, change=change)
        return Index.showing(view)

    def _make_view(self, live_set: LiveSet, like: View | None) -> View:
        return View(
            live_set.index_parts(),
            self._registry,
            clock=self._read_clock,
            change=live_set.change,
            like=like,
        )

    def _read_clock(self) -> datetime:
        return self._store.settled_moment()

    # Last, since annotations above mean the class `list`.
    def list(self, **filters: Any) -> Page:
        """A page of subscriptions; see `SubscriptionStore.list`."""
        return self._store.list(**filters)
