"""The parts of a live set, and what a change does to them.

    oldest part │ … │ sealed parts │ newest part

Every subscription is in exactly one part in which it is not hidden. A change hides the earlier
state of its subscription and adds the new one to the newest part, which is small and is rebuilt
each time. When it takes too long to build, it is sealed, and another newest part begins. All
objects here are immutable: a change makes a new set that shares the unchanged parts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import StoreError
from tamis.index.id_table import WantedIds
from tamis.match.catalogue import IndexPart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from tamis.errors import ExpressionError
    from tamis.index.build import Built
    from tamis.index.contents import Contents
    from tamis.live.settings import Settings
    from tamis.subscriptions import Change, Subscription
    from tamis.versions.manifest import Part

    Rows = Mapping[str, Subscription]

MOST_NEWEST: Final = 512  # subscriptions in the newest part
SLOW_BUILD: Final = 0.004  # seconds of CPU: a newest part that takes longer to build is sealed


class LivePart(NamedTuple):
    """A part, and which of its subscriptions were replaced or removed since."""

    contents: Contents
    change: int  # the last change whose additions it includes
    is_hidden: np.ndarray | None = None  # bool[n_subscriptions], copied when it changes
    stored: Part | None = None  # its files; None if it is only in memory

    @property
    def n_hidden(self) -> int:
        """How many subscriptions are hidden."""
        return 0 if self.is_hidden is None else int(np.count_nonzero(self.is_hidden))

    @property
    def n_shown(self) -> int:
        """How many subscriptions answer."""
        return len(self.contents.ids) - self.n_hidden

    def hide(self, ordinals: np.ndarray) -> LivePart:
        """The part without these subscriptions."""
        if not len(ordinals):
            return self
        if self.is_hidden is None:
            is_hidden = np.zeros(len(self.contents.ids), dtype=np.bool_)
        else:
            is_hidden = self.is_hidden.copy()
        is_hidden[ordinals] = True
        is_hidden.flags.writeable = False
        return self._replace(is_hidden=is_hidden)


@dataclass(frozen=True)
class LiveSet:
    """A set of subscriptions as of a change."""

    change: int
    settings: Settings
    parts: tuple[LivePart, ...] = ()
    # The subscriptions of the last part, if it is the newest one and not sealed.
    newest: Rows | None = None

    def index_parts(self) -> list[IndexPart]:
        """The parts, ready to answer."""
        return [IndexPart(part.contents, part.is_hidden) for part in self.parts]

    def _plan(self, rows: Rows, gone: Collection[str]) -> Rows:
        """The subscriptions of the part that is built to add these."""
        kept = {name: row for name, row in (self.newest or {}).items() if name not in gone}
        return {**kept, **rows} if len(kept) + len(rows) <= MOST_NEWEST else dict(rows)

    def build(self, rows: Rows, gone: Collection[str] = ()) -> BuiltPart:
        """The newest part with some subscriptions added and others removed."""
        planned = self._plan(rows, gone)
        began = time.thread_time()
        built = self.settings.build(list(planned.values()))
        return BuiltPart(planned, built, time.thread_time() - began, rows, frozenset(gone))

    def apply(self, changes: Sequence[Change], built: BuiltPart | None = None) -> LiveSet:
        """The set after some changes. `built` is a part that has their additions, if there is one.

        Raises a `StoreError` if an expression cannot be read; the store checks nothing.
        """
        if not changes:
            return self
        last = {change.subscription_id: change.subscription for change in changes}
        number = changes[-1].number
        added = {name: row for name, row in last.items() if row is not None}
        hidden = replace(self._hide(last), change=number)
        if not added:
            return hidden
        if built is None:
            built = hidden.build(added)
            if built.rejects:
                raise unreadable(built.rejects)
        return hidden._with_newest(built.as_stored(added), number)

    def _hide(self, ids: Iterable[str]) -> LiveSet:
        """The set without these subscriptions."""
        names = list(ids)
        wanted = WantedIds.of(names)
        parts = []
        for part in self.parts:
            found = part.contents.id_table.find(wanted)
            found = found[found >= 0]
            if part.is_hidden is not None:
                found = found[~part.is_hidden[found]]
            parts.append(part.hide(found))
        newest = self.newest
        if newest is not None and not newest.keys().isdisjoint(names):
            gone = set(names)
            newest = {name: row for name, row in newest.items() if name not in gone}
        return replace(self, parts=tuple(parts), newest=newest)

    def _with_newest(self, built: BuiltPart, number: int) -> LiveSet:
        part = LivePart(built.contents, number)
        is_rebuilt = self.newest is not None and self.newest.keys() <= built.rows.keys()
        earlier = self.parts[:-1] if is_rebuilt else self.parts
        earlier = tuple(own for own in earlier if own.n_shown)
        is_sealed = len(built.rows) >= MOST_NEWEST or (built.seconds > SLOW_BUILD and is_rebuilt)
        return replace(
            self,
            settings=self.settings.with_part(built.contents),
            parts=(*earlier, part),
            newest=None if is_sealed else built.rows,
        )

    # ── merging ────────────────────────────────────────────────────────────────────────────

    def swap(self, merged: Sequence[LivePart], part: LivePart | None) -> LiveSet:
        """The set with one part instead of those that were merged; None if nothing is left.

        What was hidden in them after the merge began is hidden in the new part.
        """
        before = {id(own.contents): own for own in merged}
        places = [at for at, own in enumerate(self.parts) if id(own.contents) in before]
        if not places:
            return self  # all that they had was hidden since
        first, end = places[0], places[-1] + 1
        if part is not None:
            now = {id(own.contents): own for own in self.parts}
            for own in merged:
                gone = _newly_hidden(own, now.get(id(own.contents)))
                part = part.hide(part.contents.id_table.find(WantedIds(gone)))
        is_empty = part is None or not part.n_shown
        parts = (*self.parts[:first], *(() if is_empty else (part,)), *self.parts[end:])
        if not parts:
            parts = self.parts[:1]  # a set has at least one part
        return replace(self, parts=parts, newest=self.newest if end < len(self.parts) else None)


def empty_part(settings: Settings) -> LivePart:
    """A part without subscriptions: a set has at least one part."""
    return LivePart(settings.build([]).contents, 0)


class BuiltPart(NamedTuple):
    """A part that was built, and how long that took."""

    rows: Rows  # all that it has
    built: Built
    seconds: float
    added: Rows  # the changed ones, as predicted
    gone: frozenset[str]  # those that ended

    def leads_to(self, changes: Sequence[Change]) -> bool:
        """Whether it was built for exactly these changes."""
        last = {change.subscription_id: change.subscription for change in changes}
        if len(last) != len(self.added) + len(self.gone):
            return False
        return all(
            name in self.gone if state is None else _is_like(state, self.added.get(name))
            for name, state in last.items()
        )

    def as_stored(self, stored: Rows) -> BuiltPart:
        """The part with subscriptions as the store has written them: the numbers of new ones were
        not known when it was built.
        """
        rows = {name: stored.get(name, row) for name, row in self.rows.items()}
        numbers = np.array([row.created for row in rows.values()], dtype=np.int64)
        contents = replace(self.contents, numbers=numbers)
        return self._replace(rows=rows, built=replace(self.built, contents=contents))

    @property
    def contents(self) -> Contents:
        """Its arrays."""
        return self.built.contents

    @property
    def rejects(self) -> list[ExpressionError]:
        """The expressions that are wrong."""
        return self.built.rejects


def _is_like(state: Subscription, predicted: Subscription | None) -> bool:
    """Whether only what is not known in advance differs: the numbers of changes and the moment."""
    if predicted is None:
        return False
    return state == predicted._replace(
        revision=state.revision, created=state.created, changed=state.changed
    )


def _newly_hidden(before: LivePart, now: LivePart | None) -> Any:
    """The ids that were hidden since, as an Arrow array; a part that is gone has hidden all."""
    ids = before.contents.ids
    was_hidden = np.zeros(len(ids), np.bool_) if before.is_hidden is None else before.is_hidden
    if now is None:
        return ids.filter(pa.array(~was_hidden))
    if now.is_hidden is None or now.is_hidden is before.is_hidden:
        return ids[:0]
    return ids.filter(pa.array(now.is_hidden & ~was_hidden))


def unreadable(rejects: Sequence[ExpressionError]) -> StoreError:
    """The error of stored expressions that were accepted, and are rejected now."""
    first = rejects[0]
    return StoreError(
        f'the expression of subscription "{first.subscription_id}" in the store cannot be read: '
        f"{first.message}",
        hint="open the set with the schema and the operators that it was written with",
    )
