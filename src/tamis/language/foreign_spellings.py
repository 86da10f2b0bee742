"""Hints for spellings of other languages: Sigma, SQL, search boxes."""

from __future__ import annotations

import re
from typing import Final

from tamis.language.comparators import EQUALITIES, Comparator
from tamis.language.foreign_values import hint_at_clock, hint_at_unsupported
from tamis.language.value_functions import FUNCTIONS

_NAME: Final = r"`(?:[^`]|``)+`|[A-Za-z_][\w.]*"
_STRING: Final = r"[rR]'[^']*'|'(?:[^'\\]|\\.|'')*'|\"[^\"]*\""
# A name, or a name and NOT, at the end of the parsed text.
_BEFORE: Final = re.compile(rf"({_NAME})[ \t]*(?:(?<=[ \t])(not)[ \t]*)?\Z", re.IGNORECASE)
# As in Sigma's `Image|contains: x`: the attribute, then the kind of test.
_MODIFIER: Final = re.compile(r"\|[ \t]*([A-Za-z_]+)")
_ARGUMENT: Final = re.compile(rf"[ \t]*\([ \t]*({_NAME})[ \t]*\)")
_AFTER: Final = re.compile(rf"[ \t]+({_NAME})")
_NEGATED: Final = re.compile(r"\bnot[ \t]+\Z", re.IGNORECASE)
# After EXISTS; attributes may have these names too.
SUBQUERY: Final = r"\s*\([\s(]*(?:select|with|values)(?=\s+[\w*'(]|\()"
_SUBQUERY: Final = re.compile(SUBQUERY, re.IGNORECASE)
_QUOTED: Final = re.compile(r'"([^"]{0,60})"')
_CONSTANT: Final = re.compile(rf"[ \t]*(?:\|[ \t]*\w+[ \t]*)*:?[ \t]*({_STRING})")
_ANY_CONSTANT: Final = re.compile(rf"[ \t]*({_STRING}|[+-]?\d+(?:\.\d+)?)")
_LISTED: Final = re.compile(r"\[([^\[\]]{0,60})\]")
_WORDS: Final = re.compile(r":[ \t]*([\w.*]+)")
_WEIGHT: Final = re.compile(r",\s*\d+\s*\Z")
_LOOK_BACK: Final = 200  # characters before a weight in which the call is looked for
_CAST: Final = re.compile(r"::[ \t]*(\w+)")
_POSITION: Final = re.compile(r"\[[ \t]*(-?\d{1,9})[ \t]*\]")
_NUMBER: Final = re.compile(r"[+-]?[\d.]+")
_PATTERN: Final = re.compile(rf"[ \t]*(not[ \t]+)?(i?like|rlike)[ \t]*({_STRING})", re.IGNORECASE)
_MEMBERS: Final = re.compile(
    rf"\s*(not\s+)?in\s*\(\s*((?:{_STRING})(?:\s*,\s*(?:{_STRING}))*)\s*\)", re.IGNORECASE
)
_SECOND: Final = re.compile(rf"\s*,\s*({_NAME}|{_STRING})\s*\)")
_RIGHT: Final = re.compile(rf"\s*(not\s+)?(in|i?like|rlike)\s*\(?\s*({_NAME})", re.IGNORECASE)
_REGEX: Final = re.compile(r"\.[*+?]|\A\^|\$\Z|\\|\[.+\]|\(.*\)|\w\|\w")
_CONNECTIVES: Final = ("AND", "OR", "NOT", "XOR")
_KEYWORDS: Final = (*_CONNECTIVES, "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "IS", "ARRAY")
_TESTS: Final = (
    *("contains", "startswith", "endswith"),
    *("matches", "matches_any", "matches_phrase"),
)
_AROUND: Final = {"contains": "%{}%", "startswith": "{}%", "endswith": "%{}"}
_WRITTEN: Final = {
    **{name: f"{name}({{0}}, {{1}})" for name in _TESTS},
    "includes": "contains({0}, {1})",
    "starts_with": "startswith({0}, {1})",
    "ends_with": "endswith({0}, {1})",
    "re": "{0} RLIKE {1}",
    "regex": "{0} RLIKE {1}",
    "regexp": "{0} RLIKE {1}",
    "cased": "{0} = {1}",
    "in_network": "in_network({0}, {1})",
    "cidr": "in_network({0}, {1})",
}
# Comparisons by a word, as templates and search engines have them.
_SIGNS: Final = {
    "eq": "=",
    "equals": "=",
    "ne": "<>",
    "neq": "<>",
    "gt": ">",
    "ge": ">=",
    "gte": ">=",
    "lt": "<",
    "le": "<=",
    "lte": "<=",
}


def hint_at_double_quote(text: str, position: int) -> str:
    """The string in the syntax of this language."""
    found = _QUOTED.match(text, position)
    if found is None:
        return "write strings in quotes: 'text'"
    inner = found[1].replace("'", "''")
    return f"write strings in single quotes: '{inner}'"


def hint_at_bar(text: str, position: int) -> str:
    """The test, if one of Sigma's modifiers follows the bar."""
    modifier = _MODIFIER.match(text, position)
    known = modifier and _written(text, position, modifier[1], modifier.end())
    if known:
        return f"write {known}"
    joins = text.startswith("||", position)
    return "write OR; to join texts, write concat(a, b)" if joins else "write OR"


def hint_at_infix(text: str, start: int, end: int) -> str | None:
    """The test, if a word for one follows an attribute."""
    word = text[start:end]
    name = _name_before(text, start)
    if name is not None and (sign := _SIGNS.get(word.lower())):
        constant = _ANY_CONSTANT.match(text, end)
        return f"write {name} {sign} {_single_quoted(constant[1]) if constant else '…'}"
    known = _written(text, start, word, end)
    return f"write {known}" if known else None


def hint_at_colon(text: str, position: int) -> str | None:
    """The comparison, if a name comes before the colon."""
    before = text[max(0, position - _LOOK_BACK) : position].lower()
    if "at_least" in before and _WEIGHT.search(before):
        return "a condition that is listed twice counts twice: at_least(3, p, p, q)"
    name = _name_before(text, position)
    if name is None:
        return None
    if cast := _CAST.match(text, position):
        return f"write cast({name} AS {cast[1].upper()})"
    if constant := _CONSTANT.match(text, position):
        return f"write {name} = {_single_quoted(constant[1])}"
    word = _WORDS.match(text, position)
    if word is None:
        return f"write {name} = …"
    if _NUMBER.fullmatch(word[1]):
        return f"write {name} = {word[1]}"
    return f"write {name} = '{word[1]}', or matches({name}, '{word[1]}') to look for words"


def hint_at_bracket(text: str, position: int) -> str:
    """The list in the syntax of this language, or the test of a member."""
    found = _LISTED.match(text, position)
    members = found[1].replace('"', "'") if found else "…"
    name = _name_before(text, position)
    if name is None or name.upper() in _KEYWORDS:
        return f"a list is written in parentheses: ({members})"
    if re.fullmatch(r"'\w+'", members):
        return f"an attribute inside another is written {name}.{members[1:-1]}"
    if position_of := _POSITION.match(text, position):
        # In brackets, positions begin with 0.
        at = int(position_of[1])
        return f"write element_at({name}, {at + (at >= 0)})"
    return (
        f"an element at a constant position is written element_at({name}, 1); to test whether an "
        f"array has an element, write array_contains({name}, …)"
    )


def hint_at_tilde(text: str, position: int) -> str:
    """The test by a regular expression."""
    name = _name_before(text, position - text.startswith("=~", position - 1))
    constant = _CONSTANT.match(text, position + 1)
    value = _single_quoted(constant[1]) if constant else "'…'"
    return f"write {name or 'name'} RLIKE {value}"


def hint_at_exists(text: str, start: int, end: int) -> str:
    """The test for presence."""
    if _SUBQUERY.match(text, end):
        return "subqueries are not supported: give the events the attribute that you look up"
    found = _ARGUMENT.match(text, end)
    name = found[1] if found else _name_before(text, start) or _name_after(text, end)
    if name is None:
        return f"an attribute of that name is written `{text[start:end]}`"
    if _NEGATED.search(text, 0, start):
        return f"to test that an event does not have it, write {name} IS NULL"
    return f"to test that an event has it, write {name} IS NOT NULL"


def hint_at_comparison(name: str, arguments: str, operator: Comparator, other: str) -> str:
    """The replacement for a function of an attribute that is compared with `other`."""
    if name.lower() in _FOLDING and operator in EQUALITIES and _is_plain(other):
        test = "ILIKE" if operator is Comparator.EQUAL else "NOT ILIKE"
        return f"{_ANY_CASE}, write {arguments} {test} {_as_pattern(other)}"
    return hint_at_function(name, arguments) or _NO_FUNCTIONS


def hint_at_tested(name: str, arguments: str, tested_by: str, text: str, end: int) -> str:
    """The replacement for a function of an attribute, given the test after it."""
    written = _any_case(arguments, tested_by, text, end) if name.lower() in _FOLDING else None
    if written is not None:
        return written
    return hint_at_function(name, arguments) or _NO_FUNCTIONS


def _any_case(arguments: str, tested_by: str, text: str, end: int) -> str | None:
    """The test that follows, as one that ignores case."""
    function = tested_by.removesuffix("()")
    if function.startswith("matches"):
        return f"words are found regardless of case: write {function}({arguments}, …)"
    if function in _AROUND and (second := _SECOND.match(text, end)) and _is_plain(second[1]):
        around = _AROUND[function].format(_as_pattern(second[1])[1:-1])
        return f"{_ANY_CASE}, write {arguments} ILIKE '{around}'"
    if pattern := _PATTERN.match(text, end):
        value = _single_quoted(pattern[3])
        test = "ILIKE"
        if pattern[2].lower() == "rlike":
            test, value = "RLIKE", value.replace("'", "'(?i)", 1)
        return f"{_ANY_CASE}, write {arguments} {'NOT ' if pattern[1] else ''}{test} {value}"
    if members := _MEMBERS.match(text, end):
        values = re.findall(_STRING, members[2])
        if all(map(_is_plain, values)):
            return f"{_ANY_CASE}, write {_each_in_any_case(arguments, values, members[1])}"
    return None


def _each_in_any_case(name: str, values: list[str], negated: str | None) -> str:
    test, word = ("NOT ILIKE", " AND ") if negated else ("ILIKE", " OR ")
    tests = [f"{name} {test} {_as_pattern(value)}" for value in values[:_SHOWN]]
    joined = word.join([*tests, *["…"] * (len(values) > _SHOWN)])
    return f"({joined})" if len(values) > 1 else joined


def _is_plain(constant: str) -> bool:
    return constant[0] == "'" and constant[-1] == "'" and "\\" not in constant


def _as_pattern(constant: str) -> str:
    """A pattern in which every character is literal."""
    return re.sub(r"([%_])", r"\\\1", constant)


def hint_at_constant(constant: str, tested_by: str, text: str, end: int) -> str | None:
    """The test with the attribute first, if it was written with the constant first."""
    if tested_by.endswith("()"):
        found = _SECOND.match(text, end)
        if found is None or re.fullmatch(_STRING, found[1]) or tested_by == "matches_at_least()":
            return None
        return f"the attribute comes first: write {tested_by[:-1]}{found[1]}, {constant})"
    found = _RIGHT.match(text, end)
    if found is None:
        return None
    negation = "NOT " if found[1] else ""
    if found[2].upper() == "IN":
        return f"to look into an array, write {negation}array_contains({found[3]}, {constant})"
    return f"the attribute comes first: write {found[3]} {negation}{found[2].upper()} {constant}"


def hint_at_function(name: str, arguments: str) -> str | None:
    """The replacement for a function of other languages."""
    folded = name.lower().replace("_", "")
    if hint := hint_at_clock(name) or hint_at_unsupported(name):
        return hint
    if folded in _FOLDING:
        return f"{_ANY_CASE}, write {arguments} ILIKE '…'"
    if folded in ("isnull", "isempty", "missing"):
        return f"write {arguments} IS NULL"
    if folded in ("isnotnull", "notnull", "has", "present"):
        return f"write {arguments} IS NOT NULL"
    return None


def hint_at_network(name: str, attribute: str, networks: list[str]) -> str | None:
    """The replacement for a function of other languages that tests networks."""
    if name.lower().replace("_", "") not in _NETWORK_TESTS:
        return None
    return (
        f"write in_network({', '.join([attribute, *networks] if networks else [attribute, '…'])})"
    )


_SHOWN: Final = 3  # members of a list
_NETWORK_TESTS: Final = (
    *("cidr", "cidrmatch", "incidr", "insubnet", "ipinsubnet", "ipinrange", "inetcontains"),
    *("ipv4isinrange", "ipv6isinrange", "ipv4isinanyrange", "isinnet", "innet", "netcontains"),
)
_ANY_CASE: Final = "to compare in any case"
_FOLDING: Final = ("tolower", "toupper", "casefold")
_NO_FUNCTIONS: Final = f"functions of attributes: {', '.join(filter(str.isidentifier, FUNCTIONS))}"


def _written(text: str, start: int, word: str, end: int) -> str | None:
    """The test of the name before `start` by the text after `end`."""
    form = _WRITTEN.get(word.lower())
    found = _BEFORE.search(text, 0, start)
    if form is None or found is None or found[1].upper() in _CONNECTIVES:
        return None
    constant = _CONSTANT.match(text, end)
    value = _single_quoted(constant[1]) if constant else "'…'"
    if word.lower() == "matches" and _REGEX.search(value.strip("rR'")):
        form = _WRITTEN["regex"]
    return ("NOT " if found[2] else "") + form.format(found[1], value)


def _name_before(text: str, position: int) -> str | None:
    found = _BEFORE.search(text, 0, position)
    return None if found is None or found[1].upper() in _CONNECTIVES else found[1]


def _name_after(text: str, position: int) -> str | None:
    found = _AFTER.match(text, position)
    return None if found is None or found[1].upper() in _KEYWORDS else found[1]


def _single_quoted(constant: str) -> str:
    return "'" + constant[1:-1].replace("'", "''") + "'" if constant[0] == '"' else constant
