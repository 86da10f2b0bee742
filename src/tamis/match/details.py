"""What results can say of a subscription besides its id: its tags, its validity, its attributes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.arguments import expect_distinct, expect_names
from tamis.errors import InputError, suggest
from tamis.index.attributes import parse_attributes
from tamis.index.stored_texts import all_texts
from tamis.index.validity import limits_columns
from tamis.match.event_columns import spell_array, to_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tamis.index.contents import Contents

OWN: Final = ("expression", "tags", "valid_from", "valid_until")  # that every subscription may have


class Details:
    """The details of an index's subscriptions, read when they are first asked for."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._columns: dict[str, pa.Array] = {}  # by name
        self._texts: dict[str, pa.Array] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that can be asked for."""
        return (*OWN, *self._contents.attribute_names)

    def of(self, ordinal: int) -> dict[str, Any]:
        """All that one subscription has, its expression apart."""
        contents = self._contents
        found: dict[str, Any] = {}
        if tags := contents.tags[ordinal].as_py():
            found["tags"] = tags
        if len(contents.validity.ordinals):
            found |= {name: limit for name, limit in self.limits(ordinal).items() if limit}
        if contents.attributes is None:
            return found
        return found | parse_attributes(contents.attributes[ordinal].as_py())

    def limits(self, ordinal: int) -> dict[str, datetime | None]:
        """From when and until when a subscription is valid."""
        return {name: column[ordinal].as_py() for name, column in self._limits.items()}

    def expect(self, names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
        """The columns; refuses those that no subscription has, and those that are taken."""
        return expect_columns(names, self.names, taken)

    def column(self, name: str) -> pa.Array:
        """One column of all subscriptions, by ordinal; NULL where one has none."""
        if name not in self._columns:
            self._columns[name] = self._read(name)
        return self._columns[name]

    def text_column(self, name: str) -> pa.Array:
        """As `column`, but attributes as texts: JSON where they are none."""
        if name in OWN:
            return self.column(name)
        if name not in self._texts:
            values = self.column(name)
            is_text = values.type == pa.string()
            self._texts[name] = values if is_text else spell_array(values)
        return self._texts[name]

    def _read(self, name: str) -> pa.Array:
        contents = self._contents
        if name == "expression":
            return _joined(all_texts(contents.texts))
        if name == "tags":
            return contents.tags
        if name in OWN:
            return self._limits[name]
        if name not in contents.attribute_names:
            return pa.nulls(len(contents.ids))
        return to_array([own.get(name) for own in self._attributes()])

    @cached_property
    def _limits(self) -> dict[str, pa.Array]:
        contents = self._contents
        start, end = limits_columns(contents.validity, len(contents.ids))
        return {"valid_from": start, "valid_until": end}

    def _attributes(self) -> Iterator[dict[str, Any]]:
        texts = self._contents.attributes
        if texts is not None:
            for chunk in all_texts(texts).chunks:
                yield from map(parse_attributes, chunk.to_pylist())


def expect_columns(
    names: Sequence[str], known: Sequence[str], taken: Sequence[str] = ()
) -> list[str]:
    """The columns; refuses those that are not known, and those that the result has already."""
    found = expect_names(names, "columns")
    hint = "leave it out; if subscriptions have it as an attribute, rename that and build again"
    expect_distinct(found, taken, "columns", hint)
    for name in found:
        if name not in known:
            likely = suggest(name, known)
            raise InputError(
                f"no subscription has {name!r}; it can be asked for: {', '.join(known)}",
                hint=f'did you mean "{likely}"?' if likely else None,
            )
    return found


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
