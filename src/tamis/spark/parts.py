"""Parts as workers see them: written by build tasks, opened by matching tasks."""

from __future__ import annotations

import hashlib
import json
import secrets
import tempfile
import zlib
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis import durable
from tamis.errors import IndexFormatError, InputError
from tamis.index import artefact
from tamis.index.content import CONTENT_NAME
from tamis.index.hiding import keep_roots
from tamis.index.saving import MANIFEST
from tamis.index.uses import count_uses
from tamis.index.validity import Validity
from tamis.match.index import Index
from tamis.operators.registry import REGISTRY
from tamis.spark.cache import SIZE_VARIABLE, PartCache, check_files
from tamis.spark.manifest import DELTA, Part, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tamis.errors import ExpressionError
    from tamis.index.contents import Contents
    from tamis.language.limits import Limits
    from tamis.spark.storage import Storage

REJECTS: Final = "rejects.parquet"
REMOVED: Final = "removed.parquet"
EVICTED_ATTEMPTS: Final = 5
REBUILD: Final = "build the index anew, or use an older version"
MOST_OPEN: Final = 8  # parts that a worker keeps open beyond those it needs now

REJECT_SCHEMA: Final = pa.schema(
    [
        ("subscription_id", pa.string()),
        ("expression", pa.string()),
        ("code", pa.string()),
        ("line", pa.int32()),
        ("column", pa.int32()),
        ("message", pa.string()),
        ("hint", pa.string()),
    ]
)
REMOVED_SCHEMA: Final = pa.schema([("subscription_id", pa.string())])
TABLES: Final = {REJECTS: REJECT_SCHEMA, REMOVED: REMOVED_SCHEMA}


# ── opening ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PartSet:
    """Some parts of one version, as a task is told to open them."""

    storage: Storage
    version: Version
    parts: tuple[Part, ...]
    is_plain: bool = False  # one artefact by itself, at the storage's root
    at: datetime | None = None  # the moment whose valid subscriptions answer; None: all do
    operators: tuple[str, ...] = ()  # modules that workers import before they open parts
    is_compared: bool = False  # what is odd about the events' columns was reported before

    @property
    def n_bytes(self) -> int:
        """The size of the parts."""
        return sum(part.n_bytes for part in self.parts)

    def only(self, parts: Sequence[Part]) -> PartSet:
        """A set of fewer parts."""
        return replace(self, parts=tuple(parts))

    def with_operators(self, operators: str | Sequence[str]) -> PartSet:
        """The same set, whose operators are found in these modules."""
        named = (operators,) if isinstance(operators, str) else tuple(operators)
        return replace(self, operators=named) if named else self

    def open(self) -> list[Index]:
        """The indexes of all parts, kept open from task to task of one worker."""
        REGISTRY.load(self.operators)
        indexes = [self.inspect(part) for part in self.parts]
        for index in indexes:
            index.operators.expect_all()
        return indexes

    def inspect(self, part: Part) -> Index:
        """The index of one part, to be read; whether it could match nobody asks."""
        deltas = (delta.id for delta in self._deltas_after(part))
        key = (self.storage.uri, part.id, self._period(part), *deltas)
        index = _OPEN.pop(key, None)
        if index is None:
            index = Index(self._open_contents(part), is_timeless=True)
        _OPEN[key] = index
        while len(_OPEN) > len(self.parts) + MOST_OPEN:
            _OPEN.popitem(last=False)
        return index

    def _open_contents(self, part: Part) -> Contents:
        contents = self._map(part)
        learned = self.version.statistics.get("operators")
        if learned is not None:
            # A part may be older than what was learned, and is not written again for it.
            contents = replace(contents, statistics=contents.statistics | {"operators": learned})
        hidden = self.hidden(part)
        return contents if hidden is None else hide(contents, hidden)

    def _map(self, part: Part) -> Contents:
        if self.storage.is_local:
            return artefact.open_contents(self.directory(part))
        for _ in range(EVICTED_ATTEMPTS):
            directory = self.directory(part)
            try:
                return artefact.open_contents(directory, verify=False)  # the cache has done that
            except IndexFormatError:
                if directory.exists():  # else another process has evicted the copy just now
                    raise
        raise InputError(
            f"copies of {self.storage.where(part.folder)} are evicted before they are opened",
            hint=f"allow the cache more bytes: {SIZE_VARIABLE}",
        )

    def hidden(self, part: Part) -> pa.ChunkedArray | None:
        """The ids of the part's subscriptions that do not answer, and perhaps others."""
        replaced = self.replaced(part)
        found = [] if replaced is None else replaced.chunks
        if self.at is not None and part.n_timed:
            ids, validity = self._validity(part)
            found = [*found, ids.take(pa.array(validity.asleep(self.at)))]
        return pa.chunked_array(found, pa.string()) if found else None

    def replaced(self, part: Part) -> pa.ChunkedArray | None:
        """The ids of the part's subscriptions that later parts replace or remove, and others."""
        found = [self._hidden_by(delta) for delta in self._deltas_after(part)]
        return pa.chunked_array(found, pa.string()) if found else None

    def _period(self, part: Part) -> str:
        """Within which the same subscriptions are valid."""
        if self.at is None or not part.n_timed:
            return ""
        return str(self._validity(part)[1].period(self.at))

    def _validity(self, part: Part) -> tuple[pa.Array, Validity]:
        """The ids of the part's subscriptions, and who of them is valid when."""
        key = (self.storage.uri, part.id)
        if key not in _VALIDITIES:
            contents = self._map(part)
            _VALIDITIES[key] = (contents.ids, Validity(contents.validity))
            while len(_VALIDITIES) > len(self.parts) + MOST_OPEN:
                _VALIDITIES.popitem(last=False)
        return _VALIDITIES[key]

    def _deltas_after(self, part: Part) -> list[Part]:
        parts = self.version.parts
        return [later for later in parts[parts.index(part) + 1 :] if later.kind == DELTA]

    def _hidden_by(self, delta: Part) -> pa.Array:
        """The ids that a delta replaces or removes in the parts before it."""
        taken = self._map(delta).ids
        table = self.read(delta, REMOVED)
        removed = [] if table is None else table["subscription_id"].chunks
        return pa.concat_arrays([taken, *removed])

    def read(self, part: Part, name: str) -> pa.Table | None:
        """One of the part's tables; None in an index that was not built by a job."""
        if self.is_plain:
            return None
        content = self.storage.read(f"{part.folder}/{name}")
        where = self.storage.where(part.folder)
        part.expect_file(name, None if content is None else zlib.crc32(content), where)
        try:
            table = pq.read_table(pa.BufferReader(content))
        except (pa.ArrowException, OSError) as error:
            raise IndexFormatError(f"{where}/{name} is damaged: {error}", hint=REBUILD) from None
        if table.schema != TABLES[name]:
            told = ", ".join(table.schema.names)
            raise IndexFormatError(
                f"{where}/{name} is damaged: it has other columns: {told}", hint=REBUILD
            )
        return table

    def directory(self, part: Part) -> Path:
        """Where the part's files are on this machine."""
        if self.is_plain:
            return self.storage.local_path("")
        if not self.storage.is_local:
            return PartCache.default().fetch(self.storage, part)
        directory = self.storage.local_path(part.folder)
        # The manifest has the checksums of the content, which are compared as it is opened.
        check_files(directory, part, [MANIFEST], self.storage.where(part.folder))
        return directory


_OPEN: OrderedDict[tuple[str, ...], Index] = OrderedDict()
_VALIDITIES: OrderedDict[tuple[str, ...], tuple[pa.Array, Validity]] = OrderedDict()


def is_whole(storage: Storage, part: Part) -> bool:
    """Whether every file of the part is as it was published, and where it can be read in place,
    this program can open it."""
    for name, checksum in part.checksums.items():
        if storage.checksum(f"{part.folder}/{name}") != checksum:
            return False
    try:
        if storage.is_local:
            artefact.open_contents(storage.local_path(part.folder), verify=False)
    except IndexFormatError:
        return False
    return True


def hide(contents: Contents, ids: pa.ChunkedArray) -> Contents:
    """The same index, in which the subscriptions with these ids match nothing."""
    is_shown = ~pc.is_in(contents.ids, ids).to_numpy(zero_copy_only=False)
    return replace(contents, roots=keep_roots(contents.roots, is_shown))


# ── writing ─────────────────────────────────────────────────────────────────────────────────


def digest_rows(rows: pa.Table, missing: str, limits: Limits) -> str:
    """The name of all that decides what is in a part, the schema apart."""
    hashed = hashlib.sha256(f"{artefact.FORMAT_VERSION} {missing} {limits!r}".encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    hashed.update(sink.getvalue())
    return hashed.hexdigest()


def write_part(  # noqa: PLR0913 - all that a part holds
    storage: Storage,
    contents: Contents,
    digest: str,
    kind: str,
    rejects: Sequence[ExpressionError],
    removed: Sequence[str] = (),
) -> Part:
    """Write a part under a name that nobody else uses; it is visible once a version names it."""
    part_id = f"{digest[:16]}-{secrets.token_hex(6)}"
    paths = mentioned_paths(contents)
    tables = {
        REJECTS: pa.Table.from_pylist([reject_row(reject) for reject in rejects], REJECT_SCHEMA),
        REMOVED: pa.table([pa.array(removed, pa.string())], schema=REMOVED_SCHEMA),
    }
    with _new_part(storage, part_id) as directory:
        _write_tables(directory, tables)
        artefact.write(contents, directory)
        files = sorted(file for file in directory.iterdir() if is_part_file(file.name))
        n_bytes = sum(file.stat().st_size for file in files)
        checksums = {file.name: zlib.crc32(file.read_bytes()) for file in files}
    return Part(
        id=part_id,
        kind=kind,
        digest=digest,
        checksums=checksums,
        n_subscriptions=len(contents.ids),
        n_hidden=0,
        n_timed=len(contents.validity.ordinals),
        n_rejects=len(rejects),
        n_nodes=contents.n_nodes,
        n_bytes=n_bytes,
        attributes=paths,
        uses=tuple(count_uses(contents, paths).values()),
        operators=tuple(own.name for own in contents.schema.operators),
        columns=contents.attribute_names,
    )


@contextmanager
def _new_part(storage: Storage, part_id: str) -> Iterator[Path]:
    """A local directory to write the part's files into, put into the storage when all is there."""
    try:
        if storage.is_local:
            parts = storage.local_path("parts")
            durable.make_directory(parts)
            durable.sweep(parts)
            with durable.new_directory(parts / part_id) as directory:
                yield directory
        else:
            parent = Path(tempfile.gettempdir())
            durable.sweep(parent)
            with durable.draft_directory(parent, 0o700) as directory:
                yield directory
                names = {file.name for file in directory.iterdir() if is_part_file(file.name)}
                # The manifest comes last: where it is, the others are.
                ordered = [*sorted(names - {MANIFEST}), MANIFEST]
                storage.upload(directory, f"parts/{part_id}", ordered)
    except OSError as error:
        raise InputError(
            f"cannot write {storage.where('parts')}: {error.strerror or error}",
            hint="name a folder that can be written",
        ) from None


def is_part_file(name: str) -> bool:
    """Whether a file in a part's folder is the part's own, by its name."""
    return name == MANIFEST or name in TABLES or CONTENT_NAME.fullmatch(name) is not None


def mentioned_paths(contents: Contents) -> tuple[tuple[str, ...], ...]:
    """The paths of the attributes that the index looks at; the empty path is the whole event."""
    paths = {a.path for column in contents.columns for a in column.attributes}
    paths.update(contents.plan.paths)
    for signature in contents.schema.operators:
        paths.update([()] if signature.reads is None else [read.path for read in signature.reads])
    return tuple(sorted(paths))


def _write_tables(directory: Path, tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        durable.replace_file(directory / name, [sink.getvalue()])


def reject_row(reject: ExpressionError) -> dict[str, Any]:
    """The reject as a row of the table of rejects."""
    told = reject.to_dict()
    return {name: told.get(name) for name in REJECT_SCHEMA.names} | {"expression": reject.text}


def plain_part(directory: Path) -> tuple[Version, Part]:
    """An artefact by itself, saved by `Index.save`, as a version of one part."""
    contents = artefact.open_contents(directory, verify=False)
    content = (directory / MANIFEST).read_bytes()
    paths = mentioned_paths(contents)
    part = Part(
        id=directory.name,
        kind="base",
        digest="",
        checksums={},
        n_subscriptions=len(contents.ids),
        n_hidden=0,
        n_timed=len(contents.validity.ordinals),
        n_rejects=0,
        n_nodes=contents.n_nodes,
        n_bytes=sum(file.stat().st_size for file in directory.iterdir()),
        attributes=paths,
        uses=tuple(count_uses(contents, paths).values()),
        operators=tuple(own.name for own in contents.schema.operators),
        columns=contents.attribute_names,
    )
    schema = json.loads(content)["schema"]
    return Version(0, (part,), schema, str(contents.missing)), part
