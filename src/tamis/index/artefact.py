"""The index on disk: a directory of arrays and a manifest, opened by memory-mapping.

The manifest lists every file with its size and checksum, and carries a checksum of itself; a
directory that is incomplete, cut short or altered is refused with the name of what is wrong. It is
written beside its place and moved there when it is whole. Nothing in it is code.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
import shutil
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.errors import IndexFormatError, InputError
from tamis.index.constants import pack_columns, unpack_columns
from tamis.index.contents import Contents
from tamis.index.layout import LeafArrays, NodeArrays, RootArrays
from tamis.index.triggers import TriggerArrays
from tamis.language.schema import Schema
from tamis.logic.evaluate import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT: Final = "tamis-index"
FORMAT_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
_GROUPS: Final[dict[str, Any]] = {
    "leaves": LeafArrays,
    "nodes": NodeArrays,
    "roots": RootArrays,
    "triggers": TriggerArrays,
}


def save(contents: Contents, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the index to the directory `path`, whole or not at all."""
    target = Path(path)
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists", hint="choose another path, or overwrite it")
    if target.exists() and not (target / MANIFEST).exists():
        raise InputError(f"{target} exists and is not an index: it is not overwritten")
    if not target.absolute().parent.is_dir():
        raise InputError(f"the directory {target.parent}, to hold {target.name}, does not exist")
    token = secrets.token_hex(4)
    beside = target.with_name(f".{target.name}.{token}.new")
    try:
        beside.mkdir()
        _write(contents, beside)
        if target.exists():
            _replace(target, beside, target.with_name(f".{target.name}.{token}.old"))
        else:
            beside.rename(target)
    except OSError as error:
        raise InputError(
            f"cannot write the index to {target}: {error.strerror or error}"
        ) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _replace(target: Path, new: Path, old: Path) -> None:
    """Put `new` where `target` is, or leave it as it was; `old` is where it goes meanwhile."""
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def open_contents(path: str | os.PathLike[str], *, verify: bool = True) -> Contents:
    """The index saved at `path`, memory-mapped; with `verify` every checksum is compared."""
    directory = Path(path)
    manifest = _read_manifest(directory)
    files = manifest["files"]
    for name, entry in files.items():
        _check_file(directory / name, entry, verify=verify)
    arrays = {
        name: _map_array(directory / f"{name}.bin", files[f"{name}.bin"]) for name in _array_names()
    }
    groups = {
        group: kind(*(arrays[f"{group}.{field}"] for field in kind._fields))
        for group, kind in _GROUPS.items()
    }
    texts = _map_table(directory / "constants.arrow")
    subscriptions = _map_table(directory / "subscriptions.arrow")
    patterns = _map_table(directory / "patterns.arrow")
    return Contents(
        schema=Schema.of(manifest["schema"]),
        missing=Missing(manifest["missing"]),
        columns=unpack_columns(manifest["columns"], arrays["constants"], texts, patterns),
        n_leaves=manifest["counts"]["leaves"],
        never=arrays["never"],
        ids=subscriptions["id"].combine_chunks(),
        texts=subscriptions["text"].combine_chunks(),
        tags=subscriptions["tags"].combine_chunks(),
        provenance=manifest["provenance"],
        **groups,
    )


# ── writing ─────────────────────────────────────────────────────────────────────────────────


def _array_names() -> Iterator[str]:
    for group, kind in _GROUPS.items():
        for field in kind._fields:
            yield f"{group}.{field}"
    yield from ("never", "constants")


def _write(contents: Contents, directory: Path) -> None:
    files: dict[str, dict[str, Any]] = {}
    described, words, texts, patterns = pack_columns(contents.columns)
    arrays: dict[str, np.ndarray] = {"never": contents.never, "constants": words}
    for group in _GROUPS:
        for field, array in getattr(contents, group)._asdict().items():
            arrays[f"{group}.{field}"] = array
    for name, array in arrays.items():
        entry = _write_file(directory / f"{name}.bin", np.ascontiguousarray(array).data)
        files[f"{name}.bin"] = entry | {"dtype": array.dtype.str, "length": len(array)}
    subscriptions = pa.table({"id": contents.ids, "text": contents.texts, "tags": contents.tags})
    for name, table in (
        ("constants", texts),
        ("patterns", patterns),
        ("subscriptions", subscriptions),
    ):
        files[f"{name}.arrow"] = _write_file(directory / f"{name}.arrow", _serialize(table))
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "missing": str(contents.missing),
        "schema": contents.schema.to_json(),
        "columns": described,
        "counts": {
            "subscriptions": len(contents.ids),
            "leaves": contents.n_leaves,
            "inner_nodes": len(contents.nodes.operators),
            "always_true": len(contents.roots.always),
            "never_true": len(contents.never),
        },
        "provenance": contents.provenance,
        "files": files,
    }
    manifest["checksum"] = _manifest_checksum(manifest)
    _write_file(directory / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())
    _sync_directory(directory)


def _write_file(path: Path, content: Any) -> dict[str, Any]:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": memoryview(content).nbytes, "crc32": zlib.crc32(content)}


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _serialize(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return memoryview(sink.getvalue())


def _manifest_checksum(manifest: dict[str, Any]) -> int:
    body = {key: value for key, value in manifest.items() if key != "checksum"}
    return zlib.crc32(json.dumps(body, sort_keys=True, ensure_ascii=False).encode())


# ── reading ─────────────────────────────────────────────────────────────────────────────────


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = (
            "is not an index: it has no manifest.json" if directory.exists() else "does not exist"
        )
        raise IndexFormatError(f"{directory} {what}", hint="build one: tamis build") from None
    except (OSError, ValueError, RecursionError) as error:
        raise IndexFormatError(f"{path} cannot be read: {error}", hint=_REBUILD) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise IndexFormatError(f"{path} is not the manifest of an index", hint=_REBUILD)
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{directory} has format version {version}; this program reads {FORMAT_VERSION}",
            hint="rebuild it with this version, or open it with the version that wrote it",
        )
    if manifest.get("checksum") != _manifest_checksum(manifest):
        raise IndexFormatError(f"{path} is damaged: its checksum is wrong", hint=_REBUILD)
    return manifest


_REBUILD: Final = "build the index anew, or restore it from a copy"


def _check_file(path: Path, entry: dict[str, Any], *, verify: bool) -> None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise IndexFormatError(f"{path} is missing", hint=_REBUILD) from None
    if size != entry["bytes"]:
        raise IndexFormatError(
            f"{path} has {size} bytes instead of {entry['bytes']}", hint=_REBUILD
        )
    if verify and zlib.crc32(_map(path)) != entry["crc32"]:
        raise IndexFormatError(f"{path} is damaged: its checksum is wrong", hint=_REBUILD)


def _map(path: Path) -> bytes | mmap.mmap:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _map_array(path: Path, entry: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(_map(path), dtype=np.dtype(entry["dtype"]), count=entry["length"])


def _map_table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
