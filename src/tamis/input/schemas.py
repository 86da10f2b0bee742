"""A schema as callers pass it: any notation of `Schema.of`, or a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tamis.errors import InputError
from tamis.events.json_texts import json_kind
from tamis.input.sources import opened
from tamis.language.schema import Schema


def open_schema(given: Any) -> Schema:
    """The schema; a path, or a text that ends in .json, names a file."""
    if isinstance(given, os.PathLike):
        return read_schema(os.fspath(given))
    return read_schema(given) if isinstance(given, str) else Schema.of(given)


def read_schema(text: str) -> Schema:
    """The schema that a DDL or JSON text declares, or the `.json` file that the text names."""
    if not text.strip().endswith(".json"):
        return Schema.of(text)
    path = Path(text.strip())
    with opened(path) as stream:
        try:
            declared = json.loads(stream.read().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(declared, dict):
        raise InputError(
            f"{path} holds {json_kind(declared)}; an object is expected",
            hint='such as {"level": "integer", "tags": "array<string>"}',
        )
    return Schema.of(declared)
