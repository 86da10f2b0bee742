"""New attributes that resemble established ones."""

from __future__ import annotations

import warnings

import pytest

import tamis
from tamis.language.lookalikes import Likenesses, find_alike
from tamis.live import LiveIndex
from tests.cli.shell import run

KNOWN = [(f"s{at}", f"country = 'c{at}' AND age > {at}") for at in range(30)]


@pytest.fixture
def live(tmp_path):
    with LiveIndex.open(tmp_path / "set") as opened:
        opened.add_many(dict(KNOWN))
        yield opened


def test_a_new_name_that_resembles_an_established_one_is_a_warning(live):
    with pytest.warns(tamis.TamisWarning, match='countrry .subscription "x". looks like country'):
        live.add("x", "countrry = 'c'")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        live.add("y", "countrry = 'd'")  # it is known now
        live.add("z", "height > 3")
    with pytest.warns(tamis.TamisWarning, match="Age"):
        live.replace("z", "Age > 3")


def test_many_at_once_are_one_warning(live):
    with pytest.warns(tamis.TamisWarning, match="2 attributes look misspelt") as caught:
        live.add_many({"x": "countrry = 'c'", "y": "ages > 3", "wrong": "= coutry"})
    assert len(caught) == 1


def test_names_of_ended_subscriptions_do_not_count(live):
    for name, _ in KNOWN:
        live.remove(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        live.add("x", "countrry = 'c'")


def test_declared_names_are_meant(tmp_path):
    schema = {"country": "STRING", "countrry": "STRING", "age": "INT"}
    with LiveIndex.open(tmp_path / "set", schema=schema) as live, warnings.catch_warnings():
        warnings.simplefilter("error")
        live.add_many(dict(KNOWN))
        live.add("x", "countrry = 'c'")


def test_a_draft_is_judged_without_being_stored(live):
    assert [own.looks_like for own in live.find_misspelt([("countri",), ("age",)])] == ["country"]
    assert live.find_misspelt([("height",), ("age",)]) == []


def test_likenesses_agree_with_comparing_all():
    names = ["age", "agee", "ag", "Age", "a_ge", "port1", "port2", "country", "coutnry", "x"]
    paths = [(name,) for name in names] + [("a", "ge"), ("a.ge",)]
    known = Likenesses()
    known.add(paths[::2])
    known.add(paths)
    pairs = {frozenset((one, other)) for one in paths for other in known.find(one)}
    assert pairs == set(map(frozenset, find_alike(paths)))


def test_the_shell_prints_a_note(tmp_path):
    folder, file = str(tmp_path / "set"), tmp_path / "rows.csv"
    lines = "".join(f'{name},"{text}"\n' for name, text in KNOWN)
    file.write_text(f"id,expression\n{lines}x,countrry = 'c'\n")
    done = run("sub", "import", folder, str(file))
    assert done.exit_code == 0, done.output
    assert 'note: an attribute looks misspelt: countrry (subscription "x")' in done.stderr
    file.write_text("id,expression,tags\nodd,age > 3,x;y\n")
    done = run("sub", "import", folder, str(file))
    assert 'note: a tag seems to be several in one: "x;y"' in done.stderr
    added = run("sub", "add", folder, "y", "agee > 3")
    assert added.exit_code == 0, added.output
    assert "note: an attribute looks misspelt: agee" in added.stderr
