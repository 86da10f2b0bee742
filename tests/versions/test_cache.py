"""Copies of parts on this machine: this user's alone, and what the version says they are."""

from __future__ import annotations

import os
import shutil
import stat

import pytest

import tamis
from tamis.errors import IndexFormatError, InputError
from tamis.versions import cache, part_set
from tamis.versions.cache import PartCache
from tamis.versions.opening import open_version
from tamis.versions.part_files import is_whole
from tamis.versions.store import IndexStore
from tests.versions.object_store import object_store  # noqa: F401 - a fixture
from tests.versions.test_store import version_of, write


@pytest.fixture
def store(object_store, tmp_path, monkeypatch) -> IndexStore:  # noqa: F811
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    made = IndexStore(object_store)
    part = write(made, {"x": "a = 1"})
    made.publish(lambda newest: version_of(part))
    return made


def ask(store: IndexStore) -> list[str]:
    part_set._OPEN.clear()
    return open_version(store).open().match({"a": 1})


def test_a_planted_copy_does_not_answer(store, tmp_path):
    """An index that is whole in itself, at the place where the copy would be."""
    (part,) = store.current().parts
    (tmp_path / "cache").mkdir(mode=0o700)
    tamis.build({"planted": "a = 1"}).save(tmp_path / "cache" / part.id)
    assert ask(store) == ["x"]
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {part.id}


def test_a_damaged_copy_is_fetched_again(store, tmp_path):
    (part,) = store.current().parts
    assert ask(store) == ["x"]
    copy = tmp_path / "cache" / part.id
    for name in part.checksums:
        right = (copy / name).read_bytes()
        for wrong in (right[:-1], bytes([right[0] ^ 1]) + right[1:], None):
            (copy / name).unlink()
            if wrong is not None:
                (copy / name).write_bytes(wrong)
            assert ask(store) == ["x"]
            assert (copy / name).read_bytes() == right
    shutil.rmtree(copy)
    copy.write_text("a file")
    assert ask(store) == ["x"]


def test_a_copy_that_is_right_is_not_fetched_again(store, tmp_path, monkeypatch):
    assert ask(store) == ["x"]
    monkeypatch.setattr(PartCache, "_download", None)
    assert ask(store) == ["x"]


def test_what_is_damaged_in_the_storage_is_refused(store, tmp_path):
    (part,) = store.current().parts
    for name in part.checksums:
        right = store.storage.read(f"{part.folder}/{name}")
        for wrong in (right[:-1], None):
            store.storage.delete(f"{part.folder}/{name}")
            if wrong is not None:
                store.storage.write(f"{part.folder}/{name}", wrong)
            assert not is_whole(store.storage, part)
            with pytest.raises(IndexFormatError, match=name):
                ask(store)
            assert list((tmp_path / "cache").iterdir()) == []
        store.storage.write(f"{part.folder}/{name}", right)
    assert is_whole(store.storage, part)
    assert ask(store) == ["x"]


@pytest.mark.parametrize("how", ["readable", "writable", "a link", "a file", "another's"])
def test_a_directory_that_is_not_private_is_refused(store, tmp_path, monkeypatch, how):
    place = tmp_path / "cache"
    if how == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    elif how == "a file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod({"readable": 0o755, "writable": 0o777}.get(how, 0o700))
        if how == "another's":
            monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    with pytest.raises(InputError, match="cannot hold copies of parts") as refused:
        ask(store)
    assert "TAMIS_CACHE_DIR" in refused.value.hint


def test_copies_are_the_users_alone(store, tmp_path):
    ask(store)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


def test_the_default_is_in_the_users_home(store, tmp_path, monkeypatch):
    monkeypatch.delenv("TAMIS_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert PartCache.default().directory == tmp_path / "home" / ".cache" / "tamis" / "parts"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert PartCache.default().directory == tmp_path / "xdg" / "tamis" / "parts"
    assert ask(store) == ["x"]


def test_without_a_home_each_process_has_its_own(store, tmp_path, monkeypatch):
    monkeypatch.delenv("TAMIS_CACHE_DIR")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "none"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    left = tmp_path / ".tamis-0123456789abcdef.draft"
    left.mkdir()
    cache._temporary_directory.cache_clear()
    try:
        own = PartCache.default().directory
        assert own == PartCache.default().directory
        assert own.parent.parent == tmp_path
        assert stat.S_IMODE(own.parent.stat().st_mode) == 0o700
        assert ask(store) == ["x"]
        assert not left.exists(), "what dead processes left is removed"
    finally:
        cache._temporary_directory.cache_clear()
        shutil.rmtree(own.parent)


def test_downloads_of_the_dead_are_removed(store, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    left = tmp_path / "cache" / ".tamis-0123456789abcdef.draft"
    left.mkdir()
    (left / "manifest.json").write_text("half")
    assert ask(store) == ["x"]
    assert not left.exists()
