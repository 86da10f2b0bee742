"""A schema as callers pass it: any notation of `Schema.of`, or a file."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import ExpressionError, InputError
from tamis.events.json_texts import json_kind
from tamis.input.sources import opened
from tamis.language.ast import SUBSCRIPTION, Reference
from tamis.language.check import check
from tamis.language.definition_names import read_definitions
from tamis.language.schema import Schema

if TYPE_CHECKING:
    from tamis.language.limits import Limits


def open_schema(given: Any) -> Schema:
    """The schema; a path, or a text that ends in .json, names a file."""
    if isinstance(given, os.PathLike):
        return read_schema(os.fspath(given))
    return read_schema(given) if isinstance(given, str) else Schema.of(given)


def add_definitions(schema: Schema | None, definitions: Any) -> Schema:
    """The schema with more named conditions; without a schema, one that is open."""
    known = Schema({}) if schema is None else schema
    return known.with_definitions(known.definitions | read_definitions(definitions))


def check_definitions(schema: Schema, limits: Limits) -> None:
    """Raise an error for a definition that is wrong, whether or not it is used."""
    for name in schema.definitions:
        if name.startswith(SUBSCRIPTION):
            continue
        try:
            check(Reference(name), schema, limits)
        except ExpressionError as error:
            raise InputError(f"definitions: {error.message}", hint=error.hint) from None


def read_definition_file(path: Path) -> dict[str, str]:
    """The definitions in a TOML or JSON file: expressions by name."""
    return read_definitions(_read_table(path, '{"office_hours": "hour(ts) BETWEEN 8 AND 18"}'))


def read_exclusion_file(path: Path) -> dict[str, str]:
    """The exclusions in a TOML or JSON file: expressions by the id of a rule."""
    found = _read_table(path, '{"some id": "User = \'backup\'"}')
    for name, text in found.items():
        if not isinstance(text, str):
            raise InputError(
                f'{path}: the exclusion of "{name}" is {text!r}; an expression is expected',
                hint=f'such as "{name}" = "User = \'backup\'"',
            )
    return found


def _read_table(path: Path, example: str) -> dict[str, Any]:
    with opened(path) as stream:
        content = stream.read()
    try:
        text = content.decode("utf-8-sig")
        found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise InputError(f"{path} is not {kind}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{path} holds {json_kind(found)}; an object is expected", hint=f"such as {example}"
        )
    return found


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
