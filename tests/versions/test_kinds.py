"""A kind of part that does not answer: no version matches, counts or loses it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import tamis
from tamis.index.build import build_contents
from tamis.versions import IndexStore, PartSet, manifest, open_version
from tamis.versions.manifest import BASE, DELTA, PartKind, read_version
from tamis.versions.part_files import write_part
from tamis.versions.tables import list_subscriptions
from tests.versions.test_open import SCHEMA, add_part

TRIAL = "trial"


@pytest.fixture
def store(tmp_path, monkeypatch) -> IndexStore:
    """A base and two deltas; after the first delta and at the end, a part on trial."""
    monkeypatch.setitem(manifest.KINDS, TRIAL, PartKind(hides_earlier=True, answers=False))
    made = IndexStore(tmp_path / "index")
    add_part(made, BASE, {"x": "a = 1", "y": "a = 1", "z": "a = 1"})
    add_part(made, DELTA, {"y": "a = 2"}, ["z"])
    add_part(made, TRIAL, {"x": "a = 3", "t": "b = 'x'"}, ["y"])
    add_part(made, DELTA, {"u": "a = 2"})
    add_part(made, TRIAL, {"u": "a = 3"})
    return made


def test_it_matches_and_hides_nothing(store):
    for index in (tamis.open(store.uri), open_version(store).open()):
        assert sorted(index) == ["u", "x", "y"]
        assert [sorted(index.match({"a": a, "b": "x"})) for a in (1, 2, 3)] == [
            ["x"],
            ["u", "y"],
            [],
        ]


def test_it_is_not_counted(store):
    version = store.current()
    assert [part.kind for part in version.parts] == [BASE, DELTA, TRIAL, DELTA, TRIAL]
    assert [part.kind for part in version.answering] == [BASE, DELTA, DELTA]
    assert version.n_subscriptions == sum(part.n_live for part in version.answering)
    assert version.attributes == [("a",)]
    assert version.n_bytes == sum(part.n_bytes for part in version.parts)


def test_it_is_kept_in_the_manifest(store):
    version = store.current()
    assert read_version(version.to_bytes(), "here").silent == version.silent
    assert {part.kind for part in version.silent} == {TRIAL}


def test_it_is_opened_by_who_asks_for_it(store):
    version = store.current()
    trial = PartSet(store.storage, version, version.silent[:1])
    assert trial.open().match({"a": 3, "b": "x"}) == ["x", "t"]


def test_each_part_is_opened_once(store, monkeypatch):
    opened = Counter()
    map_part = PartSet.map_part
    monkeypatch.setattr(
        PartSet, "map_part", lambda own, part: opened.update([part.id]) or map_part(own, part)
    )
    parts = open_version(store)
    assert len(parts.index_parts()) == 3
    assert opened == Counter(part.id for part in parts.parts)
    opened.clear()
    assert len(parts.only(parts.parts[:1]).index_parts()) == 1
    assert opened == Counter(part.id for part in parts.parts)
    opened.clear()
    assert len(parts.only(parts.parts[-1:]).index_parts()) == 1
    assert opened == Counter([parts.parts[-1].id])


def test_a_compaction_reads_what_answers(store):
    tables = [list_subscriptions(part).to_pylist() for part in open_version(store).open_parts()]
    found = {row["subscription_id"]: row["expression"] for rows in tables for row in rows}
    assert found == {"u": "a = 2", "y": "a = 2", "x": "a = 1"}


def test_a_build_keeps_it(store):
    from tamis.spark.jobs.build import is_same, keep_given

    newest = store.current()
    made = replace(newest, parts=newest.parts[:1])
    kept = keep_given(made, newest)
    assert kept.parts == (*made.parts, *newest.silent)
    assert is_same(kept, keep_given(made, kept)), "the next build publishes nothing"


def test_an_update_that_runs_again_is_noticed_behind_it(store):
    from tamis.spark.jobs.update import is_repeated

    contents = build_contents({"u": "a = 2"}, tamis.Schema.of(SCHEMA)).contents
    again = write_part(store.storage, contents, "d" * 64, DELTA, [])
    version = store.current()
    assert is_repeated(store, version, again, [])
    assert not is_repeated(store, version, again, ["x"])
    assert not is_repeated(store, version, replace(again, digest="e" * 64), [])


def test_workers_count_and_find_in_what_answers(store):
    import pyarrow as pa

    from tamis.spark.jobs.update import CountHidden, FindIds

    parts = open_version(store)
    numbers = [pa.RecordBatch.from_pydict({"id": [0, 1]}), pa.RecordBatch.from_pydict({"id": [2]})]
    rows = [row for batch in CountHidden(parts)(numbers) for row in batch.to_pylist()]
    assert {row["part"]: row["n"] for row in rows} == dict(
        zip((part.id for part in parts.parts), (2, 0, 0), strict=True)
    )
    found = [row for batch in FindIds(parts, ("t", "u", "z"))(numbers) for row in batch.to_pylist()]
    assert found == [{"subscription_id": "u"}]
