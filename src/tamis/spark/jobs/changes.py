"""The changes that an update makes: those that the caller lists, or those in a store's log."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import HistoryError, InputError
from tamis.spark.stored_subscriptions import StoredState, refuse_as_of
from tamis.versions.log_position import LogPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.versions.manifest import Version

PAGE_SIZE: Final = 5_000  # changes that are in memory at the same time
NO_ROWS: Final = "subscription_id string, expression string"


@dataclass(frozen=True, slots=True)
class ListedChanges:
    """Changes that the caller lists."""

    subscriptions: DataFrame
    removed: tuple[str, ...]

    @property
    def hidden(self) -> tuple[str, ...]:
        """The ids that are hidden in earlier parts, whatever the new part has."""
        return self.removed

    def are_in(self, version: Version) -> bool:
        """Whether the version is known to include the changes already."""
        return False

    def record(self, version: Version) -> Version:
        """The version, with a note in its provenance that it includes the changes."""
        return version


@dataclass(frozen=True, slots=True)
class LoggedChanges:
    """Changes in a store's log after the position of a version."""

    subscriptions: DataFrame
    # All changed ids: if the new expression is invalid, the old one must not answer either.
    hidden: tuple[str, ...]
    begin: LogPosition
    state: StoredState
    removed: tuple[str, ...] = ()  # an id that was added and removed since is no mistake

    def are_in(self, version: Version) -> bool:
        """Whether the version is known to include the changes already."""
        known = LogPosition.of(version)
        if known is None or known.epoch != self.begin.epoch or known.change < self.begin.change:
            raise InputError(
                f"{version.name}, which another job published meanwhile, does not continue the log "
                f"of the store at {self.state.where} from change {self.begin.change}",
                hint="run the update again",
            )
        return known.change >= self.state.position.change

    def record(self, version: Version) -> Version:
        """The version, with a note in its provenance that it includes the changes."""
        position = self.state.position.to_provenance(self.state.where)
        return replace(version, provenance=version.provenance | position)


Changes = ListedChanges | LoggedChanges


def find_changes(
    spark: SparkSession, base: Version, given: Any, as_of: int | None, removed: tuple[str, ...]
) -> Changes:
    """The changes to make; `given` are subscriptions, a store, or None."""
    if not isinstance(given, str | os.PathLike):
        refuse_as_of(as_of)
        return ListedChanges(
            spark.createDataFrame([], NO_ROWS) if given is None else given, removed
        )
    if removed:
        raise InputError(
            "removed cannot be combined with a store, whose log has the removed ids",
            hint="remove them from the store: Unsubscribe(…)",
        )
    state = StoredState.find(given, as_of)
    begin = _expect_position(base, state)
    hidden = _read_ids(state, begin)
    return LoggedChanges(state.read(spark, after=begin.change), hidden, begin, state)


def _expect_position(base: Version, state: StoredState) -> LogPosition:
    begin = LogPosition.of(base)
    if begin is None:
        problem = "was not built from a store of subscriptions"
    elif begin.epoch != state.position.epoch:
        problem = f"was built from another history than that of the store at {state.where}"
    elif begin.change > state.position.change:
        problem = f"includes change {begin.change}, after change {state.position.change}"
    else:
        return begin
    raise HistoryError(f"{base.name} {problem}: it cannot be updated from there", hint=_BUILD_HINT)


_BUILD_HINT: Final = "build a version from the store: tamis.spark.build, or without --update"


def _read_ids(state: StoredState, begin: LogPosition) -> tuple[str, ...]:
    """The ids that have changed after a position, in order."""
    found: dict[str, None] = {}
    number, end = begin.change, state.position.change
    with state.open() as store:
        while number < end:
            limit = min(PAGE_SIZE, end - number)
            try:
                page = store.changes(after=number, limit=limit, epoch=begin.epoch)
            except HistoryError as error:
                raise HistoryError(error.message, hint=_BUILD_HINT) from None
            found.update((change.subscription_id, None) for change in page)
            number = page[-1].number
    return tuple(found)
