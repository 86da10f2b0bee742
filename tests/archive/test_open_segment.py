"""The open segment: what was appended is read, also after a crash; damage is found."""

from __future__ import annotations

import errno
import os
import random
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from tamis.archive import Archive, ArchiveSettings, ArrowEvents, Entry, JsonEvents, opening
from tamis.archive.journal import RECORDS_AT
from tamis.errors import HistoryError, InputError, StoreError, StoreFormatError, StoreInUseError
from tests.archive.places import Model, draw_entry, json_events, key_of, make_entry, with_events

JOURNAL = "journals/000000001.journal"
FOREVER = timedelta(days=40_000)  # moments of tests are soon after 1970


def fill(archive: Archive, draw: random.Random, n_groups: int, keep="all") -> Model:
    model = Model(keep)
    for _ in range(n_groups):
        pairs = [draw_entry(draw, draw.randrange(1000)) for _ in range(draw.randint(1, 3))]
        numbers = archive.append([entry for entry, _ in pairs])
        assert numbers == [model.append(*pair) for pair in pairs]
    return model


@pytest.mark.parametrize("keep", ["all", "matched", "none"])
def test_what_was_appended_is_read(folder, seed, keep):
    draw = random.Random(seed)
    settings = ArchiveSettings(keep=keep, answers_for=FOREVER)
    with Archive.open(folder, settings=settings) as archive:
        Model().expect(archive, draw)
        model = fill(archive, draw, 20, keep)
        model.expect(archive, draw)
    with Archive.open(folder, settings=settings) as archive:
        model.expect(archive, draw)


def test_a_poll_while_matches_arrive(folder):
    """Each poll sorts what came since the last one; runs stay few."""
    with Archive.open(folder) as archive:
        cursor, found = 0, []
        for at in range(300):
            archive.append([make_entry([b"{}"], [[at % 3, 7]])])
            page = archive.read_matches([7], after=cursor, limit=5)
            cursor, found = page.after, found + page.matches
        assert [match.event for match in found] == list(range(1, 301))
        assert len(archive._contents.open._runs) < 12
        assert archive.count_matches([0, 1, 2], after=0) == {0: 100, 1: 100, 2: 100}


def test_moments_never_go_back(folder):
    with Archive.open(folder) as archive:
        archive.append([make_entry([b"{}"], [[]], moment=9), make_entry([b"{}"], [[]], moment=4)])
        archive.append([make_entry([b"{}"], [[]], moment=3)])
        events = archive.read_events(after=0, limit=9).events
        assert {event.moment.microsecond for event in events} == {9}
    with Archive.open(folder) as archive:
        archive.append([make_entry([b"{}"], [[]], moment=2)])
        assert archive.read_events(after=3, limit=9).events[0].moment.microsecond == 9


def test_answers_expire(folder, monkeypatch):
    with Archive.open(folder) as archive:
        archive.append([make_entry([], [], moment=5, answer=b"a")])
        for now, is_found in ((5, True), (5 + 86_400_000_000, True), (6 + 86_400_000_000, False)):
            monkeypatch.setattr("tamis.archive.archive.now", lambda now=now: now)
            found = archive.find_answer(key_of(b"a"))
            assert (found is not None) == is_found
            assert found is None or found.answer == b"a from 1"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry(None, 0, 1, np.zeros(1), np.zeros(0)), "events are None"),
        (make_entry([b"{}"], [[1], [2]]), "match_starts has 3 places for 1 events"),
        (make_entry([b"{}"], [[-4]]), "the subscription -4"),
        (make_entry([b"{}", b""], [[], []]), "not places of texts"),
        (make_entry([b"{}"], [[]])._replace(match_starts=np.array([0, 3])), "from 0 to 3"),
        (make_entry([b"{}"], [[1]])._replace(match_starts=np.array([1, 1])), "from 1 to 1"),
        (make_entry([b"{}"], [[1]])._replace(matches=np.array([1.5])), "dimensions of float64"),
        (
            make_entry([b"{}"], [[]])._replace(
                events=JsonEvents(b"{}", np.array([0]), np.array([3]))
            ),
            "a buffer of 2 bytes",
        ),
        (
            with_events(
                ArrowEvents(pa.RecordBatch.from_arrays([pa.array([1])] * 2, ["a", "a"])),
                [[]],
                *(0, 1, None),
            ),
            'two columns "a"',
        ),
    ],
)
def test_an_invalid_entry_is_refused_with_all_others(folder, entry, message):
    with Archive.open(folder) as archive:
        with pytest.raises(InputError, match=message):
            archive.append([make_entry([b"{}"], [[1]]), entry])
        assert archive.last_event == 0
        assert archive.append([make_entry([b"{}"], [[1]])]) == [1]


def test_an_error_of_make_answer_stores_nothing(folder):
    def fail(first: int):
        raise ZeroDivisionError(first)

    with Archive.open(folder) as archive:
        entry = make_entry([b"{}"], [[1]])
        with pytest.raises(ZeroDivisionError, match="2"):
            archive.append([entry, entry._replace(make_answer=fail)])
        assert archive.last_event == 0


def test_cursors_of_another_epoch(folder):
    with Archive.open(folder) as archive:
        archive.append([make_entry([b"{}"], [[1]])])
        old = archive.epoch
        assert archive.read_events(after=0, limit=1, epoch=old).after == 1
        assert archive.renew_epoch() == archive.epoch != old
        with pytest.raises(HistoryError, match=old):
            archive.read_events(after=0, limit=1, epoch=old)
        new = archive.epoch
    with Archive.open(folder) as archive:
        assert (archive.epoch, archive.last_event) == (new, 1)


# ── one writer, many readers ────────────────────────────────────────────────────────────────


def test_one_writer(folder):
    with Archive.open(folder):
        with pytest.raises(StoreInUseError, match=f"process {os.getpid()}"):
            Archive.open(folder)
        Archive.open(folder, read_only=True).close()
    Archive.open(folder).close()


def test_a_reader_follows_the_writer(folder, seed):
    draw = random.Random(seed)
    settings = ArchiveSettings(answers_for=FOREVER)
    with Archive.open(folder, settings=settings) as archive:
        reader = Archive.open(folder, settings=settings, read_only=True)
        assert reader.last_event == 0
        model = fill(archive, draw, 5)
        model.expect(reader, draw)
        archive._contents.rotate()
        for _ in range(3):
            entry, texts = draw_entry(draw, 5000)
            archive.append([entry])
            model.append(entry, texts)
            model.expect(reader, draw)
        archive.renew_epoch()
        assert reader.last_event == archive.last_event
        assert reader.epoch == archive.epoch
        with pytest.raises(StoreError, match="read_only=True"):
            reader.append([entry])
        reader.close()
        with pytest.raises(StoreError, match="is closed"):
            reader.last_event  # noqa: B018


def test_a_reader_sees_only_what_is_on_disk(folder, monkeypatch):
    with Archive.open(folder) as archive:
        archive.append([make_entry([b"{}"], [[1]])])
        reader = Archive.open(folder, read_only=True)
        seen = []
        flush = os.fdatasync

        def look_and_flush(descriptor):
            seen.append(reader.last_event)
            seen.append(Archive.open(folder, read_only=True).last_event)
            flush(descriptor)

        monkeypatch.setattr(os, "fdatasync", look_and_flush)
        archive.append([make_entry([b"{}"], [[1]])])
        assert seen == [1, 1]
        assert reader.last_event == 2


@pytest.mark.parametrize(
    ("module", "function"), [(os, "pread"), (os, "fstat"), (opening, "_load_journals")]
)
def test_events_arrive_while_a_reader_opens_the_archive(folder, monkeypatch, module, function):
    """Between any two looks at the journal: that is no damage."""
    with Archive.open(folder) as archive:
        archive.append([make_entry([b"{}"], [[1]])])
        reader = Archive.open(folder, read_only=True)
        archive.seal()  # then the reader opens everything again
        look, calls = getattr(module, function), []

        def append_and_look(*arguments, **options):
            if len(calls) < 9 and not is_held(archive._appending):
                calls.append(archive.append([make_entry([b"{}"], [[1]])]))
            return look(*arguments, **options)

        monkeypatch.setattr(module, function, append_and_look)
        assert 1 <= reader.last_event <= archive.last_event
        assert calls
        calls.clear()
        assert 1 <= Archive.open(folder, read_only=True).last_event <= archive.last_event
        assert calls
        monkeypatch.undo()
        assert reader.last_event == archive.last_event


def is_held(lock) -> bool:
    return lock._is_owned()


def test_a_reader_that_failed_looks_again(folder, monkeypatch):
    """The error is not the last that it knows of new events, segments and epochs."""
    with Archive.open(folder) as archive:
        reader = Archive.open(folder, read_only=True)

        def fail(*_arguments, **_options):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        def fails_once() -> None:
            with monkeypatch.context() as patch:
                patch.setattr("tamis.archive.journal.mmap.mmap", fail)
                for _ in range(2):
                    with pytest.raises(StoreError, match="Too many open files"):
                        reader.last_event  # noqa: B018
            assert reader.last_event == archive.last_event
            assert reader.read_matches([1], after=0, limit=9).after == archive.last_event

        archive.append([make_entry([b"{}"], [[1]])])
        fails_once()
        archive.seal()
        archive.append([make_entry([b"{}"], [[1]])])
        archive.seal()
        archive.append([make_entry([b"{}"], [[1]])])
        fails_once()
        archive.renew_epoch()
        fails_once()
        assert reader.epoch == archive.epoch


def test_a_journal_that_is_cut_while_it_is_followed(folder):
    with Archive.open(folder) as archive:
        archive.append([make_entry([b"{}"], [[1]])])
        reader = Archive.open(folder, read_only=True)
        archive.append([make_entry([b"{}"], [[1]])])
        size = archive._contents.open.journal.size
        os.truncate(folder / JOURNAL, size - 1)
        for _ in range(2):
            with pytest.raises(StoreFormatError, match=f"damaged|ends at byte {size - 1}"):
                reader.last_event  # noqa: B018


def test_no_archive_to_read(folder):
    with pytest.raises(StoreFormatError, match=r"archive.json is missing"):
        Archive.open(folder, read_only=True)
    folder.touch()
    with pytest.raises(StoreError, match="cannot be opened"):
        Archive.open(folder)


# ── damage ──────────────────────────────────────────────────────────────────────────────────


def write_groups(folder, n_groups: int) -> tuple[list[int], bytes]:
    """An archive with groups of two entries; where each group ends, and the file."""
    ends = [RECORDS_AT]
    with Archive.open(folder) as archive:
        for at in range(n_groups):
            texts = [b'{"a":%d}' % at, b"{}"]
            archive.append([make_entry(texts, [[at], [7]]), make_entry(texts[:1], [[9]])])
            ends.append(archive._contents.open.journal.size)
    return ends, (folder / JOURNAL).read_bytes()


def without_mark(file: bytes) -> bytes:
    """The file after a crash of the machine that lost the mark."""
    return file[: RECORDS_AT - 16] + bytes(16) + file[RECORDS_AT:]


def test_a_file_cut_anywhere(folder, caplog):
    ends, file = write_groups(folder, 3)
    for length in range(RECORDS_AT, len(file)):
        (folder / JOURNAL).write_bytes(without_mark(file)[:length])
        with Archive.open(folder) as archive:
            # Of the last group, the first entry may be there.
            n_groups = sum(end <= length for end in ends) - 1
            assert archive.last_event in (3 * n_groups, 3 * n_groups + 2)
            expected = archive.last_event
            n_torn = archive.stats()["torn_bytes"]
            assert archive.append([make_entry([b"{}"], [[5]])]) == [expected + 1]
        assert (n_torn > 0) == ("never acknowledged" in caplog.text)
        for torn in (folder / "journals").glob("*.torn"):
            assert len(torn.read_bytes()) == n_torn
            torn.unlink()
        caplog.clear()
        with Archive.open(folder) as archive:
            assert archive.last_event == expected + 1
            assert archive.stats()["torn_bytes"] == 0


def test_a_file_cut_before_its_mark_is_damaged(folder):
    _, file = write_groups(folder, 2)
    for length in (RECORDS_AT - 1, RECORDS_AT, len(file) - 8):
        (folder / JOURNAL).write_bytes(file[:length])
        with pytest.raises(StoreFormatError, match=r"000000001\.journal") as caught:
            Archive.open(folder)
        assert "backup" in str(caught.value)
        assert (folder / JOURNAL).read_bytes() == file[:length]


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_bit_flipped_anywhere(folder, has_mark):
    """It is found; at worst, the last group is cut off, if nothing says that it was
    acknowledged."""
    ends, file = write_groups(folder, 3)
    whole = file if has_mark else without_mark(file)
    mark = range(RECORDS_AT - 16, RECORDS_AT)
    for at in range(len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        (folder / JOURNAL).write_bytes(flipped)
        if at in mark or (at >= ends[-2] and not has_mark):
            with Archive.open(folder) as archive:
                assert archive.last_event in ([9] if at in mark else [6, 8])
        else:
            with pytest.raises(StoreFormatError, match=r"000000001\.journal"):
                Archive.open(folder)
            assert (folder / JOURNAL).read_bytes() == flipped


def test_files_that_are_missing_or_foreign(folder):
    write_groups(folder / "a", 1)
    write_groups(folder / "b", 1)
    (folder / "a" / JOURNAL).replace(folder / "b" / JOURNAL)
    with pytest.raises(StoreFormatError, match="from another archive"):
        Archive.open(folder / "b")
    with pytest.raises(StoreFormatError, match="no journal"):
        Archive.open(folder / "a")
    (folder / "b" / "archive.json").unlink()
    with pytest.raises(StoreFormatError, match=r"archive\.json is missing"):
        Archive.open(folder / "b")
    (folder / "b" / "archive.json").write_text("{}")
    with pytest.raises(StoreFormatError, match=r"archive\.json is damaged"):
        Archive.open(folder / "b")


def test_texts_far_apart_are_stored_without_what_is_between(folder):
    with Archive.open(folder) as archive:
        events = json_events([b'{"a":1}', b"{}"], gap=b" " * 10_000)
        archive.append([with_events(events, [[], []], 0, 1, None)])
        assert archive.stats()["bytes"] < 1000
        assert archive.get_events([1, 2]) == {1: b'{"a":1}', 2: b"{}"}
