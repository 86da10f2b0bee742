"""Operators from the shell: named by module, with bindings, schedules and faults."""

from __future__ import annotations

import json

import pytest

from tamis.cli import match as match_module
from tamis.match.operators import SCHEDULES
from tests.cli.shell import json_lines, run

MODULE = "tests.cli.crowds"
SUBSCRIPTIONS = {
    "mob": "mobs(?people) AND ?people > 3",
    "lone": "mobs(?people) AND ?people = 1 AND kind = 'photo'",
    "photo": "kind = 'photo'",
    "share": "share_of(?share)",
}
EVENTS = [
    {"kind": "photo", "sizes": [2, 7, 5]},
    {"kind": "film", "sizes": [1]},
    {"kind": "photo", "sizes": [1], "share": "nan"},
]
LINES = "".join(json.dumps(event) + "\n" for event in EVENTS)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    rows = [{"id": name, "expression": text} for name, text in SUBSCRIPTIONS.items()]
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    built = run("build", folder / "s.jsonl", "-o", folder / "index", "--operators", MODULE)
    assert built.exit_code == 0, built.output
    return folder / "index"


def match(index, *arguments, stdin=LINES):
    result = run("match", index, "--operators", MODULE, *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bindings_of_each_match(index, schedule):
    rows = json_lines(match(index, "--bindings", "--schedule", schedule).stdout)
    assert [sorted(row["matches"]) for row in rows] == [
        ["mob", "photo"],
        [],
        ["lone", "photo", "share"],
    ]
    assert [row["bindings"] for row in rows] == [
        {"mob": {"people": 5}},
        {},
        {"lone": {"people": 1}, "share": {"share": "NaN"}},
    ]


def test_every_output_has_bindings(index):
    pairs = json_lines(match(index, "--bindings", "--output", "pairs").stdout)
    assert {"event": 1, "subscription_id": "mob", "bindings": {"people": 5}} in pairs
    assert {"event": 1, "subscription_id": "photo", "bindings": {}} in pairs
    lines = match(index, "--bindings", "--output", "tsv").stdout.splitlines()
    assert '1\tmob\t{"people": 5}' in lines
    table = match(index, "--bindings", "--output", "table").stdout
    assert 'mob {"people": 5}' in table


def test_only_matches_and_subsets_with_bindings(index):
    result = match(index, "--bindings", "--only-matches", "--subset", "mob")
    assert json_lines(result.stdout) == [
        {"event": 1, "matches": ["mob"], "bindings": {"mob": {"people": 5}}}
    ]


def test_bindings_are_not_counted(index):
    result = run("match", index, "--operators", MODULE, "--bindings", "--counts", "event")
    assert result.exit_code == 2
    assert "--counts" in result.stderr


def test_the_shell_knows_all_schedules(index):
    assert match_module.SCHEDULES == SCHEDULES
    result = run("match", index, "--operators", MODULE, "--schedule", "fastest")
    assert result.exit_code == 2
    assert "sub_order" in result.stderr


def test_faults_are_told(index):
    result = match(index, stdin='{"kind": "photo"}\n')
    assert json_lines(result.stdout) == [{"event": 1, "matches": ["photo"]}]
    assert "mobs(?v1) is undefined for 1 event (raised: KeyError: 'sizes')" in result.stderr


def test_a_module_that_is_not_there(index):
    result = run("match", index, "--operators", "no_such_module", stdin=LINES)
    assert result.exit_code == 1
    assert '"no_such_module" cannot be imported' in result.stderr
