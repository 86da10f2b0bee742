"""Named conditions in the shell."""

from __future__ import annotations

import json

import pytest

import tamis
from tests.cli.shell import run

TOML = """office_hours = "hour(ts) BETWEEN 8 AND 17"
late = "NOT @office_hours"
"""


@pytest.fixture
def definitions(tmp_path):
    path = tmp_path / "defs.toml"
    path.write_text(TOML)
    return path


def test_build_check_and_eval_take_definitions(tmp_path, definitions):
    rows = tmp_path / "subs.jsonl"
    rows.write_text(json.dumps({"id": "a", "expression": "@late AND x = 1"}))
    index = tmp_path / "index"
    assert run("check", str(rows), "--definitions", str(definitions)).exit_code == 0
    built = run("build", rows, "-o", index, "--definitions", definitions)
    assert built.exit_code == 0
    event = {"ts": "2024-01-15T20:00:00Z", "x": 1}
    assert tamis.open(index).match(event) == ["a"]
    event_text = json.dumps(event)
    found = run("eval", "@late", "--event", event_text, "--definitions", str(definitions))
    assert found.exit_code == 0
    assert "true" in found.stdout


def test_check_knows_all_subscriptions_of_the_file(tmp_path):
    rows = tmp_path / "subs.jsonl"
    texts = {"a": "subscription('b') AND x = 2", "b": "x > 1", "c": "subscription('d')"}
    rows.write_text("\n".join(json.dumps({"id": i, "expression": t}) for i, t in texts.items()))
    for schema in ((), ("--schema", "x INT")):
        found = run("check", str(rows), *schema, "--no-lint")
        assert found.exit_code == 1
        assert "unknown subscription('d')" in found.stdout
        assert "subscription('b')" not in found.stdout


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.toml", "a = ", "is not TOML"),
        ("d.json", "{", "is not JSON"),
        ("d.json", "[1]", "an object is expected"),
        ("d.json", '{"a b": "x = 1"}', "is not the name of a definition"),
        ("d.toml", "a = 5", "an expression is expected"),
    ],
)
def test_wrong_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    found = run("eval", "@a", "--event", "{}", "--definitions", str(path))
    assert found.exit_code == 1
    assert message in found.stderr
