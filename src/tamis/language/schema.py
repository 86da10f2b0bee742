"""Schemas: one type for each attribute, read from any of several notations."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import SchemaError
from tamis.language.definition_names import read_definitions
from tamis.language.names import parse_path, print_path, split_listed
from tamis.language.signatures import Signature, is_kind, parse_kind
from tamis.language.types import (
    STRING,
    Type,
    array_type,
    decimal_type,
    parse_declared,
    parse_type,
    struct_type,
    text_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from tamis.language.ast import Condition

# The member of a schema's JSON that has the definitions.
DEFINITIONS: Final = "@definitions"
Path = tuple[str, ...]


class Schema:
    """An immutable mapping from attribute paths to types, and the signatures of operators.

    Columns that exist but have an unsupported type (maps, binary, arrays of arrays) are recorded,
    so that the error of an expression that uses one says so.
    """

    __slots__ = ("_definitions", "_operators", "_types", "_unsupported", "expanded")

    def __init__(
        self,
        types: Mapping[Path, Type],
        unsupported: Mapping[Path, str] | None = None,
        operators: Iterable[Signature] = (),
        definitions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._types = dict(types)
        named = next((path for path in self._types if not isinstance(path, tuple)), None)
        if named is not None:
            raise SchemaError(
                f"{named!r} is not the path of an attribute",
                hint="to declare attributes by name: Schema.of({'name': 'type'})",
            )
        self._definitions = dict(definitions)
        # The typed conditions of definitions, each when it is first used.
        self.expanded: dict[str, Condition] = {}
        self._unsupported = dict(unsupported or {})
        self._operators = _by_folded_name(operators)
        _refuse_shadowing(self._types)

    # ── where schemas come from ────────────────────────────────────────────────────────────

    @classmethod
    def of(cls, source: Any) -> Schema:
        """A schema from any notation: code, DDL text, JSON, Arrow, Spark, or a schema."""
        if isinstance(source, Schema):
            return source
        if isinstance(source, str):
            text = source.strip()
            return cls.of(_load_json(text)) if text.startswith("{") else cls.from_ddl(text)
        if isinstance(source, dict):
            return cls.from_json(source)
        if hasattr(source, "jsonValue"):
            return cls.from_spark(source)
        if type(source).__module__.startswith("pyarrow"):
            return cls.from_arrow(source)
        raise SchemaError(
            f"cannot read a schema from {type(source).__name__}",
            hint="allowed: {'level': 'integer'}, 'level BIGINT, name STRING', an Arrow or a "
            "Spark schema",
        )

    @classmethod
    def from_json(cls, declared: Mapping[str, Any]) -> Schema:
        """From {"name": "type"}; nested objects declare struct paths. Also from Spark's JSON.

        Operators are declared by their signatures: {"loc_in(string)": "operator"}, conditions by
        their names: {"@definitions": {"office_hours": "hour(ts) BETWEEN 8 AND 18"}}.
        """
        if declared.get("type") == "struct" and isinstance(declared.get("fields"), list):
            return cls.from_spark(declared)
        types: dict[Path, Type] = {}
        operators: list[Signature] = []

        def walk(prefix: Path, members: Mapping[str, Any]) -> None:
            for name, type_ in members.items():
                if isinstance(type_, str) and is_kind(type_):
                    operators.append(parse_kind(name, type_))
                    continue
                path = prefix + parse_path(name)
                if isinstance(type_, dict):
                    walk(path, type_)
                elif isinstance(type_, str):
                    types[path] = parse_declared(type_)
                elif isinstance(type_, Type):
                    types[path] = type_
                else:
                    raise SchemaError(
                        f"attribute {print_path(path)}: {type_!r} is not the name of a type"
                    )

        definitions = read_definitions(declared.get(DEFINITIONS, {}))
        walk((), {name: own for name, own in declared.items() if name != DEFINITIONS})
        return cls(types, operators=operators, definitions=definitions)

    @classmethod
    def from_ddl(cls, text: str) -> Schema:
        """From SQL's notation: `level BIGINT, tags ARRAY<STRING>, geo.lat DOUBLE`.

        Operators are declared by their signatures: `loc_in(STRING) OPERATOR`.
        """
        types: dict[Path, Type] = {}
        operators: list[Signature] = []
        for declaration in split_listed(text):
            if declared := _OPERATOR.fullmatch(declaration):
                operators.append(parse_kind(declared[1], declared[2]))
                continue
            match = _DECLARATION.fullmatch(declaration)
            if match is None:
                raise SchemaError(
                    f"'{declaration}' does not declare an attribute; write: name TYPE",
                )
            path = tuple(_unquote(step) for step in re.findall(_NAME, match[1]))
            if path in types:
                raise SchemaError(f"attribute {print_path(path)} is declared twice")
            types[path] = parse_declared(match[2])
        return cls(types, operators=operators)

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """From an Arrow schema; struct columns declare paths."""
        types: dict[Path, Type] = {}
        unsupported: dict[Path, str] = {}

        def walk(prefix: Path, members: Any) -> None:
            import pyarrow as pa

            for member in members:
                path = (*prefix, member.name)
                _refuse_repeated(path, types)
                if pa.types.is_struct(member.type):
                    walk(path, [member.type.field(i) for i in range(member.type.num_fields)])
                elif (type_ := _type_from_arrow(member.type)) is not None:
                    types[path] = type_
                else:
                    unsupported[path] = str(member.type)

        walk((), schema)
        return cls(types, unsupported)

    @classmethod
    def from_spark(cls, schema: Any) -> Schema:
        """From a Spark `StructType` or its JSON; struct columns declare paths."""
        types: dict[Path, Type] = {}
        unsupported: dict[Path, str] = {}

        def walk(prefix: Path, members: list[dict[str, Any]]) -> None:
            for member in members:
                path, type_ = (*prefix, member["name"]), member["type"]
                _refuse_repeated(path, types)
                if isinstance(type_, dict) and type_["type"] == "struct":
                    walk(path, type_["fields"])
                    continue
                try:
                    types[path] = _type_from_spark(type_)
                except SchemaError:
                    unsupported[path] = _spell_spark(type_)

        try:
            walk((), (schema if isinstance(schema, dict) else schema.jsonValue())["fields"])
        except (KeyError, TypeError) as error:
            raise SchemaError(f"not the JSON of a Spark schema: {error!r}") from None
        return cls(types, unsupported)

    def with_analysers(self, analysers: Mapping[str, str]) -> Schema:
        """The same schema with analysers for some string attributes, given by name."""
        types = dict(self._types)
        for name, analyser in _read_analysers(analysers):
            path = parse_path(name)
            if types.get(path) != STRING:
                known = types.get(path, "not declared")
                raise SchemaError(f"attribute {name} is {known}; analysers are for strings")
            types[path] = replace(types[path], analyser=text_type(analyser).analyser)
        return Schema(types, self._unsupported, self._operators.values(), self._definitions)

    def with_operators(self, signatures: Iterable[Signature]) -> Schema:
        """The same schema with exactly these operators."""
        return Schema(self._types, self._unsupported, signatures, self._definitions)

    def with_definitions(self, definitions: Mapping[str, str]) -> Schema:
        """The same schema with exactly these conditions, by name."""
        known = read_definitions(definitions)
        return Schema(self._types, self._unsupported, self._operators.values(), known)

    # ── look-ups ───────────────────────────────────────────────────────────────────────────

    def __getitem__(self, path: Path | str) -> Type:
        return self._types[parse_path(path) if isinstance(path, str) else path]

    def get(self, path: Path) -> Type | None:
        """The type of an attribute, or None when it is not declared."""
        return self._types.get(path)

    def unsupported(self, path: Path) -> str | None:
        """The unsupported type of a column that exists, else None."""
        return self._unsupported.get(path)

    def operator(self, name: str) -> Signature | None:
        """The signature of an operator, whose name is case-insensitive, or None."""
        return self._operators.get(name.lower())

    @property
    def operators(self) -> tuple[Signature, ...]:
        """The signatures of all operators."""
        return tuple(self._operators.values())

    @property
    def definitions(self) -> dict[str, str]:
        """The expressions of all named conditions."""
        return dict(self._definitions)

    @property
    def is_open(self) -> bool:
        """Whether it has only definitions, so that the types are inferred."""
        return bool(self._definitions) and not self._types and not self._operators

    def __iter__(self) -> Iterator[Path]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __contains__(self, path: object) -> bool:
        return path in self._types

    def __eq__(self, other: object) -> bool:
        # Equality of types ignores analysers; the notation includes them.
        return isinstance(other, Schema) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(frozenset(self._types.items()))

    def __repr__(self) -> str:
        return f"Schema.of({self.to_ddl()!r})"

    def to_json(self) -> dict[str, Any]:
        """{"name": "type"}, which `from_json` reads back."""
        defined = {DEFINITIONS: self.definitions} if self._definitions else {}
        return {**self._declarations(), **defined}

    def to_ddl(self) -> str:
        """SQL's notation, which `from_ddl` reads back; without the definitions."""
        return ", ".join(f"{name} {type_}" for name, type_ in self._declarations().items())

    def _declarations(self) -> dict[str, str]:
        types = {print_path(path): str(type_) for path, type_ in self._types.items()}
        return types | {str(signature): signature.kind for signature in self.operators}


_NAME = r"(?:\w+|`(?:[^`]|``)+`)"
# Additions of Spark's DDL to a type, NOT NULL and a comment, are ignored.
_DECLARATION = re.compile(
    rf"\s*({_NAME}(?:\.{_NAME})*)\s*:?\s+(.+?)(?:\s+NOT\s+NULL)?(?:\s+COMMENT\s+'[^']*')?\s*",
    re.DOTALL | re.IGNORECASE,
)
_OPERATOR = re.compile(
    r"\s*(\w+\s*\(.*\))\s*:?\s+(OPERATOR\s*(?:\(.*\))?)\s*", re.DOTALL | re.IGNORECASE
)


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if name[0] == "`" else name


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is not JSON: {error}") from None


def _read_analysers(analysers: Any) -> Iterable[tuple[str, str]]:
    pairs: list[Any] = (
        list(analysers.items()) if hasattr(analysers, "items") else [(analysers, None)]
    )
    if not all(isinstance(part, str) for pair in pairs for part in pair):
        raise SchemaError(
            f"the analysers are {analysers!r}",
            hint="allowed: analysers by name: {'body': 'english'}",
        )
    return pairs


def _by_folded_name(operators: Iterable[Signature]) -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for signature in operators:
        other = found.setdefault(signature.name.lower(), signature)
        if other != signature:
            raise SchemaError(f"operator {signature.name} is declared twice: {other}, {signature}")
    return found


def _refuse_repeated(path: Path, types: Mapping[Path, Type]) -> None:
    if path in types:
        raise SchemaError(f"two columns are named {print_path(path)}: rename one of them")


def _refuse_shadowing(types: Mapping[Path, Type]) -> None:
    """Raise an error if `a` and `a.b` are both attributes: one is a value, the other needs a
    struct. Only `a STRING FROM OBJECT` can be both.
    """
    for path in types:
        for length in range(1, len(path)):
            outer = types.get(path[:length])
            if outer is not None and "object" not in outer.reads:
                raise SchemaError(
                    f"attribute {print_path(path)} lies inside {print_path(path[:length])}, "
                    "which is declared as a value"
                )


def _type_from_spark(type_: Any) -> Type:
    """The type of a member of Spark's JSON; raises a SchemaError if it is not supported."""
    if isinstance(type_, dict) and type_["type"] == "array":
        element = type_["elementType"]
        if isinstance(element, dict) and element["type"] == "struct":
            return array_type(_struct_from_spark(element))
        return array_type(_type_from_spark(element))
    return parse_type(type_ if isinstance(type_, str) else type_["type"])


def _struct_from_spark(struct: dict[str, Any]) -> Type:
    """The struct with the fields whose types are supported."""
    fields = {}
    for member in struct["fields"]:
        own = member["type"]
        with suppress(SchemaError):
            is_struct = isinstance(own, dict) and own["type"] == "struct"
            fields[member["name"]] = _struct_from_spark(own) if is_struct else _type_from_spark(own)
    if not fields:
        raise SchemaError("none of the fields has a type that is supported")
    return struct_type(fields)


def _spell_spark(type_: Any) -> str:
    if isinstance(type_, dict) and type_["type"] == "array":
        return f"array<{_spell_spark(type_['elementType'])}>"
    return str(type_ if isinstance(type_, str) else type_["type"])


def _struct_from_arrow(type_: Any) -> Type | None:
    """The struct with the fields whose types are supported; None if there are none."""
    import pyarrow as pa

    members = [type_.field(at) for at in range(type_.num_fields)]
    fields = {
        own.name: _struct_from_arrow(own.type)
        if pa.types.is_struct(own.type)
        else _type_from_arrow(own.type)
        for own in members
    }
    known = {name: own for name, own in fields.items() if own is not None}
    return struct_type(known) if known else None


def _type_from_arrow(type_: Any) -> Type | None:
    import pyarrow as pa

    is_ = pa.types
    if is_.is_dictionary(type_):
        return _type_from_arrow(type_.value_type)
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        is_struct = is_.is_struct(type_.value_type)
        element = (_struct_from_arrow if is_struct else _type_from_arrow)(type_.value_type)
        return array_type(element) if element is not None and element.element is None else None
    if is_.is_decimal(type_):
        return _decimal_from_arrow(type_)
    for test, name in (
        (is_.is_boolean, "boolean"),
        (is_.is_signed_integer, "integer"),
        (is_.is_float32, "float"),
        (is_.is_float64, "double"),
        (is_.is_string, "string"),
        (is_.is_large_string, "string"),
        (is_.is_string_view, "string"),
        (is_.is_date, "date"),
        (is_.is_timestamp, "timestamp"),
    ):
        if test(type_):
            return parse_type(name)
    # uint64 does not fit in 64 signed bits; the narrower ones do.
    if is_.is_unsigned_integer(type_) and not is_.is_uint64(type_):
        return parse_type("integer")
    return None


def _decimal_from_arrow(type_: Any) -> Type | None:
    try:
        return decimal_type(type_.precision, type_.scale)
    except SchemaError:
        return None
