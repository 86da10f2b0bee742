"""What all ways to match DataFrames share: the events, the index, and how the work is divided."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypedDict

from tamis.errors import InputError, suggest, warn
from tamis.spark.columns import report_columns
from tamis.spark.layout import choose_id, expect_frame, expect_some, select_events
from tamis.spark.matching import WorkerQuestion
from tamis.spark.spread import AUTO, choose_spread
from tamis.spark.workers import run_on_workers
from tamis.versions.opening import open_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from tamis.spark.layout import Layout
    from tamis.spark.matching import Matcher
    from tamis.spark.operators import LearnedStatistics
    from tamis.spark.spread import Spread
    from tamis.versions.part_set import PartSet

    Attributes = str | Sequence[str] | None


class Options(TypedDict, total=False):
    """The keywords of everything that matches or counts on Spark."""

    attributes: Attributes  # the columns of attributes, or the column of whole events
    at: Any  # the moment at which subscriptions have to be valid; now, if it is not given
    subset: Iterable[str] | None  # ids of the subscriptions to consider; unknown ones match nothing
    tagged: str | Sequence[str] | None  # tags of which a subscription has to have one
    operators: str | Sequence[str]  # modules that workers import, which register operators
    learned: LearnedStatistics | None  # collects what is learned of operators, and their faults
    spread: str  # how the work is divided: auto, replicate, split or product
    groups: int | None  # into how many groups of parts


class EventOptions(Options, total=False):
    """The same where results name events."""

    event_id: str | None  # the column of the events' ids


@dataclass(frozen=True)
class EventQuery:
    """Events, and the question put to them."""

    events: DataFrame
    parts: PartSet
    event_id: str | None
    attributes: Attributes
    question: Callable[[PartSet, Layout], WorkerQuestion]
    spread: Spread

    @classmethod
    def of(  # noqa: PLR0913 - the keywords of `EventOptions`
        cls,
        events: DataFrame,
        index: Any,
        *,
        event_id: str | None = None,
        attributes: Attributes = None,
        at: Any = None,
        subset: Iterable[str] | None = None,
        tagged: str | Sequence[str] | None = None,
        operators: str | Sequence[str] = (),
        learned: LearnedStatistics | None = None,
        spread: str = AUTO,
        groups: int | None = None,
        **unknown: Any,
    ) -> EventQuery:
        """What a caller means by the keywords of `EventOptions`."""
        expect_frame(events, "events")
        _refuse_unknown(unknown)
        parts = open_version(index, at=at).with_operators(operators)
        news = None if learned is None else learned.news
        ids, tags = _read_names(subset, "subset"), _read_names(tagged, "tagged", is_one=True)
        _report_unknown(parts, ids, tags)
        chosen = choose_spread(events.sparkSession, parts, spread, groups)

        def ask(own: PartSet, layout: Layout) -> WorkerQuestion:
            return WorkerQuestion(own, layout, news, ids, tags)

        return cls(events, parts, event_id, attributes, ask, chosen)

    @property
    def is_split(self) -> bool:
        """Whether the answers of several groups of parts have to be put together."""
        return len(self.spread.groups) > 1

    def put(
        self,
        read: Callable[[WorkerQuestion], Matcher],
        schema: Callable[[Layout], StructType | str],
        keep: Column | None = None,
        prepare: Callable[[DataFrame], DataFrame] = lambda selected: selected,
        finish: Callable[[DataFrame], DataFrame] = lambda found: found,
    ) -> DataFrame:
        """What a matcher reads out of the answers of each group of parts, one after the other.

        `keep` is a column that the matcher gets besides the events; `prepare` is what happens to
        the events before they are matched, `finish` what happens to each group's answers.
        """
        if self.is_split and choose_id(self.events, self.event_id) is None:
            raise InputError(
                "a split index needs the events' ids, to put the groups' answers together",
                hint="name the column: event_id=…",
            )
        expect_some(self.events, self.parts.version.attributes, self.attributes)
        whole = self.events.coalesce(1) if self.spread.is_whole else self.events
        results = []
        for group in self.spread.groups:
            paths = sorted({path for part in group.parts for path in part.attributes})
            selected, layout = select_events(whole, paths, self.event_id, self.attributes, keep)
            task = read(self.question(group, layout))
            results.append(finish(run_on_workers(prepare(selected), task, schema(layout))))
        report_columns(self.events, self.parts, self.attributes)
        return reduce(lambda one, other: one.unionByName(other), results)


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for name in options:
        known = tuple(EventOptions.__annotations__)
        hint = "tamis.spark.match takes top" if name == "top" else None
        likely = suggest(name, known)
        raise InputError(
            f"there is no option {name} here; options: {', '.join(known)}",
            hint=hint or (f"did you mean {likely}?" if likely else None),
        )


def _report_unknown(
    parts: PartSet, ids: tuple[str, ...] | None, tags: tuple[str, ...] | None
) -> None:
    """Warn about ids and tags that no subscription has. The parts are opened only if some are
    given.
    """
    if tags is not None:
        parts.inspect().tagged(*tags)
    unknown = [] if ids is None else [name for name in ids if name not in parts.inspect()]
    if unknown:
        n = len(unknown)
        more = "" if n == 1 else f" and {n - 1:,} more of `subset`"
        warn(f'no subscription has the id "{unknown[0]}"{more}; what is not there matches nothing')


def _read_names(given: Any, what: str, *, is_one: bool = False) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = (given,) if isinstance(given, str) and is_one else tuple(given)
    if isinstance(given, str) and not is_one:
        raise InputError(
            f"{what} is {given!r}; a list of subscription ids is expected",
            hint=f"write [{given!r}]",
        )
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{what} names texts, not {type(name).__name__}: {name!r}")
    return names
