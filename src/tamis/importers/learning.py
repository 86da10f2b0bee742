"""The types of attributes, learned from events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tamis.language.schema import Schema
from tamis.language.types import (
    BOOLEAN,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    STRING,
    array_type,
)

if TYPE_CHECKING:
    from tamis.language.schema import Path
    from tamis.language.types import Type

_LIST: Final = "list"
MOST_LEVELS: Final = 30  # of nested objects


def learn_types(events: Iterable[Mapping[str, Any]]) -> Schema:
    """The type that most values of each attribute have: string, integer, number or boolean.

    Numbers of which some have a fraction are of type number. If some values are lists, the type is
    one or many of what they hold. Attributes that have only objects or no value at all are left
    out.
    """
    votes: defaultdict[Path, Counter[str]] = defaultdict(Counter)
    for event in events:
        _count((), event, votes)
    elected = {path: _elect(own) for path, own in votes.items() if own.keys() != {_LIST}}
    inner = {path[:length] for path in elected for length in range(1, len(path))}
    return Schema({path: type_ for path, type_ in elected.items() if path not in inner})


def _count(path: Path, value: Any, votes: defaultdict[Path, Counter[str]]) -> None:
    if isinstance(value, Mapping):
        if len(path) < MOST_LEVELS:
            for name, own in value.items():
                if isinstance(name, str) and name:
                    _count((*path, name), own, votes)
    elif isinstance(value, list):
        votes[path][_LIST] += 1
        for own in value:
            if not isinstance(own, Mapping | list):
                _count(path, own, votes)
    elif isinstance(value, bool):
        votes[path]["boolean"] += 1
    elif isinstance(value, int):
        votes[path]["integer" if INT64_MIN <= value <= INT64_MAX else "number"] += 1
    elif isinstance(value, float):
        votes[path]["number"] += 1
    elif isinstance(value, str):
        votes[path]["string"] += 1


def _elect(votes: Counter[str]) -> Type:
    elected = _elect_scalar(votes)
    return replace(array_type(elected), takes_one=True) if votes[_LIST] else elected


def _elect_scalar(votes: Counter[str]) -> Type:
    n_numbers = votes["integer"] + votes["number"]
    most = max(n_numbers, votes["boolean"], votes["string"])
    if most == votes["string"]:
        return STRING
    if most == n_numbers:
        return NUMBER if votes["number"] else INTEGER
    return BOOLEAN
