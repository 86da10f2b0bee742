"""What is misspelt, missing or unused, as the shell reports it."""

from __future__ import annotations

import json

import pytest

from tests.cli.indexes import write_rows, write_subscriptions
from tests.cli.shell import json_lines, run

RULES = [(f"r{number}", f"age > {number} AND country = 'FR'") for number in range(20)]
TYPO = ("typo", "country = 'DE'\nAND (agee > 3 OR agee < 1)")


@pytest.fixture
def misspelt(tmp_path):
    return write_subscriptions(tmp_path / "s.jsonl", [*RULES, TYPO])


def test_check_shows_the_place_of_a_misspelt_attribute(misspelt):
    *problems, summary = json_lines(run("check", misspelt, "--output", "json").stdout)
    (problem,) = problems
    assert (problem["severity"], problem["code"]) == ("warning", "misspelt-attribute")
    assert (problem["subscription_id"], problem["file_line"]) == ("typo", 21)
    assert (problem["line"], problem["column"], problem["span"]) == (2, 6, [20, 24])
    assert problem["message"] == (
        "agee looks like age: 20 subscriptions use that one, and 1 this one"
    )
    assert summary["warnings"] == 1


@pytest.mark.parametrize(
    "options",
    [["--no-lint"], ["--schema", "age INT, agee INT, country STRING"]],
    ids=["no lint", "declared"],
)
def test_check_does_not_guess_where_it_is_not_asked_to(misspelt, options):
    (summary,) = json_lines(run("check", misspelt, "--output", "json", *options).stdout)
    assert summary["warnings"] == 0


def test_check_with_processes_finds_the_same(misspelt):
    alone, shared = (
        json_lines(run("check", misspelt, "--output", "json", "--processes", n).stdout)[0]
        for n in ("1", "2")
    )
    assert alone == shared


def test_build_notes_a_misspelt_attribute(misspelt, tmp_path):
    built = run("build", misspelt, "-o", tmp_path / "i")
    assert built.exit_code == 0
    assert built.stderr == (
        'note: an attribute looks misspelt: agee (subscription "typo") looks like age (20 '
        "subscriptions). Correct the expressions, or declare a schema that has both names if they "
        "are right\n"
    )


def test_build_notes_what_of_a_schema_nobody_uses(tmp_path):
    source = write_subscriptions(tmp_path / "s.jsonl", RULES)
    schema = "age INT, country STRING, a INT, b INT, c INT, d INT"
    built = run("build", source, "-o", tmp_path / "i", "--schema", schema)
    assert built.stderr == (
        "note: no subscription in the index uses 4 attributes that the schema declares: "
        "a, b, c and others. Correct the name in the schema or remove it, unless this is intended\n"
    )
    one = run("build", source, "-o", tmp_path / "j", "--schema", "age INT, country STRING, a INT")
    assert one.stderr == (
        "note: no subscription in the index uses a, which the schema declares. Correct the name in "
        "the schema or remove it, unless this is intended\n"
    )


def test_match_notes_that_the_events_of_a_file_have_nothing_that_is_asked_for(tmp_path):
    source = write_subscriptions(tmp_path / "s.jsonl", [("a", "age > 3"), ("b", "town = 'X'")])
    index = tmp_path / "i"
    run("build", source, "-o", index)
    swapped = run("match", index, source)
    assert swapped.exit_code == 0
    assert swapped.stderr.startswith(
        "note: 2 attributes that subscriptions use are missing in every event (2 events): age "
        '(subscription "a"); town (subscription "b")'
    )
    assert "They have an expression each: are they subscriptions?" in swapped.stderr
    (tmp_path / "e.jsonl").write_text('{"size": 1}\n')
    assert "in every event (1 event): age" in run("match", index, tmp_path / "e.jsonl").stderr
    (tmp_path / "e.jsonl").write_text('{"size": 1}\n{"age": 1}\n')  # some have some of them
    assert run("match", index, tmp_path / "e.jsonl").stderr == ""


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.parquet"])
def test_match_notes_what_no_event_has_once_at_the_end(tmp_path, name):
    source = write_subscriptions(tmp_path / "s.jsonl", RULES)
    run("build", source, "-o", tmp_path / "i")
    events = write_rows(tmp_path / name, [{"age": 30, "contry": "FR"}] * 10_000)
    matched = run("match", tmp_path / "i", events, "--only-matches")
    assert matched.stderr == (
        "note: an attribute that subscriptions use is missing in every event (10,000 events): "
        'country (20 subscriptions, such as "r0"), but they have contry. Correct the expressions '
        "or the names in the events, unless this is intended\n"
    )
    few = json.dumps({"age": 30, "contry": "FR"}) + "\n"
    assert run("match", tmp_path / "i", stdin=few * 99).stderr == ""


def test_match_notes_blanks_around_a_name(tmp_path):
    source = write_subscriptions(tmp_path / "s.jsonl", RULES)
    run("build", source, "-o", tmp_path / "i")
    events = tmp_path / "e.csv"
    events.write_text("age, country\n30,FR\n")
    matched = run("match", tmp_path / "i", events)
    assert 'country (20 subscriptions, such as "r0"), but they have ` country`.' in matched.stderr


def test_match_says_how_booleans_are_written(tmp_path):
    source = write_subscriptions(tmp_path / "s.jsonl", [("yes", "flag = TRUE")])
    run("build", source, "-o", tmp_path / "i", "--schema", "flag BOOLEAN")
    events = tmp_path / "e.csv"
    events.write_text("flag\nTrue\nTRUE\nyes\n")
    matched = run("match", tmp_path / "i", events)
    assert matched.stdout.count("yes") == 2
    assert "1 value was treated as missing: flag, event 3: 'yes' is not of type boolean; " in (
        matched.stderr
    )
    assert "write true or false" in matched.stderr


def test_match_notes_that_there_are_no_events(tmp_path):
    source = write_subscriptions(tmp_path / "s.jsonl", RULES)
    run("build", source, "-o", tmp_path / "i")
    for name, text in (("e.jsonl", ""), ("e.json", "[]"), ("e.csv", "age,country\n")):
        events = tmp_path / name
        events.write_text(text)
        matched = run("match", tmp_path / "i", events)
        assert matched.exit_code == 0
        assert matched.stderr == f"note: there are no events in {events}\n"
    assert run("match", tmp_path / "i", stdin="").stderr == (
        "note: there are no events in standard input\n"
    )


def test_match_notes_blanks_around_values(tmp_path):
    subscriptions = write_subscriptions(tmp_path / "s.jsonl", [("a", "workclass = 'Private'")])
    run("build", subscriptions, "-o", tmp_path / "i")
    (tmp_path / "adult.csv").write_text("age,workclass\n39, Private\n50, State-gov\n")
    matched = run("match", tmp_path / "i", tmp_path / "adult.csv")
    assert matched.exit_code == 0
    assert matched.stderr == (
        "note: values of an attribute have a blank before or after them, so that tests on them "
        "fail: workclass (2 of 2 values; event 1: ' Private', which is not 'Private'). Remove the "
        "blanks from the events, unless they are intended\n"
    )


def test_check_and_build_note_columns_that_look_like_switches(tmp_path):
    rows = [{"id": "a", "expression": "x = 1", "active": False}]
    path = write_rows(tmp_path / "s.jsonl", rows)
    message = (
        "note: a column is stored with the subscriptions and not used: active is false in 1 "
        "subscription and does not switch it off: leave out its row\n"
    )
    assert run("check", path).stderr == message
    assert run("build", path, "-o", tmp_path / "i").stderr == message


@pytest.mark.parametrize("chunk", [1, 4_096])
def test_match_notes_a_key_that_comes_twice(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr("tamis.cli.event_feed.CHUNK", chunk)
    subscriptions = write_subscriptions(tmp_path / "s.jsonl", [("a", "level > 5")])
    run("build", subscriptions, "-o", tmp_path / "i")
    (tmp_path / "e.jsonl").write_text('{"level": 1}\n{\n{"level": 1, "level": 9}\n')
    matched = run("match", tmp_path / "i", tmp_path / "e.jsonl", "--only-matches")
    assert matched.stdout == '{"event": 3, "matches": ["a"]}\n'
    assert matched.stderr.endswith(
        'note: 1 event has a key twice, such as "level" in event 3; the last value counts. Write '
        "each key once\n"
    )
