"""Determines the format of the files of a path, by their names or by their first bytes."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tamis.cli.console import print_note
from tamis.errors import InputError, suggest
from tamis.input import formats
from tamis.input.formats import FORMATS, Format
from tamis.input.json_arrays import is_array
from tamis.input.sniffing import HEAD_BYTES

if TYPE_CHECKING:
    from tamis.versions.storage import Storage

READ_BY_SPARK: Final = tuple(known for known, traits in FORMATS.items() if traits.spark)
_ALLOWED: Final = "|".join(READ_BY_SPARK)
_CODECS: Final = (".snappy", ".deflate")  # that only Spark reads
_PATTERN: Final = re.compile(r"[*?\[{]")  # in paths that Spark expands
_GZIP: Final = b"\x1f\x8b"


def format_of_name(name: str) -> Format | None:
    """The format for a name; raises an `InputError` for one that Spark does not read."""
    path = PurePath(name.rstrip("/"))
    plain = path.with_suffix("") if path.suffix.lower() in _CODECS else path
    found = formats.find_format(str(plain))
    return None if found is None else _expect_spark(found, name)


def _expect_spark(found: Format, name: str) -> Format:
    if found not in READ_BY_SPARK:
        raise unread_format(found, name)
    return found


def unread_format(found: Format, name: str) -> InputError:
    """The error for files of a format for which there is no reader or writer of Spark."""
    known = (own for own in READ_BY_SPARK if own is not found)
    return InputError(
        f"{name}: tamis spark does not read {FORMATS[found].title} files; "
        f"it reads {', '.join(known)}",
        hint="convert the files to Parquet; tamis build and tamis match read them directly",
    )


def choose_output_format(path: str, asked: str | None) -> Format:
    """The format to write: the requested one, that of the name, else Parquet."""
    return Format(asked) if asked else format_of_name(path) or Format.PARQUET


def find_format(path: str, asked: str | None, option: str) -> Format:
    """The format of existing files: the requested one, that of the name, or that of their contents.

    `option` is the name of the user's option.
    """
    found = Format(asked) if asked else format_of_name(path)
    if found is not None:
        return found
    from tamis.versions.storage import Storage

    try:
        storage = Storage(path)
    except InputError:
        return Format.PARQUET  # on a file system that only Spark supports
    names = _data_files(storage)
    if names == [] and _PATTERN.search(path):
        return Format.PARQUET
    if names is None:
        return _format_of_head(read_head(path), path, option)
    if not names:
        raise InputError(
            f"{path} does not exist or contains no files, so their format is unknown",
            hint=f"check the path, or give the format: {option} {_ALLOWED}",
        )
    counted = Counter(filter(None, map(format_of_name, names)))
    if len(counted) > 1:
        listed = " and ".join(f"{count:,} of {kind}" for kind, count in counted.most_common())
        raise InputError(
            f"{path} contains files of several formats: {listed}",
            hint=f"put them into separate folders, or select files by a pattern: {path}/*.jsonl",
        )
    if counted:
        return next(iter(counted))
    return _format_of_head(read_head(path), f"{path}/{names[0]}", option)


def expect_input(path: str, option: str) -> None:
    """Raise an error for a path that does not exist; patterns, and file systems that only Spark
    supports, are not checked.
    """
    from tamis.versions.storage import Storage

    if _PATTERN.search(path):
        return
    try:
        storage = Storage(path)
    except InputError:
        return
    local = storage.local_path("") if storage.is_local else None
    if local.exists() if local is not None else _is_filled(storage):
        return
    likely = None
    if local is not None and local.parent.is_dir():
        likely = suggest(local.name, (own.name for own in local.parent.iterdir()))
    raise InputError(
        f"{option}: {path} does not exist",
        hint=f'did you mean "{likely}"?' if likely else "check the path",
    )


def _is_filled(storage: Storage) -> bool:
    try:
        return bool(storage.list())
    except InputError:  # a file
        return True


def read_head(path: str) -> bytes:
    """The beginning of the first file of a path; empty if unknown, as for patterns."""
    from tamis.versions.storage import Storage

    with suppress(InputError, OSError):
        storage = Storage(path)
        names = _data_files(storage)
        if names is None or names:
            head = storage.read_head(names[0] if names else "", HEAD_BYTES)
            with suppress(zlib.error):
                return zlib.decompressobj(31).decompress(head) if head[:2] == _GZIP else head
    return b""


def report_unread(path: str) -> None:
    """Print a note about files below a folder that Spark does not read: those in folders within it,
    and, if some are partitions such as `day=1`, those outside of these.
    """
    from tamis.versions.storage import Storage

    if _PATTERN.search(path):
        return
    try:
        names = _data_files(Storage(path)) or []
    except InputError:  # on a file system that only Spark supports
        return
    folders = [name.split("/")[:-1] for name in names]
    has_partitions = any(any(map(_is_partition, own)) for own in folders)
    unread = [
        name
        for name, own in zip(names, folders, strict=True)
        if (not (own and all(map(_is_partition, own))) if has_partitions else own)
    ]
    if not unread:
        return
    count = f"{len(unread):,} of {len(names):,} files of {path} are not read"
    why = (
        "they are not in partitions such as day=1; move them"
        if has_partitions
        else f"they are in folders inside; select them by a pattern, such as '{path}/*/*'"
    )
    print_note(f"{count}, such as {unread[0]}: {why}")


def _is_partition(folder: str) -> bool:
    return "=" in folder.strip("=")


def is_array_of_json(path: str) -> bool:
    """Whether the first file is a JSON array rather than JSON lines."""
    return is_array(read_head(path))


def _data_files(storage: Storage) -> list[str] | None:
    """The files of a folder that Spark would read, in order; None if the path is a file."""
    try:
        listed = storage.list(deep=True)
    except InputError:
        return None
    return sorted(
        stored.name
        for stored in listed
        if not stored.is_folder and not any(_is_hidden(part) for part in stored.name.split("/"))
    )


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _format_of_head(head: bytes, name: str, option: str) -> Format:
    for known, traits in FORMATS.items():
        if traits.openings and head.startswith(traits.openings):
            return _expect_spark(known, name)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        return Format.JSONL
    raise InputError(
        f"cannot tell the format of {name} by its name or its first bytes",
        hint=f"give the format: {option} {_ALLOWED}",
    )
