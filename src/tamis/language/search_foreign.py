"""Syntax of other search boxes that this one does not support.

Read as words, it would search for something else than its author means. Each has a pattern, an
error and a hint.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_AS_IT_IS: Final = "in quotes it is searched for literally"
_NEAR: Final = "this form of proximity is not supported"
_WRITE_NEAR: Final = 'write back NEAR/3 pain, or "back pain"~3: at most 3 words between'
_RANGES: Final = "ranges and comparisons are not supported"
_A_CONDITION: Final = f"join the expression with a condition: … AND year >= 1990; {_AS_IT_IS}"
# The fields of Ovid, written after a word: asthma.ti,ab.
_FIELDS: Final = "|".join(
    "ab ax au dm dv ed fs fx hw in jn jw kf kw lg mf mp nm ot pt px rn rx sh so ti tw yr".split()
)


class Foreign(NamedTuple):
    """One kind of syntax that is not supported."""

    looks: re.Pattern[str]
    message: str
    hint: str


# N3 and W3 may also be words: they are operators only before another word.
BEFORE: Final = Foreign(
    re.compile(r"[NW](?:[1-9]|1\d|20)$|/(?:\d+|[sp])$"), _NEAR, f"{_WRITE_NEAR}; {_AS_IT_IS}"
)
RANGE: Final = Foreign(re.compile(r"[\[{]\S+\s+TO\s+\S+[\]}]"), _RANGES, _A_CONDITION)
# A phrase in single quotes; an apostrophe inside a word does not close it.
SINGLE_QUOTED: Final = re.compile(
    r"(?:[‘‚]|'(?=\w))(?:((?:[^'’‘\"]|['’](?=\w))*)['’‘](?!\w)|([^\s()\"]*))"
)
FOREIGN: Final = (
    Foreign(
        re.compile(r"/[^/]+/[()]?$"),
        "regular expressions are not supported",
        f"write the words, or wildcards: wom?n, child*; {_AS_IT_IS}",
    ),
    Foreign(
        re.compile(r"[^\W\d]{3,}\$"),
        "$ is not a wildcard",
        f"write child*: * stands for any characters; {_AS_IT_IS}",
    ),
    Foreign(
        # Two letters before it: R#D and C#4 are names.
        re.compile(r"(?:\w+-)*[^\W\d_]{2,}(?:#+[^\W\d_]+)+[*?]?\W?$"),
        "# is not a wildcard",
        f"write wom?n: ? stands for one character; {_AS_IT_IS}",
    ),
    Foreign(
        re.compile(r'"[*?]'),
        "a wildcard is a part of a word",
        'write it inside the quotes: "back pain*"',
    ),
    Foreign(
        re.compile(
            r"AROUND\($|(?:O?NEAR|ADJ|(?i:(?:o?near|adj)\d+|o?near/\S*|pre/\d+|within/\d+|[nw]/\d+))$|\"~"
        ),
        _NEAR,
        _WRITE_NEAR,
    ),
    Foreign(
        re.compile(r".+~[\d.]*$"),
        "fuzzy words are not supported",
        "write the words out, as in (colour OR color), or with wildcards: colo*r",
    ),
    Foreign(re.compile(r".*\d\.\.|\.\.\d|.*[<>]=?-?\d|[<>]=?$"), _RANGES, _A_CONDITION),
    Foreign(
        re.compile(r".*[,;][-+](?:\w|$)"),
        "a dash inside a word excludes nothing",
        f"write a blank before it: oil -gas; {_AS_IT_IS}",
    ),
    Foreign(
        re.compile(r"&+\W?$"),
        "not an operator",
        f'write AND, or nothing; for a name such as "R & D" a phrase: {_AS_IT_IS}',
    ),
    Foreign(
        re.compile(r"!+\w|[-+]{2,}\w|(?:AND|BUT)NOT$"),
        "not an operator",
        "write -word, or NOT word",
    ),
    Foreign(re.compile(r"[%~]\w"), "not an operator", f"leave it out; {_AS_IT_IS}"),
    Foreign(
        re.compile(r".+\[[a-z]|\[(?:tiab|ti|ab|mesh|mh|tw|majr|title|pt|au|all)\b", re.IGNORECASE),
        "tags of fields are not supported",
        "write the field before the word, as in title:asthma",
    ),
    Foreign(
        re.compile(
            rf'.*\.(?:{_FIELDS})(?:,(?:{_FIELDS}))*\.\W?$|[A-Za-z_]\w+="?\(?', re.IGNORECASE
        ),
        "fields in this form are not supported",
        f"write the field before the word, as in title:asthma; {_AS_IT_IS}",
    ),
    Foreign(
        re.compile(r"(?!\w+://)[^/].*/[()]?$"),
        "subject headings are not supported",
        f"write the words without the slash, and without exp; {_AS_IT_IS}",
    ),
    Foreign(re.compile(r".*\w\^\d"), "weights are not supported", "leave them out"),
)
# A wildcard in a phrase that is not a part of a word.
LONE: Final = Foreign(
    re.compile(r'.*["\s][*?]+["\s]'),
    "a wildcard is a part of a word",
    'for a word between two others write "oil gas"~1',
)
# A word after the name of something that is not searched.
_FIELD: Final = re.compile(r"([A-Za-z_][\w.]*):(?!//).")


def find_field(text: str, names: list[str]) -> Foreign | None:
    """The error of a field that the search does not have."""
    found = _FIELD.match(text)
    if found is None:
        return None
    allowed = f"the fields are {', '.join(names)}" if names else "no attribute has a plain name"
    return Foreign(_FIELD, f"{found[1]} is not a field of this search", f"{allowed}; {_AS_IT_IS}")
