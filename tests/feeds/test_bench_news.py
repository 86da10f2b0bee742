"""The benchmark of news runs at its smallest size, and measures nothing that answers wrongly."""

from __future__ import annotations

import re

import pytest

from benchmarks import bench_news
from tamis.errors import TamisError

HAS_DATA = all((bench_news.DATA / own).is_dir() for own in bench_news.NEEDED)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_DATA, reason=f"the documents are not in {bench_news.DATA}")
def test_all_of_it_runs(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "tiny")
    rows = {row["what"]: row for row in bench_news.run()}
    whole = rows["documents end to end"]
    assert whole["searches"] == 300
    assert whole["documents"] > 150
    assert whole["matches"] > 0
    shares = [row["value"] for what, row in rows.items() if what.startswith("share of ")]
    assert len(shares) == 5
    assert sum(shares) == pytest.approx(100, abs=0.1)
    polled = rows["memory of the server and its parser"]
    assert (polled["feeds"], polled["failed"]) == (20, 0)
    assert 1 <= polled["CPUs"] <= bench_news.N_CPUS
    assert rows["feeds polled"]["value"] > 0
    assert polled["items"] > 20


def test_searches_are_what_people_typed():
    if not HAS_DATA:
        pytest.skip("the queries are not here")
    found = bench_news.read_searches(2_000)
    assert len(found) == 2_000
    assert not [own for own in found if re.search(r"'\d+:", own)]


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench_news.run()


def test_a_wrong_answer_is_not_measured():
    import tamis

    index = tamis.build({"0": "matches(title, 'oil')"}, bench_news.SCHEMA)
    with pytest.raises(TamisError, match="answered differently"):
        bench_news.compare(index, ["matches(title, 'gas')"], [b'{"title": "oil", "body": ""}'])
