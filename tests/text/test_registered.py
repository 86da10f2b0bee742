"""Analysers of users: stop words and stems, in this process, in others, and in saved indexes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from tamis.errors import IndexFormatError, SchemaError, TamisWarning
from tamis.text import get_analyser, register_analyser, registered
from tamis.text.analysers import analyser_versions
from tamis.text.queries import analyse_query
from tests.waiting import HANG_SECONDS

SOURCES = str(Path(tamis.__file__).parents[1])


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    def forget():
        get_analyser.cache_clear()
        analyse_query.cache_clear()

    monkeypatch.setattr(registered, "_DEFINITIONS", {})
    forget()
    yield
    forget()


def plural(word: str) -> str:
    """A stem for tests."""
    return word.removesuffix("s")


def broken(word: str) -> str:
    """No stem for words with an x."""
    if "x" in word:
        raise ValueError(word)
    return f" {word.upper()}*?"


def test_own_stop_words():
    register_analyser("medical", like="english", stop_words="patient Études")
    assert get_analyser("medical").words("The patients of a patient etudes") == [
        "the",
        "patient",
        "of",
        "a",
        "",
        "",
    ]
    assert tamis.Schema.of("body TEXT(medical)").to_ddl() == "body text(medical)"
    index = tamis.build({"q": "matches(body, 'patient studies')"}, "body TEXT(medical)")
    assert index.match({"body": "a study"}) == ["q"]
    assert tamis.check("matches(body, 'the')", "body TEXT(medical)") == []


def test_stop_words_of_the_other_analyser():
    register_analyser("plural", like="standard_english", stem=plural, version="1")
    assert get_analyser("plural").words("The houses of é") == ["", "house", "", "e"]
    register_analyser("exact", like="simple", stop_words=["É"])
    assert get_analyser("exact").words("é e É") == ["", "e", ""]
    register_analyser("all", like="english", stop_words=())
    assert get_analyser("all").words("the houses") == ["the", "hous"]


def test_wildcards_see_words_before_own_stems():
    register_analyser("plural", stem=plural, version="1")
    index = tamis.build({"q": "matches(body, 'house?')"}, "body TEXT(plural)")
    assert index.match({"body": "house"}) == ["q"]
    index = tamis.build({"q": "matches(body, 'ho*es')"}, "body TEXT(plural)")
    assert [index.match({"body": text}) for text in ("houses", "house")] == [["q"], []]


def test_a_stem_that_fails_is_reported_once():
    register_analyser("broken", stem=broken, version="1")
    words = get_analyser("broken").words
    with pytest.warns(TamisWarning, match="the stem of 'axe' raised ValueError") as caught:
        assert words("Axe saw box") == ["axe", "saw", "box"]
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "english"}, '"english" is an analyser of Tamis'),
        ({"name": "My words"}, "the name of an analyser is 'My words'"),
        ({"name": 5}, "the name of an analyser is 5"),
        ({"like": "keyword"}, "is like 'keyword'"),
        ({"like": "klingon"}, "is like 'klingon'"),
        ({"stop_words": "of e-mail"}, "'e-mail' is not a stop word"),
        ({"stop_words": [5]}, "5 is not a stop word"),
        ({"stem": lambda word: word, "version": "1"}, "other processes cannot import"),
        ({"stem": plural}, "but no version"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(SchemaError, match=message):
        register_analyser(**{"name": "own", **arguments})


def test_a_name_has_one_meaning():
    register_analyser("own", stop_words="b a")
    register_analyser("own", stop_words=["a", "b", "a"])
    with pytest.raises(SchemaError, match="already registered with other words"):
        register_analyser("own", stop_words="a")


def test_an_unknown_name():
    register_analyser("medical")
    with pytest.raises(SchemaError, match='did you mean "medical"') as caught:
        get_analyser("medicale")
    assert "register_analyser" in caught.value.hint


def test_the_version_names_the_stems():
    register_analyser("one", like="english", stem=plural, version="1")
    register_analyser("other", like="english", stem=str.casefold, version="2")
    one, other = analyser_versions("one"), analyser_versions("other")
    assert one["definition"] != other["definition"]
    assert "PyStemmer" not in one
    register_analyser("stemmed", like="english", stop_words="")
    assert "PyStemmer" in analyser_versions("stemmed")


def test_a_saved_index_needs_the_same_definition(tmp_path):
    register_analyser("own", stop_words="of")
    tamis.build({"q": "matches(body, 'house')"}, "body TEXT(own)").save(tmp_path / "index")
    assert tamis.open(tmp_path / "index").match({"body": "house"}) == ["q"]
    assert "definition" in analyser_versions("own")
    registered._DEFINITIONS.clear()
    get_analyser.cache_clear()
    with pytest.raises(tamis.TamisError, match='unknown analyser "own"'):
        tamis.open(tmp_path / "index")
    register_analyser("own", stop_words="of the")
    with pytest.raises(IndexFormatError, match="were made with definition"):
        tamis.open(tmp_path / "index")


def test_processes_that_read_expressions_know_it():
    register_analyser("plural", stop_words="of", stem=plural, version="1")
    texts = {str(at): f"matches(body, 'houses w{at}') OR n = {at}" for at in range(5_000)}
    index = tamis.build(texts, "body TEXT(plural), n INT", processes=2)
    assert index.rejects == []
    assert index.match({"body": "house of w7"}) == ["7"]


def test_modules_of_the_environment(tmp_path):
    (tmp_path / "my_words.py").write_text(
        "from tamis.text import register_analyser\nregister_analyser('own', stop_words='of')\n"
    )
    code = "from tamis.text import get_analyser; print(get_analyser('own').words('House of'))"

    def run(modules):
        places = os.pathsep.join((str(tmp_path), SOURCES))
        return subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": places, "TAMIS_ANALYSERS": modules},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )

    assert run("my_words").stdout == "['house', '']\n"
    assert run(" my_words, json").stdout == "['house', '']\n"
    assert 'names the module "no_words", which cannot be imported' in run("no_words").stderr
