"""Whether a place holds an index, its versions or subscriptions, found without the engine."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final

from tamis.errors import IndexFormatError

MANIFEST: Final = "manifest.json"  # of a saved index, and of a version
CURRENT: Final = "CURRENT"  # the newest version's number
VERSION: Final = re.compile(r"v([0-9]{8,18})")  # the folder of a version
LIVE: Final = "live.json"  # the settings of a live index
SERVED: Final = "index"  # the live index in the folder of a server
SUBSCRIPTIONS: Final = "subscriptions.sqlite"  # in the folder of a store of subscriptions
DATABASES: Final = ("postgresql://", "postgresql+psycopg://")  # that a store may be in


def is_saved_index(path: str | os.PathLike[str]) -> bool:
    """Whether there is a saved index."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def holds_versions(path: str | os.PathLike[str]) -> bool:
    """Whether there are versions of an index; a URI is assumed to be a store of versions."""
    if "://" in str(path):
        return True
    names: list[str] = []
    with suppress(OSError, TypeError, ValueError):  # it is not a folder, or not a path
        names = os.listdir(path)
    has_any = CURRENT in names or any(map(VERSION.fullmatch, names))
    return has_any and MANIFEST not in names


def refuse_version(path: object) -> None:
    """Raise an `IndexFormatError` for the folder of one version: the versions are in its parent."""
    if not isinstance(path, str | os.PathLike):
        return
    parent, name = os.path.split(os.path.normpath(path))
    if VERSION.fullmatch(name) and is_saved_index(path) and holds_versions(parent or os.curdir):
        raise IndexFormatError(
            f"{path} is one version of an index, which is opened by the folder of all versions",
            hint=f'tamis.open("{parent or os.curdir}", version="{name}"); in the shell: '
            f"{parent or os.curdir} --version {name}",
        )


def refuse_server(path: object) -> None:
    """Raise an `IndexFormatError` for the folder of a server: its index is inside."""
    if not isinstance(path, str | os.PathLike) or "://" in str(path) or is_index(path):
        return
    inner = os.path.join(path, SERVED)
    if is_live(inner):
        raise IndexFormatError(
            f"{path} is the folder of a server, not an index", hint=f"its index is {inner}"
        )


def is_index(path: str | os.PathLike[str]) -> bool:
    """Whether there is an index: a saved one, a live one, or versions of one."""
    return is_saved_index(path) or (
        "://" not in str(path) and (is_live(path) or holds_versions(path))
    )


def is_live(path: str | os.PathLike[str]) -> bool:
    """Whether there is a live index; False for what is not a path."""
    is_path = isinstance(path, str | os.PathLike) and "://" not in str(path)
    return is_path and os.path.isfile(os.path.join(path, LIVE))


def holds_subscriptions(place: str | os.PathLike[str]) -> bool:
    """Whether there is a store of subscriptions; the address of a database is assumed to be one."""
    if str(place).startswith(DATABASES):
        return True
    return "://" not in str(place) and os.path.isfile(os.path.join(place, SUBSCRIPTIONS))
