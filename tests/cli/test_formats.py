"""Files that are not what their name says, JSON arrays, swapped arguments: read, or explained."""

from __future__ import annotations

import gzip
import io
import json
from decimal import Decimal

import pytest

import tamis
from tamis.input import json_arrays
from tamis.input.event_rows import read_events
from tamis.input.formats import Format
from tamis.input.rows import CutOffError
from tamis.input.subscription_rows import read_subscriptions
from tests.cli.indexes import (
    EVENTS,
    MATCHES,
    SCHEMA,
    SUBSCRIPTIONS,
    build_index,
    in_order,
    write_rows,
    write_subscriptions,
)
from tests.cli.shell import json_lines, run

ROWS = [{"id": name, "expression": text} for name, text in SUBSCRIPTIONS]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("formats"))


def events_of(text: str | bytes) -> list:
    content = text.encode() if isinstance(text, str) else text
    return list(read_events(io.BytesIO(content), Format.JSONL))


# ── JSON arrays ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("before", ["", "\n \t", "\ufeff"])
def test_an_array_of_events_is_matched(tmp_path, index, indent, before):
    path = tmp_path / "events.json"
    path.write_text(before + json.dumps(EVENTS, indent=indent), encoding="utf-8")
    result = run("match", index, path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert in_order(json_lines(result.stdout)) == MATCHES
    piped = run("match", index, stdin=path.read_bytes())
    assert piped.stdout == result.stdout


def test_an_array_of_subscriptions_is_built(tmp_path):
    path = tmp_path / "subs.json"
    path.write_text(json.dumps(ROWS, indent=1))
    assert run("build", path, "-o", tmp_path / "i", "--schema", SCHEMA).exit_code == 0
    assert len(tamis.open(tmp_path / "i")) == len(ROWS)
    assert run("check", path, "--schema", SCHEMA).exit_code == 0


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 16])
def test_an_array_is_the_same_however_it_is_cut(monkeypatch, chunk):
    monkeypatch.setattr(json_arrays, "CHUNK_BYTES", chunk)
    text = '[ {"a": "\\ud83d\\ude00é\\"\\\\", "b": [1.50, true]},\n\n{"n": -12e3},{} ] \n'
    first, second, third = events_of(text)
    assert first.event == {"a": '😀é"\\', "b": [Decimal("1.50"), True]}
    assert (second.event, second.number, second.file_line) == ({"n": Decimal("-12E+3")}, 2, 3)
    assert (third.event, third.error) == ({}, None)


@pytest.mark.parametrize("text", ["[]", " [ ] ", "[\n]\n"])
def test_an_empty_array_holds_nothing(text):
    assert events_of(text) == []


def test_elements_that_are_no_objects_are_errors_of_their_own(monkeypatch):
    monkeypatch.setattr(json_arrays, "CHUNK_BYTES", 1)
    rows = events_of(b'[{"a": 1}, 12345, "x", [1], null, {"b": "\xff"}, {"c": 2}]')
    codes = [row.error and row.error.code for row in rows]
    assert codes == [None, *["bad-row"] * 4, "bad-encoding", None]
    assert "the number 12345" in rows[1].error.message


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('[{"a": 1}\n{"a": 2}]', 2, 'a comma or the end of the array is expected, not "{"'),
        ('[{"a": 1},\n{"a": tru}]', 2, "Expecting value"),
        ('[{"a": 1},\n', 2, "Expecting value"),
        ('[{"a": 1}', 1, "the end of the file"),
        ('[{"a": 1}]\nmore', 2, "the file continues after the end of its array"),
        ('[{"a": "b', 1, "Unterminated string"),
        ('[{"a": ' + "[" * 100_000, 1, "recursion"),
    ],
)
def test_what_cannot_be_read_after_a_break_is_a_failure(tmp_path, index, text, line, says):
    *_, last = events_of(text)
    assert isinstance(last.error, CutOffError)
    assert (last.error.code, last.file_line) == ("bad-json", line)
    assert last.error.message.startswith("the array cannot be read from here on: ")
    assert says in last.error.message
    many = json.dumps([{"a": 1}] * 5000)[:-1] + "," + text[1:]
    matched = run("match", index, stdin=many)
    assert matched.exit_code == 1
    assert f"error: line {line}: the array cannot be read from here on" in matched.stderr
    source = tmp_path / "s.json"
    source.write_text('[{"id": "a", "expression": "x = 1"},' + text[1:])
    built = run("build", source, "-o", tmp_path / "i")
    assert built.exit_code == 1
    assert f"i was not written: line {line}: the array cannot be read" in built.stderr


def test_an_element_of_any_size_but_not_of_every_size(monkeypatch):
    long = json.dumps([{"a": "x" * 300_000}])
    assert len(events_of(long)[0].event["a"]) == 300_000
    monkeypatch.setattr(json_arrays, "MOST_BYTES", 100_000)
    assert "an element has more than" in events_of(long)[0].error.message


def test_lines_of_arrays_are_lines(index):
    rows = events_of('[1, 2]\n{"a": 1}\n')
    assert [row.error and row.error.code for row in rows] == ["bad-row", None]


def test_subscriptions_of_an_array_keep_their_numbers():
    content = b'[{"id": 7, "expression": "a = 1"}, {"id": 1.5, "expression": "a = 1"}]'
    rows = list(read_subscriptions(io.BytesIO(content), Format.JSONL))
    assert [row.subscription_id for row in rows] == ["7", None]
    assert rows[1].given["subscription_id"] == 1.5


# ── files of another kind ───────────────────────────────────────────────────────────────────

PRETTY = "".join(json.dumps(event, indent=2) + "\n" for event in EVENTS)
CSV = "id,age,country\ne1,20,FR\ne2,3,DE\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PRETTY, "it seems to be JSON with objects over several lines"),
        (CSV, "it seems to be comma-separated text (CSV): --format csv"),
        (CSV.replace(",", "\t"), "it seems to be tab-separated text"),
        ("<events>\n<event/>\n</events>\n", "it seems to be XML or HTML"),
        ("Jan 1 host sshd: root\nJan 2 host\n", "lines contain no event, first line 1: not JSON"),
    ],
)
def test_a_file_of_another_kind_fails_and_is_named(tmp_path, index, content, says):
    path = tmp_path / "events.jsonl"
    path.write_text(content)
    n_lines = len(content.splitlines())
    matched = run("match", index, path)
    assert matched.exit_code == 1
    assert f"error: {n_lines:,} of {n_lines:,} lines" in matched.stderr
    assert says in matched.stderr
    built = run("build", path, "-o", tmp_path / "i")
    assert built.exit_code == 1
    assert "rows contain no subscription" in built.stderr
    assert not (tmp_path / "i").exists()


def test_most_lines_must_be_usable(index):
    good, bad = '{"age": 20}\n', "nonsense\n"
    half = run("match", index, stdin=good + bad)
    assert half.exit_code == 0
    assert "note: 1 line without an event was skipped" in half.stderr
    most = run("match", index, stdin=good + bad * 2)
    assert (most.exit_code, len(json_lines(most.stdout))) == (1, 1)
    assert "error: 2 of 3 lines contain no event, first line 2: not JSON" in most.stderr


def test_most_rows_must_hold_subscriptions(tmp_path):
    rows = [{"id": "a", "expression": "x = 1"}, {"title": "b"}, {"title": "c"}]
    source = write_rows(tmp_path / "s.jsonl", rows)
    result = run("build", source, "-o", tmp_path / "i")
    assert result.exit_code == 1
    assert "2 of 3 rows contain no subscription, the first one because: the row has no" in (
        result.stderr
    )
    assert "hint: its keys: title" in result.stderr
    assert run("build", write_rows(source, rows[:2]), "-o", tmp_path / "i").exit_code == 0


def test_json_called_csv_is_recognised(tmp_path, index):
    events = tmp_path / "events.csv"
    events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    for command in (["match", index, events], ["check", events]):
        result = run(*command)
        assert result.exit_code == 1
        assert "seems to be JSON, not csv" in result.stderr
        assert "--format jsonl" in result.stderr


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_compressed_events_are_recognised(tmp_path, index, name):
    (tmp_path / name).write_bytes(gzip.compress(CSV.encode()))
    assert "is compressed with gzip" in run("match", index, tmp_path / name).stderr


@pytest.mark.parametrize(
    ("name", "unpack"),
    [("e.jsonl.bz2", "bzip2 -d"), ("e.csv.lz4", "lz4 -d"), ("E.JSON.XZ", "xz")],
)
def test_names_of_compressed_files_are_recognised(tmp_path, index, name, unpack):
    (tmp_path / name).write_bytes(gzip.compress(CSV.encode()))
    for arguments in (["match", index], ["check"], ["build", "-o", tmp_path / "new"]):
        refused = run(*arguments, tmp_path / name)
        assert refused.exit_code == 1
        assert f"{name} is compressed: files that end in" in refused.stderr
        assert f"unpack it first: {unpack}" in refused.stderr


# ── swapped arguments ───────────────────────────────────────────────────────────────────────


def test_swapped_arguments_are_recognised(tmp_path, index):
    events = write_rows(tmp_path / "events.jsonl", EVENTS)
    subscriptions = write_subscriptions(tmp_path / "s.jsonl", SUBSCRIPTIONS)
    for command in (
        ["match", events, index],
        ["explain", "adult", index, "--event", "{}"],
        ["dot", "adult", index],
    ):
        result = run(*command)
        assert result.exit_code == 1
        assert f"but {index} is one" in result.stderr
        assert "the arguments are swapped: the index comes first" in result.stderr
    for command, says in (
        (["match", index, index], f"{index} is an index; a file of events is expected"),
        (["match", index, tmp_path], f"{tmp_path} is a folder; a file of events is expected"),
        (["match", subscriptions, events], f"{subscriptions} is a file, not an index"),
        (["stats", subscriptions], f"{subscriptions} is a file, not an index"),
        (["build", index, "-o", tmp_path / "i"], "a file of subscriptions is expected"),
        (["build", tmp_path / "i", "-o", subscriptions], "names a file that exists"),
        (["check", index], "a file of subscriptions is expected"),
    ):
        result = run(*command)
        assert result.exit_code == 1
        assert says in result.stderr
    assert subscriptions.read_text().count("\n") == len(SUBSCRIPTIONS)


def test_a_store_without_versions_is_recognised(tmp_path):
    (tmp_path / "CURRENT").write_text("v00000001")
    with pytest.raises(tamis.IndexFormatError, match="holds no version of an index"):
        tamis.open(tmp_path)


# ── where rejects go ────────────────────────────────────────────────────────────────────────


def test_rejects_never_replace_what_is_read(tmp_path):
    rules = tmp_path / "rules.jsonl"
    text = '{"id": "a", "expression": "x = 1"}\n{"id": "b", "expression": "x ="}\n'
    rules.write_text(text)
    refused = run("build", str(rules), "-o", str(tmp_path / "i"), "--rejects", str(rules))
    assert refused.exit_code == 1
    assert "would replace the file that is read" in refused.stderr
    assert rules.read_text() == text
    assert run("build", str(rules), "-o", str(tmp_path / "i")).exit_code == 0
    events = tmp_path / "e.jsonl"
    events.write_text('{"x": 1}\n')
    refused = run("match", str(tmp_path / "i"), str(events), "--rejects", str(events))
    assert refused.exit_code == 1
    assert events.read_text() == '{"x": 1}\n'


def test_rejects_replace_only_rejects(tmp_path):
    rules, listed = tmp_path / "rules.jsonl", tmp_path / "rejects.jsonl"
    rules.write_text('{"id": "a", "expression": "x = 1"}\n{"id": "b", "expression": "x ="}\n')
    build = ("build", str(rules), "--rejects", str(listed), "--overwrite", "-o")
    for _ in range(2):
        assert run(*build, str(tmp_path / "i")).exit_code == 0
    listed.write_text("somebody's notes\n")
    refused = run(*build, str(tmp_path / "i"))
    assert refused.exit_code == 1
    assert "does not contain rejects: it is not overwritten" in refused.stderr
    assert listed.read_text() == "somebody's notes\n"


def test_a_format_that_spark_commands_cannot_read_is_an_error(tmp_path):
    from unittest.mock import MagicMock

    from tamis.cli import spark_io

    path, spark = str(tmp_path / "rows.avro"), MagicMock()
    message = "rows.avro: tamis spark does not read Avro files; it reads jsonl, csv, parquet, tsv"
    with pytest.raises(tamis.InputError, match=message):
        spark_io.read_subscriptions(spark, path, "avro")
    with pytest.raises(tamis.InputError, match=message):
        spark_io.read_events(spark, path, "avro", None, None)
    with pytest.raises(tamis.InputError, match=message):
        spark_io.read_typed_events(spark, path, Format.AVRO, tamis.Schema.of("a INT"))
    with pytest.raises(tamis.InputError, match=message):
        spark_io.write_frame(MagicMock(), path, "avro", overwrite=True)
