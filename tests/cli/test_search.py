"""`tamis search` on a folder, with and without a running server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.broker.match_server import MatchServer
from tamis.broker.matching import Publication
from tamis.events.json_source import JsonObjects
from tests.cli.shell import json_lines, run


@pytest.fixture
def folder(tmp_path):
    texts = [
        b'{"title": "Oil and gas", "n": 1}',
        b'{"title": "Oil prices\\u001b[31m", "n": 2}',
        b'{"title": "Uranium", "n": 3}',
    ]
    with MatchServer.open(tmp_path / "server") as server:
        server.publisher.publish(Publication(JsonObjects(texts), 100)).result()
    return tmp_path / "server"


def test_a_folder_without_a_running_server(folder):
    found = run("search", folder, "matches(title, 'oil') AND n < 3", "--since", "7d")
    assert found.exit_code == 0, found.stderr
    rows = [line.split()[0] for line in found.stdout.splitlines()]
    assert rows == ["event", "2", "1"]
    assert "\x1b" not in found.stdout
    found = run("search", folder, "oil -gas", "--in", "title", "--output", "json")
    (hit,) = json_lines(found.stdout)
    assert (hit["event"], hit["highlights"]) == (2, {"title": [[0, 3]]})
    found = run("search", folder, "n > 0", "--limit", "1")
    assert "there are more than 1" in found.stderr
    assert run("search", folder, "n > 0", "--limit", "3").stderr == ""
    assert run("search", folder, "n > 0", "--until", "1w").stdout == ""
    assert "note" in run("search", folder, "oil or gas", "--in", "title").stderr
    found = run("search", folder, "oil", "--in", "title", "--language", "de", "--output", "json")
    assert [own["event"] for own in json_lines(found.stdout)] == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["matches(title"], 1, "matches(title"),
        (["n > 0", "--order", "relevance"], 1, "no word"),
        (["n > 0", "--since", "yesterday"], 2, "30min, 12h, 7d or 2w"),
        (["n > 0", "--since", "999999w"], 0, ""),
        (["n > 0", "--language", "de"], 2, "name attributes with --in"),
        (["oil", "--in", "title", "--language", "german"], 1, "no analyser for the language"),
    ],
)
def test_what_cannot_be_searched(folder, arguments, code, message):
    found = run("search", folder, *arguments)
    assert (found.exit_code, message in found.stderr) == (code, True), found.stderr


def test_the_folder_of_serve_is_the_default(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    folder.rename("tamis.server")
    found = run("search", "matches(title, 'oil')", "--since", "7d")
    assert (found.exit_code, len(found.stdout.splitlines())) == (0, 3), found.stderr
    Path("tamis.server").rename("elsewhere")
    missing = run("search", "oil", "--in", "title")
    assert (missing.exit_code, "tamis.server" in missing.stderr) == (1, True)
    monkeypatch.setenv("TAMIS_SERVER_FOLDER", "elsewhere")
    assert len(run("search", "oil", "--in", "title").stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'QUERY'"),
        (["."], "Missing argument 'QUERY'"),
        (["https://tamis.example.com"], "Missing argument 'QUERY'"),
        ([".", "oil", "gas"], "write the query in quotes"),
        (["oil", "."], "oil is not a server, but . seems to be one: the server comes first"),
    ],
)
def test_arguments_that_are_missing_or_too_many(arguments, message):
    found = run("search", *arguments)
    assert (found.exit_code, message in found.stderr) == (2, True), found.stderr


@pytest.mark.parametrize("query", ["oil gas", "oil -gas", '"oil and"~3', "ura*", "title:oil"])
def test_words_without_attributes(folder, query):
    found = run("search", folder, query)
    assert (found.exit_code, "--in title" in found.stderr) == (1, True), found.stderr


def test_words_that_are_attributes(folder):
    assert "--in title" in run("search", folder, "oil AND gas").stderr
    assert "--in" not in run("search", folder, "matches(title, 'x')").stderr
    assert "--in" not in run("search", folder, "matches(title").stderr


def test_a_folder_without_a_server(tmp_path):
    found = run("search", tmp_path, "n > 0")
    assert (found.exit_code, "no server" in found.stderr) == (1, True)
