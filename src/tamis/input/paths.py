"""Whether a string is the path of a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tamis.input.formats import find_format


def find_path(given: Any) -> Path | None:
    """The path that was given; None for a string that is not a path.

    A string with the ending of a known format, compressed or not, is a path, whether or not the
    file exists: its reader reports a missing file.
    """
    if isinstance(given, os.PathLike):
        return Path(given)
    if not isinstance(given, str) or "\n" in given or "\0" in given:
        return None
    path = Path(given)
    if find_format(given) is not None and given.lstrip()[:1] not in ("{", "["):
        return path
    try:
        return path if given and path.is_file() else None
    except OSError:  # longer than a path may be
        return None
