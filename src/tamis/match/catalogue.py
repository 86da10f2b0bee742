"""The subscriptions of an index by ordinal, over all its parts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import InputError, suggest
from tamis.index.hiding import hide
from tamis.index.id_table import WantedIds
from tamis.index.weights import all_weights
from tamis.language.schema import Schema
from tamis.language.types import ANY
from tamis.match.tags import report_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32


class IndexPart(NamedTuple):
    """Some subscriptions of an index, in separate arrays."""

    contents: Contents
    # bool[n_subscriptions]: those that do not answer, since a later part replaces or removes them;
    # None if there are none.
    is_hidden: np.ndarray | None = None

    def hide(self) -> Contents:
        """The contents, in which hidden subscriptions match nothing."""
        return self.contents if self.is_hidden is None else hide(self.contents, self.is_hidden)

    @property
    def n_hidden(self) -> int:
        """How many subscriptions do not answer."""
        return 0 if self.is_hidden is None else int(np.count_nonzero(self.is_hidden))

    @property
    def n_shown(self) -> int:
        """The number of subscriptions that answer."""
        return len(self.contents.ids) - self.n_hidden


class Numbering:
    """The ordinals in the index of a part's subscriptions: hidden ones have none."""

    def __init__(self, part: IndexPart, first: int, n_shown: int) -> None:
        self.first = first
        self.end = first + n_shown
        self._is_hidden = part.is_hidden if n_shown < len(part.contents.ids) else None

    # Computed on first use: an index that changes has a new numbering after each change.
    @cached_property
    def _locals(self) -> np.ndarray | None:
        """The part's subscriptions that are not hidden; None if all are."""
        return None if self._is_hidden is None else np.flatnonzero(~self._is_hidden)

    @cached_property
    def _ordinals(self) -> Int32 | None:
        """[n_subscriptions of the part]; -1 for hidden ones; None if there are none."""
        if self._is_hidden is None:
            return None
        ordinals = np.full(len(self._is_hidden), -1, dtype=np.int32)
        ordinals[self._locals] = np.arange(self.first, self.end, dtype=np.int32)
        return ordinals

    def to_index(self, ordinals: Int32) -> Int32:
        """The part's ordinals converted to those of the index."""
        if self._ordinals is not None:
            return self._ordinals[ordinals]
        return ordinals + np.int32(self.first) if self.first else ordinals

    def to_part(self, values: Any) -> Any:
        """The values by ordinal of the index, converted to the part's ordinals; 0 for hidden
        ones.
        """
        own = values[self.first : self.end]
        if self._ordinals is None or self._locals is None:
            return own
        found = np.zeros(len(self._ordinals), dtype=own.dtype)
        found[self._locals] = own
        return found

    def local(self, ordinal: int) -> int:
        """The part's ordinal of one of its subscriptions."""
        own = ordinal - self.first
        return own if self._locals is None else int(self._locals[own])

    def shown(self, values: Any) -> Any:
        """The values of the subscriptions that are not hidden, from an array by ordinal of the
        part.
        """
        if self._locals is None:
            return values
        is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
        return values.take(pa.array(self._locals)) if is_arrow else values[self._locals]


class WeightOrder(NamedTuple):
    """The subscriptions from the highest weight to the lowest, and of equal weights by id."""

    ranks: Int32  # by ordinal
    ordinals: Int32  # by rank


class Catalogue:
    """Numbers the subscriptions of all parts, one part after the other."""

    def __init__(self, parts: Sequence[IndexPart]) -> None:
        self.parts = tuple(parts)
        n_shown = [part.n_shown for part in parts]  # takes a while for a large part: once is enough
        ends = np.cumsum([0, *n_shown]).tolist()
        self.numberings = tuple(map(Numbering, parts, ends, n_shown))
        self._n_subscriptions: int = ends[-1]

    def __len__(self) -> int:
        return self._n_subscriptions

    def has_parts_of(self, other: Catalogue) -> bool:
        """Whether both are of the same parts, of which other subscriptions may be hidden."""
        return [id(part.contents) for part in self.parts] == [
            id(part.contents) for part in other.parts
        ]

    def __contains__(self, subscription_id: object) -> bool:
        return isinstance(subscription_id, str) and self._find([subscription_id])[0] >= 0

    @cached_property
    def ids(self) -> pa.StringArray:
        """The ids, by ordinal."""
        return self.gather(lambda contents: contents.ids)

    def names(self, ordinals: np.ndarray) -> list[str]:
        """The ids of these subscriptions."""
        return list(self.ids.take(pa.array(ordinals)).to_pylist())

    def gather(self, read: Callable[[Contents], pa.Array]) -> pa.Array:
        """A column of the subscriptions of all parts, by ordinal."""
        columns = [
            numbering.shown(read(part.contents))
            for part, numbering in zip(self.parts, self.numberings, strict=True)
        ]
        if len(columns) == 1:
            return columns[0]
        return pa.concat_arrays(columns)

    def ordinal(self, subscription_id: Any) -> int:
        """The number of a subscription; raises an `InputError` if there is no such id."""
        if not isinstance(subscription_id, str):
            what = type(subscription_id).__name__
            raise InputError(
                f"a subscription's id must be a string, not {what}: {subscription_id!r}"
            )
        ordinal = int(self._find([subscription_id])[0])
        if ordinal < 0:
            raise self._unknown(subscription_id)
        return ordinal

    def _unknown(self, subscription_id: str) -> InputError:
        likely = suggest(subscription_id, self.ids[:10_000].to_pylist())
        hint = f'did you mean "{likely}"?' if likely else None
        return InputError(f'no subscription "{subscription_id}" in the index', hint=hint)

    def _find(self, ids: Sequence[str]) -> Int32:
        """The ordinals of these subscriptions, -1 for unknown ids."""
        wanted = WantedIds.of(ids)
        found = np.full(len(ids), -1, dtype=np.int32)
        for part, numbering in zip(self.parts, self.numberings, strict=True):
            local = part.contents.id_table.find(wanted)
            has_it = local >= 0
            found[has_it] = np.maximum(found[has_it], numbering.to_index(local[has_it]))
        return found

    @cached_property
    def schema(self) -> Schema:
        """The attributes of all parts; they have the same types, or `any` in some parts."""
        schemas = [part.contents.schema for part in self.parts]
        if len(schemas) == 1:
            return schemas[0]
        types = {path: schema[path] for schema in schemas for path in schema}
        known = {path: s[path] for s in schemas for path in s if s[path] != ANY}
        # Where parts have different definitions of a name, the newest is the last.
        definitions = {name: text for s in schemas for name, text in s.definitions.items()}
        return Schema(types | known, definitions=definitions)

    def place(self, ordinal: int) -> tuple[int, int]:
        """The number of the part that has a subscription, and its ordinal there."""
        for number, numbering in enumerate(self.numberings):
            if ordinal < numbering.end:
                return number, numbering.local(ordinal)
        raise IndexError(ordinal)

    def text(self, ordinal: int) -> str:
        """The expression of a subscription, as it was written."""
        number, local = self.place(ordinal)
        return str(self.parts[number].contents.texts[local].as_py())

    @cached_property
    def weights(self) -> pa.Array:
        """The weight of each subscription, by ordinal; 0 where none was given."""
        return self.gather(lambda own: pa.array(all_weights(own.weights, len(own.ids))))

    @property
    def has_weights(self) -> bool:
        """Whether some subscription has a weight."""
        return any(len(part.contents.weights.ordinals) for part in self.parts)

    @cached_property
    def ranking(self) -> WeightOrder:
        """The order of subscriptions by weight and id."""
        import pyarrow.compute as pc  # slow to load, and most matching does not need it

        table = pa.table({"weight": self.weights, "id": self.ids})
        keys = [("weight", "descending"), ("id", "ascending")]
        ordinals = pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int32)
        ranks = np.empty(len(ordinals), dtype=np.int32)
        ranks[ordinals] = np.arange(len(ordinals), dtype=np.int32)
        return WeightOrder(ranks, ordinals)

    # ── some of them ───────────────────────────────────────────────────────────────────────

    def find(self, subset: Iterable[str]) -> np.ndarray:
        """bool[n_subscriptions]: those with these ids."""
        is_wanted = np.zeros(len(self), dtype=np.bool_)
        names = list(subset)
        if not all(isinstance(name, str) for name in names):
            names = [name for name in names if self.ordinal(name) >= 0]  # raises the error
        ordinals = self._find(names)
        if (ordinals < 0).any():
            raise self._unknown(names[int(np.argmin(ordinals))])
        is_wanted[ordinals] = True
        return is_wanted

    def find_tagged(self, tags: Sequence[str], *, is_reported: bool = True) -> np.ndarray:
        """bool[n_subscriptions]: those that have one of the tags.

        A tag that no subscription has is reported, unless `is_reported` is False.
        """
        import pyarrow.compute as pc  # slow to load, and most matching does not need it

        for tag in tags:
            if not isinstance(tag, str):
                raise InputError(f"a tag must be a string, not {type(tag).__name__}: {tag!r}")

        lists = self.gather(lambda contents: contents.tags)
        flat = lists.flatten()
        if is_reported:
            report_tags(tags, flat)
        owners = np.repeat(np.arange(len(self)), pc.list_value_length(lists).to_numpy())
        has_tag = pc.is_in(flat, pa.array(tags, pa.string())).to_numpy(zero_copy_only=False)
        is_wanted = np.zeros(len(self), dtype=np.bool_)
        is_wanted[owners[has_tag]] = True
        return is_wanted
