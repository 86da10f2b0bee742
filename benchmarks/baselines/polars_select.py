"""One bulk Polars select: a Boolean column per expression over a batch of rows."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.baselines.leaves import (
    Constant,
    EventReader,
    Interval,
    Leaf,
    Missing,
    Text,
    ValueSet,
    read_leaf,
)
from tamis.language.ast import And, AtLeast, Condition, Not, Or, Xnor, Xor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from tamis.language.types import Type

ROW = "\0row"  # no attribute's name


class PolarsSelect:
    """A select of all typed conditions; Polars' own logic is three-valued, as SQL's."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._writer = SelectWriter()
        self._columns = [
            self._writer.write(condition).alias(str(position))
            for position, condition in enumerate(conditions)
        ]

    def match(self, event: Mapping[str, Any]) -> np.ndarray:
        """The positions of the conditions that are TRUE."""
        return self.match_batch([event])[0]

    def match_batch(self, events: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
        """The same for many events at once."""
        return self.match_frame(self.frame(events))

    def frame(self, events: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
        """The events as a frame with a column for each attribute the conditions name."""
        import polars as pl

        rows = [self._writer.reader.read(event) for event in events]
        columns = {
            key: pl.Series(key, [row.get(key) for row in rows], dtype=_dtype(type_))
            for key, type_ in self._writer.types.items()
        }
        return pl.DataFrame({ROW: pl.Series(ROW, range(len(rows)), dtype=pl.UInt32), **columns})

    def match_frame(self, frame: pl.DataFrame) -> list[np.ndarray]:
        """The positions of the conditions that are TRUE, for each row."""
        # The row's number makes a condition without attributes as long as the others.
        found = frame.select(ROW, *self._columns)
        is_true = np.zeros((len(frame), len(self._columns)), dtype=bool)
        for position, column in enumerate(found.iter_columns()):
            if position:
                is_true[:, position - 1] = column.fill_null(value=False).to_numpy()
        return [np.flatnonzero(row) for row in is_true]


class SelectWriter:
    """Conditions as Polars expressions."""

    def __init__(self) -> None:
        self.reader = EventReader()
        self.types: dict[str, Type] = {}

    def write(self, node: Condition) -> pl.Expr:
        """The expression of one condition."""
        match node:
            case And() | Or() | Xor():
                operator = {And: and_, Or: or_, Xor: xor}[type(node)]
                return reduce(operator, map(self.write, node.operands))
            case Not():
                return ~self.write(node.operand)
            case Xnor():
                return ~reduce(xor, map(self.write, node.operands))
            case AtLeast():
                return self._write_at_least(node.k, [self.write(x) for x in node.operands])
            case _:
                return self._write_leaf(read_leaf(node))

    def _write_at_least(self, k: int, operands: list[pl.Expr]) -> pl.Expr:
        import polars as pl

        n_true = pl.sum_horizontal(x.fill_null(value=False).cast(pl.Int32) for x in operands)
        n_possible = pl.sum_horizontal(x.fill_null(value=True).cast(pl.Int32) for x in operands)
        decided = pl.when(n_possible < k).then(statement=False)
        return pl.when(n_true >= k).then(statement=True).otherwise(decided)

    def _write_leaf(self, leaf: Leaf) -> pl.Expr:
        import polars as pl

        if isinstance(leaf, Constant):
            return pl.lit(leaf.value)
        is_lowered = isinstance(leaf, Text) and leaf.ignores_case
        key = self.reader.add(leaf.attribute, lowered=is_lowered)
        assert leaf.attribute.type is not None
        self.types[key] = leaf.attribute.type
        test = _write_test(leaf, pl.col(key))
        return ~test if leaf.is_negated else test


def _write_test(leaf: Interval | ValueSet | Text | Missing, column: pl.Expr) -> pl.Expr:
    match leaf:
        case Missing():
            return column.is_null()
        case ValueSet():
            return column.is_in(list(leaf.members))
        case Text(kind="equals"):
            return column == leaf.text
        case Text(kind="contains"):
            return column.str.contains(leaf.text, literal=True)
        case Text(kind="startswith"):
            return column.str.starts_with(leaf.text)
        case Text(kind="endswith"):
            return column.str.ends_with(leaf.text)
        case Text():
            return column.str.contains(f"^{leaf.text}$")
        case _:
            return _write_interval(leaf, column)


def _write_interval(leaf: Interval, column: pl.Expr) -> pl.Expr:
    if leaf.low is None:
        return column <= leaf.high if leaf.high_is_closed else column < leaf.high
    if leaf.high is None:
        return column >= leaf.low if leaf.low_is_closed else column > leaf.low
    if leaf.low == leaf.high:
        return column == leaf.low
    return column.is_between(leaf.low, leaf.high)


def _dtype(type_: Type) -> Any:
    import polars as pl

    return {
        "boolean": pl.Boolean,
        "integer": pl.Int64,
        "float": pl.Float32,
        "double": pl.Float64,
        "decimal": pl.Decimal(38, type_.scale),
        "string": pl.String,
        "date": pl.Date,
        "timestamp": pl.Datetime("us", "UTC"),
    }.get(type_.name, pl.Object)
