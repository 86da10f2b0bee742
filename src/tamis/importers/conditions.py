"""Conditions of other formats, and their spelling as expressions.

In those formats a test is true or false: a test of a missing attribute is false, and NOT makes it
true. An expression says so itself, so that it means the same in every index: a test below NOT is
spelled `attribute IS NOT NULL AND test`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from tamis.language.types.texts import print_string


class Test(NamedTuple):
    """One test: the subject is tested by the word with the constant, all in our language."""

    subject: str  # such as lower(Image); the whole test if there is no word
    word: str = ""  # =, LIKE, ILIKE, RLIKE or in_network
    constant: str = ""
    # The values without which the test is undefined, such as Image.
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class All:
    """True if all parts are; without parts always."""

    parts: tuple[Wish, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """True if one of the parts is; without parts never."""

    parts: tuple[Wish, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True if the part is not."""

    part: Wish


@dataclass(frozen=True, slots=True)
class AtLeast:
    """True if so many of the parts are."""

    count: int
    parts: tuple[Wish, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """True if the part is, for an element of the array; it names the element `ELEMENT`."""

    array: str
    part: Wish


Wish: TypeAlias = Test | All | Any | Not | AtLeast | Element

ELEMENT: Final = "v"

ALWAYS: Final = All(())
NEVER: Final = Any(())
_LISTS: Final = {
    "LIKE": "{} LIKE {} ({})",
    "ILIKE": "{} ILIKE {} ({})",
    "RLIKE": "{} RLIKE {} ({})",
}
_OR_PRECEDENCE, _AND_PRECEDENCE, _NOT_PRECEDENCE = range(3)  # how tightly a text is bound


def quote(text: str) -> str:
    """The text as a constant; with backslashes as a raw string, which is easier to read."""
    if "\\" in text and text.isprintable() and "'" not in text and "${" not in text:
        return f"r'{text}'"
    return print_string(text)


def exists(value: str) -> Test:
    """The value is present."""
    return Test(f"{value} IS NOT NULL")


def is_missing(value: str) -> Test:
    """The value is missing."""
    return Test(f"{value} IS NULL")


def spell(wish: Wish) -> str:
    """The expression that is TRUE for just the events for which the condition is true."""
    return _print(_simplify(_guard(_simplify(wish), is_negated=False)))[0]


# ── missing values ──────────────────────────────────────────────────────────────────────────


def _guard(wish: Wish, *, is_negated: bool) -> Wish:
    """The condition with a test for the presence of each value that is tested below NOT.

    Elsewhere undefined is as good as false: AND, OR and at_least never turn it into TRUE.
    """
    match wish:
        case Test():
            if not is_negated or not wish.needed:
                return wish
            return All((*map(exists, wish.needed), wish))
        case Not():
            return Not(_guard(wish.part, is_negated=not is_negated))
        case Element():
            inner = Element(wish.array, _guard(wish.part, is_negated=is_negated))
            return All((exists(wish.array), inner)) if is_negated else inner
        case AtLeast():
            return AtLeast(wish.count, _guard_parts(wish.parts, is_negated))
        case All():
            return All(_guard_parts(_merge(wish.parts, "ALL"), is_negated))
        case Any():
            return Any(_guard_parts(_merge(_join_elements(wish.parts), "ANY"), is_negated))


def _guard_parts(parts: tuple[Wish, ...], is_negated: bool) -> tuple[Wish, ...]:
    return tuple(_guard(part, is_negated=is_negated) for part in parts)


# ── lists of constants ──────────────────────────────────────────────────────────────────────


def _merge(parts: tuple[Wish, ...], quantifier: str) -> tuple[Wish, ...]:
    """The parts, with one test for those that differ only in their constant."""
    groups: dict[Wish | tuple[str, str], list[Test]] = {}
    for part in _flatten(parts, All if quantifier == "ALL" else Any):
        is_listed = isinstance(part, Test) and _can_list(part.word, quantifier)
        key = (part.subject, part.word) if isinstance(part, Test) and is_listed else part
        groups.setdefault(key, [])
        if isinstance(part, Test):
            groups[key].append(part)
    return tuple(
        _list(tests, quantifier) if type(key) is tuple else key  # type: ignore[misc]
        for key, tests in groups.items()
    )


def _join_elements(parts: tuple[Wish, ...]) -> tuple[Wish, ...]:
    """The alternatives, with one condition for the elements of each array.

    For AND this would be wrong: different elements may satisfy its parts.
    """
    flat = _flatten(parts, Any)
    by_array: dict[str, list[Wish]] = {}
    for part in flat:
        if isinstance(part, Element):
            by_array.setdefault(part.array, []).append(part.part)
    joined = {array: Element(array, _simplify(Any(tuple(own)))) for array, own in by_array.items()}
    alternatives = (joined[own.array] if isinstance(own, Element) else own for own in flat)
    return tuple(dict.fromkeys(alternatives))


def _can_list(word: str, quantifier: str) -> bool:
    return word in _LISTS or (quantifier == "ANY" and word in ("=", "in_network"))


def _list(tests: list[Test], quantifier: str) -> Test:
    constants = list(dict.fromkeys(test.constant for test in tests))
    first = tests[0]
    if len(constants) == 1:
        return first
    listed = ", ".join(constants)
    if first.word in _LISTS:
        text = _LISTS[first.word].format(first.subject, quantifier, listed)
    elif first.word == "=":
        text = f"{first.subject} IN ({listed})"
    else:
        text = f"in_network({first.subject}, {listed})"
    return Test(text, needed=first.needed)


# ── constants and nesting ───────────────────────────────────────────────────────────────────


def _flatten(parts: tuple[Wish, ...], kind: type[All] | type[Any]) -> list[Wish]:
    """The parts without nesting of the same kind, each once."""
    flat: dict[Wish, None] = {}
    for part in parts:
        own = _flatten(part.parts, kind) if isinstance(part, kind) and part.parts else [part]
        flat |= dict.fromkeys(own)
    return list(flat)


def _simplify(wish: Wish) -> Wish:
    match wish:
        case Test():
            return wish
        case Not():
            part = _simplify(wish.part)
            if part in (ALWAYS, NEVER):
                return NEVER if part == ALWAYS else ALWAYS
            return part.part if isinstance(part, Not) else Not(part)
        case AtLeast():
            return _simplify_count(wish)
        case Element():
            part = _simplify(wish.part)
            return NEVER if part == NEVER else Element(wish.array, part)
        case All():
            return _simplify_parts(wish.parts, All, NEVER)
        case Any():
            return _simplify_parts(wish.parts, Any, ALWAYS)


def _simplify_parts(parts: tuple[Wish, ...], kind: type[All] | type[Any], decisive: Wish) -> Wish:
    neutral = kind(())
    simple = tuple(own for own in map(_simplify, parts) if own != neutral)
    if decisive in simple:
        return decisive
    flat = _flatten(simple, kind)
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _simplify_count(wish: AtLeast) -> Wish:
    simple = tuple(map(_simplify, wish.parts))
    count = wish.count - simple.count(ALWAYS)
    undecided = tuple(own for own in simple if own not in (ALWAYS, NEVER))
    if count <= 0:
        return ALWAYS
    if count > len(undecided):
        return NEVER
    if count == 1:
        return _simplify_parts(undecided, Any, ALWAYS)
    if count == len(undecided):
        return _simplify_parts(undecided, All, NEVER)
    return AtLeast(count, undecided)


# ── text ────────────────────────────────────────────────────────────────────────────────────


def _print(wish: Wish) -> tuple[str, int]:
    """The text, and how tightly it is bound."""
    match wish:
        case Test(word="in_network"):
            return f"in_network({wish.subject}, {wish.constant})", _NOT_PRECEDENCE
        case Test(word=""):
            return wish.subject, _NOT_PRECEDENCE
        case Test():
            return f"{wish.subject} {wish.word} {wish.constant}", _NOT_PRECEDENCE
        case Not():
            return f"NOT {_below(wish.part, _NOT_PRECEDENCE)}", _NOT_PRECEDENCE
        case AtLeast():
            parts = ", ".join(_print(part)[0] for part in wish.parts)
            return f"at_least({wish.count}, {parts})", _NOT_PRECEDENCE
        case Element():
            return f"exists({wish.array}, {ELEMENT} -> {_print(wish.part)[0]})", _NOT_PRECEDENCE
        case All(parts=()):
            return "TRUE", _NOT_PRECEDENCE
        case Any(parts=()):
            return "FALSE", _NOT_PRECEDENCE
        case All():
            return " AND ".join(
                _below(part, _NOT_PRECEDENCE) for part in wish.parts
            ), _AND_PRECEDENCE
        case Any():
            return " OR ".join(_below(part, _AND_PRECEDENCE) for part in wish.parts), _OR_PRECEDENCE


def _below(wish: Wish, tightness: int) -> str:
    text, own = _print(wish)
    # An OR of ANDs reads better with parentheses, though it needs none.
    return (
        f"({text})"
        if own < tightness or (own == _AND_PRECEDENCE and tightness == _AND_PRECEDENCE)
        else text
    )
