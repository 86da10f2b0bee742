"""The files of one part: written once under a unique name, then never changed."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tamis import durable
from tamis.errors import IndexFormatError, InputError
from tamis.index import artefact
from tamis.index.content_file import CONTENT_NAME
from tamis.index.saving import MANIFEST
from tamis.index.uses import count_uses
from tamis.versions.manifest import RESTORE, Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.errors import ExpressionError
    from tamis.index.contents import Contents
    from tamis.language.limits import Limits
    from tamis.versions.storage import Storage

REJECTS: Final = "rejects.parquet"
REMOVED: Final = "removed.parquet"

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
_HASHED: Final = 1 << 14  # rows at a time
TABLES: Final = {REJECTS: REJECT_SCHEMA, REMOVED: REMOVED_SCHEMA}


def is_part_file(name: str) -> bool:
    """Whether a part has files of this name: any other file in its folder is foreign."""
    return name == MANIFEST or name in TABLES or CONTENT_NAME.fullmatch(name) is not None


# ── writing ─────────────────────────────────────────────────────────────────────────────────


def write_part(  # noqa: PLR0913 - everything that a part holds
    storage: Storage,
    contents: Contents,
    digest: str,
    kind: str,
    rejects: Sequence[ExpressionError],
    removed: Sequence[str] = (),
) -> Part:
    """Write a part under a unique name; it is visible once a version names it."""
    part_id = f"{digest[:16]}-{secrets.token_hex(6)}"
    tables = {
        REJECTS: pa.Table.from_pylist([reject_row(reject) for reject in rejects], REJECT_SCHEMA),
        REMOVED: pa.table([pa.array(removed, pa.string())], schema=REMOVED_SCHEMA),
    }
    with _new_part(storage, part_id) as directory:
        _write_tables(directory, tables)
        artefact.write(contents, directory)
        files = sorted(file for file in directory.iterdir() if is_part_file(file.name))
        n_bytes = sum(file.stat().st_size for file in files)
        checksums = {file.name: durable.checksum(file) for file in files}
    return describe_part(
        contents,
        id=part_id,
        kind=kind,
        digest=digest,
        checksums=checksums,
        n_rejects=len(rejects),
        n_bytes=n_bytes,
    )


def describe_part(contents: Contents, **own: Any) -> Part:
    """The part that has these contents; `own` has the other fields."""
    paths = mentioned_paths(contents)
    return Part(
        n_subscriptions=len(contents.ids),
        n_hidden=0,
        n_timed=len(contents.validity.ordinals),
        n_nodes=contents.n_nodes,
        attributes=paths,
        uses=tuple(count_uses(contents, paths).values()),
        operators=tuple(signature.name for signature in contents.schema.operators),
        columns=contents.attribute_names,
        **own,
    )


def mentioned_paths(contents: Contents) -> tuple[tuple[str, ...], ...]:
    """The paths of the attributes that the index reads; the empty path is the whole event."""
    paths = {a.path for column in contents.columns for a in column.sources}
    paths.update(contents.plan.paths)
    for signature in contents.schema.operators:
        paths.update([()] if signature.reads is None else [read.path for read in signature.reads])
    return tuple(sorted(paths))


def digest_rows(rows: pa.Table, missing: str, limits: Limits) -> str:
    """A hash of everything that determines the contents of a part, except the schema."""
    hashed = hashlib.sha256(f"{artefact.FORMAT_VERSION} {missing} {limits!r}".encode())
    hashed.update(rows.schema.serialize())
    for start in range(0, len(rows), _HASHED):
        block = rows.slice(start, _HASHED)
        # A copy: the bytes of a slice depend on what it is a slice of.
        block = block.take(pa.array(range(len(block)))).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(block)
        hashed.update(sink.getvalue())
    return hashed.hexdigest()


def reject_row(reject: ExpressionError) -> dict[str, Any]:
    """The reject as a row of the table of rejects."""
    known = reject.to_dict()
    return {name: known.get(name) for name in REJECT_SCHEMA.names} | {"expression": reject.text}


@contextmanager
def _new_part(storage: Storage, part_id: str) -> Iterator[Path]:
    """A local directory for the part's files, put into the storage when it is complete."""
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
                # The manifest comes last: a part with a manifest is complete.
                ordered = [*sorted(names - {MANIFEST}), MANIFEST]
                storage.upload(directory, f"parts/{part_id}", ordered)
    except OSError as error:
        raise InputError(
            f"cannot write {storage.where('parts')}: {error.strerror or error}",
            hint="choose a writable folder",
        ) from None


def _write_tables(directory: Path, tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        durable.replace_file(directory / name, [sink.getvalue()])


# ── reading ─────────────────────────────────────────────────────────────────────────────────


def read_table(storage: Storage, part: Part, name: str) -> pa.Table:
    """One of the part's tables, checked against the version's checksum and the table's schema."""
    content = storage.read(f"{part.folder}/{name}")
    where = storage.where(part.folder)
    part.expect_file(name, None if content is None else zlib.crc32(content), where)
    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise IndexFormatError(f"{where}/{name} is damaged: {error}", hint=RESTORE) from None
    if table.schema != TABLES[name]:
        columns = ", ".join(table.schema.names)
        raise IndexFormatError(
            f"{where}/{name} is damaged: its columns are {columns}", hint=RESTORE
        )
    return table


def is_whole(storage: Storage, part: Part) -> bool:
    """Whether every file of the part is as it was published and, where the storage is local, this
    program can open the part."""
    for name, checksum in part.checksums.items():
        if storage.checksum(f"{part.folder}/{name}") != checksum:
            return False
    try:
        if storage.is_local:
            artefact.open_contents(storage.local_path(part.folder), verify=False)
    except IndexFormatError:
        return False
    return True
