"""Turns EventBridge patterns into conditions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import RowError
from tamis.importers.conditions import NEVER, All, Not, Test, Wish, exists, quote
from tamis.importers.conditions import Any as AnyOf
from tamis.importers.fields import Fields, Wildcard, match_text
from tamis.importers.model import not_expressible
from tamis.importers.votes import spell_number, type_of
from tamis.language.names import print_path
from tamis.language.types import ANY, NUMBER, STRING

if TYPE_CHECKING:
    from tamis.importers.fields import Pattern, Spell
    from tamis.language.schema import Path
    from tamis.language.types import Type

COMPARATORS: Final = ("=", "<", "<=", ">", ">=")
FILTERS: Final = "anything-but, cidr, equals-ignore-case, exists, numeric, prefix, suffix, wildcard"
NULL_NOTE: Final = "null in a pattern also fits events without the field"
EXISTS_NOTE: Final = (
    "exists of a field that no rule compares is also true for an object and an empty list; "
    "EventBridge tests values alone"
)
NUMBER_NOTE: Final = (
    "a number also fits its other spellings, such as 300.0 and 3e2 for 300, which EventBridge "
    "tells apart"
)
BUT_NOTE: Final = (
    "anything-but does not fit null and values of another type, which count as missing"
)


def find_constants(pattern: Any, prefix: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The fields of a pattern with the constants that they are compared with."""
    if not isinstance(pattern, Mapping):
        return
    for name, own in pattern.items():
        if name == "$or" and isinstance(own, list):
            for branch in own:
                yield from find_constants(branch, prefix)
            continue
        path = (*prefix, name)
        if isinstance(own, Mapping):
            yield from find_constants(own, path)
        elif isinstance(own, list):
            for value in own:
                yield from ((path, constant) for constant in _constants(value))


def _constants(value: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        yield value
        return
    for name, own in value.items():
        if name == "numeric":
            yield 0
        elif name in ("prefix", "suffix", "wildcard", "equals-ignore-case", "cidr"):
            yield ""
        elif name == "anything-but":
            for constant in own if isinstance(own, list) else [own]:
                yield from _constants(constant)


def read_pattern(
    pattern: Mapping[str, Any], fields: Fields, notes: list[str], prefix: Path = ()
) -> Wish:
    """All fields of a pattern fit."""
    parts: list[Wish] = []
    for name, own in pattern.items():
        path = (*prefix, name)
        if name == "$or" and isinstance(own, list):
            parts.append(_read_branches(own, fields, notes, prefix))
        elif isinstance(own, Mapping):
            parts.append(read_pattern(own, fields, notes, path))
        elif isinstance(own, list):
            if not own:
                raise _bad(f"{print_path(path)} is an empty list; one or more values are expected")
            parts.append(AnyOf(tuple(_read_value(path, value, fields, notes) for value in own)))
        else:
            raise _bad(f"{print_path(path)} is {_show(own)}; a list of values is expected")
    if not parts:
        raise _bad(f"{print_path(prefix) if prefix else 'the pattern'} is an empty object")
    return All(tuple(parts))


def _read_branches(branches: list[Any], fields: Fields, notes: list[str], prefix: Path) -> Wish:
    if len(branches) < 2 or not all(isinstance(own, Mapping) for own in branches):
        raise _bad("$or is a list of two or more objects")
    return AnyOf(tuple(read_pattern(own, fields, notes, prefix) for own in branches))


def _read_value(path: Path, value: Any, fields: Fields, notes: list[str]) -> Wish:
    """A field fits one value or filter of its list."""
    if value is None:
        notes.append(NULL_NOTE)
        return fields.is_missing(path)
    if isinstance(value, list):
        raise _bad(f"{print_path(path)}: {_show(value)} is a list inside a list")
    if not isinstance(value, Mapping):
        if isinstance(value, int | float) and not isinstance(value, bool):
            notes.append(NUMBER_NOTE)
        return _equals(path, value, fields, notes)
    if len(value) != 1:
        raise _bad(f"{print_path(path)}: {_show(value)} has {len(value)} filters; one is expected")
    ((name, given),) = value.items()
    match name:
        case "exists":
            if not isinstance(given, bool):
                raise _bad(
                    f"{print_path(path)}: exists is {_show(given)}; true or false is expected"
                )
            if ANY in fields.types(path, ANY):
                notes.append(EXISTS_NOTE)
            return fields.has_value(path) if given else fields.has_no_value(path)
        case "numeric":
            return _read_numeric(path, given, fields, notes)
        case "cidr":
            return fields.in_network(path, _text(path, name, given))
        case "anything-but":
            return _read_anything_but(path, given, fields, notes)
        case "prefix" | "suffix" | "wildcard" | "equals-ignore-case":
            pattern, is_cased = _to_pattern(path, name, given)
            return fields.matches(path, pattern, is_cased=is_cased)
    raise not_expressible(
        f"{print_path(path)}: the filter {name} is unknown; known ones: {FILTERS}"
    )


def _equals(path: Path, value: Any, fields: Fields, notes: list[str]) -> Wish:
    def spell(name: str, type_: Type) -> Wish:
        found = _equal_value(name, type_, value)
        if found == NEVER:
            notes.append(_describe_misfit(path, type_, _show(value)))
        return found

    return fields.each(path, spell)


def _describe_misfit(path: Path, type_: Type, shown: str) -> str:
    return (
        f"{print_path(path)} is of type {type_} here and never fits {shown}: declare its type in "
        "the schema if it is another one"
    )


def _equal_value(name: str, type_: Type, value: Any) -> Wish:
    """The value is of the same type and equal; text and numbers are never equal."""
    wanted = type_of(value)
    is_number = type_.is_numeric or type_.name == "number"
    if wanted.name == "number":
        fits = is_number
    else:
        fits = wanted == type_ or (wanted.name == "string" and type_.name == "ip")
    return Test(name, "=", spell_constant(value), (name,)) if fits else NEVER


def spell_constant(value: Any) -> str:
    """A constant of JSON as an expression has it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return quote(value) if isinstance(value, str) else spell_number(value)


def _to_pattern(path: Path, name: str, given: Any) -> tuple[Pattern, bool]:
    """A filter of texts as a pattern, and whether case counts."""
    is_cased = name != "equals-ignore-case"
    if isinstance(given, Mapping) and given.keys() == {"equals-ignore-case"}:
        given, is_cased = given["equals-ignore-case"], False
    text = _text(path, name, given)
    match name:
        case "prefix":
            return [text, Wildcard.ANY_TEXT], is_cased
        case "suffix":
            return [Wildcard.ANY_TEXT, text], is_cased
        case "wildcard":
            return list(_split_wildcards(path, text)), is_cased
    return [text], is_cased


def _split_wildcards(path: Path, text: str) -> Iterator[str | Wildcard]:
    """`*` is any text; a backslash makes `*` and a backslash plain."""
    plain, has_star = "", False
    characters = iter(text)
    for character in characters:
        if character == "*":
            if plain:
                yield plain
            elif has_star:
                raise _bad(f"{print_path(path)}: a wildcard has two * in a row; one is expected")
            has_star = True
            yield Wildcard.ANY_TEXT
            plain = ""
        elif character == "\\":
            escaped = next(characters, "")
            if escaped not in ("*", "\\"):
                name = print_path(path)
                raise _bad(f"{name}: in a wildcard, a backslash is followed by * or a backslash")
            plain += escaped
        else:
            plain += character
    if plain:
        yield plain


def _read_numeric(path: Path, given: Any, fields: Fields, notes: list[str]) -> Wish:
    """[">", 0, "<=", 5]: comparators and numbers in turn."""
    is_list = isinstance(given, list) and len(given) in (2, 4)
    pairs = list(zip(given[::2], given[1::2], strict=True)) if is_list else []
    if not pairs or not all(
        comparator in COMPARATORS
        and isinstance(number, int | float)
        and not isinstance(number, bool)
        for comparator, number in pairs
    ):
        raise _bad(
            f'{print_path(path)}: numeric is {_show(given)}; such as [">", 0, "<=", 5] is expected'
        )
    tests = (_compare(path, comparator, number, fields, notes) for comparator, number in pairs)
    return All(tuple(tests))


def _compare(path: Path, comparator: str, number: float, fields: Fields, notes: list[str]) -> Wish:
    """A number is compared; a text never is, even if it spells one."""
    if comparator == "=":
        return _equals(path, number, fields, notes)
    texts = [own for own in fields.types(path) if own == STRING]
    if texts:
        notes.append(_describe_misfit(path, texts[0], f"numeric {comparator} {number}"))
        return NEVER
    return fields.compare(path, comparator, number)


def _read_anything_but(path: Path, given: Any, fields: Fields, notes: list[str]) -> Wish:
    """The field has a value, or an element, and it is not one of these."""
    notes.append(BUT_NOTE)
    excluded = _read_excluded(path, given)

    def spell(name: str, type_: Type) -> Wish:
        return All((exists(name), Not(AnyOf(tuple(own(name, type_) for own in excluded)))))

    return fields.each(path, spell)


def _read_excluded(path: Path, given: Any) -> list[Spell]:
    """What anything-but excludes: values, or those that a filter fits."""
    if not isinstance(given, Mapping):
        wanted = given if isinstance(given, list) else [given]
        types = {type_of(own) for own in wanted}
        is_plain = all(isinstance(own, str | int | float) for own in wanted)
        if not is_plain or types not in ({STRING}, {NUMBER}):
            name = print_path(path)
            raise _bad(f"{name}: anything-but has {_show(given)}; texts or numbers are expected")
        return [partial(_equal_value, value=own) for own in wanted]
    if len(given) != 1:
        raise _bad(f"{print_path(path)}: anything-but has {_show(given)}; one filter is expected")
    ((name, inner),) = given.items()
    if inner == []:
        raise _bad(f"{print_path(path)}: anything-but has an empty list; texts are expected")
    if name not in ("prefix", "suffix", "wildcard", "equals-ignore-case"):
        raise not_expressible(f"{print_path(path)}: anything-but with the filter {name}")
    patterns = (
        _to_pattern(path, name, own) for own in (inner if isinstance(inner, list) else [inner])
    )
    return [
        partial(match_text, pattern=pattern, is_cased=is_cased) for pattern, is_cased in patterns
    ]


def _text(path: Path, name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise _bad(f"{print_path(path)}: {name} is {_show(given)}; a text is expected")
    return given


def _bad(message: str) -> RowError:
    return RowError("bad-rule", message)


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:60]
