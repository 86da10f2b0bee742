"""Details of subscriptions for results: tags, validity, attributes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.arguments import expect_distinct, expect_names
from tamis.errors import InputError, suggest, warn
from tamis.index.attributes import NONE, parse_attributes
from tamis.index.stored_texts import all_texts
from tamis.index.validity import limits_columns
from tamis.language.weights import WEIGHT
from tamis.match.event_columns import spell_array, to_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tamis.index.contents import Contents
    from tamis.match.catalogue import Catalogue

LIMITS: Final = ("valid_from", "valid_until")
OWN: Final = ("expression", "tags", *LIMITS, WEIGHT)  # that every subscription may have


class Details:
    """The details of an index's subscriptions, read on first use."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._columns: dict[str, pa.Array] = {}  # by name
        self._texts: dict[str, pa.Array] = {}

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The attributes that subscriptions have, sorted."""
        parts = self._catalogue.parts
        return tuple(sorted({name for part in parts for name in part.contents.attribute_names}))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that can be requested."""
        return (*OWN, *(name for name in self.attribute_names if name not in OWN))

    def of(self, ordinal: int) -> dict[str, Any]:
        """All details of one subscription, without its expression."""
        number, local = self._catalogue.place(ordinal)
        contents = self._catalogue.parts[number].contents
        found: dict[str, Any] = {}
        if tags := contents.tags[local].as_py():
            found["tags"] = tags
        if len(contents.validity.ordinals):
            found |= {name: limit for name, limit in self.limits(ordinal).items() if limit}
        if contents.attributes is None:
            return found
        return found | parse_attributes(contents.attributes[local].as_py())

    def limits(self, ordinal: int) -> dict[str, datetime | None]:
        """The validity of a subscription: its start and end."""
        return {name: self.column(name)[ordinal].as_py() for name in LIMITS}

    def expect(self, names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
        """The columns; raises an error for those that no subscription has, or that the result has
        already.
        """
        return expect_columns(names, self.names, taken)

    def column(self, name: str) -> pa.Array:
        """One column of all subscriptions, by ordinal; NULL for those without a value."""
        if name not in self._columns:
            self._columns[name] = self._read(name)
        return self._columns[name]

    def text_column(self, name: str) -> pa.Array:
        """Like `column`, but attributes as strings: JSON for other values."""
        if name in OWN:
            return self.column(name)
        if name not in self._texts:
            values = self.column(name)
            is_text = values.type == pa.string()
            self._texts[name] = values if is_text else spell_array(values)
        return self._texts[name]

    def _read(self, name: str) -> pa.Array:
        gather = self._catalogue.gather
        if name == "expression":
            return gather(lambda contents: _joined(all_texts(contents.texts)))
        if name == "tags":
            return gather(lambda contents: contents.tags)
        if name == WEIGHT:
            return self._catalogue.weights
        if name in LIMITS:
            return gather(lambda contents: _limits(contents)[LIMITS.index(name)])
        if name not in self.attribute_names:
            return pa.nulls(len(self._catalogue))
        return to_array([own.get(name) for own in self._attributes()])

    def _attributes(self) -> Iterator[dict[str, Any]]:
        texts = self._catalogue.gather(_attribute_texts)
        yield from map(parse_attributes, texts.to_pylist())


def _limits(contents: Contents) -> tuple[pa.Array, pa.Array]:
    return limits_columns(contents.validity, len(contents.ids))


def _attribute_texts(contents: Contents) -> pa.Array:
    if contents.attributes is None:
        return pa.repeat(NONE, len(contents.ids))
    return _joined(all_texts(contents.attributes))


def expect_columns(
    names: Sequence[str], known: Sequence[str], taken: Sequence[str] = ()
) -> list[str]:
    """The columns; raises an error for those that are unknown, or that the result has already."""
    found = expect_names(names, "columns")
    hint = "leave it out; if it is an attribute of subscriptions, rename that and rebuild the index"
    expect_distinct(found, taken, "columns", hint)
    for name in found:
        if name not in known:
            likely = suggest(name, known)
            raise InputError(
                f"no subscription has {name!r}; available: {', '.join(known)}",
                hint=f'did you mean "{likely}"?' if likely else None,
            )
    return found


def report_weightless() -> None:
    """Warn about an index in which the best matches are only the first ids."""
    warn(
        "no subscription has a weight, so the best matches are the first by id; give weights in a "
        "column named weight, or as weights= of tamis.build"
    )


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
