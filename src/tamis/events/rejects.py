"""Values that are invalid for their attribute: treated as missing, counted, and reported."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.errors import InputError
from tamis.events.oddities import Oddities
from tamis.language.lambdas import ELEMENT
from tamis.language.names import print_path
from tamis.language.types import KINDS, WrongTypeError, is_foreign, spell_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.errors import RowError
    from tamis.kernels.arrays import Int32
    from tamis.language.schema import Path
    from tamis.language.types import Type

EXAMPLES_PER_KIND: Final = 3
MAX_EXAMPLES: Final = 100
SHOWN_LENGTH: Final = 60


class RejectKind(StrEnum):
    """Why a value is rejected."""

    WRONG_TYPE = "wrong-type"  # a string for a number
    BAD_VALUE = "bad-value"  # of an allowed class, but too large, not a date, not UTF-8 …
    NO_RESULT = "no-result"  # of a function: division by zero, overflow
    BAD_ROW = "bad-row"  # no event can be read from the row: it matches nothing


@dataclass(frozen=True, slots=True)
class Reject:
    """One rejected value, or a rejected row."""

    row: int  # from 0; in the batch, or in the source if that is read in chunks
    attribute: str | None  # as an expression spells it; None for a whole row
    expected: str | None  # the attribute's type
    value: str  # as shown to people, truncated
    reason: str
    kind: RejectKind

    def __str__(self) -> str:
        place = f"row {self.row}"
        if self.attribute is None or self.kind is RejectKind.NO_RESULT:
            return f"{place}: {self.reason}"
        return f"{place}, attribute {self.attribute}: {self.reason}; expected: {self.expected}"


class Refused(NamedTuple):
    """Values of one type that cannot be read, in their original form."""

    rows: np.ndarray  # int[n]
    attributes: Int32  # [n], their numbers
    is_wrong_type: np.ndarray  # bool[n]: class never accepted; otherwise an invalid value
    value_at: Callable[[int], Any]  # the i-th value as a Python object
    explain: Callable[[Any], str]  # describes the error of a value
    other_kind: RejectKind = RejectKind.BAD_VALUE  # of those whose class is accepted


class Rejects:
    """The rejects: exact counts by attribute and kind, and the first few as examples.

    With `strict` the first one is raised as an `InputError` instead. A million wrong values of one
    column cost a count, not a million objects.
    """

    __slots__ = ("_refused", "counts", "examples", "first_row", "oddities", "row_errors", "strict")

    def __init__(
        self, *, strict: bool = False, first_row: int = 0, lists_all: bool = False
    ) -> None:
        """`lists_all`: keep what `all_values` lists, and not only examples."""
        self.strict = strict
        self.first_row = first_row  # of the batch within its source
        self.counts: Counter[tuple[str | None, RejectKind]] = Counter()
        self.examples: list[Reject] = []
        # Of the batch: all rows in which there is no event, and why.
        self.row_errors: dict[int, RowError] = {}
        self._refused: list[tuple[Refused, Type, Sequence[Path]]] | None = [] if lists_all else None
        self.oddities = Oddities()  # of events that are read all the same

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Reject]:
        return iter(self.examples)

    def __repr__(self) -> str:
        return f"<Rejects: {len(self)} in all: {dict(self.counts)}>"

    @property
    def bad_rows(self) -> list[int]:
        """All rows of the batch in which there is no event."""
        return list(self.row_errors)

    def add_row(self, row: int, value: Any, error: RowError) -> None:
        """Count a row without a valid event."""
        kind = RejectKind.BAD_ROW
        self.row_errors[row] = error
        reject = Reject(self.first_row + row, None, None, show(value), error.message, kind)
        self._add(None, kind, [reject])

    def add_value(self, row: int, path: Path, type_: Type, value: Any, error: Exception) -> None:
        """Count one value; `error` describes the error."""
        kind = RejectKind.WRONG_TYPE if is_wrong_type(value, type_) else RejectKind.BAD_VALUE
        name = print_path(path)
        reject = Reject(self.first_row + row, name, str(type_), show(value), str(error), kind)
        self._add(name, kind, [reject])

    def add_no_result(self, path: Path, type_: Type, arguments: Any, reason: str) -> None:
        """Count one event for which a function has no result."""
        kind, name = RejectKind.NO_RESULT, print_path(path)
        reject = Reject(self.first_row, name, str(type_), show(arguments), reason, kind)
        self._add(name, kind, [reject])

    def add_values(self, refused: Refused, type_: Type, paths: Sequence[Path]) -> None:
        """Count values of one type; `paths` are those of all attributes, by number."""
        if self.strict and len(refused.rows):
            first = int(np.lexsort((refused.attributes, refused.rows))[0])
            raise InputError(str(self._make_reject(first, refused, type_, paths)))
        if self._refused is not None:
            self._refused.append((refused, type_, paths))
        keys = 2 * refused.attributes.astype(np.int64) + refused.is_wrong_type
        order = np.argsort(keys, kind="stable")
        bounds = [*np.flatnonzero(np.diff(keys[order], prepend=-1)).tolist(), len(order)]
        for begin, end in pairwise(bounds):
            examples = [
                self._make_reject(at, refused, type_, paths)
                for at in order[begin : min(end, begin + EXAMPLES_PER_KIND)].tolist()
            ]
            self._add(examples[0].attribute, examples[0].kind, examples, end - begin)

    def all_values(self) -> list[Reject]:
        """Each value that `add_values` counted, by row and attribute; needs `lists_all`."""
        found = [
            (int(refused.rows[at]), int(refused.attributes[at]), refused, at, type_, paths)
            for refused, type_, paths in self._refused or ()
            for at in range(len(refused.rows))
        ]
        found.sort(key=lambda one: one[:2])
        return [
            self._make_reject(at, refused, type_, paths)
            for _, _, refused, at, type_, paths in found
        ]

    def merge(self, other: Rejects) -> None:
        """Add the rejects of another batch."""
        for (attribute, kind), n_rejects in other.counts.items():
            examples = [e for e in other if (e.attribute, e.kind) == (attribute, kind)]
            self._add(attribute, kind, examples, n_rejects)
        self.oddities.merge(other.oddities)

    def add_elements(
        self, path: Path, other: Rejects, parents: Int32, *, is_batch: bool = True
    ) -> None:
        """Add the rejects of the elements of an array, given the row of each element.

        Parts of an index that test the same array find the same ones, which count once in a batch.
        """
        for (name, kind), n_rejects in other.counts.items():
            shown = _name_in(path, str(name))
            if not is_batch or (shown, kind) not in self.counts:
                examples = [
                    replace(e, row=self.first_row + int(parents[e.row]), attribute=shown)
                    for e in other
                    if (e.attribute, e.kind) == (name, kind)
                ]
                self._add(shown, kind, examples, n_rejects)
        for name, foreign in other.oddities.foreign.items():
            shown, first = _name_in(path, name), self.first_row + int(parents[foreign.row])
            if not is_batch or shown not in self.oddities.foreign:
                self.oddities.add_foreign(shown, foreign._replace(row=first))
        for name, (row, n_values) in other.oddities.ones.items():
            shown, first = _name_in(path, name), self.first_row + int(parents[row])
            if not is_batch or shown not in self.oddities.ones:
                self.oddities.add_ones(shown, first, n_values)

    def to_dict(self) -> dict[str, Any]:
        """The rejects as a dictionary of JSON values."""
        counts = [
            {"attribute": attribute, "kind": str(kind), "count": n_rejects}
            for (attribute, kind), n_rejects in self.counts.items()
        ]
        return {"total": len(self), "counts": counts, "examples": [asdict(e) for e in self]}

    def _add(
        self, attribute: str | None, kind: RejectKind, examples: list[Reject], n_rejects: int = 1
    ) -> None:
        if self.strict and examples:
            raise InputError(str(examples[0]))
        n_wanted = max(0, EXAMPLES_PER_KIND - self.counts[attribute, kind])
        self.counts[attribute, kind] += n_rejects
        self.examples.extend(examples[: min(n_wanted, MAX_EXAMPLES - len(self.examples))])

    def _make_reject(self, at: int, refused: Refused, type_: Type, paths: Sequence[Path]) -> Reject:
        value = refused.value_at(at)
        is_wrong_type = bool(refused.is_wrong_type[at])
        return Reject(
            self.first_row + int(refused.rows[at]),
            print_path(paths[refused.attributes[at]]),
            str(type_),
            show(value),
            refused.explain(value),
            RejectKind.WRONG_TYPE if is_wrong_type else refused.other_kind,
        )


def _name_in(path: Path, name: str) -> str:
    """An attribute of the elements of an array, as shown to people."""
    field = name.removeprefix(f"{ELEMENT}.")
    return f"{print_path(path)}{'.' if field != name else ': '}{field}"


def explain_by(
    read: Callable[[Any, Type], Any], type_: Type, otherwise: str
) -> Callable[[Any], str]:
    """The message of `read` when it rejects a value; if it does not, that of `otherwise`."""

    def explain(value: Any) -> str:
        try:
            read(value, type_)
        except WrongTypeError as error:
            return str(error)
        return f"{show(value)} {otherwise}"

    return explain


def is_wrong_type(value: Any, type_: Type) -> bool:
    """Whether values of this class are never of the type."""
    if type_.reads and is_foreign(value, type_):
        return False
    if type_.takes_one and not isinstance(value, list | tuple):
        assert type_.element is not None
        return is_wrong_type(value, type_.element)
    if isinstance(value, bool) and type_.name != "boolean":
        return True
    if isinstance(value, datetime) and type_.name == "date":
        return True
    return not isinstance(value, KINDS[type_.name].classes)


def show(value: Any) -> str:
    """The value as shown to people, truncated."""
    shown = spell_value(value)
    return shown if len(shown) <= SHOWN_LENGTH else shown[: SHOWN_LENGTH - 1] + "…"
