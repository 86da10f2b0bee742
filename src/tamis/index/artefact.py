"""The index on disk: a directory with a manifest and the content it names, opened by
memory-mapping.

The manifest lists every part of the content with its position and checksum, and contains a checksum
of itself. An incomplete, truncated or modified index raises an error that names the invalid part.
The index contains no code. `saving.py` describes how it is put in place.
"""

from __future__ import annotations

import json
import zlib
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.durable import replace_file
from tamis.errors import IndexFormatError, TamisError
from tamis.index.array_checks import MisfitError
from tamis.index.column_files import column_sections, describe_columns, read_columns
from tamis.index.columns import ELEMENTS, TEXT
from tamis.index.constants import ConstantArrays
from tamis.index.content_file import (
    REBUILD,
    Content,
    MissingContentError,
    Section,
    array_section,
    table_section,
    write_content,
)
from tamis.index.contents import Contents
from tamis.index.layout import LeafArrays, NodeArrays, RootArrays
from tamis.index.saving import FORMAT, MANIFEST, place_index
from tamis.index.signing import expect_signed, read_key, sign
from tamis.index.stored_texts import StoredTexts, pack_texts
from tamis.index.triggers import TriggerArrays
from tamis.index.validity import ValidityArrays
from tamis.index.weights import WeightArrays
from tamis.language.names import print_path
from tamis.language.printer import print_expression
from tamis.language.schema import Schema
from tamis.logic.evaluate import Missing
from tamis.operators.plan import PlanArrays, StoredResiduals, read_calls
from tamis.text.analysers import analyser_versions

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from tamis.index.columns import Column

FORMAT_VERSION: Final = 8
_GROUPS: Final[dict[str, Any]] = {
    "constants": ConstantArrays,
    "leaves": LeafArrays,
    "nodes": NodeArrays,
    "roots": RootArrays,
    "triggers": TriggerArrays,
    "validity": ValidityArrays,
    "weights": WeightArrays,
}
# The errors of Python and Arrow for invalid data.
_FOREIGN: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
)


def save(
    contents: Contents,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    key: str | bytes | None = None,
) -> None:
    """Write the index to the directory `path`, atomically; signed if there is a key."""
    signing_key = None if key is None else read_key(key)
    place_index(path, lambda folder: write(contents, folder, signing_key), overwrite=overwrite)


def open_contents(
    path: str | os.PathLike[str],
    *,
    verify: bool = True,
    trusted: bool = True,
    mmap: bool = True,
    key: str | bytes | None = None,
) -> Contents:
    """The index saved at `path`, memory-mapped, or read into memory if `mmap` is False.

    `verify` compares every checksum. An index that is not `trusted` is verified, and its structure
    is checked (`index.structure`). With a `key` it must be signed with that key.
    """
    directory = Path(path)
    with reading(directory):
        manifest, content = _open_content(directory, is_mapped=mmap)
        if verify or not trusted:
            content.verify()
        if key is not None:
            expect_signed(manifest, read_key(key), directory)
            content.expect_digest(manifest["content"].get("sha256"))
        contents = _read_contents(manifest, content, directory)
        if not trusted:
            from tamis.index.structure import check_structure

            check_structure(contents)
        return contents


@contextmanager
def reading(directory: Path) -> Iterator[None]:
    """Convert errors raised inside to the error that the index is not valid."""
    try:
        yield
    except TamisError:
        raise
    except _FOREIGN as error:
        what = str(error) if isinstance(error, MisfitError) else f"{type(error).__name__}: {error}"
        raise IndexFormatError(f"{directory} is not a valid index: {what}", hint=REBUILD) from error


def _open_content(directory: Path, *, is_mapped: bool) -> tuple[dict[str, Any], Content]:
    missed = None
    while True:
        manifest = _read_manifest(directory)
        try:
            return manifest, Content(directory, manifest["content"], is_mapped=is_mapped)
        except MissingContentError:
            # If the index was overwritten after the manifest was read, the next attempt reads the
            # new one.
            if manifest == missed:
                raise
            missed = manifest


def _read_contents(manifest: dict[str, Any], content: Content, directory: Path) -> Contents:
    groups = {group: content.group(group, kind) for group, kind in _GROUPS.items()}
    schema = Schema.of(manifest["schema"])
    columns = read_columns(manifest["columns"], groups["constants"], content, schema)
    _expect_same_analysers(manifest["analysers"], columns, directory)
    n_subscriptions = manifest["counts"]["subscriptions"]
    for at, column in enumerate(columns):
        if column.kind == ELEMENTS:
            inner = manifest["columns"][at]["inner"]
            column.inner = _read_contents(inner, content.within(_inner(at)), directory)
    return Contents(
        schema=schema,
        missing=Missing(manifest["missing"]),
        columns=columns,
        n_leaves=manifest["counts"]["leaves"],
        never=content.array("never", "Int32"),
        ids=content.table("ids")["id"].combine_chunks(),
        texts=StoredTexts(content.buffer("texts"), n_subscriptions),
        tags=content.table("tags")["tags"].combine_chunks(),
        plan=_read_plan(content, schema, manifest["operator_attributes"]),
        attributes=StoredTexts(content.buffer("attributes"), n_subscriptions)
        if manifest["attributes"]
        else None,
        attribute_names=tuple(map(str, manifest["attributes"])),
        numbers=content.array("numbers", "Int64"),
        provenance=manifest["provenance"],
        statistics=manifest["statistics"],
        **groups,
    )


def _read_plan(content: Content, schema: Schema, paths: list[list[str]]) -> StoredResiduals:
    arrays = content.group("plan", PlanArrays)
    table = content.table("calls")
    table.validate(full=True)  # checked, since its texts are read at once
    calls = read_calls(table["call"].to_pylist(), schema)
    return StoredResiduals(arrays, calls, tuple(map(tuple, paths)))


# ── writing ─────────────────────────────────────────────────────────────────────────────────


def write(contents: Contents, directory: Path, key: bytes | None = None) -> None:
    """Write the content, then atomically replace the manifest by one that names it.

    The old index stays intact until the manifest is replaced: a reader finds either the old or the
    new index.
    """
    entry = write_content(directory, _sections(contents), is_signed=key is not None)
    replace_file(directory / MANIFEST, [_spell_manifest(contents, entry, key)])


def _spell_manifest(contents: Contents, entry: dict[str, Any], key: bytes | None) -> bytes:
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **_describe(contents),
        "content": entry,
    }
    if key is not None:
        manifest["signature"] = sign(manifest, key)
    manifest["checksum"] = _manifest_checksum(manifest)
    return json.dumps(manifest, indent=1, ensure_ascii=False).encode()


def _describe(contents: Contents) -> dict[str, Any]:
    """What a manifest says about an index; that of an elements column is inside its entry."""
    columns = describe_columns(contents.columns)
    for entry, column in zip(columns, contents.columns, strict=True):
        if column.inner is not None:
            entry["inner"] = _describe(column.inner)
    return {
        "missing": str(contents.missing),
        "schema": contents.schema.to_json(),
        "columns": columns,
        "counts": {
            "subscriptions": len(contents.ids),
            "leaves": contents.n_leaves,
            "inner_nodes": len(contents.nodes.operators),
            "always_true": len(contents.always_true),
            "never_true": len(contents.never),
            "with_operators": len(contents.plan),
            "with_validity": len(contents.validity.ordinals),
            "with_weight": len(contents.weights.ordinals),
        },
        "operator_attributes": [list(path) for path in contents.plan.paths],
        "analysers": _describe_analysers(contents.columns),
        "attributes": list(contents.attribute_names),
        "statistics": contents.statistics,
        "provenance": contents.provenance,
    }


def _inner(column: int) -> str:
    """What the names of the sections of a column's own index begin with."""
    return f"column {column}.inner."


def _sections(contents: Contents) -> Iterator[Section]:
    for group in _GROUPS:
        for field, array in getattr(contents, group)._asdict().items():
            yield array_section(f"{group}.{field}", array)
    yield array_section("never", contents.never)
    yield array_section("numbers", contents.numbers)
    for field, array in contents.plan.arrays._asdict().items():
        yield array_section(f"plan.{field}", array)
    calls = pa.array([print_expression(call) for call in contents.plan.calls], pa.string())
    yield table_section("calls", pa.table({"call": calls}))
    yield from column_sections(contents.columns)
    for at, column in enumerate(contents.columns):
        if column.inner is not None:
            for section in _sections(column.inner):
                yield section._replace(name=_inner(at) + section.name)
    yield table_section("ids", pa.table({"id": contents.ids}))
    yield table_section("tags", pa.table({"tags": contents.tags}), compression="zstd")
    yield Section("texts", pack_texts(contents.texts), {})
    if contents.attributes is not None:
        yield Section("attributes", pack_texts(contents.attributes), {})


def _manifest_checksum(manifest: dict[str, Any]) -> int:
    body = {key: value for key, value in manifest.items() if key != "checksum"}
    return zlib.crc32(json.dumps(body, sort_keys=True, ensure_ascii=False).encode())


def _describe_analysers(columns: Sequence[Column]) -> dict[str, dict[str, str]]:
    """By text attribute: the analyser and the versions of everything its words depend on."""
    return {
        print_path(column.attributes[0].path): {
            "name": column.type.analyser,
            **analyser_versions(column.type.analyser),
        }
        for column in columns
        if column.kind == TEXT
    }


def _expect_same_analysers(
    written: dict[str, dict[str, str]], columns: Sequence[Column], directory: Path
) -> None:
    """Raise an error if the queries were analysed with other versions than texts would be here.

    A word with another folded or stemmed form would silently be missed.
    """
    for attribute, here in _describe_analysers(columns).items():
        there = written.get(attribute, {})
        for what in (what for what in here if there.get(what) != here[what]):
            raise IndexFormatError(
                f'{directory}: the words of "{attribute}" (analyser {here["name"]}) were made with '
                f"{what} {there.get(what, 'unknown')}; this process has {here[what]}",
                hint="rebuild the index here, or open it with the versions it was built with",
            )


# ── reading ─────────────────────────────────────────────────────────────────────────────────


def _not_an_index(directory: Path) -> IndexFormatError:
    """A description of what the path holds instead of an index."""
    if directory.is_file():
        what = "is a file, not an index"
    elif directory.exists():
        what = f"is not an index: it has no {MANIFEST}"
    else:
        what = "does not exist"
    return IndexFormatError(f"{directory} {what}", hint="build one: tamis build FILE -o INDEX")


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise _not_an_index(directory) from None
    except (OSError, ValueError, RecursionError) as error:
        raise IndexFormatError(f"{path} cannot be read: {error}", hint=REBUILD) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise IndexFormatError(f"{path} is not the manifest of an index", hint=REBUILD)
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{directory} has format version {version}; this program reads {FORMAT_VERSION}",
            hint="rebuild it with this version, or open it with the version that wrote it",
        )
    if manifest.get("checksum") != _manifest_checksum(manifest):
        raise IndexFormatError(f"{path} is damaged: its checksum is wrong", hint=REBUILD)
    return manifest
