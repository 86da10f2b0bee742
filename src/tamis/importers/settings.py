"""Settings of an import: how rules are read, in Python or in a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import InputError
from tamis.input.sources import opened
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMES: Final = "fields, layout, log_sources, nested, pipelines, schema, values"


@dataclass(frozen=True, slots=True)
class Settings:
    """How rules are read. What a format does not have is not used by it."""

    schema: Schema | None = None  # the types of attributes, as far as they are known
    layout: str = ""  # the name of a layout of events: where their fields are
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the attributes of a field
    nested: bool = True  # whether a dot in a name selects a member
    log_sources: Sequence[Mapping[str, Any]] = ()  # conditions for log sources, of Sigma
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of placeholders, of Sigma
    pipelines: Sequence[str] = ()  # paths of processing pipelines, of Sigma
    limits: Limits = DEFAULT_LIMITS  # of expressions

    def updated(self, **changes: Any) -> Settings:
        """These settings with others instead, where they are given."""
        return replace(self, **{name: own for name, own in changes.items() if own is not None})


def read_settings(path: str | Path) -> Settings:
    """The settings in a TOML file."""
    with opened(Path(path)) as stream:
        content = stream.read()
    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    try:
        return make_settings(found, Path(path).parent)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", hint=error.hint) from None


def make_settings(found: Mapping[str, Any], folder: Path = Path()) -> Settings:
    """The settings that a table gives; paths are relative to the folder."""
    unknown = found.keys() - set(NAMES.split(", "))
    if unknown:
        raise InputError(f'unknown setting "{min(unknown)}"; allowed: {NAMES}')
    given: dict[str, Any] = dict(found)
    if "schema" in given:
        given["schema"] = Schema.of(given["schema"])
    for name in ("fields", "values"):
        if name in given:
            given[name] = _read_lists(name, given[name])
    if not isinstance(given.get("nested", True), bool):
        raise InputError(f"nested is {given['nested']!r}; true or false is expected")
    if given.get("pipelines"):
        given["pipelines"] = [
            str(folder / own) for own in _read_texts("pipelines", given["pipelines"])
        ]
    entries = given.get("log_sources", [])
    if not isinstance(entries, list) or not all(isinstance(own, dict) for own in entries):
        raise InputError("log_sources is a list of tables", hint="write [[log_sources]] above each")
    return Settings(**given)


def _read_lists(name: str, table: Any) -> dict[str, list[str]]:
    if not isinstance(table, dict):
        raise InputError(f"{name} is a table of texts or lists of texts")
    return {key: _read_texts(f"{name}.{key}", own) for key, own in table.items()}


def _read_texts(name: str, given: Any) -> list[str]:
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list) or not found or not all(isinstance(own, str) for own in found):
        raise InputError(f"{name} is {given!r}; a text or a list of texts is expected")
    return found
