"""`tamis demo`: shows accepted, rejected and suspicious subscriptions, and who matches."""

from __future__ import annotations

from tests.cli.shell import run


def test_demo_shows_all_there_is():
    result = run("demo")
    assert result.exit_code == 0
    # Where kernels have never been compiled, it says so.
    assert not result.stderr or result.stderr.startswith("note: compiling kernels")
    for shown in ("error", "warning", "^^^^", "did you mean", "true", "?", "tamis eval"):
        assert shown in result.stdout


def test_demo_matches_by_an_index_as_by_the_evaluator():
    shown = run("demo").stdout
    table = shown.partition("4. ")[2].partition("\n\ntrue ")[0].splitlines()[2:]
    events = table[0].split()
    truths = {line.split()[0]: line.split()[1:] for line in table[1:]}
    by_index = shown.partition("5. ")[2].splitlines()[2:8]
    for place, line in enumerate(by_index):
        event, _, matches = line.partition(" ")
        expected = [name for name, marks in truths.items() if marks[place] == "true"]
        assert (event, matches.strip()) == (events[place], ", ".join(expected) or "-")


def test_demo_explains_a_near_miss():
    shown = run("demo").stdout.partition("6. ")[2]
    assert shown.startswith("Why does pay-2 not match alert-slow?")
    assert "✓ kind = 'payment'" in shown
    assert "✗ level >= 4   (level is 2)" in shown
    assert "It would match if:" in shown


def test_demo_is_plain_where_there_is_no_terminal():
    assert "\x1b" not in run("demo").stdout


def test_table_of_matches_has_every_mark():
    table = run("demo").stdout.partition("4. ")[2].partition("\n\ntrue ")[0].splitlines()[2:]
    marks = [line.split()[1:] for line in table[1:]]
    assert {len(row) for row in marks} == {len(table[0].split())} == {6}
    assert {mark for row in marks for mark in row} == {"true", "-", "?"}
