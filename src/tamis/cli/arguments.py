"""Checks for arguments that are swapped, or that name the wrong kind of file."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import InputError, TamisError
from tamis.input.subscription_rows import read_subscriptions
from tamis.places import is_index

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


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


def refuse_swapped_rules(rules: str, events: tuple[str, ...]) -> None:
    """Raise an error if a file of events holds rules; the file of rules is known to hold none."""
    for name in events:
        with suppress(TamisError):
            first = next(read_subscriptions(name), None) if Path(name).is_file() else None
            if first is not None and first.error is None:
                break
    else:
        return
    raise InputError(
        f"{rules} holds no rules, but {name} does",
        hint="the arguments are swapped: the rules come first",
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
    expect_other_file("--rejects", rejects_file, read)
    place = Path(rejects_file)
    if place.stat().st_size and not _holds_rejects(place):
        raise InputError(
            f"--rejects {rejects_file} exists and does not contain rejects: it is not overwritten",
            hint="name another file",
        )


def expect_other_file(
    option: str, target: str | None, read: Iterable[str], endings: Collection[str] = ()
) -> None:
    """Raise an error if the file to write is one of those that are read; of a folder, all files
    that have one of the endings are.
    """
    if target is None or not Path(target).exists():
        return
    place = Path(target)
    for path in map(Path, read):
        if path.is_dir():
            is_below = place.resolve().is_relative_to(path.resolve())
            is_read = is_below and place.suffix.lower() in endings
        else:
            is_read = path.exists() and place.samefile(path)
        if is_read:
            raise InputError(
                f"{option} {target} would replace the file that is read", hint="name another file"
            )


def _holds_rejects(path: Path) -> bool:
    with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
        first = json.loads(file.readline())
        return isinstance(first, dict) and bool(first.keys() & {"message", "reason"})
    return False
