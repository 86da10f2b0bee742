"""Similar matches: the same groups as a naive twin finds, however and whenever they are read."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import orjson
import pytest

from tamis.broker import stories
from tamis.broker.following_server import FollowingServer
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer
from tamis.broker.minhash import LEAST_EQUAL, N_HASHES, find_similar, sign
from tamis.broker.rights import LOCAL
from tamis.broker.stories import group
from tamis.errors import InputError
from tests.broker.similar_stories import draw_events, publish, real_stories, retell
from tests.effort import SEED, examples
from tests.subscriptions.places import Clock, new_folder

STORIES = real_stories()


def add(server, name: str, expression: str, window: str | None) -> int:
    server.live.add(name, expression, attributes={"group_similar": window} if window else {})
    return server.live.get(name).created


def twin(events: list[tuple[int, object, bytes]], window: timedelta) -> dict[int, int | None]:
    """What each match of a subscription is similar to, by comparing all of them."""
    found = {}
    for at, (event, moment, text) in enumerate(events):
        mine, found[event] = sign(text), None
        for earlier, since, other in events[:at]:
            theirs = sign(other)
            if mine is None or theirs is None or since <= moment - window:
                continue
            if int((mine == theirs).sum()) >= LEAST_EQUAL:
                found[event] = earlier
                break
    return found


def held(server, is_match) -> list[tuple[int, object, bytes]]:
    page = server.archive.read_events(after=0, limit=10_000)
    return [(own.number, own.moment, own.event) for own in page.events if is_match(own.event)]


def read_pages(server, names: dict[int, str], draw: random.Random) -> list:
    found, after = [], 0
    while True:
        page = server.mailboxes.read_named(names, after=after, limit=draw.choice([1, 2, 7, 100]))
        found += page.matches
        after = page.after
        if page.is_last:
            return found


def check(server, numbers: dict[str, int], draw: random.Random) -> None:
    """Both mailboxes, each with its window, and the channel with both."""
    expected = {
        numbers["a"]: twin(held(server, lambda text: orjson.loads(text)["x"] == 1), DAY),
        numbers["b"]: twin(held(server, lambda text: orjson.loads(text)["y"] == 1), 3 * DAY),
    }
    assert {type(own) for one in expected.values() for own in one.values()} == {int, type(None)}
    for name, number in numbers.items():
        found = read_pages(server, {number: name}, draw)
        assert {own.event: own.similar_to for own in found} == expected[number]
    both = {number: name for name, number in numbers.items()}
    for own in read_pages(server, both, draw):
        told = [expected[number][own.event] for number in own.numbers]
        assert own.similar_to == (None if None in told else min(told))
        assert own.restrict({numbers["a"]: "a"}).similar_to == (
            expected[numbers["a"]].get(own.event)
        )


DAY = timedelta(days=1)


@pytest.mark.parametrize("life", range(examples(3)))
def test_groups_are_those_of_a_naive_twin(life, monkeypatch):
    """After each restart, in pages of any size, in closed segments, and on a follower."""
    draw = random.Random(SEED + life)
    monkeypatch.setattr(stories, "_MOST_REMEMBERED", draw.choice([3, 10_000]))
    folder, clock = new_folder() / "server", Clock()
    numbers: dict[str, int] = {}
    for _ in range(3):
        with MatchServer.open(folder, clock=clock) as server:
            if not numbers:
                numbers = {
                    "a": add(server, "a", "x = 1", "1d"),
                    "b": add(server, "b", "y = 1", "3d"),
                }
                publish(server, [STORIES[0] | {"x": 1, "y": 1}] * 2)  # similar, in every life
            for _ in range(8):
                publish(server, draw_events(draw, STORIES, draw.choice([1, 3, 6])))
                clock.move(draw.choice([0, 3_600, 40_000, 86_400]))
            if draw.random() < 0.5:
                server.archive.seal()
            check(server, numbers, draw)
            with FollowingServer.open(folder) as follower:
                check(follower, numbers, draw)


def test_kills_change_no_group(tmp_path):
    folder, draw = tmp_path / "server", random.Random(SEED)
    with MatchServer.open(folder) as server:
        numbers = {"a": add(server, "a", "x = 1", "1d"), "b": add(server, "b", "y = 1", "3d")}
    for run in range(2):
        command = [sys.executable, "-m", "tests.broker.similar_stories", str(folder), str(run)]
        root = Path(__file__).parents[2]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as victim:
            for _ in range(draw.randint(5, 15)):
                told = int(victim.stdout.readline())
            victim.kill()
        with MatchServer.open(folder) as server:
            assert server.archive.last_event >= told
            check(server, numbers, draw)


# ── what is similar ─────────────────────────────────────────────────────────────────────────


def is_similar(one: dict, other: dict) -> bool:
    return find_similar(sign(orjson.dumps(one)), [sign(orjson.dumps(other))]) == 0


def test_a_story_with_one_word_in_ten_changed_is_similar():
    draw = random.Random(SEED)
    long = [own for own in STORIES if len(own["body"].split()) > 30]
    assert len(long) > 5
    for story in long:
        assert is_similar(story, retell(story, draw, 0.05))
        assert not is_similar(story, retell(story, draw, 0.35))
    near = [is_similar(own, retell(own, draw, 0.1)) for own in long for _ in range(10)]
    far = [is_similar(own, retell(own, draw, 0.25)) for own in long for _ in range(10)]
    assert sum(near) > 0.7 * len(near)
    assert sum(far) < 0.1 * len(far)


def test_case_punctuation_and_accents_do_not_count():
    assert is_similar({"title": "Café, closed!"}, {"title": "CAFE closed", "body": ""})
    assert not is_similar({"title": "Café closed"}, {"title": "Café opened"})


@pytest.mark.parametrize(
    "event", [b"{}", b'{"title": 3}', b'{"title": "..."}', b"[]", b"{", b'{"text": "a"}', None]
)
def test_what_has_no_words_is_never_similar(event):
    assert sign(event) is None


def test_similar_means_half_of_the_hashes():
    mine = np.arange(N_HASHES, dtype=np.uint32)
    close, far = mine.copy(), mine.copy()
    close[LEAST_EQUAL:] += 1_000
    far[LEAST_EQUAL - 1 :] += 1_000
    assert find_similar(mine, [None, far, close, mine]) == 2
    assert find_similar(mine, [far, None]) is None
    assert find_similar(mine, []) is None


# ── the option ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def server(tmp_path):
    with MatchServer.open(tmp_path / "server") as opened:
        yield opened


def groupings(server) -> dict[int, timedelta]:
    return server.broker.groupings.of(range(1, 100))


def test_the_option_follows_every_change(server, tmp_path):
    first = add(server, "a", "x = 1", "2d")
    assert groupings(server) == {first: timedelta(days=2)}
    server.live.replace("a", valid_until="2040-01-01")
    server.live.renew("a", "2041-01-01")
    assert groupings(server) == {first: timedelta(days=2)}
    server.live.replace("a", expression="x = 2")
    assert groupings(server) == {first: timedelta(days=2)}
    server.live.replace("a", attributes={"title": "group_similar"})
    assert groupings(server) == {}
    second = add(server, "b", "x = 1", "1h")
    server.live.replace("a", attributes={"group_similar": "30min"})
    expected = {first: timedelta(minutes=30), second: timedelta(hours=1)}
    assert groupings(server) == expected
    server.live.remove("b")
    with FollowingServer.open(tmp_path / "server") as follower:
        assert groupings(follower) == groupings(server) == expected
        server.live.replace("a", attributes={})
        assert groupings(follower) == groupings(server) == {second: timedelta(hours=1)}


def test_an_invalid_option_is_reported_and_not_used(server, caplog):
    add(server, "a", "x = 1", "soon")
    with caplog.at_level(logging.WARNING):
        assert groupings(server) == {}
    assert "group_similar is 'soon'" in caplog.text


def test_without_the_library_nothing_is_grouped_and_that_is_reported(server, monkeypatch, caplog):
    number = add(server, "a", "x = 1", "1d")
    publish(server, [{"x": 1, "title": "same"}] * 2)

    def refuse() -> None:
        raise InputError("no rensa", hint="install it")

    monkeypatch.setattr(stories, "expect_library", refuse)
    for _ in range(2):
        page = server.mailboxes.read_named({number: "a"}, after=0, limit=10)
        assert [own.similar_to for own in page.matches] == [None, None]
    assert caplog.text.count("no rensa") == 1


def test_only_so_many_earlier_matches_are_compared(server, monkeypatch):
    monkeypatch.setattr(stories, "MOST_COMPARED", 3)
    number = add(server, "a", "x = 1", "1d")
    titles = ["same", "one", "two", "same", "three", "four", "five", "same"]
    publish(server, [{"x": 1, "title": own} for own in titles])
    for limit in (1, 3, 100):
        draw = random.Random(limit)
        found = read_pages(server, {number: "a"}, draw)
        assert [own.similar_to for own in found] == [None, None, None, 1, None, None, None, None]


def test_matches_of_a_history_are_grouped_too(server):
    from tests.broker.history_places import subscribe

    publish(server, [{"title": "oil falls again"}, {"title": "oil falls again"}])
    number = subscribe(server, "a", "oil", 0)
    server.live.replace("a", attributes={"group_similar": "1d"})
    publish(server, [{"title": "oil falls again"}])
    page = server.mailboxes.read_named({number: "a"}, after=0, limit=10)
    assert [(own.event, own.similar_to) for own in page.matches] == [(1, None), (2, 1), (3, 1)]


# ── stories ─────────────────────────────────────────────────────────────────────────────────


def test_every_match_is_in_one_story(server):
    draw = random.Random(SEED)
    number = add(server, "a", "x = 1", "1d")
    publish(server, draw_events(draw, STORIES[:5], 60))
    found = read_pages(server, {number: "a"}, draw)
    firsts = [own.event for own in found if own.similar_to is None]
    stories = group(found, server.mailboxes.similar.find_begin)
    assert [own.event for own in stories] == firsts
    shown = [match.event for story in stories for match in story.matches]
    assert sorted(shown) == [own.event for own in found]
    # The newest alone: each of their stories has its beginning.
    newest = server.mailboxes.newest_stories(Mailbox.of_subscription(number), 10)
    assert all(own.event == own.match.event for own in newest)
    assert {own.event for own in newest} <= set(firsts)
    assert {match.event for own in newest for match in own.matches} >= set(sorted(shown)[-10:])


def test_a_channel_groups_what_is_similar_for_all_its_members(server):
    grouped, plain = add(server, "a", "x = 1", "1d"), add(server, "b", "y = 1", None)
    box = server.broker.channels.create(LOCAL, "c", owner="ann").mailbox
    server.broker.channels.add(LOCAL, "c", [grouped, plain])
    publish(
        server, [{"x": 1, "title": "t"}, {"x": 1, "title": "t"}, {"x": 1, "y": 1, "title": "t"}]
    )
    page = server.mailboxes.read(box, after=0, limit=10)
    assert [own.similar_to for own in page.matches] == [None, 1, None]
    assert [orjson.loads(own.spell()).get("similar_to") for own in page.matches] == [None, 1, None]
