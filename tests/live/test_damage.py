"""Damaged files, full disks, folders that cannot be written: clear words, and nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import tamis
from tamis.errors import IndexFormatError, StoreError, StoreFormatError, TamisWarning
from tamis.live import Follower, LiveIndex, follow
from tamis.places import SUBSCRIPTIONS
from tamis.subscriptions import sqlite
from tamis.subscriptions.writer import Writer
from tamis.versions.store import IndexStore
from tests.effort import examples
from tests.live.places import by_hand, crash, step
from tests.subscriptions.places import Clock, after
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]
EVENTS = [{"a": n % 5, "b": n} for n in range(20)]
SETTINGS = "live.json"


@pytest.fixture(autouse=True)
def _by_hand():
    with by_hand():
        yield


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "people.live"


def fill(live: LiveIndex) -> None:
    """Several parts, something hidden and removed in each, and two versions."""
    live.add_many({f"s{n}": f"a = {n % 5} AND b >= {n}" for n in range(40)})
    live.remove("s1")
    live.compact()
    live.add_many({f"t{n}": f"a = {n % 5} OR b = {n}" for n in range(10)})
    live.remove_many(["s7", "t3"])
    live.replace("s2", "b < 3")
    live.publish(live._folder.with_name("published"))
    live.add("last", "a = 4")


def test_a_missing_store_is_not_replaced(folder):
    with LiveIndex.open(folder) as live:
        live.add("a", "a = 1")
    (folder / SUBSCRIPTIONS).rename(folder / "aside")
    with pytest.raises(StoreFormatError, match=r"subscriptions.sqlite is missing") as raised:
        LiveIndex.open(folder)
    assert "restore it from a backup" in raised.value.hint
    (folder / "aside").rename(folder / SUBSCRIPTIONS)
    with LiveIndex.open(folder) as live:
        assert live.match({"a": 1}) == ["a"]


def answers(index) -> list[list[str]]:
    return [sorted(found) for found in index.match_lists(EVENTS).to_pylist()]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, list[list[str]]]:
    folder = tmp_path_factory.mktemp("written") / "people.live"
    with by_hand():
        live = LiveIndex.open(folder)
        fill(live)
        found = answers(live)
        crash(live)
    return folder, found


def expect_recovery(folder: Path, wanted: list[list[str]]) -> None:
    """The index answers as before, can be written, and is as good as new afterwards."""
    with LiveIndex.open(folder) as live:
        assert answers(live) == wanted
        live.add("more", "a = 4")
        live.compact()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with LiveIndex.open(folder) as live:
            assert live.match({"a": 4}) == sorted({"more", *live.match({"a": 4})})
            live.remove("more")
            assert answers(live) == wanted


# ── damaged files ───────────────────────────────────────────────────────────────────────────


def damage(path: Path, how: str, draw: Random) -> None:
    content = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
        return
    if how == "truncated":
        del content[draw.randrange(len(content)) :]
    else:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def damageable(folder: Path) -> list[Path]:
    """The files of versions and parts: all but those of the store and the settings."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(("subscriptions.", SETTINGS))
    )


@pytest.mark.parametrize("how", ["flipped", "truncated", "missing"])
def test_versions_are_only_copies(written, how, tmp_path, seed):
    source, wanted = written
    draw = Random(seed)
    n_warnings = 0
    for at in range(examples(6)):
        folder = tmp_path / f"{at}.live"
        shutil.copytree(source, folder)
        for path in draw.sample(damageable(folder), draw.choice((1, 1, 3))):
            damage(path, how, draw)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            expect_recovery(folder, wanted)
        assert all(issubclass(one.category, TamisWarning) for one in given), given
        n_warnings += len(given)
        shutil.rmtree(folder)
    assert n_warnings


def test_a_lost_part_is_reported_and_built_again(written, folder):
    source, wanted = written
    shutil.copytree(source, folder)
    shutil.rmtree(folder / "parts")
    with pytest.warns(TamisWarning, match="the store is read instead. Nothing is lost"):
        expect_recovery(folder, wanted)


def test_an_older_copy_of_the_store(folder, tmp_path):
    """Numbers of changes are used again: versions of the lost ones are not what they say now."""
    with LiveIndex.open(folder) as live:
        live.add("a", "x = 1")
        live.store.backup(tmp_path / "backup")
        live.add_many({"lost": "x = 1", "more": "x = 1"})
        epoch = live.store.epoch
    shutil.copy(tmp_path / "backup" / SUBSCRIPTIONS, folder / SUBSCRIPTIONS)
    with pytest.warns(TamisWarning, match="ends at change 1, .* includes change 3: an older copy"):
        live = LiveIndex.open(folder)
    assert live.match({"x": 1}) == ["a"]
    assert live.store.epoch != epoch
    live.add_many({"b": "x = 1", "c": "x = 2", "d": "x = 2"})
    crash(live)
    with LiveIndex.open(folder) as live, follow(folder, is_started=False) as follower:
        assert sorted(live.match({"x": 1})) == sorted(follower.match({"x": 1})) == ["a", "b"]


def test_a_part_that_is_lost_while_it_is_used(folder):
    with LiveIndex.open(folder) as live:
        fill(live)
        wanted = answers(live)
        live.publish(folder.with_name("published"))
        shutil.rmtree(folder / "parts")
        assert answers(live) == wanted
        live.add("more", "a = 4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with LiveIndex.open(folder) as live:
            live.remove("more")
            assert answers(live) == wanted
            shutil.rmtree(folder / "parts")
            live.compact()  # of what is in memory
            assert answers(live) == wanted


@pytest.mark.parametrize("how", ["flipped", "truncated", "missing"])
def test_a_part_that_is_damaged_before_it_is_merged(folder, how, seed):
    """The merging process reads files; the parts that answer are in the memory of this one."""
    draw = Random(seed)
    with LiveIndex.open(folder) as live:
        fill(live)
        wanted = answers(live)
        for path in sorted((folder / "parts").glob("*/content-*.bin")):
            damaged = path.with_name("damaged")
            damaged.write_bytes(path.read_bytes())
            damage(damaged, how, draw)
            path.unlink()  # what is mapped stays as it is
            if damaged.exists():
                damaged.rename(path)
        live.compact()
        assert (len(live._live_set.parts), answers(live)) == (1, wanted)
    with LiveIndex.open(folder) as live:
        assert answers(live) == wanted


def test_current_is_not_needed(written, folder):
    source, wanted = written
    shutil.copytree(source, folder)
    (folder / "CURRENT").write_bytes(b"\xff")
    expect_recovery(folder, wanted)


@pytest.mark.parametrize("how", ["flipped", "truncated"])
def test_damaged_settings(written, how, tmp_path, seed):
    """They say how expressions are read: nothing is guessed."""
    source, wanted = written
    draw = Random(seed)
    for at in range(examples(20)):
        folder = tmp_path / f"{at}.live"
        shutil.copytree(source, folder)
        damage(folder / SETTINGS, how, draw)
        with pytest.raises(IndexFormatError, match=r"live\.json") as raised:
            LiveIndex.open(folder)
        assert "nothing is lost" in raised.value.hint
        with pytest.raises(IndexFormatError, match=r"live\.json"):
            follow(folder)
        shutil.copy(source / SETTINGS, folder / SETTINGS)
        expect_recovery(folder, wanted)


def test_settings_of_another_format(folder):
    LiveIndex.open(folder).close()
    body = json.loads((folder / SETTINGS).read_bytes())
    (folder / SETTINGS).write_text(json.dumps({**body, "format_version": 99}))
    with pytest.raises(IndexFormatError, match="has format version 99; this program reads"):
        LiveIndex.open(folder)


def test_lost_settings_are_not_guessed(folder):
    """The mode of missing values is in the versions too."""
    with LiveIndex.open(folder, missing="satisfies_negation") as live:
        live.add("s", "NOT a = 1")
    (folder / SETTINGS).unlink()
    with (
        pytest.warns(TamisWarning, match=r"live\.json is missing"),
        pytest.raises(tamis.InputError, match="was created with missing='satisfies_negation'"),
    ):
        LiveIndex.open(folder, missing="undefined")
    with pytest.warns(TamisWarning, match="as in v00000001: satisfies_negation"):
        live = LiveIndex.open(folder)
    assert live.match({}) == ["s"]
    live.close()
    with LiveIndex.open(folder) as live:
        assert live.match({}) == ["s"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (tamis.InputError("cannot read v00000001/manifest.json"), r"cannot read v00000001.*json"),
        (MemoryError(), r"MemoryError \(.*test_damage.py, line \d+\)"),
    ],
)
def test_a_follower_that_cannot_read_tries_again(folder, monkeypatch, error, message):
    def fail_to_read(follower: Follower) -> int:
        raise error

    with LiveIndex.open(folder) as live, follow(folder, is_started=False) as follower:
        live.add("s", "a = 1")
        with monkeypatch.context() as broken, warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            broken.setattr(Follower, "refresh", fail_to_read)
            follower.start()
            wait_until(lambda: follower._chore.n_failures > 2, "the follower fails again")
        wait_until(lambda: follower.match({"a": 1}) == ["s"], "the follower reads again")
        (own,) = (str(one.message) for one in given)  # once, not each time
        assert re.fullmatch(f"{message}; answers are as of change 0 until it can be read", own)


# ── full disks ──────────────────────────────────────────────────────────────────────────────


def refuse(monkeypatch, number: int) -> None:
    """Every new file and directory meets this error."""

    def fail(*args, **options):
        raise OSError(number, os.strerror(number), str(args[0]))

    make = os.open

    def open_(path, flags, *rest, **options):
        return fail(path) if flags & os.O_CREAT else make(path, flags, *rest, **options)

    monkeypatch.setattr(os, "mkdir", fail)
    monkeypatch.setattr(os, "open", open_)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_no_room_for_versions(folder, number, monkeypatch):
    """The store has room: changes go on; versions and merges wait."""
    reason = os.strerror(number)
    live = LiveIndex.open(folder)
    fill(live)
    with monkeypatch.context() as full:
        refuse(full, number)
        live.add("more", "a = 4")
        live.remove("more")
        wanted = answers(live)
        with pytest.raises(tamis.TamisError, match=reason) as raised:
            live.compact()
        assert str(folder) in str(raised.value)
        with pytest.raises(tamis.TamisError, match=reason):
            live.publish(folder.with_name("elsewhere"))
        for n in range(4):
            live.add_many({f"u{n}-{own}": "c = 1" for own in range(600)})
        with pytest.raises(StoreError, match="were not merged"):
            step(live)
        assert answers(live) == wanted
    while step(live):
        pass
    live.compact()
    assert answers(live) == wanted
    with monkeypatch.context() as full:
        refuse(full, number)
        live.add("more", "a = 9")
        with suppress(TamisWarning), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            live.close()
    with LiveIndex.open(folder) as live:
        assert answers(live) == wanted
        assert live.match({"a": 9}) == ["more"]


def test_versions_that_are_not_published_leave_no_parts(folder, monkeypatch):
    """They are tried again and again: parts would fill the disk."""
    with LiveIndex.open(folder) as live:
        fill(live)
        before = sorted(path.name for path in (folder / "parts").iterdir())
        with monkeypatch.context() as full:
            full.setattr(os, "link", lambda *_: refuse_link())
            for _ in range(3):
                with pytest.raises(tamis.InputError, match="No space left"):
                    live.publish(folder.with_name("published"))
        assert sorted(path.name for path in (folder / "parts").iterdir()) == before
        live.publish(folder.with_name("published"))


def test_older_versions_that_cannot_be_removed(folder, monkeypatch):
    with LiveIndex.open(folder) as live:
        fill(live)
        with monkeypatch.context() as stuck:
            stuck.setattr(IndexStore, "prune", refuse_to_prune)
            with pytest.warns(TamisWarning, match="older versions stay until the next time"):
                live.publish(folder.with_name("published"))
        wanted = answers(live)
    with LiveIndex.open(folder) as live:
        assert answers(live) == wanted


def refuse_to_prune(store: IndexStore, _retention: object) -> None:
    raise tamis.InputError(f"cannot delete {store.uri}/v00000001: Read-only file system")


def refuse_link() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_set_that_cannot_be_saved_is_closed(folder, monkeypatch):
    live = LiveIndex.open(folder)
    live.add("s", "a = 1")
    with monkeypatch.context() as full:
        refuse(full, errno.ENOSPC)
        with pytest.warns(TamisWarning, match="the set was not saved. Nothing is lost"):
            live.close()
    with LiveIndex.open(folder) as live:  # the folder is free
        assert live.match({"a": 1}) == ["s"]


def add_until_full(live: LiveIndex) -> tuple[int, StoreError]:
    """The last change that was acknowledged, and the error of the next one."""
    last = 0
    try:
        for n in range(10_000):
            last = live.add(f"s{n}", "a = 1 OR " * 20 + "a = 2")
    except StoreError as error:
        return last, error
    pytest.fail("there is no end to it")


def test_no_room_for_changes(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_PRAGMAS", (*sqlite._PRAGMAS, "max_page_count = 60"))
    live = LiveIndex.open(folder)
    last, error = add_until_full(live)
    assert "the disk is full" in error.message
    assert str(folder) in error.message
    assert live.change == live.store.last_change == last
    assert len(live.match({"a": 1})) == len(live) == last
    with pytest.raises(StoreError, match="the disk is full"):
        live.add_many({f"t{n}": "a = 1 OR " * 20 + "a = 2" for n in range(10)})
    assert len(live.match({"a": 2})) == last
    crash(live)
    monkeypatch.undo()
    with by_hand(), LiveIndex.open(folder) as live:
        assert len(live) == last
        live.add("more", "a = 1")
        assert len(live.match({"a": 1})) == last + 1


def test_a_change_whose_acknowledgement_fails(folder, monkeypatch):
    """It may be stored: then the next change, or the next end of a lease, shows it."""
    clock = Clock()
    with LiveIndex.open(folder, clock=clock) as live:
        live.add("s", "a = 1")
        commit = Writer._commit

        def lose(self, jobs):
            commit(self, [job._replace(future=type(job.future)()) for job in jobs])
            live._committer._changes.clear()
            raise StoreError("there is no connection")

        with monkeypatch.context() as lost:
            lost.setattr(Writer, "_commit", lose)
            with pytest.raises(StoreError, match="there is no connection"):
                live.add("t", "a = 1")
        assert live.get("t") is not None
        live.add("leased", "a = 2", valid_until=after(10))
        assert sorted(live.match({"a": 1})) == ["s", "t"]
        with monkeypatch.context() as lost:
            lost.setattr(Writer, "_commit", lose)
            with pytest.raises(StoreError, match="there is no connection"):
                live.add("u", "a = 1")
        clock.move(20)
        live._committer.expire()
        assert sorted(live.match({"a": 1})) == ["s", "t", "u"]


# ── folders that cannot be written ──────────────────────────────────────────────────────────

OPEN_AS_NOBODY = """
import os, sys
from tamis.errors import TamisError
from tamis.live import Follower, LiveIndex, follow
place, other = sys.argv[1:]
for path in (other, place):  # the first loads all that is loaded late
    with LiveIndex.open(path) as live:
        live.add("s", "a = 1")
        live.match({"a": 1})
    with follow(path, is_started=False) as follower:
        follower.match({"a": 1})
for path, folders, files in os.walk(place):
    os.chmod(path, 0o555)
    for name in files:
        os.chmod(os.path.join(path, name), 0o444)
if os.geteuid() == 0:
    os.setuid(65534)
try:
    LiveIndex.open(place)
except TamisError as error:
    print(error)
with follow(place, is_started=False) as follower:
    print(follower.match({"a": 1}), follower.change)
"""


def test_a_folder_that_cannot_be_written(tmp_path):
    for path in (tmp_path, *tmp_path.parents):
        with suppress(OSError):
            os.chmod(path, 0o755)
    finished = subprocess.run(
        [sys.executable, "-c", OPEN_AS_NOBODY, tmp_path / "people.live", tmp_path / "other.live"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
        cwd=ROOT,
    )
    assert finished.returncode == 0, finished.stderr
    assert "ermission denied" in finished.stdout
    assert str(tmp_path / "people.live") in finished.stdout
    assert finished.stdout.endswith("['s'] 1\n")


def test_a_file_in_place_of_the_folder(folder):
    folder.write_text("a file")
    with pytest.raises(tamis.TamisError, match=str(folder)):
        LiveIndex.open(folder)
