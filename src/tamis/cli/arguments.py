"""Arguments that were swapped, or name another kind of thing than they should."""

from __future__ import annotations

from pathlib import Path

from tamis.errors import InputError

MANIFEST = "manifest.json"  # of a saved index; what reads one would load the whole engine


def is_index(path: str) -> bool:
    """Whether a saved index is there."""
    return Path(path, MANIFEST).is_file()


def refuse_swapped(index_path: str, *others: str) -> None:
    """Refuse arguments of which another one is the index."""
    if is_index(index_path):
        return
    swapped = next((other for other in others if is_index(other)), None)
    if swapped is not None:
        raise InputError(
            f"{index_path} is not an index, but {swapped} is one",
            hint="the arguments are swapped: the index comes first",
        )


def expect_file(path: str, what: str) -> None:
    """Refuse an index, or another folder, where a file of `what` is expected."""
    if is_index(path):
        raise InputError(f"{path} is an index; a file of {what} is expected here")
    if Path(path).is_dir():
        raise InputError(
            f"{path} is a folder; a file of {what} is expected here",
            hint="tamis spark reads all files of a folder",
        )


def expect_no_file(index_path: str) -> None:
    """Refuse to write an index where a file is."""
    if Path(index_path).is_file():
        raise InputError(
            f"-o {index_path} names a file that exists; an index is a directory",
            hint="tamis build SUBSCRIPTIONS -o INDEX",
        )
