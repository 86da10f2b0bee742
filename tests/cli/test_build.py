"""`tamis build`: formats, rejects, refusals, the index that is written."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime

import pytest

import tamis
from tamis.cli.console import StatusLine
from tests.cli.indexes import (
    EVENTS,
    MATCHES,
    SCHEMA,
    SUBSCRIPTIONS,
    write_rows,
    write_subscriptions,
)
from tests.cli.shell import json_lines, run

BAD = [("broken", "age >= 18 ANDD vip"), ("typo", "contry = 'FR'"), ("adult", "vip")]
CODES = ["unexpected-token", "unknown-attribute", "duplicate-id"]


@pytest.fixture
def source(tmp_path):
    return write_subscriptions(tmp_path / "s.jsonl", SUBSCRIPTIONS)


@pytest.fixture
def mixed(tmp_path):
    return write_subscriptions(tmp_path / "mixed.jsonl", [*SUBSCRIPTIONS, *BAD])


def build_json(*arguments, stdin=None):
    result = run("build", *arguments, "--output", "json", stdin=stdin)
    assert result.exit_code == 0, result.output
    (summary,) = json_lines(result.stdout)
    return summary


@pytest.mark.parametrize("name", ["s.jsonl", "s.csv", "s.parquet"])
def test_every_format(tmp_path, name):
    source = write_subscriptions(tmp_path / name, SUBSCRIPTIONS)
    summary = build_json(source, "-o", tmp_path / "i", "--schema", SCHEMA)
    assert (summary["subscriptions"], summary["rejects"]) == (4, 0)
    index = tamis.open(tmp_path / "i")
    assert [sorted(index.match(event)) for event in EVENTS] == MATCHES


def test_standard_input_and_other_columns(tmp_path):
    rows = '{"key": 1, "rule": "a = 1"}\n{"key": 2, "rule": "a = 2"}\n'
    names = ("--id-column", "key", "--expression-column", "rule")
    build_json("-", "-o", tmp_path / "i", *names, stdin=rows)
    assert tamis.open(tmp_path / "i").match({"a": 2}) == ["2"]


def test_rejects_are_shown_and_do_not_stop_the_others(tmp_path, mixed):
    result = run("build", mixed, "-o", tmp_path / "i", "--schema", SCHEMA)
    assert result.exit_code == 0
    for code, line in zip(CODES, (5, 6, 7), strict=True):
        assert f"[{code}]" in result.stderr
        assert f"{mixed}:{line}: error: " in result.stderr
    assert "\n            ^^^^\n" in result.stderr
    headings, numbers = result.stdout.splitlines()
    assert headings.split() == "subscriptions rejects nodes sharing bytes seconds".split()
    assert numbers.split()[:2] == ["4", "3"]
    assert len(tamis.open(tmp_path / "i")) == 4


def test_rejects_file(tmp_path, mixed):
    listed = tmp_path / "rejects.jsonl"
    result = run("build", mixed, "-o", tmp_path / "i", "--schema", SCHEMA, "--rejects", listed)
    assert (result.exit_code, result.stderr) == (0, "")
    rejects = json_lines(listed.read_text())
    assert [reject["code"] for reject in rejects] == CODES
    assert [reject["row"] for reject in rejects] == [5, 6, 7]
    first = rejects[0]
    assert (first["subscription_id"], first["expression"]) == BAD[0]
    assert (first["line"], first["column"], first["span"]) == (1, 11, [10, 14])
    assert all({"message", "hint", "file_line"} <= reject.keys() for reject in rejects)


def test_rejects_can_be_corrected_and_built(tmp_path, mixed):
    listed = tmp_path / "rejects.jsonl"
    run("build", mixed, "-o", tmp_path / "i", "--schema", SCHEMA, "--rejects", listed)
    corrected = listed.read_text().replace("ANDD", "AND").replace("contry", "country")
    listed.write_text(corrected)
    assert build_json(listed, "-o", tmp_path / "j", "--schema", SCHEMA)["subscriptions"] == 3


def test_rejects_to_standard_output(tmp_path, mixed):
    result = run("build", mixed, "-o", tmp_path / "i", "--schema", SCHEMA, "--rejects", "-")
    assert [json.loads(line)["code"] for line in result.stdout.splitlines()[:3]] == CODES


def test_rejects_that_cannot_be_written(tmp_path, source):
    result = run("build", source, "-o", tmp_path / "i", "--rejects", tmp_path / "none" / "r")
    assert result.exit_code == 1
    assert "cannot write" in result.stderr


def test_many_rejects_are_cut_on_stderr(tmp_path):
    source = write_subscriptions(tmp_path / "s.jsonl", [(n, "a = ") for n in range(25)])
    result = run("build", source, "-o", tmp_path / "i")
    assert result.stderr.count(": error: ") == 10
    assert "note: 15 more rows were rejected" in result.stderr
    assert result.exit_code == 1
    assert "was not written: every row was rejected" in result.stderr


def test_rows_that_cannot_be_read_are_rejects(tmp_path):
    source = tmp_path / "s.jsonl"
    good = b"".join(b'{"id": "g%d", "expression": "a = 1"}\n' % n for n in range(3))
    source.write_bytes(b'nonsense\n{"id": 1}\n' + good + b"\xff\n")
    listed = tmp_path / "r.jsonl"
    summary = build_json(source, "-o", tmp_path / "i", "--rejects", listed)
    assert (summary["subscriptions"], summary["rejects"]) == (3, 3)
    rejects = json_lines(listed.read_text())
    assert [reject["code"] for reject in rejects] == ["bad-json", "missing-key", "bad-encoding"]
    assert [reject["line"] for reject in rejects] == [None] * 3


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"id": 1.5, "expression": "y = 2"}, [1.5, "y = 2"]),
        ({"id": "", "expression": "y = 2"}, ["", "y = 2"]),
        ({"id": None, "expression": "y = 2"}, [None, "y = 2"]),
        ({"id": [True, {"k": "é"}], "expression": "y = 2"}, [[True, {"k": "é"}], "y = 2"]),
        ({"expression": "y = 2"}, [None, "y = 2"]),
        ({"id": 7, "expression": 5}, ["7", 5]),
        ({"id": 7, "expression": None}, ["7", None]),
        ({"id": 7}, ["7", ""]),
        ({"id": 1.5}, [1.5, ""]),
    ],
)
def test_rejects_keep_what_was_given(tmp_path, given, kept):
    listed = tmp_path / "r.jsonl"
    source = write_rows(tmp_path / "s.jsonl", [given, {"id": "good", "expression": "y = 2"}])
    assert build_json(source, "-o", tmp_path / "i", "--rejects", listed)["rejects"] == 1
    (reject,) = json_lines(listed.read_text())
    assert [reject["subscription_id"], reject["expression"]] == kept


@pytest.mark.parametrize("bad_id", [b"\xff", float("nan"), datetime(2024, 1, 1)])
def test_rejects_leave_out_ids_that_json_has_not(tmp_path, bad_id):
    listed = tmp_path / "r.jsonl"
    source = write_subscriptions(tmp_path / "s.parquet", [(bad_id, "y = 2")])
    assert run("build", source, "-o", tmp_path / "i", "--rejects", listed).exit_code == 1
    (reject,) = json_lines(listed.read_text())
    assert (reject["subscription_id"], reject["expression"]) == (None, "y = 2")


def test_rejects_with_an_id_nested_deep(tmp_path):
    source, listed = tmp_path / "s.jsonl", tmp_path / "r.jsonl"
    good = '{"id": "good", "expression": "y = 2"}\n'
    source.write_text(f'{{"id": {"[" * 1000}{"]" * 1000}, "expression": "y = 2"}}\n{good}')
    assert build_json(source, "-o", tmp_path / "i", "--rejects", listed)["rejects"] == 1
    (reject,) = json_lines(listed.read_text())
    assert (reject["code"], reject["expression"]) == ("bad-id", "y = 2")


def test_strict_writes_nothing(tmp_path, mixed, source):
    result = run("build", mixed, "-o", tmp_path / "i", "--schema", SCHEMA, "--strict")
    assert result.exit_code == 1
    assert "was not written: 3 rows were rejected" in result.stderr
    assert not (tmp_path / "i").exists()
    strict = run("build", source, "-o", tmp_path / "i", "--schema", SCHEMA, "--strict")
    assert strict.exit_code == 0


def test_what_is_there_is_kept_unless_told(tmp_path, source):
    path = tmp_path / "i"
    build_json(source, "-o", path)
    before = (path / "manifest.json").read_bytes()
    result = run("build", source, "-o", path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {path} exists")
    assert (path / "manifest.json").read_bytes() == before
    build_json(source, "-o", path, "--overwrite")


def test_what_is_no_index_is_never_overwritten(tmp_path, source):
    path = tmp_path / "precious"
    path.mkdir()
    (path / "letter.txt").write_text("dear")
    result = run("build", source, "-o", path, "--overwrite")
    assert result.exit_code == 1
    assert "is not an index" in result.stderr
    assert (path / "letter.txt").exists()


def test_missing_mode_and_limits_and_processes(tmp_path):
    source = write_subscriptions(tmp_path / "s.jsonl", [("s", "NOT a = 1"), ("t", "a IN (1, 2)")])
    limits = ("--limit-in-list", "1")
    missing = ("--missing", "satisfies_negation")
    summary = build_json(source, "-o", tmp_path / "i", *missing, *limits, "--processes", "2")
    assert (summary["subscriptions"], summary["rejects"]) == (1, 1)
    assert tamis.open(tmp_path / "i").match({}) == ["s"]


def test_provenance_is_kept(tmp_path, mixed):
    build_json(mixed, "-o", tmp_path / "i", "--schema", SCHEMA)
    manifest = json.loads((tmp_path / "i" / "manifest.json").read_text())
    assert manifest["provenance"] == {
        "tamis": tamis.__version__,
        "source": str(mixed),
        "rows": 7,
        "rejects": 3,
    }


def test_no_rows(tmp_path):
    (tmp_path / "s.jsonl").touch()
    result = run("build", tmp_path / "s.jsonl", "-o", tmp_path / "i")
    assert result.exit_code == 1
    assert "was not written: the file is empty" in result.stderr
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["s.jsonl"],
        ["s.jsonl", "-o", "i", "--missing", "no"],
        ["s", "-o", "i", "--processes", "0"],
    ],
)
def test_usage(arguments):
    result = run("build", *arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_missing_file(tmp_path):
    result = run("build", tmp_path / "none.jsonl", "-o", tmp_path / "i")
    assert result.exit_code == 1
    assert "No such file" in result.stderr
    assert not (tmp_path / "i").exists()


def test_progress_bar_on_a_terminal(tmp_path, source, monkeypatch):
    collected = []

    @contextmanager
    def ticking(self, describe):
        yield
        collected.append(describe(7.0))

    monkeypatch.setattr(StatusLine, "ticking", ticking)
    build_json(source, "-o", tmp_path / "i", "--schema", SCHEMA)
    assert collected == ["built [########################] 4 of 4, 7 s"]
