"""Full disks, failing disks, damaged files: an error, and nothing is lost or doubled."""

from __future__ import annotations

import errno
import os
import random
from datetime import timedelta

import pytest

from tamis import durable
from tamis.archive import Archive, ArchiveSettings, converter
from tamis.errors import StoreError, StoreFormatError
from tests.archive.places import Model, draw_entry, key_of, make_entry

FOREVER = timedelta(days=40_000)  # moments of tests are soon after 1970
SETTINGS = ArchiveSettings(segment_age=FOREVER, answers_for=FOREVER)


class Failing:
    """Calls of the operating system that fail when they are told to."""

    def __init__(self, monkeypatch) -> None:
        self.monkeypatch = monkeypatch
        self.errors: dict[str, int] = {}
        for name in ("pwrite", "fdatasync", "ftruncate", "fsync", "replace"):
            self.wrap(name, getattr(os, name))

    def wrap(self, name: str, call) -> None:
        def failing(*args):
            if name in self.errors:
                if name == "pwrite" and len(args[1]) > 30:
                    call(args[0], bytes(args[1])[:29], args[2])  # a part of it was written
                number = self.errors[name]
                raise OSError(number, os.strerror(number))
            return call(*args)

        self.monkeypatch.setattr(os, name, failing)


@pytest.fixture
def failing(monkeypatch):
    return Failing(monkeypatch)


class Filled:
    """An archive and its model, with some entries."""

    def __init__(self, folder, seed: int, settings: ArchiveSettings = SETTINGS) -> None:
        self.folder, self.settings = folder, settings
        self.draw = random.Random(seed)
        self.archive = Archive.open(folder, settings=settings)
        self.model = Model()
        for _ in range(4):
            self.append()

    def append(self) -> None:
        pairs = [draw_entry(self.draw, 5) for _ in range(2)]
        pairs.append((make_entry([b"{}"], [[1]]), [b"{}"]))  # an event at least
        numbers = self.archive.append([entry for entry, _ in pairs])
        assert numbers == [self.model.append(*pair) for pair in pairs]

    def expect(self) -> None:
        self.model.expect(self.archive, self.draw)

    def crash(self) -> None:
        """As if the process had been killed."""
        durable.unlock(self.archive._lock)
        self.archive = Archive.open(self.folder, settings=self.settings)

    def n_journals(self) -> int:
        return len(list((self.folder / "journals").glob("*.journal")))


@pytest.fixture
def filled(folder, seed):
    made = Filled(folder, seed)
    yield made
    made.archive.close()


def test_a_full_disk(filled, failing):
    failing.errors = {"pwrite": errno.ENOSPC}
    for _ in range(2):
        with pytest.raises(StoreError, match="No space left") as caught:
            filled.append()
        assert "free some space" in str(caught.value)
        filled.expect()
    failing.errors.clear()
    filled.append()
    filled.expect()
    assert filled.n_journals() == 1
    filled.crash()
    filled.expect()
    assert filled.archive.stats()["torn_bytes"] == 0


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_failed_flush(filled, failing, is_cut, goes_on):
    """The journal is never written to again; a crash may come before the next one."""
    failing.errors = {"fdatasync": errno.EIO} | ({} if is_cut else {"ftruncate": errno.EIO})
    with pytest.raises(StoreError, match="Input/output error"):
        filled.append()
    filled.expect()
    size = (filled.folder / "journals/000000001.journal").stat().st_size
    failing.errors.clear()
    if goes_on:
        filled.append()
        filled.append()
        assert filled.n_journals() == 2
        assert (filled.folder / "journals/000000001.journal").stat().st_size == size
        filled.expect()
        filled.crash()
        filled.expect()
        filled.archive.seal()
        filled.expect()
    elif is_cut:
        filled.crash()
        filled.expect()


def test_no_new_journal_after_a_failed_flush(filled, failing):
    failing.errors = {"fdatasync": errno.EIO}
    with pytest.raises(StoreError, match="Input/output"):
        filled.append()
    failing.errors = {"fsync": errno.ENOSPC}
    with pytest.raises(StoreError, match="No space left"):
        filled.append()
    failing.errors.clear()
    filled.append()
    filled.expect()
    assert not list(filled.folder.rglob(".tamis-*"))


def test_no_space_for_a_new_segment(folder, seed, failing, caplog):
    filled = Filled(folder, seed, ArchiveSettings(segment_bytes=10_000, answers_for=FOREVER))
    failing.errors = {"fsync": errno.ENOSPC}
    while filled.archive.stats()["bytes"] < 15_000:
        filled.append()
    assert filled.n_journals() == 1
    assert "no new segment was started" in caplog.text
    failing.errors.clear()
    filled.append()
    assert filled.n_journals() == 2
    filled.expect()
    filled.archive.close()


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_segment_that_cannot_be_closed(filled, failing, call):
    filled.archive._maintenance.rotate()
    failing.errors = {call: errno.ENOSPC}
    with pytest.raises(StoreError, match="was not closed: No space left"):
        filled.archive.seal()
    filled.expect()
    filled.append()
    assert filled.archive.stats()["waiting_segments"] == 1
    failing.errors.clear()
    filled.archive.seal()
    assert filled.archive.stats()["waiting_segments"] == 0
    filled.expect()
    assert not list(filled.folder.rglob(".tamis-*"))


def test_facts_that_cannot_be_written(filled, failing):
    filled.archive.seal()
    epoch = filled.archive.epoch
    failing.errors = {"replace": errno.ENOSPC}
    with pytest.raises(StoreError, match="not removed"):
        filled.archive.prune(before=filled.archive.last_event + 1)
    with pytest.raises(StoreError, match="cannot be written"):
        filled.archive.renew_epoch()
    failing.errors.clear()
    filled.expect()
    assert filled.archive.epoch == epoch


def test_a_folder_that_cannot_be_written(filled, monkeypatch):
    filled.archive.close()

    def refuse(path):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(durable, "try_lock", refuse)
    with pytest.raises(StoreError, match="Read-only file system") as caught:
        Archive.open(filled.folder)
    assert "read_only=True" in str(caught.value)
    reader = Archive.open(filled.folder, settings=SETTINGS, read_only=True)
    filled.model.expect(reader, filled.draw)
    for change in (
        reader.seal,
        reader.maintain,
        reader.renew_epoch,
        lambda: reader.prune(before=1),
    ):
        with pytest.raises(StoreError, match="read_only=True"):
            change()


# ── the process that closes segments ────────────────────────────────────────────────────────


def test_another_process_closes_a_segment(filled, monkeypatch):
    monkeypatch.setattr(converter, "SMALL", 0)
    filled.archive.seal()
    assert filled.archive.stats()["closed_segments"] == 1
    filled.expect()


def test_a_process_that_ends(filled, monkeypatch):
    monkeypatch.setattr(converter, "SMALL", 0)
    start = converter.Converter._start

    def start_and_kill(self):
        process = start(self)
        process.kill()
        return process

    monkeypatch.setattr(converter.Converter, "_start", start_and_kill)
    with pytest.raises(StoreError, match=r"has ended|failed"):
        filled.archive.seal()
    filled.expect()
    monkeypatch.setattr(converter.Converter, "_start", start)
    filled.archive.seal()
    filled.expect()


def test_an_error_of_the_process(filled, monkeypatch):
    monkeypatch.setattr(converter, "SMALL", 0)
    filled.archive._maintenance.rotate()
    (filled.folder / "journals/000000001.journal").rename(filled.folder / "aside")
    with pytest.raises(StoreError, match="No such file"):
        filled.archive.seal()
    (filled.folder / "aside").rename(filled.folder / "journals/000000001.journal")
    filled.archive.seal()
    filled.expect()


# ── damaged files of closed segments ────────────────────────────────────────────────────────


def closed_file(folder, kind: str):
    (path,) = (folder / kind).iterdir()
    return path


@pytest.mark.parametrize("kind", ["events", "matches", "index", "answers"])
def test_a_missing_file(filled, kind):
    filled.archive.seal()
    filled.archive.close()
    path = closed_file(filled.folder, kind)
    path.unlink()
    for read_only in (True, False):
        with pytest.raises(StoreFormatError, match=f"{kind}/.* is missing"):
            Archive.open(filled.folder, read_only=read_only)


def test_a_file_that_goes_missing(filled):
    filled.archive.seal()
    closed_file(filled.folder, "events").unlink()
    with pytest.raises(StoreFormatError, match="is missing"):
        filled.archive.get_events([1])


def test_a_bit_flipped_anywhere_in_a_closed_segment(folder):
    """Whatever reads it raises an error, or answers correctly."""
    entry = make_entry([b'{"a":1}', b'{"a":22}'], [[4], [4, 5]], answer=b"k", change=3)
    with Archive.open(folder, settings=SETTINGS) as archive:
        archive.append([entry])
        archive.seal()
    reads = {
        "events": lambda own: (own.get_events([1, 2]), sum(map(len, own.scan()))),
        "index": lambda own: (
            own.read_matches([4, 5], after=0, limit=9),
            own.count_matches([4], after=0),
        ),
        "answers": lambda own: own.find_answer(key_of(b"k")),
    }
    for kind, read in reads.items():
        path = closed_file(folder, kind)
        whole = path.read_bytes()
        expected = read(Archive.open(folder, settings=SETTINGS, read_only=True))
        n_found = 0
        for at in range(len(whole)):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << at % 8
            path.write_bytes(flipped)
            try:
                found = read(Archive.open(folder, settings=SETTINGS, read_only=True))
            except StoreError as error:
                assert path.name in str(error)  # noqa: PT017
                n_found += 1
            else:
                assert found == expected, (kind, at)
        path.write_bytes(whole)
        assert n_found >= len(whole) - 4  # the magic number of Parquet


def test_a_closed_file_that_is_cut(filled):
    filled.archive.seal()
    filled.archive.close()
    for kind in ("index", "answers"):
        path = closed_file(filled.folder, kind)
        whole = path.read_bytes()
        for length in (0, 10, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(StoreFormatError, match=path.name):
                read_all(filled.folder)
        path.write_bytes(whole)


def read_all(folder) -> None:
    reader = Archive.open(folder, settings=SETTINGS, read_only=True)
    reader.count_matches([1], after=0)
    reader.find_answer(b"?" * 32)
