"""The place of a saved index: pickling an index stores its place, not its contents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tamis.arguments import expect_path
from tamis.errors import IndexFormatError
from tamis.index import artefact
from tamis.index.saving import read_content_name
from tamis.match.operators import read_registry
from tamis.operators.registry import REGISTRY, Registry

if TYPE_CHECKING:
    import os

    from tamis.match.index import Index


class Place(Protocol):
    """A place from which an index can be opened again."""

    @property
    def version(self) -> str | None:
        """The name of its version; None if it has no versions."""

    def reopen(self, kind: type[Index]) -> Index:
        """The index of that place, if it is unchanged."""


class SavedPlace(NamedTuple):
    """The directory of a saved index, and how it is opened."""

    path: str
    content: str | None  # the name of its content, which identifies the index
    operators: Any
    options: dict[str, Any]

    @property
    def version(self) -> None:
        """A saved index has no versions."""

    @classmethod
    def at(
        cls, path: str | os.PathLike[str], registry: Registry | None, **options: Any
    ) -> SavedPlace:
        """The place of an index that is saved or opened there."""
        directory = Path(path).absolute()
        operators = () if registry is REGISTRY else registry
        return cls(str(directory), read_content_name(directory), operators, options)

    def reopen(self, kind: type[Index]) -> Index:
        """The index saved there, if it is unchanged."""
        found = read_content_name(Path(self.path))
        if found is not None and found != self.content:
            raise IndexFormatError(
                f"{self.path} was overwritten since its index was pickled",
                hint="open the new one: tamis.open(path)",
            )
        return kind.open(self.path, operators=self.operators, verify=False, **self.options)


def open_saved(
    kind: type[Index], path: str | os.PathLike[str], operators: Any, options: dict[str, Any]
) -> Index:
    """The index saved at `path`; see `artefact.open_contents` for the options."""
    expect_path(path)
    registry = read_registry(operators)
    chosen = {name: options[name] for name in ("trusted", "mmap") if name in options}
    place = SavedPlace.at(path, registry, **chosen)
    contents = artefact.open_contents(path, **options)
    with artefact.reading(Path(path)):
        index = kind(contents, registry=registry)
    if registry is not None:
        index.operators.expect_all()
    index.place = place
    return index


def reopen(kind: type[Index], place: Place) -> Index:
    """The function called when an index is unpickled."""
    return place.reopen(kind)
