"""Where an index is written: by one writer at a time, over indexes only, whoever dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from tamis import durable
from tamis.errors import InputError
from tamis.index import saving
from tamis.index.saving import MANIFEST
from tamis.match.build import build
from tamis.match.index import Index
from tests.match.engines import save_quickly

ROOT = Path(__file__).parents[2]
ROUNDS = pytest.mark.parametrize(
    "n_rounds", [4, pytest.param(100, marks=pytest.mark.slow)], ids=["few", "many"]
)
INDEX = {"new": "a = 1"}


def run_writers(program: str, folder: Path, n_rounds: int, seed: int) -> dict[str, dict[str, int]]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])}
    finished = subprocess.run(
        [sys.executable, "-m", "tests.index.writers", program, folder, str(n_rounds), str(seed)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@ROUNDS
def test_writers_to_one_path(tmp_path, n_rounds, seed):
    """Each reports what it did, the last one's index is there, and readers always find one."""
    seen = run_writers("races", tmp_path, n_rounds, seed)
    assert seen.keys() == {"create", "create or overwrite", "overwrite"}
    for kind, counts in seen.items():
        assert counts == {"rounds": n_rounds}, kind


@ROUNDS
def test_killed_writers(tmp_path, n_rounds, seed):
    """The old index or the new one is there, and the next writer removes what they left."""
    seen = run_writers("kills", tmp_path, n_rounds, seed)
    assert seen.keys() == {"create", "overwrite"}
    for kind, counts in seen.items():
        assert counts["killed"] > 0, kind
        assert (counts["not saved"], counts["left over"]) == (0, 0), kind


def test_a_writer_waits_for_another(tmp_path):
    path = save_quickly(build({"old": "a = 1"}), tmp_path / "index")
    index = build(INDEX)
    writer = Thread(target=lambda: index.save(path, overwrite=True))
    with durable.locked(path):
        before = sorted(path.iterdir())
        writer.start()
        writer.join(0.3)
        assert sorted(path.iterdir()) == before
    writer.join()
    assert Index.open(path).match({"a": 1}) == ["new"]


# ── what is overwritten ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "manifest",
    [
        '{"name": "Web application", "icons": []}',
        '{"format": "web", "content": {"file": "content-0123456789abcdef.bin"}}',
        '{"format": "tamis-index"}',
        '{"format": "tamis-index", "content": {"file": "app.js"}}',
        '{"format": "tamis-index", "content": {"file": "../app.js"}}',
        '{"format": "tamis-index", "content": ["content-0123456789abcdef.bin"]}',
        "[]",
        "[" * 100_000,
        "",
    ],
    ids=lambda text: text[:40],
)
def test_a_folder_of_something_else_stays_as_it_is(tmp_path, manifest):
    place = tmp_path / "application"
    place.mkdir()
    (place / MANIFEST).write_text(manifest)
    for name in ("app.js", "content-main.js", "content-0123456789abcdef.bin"):
        (place / name).write_text("precious")
    before = {path.name: path.read_text() for path in place.iterdir()}
    with pytest.raises(InputError, match="not an index: it is not overwritten") as raised:
        build(INDEX).save(place, overwrite=True)
    assert raised.value.hint
    assert {path.name: path.read_text() for path in place.iterdir()} == before


def test_only_files_of_the_index_are_removed(tmp_path):
    path = save_quickly(build({"old": "a = 1"}), tmp_path / "index")
    ours = ["content-0123456789abcdef.bin", ".tamis-0123456789abcdef.draft", durable.LOCK]
    foreign = ["content-notes.txt", "content-0123.bin", "content-0123456789abcdef.bin.bak", ".env"]
    for name in ours + foreign:
        (path / name).write_text("left")
    before = {one.name for one in path.glob("content-*")} | {MANIFEST}
    build(INDEX).save(path, overwrite=True)
    assert Index.open(path).match({"a": 1}) == ["new"]
    kept = {one.name for one in path.iterdir()}
    assert kept >= set(foreign)
    assert not kept & set(ours)
    assert len(kept) == len(foreign) + 2
    assert len(before & kept) == len(foreign), "the old content is gone too"


@pytest.mark.parametrize("changed", [{"format_version": 1}, {"checksum": 5}, {"schema": None}])
def test_an_index_that_cannot_be_opened_can_be_overwritten(tmp_path, changed):
    path = save_quickly(build({"old": "a = 1"}), tmp_path / "index")
    manifest = json.loads((path / MANIFEST).read_text("utf-8")) | changed
    (path / MANIFEST).write_text(json.dumps(manifest))
    build(INDEX).save(path, overwrite=True)
    assert Index.open(path).match({"a": 1}) == ["new"]
    assert len(list(path.iterdir())) == 2


def test_an_index_behind_a_link_is_overwritten(tmp_path):
    path = save_quickly(build({"old": "a = 1"}), tmp_path / "index")
    (tmp_path / "link").symlink_to(path)
    build(INDEX).save(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert Index.open(path).match({"a": 1}) == ["new"]


# ── leftovers ───────────────────────────────────────────────────────────────────────────────


def test_drafts_of_the_dead_are_removed_and_others_stay(tmp_path):
    dead = tmp_path / ".tamis-0123456789abcdef.draft"
    dead.mkdir()
    (dead / "content-0123456789abcdef.bin").write_text("half")
    other = tmp_path / ".tamis-notes.draft"
    other.mkdir()
    with durable.draft_directory(tmp_path) as living:
        build(INDEX).save(tmp_path / "index")
        assert living.is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"index", other.name}


def test_an_index_that_appears_while_another_is_written(tmp_path, monkeypatch):
    path = tmp_path / "index"
    new_directory = saving.new_directory

    def slowly(target: Path):
        monkeypatch.undo()
        build({"faster": "a = 1"}).save(path)
        return new_directory(target)

    monkeypatch.setattr(saving, "new_directory", slowly)
    with pytest.raises(InputError, match="exists"):
        build(INDEX).save(path)
    assert Index.open(path).match({"a": 1}) == ["faster"]
    monkeypatch.setattr(saving, "_exists", lambda target: False)
    build(INDEX).save(path, overwrite=True)
    assert Index.open(path).match({"a": 1}) == ["new"]
    assert [one.name for one in tmp_path.iterdir()] == ["index"]


def test_what_was_moved_into_place_is_on_disk(tmp_path, monkeypatch):
    """The folder that holds the index is synced after the index has its name."""
    synced = []
    sync_directory = durable.sync_directory

    def watch(directory: Path) -> None:
        synced.append((directory, (tmp_path / "index").exists()))
        sync_directory(directory)

    monkeypatch.setattr(durable, "sync_directory", watch)
    build(INDEX).save(tmp_path / "index")
    assert synced[-1] == (tmp_path, True)


# ── names ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "x" * 5000, "a/" * 3000], ids=len)
@pytest.mark.parametrize("overwrite", [True, False])
def test_names_that_no_file_can_have(tmp_path, name, overwrite):
    with pytest.raises(InputError, match=r"cannot write the index|does not exist"):
        build(INDEX).save(f"{tmp_path}/{name}", overwrite=overwrite)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_name(tmp_path):
    path = tmp_path / ("x" * 255)
    build(INDEX).save(path)
    build(INDEX).save(path, overwrite=True)
    assert Index.open(path).match({"a": 1}) == ["new"]
