"""Closing, retention and readers in many threads."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from tamis.archive import Archive, ArchiveSettings, maintenance
from tamis.errors import HistoryError, InputError
from tests.archive.places import Model, draw_entry, key_of, make_entry
from tests.waiting import HANG_SECONDS, wait_until

FOREVER = timedelta(days=40_000)  # moments of tests are soon after 1970
HOUR = 3_600_000_000  # microseconds


@pytest.fixture
def clock(monkeypatch):
    """A function that sets the time."""

    def set_time(moment: int) -> None:
        for module in ("archive", "maintenance"):
            monkeypatch.setattr(f"tamis.archive.{module}.now", lambda: moment)

    set_time(0)
    return set_time


def add(archive: Archive, moment: int, *, text: bytes = b"{}") -> None:
    archive.append([make_entry([text], [[1]], moment=moment, answer=b"%d" % moment)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"keep": "some"},
        {"segment_bytes": 0},
        {"segment_age": 5},
        {"retain_for": timedelta(-1)},
        {"retain_bytes": -1},
        {"answers_for": None},
    ],
)
def test_wrong_settings(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        ArchiveSettings(**wrong)


def test_wrong_arguments(folder):
    with Archive.open(folder) as archive:
        for call in (
            lambda: archive.read_events(after=-1, limit=1),
            lambda: archive.read_matches([1], after=0, limit=0),
            lambda: archive.event_at("soon"),
            lambda: archive.prune(before="x"),
        ):
            with pytest.raises(InputError):
                call()


def test_files_of_a_segment(folder):
    """What other programs read."""
    with Archive.open(folder, settings=ArchiveSettings(keep="matched")) as archive:
        archive.append([make_entry([b'{"a":1}', b"{}", b'{"b":2}'], [[5, 3], [], [7]], change=4)])
        archive.seal()
    for kind in ("events", "matches"):
        (path,) = (folder / kind).iterdir()
        table = pq.read_table(path)
        assert table["number"].to_pylist() == [1, 3]
        assert table["moment"].to_pylist() == [datetime(1970, 1, 1, tzinfo=UTC)] * 2
        assert table["change"].to_pylist() == [4, 4]
        if kind == "events":
            assert table["event"].to_pylist() == ['{"a":1}', '{"b":2}']
        else:
            assert table["subscriptions"].to_pylist() == [[5, 3], [7]]


def test_many_row_groups(folder, monkeypatch):
    monkeypatch.setattr("tamis.archive.closed_files.N_ROWS", 3)
    monkeypatch.setattr("tamis.archive.closed_files.N_MATCHES", 4)
    monkeypatch.setattr("tamis.archive.closed_segment.CACHED_BYTES", 200)
    texts = [b'{"a":%d}' % at for at in range(20)]
    lists = [list(range(at % 6)) for at in range(20)]
    with Archive.open(folder) as archive:
        archive.append([make_entry(texts, lists)])
        archive.seal()
        (path,) = (folder / "matches").iterdir()
        rows = pq.read_table(path)
        assert rows["subscriptions"].to_pylist() == [own for own in lists if own]
        assert archive.get_events(range(30)) == dict(enumerate(texts, start=1))
        assert archive.get_events([2, 19]) == {2: texts[1], 19: texts[18]}
        numbers = [batch["number"].to_pylist() for batch in archive.scan(after=4, up_to=8)]
        assert numbers == [[5, 6], [7, 8]]


def test_a_segment_is_closed_when_it_is_old(folder, clock):
    with Archive.open(folder) as archive:
        archive.maintain()
        add(archive, 5)
        for time, n_closed in ((HOUR, 0), (HOUR + 6, 1), (9 * HOUR, 1)):
            clock(time)
            archive.maintain()
            assert archive.stats()["closed_segments"] == n_closed


def test_retention_by_age(folder, clock):
    settings = ArchiveSettings(retain_for=timedelta(hours=2), answers_for=timedelta(hours=4))
    with Archive.open(folder, settings=settings) as archive:
        for hour in range(4):
            add(archive, hour * HOUR)
            archive.seal()
        clock(3 * HOUR)
        archive.maintain()
        assert archive.first_event == 2
        page = archive.read_matches([1], after=0, limit=9)
        assert (page.missed, [match.event for match in page.matches]) == (range(1, 2), [2, 3, 4])
        # Answers stay longer than their segment.
        assert archive.find_answer(key_of(b"0")).answer == b"0 from 1"
        clock(9 * HOUR)
        archive.maintain()
        assert (archive.first_event, archive.last_event) == (5, 4)
        assert not list((folder / "answers").iterdir())
        assert archive.find_answer(key_of(b"0")) is None
        page = archive.read_events(after=1, limit=9)
        assert (page.events, page.after, page.missed) == ([], 4, range(2, 5))
        assert archive.append([make_entry([b"{}"], [[]])]) == [5]
    with Archive.open(folder, settings=settings) as archive:
        assert (archive.first_event, archive.last_event) == (5, 5)


def test_retention_by_size(folder, clock):
    with Archive.open(folder) as archive:
        for at in range(4):
            add(archive, at)
            archive.seal()
        n_bytes = archive.stats()["bytes"]
    settings = ArchiveSettings(retain_bytes=n_bytes - 1)
    with Archive.open(folder, settings=settings) as archive:
        archive.maintain()
        assert archive.first_event == 2
        assert archive.stats()["bytes"] < n_bytes
        assert archive.find_answer(key_of(b"0")) is not None


def test_answers_of_removed_segments_survive_a_restart(folder, clock):
    with Archive.open(folder) as archive:
        add(archive, 1)
        archive.seal()
        assert archive.prune(before=9) == 1
    with Archive.open(folder) as archive:
        assert archive.find_answer(key_of(b"1")).answer == b"1 from 1"
        assert archive.first_event == 2


def test_events_removed_while_they_are_read(folder):
    with Archive.open(folder) as archive:
        for at in range(3):
            add(archive, at)
            archive.seal()
        batches = archive.scan()
        assert next(batches)["number"].to_pylist() == [1]
        archive.prune(before=4)
        with pytest.raises(HistoryError, match="removed while they were read"):
            list(batches)
        assert list(archive.scan()) == []


def test_a_backup_needs_a_new_folder(folder):
    with Archive.open(folder) as archive:
        add(archive, 1)
        copy = folder.with_name("copy")
        assert archive.backup(copy) == 1
        with pytest.raises(Exception, match="was not copied"):
            archive.backup(copy)


# ── threads ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("with_thread")
def test_segments_are_closed_in_the_background(folder, seed, monkeypatch):
    monkeypatch.setattr(maintenance, "N_PENDING", 3)
    settings = ArchiveSettings(segment_bytes=2000, segment_age=FOREVER, answers_for=FOREVER)
    draw, model = random.Random(seed), Model()
    with Archive.open(folder, settings=settings) as archive:
        while archive._contents.open.serial < 5:
            entry, texts = draw_entry(draw, 5)
            archive.append([entry])
            model.append(entry, texts)
        wait_until(lambda: archive.stats()["closed_segments"] >= 4, "segments are closed")
        model.expect(archive, draw)


@pytest.mark.usefixtures("with_thread")
def test_an_error_in_the_background_is_reported(folder, monkeypatch, caplog):
    monkeypatch.setattr(maintenance, "INTERVAL", 0.01)
    settings = ArchiveSettings(segment_bytes=1, segment_age=FOREVER)
    with Archive.open(folder, settings=settings) as archive:
        convert = maintenance.Converter.convert
        monkeypatch.setattr(maintenance.Converter, "convert", lambda *_: 1 / 0)
        add(archive, 1)
        add(archive, 2)
        wait_until(lambda: archive.stats()["maintenance_error"], "the error is reported")
        assert "division by zero; it is tried again" in caplog.text
        monkeypatch.setattr(maintenance.Converter, "convert", convert)
        wait_until(lambda: archive.stats()["closed_segments"], "the segment is closed")
        wait_until(lambda: not archive.stats()["maintenance_error"], "the error is gone")


def test_readers_while_events_arrive_and_segments_close(folder, seed):
    """Each reader polls a mailbox and misses nothing; another one follows from outside."""
    n_events = 400
    settings = ArchiveSettings(segment_bytes=3000, segment_age=FOREVER)
    archive = Archive.open(folder, settings=settings)
    outside = Archive.open(folder, settings=settings, read_only=True)
    failures: list[BaseException] = []

    def poll(own: Archive, name: int) -> None:
        try:
            cursor, found = 0, []
            while cursor < n_events:
                page = own.read_matches([name], after=cursor, limit=7)
                numbers = [match.event for match in page.matches]
                texts = own.get_events(numbers)
                assert texts == {number: b'{"n":%d}' % number for number in numbers}
                cursor, found = page.after, found + numbers
            assert found == [n for n in range(1, n_events + 1) if n % 5 == name]
        except BaseException as error:
            failures.append(error)
            raise

    readers = [
        threading.Thread(target=poll, args=(own, name), daemon=True)
        for own in (archive, outside)
        for name in range(2)
    ]
    for reader in readers:
        reader.start()
    number = 0
    draw = random.Random(seed)
    while number < n_events:
        size = min(draw.randint(1, 9), n_events - number)
        numbers = range(number + 1, number + 1 + size)
        texts = [b'{"n":%d}' % own for own in numbers]
        archive.append([make_entry(texts, [[own % 5] for own in numbers])])
        number += size
        if draw.random() < 0.1:
            archive.seal()
    for reader in readers:
        reader.join(HANG_SECONDS)
    assert not failures
    archive.close()
