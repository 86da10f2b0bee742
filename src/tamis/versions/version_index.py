"""A version of a store as one `Index`, with the same methods as a saved index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.arguments import expect_path
from tamis.errors import IndexFormatError, InputError
from tamis.index import artefact
from tamis.match.index import Index
from tamis.match.operators import read_registry
from tamis.versions.manifest import version_name
from tamis.versions.part_set import Opening, PartSet
from tamis.versions.store import IndexStore

if TYPE_CHECKING:
    import os

    from tamis.versions.manifest import Version
    from tamis.versions.storage import Storage


def open_index(  # noqa: PLR0913 - all that decides how it is opened
    path: str | os.PathLike[str],
    version: int | str | None = None,
    *,
    verify: bool = True,
    trusted: bool = True,
    mmap: bool = True,
    key: str | bytes | None = None,
    operators: Any = (),
) -> Index:
    """The index at `path`: a version of a store, the newest unless `version` names one, or a saved
    index. The options are those of `tamis.open`."""
    expect_path(path)
    opening = Opening(verify=verify, trusted=trusted, mmap=mmap)
    store = IndexStore(path)
    if version is None and not store.is_used():
        return Index.open(path, key=key, operators=operators, **opening._asdict())
    if version is not None:
        store.expect_versions()
    found = store.current() if version is None else store.version(version)
    if key is not None:
        raise InputError(
            f"{store.uri} holds versions, which are not signed; only a saved index is",
            hint="leave the key out; to sign an index, build and save one: tamis build --sign, or "
            "tamis.build(…).save(path, key=…)",
        )
    return _open_version(store.storage, found, operators, opening)


def _open_version(storage: Storage, version: Version, operators: Any, opening: Opening) -> Index:
    registry = read_registry(operators)
    parts = PartSet.of(storage, version, opening=opening)
    with artefact.reading(Path(storage.uri)):
        index = Index(*parts.index_parts(), registry=registry)
    if registry is not None:
        index.operators.expect_all()
    index.place = VersionPlace(storage, version.number, version.created_at, operators, opening)
    return index


class VersionPlace(NamedTuple):
    """A version of a store, and how it is opened."""

    storage: Storage
    number: int
    created_at: str  # distinguishes it from a version of the same number in a rebuilt store
    operators: Any
    opening: Opening

    @property
    def version(self) -> str:
        """The name of the version."""
        return version_name(self.number)

    def reopen(self, kind: type[Index]) -> Index:
        """The index of the version, if the store still has it."""
        found = IndexStore(self.storage).version(self.number)
        if found.created_at != self.created_at:
            raise IndexFormatError(
                f"{found.name} in {self.storage.uri} is not the version that was pickled",
                hint="open it by its path: tamis.open(path)",
            )
        return _open_version(self.storage, found, self.operators, self.opening)
