"""Attributes that subscriptions use and for which no event has a valid value.

An event may lack an attribute. But if none of many events has it, or if they have one whose name
differs only in case, it is probably misspelt.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.errors import RejectWarning, warn
from tamis.events.names import ELEMENT, IN_TEXT
from tamis.events.oddities import Oddities
from tamis.events.rejects import Rejects
from tamis.index.uses import add_uses, asked_paths, count_uses
from tamis.language.lookalikes import Use, describe_use, find_alike, fold, is_same_but_case
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.events.encoder import EncodedEvents
    from tamis.events.rejects import Reject
    from tamis.index.contents import Contents
    from tamis.language.schema import Path
    from tamis.language.types import Type

MANY: Final = 100  # events: among fewer, an attribute may well be missing
SHOWN: Final = 3
_EXPRESSION: Final = ("expression",)  # the name that subscriptions have
_LOOKED_AT: Final = 1_000  # events of a list that are matched one by one


class NeededAttributes:
    """The attributes whose values an index needs, and the number of subscriptions that use them."""

    def __init__(self, find_parts: Callable[[], Sequence[Contents]], table: AttributeTable) -> None:
        self.table = table
        self._find_parts = find_parts

    @cached_property
    def known(self) -> frozenset[Path]:
        """Their paths."""
        return frozenset(self.table.by_path)

    @cached_property
    def uses(self) -> dict[Path, Use]:
        """How many subscriptions use each attribute."""
        return add_uses(
            count_uses(contents, asked_paths(contents)) for contents in self._find_parts()
        )


class SingleRejects(Rejects):
    """Warns about the first invalid value of each attribute; counts nothing."""

    __slots__ = ("_reported",)

    def __init__(self) -> None:
        super().__init__()
        self._reported: set[Path] = set()

    def add_value(self, row: int, path: Path, type_: Type, value: Any, error: Exception) -> None:
        """Warn about the value, unless an earlier value of the same attribute was reported."""
        if path in self._reported:
            return
        self._reported.add(path)
        warn(
            f"a value of attribute {print_path(path)} was not read and is treated as missing: "
            f"{error}. index.encode([event]).rejects lists the errors of an event; no more "
            "values of this attribute are reported",
            RejectWarning,
        )

    def add_no_result(self, path: Path, type_: Type, arguments: Any, reason: str) -> None:
        """Warn about a function without a result, unless it was reported earlier."""
        if path in self._reported:
            return
        self._reported.add(path)
        warn(
            f"{print_path(path)} has no result for an event and is treated as missing: {reason}. "
            "No more events are reported for it",
            RejectWarning,
        )


class FirstEvents:
    """Chooses the lists of single events in which to look for missing attributes.

    Looking takes about as long as matching: it is done for the first call, and for the first call
    with many events.
    """

    __slots__ = ("_n_seen",)

    def __init__(self) -> None:
        self._n_seen = 0  # events of the largest call that was looked at

    def take(self, events: Iterator[Any]) -> list[Any]:
        """The first events of a call, unless no further call is to be looked at."""
        return list(islice(events, _LOOKED_AT)) if self._n_seen < MANY else []

    def is_due(self, taken: Sequence[Any]) -> bool:
        """Whether to look at the events of this call."""
        if self._n_seen >= MANY or len(taken) < (MANY if self._n_seen else 1):
            return False
        self._n_seen = len(taken)
        return True


class Watch:
    """The attributes found in the events of one call, batch after batch."""

    def __init__(self, asked: NeededAttributes) -> None:
        self._asked = asked
        self._n_events = 0
        self._has_values = np.zeros(len(asked.table), dtype=np.bool_)
        self._n_rejects: Counter[str | None] = Counter()  # by attribute, None for whole rows
        self._examples: dict[str | None, Reject] = {}
        self._oddities = Oddities()

    def add(self, batch: EncodedEvents, numbers: Sequence[int] | None = None) -> None:
        """Add a batch; `numbers` are those of its rows in their source, if they have any."""
        self._n_events += batch.n_rows
        if batch.has_values is not None:
            self._has_values |= batch.has_values
        for (attribute, _), n_rejects in batch.rejects.counts.items():
            self._n_rejects[attribute] += n_rejects
        for reject in batch.rejects:
            self._examples.setdefault(reject.attribute, reject)
        odd = batch.rejects.oddities
        self._oddities.merge(odd if numbers is None else odd.numbered(numbers))

    @property
    def is_idle(self) -> bool:
        """Whether there were no events, valid or not."""
        return not self._n_events and not self._n_rejects

    @property
    def _unseen(self) -> list[Path]:
        """The attributes without a valid value."""
        paths = self._asked.table.paths
        has_values = self._has_values[: self._asked.table.n_read]
        return [paths[at] for at in np.flatnonzero(~has_values).tolist()]

    def describe_unread(self) -> str | None:
        """A note on single values and rows that are invalid."""
        single = self._n_rejects - Counter({name: self._n_rejects[name] for name in self._unusable})
        if not single:
            return None
        things = "value or row was" if single.total() == 1 else "values and rows were"
        # Only some attributes have an example if very many have rejects.
        example = next((e for name, e in self._examples.items() if name in single), None)
        shown = "" if example is None else f", for example {example}"
        return (
            f"{single.total():,} {things} not read and treated as missing{shown}; "
            "index.encode(events).rejects lists them"
        )

    def describe_oddities(self, unit: str = "row") -> list[str]:
        """Sentences about suspicious values that are read nevertheless."""
        return self._oddities.describe(unit)

    @property
    def _unusable(self) -> list[str]:
        """The attributes with values of which none is valid."""
        return [name for name in map(print_path, self._unseen) if self._n_rejects[name]]

    def describe_unreadable(self) -> str | None:
        """A note on them; None if there are none."""
        names = self._unusable
        if not names:
            return None
        what = "an attribute has" if len(names) == 1 else f"{len(names):,} attributes have"
        shown = "; ".join(map(self._describe_values, names[:SHOWN])) + "; …" * (len(names) > SHOWN)
        return (
            f"{what} no usable value: {shown}. The values are treated as missing: convert them, or "
            "declare the type that they have in the schema of the index"
        )

    def _describe_values(self, name: str) -> str:
        n_values, example = self._n_rejects[name], self._examples.get(name)
        values = f"{n_values:,} value{'s' * (n_values != 1)}"
        shown = "" if example is None else f"; row {example.row}: {example.reason}"
        return f"{name} ({values}{shown})"

    def describe_missing(
        self, find_names: Callable[[], Collection[Path]], *, is_whole: bool = False
    ) -> str | None:
        """A note on attributes that no event has; None if there are none.

        If the events are all of a file (`is_whole`) and have no attribute of the index, that is
        reported of few events too.
        """
        unseen = [path for path in self._unseen if not self._n_rejects[print_path(path)]]
        if not self._n_events or not unseen:
            return None
        names = {path for path in find_names() if path not in self._asked.known}
        in_lists = find_in_lists(names)
        alike = find_likely(unseen, names, with_letters=self._n_events >= MANY)
        alike |= {path: in_lists[path] for path in unseen if path in in_lists}
        # Few events with some attributes may well lack others, even if a name ends like one of
        # them.
        is_strange = not self._has_values.any() and not self._n_rejects
        is_sure = is_strange or self._n_events >= MANY
        alike = find_wrapped(unseen, names, with_ends=is_sure) | alike
        is_sure = self._n_events >= MANY or (is_strange and is_whole)
        missing = [path for path in unseen if path in alike or is_sure]
        uses = self._asked.uses if missing else {}
        missing = [path for path in missing if path in uses]
        where = f"in every event ({self._n_events:,} event{'s' * (self._n_events != 1)})"
        if not missing:
            return None
        note = describe_missing(missing, alike, uses, where)
        if is_strange and _EXPRESSION in names:
            note += f". They have an {_EXPRESSION[0]} each: are they subscriptions?"
        return note


def describe_no_events(place: str) -> str:
    """One sentence about a file without events to match."""
    return f"there are no events in {place}"


def find_in_lists(names: Collection[Path]) -> dict[Path, Path]:
    """The names of objects in lists, and their paths: perhaps each object is an event."""
    return {
        path[path.index(ELEMENT) + 1 :]: path[: path.index(ELEMENT) + 1]
        for path in sorted(names, reverse=True)
        if ELEMENT in path
    }


def find_wrapped(
    missing: Collection[Path], names: Collection[Path], *, with_ends: bool
) -> dict[Path, Path]:
    """For missing attributes, the shortest name in the events that ends like it: each event may be
    wrapped in another object. Without `with_ends`, only if the wrapping is JSON in a text.
    """
    found: dict[Path, Path] = {}
    wanted = {_fold(path): path for path in missing}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        if ELEMENT in name:
            continue
        folded = _fold(name)
        first = len(folded) - 1 if with_ends else 0
        for start in range(first, -1, -1):
            path = wanted.get(folded[start:])
            if path is not None and (start or IN_TEXT in name):
                found[path] = name
    return found


def _fold(path: Path) -> Path:
    return tuple(fold(step) for step in path if step != IN_TEXT)


def find_likely(
    missing: Collection[Path], names: Collection[Path], *, with_letters: bool = True
) -> dict[Path, Path]:
    """For missing attributes, the similar name in the events, if there is one."""
    wanted, given = set(missing), set(names)
    found: dict[Path, Path] = {}
    for pair in find_alike([*missing, *sorted(names)]):
        for one, other in (pair, pair[::-1]):
            if one in wanted and other in given:
                is_same = is_same_but_case(one, other)
                if is_same or (with_letters and one not in found):
                    found[one] = other
    return found


def describe_missing(
    missing: Collection[Path],
    alike: Mapping[Path, Path],
    uses: Mapping[Path, Use],
    where: str,
) -> str:
    """One sentence about attributes that no event has, with examples and a remedy."""
    n = len(missing)
    what = "an attribute that subscriptions use is" if n == 1 else f"{n:,} attributes that "
    what += "" if n == 1 else "subscriptions use are"
    # Those similar to another name first, then by the number of subscriptions affected.
    ordered = sorted(missing, key=lambda path: (path not in alike, -_count(uses, path), path))
    shown = "; ".join(_describe_one(path, alike, uses) for path in ordered[:SHOWN])
    shown += "; …" if n > SHOWN else ""
    return (
        f"{what} missing {where}: {shown}. Correct the expressions or the names in the events, "
        "unless this is intended"
    )


def _describe_one(path: Path, alike: Mapping[Path, Path], uses: Mapping[Path, Use]) -> str:
    missing = print_path(path)
    if path in uses:
        missing += f" ({describe_use(uses[path])})"
    if path not in alike:
        return missing
    *where, last = alike[path]
    if IN_TEXT in alike[path]:
        whole = print_path(alike[path][: alike[path].index(IN_TEXT)])
        return f"{missing}, but the JSON inside the text {whole} has it: parse that text first"
    if last == ELEMENT:
        whole = print_path(tuple(where))
        return f"{missing}, but the objects in the list {whole} have it: match these"
    return f"{missing}, but they have {print_path(alike[path])}"


def _count(uses: Mapping[Path, Use], path: Path) -> int:
    return uses[path].n_subscriptions if path in uses else 0
