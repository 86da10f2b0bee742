"""Every case of every format: the expression, and what it matches in both meanings of missing."""

from __future__ import annotations

import pytest

import tamis
from tamis.importers import IMPORTERS, Settings, import_rules
from tamis.language.schema import Schema
from tests.importers.cases import FOLDER, ImportCase, read_cases

SIGMA = "title: t\nlogsource: {{category: test}}\ndetection: {}\n"

CASES = [
    (path.stem, case) for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path.name)
]


def import_case(rule_format: str, case: ImportCase):
    schema = None if case.schema is None else Schema.of(case.schema)
    text = SIGMA.format(case.rule) if rule_format == "sigma" else case.rule
    (rule,) = (imported := import_rules(rule_format, [text.encode()], Settings(schema))).rules
    return rule, imported


def test_every_format_has_cases():
    assert {name for name, _ in CASES} == IMPORTERS.keys()


@pytest.mark.parametrize(
    ("rule_format", "case"), CASES, ids=[f"{case.place} {case.rule}" for _, case in CASES]
)
def test_case(rule_format, case):
    rule, imported = import_case(rule_format, case)
    if case.refused is not None:
        assert rule.error is not None, rule.expression
        assert rule.error.code == case.refused
        return
    assert rule.error is None, rule.error
    assert rule.expression == case.expression
    for missing in ("undefined", "satisfies_negation"):
        condition = tamis.parse(rule.expression, imported.schema)
        truths = [tamis.evaluate(condition, own, missing=missing) for own in case.hits]
        assert truths == [True] * len(case.hits), missing
        truths = [tamis.evaluate(condition, own, missing=missing) for own in case.misses]
        assert True not in truths, missing


def test_an_index_answers_all_cases():
    """All expressions that need no declared types, in one index."""
    chosen = [(name, case) for name, case in CASES if case.schema is None and not case.refused]
    for rule_format in IMPORTERS:
        rules = {case.place: case for name, case in chosen if name == rule_format}
        for place, case in rules.items():
            rule, imported = import_case(rule_format, case)
            index = tamis.build({place: rule.expression}, imported.schema)
            assert all(index.match(own) == [place] for own in case.hits)
            assert not any(index.match(own) for own in case.misses)
