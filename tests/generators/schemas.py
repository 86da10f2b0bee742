"""Random schemas: every type, nested paths, and names that need backticks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tamis.language.schema import Path, Schema
from tamis.language.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    IP,
    NUMBER,
    STRING,
    TIMESTAMP,
    Type,
    array_type,
    struct_type,
)
from tamis.language.types.as_they_come import READS
from tests.generators.values import DECIMALS

if TYPE_CHECKING:
    from random import Random

PLAIN_NAMES: Final = (
    *("a", "b", "c", "A", "level", "country", "age", "x", "r", "_n", "camelCase", "n1"),
    # Words that mean something in SQL, and are plain names here.
    *(
        "all",
        "distinct",
        "user",
        "end",
        "order",
        "from",
        "left",
        "time",
        "current_date",
        "map",
        "struct",
        "matches",
    ),
    *("escape", "at_least", "contains", "values", "nan", "any", "exists_", "when", "position"),
)
ODD_NAMES: Final = (
    *("user-id", "a.b", "two words", " ", "1st", "prix€", "日本", "é", "\U0001f600", "a`b", "`"),
    *("and", "NOT", "null", "true", "Select", "case", "date", "TIMESTAMP", "array", "in", "xor"),
    *("it's", '"', "a\\b", "${x}", "--", "?x", "$", "%", "a,b", "(", "rlike", "interval"),
)
FIELDS: Final = ("a", "b", "Level", "order id", "in")
STRUCTS: Final = ("geo", "device", "a-struct", "like", "s.t")


def random_type(rng: Random) -> Type:
    """Any type; scalars more often than arrays."""
    scalars = (BOOLEAN, INTEGER, NUMBER, FLOAT, DOUBLE, STRING, STRING, DATE, TIMESTAMP, IP)
    scalar = rng.choice((*scalars, rng.choice(DECIMALS)))
    if rng.random() < 0.03:
        fields = {name: random_type(rng) for name in rng.sample(FIELDS, rng.randint(1, 3))}
        fields = {name: own for name, own in fields.items() if own.element is None}
        return array_type(struct_type(fields or {"a": scalar}))
    return array_type(scalar) if rng.random() < 0.15 else scalar


def random_path(rng: Random) -> Path:
    """A path of one to three names."""
    name = rng.choice(ODD_NAMES if rng.random() < 0.3 else PLAIN_NAMES)
    if rng.random() < 0.75:
        return (name,)
    return (*rng.choices(STRUCTS, k=rng.choice((1, 1, 2))), name)


def random_schema(rng: Random, n_attributes: int | None = None) -> Schema:
    """A schema of some attributes, among them often several of one type."""
    wanted = n_attributes or rng.randint(3, 12)
    types: dict[Path, Type] = {}
    while len(types) < wanted:
        path = random_path(rng)
        if not any(_are_nested(path, other) for other in types):
            is_repeated = types and rng.random() < 0.3
            types[path] = rng.choice(list(types.values())) if is_repeated else random_type(rng)
    return Schema(types)


def read_other_kinds(rng: Random, schema: Schema) -> Schema:
    """The same schema, in which many types read values of other kinds."""
    return Schema({path: _read_other_kinds(rng, schema[path]) for path in schema})


def _read_other_kinds(rng: Random, type_: Type) -> Type:
    if type_.element is not None:
        return array_type(_read_other_kinds(rng, type_.element))
    allowed = READS.get(type_.name)
    if allowed is None or rng.random() < 0.5:
        return type_
    return replace(type_, reads=tuple(own for own in allowed if rng.random() < 0.7))


def _are_nested(one: Path, other: Path) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]
