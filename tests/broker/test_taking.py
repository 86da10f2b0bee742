"""Matches of a stream: each batch exactly once into mailboxes, whatever happens to either side."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from random import Random

import pytest

from tamis.archive import ArchiveSettings
from tamis.broker import stream_entries
from tamis.broker.backup import back_up, restore
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer, MatchServerSettings, StreamSettings
from tamis.broker.matching import Publication
from tamis.broker.taking import StreamTaker
from tamis.errors import InputError, StoreError
from tamis.events.json_source import JsonObjects
from tests.broker.stream_writer import StreamWriter, write_file
from tests.scripts import run_script
from tests.server.conftest import STORES, choose_store
from tests.subscriptions.places import START, Clock


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch):
    """Batches are taken when a test says so."""
    monkeypatch.setattr(StreamTaker, "start", lambda self: None)


class Side:
    """A server and the stream that matches for it."""

    def __init__(self, folder, **settings) -> None:
        self.folder, self.output = folder / "server", folder / "matches"
        self.settings = MatchServerSettings(stream=StreamSettings(str(self.output)), **settings)
        self.clock = Clock()
        self.open()
        self.stream = StreamWriter(self.output, self.server.live)

    def open(self) -> None:
        self.server = MatchServer.open(self.folder, self.settings, clock=self.clock)

    def open_again(self) -> None:
        self.server.close()
        self.open()
        self.stream.live = self.server.live

    def take(self) -> int:
        return self.server.taker.take_all()

    @property
    def counts(self):
        return self.server.taker.counts

    @property
    def problem(self):
        return self.server.taker.problem

    def subscribe(self, *names: str) -> None:
        for name in names:
            self.server.live.add(name, "x >= 0")
        self.stream.publish()

    def mail(self, name: str) -> list[str]:
        """The contents of a mailbox, in order."""
        known = self.server.broker.subscriptions.find(name)
        page = self.server.mailboxes.read(
            Mailbox.of_subscription(known.number), after=0, limit=10_000
        )
        return [own.content.decode() for own in page.matches]


@pytest.fixture(params=STORES)
def side(request, tmp_path):
    side = Side(tmp_path, store=choose_store(request))
    yield side
    side.server.close()


def texts(*numbers: int) -> list[str]:
    """The texts of events."""
    return [f'{{"x": {number}}}' for number in numbers]


def rows(*events: tuple[int, str]) -> list:
    """Rows of events whose text is their number."""
    return [(number, name, f'{{"x": {number}}}') for number, name in events]


def test_matches_go_into_mailboxes(side):
    side.subscribe("a", "b")
    woken = []
    number = side.server.live.get("a").created
    with side.server.hub.watch([number], lambda: woken.append("a")):
        side.stream.write(0, rows((1, "a"), (2, "b"), (1, "b"), (3, "a")), n_files=3)
        assert side.take() == 1
    assert side.mail("a") == texts(1, 3)
    assert side.mail("b") == texts(1, 2)
    assert woken == ["a"]
    page = side.server.archive.read_matches([number], after=0, limit=9)
    assert [own.change for own in page.matches] == [2, 2]
    side.stream.write(1, rows((4, "a")))
    side.stream.write(2, [])
    side.stream.write(3, rows((5, "a")))
    assert side.take() == 3
    assert side.take() == 0
    assert side.mail("a") == texts(1, 3, 4, 5)
    assert side.server.taker.describe()["batch"] == 3
    assert side.server.archive.last_event == 5  # events without a match are not in the output


def test_equal_rows_are_one_match_and_equal_texts_two_events(side):
    side.subscribe("a")
    text = '{"x": 1}'
    side.stream.write(0, [(1, "a", text), (1, "a", text), (2, "a", text), (None, "a", text)])
    side.take()
    assert side.mail("a") == [text] * 3
    side.stream.write(1, [("k2", "a", '{"x": 2}'), ("k1", "a", '{"x": 3}')])  # ids of any type
    side.take()
    assert side.mail("a")[3:] == texts(3, 2)


def test_a_batch_that_is_written_again_is_taken_once(side, caplog):
    side.subscribe("a")
    for batch in range(3):
        side.stream.write(batch, rows((batch, "a")))
    assert side.take() == 3
    side.stream.write(2, rows((2, "a")))
    assert side.take() == 0
    assert side.counts.n_repeated_batches == 1
    side.take()
    assert side.counts.n_repeated_batches == 1  # counted once
    side.stream.write(2, rows((2, "a"), (7, "a")))
    side.take()
    assert "written again with 2 rows; the 1 rows that were taken stay" in caplog.text
    side.open_again()
    assert side.take() == 0
    assert side.mail("a") == texts(0, 1, 2)


def test_incomplete_batches_wait(side):
    side.subscribe("a")
    folder = side.stream.begin(0)
    assert side.take() == 0
    assert side.problem is None
    write_file(folder / "part-0.parquet", rows((1, "a")))
    write_file(folder / "part-1.parquet", rows((2, "a")))
    assert side.take() == 0
    side.stream.record(0, 2)
    (folder / "part-1.parquet").rename(folder / "_away")
    assert side.take() == 0
    assert "has 1 rows; its record counts 2" in side.problem
    content = (folder / "part-0.parquet").read_bytes()
    (folder / "_away").rename(folder / "part-1.parquet")
    for damaged in (content[:50], content[:-9], b"", b"PAR1" + bytes(100)):
        (folder / "part-0.parquet").write_bytes(damaged)
        assert side.take() == 0
        assert "part-0.parquet cannot be read" in side.problem
    (folder / "part-0.parquet").write_bytes(content)
    assert side.take() == 1
    assert side.problem is None
    assert side.mail("a") == texts(1, 2)
    assert side.counts.n_failures == 5


def test_a_damaged_batch_holds_up_later_ones_and_a_deleted_one_does_not(side):
    side.subscribe("a")
    side.stream.write(0, rows((1, "a")))
    bad = side.stream.write(1, rows((2, "a")))
    side.stream.write(2, rows((3, "a")))
    (bad / "_tamis.json").write_text("{")
    assert side.take() == 1
    assert "_tamis.json is damaged" in side.problem
    (bad / "_tamis.json").unlink()
    assert side.take() == 0
    assert "_tamis.json is missing, but there is a later batch" in side.problem
    assert "delete the folder" in side.problem
    shutil.rmtree(bad)
    assert side.take() == 1
    assert side.mail("a") == texts(1, 3)
    assert side.counts.n_lost_batches == 1
    side.stream.write(1, rows((2, "a")))  # too late
    assert side.take() == 0


def test_a_stream_that_began_before_the_server(side):
    side.subscribe("a")
    side.stream.write(4, rows((1, "a")))
    assert side.take() == 1
    assert side.counts.n_lost_batches == 4


def test_output_of_an_older_program(side):
    for batch in range(2):
        write_file(side.stream.begin(batch) / "part-0.parquet", rows((1, "a")))
    assert side.take() == 0
    assert "older program" in side.problem


def test_output_without_events(side):
    side.subscribe("a")
    side.stream.write(0, rows((1, "a")), column="other")
    assert side.take() == 0
    assert 'no column "attributes"' in side.problem
    assert "--with-event '*'" in side.problem


def test_another_stream_in_the_same_folder(side, tmp_path):
    side.subscribe("a")
    side.stream.write(0, rows((1, "a")))
    side.stream.write(1, rows((2, "a")))
    side.take()
    other = StreamWriter(side.output, side.server.live, "another")
    other.write(0, rows((1, "a")))
    side.open_again()
    assert side.take() == 0
    assert "written by stream another" in side.problem
    assert "give it another output" in side.problem
    side.stream.write(0, rows((1, "a")))
    assert side.take() == 0
    assert side.problem is None
    # The output may be moved: the stream is the same.
    side.output.rename(tmp_path / "moved")
    side.stream.folder = tmp_path / "moved"
    side.settings = MatchServerSettings(stream=StreamSettings(str(tmp_path / "moved")))
    side.stream.write(2, rows((3, "a")))
    side.open_again()
    assert side.take() == 1
    assert side.mail("a") == texts(1, 2, 3)


def test_subscriptions_that_have_changed_meanwhile(side, caplog):
    live = side.server.live
    side.subscribe("kept", "changed", "ended", "again")
    live.add("leased", "x >= 0", valid_until=START + timedelta(seconds=10))
    side.stream.publish()
    live.replace("changed", "x > 100")
    live.remove("ended")
    live.remove("again")
    live.add("again", "x >= 0", owner="somebody else")
    live.add("late", "x >= 0")
    side.clock.move(11)
    names = ("kept", "changed", "ended", "again", "leased", "late", "never")
    side.stream.write(0, rows(*((1, name) for name in names), (2, "ended")))
    assert side.take() == 1
    delivered = [name for name in names[:-1] if side.mail(name)]
    assert delivered == ["kept", "changed"]
    assert side.counts.undelivered == {"ended": 5, "unknown": 1}
    assert "1 matches of ids that the log of subscriptions does not have" in caplog.text
    assert "'never'" in caplog.text
    side.stream.publish()
    side.stream.write(1, rows((3, "again")))
    side.take()
    assert side.mail("again") == texts(3)


def test_versions_of_elsewhere_are_not_delivered(side):
    side.subscribe("a")
    own = side.stream.position
    for batch, position in enumerate((None, own._replace(epoch="another"))):
        side.stream.position = position
        side.stream.write(batch, rows((1, "a")))
    assert side.take() == 2
    assert side.mail("a") == []
    assert side.counts.undelivered == {"foreign": 2}


def test_rows_without_an_event_that_can_be_read(side):
    side.subscribe("a")
    given = ["", None, "{", "[1]", "7", '{"x": 1}']
    side.stream.write(0, [(n, "a", text) for n, text in enumerate(given)])
    assert side.take() == 1
    assert side.mail("a") == texts(1)
    assert side.counts.undelivered == {"no-event": 5}


def test_the_clock_of_spark_may_be_ahead(side):
    side.subscribe("a")
    side.stream.write(0, rows((1, "a")))  # by the clock of this machine
    side.take()
    page = side.server.archive.read_matches([1], after=0, limit=1)
    assert page.matches[0].moment == min(START, page.matches[0].moment)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("entry", [1, 2, 3])
def test_a_server_that_dies_between_two_entries_of_a_large_batch(
    tmp_path, monkeypatch, entry, is_stored
):
    monkeypatch.setattr(stream_entries, "MOST_MATCHES", 2)
    side = Side(tmp_path)
    side.subscribe("a", "b")
    found = rows(*((n, name) for n in range(6) for name in "ab"))
    side.stream.write(0, found, n_files=2)
    append, n_calls = side.server.archive.append, 0

    def die(entries):
        nonlocal n_calls
        n_calls += 1
        if n_calls == entry:
            if is_stored:
                append(entries)
            raise Killed
        return append(entries)

    monkeypatch.setattr(side.server.archive, "append", die)
    with pytest.raises(Killed):
        side.take()
    monkeypatch.setattr(side.server.archive, "append", append)
    Random(1).shuffle(found)
    side.stream.write(0, found, n_files=5)  # Spark died too, and has run the batch again
    side.open_again()
    side.stream.write(1, rows((9, "a")))
    assert side.take() == 2
    assert side.mail("a") == texts(*range(6), 9)
    assert side.mail("b") == texts(*range(6))
    side.server.close()


def test_a_reader_that_fails_to_be_woken(side):
    side.subscribe("a")

    def fail() -> None:
        raise RuntimeError("a fault")

    side.stream.write(0, rows((1, "a")))
    with side.server.hub.watch(None, fail):
        side.take()
    assert "a fault" in side.problem
    side.take()
    assert side.problem is None
    assert side.mail("a") == texts(1)


def test_a_store_that_fails_after_the_archive(side, monkeypatch):
    side.subscribe("a")
    side.stream.write(0, rows((1, "a")))
    side.take()

    def fail(*_):
        raise StoreError("the store is away")

    monkeypatch.setattr(side.server.taker._positions, "write", fail)
    side.stream.write(1, rows((2, "a")))
    side.take()
    assert side.problem == "the store is away"
    side.open_again()
    side.stream.write(2, rows((3, "a")))
    assert side.take() == 1
    assert side.mail("a") == texts(1, 2, 3)


def test_the_position_outlives_the_entries_that_had_it(tmp_path):
    """A server that was killed before the store knew, and started after a long time."""
    settings = ArchiveSettings(answers_for=timedelta(0), retain_for=timedelta(0))
    side = Side(tmp_path, archive=settings)
    side.subscribe("a")
    side.stream.write(0, rows((1, "a")))
    side.take()
    side.server.taker._positions.write = lambda *_: None
    side.stream.write(1, rows((2, "a")))
    side.take()
    side.server.archive.seal()
    side.open_again()
    side.server.archive.maintain()
    assert side.server.archive.first_event == 3
    side.stream.write(2, rows((3, "a")))
    assert side.take() == 1
    side.open_again()
    assert side.take() == 0
    side.server.close()


def test_spark_gets_the_texts_of_all_events(tmp_path):
    side = Side(tmp_path, archive=ArchiveSettings(keep="matched"))
    asked = Publication(JsonObjects([b'{"x": 1}']), 10)
    side.server.publisher.publish(asked).result()
    assert side.server.intake.get_events([1]) == {1: b'{"x": 1}'}
    side.server.close()


def test_published_events_wait_for_the_stream(side):
    side.subscribe("a")
    given = [b'{"x": 1}', b"no event", b'{"x": 2}']
    asked = Publication(JsonObjects(given), 30, key=bytes(32), request=bytes(32))
    published = side.server.publisher.publish(asked).result()
    assert (published.n_events, published.first_event) == (2, 1)
    assert (published.n_matched, published.n_matches) == (None, None)
    assert [row.row for row in published.rejected] == [1]
    assert side.server.publisher.publish(asked).result() == published
    with pytest.raises(InputError, match="a stream matches the events later"):
        side.server.publisher.publish(asked._replace(key=None, wants_ids=True)).result()
    assert side.server.archive.last_event == 0
    intake = side.server.intake
    assert intake.get_events([1, 2]) == {1: b'{"x": 1}', 2: b'{"x": 2}'}
    side.stream.write(0, [(2, "a", intake.get_events([2])[2].decode())])
    side.take()
    assert side.mail("a") == texts(2)


# A database is restored by its own tools.
@pytest.mark.parametrize("side", ["sqlite"], indirect=True)
def test_a_backup_whose_store_is_newer_than_its_archive(side, tmp_path, monkeypatch):
    side.subscribe("a")
    side.stream.write(0, rows((1, "a")))
    side.take()
    server, taken = side.server, side.server.archive.backup

    def copy(target):
        found = taken(target)
        side.stream.write(1, rows((2, "a")))
        assert side.take() == 1
        return found

    monkeypatch.setattr(server.archive, "backup", copy)
    back_up(server.folder, server.live.store, server.archive, tmp_path / "backup", server.intake)
    server.close()
    restore(tmp_path / "backup", tmp_path / "restored")
    side.folder = tmp_path / "restored"
    side.open()
    assert side.mail("a") == texts(1)
    assert side.take() == 1
    # The change numbers of the version belong to the history before.
    assert side.counts.undelivered == {"foreign": 1}


def test_random_lives(tmp_path, seed):
    """Subscriptions come and go, batches are repeated, damaged and repaired, servers restart."""
    draw = Random(seed)
    side = Side(tmp_path)
    expected: dict[str, list[str]] = {}
    written: list[list] = []
    next_event = 0
    for _ in range(60):
        action = draw.choice(["subscribe", "end", "batch", "batch", "batch", "again", "restart"])
        alive = [name for name in expected if side.server.live.get(name)]
        if action == "subscribe":
            name = f"s{len(expected)}"
            expected[name] = []
            side.subscribe(name)
        elif action == "end" and alive and draw.random() < 0.3:
            side.server.live.remove(draw.choice(alive))
        elif action == "batch":
            found = []
            for _ in range(draw.randint(0, 5)):
                next_event += 1
                matched = draw.sample(sorted(expected), draw.randint(0, len(expected)))
                found += rows(*((next_event, name) for name in matched))
                for name in set(matched) & set(alive):
                    expected[name].append(f'{{"x": {next_event}}}')
            draw.shuffle(found)
            folder = side.stream.write(len(written), found, n_files=draw.randint(1, 3))
            written.append(found)
            if draw.random() < 0.3:
                file = draw.choice(sorted(folder.glob("*.parquet")))
                content = file.read_bytes()
                file.write_bytes(content[: draw.randrange(len(content))])
                assert side.take() == 0
                file.write_bytes(content)
            side.take()
        elif action == "again" and written:
            side.stream.write(len(written) - 1, written[-1], n_files=2)
            assert side.take() == 0
        elif action == "restart":
            side.open_again()
    for name, found in expected.items():
        assert side.mail(name) == found
    assert json.dumps(side.server.taker.describe())
    side.server.close()


def test_killed_streams_and_servers(folder, seed):
    out = run_script("-m", "tests.broker.stream_victim", str(folder), "8", str(seed))
    assert out.startswith("8 runs")
    assert int(out.split()[2]) > 0


@pytest.mark.slow
def test_many_killed_streams_and_servers(folder, seed):
    out = run_script("-m", "tests.broker.stream_victim", str(folder), "100", str(seed + 1000))
    assert out.startswith("100 runs")
