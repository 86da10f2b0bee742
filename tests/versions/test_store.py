"""Versions on storage: published whole, by many at once, pruned, read by whoever opened them."""

from __future__ import annotations

import json
import os
import pickle
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context

import pyarrow as pa
import pytest

import tamis
from tamis.errors import IndexFormatError, InputError
from tamis.index.build import build_contents
from tamis.language.limits import NO_LIMITS
from tamis.places import CURRENT
from tamis.versions import manifest, part_files, storage
from tamis.versions.cache import PartCache
from tamis.versions.manifest import BASE, Version, read_version
from tamis.versions.opening import open_version
from tamis.versions.part_files import digest_rows, write_part
from tamis.versions.part_set import _OPEN, PartSet
from tamis.versions.storage import Storage
from tamis.versions.store import IndexStore, Retention
from tests.versions.object_store import object_store  # noqa: F401 - a fixture

FOREVER = Retention(versions=100)
NOTHING = timedelta(0)


def write(store: IndexStore, subscriptions: dict[str, str], kind: str = BASE, removed=()):
    built = build_contents(subscriptions)
    return write_part(store.storage, built.contents, "d" * 64, kind, [], removed)


def reseal(body: bytes, **changed) -> bytes:
    """A manifest whose checksum is right."""
    shown = json.loads(body) | changed
    return json.dumps(shown | {"checksum": manifest.checksum_of(shown)}).encode()


def version_of(*parts) -> Version:
    return Version(0, tuple(parts), {"a": "integer"}, "undefined")


@pytest.fixture(params=["local", "objects"])
def store(request, tmp_path, monkeypatch) -> IndexStore:
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    if request.param == "local":
        return IndexStore(tmp_path / "index")
    return IndexStore(request.getfixturevalue("object_store"))


def test_the_digest_of_rows(seed):
    """It depends on every value, and not on how the rows are cut into chunks."""
    draw = random.Random(seed)
    n_rows = part_files._HASHED + 1_000
    rows = pa.table({"id": [f"s{at}" for at in range(n_rows)], "text": ["a = 1"] * n_rows})
    digest = digest_rows(rows, "undefined", NO_LIMITS)
    ends = [0, *sorted(draw.choices(range(n_rows), k=20)), n_rows]
    cut = [rows.slice(ends[at], ends[at + 1] - ends[at]) for at in range(len(ends) - 1)]
    assert digest_rows(pa.concat_tables(cut), "undefined", NO_LIMITS) == digest
    changed = ["a = 1"] * n_rows
    changed[draw.randrange(n_rows)] = "a = 2"
    others = [
        (rows.set_column(1, "text", pa.array(changed)), "undefined"),
        (rows.slice(1), "undefined"),
        (rows.rename_columns(["id", "other"]), "undefined"),
        (rows, "satisfies_negation"),
    ]
    found = {digest_rows(own, missing, NO_LIMITS) for own, missing in others}
    assert len(found - {digest}) == len(others)


def test_a_relative_path_means_the_same_to_a_worker_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(Storage("index"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(sent).local_path("x") == tmp_path / "index" / "x"


def test_published_version_is_current(store):
    with pytest.raises(IndexFormatError, match="holds no version"):
        store.current()
    part = write(store, {"x": "a = 1"})
    first = store.publish(lambda newest: version_of(part))
    assert (first.name, store.current()) == ("v00000001", first)
    other = write(store, {"x": "a = 2"})
    second = store.publish(lambda newest: replace(newest, parts=(*newest.parts, other)))
    assert store.current() == second
    assert second.parts == (part, other)
    assert store.version("v00000001") == first
    index = open_version(store).open()
    assert (index.match({"a": 1}), index.match({"a": 2})) == (["x"], ["x"])


def test_a_version_is_not_published_without_its_parts(store):
    part = write(store, {"x": "a = 1"})
    store.storage.delete(part.folder)
    with pytest.raises(IndexFormatError, match="is missing; nothing was published"):
        store.publish(lambda newest: version_of(part))
    assert store.current_or_none() is None


def test_many_publishers_lose_nothing(store):
    part = write(store, {"x": "a = 1"})

    def add(word: str) -> None:
        own = IndexStore(store.uri)
        own.publish(
            lambda newest: replace(
                newest or version_of(part),
                provenance={**(newest.provenance if newest else {}), word: 1},
            )
        )

    words = [f"w{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, words))
    assert sorted(store.current().provenance) == words
    assert store.numbers() == list(range(1, 9))
    assert json.loads(store.storage.read(CURRENT))["version"] == 8


@pytest.mark.parametrize(("seconds", "is_dead"), [(30, False), (90, True)])
def test_the_claim_of_a_dead_writer_counts_for_a_while_only(
    object_store,  # noqa: F811
    monkeypatch,
    seconds,
    is_dead,
):
    objects = Storage(object_store)
    left = f"one{storage.CLAIM}dead"
    objects.write(left, b"")
    list_all = Storage.list

    def list_aged(self, *arguments, **options):
        age = timedelta(seconds=seconds)
        return [
            replace(stored, changed_at=stored.changed_at - age * (stored.name == left))
            for stored in list_all(self, *arguments, **options)
        ]

    monkeypatch.setattr(Storage, "list", list_aged)
    monkeypatch.setattr(storage, "CLAIM_ATTEMPTS", 2)
    if is_dead:
        assert objects.create("one", b"1")
        assert objects.read("one") == b"1"
        assert not objects.create("one", b"2")
    else:
        with pytest.raises(InputError, match="too many other processes"):
            objects.create("one", b"1")


def test_a_lost_or_torn_pointer_is_made_up_for(store):
    part = write(store, {"x": "a = 1"})
    version = store.publish(lambda newest: version_of(part))
    for torn in (b"", b"{", b'{"version": "x"}', b'{"version": 99}'):
        store.storage.write(CURRENT, torn)
        assert store.current() == version
    store.storage.delete(CURRENT)
    assert store.current() == version


def test_rolling_back_is_a_new_version(store):
    one, two = write(store, {"x": "a = 1"}), write(store, {"x": "a = 2"})
    store.publish(lambda newest: version_of(one))
    store.publish(lambda newest: version_of(two))
    back = store.roll_back(1)
    assert (back.number, back.parts) == (3, (one,))
    assert store.current() == back


def test_pruning_keeps_what_the_policy_says(store):
    parts = [write(store, {"x": f"a = {n}"}) for n in range(4)]
    for part in parts:
        store.publish(lambda newest, part=part: version_of(part))
    assert store.prune(Retention(versions=2)) == []  # replaced only lately
    reader = open_version(store, "v00000001")
    opened = reader.open()
    gone = store.prune(Retention(versions=2, replaced_within=NOTHING))
    assert gone[:2] == ["v00000001", "v00000002"]
    assert sorted(gone[2:]) == sorted(part.folder for part in parts[:2])
    assert store.numbers() == [3, 4]
    assert opened.match({"a": 0}) == ["x"]  # whoever has opened a version keeps it
    with pytest.raises(IndexFormatError, match='no version "v00000001"') as raised:
        store.version(1)
    assert "v00000003" in raised.value.hint


def test_a_version_is_kept_for_some_time_after_it_was_replaced(store, monkeypatch):
    """However old it is itself: somebody may have opened it just now."""
    parts = [write(store, {"x": f"a = {n}"}) for n in range(2)]
    ages = iter([timedelta(days=30), timedelta(0)])

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - next(ages)

    with monkeypatch.context() as patched:
        patched.setattr(manifest, "datetime", Clock)
        for part in parts:
            store.publish(lambda newest, part=part: version_of(part))
    assert [store.version(n).created_at[:10] for n in (1, 2)] == [
        (datetime.now(UTC) - timedelta(days=30)).date().isoformat(),
        store.current().created_at[:10],
    ]
    policy = Retention(versions=1, replaced_within=timedelta(days=1), leftovers_for=NOTHING)
    assert store.prune(policy) == []
    assert open_version(store, 1).open().match({"a": 0}) == ["x"]
    assert store.prune(replace(policy, replaced_within=NOTHING))[0] == "v00000001"


def test_current_ends_at_the_newest_version_when_publishers_overtake_each_other(store, monkeypatch):
    part = write(store, {"x": "a = 1"})
    write_one, others, published = Storage.write, ["one", "another"], []

    def overtaken(self, name, body):
        """Somebody else publishes, whole, just before this one's CURRENT is written."""
        if name == CURRENT and others:
            others.pop()
            published.append(IndexStore(store.uri).publish(lambda newest: version_of(part)))
        write_one(self, name, body)

    monkeypatch.setattr(Storage, "write", overtaken)
    published.append(store.publish(lambda newest: version_of(part)))
    assert [version.number for version in published] == [3, 2, 1]
    assert json.loads(store.storage.read(CURRENT))["version"] == 3
    assert store.current().number == 3


def test_leftovers_of_dead_builders_go_when_they_are_old(store):
    named, left = write(store, {"x": "a = 1"}), write(store, {"x": "a = 2"})
    store.publish(lambda newest: version_of(named))
    assert store.prune(FOREVER) == []
    assert store.prune(replace(FOREVER, leftovers_for=NOTHING)) == [left.folder]
    assert open_version(store).open().match({"a": 1}) == ["x"]


def test_a_policy_keeps_at_least_the_current_version():
    with pytest.raises(InputError, match="at least 1"):
        Retention(versions=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: body[: len(body) // 2], "is not the manifest"),
        (lambda body: b"[]", "is not the manifest"),
        (lambda body: body.replace(b'"undefined"', b'"undefinde"'), "checksum is wrong"),
        (lambda body: body.replace(b'"format_version": 2', b'"format_version": 9'), "version 9"),
        (lambda body: b"[" * 100_000, "is not the manifest"),
        (lambda body: b"9" * 5_000, "is not the manifest"),
        (lambda body: reseal(body, parts=[{}]), "damaged: KeyError"),
        (lambda body: reseal(body, parts=[{"id": "../../x", "checksums": {}}]), "part '../../x'"),
        (lambda body: reseal(body, parts=5), "damaged: TypeError"),
        (
            lambda body: reseal(body, parts=[json.loads(body)["parts"][0] | {"kind": "live"}]),
            'a part of the kind "live"; this program reads base, delta',
        ),
        (lambda body: reseal(body, provenance=None, parts=[{"id": "x" * 29}]), "damaged"),
    ],
)
def test_a_damaged_manifest_is_refused(change, said, tmp_path):
    store = IndexStore(tmp_path)
    body = store.publish(lambda newest: version_of(write(store, {"x": "a = 1"}))).to_bytes()
    assert read_version(body, "m").n_subscriptions == 1
    with pytest.raises(IndexFormatError, match=said):
        read_version(change(body), "m")


def test_an_altered_part_is_refused(tmp_path):
    store = IndexStore(tmp_path)
    part = write(store, {"x": "a = 1"})
    store.publish(lambda newest: version_of(part))
    manifest = tmp_path / part.folder / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    with pytest.raises(IndexFormatError, match="not the one that the version was published with"):
        open_version(store).open()
    manifest.unlink()
    with pytest.raises(IndexFormatError, match="incomplete, or its version was pruned"):
        open_version(store).open()


def test_a_path_that_is_no_storage_is_refused():
    with pytest.raises(InputError, match="cannot be used as storage"):
        Storage("gopher://somewhere/else")


def test_a_plain_artefact_is_a_version_of_one_part(tmp_path):
    tamis.build({"x": "a = 1 AND geo.lat > 1.5"}).save(tmp_path / "plain")
    parts = open_version(tmp_path / "plain")
    assert parts.version.attributes == [("a",), ("geo", "lat")]
    assert parts.open().match({"a": 1, "geo": {"lat": 2}}) == ["x"]
    with pytest.raises(InputError, match="without versions"):
        open_version(tmp_path / "plain", 3)
    with pytest.raises(InputError, match="the path of a saved index is expected"):
        open_version(5)


# ── deltas ──────────────────────────────────────────────────────────────────────────────────


def test_a_delta_hides_what_it_replaces_and_removes(tmp_path):
    store = IndexStore(tmp_path)
    base = {f"s{n}": f"a = {n % 3}" for n in range(9)} | {"always": "TRUE", "also": "TRUE"}
    parts = [
        write(store, base),
        write(store, {"s0": "a = 7", "new": "a = 0"}, "delta", ["s3", "always"]),
        write(store, {"s3": "a = 0"}, "delta", ["new"]),
    ]
    store.publish(lambda newest: version_of(*parts))
    index = open_version(store).open()
    found = {a: sorted(index.match({"a": a})) for a in (0, 7)}
    assert found == {0: ["also", "s3", "s6"], 7: ["also", "s0"]}
    version = open_version(store)
    first = version.only(version.parts[:1]).open()
    assert sorted(first.match_lists([{"a": 0}]).to_pylist()[0]) == ["also", "s6"]
    assert first.count_by_event([{"a": 0}]).tolist() == [2]


def test_what_is_hidden_matches_in_no_way(tmp_path):
    """Expressions of several tests, which nothing else shares, hidden in every way there is."""
    store = IndexStore(tmp_path)
    base = {f"s{n}": f"a >= {n} AND b <> 'x{n}'" for n in range(30)}
    parts = [write(store, base), write(store, {}, "delta", [f"s{n}" for n in range(30) if n % 3])]
    store.publish(lambda newest: version_of(*parts))
    index = open_version(store).open()
    for a in (-1, 0, 1, 7, 30):
        event = {"a": a, "b": "y"}
        shown = [f"s{n}" for n in range(30) if n % 3 == 0 and n <= a]
        assert sorted(index.match(event)) == sorted(shown)
        assert sorted(index.match_lists([event]).to_pylist()[0]) == sorted(shown)
        assert index.count_by_event([event]).tolist() == [len(shown)]
        assert index.match_batch([event]).num_rows == len(shown)
        some = index.match_batch([event], subset=["s0", "s3"])
        assert set(some["subscription_id"].to_pylist()) == {"s0", "s3"} & set(shown)
    for gone in ("s1", "s2"):
        assert gone not in index
        with pytest.raises(InputError, match=f'no subscription "{gone}"'):
            index.match_batch([{"a": 1}], subset=["s0", gone])


# ── the cache ───────────────────────────────────────────────────────────────────────────────


def test_copies_are_evicted_by_size_least_recently_used_first(object_store, tmp_path):  # noqa: F811
    store = IndexStore(object_store)
    parts = [write(store, {"x": f"a = {n}"}) for n in range(3)]
    cache = PartCache(tmp_path / "cache", max_bytes=2 * parts[0].n_bytes + 100)
    paths = [cache.fetch(store.storage, part) for part in parts[:2]]
    os.utime(paths[1], (1, 1))
    cache.fetch(store.storage, parts[0])
    third = cache.fetch(store.storage, parts[2])
    assert [path.exists() for path in (*paths, third)] == [True, False, True]
    assert tamis.open(cache.fetch(store.storage, parts[1])).match({"a": 1}) == ["x"]


def test_a_part_larger_than_the_cache_is_still_served(object_store, tmp_path):  # noqa: F811
    store = IndexStore(object_store)
    part = write(store, {"x": "a = 1"})
    path = PartCache(tmp_path / "cache", max_bytes=1).fetch(store.storage, part)
    assert tamis.open(path).match({"a": 1}) == ["x"]


def fetch_many(uri: str, parts: list, seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    found = []
    for _ in range(10):
        number = rng.randrange(len(parts))
        own = PartSet(Storage(uri), version_of(parts[number]), (parts[number],))
        _OPEN.clear()
        found.append(own.open().match({"a": number}))
    return found


def test_processes_share_a_cache_that_is_too_small(object_store, tmp_path, monkeypatch):  # noqa: F811
    store = IndexStore(object_store)
    parts = [write(store, {"x": f"a = {n}"}) for n in range(4)]
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TAMIS_CACHE_BYTES", str(2 * parts[0].n_bytes))
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(fetch_many, store.uri, parts, seed) for seed in range(3)]
        assert all(found == ["x"] for one in asked for found in one.result())


def test_pruned_leftover_ages_are_those_of_the_store(tmp_path):
    store = IndexStore(tmp_path)
    part = write(store, {"x": "a = 1"})
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for path in [*(tmp_path / part.folder).iterdir(), tmp_path / part.folder]:
        os.utime(path, (old, old))
    assert store.prune() == [part.folder]
