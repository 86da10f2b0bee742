"""Log sources as conditions, from a table that users extend.

An entry names a product, a category or a service, or several of them, and alternatives of fields
and values in Sigma's own notation. The entry with the most names that a rule has applies to it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sigma.conditions import SigmaCondition
from sigma.exceptions import SigmaError
from sigma.rule import SigmaDetections

from tamis.errors import InputError
from tamis.importers.conditions import ALWAYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sigma.rule import SigmaLogSource

    from tamis.importers.conditions import Wish
    from tamis.importers.sigma.trees import TreeReader

# How many rules of all sources test every event.
NOTE: Final = "the log source has no condition: the rule tests every event"
NAMES: Final = ("product", "category", "service")


class LogSourceKey(NamedTuple):
    """What an entry names; None: any."""

    product: str | None
    category: str | None
    service: str | None


@cache
def read_table() -> list[dict[str, Any]]:
    """The entries that come with the package."""
    text = (files("tamis.importers.sigma") / "log_sources.toml").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["log_sources"]
    return entries


class LogSources:
    """The conditions of log sources."""

    def __init__(self, extra: Sequence[Mapping[str, Any]], trees: TreeReader) -> None:
        """`extra` entries replace those of the package that have the same names."""
        self._trees = trees
        self._any: dict[LogSourceKey, list[dict[str, Any]]] = {}
        for entry in (*read_table(), *extra):
            key, alternatives = _read_entry(entry)
            self._any[key] = alternatives
            self._convert(alternatives)  # an error of the table is one of the caller

    def find(self, source: SigmaLogSource) -> tuple[Wish, tuple[str, ...]]:
        """The condition of a log source; if there is none, also notes."""
        given = LogSourceKey(source.product, source.category, source.service)
        fitting = [
            key
            for key in self._any
            if all(own is None or own == wanted for own, wanted in zip(key, given, strict=True))
        ]
        if not fitting:
            name = "/".join(own or "*" for own in given)
            return ALWAYS, (NOTE, f"the log source {name} has no condition in the table")
        best = max(fitting, key=lambda key: sum(own is not None for own in key))
        return self._convert(self._any[best]), ()

    def _convert(self, alternatives: list[dict[str, Any]]) -> Wish:
        if not alternatives:
            return ALWAYS
        try:
            named = {f"s{number}": own for number, own in enumerate(alternatives)}
            detections = SigmaDetections.from_dict({**named, "condition": "1 of s*"})
            return self._trees.read(SigmaCondition("1 of s*", detections).parsed)
        except (SigmaError, TypeError, AttributeError) as error:
            raise InputError(f"log_sources: {alternatives} is not a detection: {error}") from None


def _read_entry(entry: Mapping[str, Any]) -> tuple[LogSourceKey, list[dict[str, Any]]]:
    unknown = entry.keys() - {*NAMES, "any"}
    names = [entry.get(name) for name in NAMES]
    alternatives = entry.get("any")
    if unknown or not any(names) or not isinstance(alternatives, list):
        raise InputError(
            f"log_sources: {dict(entry)} is not an entry; it has a product, category or service, "
            "and any, a list of detections",
            hint='[[log_sources]] service = "audit" any = [{ Channel = "Audit" }]',
        )
    return LogSourceKey(*names), alternatives
