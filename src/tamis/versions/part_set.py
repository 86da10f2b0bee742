"""Parts of a version, opened: which subscriptions of which parts answer at a moment."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from tamis.errors import IndexFormatError, InputError
from tamis.index import artefact
from tamis.index.hiding import find_hidden
from tamis.index.saving import MANIFEST
from tamis.match.catalogue import IndexPart
from tamis.match.index import Index
from tamis.operators.registry import REGISTRY
from tamis.versions.cache import SIZE_VARIABLE, PartCache, check_files
from tamis.versions.part_files import REMOVED, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from tamis.index.contents import Contents
    from tamis.versions.manifest import Part, Version
    from tamis.versions.storage import Storage

EVICTED_ATTEMPTS: Final = 5
MOST_OPEN: Final = 8  # indexes that a process keeps open


class Opening(NamedTuple):
    """How the files of parts are opened, as `tamis.open` says it."""

    verify: bool = True
    trusted: bool = True
    mmap: bool = True


DEFAULT_OPENING: Final = Opening()


@dataclass(frozen=True, slots=True)
class PartSet:
    """Some parts of one version, and how to open them. It can be sent to another process."""

    storage: Storage
    version: Version
    parts: tuple[Part, ...]
    is_plain: bool = False  # one artefact by itself, at the storage's root
    at: datetime | None = None  # the moment whose valid subscriptions answer; None: now
    operators: tuple[str, ...] = ()  # modules to import before parts are opened
    opening: Opening = DEFAULT_OPENING
    is_compared: bool = False  # what is odd about the events' columns was reported before

    @property
    def n_bytes(self) -> int:
        """The size of the parts."""
        return sum(part.n_bytes for part in self.parts)

    def only(self, parts: Sequence[Part]) -> PartSet:
        """A set of fewer parts."""
        return replace(self, parts=tuple(parts))

    def with_operators(self, operators: str | Sequence[str]) -> PartSet:
        """The same set, whose operators are registered by these modules."""
        named = (operators,) if isinstance(operators, str) else tuple(operators)
        return replace(self, operators=named) if named else self

    # ── opening ────────────────────────────────────────────────────────────────────────────

    def open(self) -> Index:
        """The index of these parts, which stays open for the next caller in this process.

        Subscriptions that later parts replace or remove are hidden; pass `at` to its methods.
        """
        REGISTRY.load(self.operators)
        index = self.inspect()
        index.operators.expect_all()
        return index

    def inspect(self) -> Index:
        """The same index, to be read: its operators need not be registered."""
        deltas = (delta.id for part in self.parts for delta in self._deltas_after(part))
        key = (self.storage.uri, *(part.id for part in self.parts), "", *deltas)
        index = _OPEN.pop(key, None)
        if index is None:
            index = Index(*map(self._open_part, self.parts))
        _OPEN[key] = index
        while len(_OPEN) > MOST_OPEN:
            _OPEN.popitem(last=False)
        return index

    def _open_part(self, part: Part) -> IndexPart:
        contents, replaced = self.read_contents(part), self.replaced(part)
        return IndexPart(contents, None if replaced is None else find_hidden(contents, replaced))

    def read_contents(self, part: Part) -> Contents:
        """The arrays of one part, with what its version has learned about operators."""
        contents = self.map_part(part)
        learned = self.version.statistics.get("operators")
        if learned is None:
            return contents
        # A part may be older than what was learned; it is not written again for that.
        return replace(contents, statistics=contents.statistics | {"operators": learned})

    def map_part(self, part: Part) -> Contents:
        """The arrays of one part, as they were written."""
        opening = self.opening
        if self.storage.is_local:
            return artefact.open_contents(self.directory(part), **opening._asdict())
        opening = opening._replace(verify=False)  # the cache has verified it
        for _ in range(EVICTED_ATTEMPTS):
            directory = self.directory(part)
            try:
                return artefact.open_contents(directory, **opening._asdict())
            except IndexFormatError:
                if directory.exists():  # else another process has just evicted the copy
                    raise
        raise InputError(
            f"copies of {self.storage.where(part.folder)} are evicted before they are opened",
            hint=f"allow the cache more bytes: {SIZE_VARIABLE}",
        )

    def directory(self, part: Part) -> Path:
        """Where the part's files are on this machine."""
        if self.is_plain:
            return self.storage.local_path("")
        if not self.storage.is_local:
            return PartCache.default().fetch(self.storage, part)
        directory = self.storage.local_path(part.folder)
        # The manifest has the checksums of the content, which are compared when it is opened.
        check_files(directory, part, [MANIFEST], self.storage.where(part.folder))
        return directory

    def read(self, part: Part, name: str) -> pa.Table | None:
        """One of the part's tables; None for an artefact by itself, which has no tables."""
        return None if self.is_plain else read_table(self.storage, part, name)

    # ── hiding ─────────────────────────────────────────────────────────────────────────────

    def replaced(self, part: Part) -> pa.ChunkedArray | None:
        """The ids of the part's subscriptions that later parts replace or remove, and others."""
        later = self._deltas_after(part)
        found = [ids for delta in later for ids in self.hides(delta, self.map_part(delta))]
        return pa.chunked_array(found, pa.string()) if found else None

    def _deltas_after(self, part: Part) -> list[Part]:
        parts = self.version.parts
        return [later for later in parts[parts.index(part) + 1 :] if later.hides_earlier]

    def hides(self, part: Part, contents: Contents) -> list[pa.Array]:
        """The ids that a part with these contents replaces or removes in the parts before it."""
        if not part.hides_earlier:
            return []
        table = self.read(part, REMOVED)
        removed = [] if table is None else table["subscription_id"].chunks
        return [contents.ids, *removed]


_OPEN: OrderedDict[tuple[str, ...], Index] = OrderedDict()
