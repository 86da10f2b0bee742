"""A schema as a caller may hand it over: what `Schema.of` takes, or a file of it."""

from __future__ import annotations

import os
from typing import Any

from tamis.files import read_schema
from tamis.language.schema import Schema


def open_schema(given: Any) -> Schema:
    """The schema; a path, or a text that ends in .json, names a file."""
    if isinstance(given, os.PathLike):
        return read_schema(os.fspath(given))
    return read_schema(given) if isinstance(given, str) else Schema.of(given)
