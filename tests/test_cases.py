"""Data first: every case of `tests/cases` is answered by every engine.

A case is a block of lines, blocks apart by blank lines, comments with #:

    schema     level BIGINT              (optional; inferred from the query without it)
    missing    satisfies_negation        (optional)
    query      NOT level = 4
    hit        {"level": 5}              TRUE
    miss       {"level": 4}              not TRUE: false or undefined
    undefined  {}                        not TRUE, and undefined where an engine distinguishes them
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tamis.language import Schema, check, infer_schema, parse
from tamis.logic.evaluate import Missing, evaluate
from tests.match.engines import CASE_ENGINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.ast import Condition
    from tamis.logic.truth import Truth

FOLDER = Path(__file__).parent / "cases"
KEYWORDS = ("schema", "missing", "query", "hit", "miss", "undefined")


class Expectation(NamedTuple):
    """What one event is expected to give."""

    place: str  # file:line
    keyword: str  # hit, miss or undefined
    event: dict[str, Any]


class Case(NamedTuple):
    """One query and its events."""

    place: str
    query: str
    schema: Schema
    condition: Condition
    missing: Missing
    expectations: tuple[Expectation, ...]


# ── the engines ─────────────────────────────────────────────────────────────────────────────


def reference_evaluator(case: Case, events: Sequence[dict[str, Any]]) -> list[Truth]:
    return [evaluate(case.condition, event, case.missing) for event in events]


# Each states for every event whether the case's query is true; only the first distinguishes
# false from undefined.
ENGINES = (("reference evaluator", reference_evaluator), *CASE_ENGINES)


# ── the files ───────────────────────────────────────────────────────────────────────────────


def read_cases(path: Path) -> list[Case]:
    blocks: list[list[tuple[str, str, str]]] = [[]]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            blocks.append([])
        elif not line.startswith("#"):
            keyword, _, rest = line.partition(" ")
            blocks[-1].append((f"{path.name}:{number}", keyword, rest.strip()))
    return [read_case(block) for block in blocks if block]


def read_case(lines: list[tuple[str, str, str]]) -> Case:
    place = lines[0][0]
    assert all(keyword in KEYWORDS for _, keyword, _ in lines), f"{place}: one of {KEYWORDS}"
    settings = {keyword: rest for _, keyword, rest in lines if keyword in KEYWORDS[:3]}
    written = parse(settings["query"])
    schema = Schema.of(settings["schema"]) if "schema" in settings else infer_schema([written])
    expectations = tuple(
        Expectation(place, keyword, json.loads(rest))
        for place, keyword, rest in lines
        if keyword in KEYWORDS[3:]
    )
    assert expectations, f"{place}: a query without events"
    return Case(
        place,
        settings["query"],
        schema,
        check(written, schema),
        Missing(settings.get("missing", "undefined")),
        expectations,
    )


CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]


# ── the tests ───────────────────────────────────────────────────────────────────────────────


def test_there_are_cases():
    assert len(CASES) > 150
    assert sum(len(case.expectations) for case in CASES) > 600


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.place} {case.query}")
@pytest.mark.parametrize("engine", [pytest.param(answer, id=name) for name, answer in ENGINES])
# Some cases are about texts with blanks around them, or about values that are read from another
# kind; the reports about these are tested elsewhere.
@pytest.mark.filterwarnings("ignore:.* a blank before:tamis.TamisWarning")
@pytest.mark.filterwarnings("ignore:.* read from another kind:tamis.TamisWarning")
@pytest.mark.filterwarnings("ignore:.* count as arrays of one:tamis.TamisWarning")
def test_case(engine, case):
    answers = engine(case, [expectation.event for expectation in case.expectations])
    for expectation, answer in zip(case.expectations, answers, strict=True):
        is_hit = expectation.keyword == "hit"
        assert (answer is True) is is_hit, f"{expectation} got {answer}"


def test_undefined():
    for case in CASES:
        undefined = [line for line in case.expectations if line.keyword == "undefined"]
        answers = reference_evaluator(case, [line.event for line in undefined])
        assert answers == [None] * len(undefined), undefined
