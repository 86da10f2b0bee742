"""The plain evaluator, which judges the importer, on the cases of the importer."""

from __future__ import annotations

import pytest

from tamis.importers.sigma.reading import read_rules
from tests.importers.cases import read_cases
from tests.importers.sigma_evaluator import PlainRules
from tests.importers.test_cases import SIGMA

# What pySigma itself does not read or decide, and types that a schema declares.
LEFT_OUT = ("2 of", "sel-", "|expand")
CASES = [
    case
    for case in read_cases("sigma.txt")
    if not case.refused and not case.schema and not any(own in case.rule for own in LEFT_OUT)
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.place} {case.rule}" for case in CASES])
def test_evaluator_agrees_with_a_case(case):
    found = read_rules([("rule.yml", SIGMA.format(case.rule).encode())])
    plain = PlainRules({"rule": found.rules[0].sigma})
    assert plain.fired(case.hits) == [{"rule"}] * len(case.hits)
    assert plain.fired(case.misses) == [set()] * len(case.misses)
