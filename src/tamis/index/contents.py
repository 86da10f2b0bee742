"""The contents of an index, in memory or on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.index.id_table import IdTable
from tamis.index.validity import NO_VALIDITY, ValidityArrays
from tamis.index.weights import NO_WEIGHTS, WeightArrays
from tamis.operators.plan import NO_PLAN, StoredResiduals

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.index.columns import Column
    from tamis.index.constants import ConstantArrays
    from tamis.index.layout import LeafArrays, NodeArrays, RootArrays
    from tamis.index.stored_texts import StoredTexts
    from tamis.index.triggers import TriggerArrays
    from tamis.kernels.arrays import Int32, Int64
    from tamis.language.schema import Schema
    from tamis.logic.evaluate import Missing

NO_NUMBERS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Contents:
    """All data that matching and explaining need, without data that can be derived quickly."""

    schema: Schema
    missing: Missing
    columns: tuple[Column, ...]
    constants: ConstantArrays  # of all columns
    n_leaves: int
    leaves: LeafArrays
    nodes: NodeArrays
    roots: RootArrays
    triggers: TriggerArrays
    never: Int32  # ordinals of subscriptions that no event matches
    ids: pa.StringArray  # of subscriptions, by ordinal
    texts: pa.ChunkedArray | StoredTexts  # their expressions, by ordinal
    tags: pa.ListArray  # of strings: the subscriptions' tags, by ordinal
    plan: StoredResiduals = NO_PLAN  # the part that operators decide
    validity: ValidityArrays = NO_VALIDITY  # the time limits of some of them
    weights: WeightArrays = NO_WEIGHTS  # how much some of them weigh
    # JSON objects, by ordinal: the details of subscriptions; None if none has any.
    attributes: pa.ChunkedArray | StoredTexts | None = None
    attribute_names: tuple[str, ...] = ()  # of all these objects, sorted
    # By ordinal: a number that a store gave each subscription and gives no other; empty if the
    # subscriptions do not come from a store.
    numbers: Int64 = field(default_factory=lambda: NO_NUMBERS)
    provenance: dict[str, Any] = field(default_factory=dict)
    statistics: dict[str, Any] = field(
        default_factory=dict
    )  # measured, such as how often leaves are true

    @property
    def n_nodes(self) -> int:
        """Leaves and inner nodes."""
        return self.n_leaves + len(self.nodes.operators)

    @cached_property
    def n_stored(self) -> int:
        """The number of nodes that others are made of, leaves included; the rest, tops, come after
        them.
        """
        return max(self.n_leaves, int(self.nodes.children.max(initial=-1)) + 1)

    @cached_property
    def id_table(self) -> IdTable:
        """Finds subscriptions by id."""
        return IdTable(self.ids)

    @property
    def always_true(self) -> Int32:
        """Ordinals of subscriptions that every event matches, regardless of operators."""
        found: Int32 = np.setdiff1d(self.roots.always, self.plan.arrays.subscriptions)
        return found

    @property
    def n_codes(self) -> int:
        """The number of codes of all columns together."""
        return int(self.leaves.column_codes[-1])
