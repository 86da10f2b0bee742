"""Fields of rules as attributes of events, and tests of them by the type of their values.

Rules seldom say what type a value has: `LogonType: 3` is meant for "3" and for 3. An attribute has
one type, declared, learned from events, or string; each test is spelled for that type. A test of an
array is one of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

from tamis.importers.conditions import (
    ELEMENT,
    NEVER,
    All,
    Any,
    Element,
    Not,
    Test,
    Wish,
    exists,
    is_missing,
    quote,
)
from tamis.importers.model import not_expressible
from tamis.language.names import parse_path, print_path
from tamis.language.types import (
    ANY,
    INT64_MAX,
    INT64_MIN,
    STRING,
    WrongTypeError,
    parse_declared,
)
from tamis.language.types.addresses import parse_address

if TYPE_CHECKING:
    from tamis.importers.settings import Settings
    from tamis.language.schema import Path
    from tamis.language.types import Type

    Name = str | Path
    Spell = Callable[[str, Type], Wish]


class Wildcard(Enum):
    """The wildcards of patterns."""

    ANY_TEXT = "%"
    ONE_CHARACTER = "_"


Pattern = Sequence[str | Wildcard]
# Logs write a number now as a number and now as a text; where a rule does not say, both are read.
AS_IT_COMES: Final = parse_declared("string from number or boolean")
_NUMBER: Final = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_COMPARISONS: Final = ("<", "<=", ">", ">=")


class UnsuitedError(Exception):
    """Values of a type cannot be tested by this, such as a network."""


class Fields:
    """The attributes that stand for fields, with their types."""

    def __init__(
        self,
        types: Mapping[Path, Type] | None = None,
        *,
        mapping: Mapping[str, Sequence[str]] | None = None,
        prefix: str = "",
        is_nested: bool = True,
        default: Type = STRING,
    ) -> None:
        """`default` is the type of attributes that have none in `types`. `mapping` names the
        attributes of a field, one of which must satisfy a test; of other fields, `prefix` and the
        name are the attribute. `is_nested`: a dot selects a member.
        """
        self.used: dict[Path, Type] = {}
        self._misfits: list[str] = []
        self._types = dict(types or {})
        self._declared: set[Path] = set()
        self._default = default
        self._mapping = dict(mapping or {})
        self._prefix = parse_path(prefix) if prefix else ()
        self._is_nested = is_nested

    @classmethod
    def of(
        cls,
        elected: Mapping[str, Type] | Mapping[Path, Type],
        settings: Settings,
        default: Type = STRING,
    ) -> Fields:
        """The fields of rules whose constants elected types; declared types override them."""
        fields = cls({}, mapping=settings.fields, is_nested=settings.nested, default=default)
        for field, type_ in elected.items():
            fields._types |= dict.fromkeys(fields.paths(field), type_)
        declared = settings.schema
        if declared is not None:
            fields._types |= {path: declared[path] for path in declared}
            fields._declared |= set(declared)
        return fields

    def is_declared(self, field: Name) -> bool:
        """Whether the schema, and not only a constant, gives the type of the field."""
        return all(path in self._declared for path in self.paths(field))

    def types(self, field: Name, default: Type | None = None) -> list[Type]:
        """The types of the field's attributes, or of their elements; `default`: of those that have
        none.
        """
        found = (self._types.get(path, default or self._default) for path in self.paths(field))
        return [type_.element or type_ for type_ in found]

    def take_used(self) -> dict[Path, Type]:
        """The types of the attributes that were tested since the last call."""
        used, self.used = self.used, {}
        return used

    def take_misfits(self) -> list[str]:
        """A sentence for each value, tested since the last call, that its attribute never has."""
        found, self._misfits = self._misfits, []
        return found

    def paths(self, field: Name) -> list[Path]:
        """The attributes that stand for a field, given by name or as the path of a member."""
        name = show_field(field)
        if name in self._mapping:
            return [parse_path(own) for own in self._mapping[name]]
        steps = (split_name(field) if isinstance(field, str) else field) if self._is_nested else ()
        return [(*self._prefix, *(steps or (name,)))]

    def each(self, field: Name, spell: Spell) -> Wish:
        """The test of each attribute of the field, joined by OR."""
        return Any(tuple(self._test(path, spell) for path in self.paths(field)))

    def _test(self, path: Path, spell: Spell) -> Wish:
        self.used[path] = type_ = self._type(path)
        name = print_path(path)
        try:
            if type_.element is None:
                return spell(name, type_)
            return Element(name, spell(ELEMENT, type_.element))
        except UnsuitedError as error:
            raise not_expressible(
                f"{name} has values of type {type_}, which {error} cannot test",
                hint=f"declare it in the schema with another type, such as {name} STRING",
            ) from None

    def _type(self, path: Path) -> Type:
        return self._types.get(path, self._default)

    def _ask(self, path: Path, spell: Callable[[str], Wish]) -> Wish:
        """A test for presence, which every type passes."""
        self.used.setdefault(path, self._types.get(path, ANY))
        return spell(print_path(path))

    def _has_value(self, path: Path) -> Wish:
        is_array = self._type(path).element is not None
        return self._ask(
            path, lambda name: Element(name, exists(ELEMENT)) if is_array else exists(name)
        )

    def _has_no_value(self, path: Path) -> Wish:
        is_array = self._type(path).element is not None
        return Not(self._has_value(path)) if is_array else self._ask(path, is_missing)

    # ── tests ──────────────────────────────────────────────────────────────────────────────

    def exists(self, field: Name) -> Wish:
        """The field is present."""
        return Any(tuple(self._ask(path, exists) for path in self.paths(field)))

    def has_value(self, field: Name) -> Wish:
        """The field is present; of an array, an element is."""
        return Any(tuple(map(self._has_value, self.paths(field))))

    def has_no_value(self, field: Name) -> Wish:
        """The field is missing; of an array, all elements are."""
        return All(tuple(map(self._has_no_value, self.paths(field))))

    def is_missing(self, field: Name) -> Wish:
        """The field is missing."""
        return All(tuple(self._ask(path, is_missing) for path in self.paths(field)))

    def matches(self, field: Name, pattern: Pattern, *, is_cased: bool = False) -> Wish:
        """The whole value, as text, is like the pattern."""
        if pattern and all(part is Wildcard.ANY_TEXT for part in pattern):
            return self.has_value(field)

        def spell(name: str, type_: Type) -> Wish:
            found = match_text(name, type_, pattern, is_cased)
            if found is NEVER:
                shown, text = show_field(field), "".join(map(str, pattern))
                self._misfits.append(
                    f"{shown} is of type {type_} here and never has the value {text!r:.60}"
                )
            return found

        return self.each(field, spell)

    def contains_regex(self, field: Name, pattern: str) -> Wish:
        """The regular expression is found in the value, as text."""

        def spell(name: str, type_: Type) -> Wish:
            return _test_text(name, type_, "RLIKE", quote(pattern), "a regular expression")

        return self.each(field, spell)

    def compare(self, field: Name, comparator: str, number: float) -> Wish:
        """The value, as a number, compares like this with the number."""
        return self.each(field, lambda name, type_: _compare(name, type_, comparator, number))

    def in_network(self, field: Name, network: str) -> Wish:
        """The value is an address of the network."""

        def spell(name: str, type_: Type) -> Wish:
            subject = _cast(name, "IP") if type_ == STRING else name
            if type_.name not in ("string", "ip"):
                raise UnsuitedError("a network")
            return Test(subject, "in_network", quote(without_host(network)), (subject,))

        return self.each(field, spell)

    def equals_field(self, field: str, other: str) -> Wish:
        """Two fields have the same value, without regard to case."""
        for path in (*self.paths(field), *self.paths(other)):
            if self._type(path).element is not None:
                raise not_expressible(
                    f"{print_path(path)} is an array, whose elements cannot be compared with "
                    "another field"
                )

        def spell(name: str, type_: Type) -> Wish:
            return self.each(other, lambda second, own: _equal(name, type_, second, own))

        return self.each(field, spell)


def without_host(network: str) -> str:
    """The network without the bits of a host, such as 10.0.0.0/8 for 10.1.2.3/8."""
    try:
        return str(ip_network(network, strict=False))
    except ValueError:
        return network  # the error of the expression says what is wrong


def show_field(field: Name) -> str:
    """The name of a field, with dots between the names of its path."""
    return field if isinstance(field, str) else ".".join(field)


def split_name(field: str) -> Path:
    """The path of a name with dots; one with an empty part is a single name."""
    steps = tuple(field.split("."))
    return steps if all(steps) else (field,)


def _cast(name: str, type_: str) -> str:
    return f"cast({name} AS {type_})"


# ── texts ───────────────────────────────────────────────────────────────────────────────────


def match_text(name: str, type_: Type, pattern: Pattern, is_cased: bool) -> Wish:
    """The whole value, as text, is like the pattern."""
    if not any(isinstance(part, Wildcard) for part in pattern):
        text = "".join(str(part) for part in pattern)
        return _equal_text(name, type_, text, is_cased)
    spelled = quote(spell_like(pattern))
    return _test_text(name, type_, "LIKE" if is_cased else "ILIKE", spelled, "a pattern")


def spell_like(pattern: Pattern) -> str:
    """The pattern as LIKE spells it; a run of % is one."""
    merged = [own for n, own in enumerate(pattern) if not n or own != pattern[n - 1]]
    return "".join(map(_spell_part, merged if Wildcard.ONE_CHARACTER not in pattern else pattern))


def _spell_part(part: str | Wildcard) -> str:
    if isinstance(part, Wildcard):
        return part.value
    return "".join(f"\\{own}" if own in "\\%_" else own for own in part)


def _test_text(name: str, type_: Type, word: str, constant: str, what: str) -> Wish:
    """A test of the value's text."""
    if type_ == STRING:
        return Test(name, word, constant, (name,))
    if type_.name in ("integer", "boolean"):
        return Test(_cast(name, "STRING"), word, constant, (name,))
    raise UnsuitedError(what)


def _equal_text(name: str, type_: Type, text: str, is_cased: bool) -> Wish:
    """The value, as text, is this one."""
    match type_.name:
        case "string":
            if is_cased or text.lower() == text.upper():
                return Test(name, "=", quote(text), (name,))
            return Test(f"lower({name})", "=", quote(text.lower()), (name,))
        case "integer":
            # The text of an integer has neither a sign + nor leading zeros.
            is_whole = text.removeprefix("-").isdecimal() and text.isascii()
            if not is_whole or str(int(text)) != text or not INT64_MIN <= int(text) <= INT64_MAX:
                return NEVER
            return Test(name, "=", text, (name,))
        case "boolean":
            known = {"true": "TRUE", "false": "FALSE"}.get(text if is_cased else text.lower())
            return NEVER if known is None else Test(name, "=", known, (name,))
        case "number" | "double" | "decimal" | "float":
            return _equal_number(name, text)
        case "ip":
            return _equal_address(name, text)
    raise UnsuitedError("a value")


def _equal_number(name: str, text: str) -> Wish:
    try:
        float(text)
    except ValueError:
        return NEVER
    is_plain = text.removeprefix("-").replace(".", "", 1).isdecimal() and text.isascii()
    return Test(name, "=", text, (name,)) if is_plain else NEVER


def _equal_address(name: str, text: str) -> Wish:
    try:
        parse_address(text)
    except WrongTypeError:
        return NEVER
    return Test(name, "=", quote(text), (name,))


# ── numbers and other fields ────────────────────────────────────────────────────────────────


def _compare(name: str, type_: Type, comparator: str, number: float) -> Wish:
    if comparator not in _COMPARISONS:
        raise AssertionError(comparator)
    if type_ == STRING:
        # A cast also reads "nan", "Infinity" and "9d".
        subject = _cast(name, "DOUBLE")
        compared = Test(f"{subject} {comparator} {number!r}", needed=(subject,))
        return All((Test(name, "RLIKE", quote(_NUMBER), (name,)), compared))
    if type_.is_numeric or type_.name == "number":
        return Test(f"{name} {comparator} {number!r}", needed=(name,))
    raise UnsuitedError("a comparison of numbers")


def _equal(first: str, type_: Type, second: str, other: Type) -> Wish:
    if type_ != other:
        raise not_expressible(
            f"{first} is of type {type_} and {second} of type {other}: they cannot be compared",
            hint="declare both with the same type",
        )
    sides = (first, second)
    if type_ == STRING:
        sides = (f"lower({first})", f"lower({second})")
    return Test(f"{sides[0]} = {sides[1]}", needed=(first, second))
