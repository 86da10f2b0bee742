"""What happens to stores: flipped bits, foreign files, dead writers, power cuts."""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from tamis import durable
from tamis.errors import ExpressionError, IndexFormatError, InputError, TamisWarning
from tamis.index.build import build_contents
from tamis.places import CURRENT
from tamis.versions import part_set
from tamis.versions.manifest import DELTA
from tamis.versions.opening import open_version
from tamis.versions.part_files import (
    REJECTS,
    REMOVED,
    is_whole,
    write_part,
)
from tamis.versions.storage import Storage
from tamis.versions.store import IndexStore, Retention
from tamis.versions.tables import list_subscriptions, read_rejects
from tests.effort import examples
from tests.versions.object_store import object_store  # noqa: F401 - a fixture
from tests.versions.test_store import version_of, write

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING = timedelta(0)
ALL_GO = Retention(versions=1, replaced_within=NOTHING, leftovers_for=NOTHING)


def publish(store: IndexStore, *parts) -> None:
    store.publish(lambda newest: version_of(*parts), is_afresh=True)


@pytest.fixture
def store(tmp_path) -> IndexStore:
    return IndexStore(tmp_path / "index")


# ── flipped bits ────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A version with every kind of file: validity, owners, rejects, removed subscriptions."""
    store = IndexStore(tmp_path_factory.mktemp("written") / "index")
    ids = [f"s{number}" for number in range(30)]
    contents = build_contents(
        {one: f"a >= {n} AND b <> 'x{n}'" for n, one in enumerate(ids)},
        validity={one: (None, MOMENT) for n, one in enumerate(ids) if n % 3},
        attributes={one: {"owner": f"o{n}"} for n, one in enumerate(ids)},
    ).contents
    wrong = ExpressionError("unexpected-token", "no", span=(0, 1), text="a >", subscription_id="w")
    base = write_part(store.storage, contents, "a" * 64, "base", [wrong])
    more = build_contents({"s3": "a = 7", "more": "a = 1"}).contents
    delta = write_part(store.storage, more, "b" * 64, DELTA, [], ["s4", "s9"])
    publish(store, base, delta)
    return Path(store.uri)


def answers(path: Path) -> list:
    """All that a version can be asked."""
    part_set._OPEN.clear()
    opened = open_version(path, at=MOMENT - timedelta(days=1))
    later = open_version(path, at=MOMENT)
    moments = [(opened, a) for a in (1, 7, 30)] + [(later, 30)]
    found = [sorted(own.open().match({"a": a, "b": "y"}, at=own.at)) for own, a in moments]
    found += [read_rejects(opened, part).to_pylist() for part in opened.parts]
    found += [list_subscriptions(part).to_pylist() for part in opened.open_parts()]
    return found


def flip(file: Path, rng: Random) -> bytes:
    """Flip one bit; what was there before."""
    before = file.read_bytes()
    flipped = bytearray(before)
    flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    file.write_bytes(flipped)
    return before


@pytest.mark.parametrize(
    "n_flips", [10, pytest.param(150, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_flipped_bit_in_any_file_is_noticed(written, tmp_path, seed, n_flips):
    """Every answer is right, or an error says that the index is damaged."""
    copy = Path(shutil.copytree(written, tmp_path / "index"))
    right = answers(copy)
    assert right[1] != right[2], "the test asks for something"
    version = IndexStore(copy).current()
    rng = Random(seed)
    files = sorted(file for file in copy.rglob("*") if file.is_file())
    assert {file.name for file in files} >= {REJECTS, REMOVED, CURRENT, "manifest.json"}
    for file in files:
        for _ in range(examples(n_flips)):
            before = flip(file, rng)
            parts = [part for part in version.parts if part.id == file.parent.name]
            assert not any(is_whole(Storage(copy), part) for part in parts), file
            if file.name == CURRENT:
                assert answers(copy) == right
            else:
                with suppress(IndexFormatError):
                    assert answers(copy) == right, file
                    # A base removes nothing: nobody reads that it does not.
                    is_read = bool(parts) and (parts[0].kind == DELTA or file.name != REMOVED)
                    assert not is_read, f"{file}: nobody noticed"
            file.write_bytes(before)
    assert answers(copy) == right


@pytest.mark.parametrize("name", [REJECTS, REMOVED])
def test_a_table_of_other_columns_is_refused(written, tmp_path, name):
    """Also where the checksum is right: somebody has written it."""
    copy = Path(shutil.copytree(written, tmp_path / "index"))
    opened = open_version(copy)
    part = next(part for part in opened.parts if (part.kind == DELTA) == (name == REMOVED))
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"other": [1]}), copy / part.folder / name)
    checksum = Storage(copy).checksum(f"{part.folder}/{name}")
    changed = replace(part, checksums=part.checksums | {name: checksum})
    with pytest.raises(IndexFormatError, match=f"{name} is damaged: its columns are other"):
        opened.read(changed, name)


# ── the newest version ──────────────────────────────────────────────────────────────────────


def damage_pointer(store: IndexStore, how: str) -> None:
    path = store.storage.local_path(CURRENT)
    path.unlink()
    if how == "a folder":
        path.mkdir()
        (path / "file").write_text("")
    elif how != "gone":
        path.write_text(
            {
                "it lags": '{"version": 1, "name": "v00000001"}',
                "it is ahead": '{"version": 7, "name": "v00000007"}',
                "brackets": "[" * 100_000,
                "digits": f'{{"version": {"9" * 4_000}}}',
                "more digits": f'{{"version": {"9" * 5_000}}}',
                "nothing": "",
                "a list": "[1]",
            }[how]
        )


@pytest.mark.parametrize(
    "how",
    [
        *("gone", "it lags", "it is ahead", "brackets", "digits", "more digits", "nothing"),
        *("a list", "a folder"),
    ],
)
def test_the_highest_manifest_is_the_truth(store, how):
    for number in range(3):
        publish(store, write(store, {f"v{number}": "a = 1"}))
    damage_pointer(store, how)
    assert store.current().number == 3
    assert open_version(store).open().match({"a": 1}) == ["v2"]
    part = write(store, {"next": "a = 1"})
    if how == "a folder":
        with pytest.warns(TamisWarning, match="v00000004 is published, but CURRENT does not name"):
            publish(store, part)
    else:
        publish(store, part)
        assert json.loads(store.storage.read(CURRENT))["version"] == 4
    assert store.current().number == 4
    assert len(store.prune(ALL_GO)) == 6


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, '{"format": "other"}', "9" * 5_000])
def test_a_damaged_manifest_leaves_the_one_before(store, content):
    for number in range(3):
        publish(store, write(store, {f"v{number}": "a = 1"}))
    (Path(store.uri) / "v00000003" / "manifest.json").write_text(content)
    with pytest.warns(TamisWarning, match="not the manifest of an index version; v00000002"):
        assert store.current().number == 2
    with pytest.raises(IndexFormatError, match="not the manifest of an index version"):
        store.publish(lambda newest: newest)  # what was in the damaged one would be lost
    back = store.roll_back(2)
    assert (back.number, store.current()) == (4, back)


def test_a_manifest_in_the_place_of_another(store):
    for number in range(2):
        publish(store, write(store, {f"v{number}": "a = 1"}))
    root = Path(store.uri)
    shutil.copytree(root / "v00000001", root / "v00000009")
    with pytest.warns(
        TamisWarning, match="is the manifest of v00000001; v00000002 is used instead"
    ):
        assert store.current().number == 2


@pytest.mark.parametrize("name", ["v٠٠٠٠٠٠٠٩", "v0000009", f"v{'9' * 200}", "w00000009"])
def test_other_folders_are_no_versions(store, name):
    publish(store, write(store, {"x": "a = 1"}))
    shutil.copytree(Path(store.uri) / "v00000001", Path(store.uri) / name)
    assert store.numbers() == [1]
    with pytest.raises(IndexFormatError, match="no version"):
        store.version(name)


def test_a_damaged_old_manifest_does_not_stop_pruning(store):
    parts = [write(store, {"x": f"a = {number}"}) for number in range(5)]
    for part in parts:
        publish(store, part)
    (Path(store.uri) / "v00000002" / "manifest.json").write_text("[" * 100_000)
    assert store.numbers() == [1, 2, 3, 4, 5]
    assert store.prune(Retention(versions=2)) == []
    gone = store.prune(Retention(versions=2, replaced_within=NOTHING))
    # The damaged one's part is nobody's: it goes when it is old.
    assert gone[:3] == ["v00000001", "v00000002", "v00000003"]
    assert sorted(gone[3:]) == sorted(parts[number].folder for number in (0, 2))
    assert store.prune(Retention(versions=2, leftovers_for=NOTHING)) == [parts[1].folder]
    assert store.numbers() == [4, 5]


def test_parts_stay_while_a_damaged_version_may_name_them(store):
    parts = [write(store, {"x": f"a = {number}"}) for number in range(3)]
    for part in parts:
        publish(store, part)
    (Path(store.uri) / "v00000003" / "manifest.json").write_text("{")
    assert store.prune(ALL_GO) == ["v00000001"]
    assert all(is_whole(store.storage, part) for part in parts)


# ── publishing that took place ──────────────────────────────────────────────────────────────


def test_a_version_that_is_there_was_published(store, monkeypatch):
    """Whatever fails after its manifest has its name."""
    part = write(store, {"x": "a = 1"})
    sync_directory = durable.sync_directory

    def fail(directory: Path) -> None:
        if (directory / "manifest.json").exists():
            raise OSError(5, "Input/output error")
        sync_directory(directory)

    monkeypatch.setattr(durable, "sync_directory", fail)
    with pytest.warns(TamisWarning, match="v00000001 is published, but may not survive"):
        publish(store, part)
    monkeypatch.undo()
    assert store.current().number == 1


def test_a_version_that_is_not_there_was_not_published(store, monkeypatch):
    part = write(store, {"x": "a = 1"})

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(InputError, match="No space left"):
        publish(store, part)
    monkeypatch.undo()
    assert store.numbers() == []


def test_a_claim_that_stays_is_no_failure(object_store, monkeypatch):  # noqa: F811
    store = IndexStore(object_store)
    part = write(store, {"x": "a = 1"})

    def fail(self: Storage, name: str) -> None:
        raise InputError(f"cannot delete {name}")

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "delete", fail)
        with pytest.warns(TamisWarning, match="v00000001 is published"):
            publish(store, part)
    assert store.current().number == 1
    assert any(".claim-" in stored.name for stored in store.storage.list("v00000001"))
    publish(store, part)
    assert store.prune(ALL_GO) == ["v00000001"]
    assert store.storage.list("v00000001") == []


def test_claims_of_the_dead_are_removed(object_store, monkeypatch):  # noqa: F811
    storage = Storage(object_store)
    storage.write("folder/object.claim-dead", b"")
    monkeypatch.setattr("tamis.versions.storage.CLAIM_SECONDS", -1.0)
    assert not storage._is_alone("folder/object", "folder/object.claim-unknown")
    storage.write("folder/object.claim-own", b"")
    assert storage._is_alone("folder/object", "folder/object.claim-own")
    assert [stored.name for stored in storage.list("folder")] == ["folder/object.claim-own"]


# ── foreign files ───────────────────────────────────────────────────────────────────────────


def test_pruning_leaves_foreign_files_alone(store):
    for number in range(3):
        publish(store, write(store, {"x": f"a = {number}"}))
    root = Path(store.uri)
    (part,) = store.version(1).parts
    foreign = [
        root / "parts" / "engine" / "manifest.json",
        root / "parts" / "engine" / "deep" / "details.parquet",
        root / "parts" / "wheel.txt",
        root / part.folder / "notes.txt",
        root / part.folder / "deep" / "manifest.json",
        root / "v00000001" / "notes.txt",
        root / "v1" / "manifest.json",
        root / "data.csv",
    ]
    for file in foreign:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("precious")
    gone = store.prune(ALL_GO)
    assert gone[:2] == ["v00000001", "v00000002"]
    assert part.folder in gone
    assert all(file.read_text() == "precious" for file in foreign)
    assert sorted(path.name for path in (root / part.folder).iterdir()) == ["deep", "notes.txt"]
    assert not (root / "v00000002").exists()
    assert open_version(store).open().match({"a": 2}) == ["x"]


@pytest.mark.parametrize("content", ["MANIFEST-000004\n", '{"version": 1}', "[1]", ""])
def test_a_folder_of_another_program_is_not_built_into(tmp_path, content):
    (tmp_path / CURRENT).write_text(content)
    with pytest.raises(InputError, match=r"CURRENT is not an index's file: it is not overwritten"):
        IndexStore(tmp_path).expect_room()
    assert (tmp_path / CURRENT).read_text() == content


def test_a_folder_whose_versions_were_removed_can_be_built_into(store):
    publish(store, write(store, {"x": "a = 1"}))
    shutil.rmtree(Path(store.uri) / "v00000001")
    store.expect_room()


# ── leftovers and power cuts ────────────────────────────────────────────────────────────────


def leave_draft(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".tamis-{os.urandom(8).hex()}.draft"
    draft.write_text("half")
    return draft


def test_drafts_of_dead_writers_are_removed(store):
    publish(store, write(store, {"x": "a = 1"}))
    root = Path(store.uri)
    drafts = [leave_draft(root / place) for place in ("", "v00000001", "v00000002", "parts")]
    half = root / "parts" / ".tamis-0123456789abcdef.draft"
    half.mkdir()
    (half / "details.parquet").write_text("half")
    publish(store, write(store, {"x": "a = 2"}))
    store.prune()
    assert not any(draft.exists() for draft in [*drafts, half])


def test_a_part_is_on_disk_before_it_has_its_name(store, monkeypatch):
    synced: set[int] = set()
    fsync = os.fsync
    parts = Path(store.uri) / "parts"

    def watch(descriptor: int) -> None:
        found = os.fstat(descriptor)
        synced.add(found.st_ino)
        if stat.S_ISDIR(found.st_mode) and parts.exists() and any(parts.glob("[0-9a-f]*")):
            synced.add(-found.st_ino)  # after the part has its name
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    part = write(store, {"x": "a = 1"})
    files = [path.stat().st_ino for path in (parts / part.id).iterdir()]
    assert len(files) == 4
    assert synced >= {*files, (parts / part.id).stat().st_ino, -parts.stat().st_ino}
    assert Path(store.uri).stat().st_ino in synced
