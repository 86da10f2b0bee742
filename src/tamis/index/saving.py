"""Writes an index to a new path, or over an existing index.

A new index is written to a temporary directory next to its path and moved there when it is
complete. To overwrite one, the new content is written under another name, then the manifest is
replaced, then the old content is removed: POSIX can replace a file atomically, but not a non-empty
directory. A writer that dies in between leaves either the old or the new index; the next writer
removes its leftovers. A writer holds the lock of the index while it overwrites it, so the last of
several writers wins completely.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tamis.durable import locked, new_directory, sweep
from tamis.errors import InputError
from tamis.index.content_file import CONTENT_NAME, remove_content

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    Write = Callable[[Path], None]  # writes content, then manifest, into a directory

FORMAT: Final = "tamis-index"
MANIFEST: Final = "manifest.json"


def expect_place(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise an error for a path at which no index can be saved."""
    target = Path(path)
    try:
        is_there = _exists(target)
    except (OSError, ValueError) as error:
        raise _cannot_write(target, error) from error
    if not target.absolute().parent.is_dir():
        raise InputError(
            f"the directory {target.parent}, which would contain {target.name}, does not exist"
        )
    if is_there and not overwrite:
        raise InputError(
            f"{target} exists",
            hint=(
                "choose another path, or overwrite it: overwrite=True, on the command line "
                "--overwrite"
            ),
        )
    if is_there and read_content_name(target) is None:
        raise InputError(
            f"{target} exists and is not an index: it is not overwritten",
            hint="choose another path, or remove it",
        )


def place_index(path: str | os.PathLike[str], write: Write, *, overwrite: bool) -> None:
    """Call `write` to write an index, and put it at `path` atomically."""
    expect_place(path, overwrite=overwrite)
    target = Path(path)
    try:
        sweep(target.absolute().parent)
        if not _exists(target):
            try:
                with new_directory(target) as draft:
                    write(draft)
                return
            except FileExistsError:
                # Another process was faster.
                expect_place(path, overwrite=overwrite)
        _overwrite(target, write)
    except OSError as error:
        raise _cannot_write(target, error) from error


def _overwrite(target: Path, write: Write) -> None:
    with locked(target):
        sweep(target)
        try:
            write(target)
        finally:
            # The old content or, after a failure, the new one.
            named = read_content_name(target)
            if named is not None:
                remove_content(target, except_for=named)


def read_content_name(directory: Path) -> str | None:
    """The content file that the index in a directory names; None if there is no index.

    The index may be damaged, or of another format version.
    """
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        if manifest["format"] == FORMAT:
            name = manifest["content"]["file"]
            return name if CONTENT_NAME.fullmatch(name) else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        pass
    return None


def _exists(target: Path) -> bool:
    """Whether the path exists, including a broken symbolic link."""
    try:
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _cannot_write(target: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(f"cannot write the index to {str(target)!r}: {reason}")
