"""Sources: what an index was built from, and what a search wants from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.search.columns import Column
from tamis.search.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.search.relaxing import Source


class Sources(NamedTuple):
    """Fields and columns, in the order of their numbers in an index."""

    fields: tuple[Field, ...] = ()  # for whole words
    folded: tuple[Field, ...] = ()  # for words with wildcards
    columns: tuple[Column, ...] = ()

    @classmethod
    def of(cls, sources: Iterable[Source]) -> Sources:
        """Some sources, sorted."""
        distinct = set(sources)
        fields = sorted(own for own in distinct if isinstance(own, Field))
        columns = sorted(own for own in distinct if isinstance(own, Column))
        return cls(
            tuple(own for own in fields if not own.is_folded),
            tuple(own for own in fields if own.is_folded),
            tuple(columns),
        )

    @classmethod
    def read(cls, spelled: list[list[list[Any]]]) -> Sources:
        """The sources that `spell` has spelled."""
        fields, folded, columns = spelled
        return cls(
            tuple(Field(tuple(path), analyser) for path, analyser in fields),
            tuple(Field(tuple(path), analyser, True) for path, analyser in folded),
            tuple(Column(tuple(path), type_) for path, type_ in columns),
        )

    def spell(self) -> list[list[list[Any]]]:
        """As JSON."""
        return [[[list(own[0]), own[1]] for own in group] for group in self]

    def all(self) -> Iterator[Source]:
        """Each of them."""
        yield from self.fields
        yield from self.folded
        yield from self.columns

    def number(self) -> dict[Source, int]:
        """The number of each, within its group."""
        fields: dict[Source, int] = {own: slot for slot, own in enumerate(self.fields)}
        folded: dict[Source, int] = {own: slot for slot, own in enumerate(self.folded)}
        columns: dict[Source, int] = {own: slot for slot, own in enumerate(self.columns)}
        return fields | folded | columns
