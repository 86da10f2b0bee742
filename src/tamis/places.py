"""What is at a path: a saved index, or versions of one? This is answered without the engine."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final

MANIFEST: Final = "manifest.json"  # of a saved index, and of a version
CURRENT: Final = "CURRENT"  # the newest version's number
VERSION: Final = re.compile(r"v([0-9]{8,18})")  # the folder of a version


def is_saved_index(path: str | os.PathLike[str]) -> bool:
    """Whether a saved index is there."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def holds_versions(path: str | os.PathLike[str]) -> bool:
    """Whether versions of an index are there; a URI is taken for a store of versions."""
    if "://" in str(path):
        return True
    names: list[str] = []
    with suppress(OSError, TypeError, ValueError):  # it is no folder, or no path
        names = os.listdir(path)
    has_any = CURRENT in names or any(map(VERSION.fullmatch, names))
    return has_any and MANIFEST not in names


def is_index(path: str | os.PathLike[str]) -> bool:
    """Whether an index is there, with or without versions."""
    return is_saved_index(path) or ("://" not in str(path) and holds_versions(path))
