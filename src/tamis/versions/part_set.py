"""Parts of a version, opened: which subscriptions of which parts answer at a moment."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from tamis.index.contents import Contents
    from tamis.versions.manifest import Part, Version
    from tamis.versions.storage import Storage

EVICTED_ATTEMPTS: Final = 5
MOST_OPEN: Final = 8  # indexes that a process keeps open


class Opening(NamedTuple):
    """How the files of parts are opened: options of `tamis.open`."""

    verify: bool = True
    trusted: bool = True
    mmap: bool = True


DEFAULT_OPENING: Final = Opening()


class OpenPart(NamedTuple):
    """A part whose files are open, and what later parts hide in it."""

    part: Part
    contents: Contents
    gone: pa.ChunkedArray | None  # ids that later parts replace or remove, here and elsewhere

    def find_hidden(self) -> npt.NDArray[np.bool_] | None:
        """Which subscriptions later parts hide, by ordinal; None if they hide none."""
        return None if self.gone is None else find_hidden(self.contents, self.gone)


@dataclass(frozen=True, slots=True)
class PartSet:
    """Some parts of one version, and how to open them. It can be sent to another process."""

    storage: Storage
    version: Version
    parts: tuple[Part, ...]
    is_plain: bool = False  # a single saved index, at the storage's root
    at: datetime | None = None  # the moment whose valid subscriptions answer; None: now
    operators: tuple[str, ...] = ()  # modules to import before parts are opened
    opening: Opening = DEFAULT_OPENING
    is_compared: bool = False  # whether warnings about the events' columns were already given

    @classmethod
    def of(cls, storage: Storage, version: Version, **options: Any) -> PartSet:
        """The parts of a version that answer."""
        return cls(storage, version, version.answering, **options)

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
        hiding = (part.id for part in self.version.parts if part.hides_earlier)
        key = (self.storage.uri, *(part.id for part in self.parts), "", *hiding)
        index = _OPEN.pop(key, None)
        if index is None:
            index = Index(*self.index_parts())
        _OPEN[key] = index
        while len(_OPEN) > MOST_OPEN:
            _OPEN.popitem(last=False)
        return index

    def index_parts(self) -> list[IndexPart]:
        """The parts, with what their version has learned about operators."""
        found = {
            each.part.id: IndexPart(self._with_learned(each.contents), each.find_hidden())
            for each in self.open_parts()
        }
        return [found[part.id] for part in self.parts]

    def _with_learned(self, contents: Contents) -> Contents:
        learned = self.version.statistics.get("operators")
        if learned is None:
            return contents
        # A part may be older than these statistics; it is not rewritten for them.
        return replace(contents, statistics=contents.statistics | {"operators": learned})

    def open_parts(self) -> Iterator[OpenPart]:
        """The parts, the newest first. Each part that is needed is opened once, those of the
        version that hide subscriptions of these parts included."""
        own = {part.id for part in self.parts}
        gone: list[pa.Array] = []  # ids that the parts so far hide in earlier ones
        for part in reversed(self.version.parts):
            if not own:
                return
            if part.id not in own and not part.hides_earlier:
                continue
            contents = self.map_part(part)
            if part.id in own:
                own.remove(part.id)
                yield OpenPart(part, contents, pa.chunked_array(gone) if gone else None)
            if part.hides_earlier and own:
                gone += [contents.ids, *self._read_removed(part)]

    def _read_removed(self, part: Part) -> list[pa.Array]:
        table = self.read(part, REMOVED)
        return [] if table is None else table["subscription_id"].chunks

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
        """One of the part's tables; None for a single saved index, which has no tables."""
        return None if self.is_plain else read_table(self.storage, part, name)


_OPEN: OrderedDict[tuple[str, ...], Index] = OrderedDict()
