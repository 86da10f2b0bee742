"""Reads the subscriptions of a store with Spark, as of one change."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from tamis.arguments import expect_count
from tamis.errors import HistoryError, InputError, StoreError
from tamis.index.attributes import spell_attributes
from tamis.index.validity import MOMENT
from tamis.places import DATABASES, holds_subscriptions
from tamis.spark.session import running_session
from tamis.spark.workers import run_on_workers
from tamis.versions.log_position import LogPosition
from tamis.versions.tables import OWNER, PACKED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tamis.subscriptions import Subscription, SubscriptionStore

CHUNK_ROWS: Final = 1_000  # an expression may have a megabyte
CHANGES_PER_TASK: Final = 20_000
# Each task has a connection, and PostgreSQL allows 100 of them by default.
MOST_TASKS: Final = 64


@dataclass(frozen=True, slots=True)
class StoredState:
    """The state of a store as of one change. It can be sent to workers."""

    place: str  # may contain a password
    where: str  # for messages, without the password
    position: LogPosition

    def __str__(self) -> str:
        return f"the store at {self.where}, as of change {self.position.change},"

    @classmethod
    def find(cls, place: str | os.PathLike[str], as_of: int | None) -> StoredState:
        """The state as of a change; of the newest one if `as_of` is None."""
        if not holds_subscriptions(place):
            raise InputError(
                f"subscriptions must be a Spark DataFrame, not {type(place).__name__}, unless it "
                f"is a store of subscriptions; there is none at {str(place)!r:.200}",
                hint="spark.read reads a file; a store is named by its folder, or by its address: "
                '"postgresql://…"',
            )
        is_address = str(place).startswith(DATABASES)
        given = str(place) if is_address else os.path.abspath(place)  # workers are elsewhere
        with _open(given) as store:
            first, last = store.horizon, store.last_change
            number = last if as_of is None else expect_count(as_of, "as_of", least=0)
            if not first <= number <= last:
                raise HistoryError(
                    f"as_of is {number}; the store at {store.where} has the states of changes "
                    f"{first} to {last}",
                    hint="choose one of these; earlier states were pruned",
                )
            return cls(given, store.where, LogPosition(store.epoch, number))

    def open(self) -> SubscriptionStore:
        """The store, if it still has the same history."""
        store = _open(self.place)
        if store.epoch != self.position.epoch:
            store.close()
            raise StoreError(
                f"the store at {self.where} has another history than the one that the driver read",
                hint="workers read the same folder as the driver; on several machines, keep "
                "subscriptions in PostgreSQL",
            )
        return store

    def read(self, spark: SparkSession, after: int = 0) -> DataFrame:
        """The subscriptions, in the columns of a build; only those changed after a change."""
        n_changes = self.position.change - after
        n_tasks = max(1, min(MOST_TASKS, -(-n_changes // CHANGES_PER_TASK)))
        bounds = tuple(after + n_changes * n // n_tasks for n in range(n_tasks + 1))
        numbers = spark.range(0, n_tasks, 1, n_tasks)
        return run_on_workers(numbers, ReadStored(self, bounds), ReadStored.SCHEMA)


def find_source(subscriptions: Any, as_of: int | None) -> tuple[DataFrame, StoredState | None]:
    """The rows of subscriptions; and the state they are read from, if a store is given."""
    if isinstance(subscriptions, str | os.PathLike):
        stored = StoredState.find(subscriptions, as_of)
        return stored.read(expect_session()), stored
    refuse_as_of(as_of)
    return subscriptions, None


def refuse_as_of(as_of: int | None) -> None:
    """Raise an error if a state is asked for where there is no store."""
    if as_of is not None:
        raise InputError(
            f"as_of is {as_of!r}, but the subscriptions are not those of a store",
            hint="only a store has earlier states: name its folder or its address",
        )


def expect_session() -> SparkSession:
    """The running session: a store, unlike a DataFrame, does not name one."""
    session = running_session()
    if session is None:
        raise InputError(
            "there is no Spark session to read the store with",
            hint="start one first: spark = tamis.spark.local_session()",
        )
    return session


def _open(place: str) -> SubscriptionStore:
    # Not every session of Spark has the package that a store needs.
    from tamis.subscriptions import SubscriptionStore

    return SubscriptionStore.open(place, read_only=True)


@dataclass(frozen=True, slots=True)
class ReadStored:
    """The subscriptions whose last change is in the ranges with the given numbers.

    All tasks read the state as of the same change, which later changes do not alter: so together
    they have each subscription once.
    """

    stored: StoredState
    bounds: tuple[int, ...]  # of ranges of change numbers
    SCHEMA: ClassVar[str] = (
        "subscription_id string, expression string, tags array<string>, "
        f"valid_from timestamp, valid_until timestamp, `{PACKED}` string"
    )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        with self.stored.open() as store:
            for number in numbers:
                after, up_to = self.bounds[number : number + 2]
                found = store.state_at(self.stored.position.change, after=after, up_to=up_to)
                while rows := list(islice(found, CHUNK_ROWS)):
                    yield to_batch(rows)


def to_batch(rows: Sequence[Subscription]) -> pa.RecordBatch:
    """The subscriptions in columns."""
    moments: Any = MOMENT
    return pa.RecordBatch.from_pydict(
        {
            "subscription_id": pa.array([row.id for row in rows], pa.string()),
            "expression": pa.array([row.expression for row in rows], pa.string()),
            "tags": pa.array([row.tags for row in rows], pa.list_(pa.string())),
            "valid_from": pa.array([row.valid_from for row in rows], moments),
            "valid_until": pa.array([row.valid_until for row in rows], moments),
            PACKED: pa.array([_pack(row) for row in rows], pa.string()),
        }
    )


def _pack(row: Subscription) -> str | None:
    """The attributes and the owner as JSON; None if there are none."""
    attributes = {**row.attributes, OWNER: row.owner} if row.owner else row.attributes
    return spell_attributes(attributes) if attributes else None
