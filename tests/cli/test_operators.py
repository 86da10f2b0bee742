"""Operators from the shell: named by module, with bindings, schedules and faults."""

from __future__ import annotations

import json

import pytest

from tests.cli.shell import json_lines, run, run_process
from tests.schedules import SCHEDULES, use_schedule

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
def test_bindings_of_each_match(index, schedule, monkeypatch):
    use_schedule(monkeypatch, schedule)
    rows = json_lines(match(index, "--bindings").stdout)
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


def test_faults_are_told(index):
    result = match(index, stdin='{"kind": "photo"}\n')
    assert json_lines(result.stdout) == [{"event": 1, "matches": ["photo"]}]
    assert "mobs(?) is undefined for 1 event (raised: KeyError: 'sizes')" in result.stderr


def test_a_module_that_is_not_there(index):
    result = run("match", index, "--operators", "no_such_module", stdin=LINES)
    assert result.exit_code == 1
    assert '"no_such_module" cannot be imported' in result.stderr


# ── what operators are given ────────────────────────────────────────────────────────────────

SPATIAL = "tamis.operators.spatial"
PLACES = [(40.8448, -73.8648), (40.7580, -73.9855), (40, -73)]  # the Bronx, Manhattan, the sea
EVENT_FILES = {
    "jsonl": "".join(f'{{"lat": {lat}, "lon": {lon}}}\n' for lat, lon in PLACES),
    "csv": "lat,lon\n" + "".join(f"{lat},{lon}\n" for lat, lon in PLACES),
}


@pytest.mark.parametrize("file_format", EVENT_FILES)
def test_places_from_json_and_csv(tmp_path, file_format):
    rows = [{"id": "in", "expression": "loc_in('Bronx')"},
            {"id": "off", "expression": "loc_in('Bronx') = FALSE"},
            {"id": "far", "expression": "distance_from('Bronx', ?m) AND ?m > 50000"},
            {"id": "typo", "expression": "loc_in('Bornx')"}]  # fmt: skip
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = tmp_path / "index"
    built = run_process("build", tmp_path / "s.jsonl", "-o", index, "--operators", SPATIAL)
    assert b'there is no region "Bornx"' in built.stderr
    path = tmp_path / f"events.{file_format}"
    path.write_text(EVENT_FILES[file_format])
    result = run_process("match", index, path, "--operators", SPATIAL)
    found = [sorted(row["matches"]) for row in json_lines(result.stdout.decode())]
    assert found == [["in"], ["off"], ["far", "off"]]
    assert b"undefined" not in result.stderr


def test_eval_and_explain_tell_why_a_call_has_no_answer(index):
    result = run("eval", "mobs(?n)", "--event", "{}", "--operators", MODULE)
    assert "undefined" in result.stdout
    assert "event 1: mobs(?) is undefined: KeyError: 'sizes'" in result.stderr
    shown = run("eval", "mobs(?n)", "--event", "{}", "--operators", MODULE, "--output", "json")
    assert json_lines(shown.stdout)[0]["failed_calls"] == {"mobs(?)": "KeyError: 'sizes'"}
    explained = run("explain", index, "mob", "--event", "{}", "--operators", MODULE)
    assert "no answer: KeyError: 'sizes'" in explained.stdout


def test_hints_are_for_the_shell(index):
    result = run_process("match", index, stdin=LINES.encode())
    assert result.returncode == 1
    assert b"name the module that registers them: --operators MODULE" in result.stderr
    named = run("match", index, "--operators", "no_such_place.py", stdin=LINES)
    assert "name the module, not its file: no_such_place" in named.stderr


def test_stats_do_not_take_operators_for_always_true(index):
    shown = json_lines(run("stats", index, "--output", "json").stdout)[0]
    assert shown["always_true"]["count"] == 0
    assert shown["with_operators"] == 3
    assert "3 of them are decided by operators" in run("stats", index).stdout


def test_values_that_operators_cannot_read_are_told(tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps({"id": "in", "expression": "loc_in('Bronx')"}))
    index = tmp_path / "index"
    run_process("build", tmp_path / "s.jsonl", "-o", index, "--operators", SPATIAL)
    (tmp_path / "events.csv").write_text("lat,lon\n40.8448,-73.8648\nhere,-73.8\n")
    result = run_process("match", index, tmp_path / "events.csv", "--operators", SPATIAL)
    assert [row["matches"] for row in json_lines(result.stdout.decode())] == [["in"], []]
    assert (
        b"1 value was treated as missing: lat, event 2: 'here' is not of type double"
        in result.stderr
    )
