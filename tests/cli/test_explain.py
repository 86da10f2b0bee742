"""`tamis explain`, `tamis stats` and `tamis dot`: what an index says about itself."""

from __future__ import annotations

import json

import pytest

import tamis
from tests.cli.indexes import build_index
from tests.cli.shell import json_lines, run
from tests.cli.test_shell import read_terminal


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("explain"))


def test_explain_draws_a_tree(index):
    result = run("explain", index, "french", "--event", '{"country": "FR"}')
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "french: undefined: vip is missing",
        "? country = 'FR' AND NOT vip",
        "├ ✓ country = 'FR'   (country is 'FR')",
        "└ ? NOT vip",
        "  └ ? vip   (vip is missing)",
        "",
        "It would match if:",
        "  NOT vip",
    ]


def test_explain_a_match(index):
    result = run("explain", index, "adult", "--event", "-", stdin='{"age": 20}')
    assert result.stdout.splitlines() == [
        "adult: matches: age >= 18 holds",
        "✓ age >= 18   (age is 20)",
    ]


def test_explain_for_programs(index):
    arguments = ("explain", index, "french", "--event", '{"country": "DE"}', "--output", "json")
    (note,) = json_lines(run(*arguments).stdout)
    assert (note["matches"], note["truth"], note["subscription_id"]) == (False, "false", "french")
    assert note["changes"] == ["country = 'FR'", "NOT vip"]
    assert [step["truth"] for step in note["tree"]["operands"]] == ["false", "undefined"]


def test_explain_agrees_with_match(index):
    for event in ('{"age": 18}', '{"age": 17}', "{}", '{"name": "ab", "vip": 1}'):
        (row,) = json_lines(run("match", index, stdin=event + "\n").stdout)
        for name in ("adult", "french", "named", "absent"):
            arguments = ("explain", index, name, "--event", event, "--output", "json")
            (note,) = json_lines(run(*arguments).stdout)
            assert note["matches"] == (name in row["matches"])


def test_marks_are_coloured_on_a_terminal(index):
    shown = read_terminal(["explain", str(index), "adult", "--event", '{"age": 20}'])
    assert "\x1b[32m✓" in shown


def test_texts_cannot_steer_the_terminal(tmp_path):
    path = build_index(tmp_path, [("a\x1b[31m", "name = '\x1b[31m'")])
    event = json.dumps({"name": "\x1b[31m"})
    for command in (["explain", path, "a\x1b[31m", "--event", event], ["stats", path]):
        assert "\x1b" not in run(*command).stdout
    assert "\x1b" not in run("dot", path, "a\x1b[31m").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "INDEX", "adlt", "--event", "{}"], 'did you mean "adult"?'),
        (["explain", "INDEX", "adult", "--event", "{"], "not JSON"),
        (["explain", "INDEX", "adult", "--event", "[]"], "expected a JSON object"),
        (["explain", "none", "adult", "--event", "{}"], "does not exist"),
        (["stats", "none"], "does not exist"),
        (["dot", "none", "adult"], "does not exist"),
        (["dot", "INDEX", "adlt"], 'no subscription "adlt"'),
    ],
)
def test_mistakes(index, arguments, says):
    result = run(*(index if argument == "INDEX" else argument for argument in arguments))
    assert (result.exit_code, result.stdout) == (1, "")
    assert says in result.stderr


@pytest.mark.parametrize("arguments", [["explain", "i", "s"], ["stats"], ["dot", "i"]])
def test_usage(arguments):
    assert run(*arguments).exit_code == 2


# ── stats ───────────────────────────────────────────────────────────────────────────────────


def test_stats_for_people(index):
    shown = run("stats", index).stdout
    for title in ("sharing: ", "columns", "most children", "always evaluated", "bytes: "):
        assert f"\n{title}" in shown
    assert shown.splitlines()[1].split() == ["4", "4", "0", "0", "undefined"]
    assert all(part.name in shown for part in index.iterdir())
    assert "for each subscription\n" in shown


def test_stats_for_programs(index):
    (note,) = json_lines(run("stats", index, "--output", "json", "--top", "2").stdout)
    assert note["counts"]["subscriptions"] == 4
    assert len(note["columns"]) == 2
    assert note["bytes"] == sum(path.stat().st_size for path in index.iterdir())


def test_stats_names_constants(tmp_path):
    rows = [("yes", "TRUE"), *((f"no{n}", "a = 1 AND FALSE") for n in range(7))]
    shown = run("stats", build_index(tmp_path, rows)).stdout
    assert "always true: yes" in shown
    assert "never true: no0, no1, no2, no3, no4 and 2 more" in shown


def test_stats_of_nothing(tmp_path):
    path = tmp_path / "empty.tamis"
    tamis.build({}).save(path)
    shown = run("stats", path).stdout
    assert shown.splitlines()[1].split() == ["0", "0", "0", "0", "undefined"]
    assert "\nbytes: " in shown
    assert "for each subscription" not in shown
    (note,) = json_lines(run("stats", path, "--output", "json").stdout)
    assert note["bytes_per_subscription"] is None


# ── dot ─────────────────────────────────────────────────────────────────────────────────────


def test_dot(index):
    shown = run("dot", index, "french").stdout
    assert shown.startswith("digraph ")
    assert "country = 'FR'" in shown
    assert "country" not in run("dot", index, "french", "--depth", "0").stdout


def test_a_repeated_key_is_reported(index):
    for stdin, given in ((None, '{"age": 5, "age": 20}'), ('{"age": 5, "age": 20}', "-")):
        result = run("explain", index, "adult", "--event", given, stdin=stdin).stderr
        assert 'the event has the key "age" twice; the last value counts' in result
