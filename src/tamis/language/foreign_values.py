"""Hints for values that are written as in other languages: `*x*`, `$10`, `1,000`, `10.0.0.0/8`,
`now()`.
"""

from __future__ import annotations

import re
from typing import Final

# Each run of characters is tried once: a text may be long.
_NAME: Final = r"`[^`]+`|(?<![\w.])[A-Za-z_][\w.]*"
_ADDRESS: Final = r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?"
# A value without quotes that has a wildcard: Image=*\cmd.exe.
_UNQUOTED: Final = r"""[^\s()'",=<>]*"""
_WILDCARD: Final = re.compile(rf"({_NAME})\s*(==?|!=|<>)\s*({_UNQUOTED}\*{_UNQUOTED})")
_GROUPED: Final = re.compile(r"(?<![\w.,])\d{1,3}((?:,\d{3})+)(?:\.\d+)?(?![\w,])")
_AMOUNT: Final = re.compile(r"\D[ \t]*(\d[\d,]*(?:\.\d+)?)")
_TESTED: Final = re.compile(
    rf"({_NAME})\s*(==?|!=|<>|\bnot\s+in\b|\bin\b)\s*\(?\s*\Z", re.IGNORECASE
)
_LOOK_BACK: Final = 200  # characters before a value in which its test is looked for
CURRENCIES: Final = "$€£¥"
_CLOCKS: Final = frozenset(
    "now today getdate sysdate utcnow currentdate currenttime currenttimestamp".split()
)
_NO_CLOCK: Final = (
    "an expression has no clock: write the moment, as in ts > TIMESTAMP '2030-01-31 12:00:00', or "
    "compare with an attribute of the event; valid_from and valid_until limit a subscription"
)
NO_WHERE: Final = "leave out WHERE: an expression is the condition alone"


def hint_at_clock(name: str) -> str | None:
    """The replacement for a function that returns the current time."""
    return _NO_CLOCK if name.lower().replace("_", "") in _CLOCKS else None


def hint_at_unsupported(name: str) -> str | None:
    """What to write instead of a function of SQL that does not exist here."""
    instead = _INSTEAD.get(name.lower().replace("_", ""))
    return None if instead is None else f"write {instead}"


# By the names of functions of SQL and of Spark, without underscores.
_INSTEAD: Final = {
    **dict.fromkeys(("ifnull", "nvl"), "coalesce(a, 0)"),
    **dict.fromkeys(
        ("if", "iff", "iif", "nvl2", "decode"),
        "(condition AND test) OR (NOT condition AND other_test)",
    ),
    "greatest": "a test of each value: greatest(a, b) > 5 is a > 5 OR b > 5",
    "least": "a test of each value: least(a, b) > 5 is a > 5 AND b > 5",
    **dict.fromkeys(("todate", "date"), "cast(a AS DATE); a date in an event is read as one"),
    **dict.fromkeys(
        ("totimestamp", "timestamp"), "cast(a AS TIMESTAMP); one in an event is read as one"
    ),
    **dict.fromkeys(("int", "bigint", "tonumber", "toint"), "cast(a AS BIGINT)"),
    **dict.fromkeys(("double", "float", "todouble"), "cast(a AS DOUBLE)"),
    **dict.fromkeys(("string", "str", "tostring", "tochar"), "cast(a AS STRING)"),
    **dict.fromkeys(
        ("dateadd", "datesub", "addmonths"), "date_diff(a, b) > 7: the days between two moments"
    ),
    **dict.fromkeys(("instr", "locate", "position", "charindex", "strpos"), "contains(a, 'text')"),
    **dict.fromkeys(("regexplike", "regexpmatches"), "a RLIKE 'regex'"),
    "left": "substring(a, 1, 3)",
    "right": "substring(a, -3)",
    **dict.fromkeys(("pow", "power", "square"), "a * a"),
}


def hint_at_wildcard(text: str, position: int) -> str | None:
    """The test for a value with wildcards that is written without quotes around this position."""
    for found in _WILDCARD.finditer(text):
        if found.start() <= position <= found.end():
            name, operator, value = found[1], found[2], found[3]
            if value == "*":
                return f"write {name} IS {'NOT ' * (operator not in _UNEQUAL)}NULL"
            return f"write {'NOT ' * (operator in _UNEQUAL)}{_test(name, value)}"
    return None


_UNEQUAL: Final = ("!=", "<>")


def _test(name: str, value: str) -> str:
    inner = value.strip("*")
    if not inner or "*" in inner:
        pattern = re.sub(r"([%_\\])", r"\\\1", value).replace("*", "%")
        return f"{name} LIKE {_quote(pattern)}"
    if value[0] != "*":
        return f"startswith({name}, {_quote(inner)})"
    return f"{'contains' if value[-1] == '*' else 'endswith'}({name}, {_quote(inner)})"


def _quote(value: str) -> str:
    return f"{'r' * (chr(92) in value)}'{value}'"


def hint_at_currency(text: str, position: int) -> str | None:
    """The number after a sign of a currency."""
    found = _AMOUNT.match(text, position)
    return None if found is None else f"write the number alone: {found[1].replace(',', '')}"


def hint_at_grouped(text: str, position: int) -> str | None:
    """The number with a comma at this position that only separates digits."""
    for found in _GROUPED.finditer(text):
        if found.start() < position < found.end():
            return f"a number has no commas between its digits: {found[0].replace(',', '')}"
    return None


def hint_at_address(text: str, position: int) -> str | None:
    """The test of an address or of networks that is written without quotes."""
    address = re.compile(_ADDRESS).match(text, position)
    tested = _TESTED.search(text, max(0, position - _LOOK_BACK), position)
    if address is None:
        return None
    if tested is None:
        return f"an address is written in quotes: '{address[0]}'"
    name, operator = tested[1], tested[2].lower().split()
    listed = re.compile(rf"{_ADDRESS}(?:\s*,\s*{_ADDRESS})*").match(text, position)
    assert listed is not None
    values = re.findall(_ADDRESS, listed[0])
    quoted = ", ".join(f"'{own}'" for own in values)
    negation = "NOT " * (operator[0] in ("not", *_UNEQUAL))
    if any("/" in own for own in values):
        return f"write {negation}in_network({name}, {quoted})"
    if operator[-1] == "in":
        return f"write {name} {negation}IN ({quoted})"
    return f"write {name} {'<>' if negation else '='} '{address[0]}'"
