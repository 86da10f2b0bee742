"""`tamis.open` of a store: a version answers as a saved index of the same subscriptions."""

from __future__ import annotations

import pickle
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import tamis
from tamis.errors import IndexFormatError, InputError, MissingOperatorError
from tamis.index.build import build_contents
from tamis.operators.registry import Registry, operator
from tamis.versions import IndexStore
from tamis.versions.manifest import BASE, DELTA, Version
from tamis.versions.part_files import write_part
from tests.versions.object_store import object_store  # noqa: F401 - a fixture
from tests.waiting import HANG_SECONDS

SCHEMA = "a INT, b STRING"
MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
EVENTS = [{"a": a, "b": b} for a in range(-1, 8) for b in ("x", "y", None)]


def add_part(store: IndexStore, kind: str, texts: dict[str, str], removed=(), **details) -> Version:
    """Publish a version with one more part."""
    built = build_contents(texts, tamis.Schema.of(SCHEMA), **details)
    assert built.rejects == []
    part = write_part(store.storage, built.contents, "d" * 64, kind, [], removed)
    return store.publish(
        lambda newest: (
            Version(0, (part,), {"a": "integer", "b": "string"}, "undefined")
            if newest is None or kind == BASE
            else replace(newest, parts=(*newest.parts, part))
        )
    )


@pytest.fixture
def store(tmp_path) -> IndexStore:
    """Two versions: a base, and one more part that replaces, removes and adds."""
    made = IndexStore(tmp_path / "index")
    texts = {f"s{n}": f"a >= {n}" for n in range(6)} | {"always": "TRUE", "never": "FALSE"}
    add_part(
        made,
        BASE,
        texts,
        tags={"s1": ["odd"], "s2": ["even"], "s4": ["even"]},
        attributes={"s1": {"owner": "ann"}, "s4": {"owner": "bob"}},
        validity={"s4": (None, MOMENT), "s5": (MOMENT, None)},
    )
    add_part(
        made,
        DELTA,
        {"s2": "b = 'x'", "new": "a = 7 AND b <> 'x'"},
        ["s3", "nobody"],
        tags={"new": ["even"]},
        attributes={"new": {"owner": "cid", "title": "New"}},
    )
    return made


LIVE = {
    "s0": "a >= 0",
    "s1": "a >= 1",
    "s4": "a >= 4",
    "s5": "a >= 5",
    "always": "TRUE",
    "never": "FALSE",
    "s2": "b = 'x'",
    "new": "a = 7 AND b <> 'x'",
}
BEFORE, AFTER = MOMENT - timedelta(days=1), MOMENT


def awake(at: datetime) -> dict[str, str]:
    asleep = "s5" if at < MOMENT else "s4"
    return {name: text for name, text in LIVE.items() if name != asleep}


def test_the_newest_version_is_opened(store):
    index = tamis.open(store.uri)
    assert index.version == "v00000002"
    assert (len(index), sorted(index)) == (len(LIVE), sorted(LIVE))
    assert ("s3" in index, "new" in index) == (False, True)
    assert {name: index.expression(name) for name in index} == LIVE
    with pytest.raises(InputError, match='no subscription "s3"'):
        index.expression("s3")


@pytest.mark.parametrize("version", [1, "v00000001"])
def test_an_older_version_is_opened_by_number_or_name(store, version):
    index = tamis.open(store.uri, version=version)
    assert (index.version, len(index), "new" in index) == ("v00000001", 8, False)
    assert "s3" in index.match({"a": 3}, at=BEFORE)


@pytest.mark.parametrize("at", [BEFORE, AFTER])
def test_every_mode_answers_as_a_saved_index(store, at):
    index, like = tamis.open(store.uri), tamis.build(awake(at), SCHEMA)
    lists = index.match_lists(EVENTS, at=at).to_pylist()
    assert list(map(set, lists)) == list(map(set, like.match_lists(EVENTS).to_pylist()))
    assert [index.match(event, at=at) for event in EVENTS] == lists
    assert index.count_by_event(EVENTS, at=at).tolist() == list(map(len, lists))
    rows = index.match_batch(EVENTS, at=at).to_pylist()
    assert [row["subscription_id"] for row in rows] == [one for own in lists for one in own]
    counts = dict(zip(index, index.count_by_subscription(EVENTS, at=at).tolist(), strict=True))
    wanted = dict(zip(like, like.count_by_subscription(EVENTS).tolist(), strict=True))
    assert counts == dict.fromkeys(LIVE, 0) | wanted


def test_subsets_tags_and_attributes(store):
    index = tamis.open(store.uri)
    event = {"a": 7, "b": "y"}
    assert index.tagged("even") == ["s4", "new"]  # s2 lost its tag when it was replaced
    assert index.match(event, tagged="even", at=BEFORE) == ["s4", "new"]
    assert index.match(event, subset=["new", "s1", "s2"], at=BEFORE) == ["s1", "new"]
    assert index.attributes("new") == {"tags": ["even"], "owner": "cid", "title": "New"}
    assert index.attributes("s2") == {}
    assert index.attributes("s4")["valid_until"] == MOMENT
    table = index.match_batch([event], columns=["owner", "title"], at=BEFORE)
    found = {row["subscription_id"]: (row["owner"], row["title"]) for row in table.to_pylist()}
    assert found["s4"] == ("bob", None)
    assert found["new"] == ("cid", "New")
    with pytest.raises(InputError, match="no subscription has 'titel'"):
        index.match_batch([event], columns=["titel"])


def test_explanations_are_of_the_newest_part(store):
    index = tamis.open(store.uri)
    assert index.explain("s2", {"a": 2, "b": "x"}).matches
    assert not index.explain("s2", {"a": 2, "b": "y"}).matches
    assert not index.explain("s4", {"a": 4}, at=AFTER).matches


def test_random_versions_answer_as_their_live_set(tmp_path, seed):
    rng = random.Random(seed)
    store = IndexStore(tmp_path / "index")
    live = {f"s{n}": f"a = {n % 5}" for n in range(20)}
    add_part(store, BASE, live)
    for _ in range(6):
        changed = {f"s{rng.randrange(30)}": f"a >= {rng.randrange(6)}" for _ in range(4)}
        removed = [f"s{rng.randrange(30)}" for _ in range(3)]
        add_part(store, DELTA, changed, removed)
        live = {one: text for one, text in live.items() if one not in removed} | changed
        index, like = tamis.open(store.uri), tamis.build(live, SCHEMA)
        assert sorted(index) == sorted(live)
        for event in EVENTS:
            assert sorted(index.match(event)) == sorted(like.match(event))
    for version in store.versions():
        assert len(tamis.open(store.uri, version=version.number).parts) == len(version.parts)


# ── operators ───────────────────────────────────────────────────────────────────────────────


def test_operators_and_bindings(tmp_path):
    registry = Registry()
    operator("nearby(?integer)", timeout=None, registry=registry)(lambda event: [event["a"] + 1])
    store = IndexStore(tmp_path / "index")
    for kind, name in ((BASE, "old"), (DELTA, "new")):
        texts = {name: "nearby(?n) AND ?n > 3", f"{name} too": "a >= 0"}
        add_part(store, kind, texts, operators=registry.signatures)
    index = tamis.open(store.uri, operators=registry)
    assert sorted(index.match({"a": 3})) == ["new", "new too", "old", "old too"]
    assert index.match({"a": 2}) == ["old too", "new too"]
    assert index.match_bindings({"a": 3})["new"] == {"n": 4}
    rows = index.match_batch([{"a": 3}], bindings=True).to_pylist()
    assert {row["subscription_id"]: row["bindings"] for row in rows}["old"] == '{"n": 4}'
    with pytest.raises(MissingOperatorError, match="near"):
        tamis.open(store.uri)
    assert sorted(tamis.open(store.uri, operators=None)) == ["new", "new too", "old", "old too"]


# ── how it is opened ────────────────────────────────────────────────────────────────────────


def test_pickled_is_the_path_and_the_version(store):
    pickled = pickle.dumps(tamis.open(store.uri))
    assert len(pickled) < 1_000
    store.roll_back(1)
    again = pickle.loads(pickled)
    assert (again.version, sorted(again)) == ("v00000002", sorted(LIVE))
    assert tamis.open(store.uri).version == "v00000003"


def test_another_process_opens_what_was_pickled(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pickled").write_bytes(pickle.dumps(tamis.open("index")))
    script = "import pickle, sys; print(sorted(pickle.load(open(sys.argv[1], 'rb'))))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, tmp_path / "pickled"],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
        cwd="/",
    )
    assert done.stdout == f"{sorted(LIVE)}\n"


def test_a_store_that_was_rebuilt_is_not_the_one_that_was_pickled(store):
    pickled = pickle.dumps(tamis.open(store.uri, version=1))
    shutil.rmtree(store.uri)
    add_part(store, BASE, {"other": "a = 1"})
    with pytest.raises(
        IndexFormatError, match=r"v00000001 in .* is not the version that was pickled"
    ):
        pickle.loads(pickled)


@pytest.mark.parametrize("options", [{"trusted": False}, {"mmap": False}, {"verify": False}])
def test_options_are_those_of_a_saved_index(store, options):
    index = tamis.open(store.uri, **options)
    assert "new" in index.match({"a": 7, "b": "y"})
    assert sorted(pickle.loads(pickle.dumps(index))) == sorted(LIVE)


def test_an_object_store_is_opened_by_its_uri(object_store, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    store = IndexStore(object_store)
    add_part(store, BASE, {"x": "a = 1", "y": "a = 2"})
    add_part(store, DELTA, {"y": "a = 1"}, ["x"])
    assert tamis.open(object_store).match({"a": 1}) == ["y"]
    assert tamis.open(object_store, version=1).match({"a": 1}) == ["x"]


def test_whoever_opened_a_version_keeps_it(store):
    index = tamis.open(store.uri)
    shutil.rmtree(store.uri)
    assert "new" in index.match({"a": 7, "b": "y"})


# ── errors ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", [9, "9", "v00000009", "nine", 0, -1])
def test_a_version_that_is_not_there(store, version):
    with pytest.raises(IndexFormatError, match="has no version") as raised:
        tamis.open(store.uri, version=version)
    assert raised.value.hint.startswith("existing versions: v00000001, v00000002")
    assert "deleted" not in raised.value.hint


def test_a_deleted_version_is_named_as_such(store):
    shutil.rmtree(store.storage.local_path("v00000001"))
    with pytest.raises(IndexFormatError, match='has no version "v00000001"') as raised:
        tamis.open(store.uri, version=1)
    assert raised.value.hint.endswith("; that one was deleted")


def test_a_version_of_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(IndexFormatError, match="nothing has no version") as raised:
        tamis.open(tmp_path / "nothing", version=1)
    assert raised.value.hint == "that folder does not exist"
    (tmp_path / "nothing").mkdir()
    with pytest.raises(IndexFormatError, match="nothing has no version") as raised:
        tamis.open(tmp_path / "nothing", version=1)
    assert raised.value.hint == "it holds no versions"


@pytest.mark.parametrize("version", [1, "1", "00000001", "v00000001", np.int64(1)])
def test_a_version_is_named_by_its_number_or_its_name(store, version):
    assert tamis.open(store.uri, version=version).version == "v00000001"


@pytest.mark.parametrize("version", [1.0, True, b"v1", [1]])
def test_what_cannot_name_a_version(store, version):
    with pytest.raises(InputError, match="a number such as 1 or a name such as v00000001"):
        tamis.open(store.uri, version=version)


def test_the_folder_of_a_version_is_recognised(store):
    with pytest.raises(IndexFormatError, match="is one version of an index") as raised:
        tamis.open(f"{store.uri}/v00000002")
    assert 'version="v00000002"' in raised.value.hint


def test_a_saved_index_has_no_versions(tmp_path):
    tamis.build({"x": "a = 1"}).save(tmp_path / "saved")
    assert tamis.open(tmp_path / "saved").version is None
    with pytest.raises(InputError, match="is one saved index, without versions"):
        tamis.open(tmp_path / "saved", version=1)


@pytest.mark.parametrize(
    ("name", "text"),
    [("nowhere", "does not exist"), ("file", "is a file"), ("folder", "has no manifest.json")],
)
def test_other_places_are_no_index(tmp_path, name, text):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IndexFormatError, match=text):
        tamis.open(tmp_path / name)


def test_versions_are_not_signed(store):
    with pytest.raises(InputError, match="holds versions, which are not signed") as raised:
        tamis.open(store.uri, key="k" * 16)
    assert "tamis build --sign" in raised.value.hint


@pytest.mark.parametrize("name", ["manifest.json", "removed.parquet"])
def test_a_damaged_part_is_refused(store, name):
    part = store.current().parts[-1]
    file = store.storage.local_path(f"{part.folder}/{name}")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(IndexFormatError, match=f"{part.id}/{name} is damaged"):
        tamis.open(store.uri)


def test_an_index_of_several_parts_is_not_saved(store, tmp_path):
    with pytest.raises(InputError, match="2 parts"):
        tamis.open(store.uri).save(tmp_path / "saved")


def test_a_place_that_is_no_path_is_refused():
    with pytest.raises(InputError, match="the place of an index is a dict") as refused:
        IndexStore({"a": "b = 1"})
    assert "swapped" in (refused.value.hint or "")
