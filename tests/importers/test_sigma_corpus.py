"""The rules and events that others wrote: everything is imported, and the answers are those of a
plain evaluator."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

import tamis
from tamis.importers import Imported, Settings, import_rules
from tamis.importers.learning import learn_types
from tamis.importers.sigma.reading import read_rules
from tamis.importers.sources import read_files
from tests.importers.corpora import (
    RULES,
    flatten,
    needs_events,
    needs_rules,
    needs_truth,
    read_archives,
    read_truth,
    rule_files,
)
from tests.importers.sigma_evaluator import PlainRules

pytestmark = [
    needs_rules,
    # Most fields of all rules are in no event of a sample.
    pytest.mark.filterwarnings("ignore::tamis.errors.TamisWarning"),
]

# Of 1,000 rules.
MOST_REFUSED = 5
AT_ONCE = 20_000  # events, which bounds the memory


@cache
def import_all() -> Imported:
    return import_rules("sigma", [RULES])


def build(imported: Imported) -> tamis.Index:
    index = tamis.build([rule.to_dict() for rule in imported.accepted], imported.schema)
    assert not index.rejects
    return index


def refusals(imported: Imported) -> list[Any]:
    assert all(rule.error.message for rule in imported.refused)
    return imported.refused


def test_a_sample_is_imported():
    imported = import_rules("sigma", rule_files()[::12])
    assert len(imported.rules) == len(rule_files()[::12])
    assert 1000 * len(refusals(imported)) <= 10 * len(imported.rules)


@pytest.mark.slow
def test_all_rules_are_imported():
    imported = import_all()
    assert len(imported.rules) == 3754
    refused = refusals(imported)
    assert 1000 * len(refused) <= MOST_REFUSED * len(imported.rules)
    assert {rule.error.code for rule in refused} <= {"not-expressible"}
    # More than four thousand hashes of drivers, as lists of patterns.
    assert max(len(rule.to_dict()["expression"]) for rule in imported.accepted) > 200_000


@needs_truth
def test_every_event_of_the_regression_data_fires_its_rule():
    truth = list(read_truth())
    assert len(truth) == 192
    wanted = {own.rule_id for own in truth}
    files = [path for path in rule_files() if is_wanted(path.read_text(encoding="utf-8"), wanted)]
    types = learn_types(event for own in truth for event in own.events)
    imported = import_rules("sigma", files, Settings(types, layout="evtx"))
    index = build(imported)
    sigma = {own.rule.rule_id: own.sigma for own in read_rules(read_files(files, ()))}
    for own in truth:
        plain = PlainRules({own.rule_id: sigma[own.rule_id]})
        fired = [own.rule_id in index.match(event) for event in own.events]
        assert sum(fired) >= own.n_matches, own.file
        assert fired == list(map(bool, plain.fired(list(map(flatten, own.events))))), own.file


def is_wanted(text: str, wanted: set[str]) -> bool:
    return any(line.removeprefix("id: ").strip() in wanted for line in text.split("\n"))


def compare(imported: Imported, events: list[dict[str, Any]]) -> None:
    """Compare the index with the plain evaluator, event by event."""
    files = read_files([rule.place.rpartition(":")[0] for rule in imported.accepted], ())
    plain = PlainRules({own.rule.rule_id: own.sigma for own in read_rules(files)})
    index = build(imported)
    n_fired = 0
    for start in range(0, len(events), AT_ONCE):
        batch = events[start : start + AT_ONCE]
        found = index.match_lists(batch).to_pylist()
        for event, fired, wanted in zip(batch, found, plain.fired(batch), strict=True):
            assert set(fired) == wanted, json.dumps(event)
            n_fired += len(fired)
    assert n_fired > 0


@needs_events
def test_sampled_events_fire_what_a_plain_evaluator_says():
    """Few rules and few events of each archive."""
    imported = import_rules("sigma", rule_files()[::5])
    events = [event for archive in read_archives() for event in archive[:: len(archive) // 8 + 1]]
    compare(imported, events)


@pytest.mark.slow
@needs_events
def test_all_rules_fire_what_a_plain_evaluator_says():
    """All rules and all events. Those that differ only in what no rule tests are compared once."""
    imported = import_all()
    fields = {path[0] for path in imported.schema} - {"TimeCreated"}
    distinct: dict[bytes, dict[str, Any]] = {}
    for archive in read_archives():
        for event in archive:
            tested = json.dumps({name: own for name, own in event.items() if name in fields})
            distinct.setdefault(sha256(tested.encode()).digest(), event)
    compare(imported, list(distinct.values()))
