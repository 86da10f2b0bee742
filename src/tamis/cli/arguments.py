"""Checks for arguments that are swapped, or that name the wrong kind of file."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from tamis.errors import InputError
from tamis.places import is_index


def refuse_swapped(index_path: str, *others: str) -> None:
    """Raise an error if another argument is the index."""
    if is_index(index_path):
        return
    swapped = next((other for other in others if is_index(other)), None)
    if swapped is not None:
        raise InputError(
            f"{index_path} is not an index, but {swapped} is one",
            hint="the arguments are swapped: the index comes first",
        )


def expect_file(path: str, what: str) -> None:
    """Raise an error for an index, or another folder, where a file of `what` is expected."""
    if is_index(path):
        raise InputError(f"{path} is an index; a file of {what} is expected here")
    if Path(path).is_dir():
        raise InputError(
            f"{path} is a folder; a file of {what} is expected here",
            hint="tamis spark reads all files of a folder",
        )


def expect_no_file(index_path: str) -> None:
    """Raise an error if the index would be written over a file."""
    if Path(index_path).is_file():
        raise InputError(
            f"-o {index_path} names a file that exists; an index is a directory",
            hint="tamis build SUBSCRIPTIONS -o INDEX",
        )


def expect_rejects_place(rejects_file: str | None, *read: str) -> None:
    """Raise an error if the file for rejects would replace the input, or a file that is not a list
    of rejects.
    """
    if rejects_file is None or not Path(rejects_file).is_file():
        return
    place = Path(rejects_file)
    for path in read:
        if Path(path).exists() and place.samefile(path):
            raise InputError(
                f"--rejects {rejects_file} would replace the file that is read",
                hint="name another file",
            )
    if place.stat().st_size and not _holds_rejects(place):
        raise InputError(
            f"--rejects {rejects_file} exists and does not contain rejects: it is not overwritten",
            hint="name another file",
        )


def _holds_rejects(path: Path) -> bool:
    with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
        first = json.loads(file.readline())
        return isinstance(first, dict) and bool(first.keys() & {"message", "reason"})
    return False
