"""Cases of importers: a rule, the expression that it becomes, and events.

schema      LogonType BIGINT         (optional)
rule        …                        in the format of the file
expression  LogonType = 3
hit         {"LogonType": 3}
miss        {}
refused     not-expressible          instead of the expression: the code of the error
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "cases"
KEYWORDS = ("schema", "rule", "expression", "hit", "miss", "refused")


class ImportCase(NamedTuple):
    """One rule and what it should become."""

    place: str
    schema: str | None
    rule: str
    expression: str | None
    refused: str | None
    hits: tuple[dict[str, Any], ...]
    misses: tuple[dict[str, Any], ...]


def read_cases(name: str) -> list[ImportCase]:
    """The cases of a file."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    cases: list[ImportCase] = []
    lines: list[tuple[int, str, str]] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip() and not line.startswith("#"):
            keyword, _, rest = line.partition(" ")
            assert keyword in KEYWORDS, f"{name}:{number}"
            lines.append((number, keyword, rest.strip()))
        elif lines:
            cases.append(_read_case(name, lines))
            lines = []
    return cases


def _read_case(name: str, lines: list[tuple[int, str, str]]) -> ImportCase:
    def one(wanted: str) -> str | None:
        found = [rest for _, keyword, rest in lines if keyword == wanted]
        assert len(found) <= 1, f"{name}:{lines[0][0]}: {wanted} twice"
        return found[0] if found else None

    def events(wanted: str) -> tuple[dict[str, Any], ...]:
        return tuple(json.loads(rest) for _, keyword, rest in lines if keyword == wanted)

    rule = one("rule")
    assert rule is not None, f"{name}:{lines[0][0]}"
    place = f"{name}:{lines[0][0]}"
    return ImportCase(
        place, one("schema"), rule, one("expression"), one("refused"), events("hit"), events("miss")
    )
