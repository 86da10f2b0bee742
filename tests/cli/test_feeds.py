"""`tamis feeds` on a folder that no server has open."""

from __future__ import annotations

import orjson
import pytest

from tamis.broker.states import SourceState
from tamis.cli.feeds import _AGAIN
from tests.cli.shell import json_lines, run
from tests.feeds.places import item, rss
from tests.feeds.site import run_site


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("TAMIS_FEEDS_ALLOW_PRIVATE_ADDRESSES", "true")
    monkeypatch.setenv("TAMIS_FEEDS_HOST_PAUSE", "0 s")
    with run_site() as running:
        yield running


def test_feeds_of_a_folder(tmp_path, site):
    folder = tmp_path / "server"
    folder.mkdir()
    good = site.put("/good", rss(item("one", guid="1")))
    bad = site.put("/bad", status=404)
    added = run("feeds", "add", folder, good, "--tag", "t", "--title", "Good", "--output", "json")
    assert added.exit_code == 0
    source = orjson.loads(added.stdout)
    assert (source["title"], source["tags"], source["last_fetch"]) == ("Good", ["t"], None)
    again = run("feeds", "add", folder, good)
    assert (again.exit_code, "is source 1 already" in again.stderr) == (1, True)
    (tmp_path / "more.opml").write_text(
        f'<opml><body><outline text="x" xmlUrl="{bad}"/><outline xmlUrl="{good}"/></body></opml>'
    )
    imported = run("feeds", "import", folder, tmp_path / "more.opml")
    assert (imported.exit_code, imported.stdout) == (0, "1 added, 1 known, 0 refused\n")

    fetched = run("feeds", "fetch", folder)
    assert fetched.exit_code == 1
    assert "the answer is 404" in fetched.stderr
    listed = json_lines(run("feeds", "list", folder, "--output", "json").stdout)
    assert [(own["url"], own["n_items"]) for own in listed] == [(good, 1), (bad, 0)]
    failing = run("feeds", "list", folder, "--failing").stdout
    assert bad in failing
    assert good not in failing
    assert "no feed is due" in run("feeds", "fetch", folder).stderr
    assert run("feeds", "fetch", folder, good).exit_code == 0

    status = run("feeds", "status", folder, good)
    assert (status.exit_code, "no-date: 1" in status.stderr) == (0, True)
    number = str(listed[1]["number"])
    status = run("feeds", "status", folder, number)
    assert (status.exit_code, "the answer is 404" in status.stderr) == (1, True)
    exported = run("feeds", "export", folder).stdout
    assert f'text="Good" xmlUrl="{good}" category="t"' in exported
    assert run("feeds", "remove", folder, bad).stdout == f"removed {number} {bad}\n"
    for command in ("status", "remove", "fetch"):
        unknown = run("feeds", command, folder, bad)
        assert (unknown.exit_code, f"there is no feed {bad}" in unknown.stderr) == (1, True)


def test_feeds_that_are_not_tried_again(tmp_path, site):
    folder = tmp_path / "server"
    folder.mkdir()
    good = site.put("/good", rss(item("one", guid="1")))
    bad, gone = site.put("/bad", status=404), site.put("/gone", status=410)
    moved = site.put("/moved", status=301, location="/good")
    for url in (good, bad, gone, moved):
        run("feeds", "add", folder, url)
    run("feeds", "fetch", folder)
    shown = {url: run("feeds", "status", folder, url) for url in (good, bad, gone, moved)}
    codes = [own.exit_code for own in shown.values()]
    assert codes == [0, 1, 1, 0]
    has_next = {url: "next fetch" in own.stdout for url, own in shown.items()}
    assert has_next == {good: True, bad: True, gone: False, moved: False}
    assert "it is tried again" in shown[bad].stderr
    assert "it is gone, and not tried again" in shown[gone].stderr
    assert "it moved to" in shown[moved].stderr
    assert "tried again" not in shown[moved].stderr


def test_every_state_says_whether_a_feed_is_tried_again():
    assert {state.value for state in SourceState} == _AGAIN.keys()


def test_a_file_that_is_no_opml(tmp_path):
    (tmp_path / "x.opml").write_text("<rss/>")
    refused = run("feeds", "import", tmp_path, tmp_path / "x.opml")
    assert (refused.exit_code, "is not OPML" in refused.stderr) == (1, True)
