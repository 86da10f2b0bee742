"""Durable files: whole or not there, locks that die with their holders, leftovers removed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import zlib
from pathlib import Path
from threading import Thread

import pytest

from tamis import durable
from tamis.durable import (
    LOCK,
    NotPrivateError,
    checksum,
    create_file,
    draft_directory,
    locked,
    make_directory,
    make_private_directory,
    new_directory,
    replace_file,
    sweep,
    try_lock,
    unlock,
)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 21) + 7])
def test_the_checksum_of_a_file(tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    assert checksum(tmp_path / "file") == zlib.crc32(content)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


HOLD = """
import sys, time
from pathlib import Path
from tamis import durable
place = Path(sys.argv[1])
with eval(sys.argv[2]):
    print("ready", flush=True)
    time.sleep(3600)
"""

FORK_AND_DIE = """
import os, sys, time
from pathlib import Path
from tamis import durable
with durable.locked(Path(sys.argv[1])):
    ready, signals = os.pipe()
    child = os.fork()
    if not child:
        os.write(signals, b"!")
        time.sleep(3600)
    os.read(ready, 1)
    print(child, flush=True)
    os.kill(os.getpid(), 9)
"""


def start(program: str, *arguments: object) -> tuple[subprocess.Popen[str], str]:
    """A process, and the first line that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


def hold(place: Path, context: str) -> subprocess.Popen[str]:
    """A process that has entered a context and stays there until it is killed."""
    process, line = start(HOLD, place, context)
    assert line == "ready"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


# ── files ───────────────────────────────────────────────────────────────────────────────────


def test_replacing(tmp_path):
    for content in (b"one", b"two"):
        replace_file(tmp_path / "file", [content, b"!"])
        assert (tmp_path / "file").read_bytes() == content + b"!"
    assert names(tmp_path) == {"file"}


def test_creating(tmp_path):
    assert create_file(tmp_path / "file", [b"one"])
    assert not create_file(tmp_path / "file", [b"two"])
    assert (tmp_path / "file").read_bytes() == b"one"
    assert names(tmp_path) == {"file"}


def test_a_private_file_is_never_readable_by_others(tmp_path):
    modes = []

    def chunks():
        (draft,) = tmp_path.iterdir()
        modes.append(stat.S_IMODE(draft.stat().st_mode))
        yield b"secret"

    assert create_file(tmp_path / "file", chunks(), mode=0o600)
    modes.append(stat.S_IMODE((tmp_path / "file").stat().st_mode))
    assert modes == [0o600, 0o600]


@pytest.mark.parametrize("write", [replace_file, create_file])
def test_a_failure_leaves_nothing(tmp_path, write):
    def chunks():
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "file", chunks())
    assert names(tmp_path) == set()


@pytest.mark.parametrize("write", [replace_file, create_file])
def test_names_are_synced_after_contents(tmp_path, monkeypatch, write):
    synced = []

    def fsync(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((is_directory, (tmp_path / "file").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path / "file", [b"content"])
    assert synced == [(False, False), (True, True)]


# ── directories ─────────────────────────────────────────────────────────────────────────────


def test_a_new_directory(tmp_path):
    with new_directory(tmp_path / "made") as draft:
        (draft / "file").write_text("content")
        assert not (tmp_path / "made").exists()
    assert names(tmp_path) == {"made"}
    assert names(tmp_path / "made") == {"file"}


@pytest.mark.parametrize("is_file", [True, False])
def test_a_new_directory_replaces_nothing(tmp_path, is_file):
    target = tmp_path / "made"
    (target if is_file else make_and_return(target) / "file").write_text("before")
    with pytest.raises(FileExistsError), new_directory(target) as draft:
        (draft / "file").write_text("after")
    assert (target if is_file else target / "file").read_text() == "before"
    assert names(tmp_path) == {"made"}


def make_and_return(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_new_directory_that_is_not_on_disk_is_not_there(tmp_path, monkeypatch):
    def sync(directory: Path) -> None:
        if directory == tmp_path:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(durable, "sync_directory", sync)
    with pytest.raises(OSError, match="Input/output"), new_directory(tmp_path / "made"):
        pass
    assert names(tmp_path) == set()


def test_directories_above_are_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable, "sync_directory", synced.append)
    make_directory(tmp_path / "a" / "b" / "c")
    make_directory(tmp_path / "a" / "b")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        make_directory(tmp_path / "file" / "x")


# ── locks ───────────────────────────────────────────────────────────────────────────────────


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    inside, most = [], []

    def work() -> None:
        for _ in range(20):
            with locked(tmp_path):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0)
                inside.pop()

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (80, 1)
    assert names(tmp_path) == set()


def test_a_lock_goes_with_its_holder(tmp_path):
    holder = hold(tmp_path, "durable.locked(place)")
    assert durable._acquire(tmp_path / LOCK, waits=False) is None
    kill(holder)
    with locked(tmp_path):
        assert names(tmp_path) == {LOCK}
    assert names(tmp_path) == set()


def test_a_child_does_not_keep_its_parents_lock(tmp_path):
    """The parent is killed; a child that it forked lives on."""
    parent, child = start(FORK_AND_DIE, tmp_path)
    assert parent.wait() == -signal.SIGKILL
    try:
        descriptor = durable._acquire(tmp_path / LOCK, waits=False)
        assert descriptor is not None
        durable._release(descriptor)
        os.kill(int(child), 0)  # it is alive
    finally:
        os.kill(int(child), signal.SIGKILL)
        parent.stdout.close()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """Nothing is overwritten unguarded, and nobody is taken for dead."""

    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(durable.fcntl, "flock", refuse)
    with pytest.raises(OSError, match="does not support locks"), locked(tmp_path):
        pass
    replace_file(tmp_path / "file", [b"content"])
    with draft_directory(tmp_path) as draft:
        sweep(tmp_path)
        assert draft.exists()
        with new_directory(tmp_path / "made"):
            pass
    assert names(tmp_path) == {"file", "made"}


# ── leftovers ───────────────────────────────────────────────────────────────────────────────


def test_drafts_are_swept_when_their_writers_are_dead(tmp_path):
    holders = [
        hold(tmp_path, "durable.draft_directory(place)"),
        hold(tmp_path, "durable.new_directory(place / 'made')"),
        hold(tmp_path, "durable.replacing(place / 'file')"),
    ]
    sweep(tmp_path)
    assert len(names(tmp_path)) == 3
    for holder in holders:
        kill(holder)
    sweep(tmp_path)
    assert names(tmp_path) == set()


def test_only_drafts_are_swept(tmp_path):
    kept = {"file", ".tamis-x.draft", ".tamis-0123456789abcdef.draft.txt", ".hidden"}
    for name in kept:
        (tmp_path / name).write_text("")
    (tmp_path / ".tamis-0000000000000000.draft").symlink_to(tmp_path / "file")
    sweep(tmp_path)
    assert names(tmp_path) == kept | {".tamis-0000000000000000.draft"}
    sweep(tmp_path / "nowhere")


def test_sweepers_and_writers_at_once(tmp_path):
    """A draft may be found before its writer has locked it: the writer takes another."""
    is_over = []

    def sweep_on() -> None:
        while not is_over:
            sweep(tmp_path)

    sweepers = [Thread(target=sweep_on) for _ in range(2)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for number in range(100):
            replace_file(tmp_path / "file", [b"content"])
            with new_directory(tmp_path / f"made{number}") as draft:
                (draft / "file").write_text("content")
    finally:
        is_over.append(True)
        for sweeper in sweepers:
            sweeper.join()
    assert names(tmp_path) == {"file", *(f"made{number}" for number in range(100))}
    assert all(names(tmp_path / f"made{number}") == {"file"} for number in range(100))


def test_a_sweeper_that_acquires_a_removed_lock(tmp_path, monkeypatch):
    """Between its opening and its locking, another one swept and a writer took the directory."""
    draft = tmp_path / ".tamis-0123456789abcdef.draft"
    draft.mkdir()
    (draft / LOCK).write_text("")
    acquire_lock, descriptors = durable._lock, []

    def acquire_late(descriptor: int, **options: bool) -> bool | None:
        monkeypatch.undo()
        (draft / LOCK).unlink()
        descriptors.append(durable._acquire(draft / LOCK, waits=False))
        return acquire_lock(descriptor, **options)

    monkeypatch.setattr(durable, "_lock", acquire_late)
    sweep(tmp_path)
    assert names(draft) == {LOCK}
    durable._release(descriptors[0])
    sweep(tmp_path)
    assert names(tmp_path) == set()


# ── privacy ─────────────────────────────────────────────────────────────────────────────────


def test_a_private_directory(tmp_path):
    path = tmp_path / "a" / "private"
    for _ in range(2):
        make_private_directory(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o710, 0o701])
def test_a_directory_that_others_may_use(tmp_path, mode):
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(NotPrivateError, match="other users"):
        make_private_directory(path)


def test_a_directory_of_somebody_else(tmp_path, monkeypatch):
    path = tmp_path / "theirs"
    path.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(NotPrivateError, match="another user"):
        make_private_directory(path)


@pytest.mark.parametrize("is_link", [True, False])
def test_what_is_no_directory(tmp_path, is_link):
    path = tmp_path / "planted"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    if is_link:
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_text("")
    with pytest.raises(NotPrivateError, match="symbolic link"):
        make_private_directory(path)


def test_try_lock_does_not_wait(tmp_path):
    lock = tmp_path / "writer.lock"
    held = try_lock(lock)
    assert held is not None
    assert lock.read_text() == f"{os.getpid()}\n"
    assert try_lock(lock) is None
    unlock(held)
    again = try_lock(lock)
    assert again is not None
    unlock(again)


def test_try_lock_needs_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "_lock", lambda descriptor: None)
    with pytest.raises(OSError, match="does not support locks"):
        try_lock(tmp_path / "writer.lock")
