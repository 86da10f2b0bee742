"""`tamis eval`: results, wrong values, bad events, exit codes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.shell import json_lines, run


def results(*arguments, stdin=None):
    """The first word of each line."""
    result = run("eval", *arguments, stdin=stdin)
    assert result.exit_code == 0
    return [line.split()[0] for line in result.stdout.splitlines()]


def test_one_line_per_event():
    events = ["--event", '{"a": 1}', "--event", '{"a": 2}', "--event", "{}"]
    assert results("a = 1", *events) == ["true", "false", "undefined"]


def test_missing():
    arguments = ("NOT a = 1", "--event", "{}")
    assert results(*arguments) == ["undefined"]
    assert results(*arguments, "--missing", "satisfies_negation") == ["true"]


def test_schema_decides():
    arguments = ("a > 1", "--event", '{"a": 1.5}')
    assert results(*arguments) == ["true"]
    assert results(*arguments, "--schema", "a BIGINT") == ["undefined"]
    assert results(*arguments, "--schema", "a DOUBLE") == ["true"]


def test_events_of_a_file(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert results("a = 1", "--event", "{}", "--events-file", path) == [
        "undefined",
        "true",
        "false",
    ]
    assert results("a = 1", "--events-file", "-", stdin=path.read_text()) == ["true", "false"]


def test_events_of_parquet(tmp_path):
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"a": [1, None], "geo": [{"city": "Oslo"}, None]}), path)
    assert results("a = 1 AND geo.city = 'Oslo'", "--events-file", path) == ["true", "undefined"]


def test_wrong_values_are_told():
    result = run("eval", "a = 1 AND b.c = 2", "--event", '{"a": "x", "b": {"c": 2}}')
    assert result.exit_code == 0
    assert result.stderr == "note: event 1: a: 'x' is not of type number, treated as missing\n"


def test_a_near_miss_is_told_once(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"age": 5, "host": {"Name": "x"}}\n' * 3 + '{"agee": 5}\n')
    result = run("eval", "agee > 3 AND host.name = 'x' AND port1 = 1", "--events-file", path)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["undefined"] * 4
    assert result.stderr.splitlines() == [
        "note: event 1 has no agee, but age: is one misspelt?",
        "note: event 1 has no host.name, but host.Name: is one misspelt?",
    ]
    assert run("eval", "port2 = 1 OR age = 1", "--event", '{"port1": 1, "x": 5}').stderr == ""


def test_decimals_are_exact():
    event = '{"a": 12345678901234567890.12}'
    schema = ("--schema", "a DECIMAL(38,2)")
    assert results("a = 12345678901234567890.12", "--event", event, *schema) == ["true"]
    assert results("a = 12345678901234567890.13", "--event", event, *schema) == ["false"]


def test_json_output():
    events = ["--event", '{"a": 1}', "--event", '{"a": "x"}', "--event", "{"]
    result = run("eval", "a = 1", *events, "--output", "json")
    assert result.exit_code == 1
    first, second, third = json_lines(result.stdout)
    assert first == {"event": 1, "file_line": None, "result": True, "wrong_values": {}}
    assert second["result"] is None
    assert second["wrong_values"] == {"a": "'x' is not of type number"}
    assert third["error"]["code"] == "bad-json"


@pytest.mark.parametrize(
    "event",
    [
        "",
        "{",
        "5",
        "[]",
        "null",
        '{"a": 1}}',
        "[" * 100_000,
        "1" * 5000,
        '{"a": ' + "1" * 5000 + "}",
    ],
)
def test_bad_event_does_not_stop_the_others(event):
    result = run("eval", "a = 1", "--event", event, "--event", '{"a": 1}')
    assert result.exit_code == 1
    assert result.stdout.startswith("true")
    assert result.stderr.startswith("error: event 1: ")


def test_bad_line_is_named(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a": 1}\n\n{"a": "\xff"}\n{"a": 1}\n')
    result = run("eval", "a = 1", "--events-file", path)
    assert result.exit_code == 1
    assert "event 2 (line 3): not UTF-8" in result.stderr
    assert len(result.stdout.splitlines()) == 2


@pytest.mark.parametrize("expression", ["", "a = ", "a = NULL", "a < b", "f(a)", "a = \x07"])
def test_bad_expression(expression):
    result = run("eval", expression, "--event", "{}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: 1:")


def test_bad_files(tmp_path):
    (tmp_path / "e.csv").write_text("a\n1\n")
    (tmp_path / "e.parquet").write_bytes(b"PAR1")
    for name, says in [
        ("e.csv", "events in CSV have no types"),
        ("e.parquet", "cannot be read as Parquet"),
        ("none.jsonl", "No such file"),
        ("e.txt", "cannot tell the format"),
    ]:
        result = run("eval", "a = 1", "--events-file", tmp_path / name)
        assert (result.exit_code, result.stdout) == (1, "")
        assert says in result.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["a = 1"], ["a = 1", "--event", "{}", "--missing", "maybe"], ["a", "b"]]
)
def test_usage(arguments):
    assert run("eval", *arguments).exit_code == 2


def test_a_repeated_key_is_reported(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n{"a": {"b": 1, "b": 2}}\n')
    result = run("eval", "a = 1", "--event", '{"a": 5, "a": 1}', "--events-file", path)
    assert result.stdout.split()[0] == "true"
    shown = result.stderr
    assert 'event 1: the event has the key "a" twice; the last value counts' in shown
    assert 'event 3: the event has the key "b" twice; the last value counts' in shown
    assert shown.count("twice") == 2
