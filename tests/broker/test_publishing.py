"""Publishing: few events, many at once, and many small requests together."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.broker.match_server import MatchServer
from tamis.broker.matching import FEW, Publication, match_requests
from tamis.errors import StoreError
from tamis.events.json_source import JsonObjects
from tamis.live import LiveIndex
from tests.effort import examples
from tests.events.layouts import to_json
from tests.match.examples import RANDOM_EVENTS, draw_example
from tests.waiting import wait_until


def ask(texts: list[bytes], **options) -> Publication:
    return Publication(JsonObjects(texts), sum(map(len, texts)), **options)


def lists_of(matched) -> list[list[int]]:
    starts, numbers = matched.lists
    return [sorted(own.tolist()) for own in np.split(numbers, starts[1:-1])]


@RANDOM_EVENTS
@pytest.mark.parametrize("seed", range(examples(4)))
def test_all_ways_to_match_agree(tmp_path, seed):
    example = draw_example(seed, 40, n_events=4 * FEW)
    texts = [to_json(event).encode() for event in example.events]
    with LiveIndex.open(tmp_path, schema=example.schema) as live:
        half = len(example.texts) // 2
        live.add_many(dict(list(example.texts.items())[:half]))
        live.compact()
        live.add_many(dict(list(example.texts.items())[half:]))
        (whole,) = match_requests(live, [ask(texts)])
        one_by_one = [match_requests(live, [ask([text])])[0] for text in texts]
        together = match_requests(live, [ask([text]) for text in texts])
        (named,) = match_requests(live, [ask(texts, wants_ids=True)])
        created = {one.id: one.created for one in live.store.state_at(live.change)}
    expected = lists_of(whole)
    assert [lists_of(own)[0] for own in one_by_one] == expected
    assert [lists_of(own)[0] for own in together] == expected
    assert lists_of(named) == expected
    assert [sorted(created[name] for name in own) for own in named.ids] == expected


def test_bad_rows_and_values_belong_to_their_request(tmp_path):
    with LiveIndex.open(tmp_path) as live:
        live.add("a", "x > 1")
        good, bad, odd = b'{"x": 2}', b"no event", b'{"x": "text"}'
        group = [ask([good]) for _ in range(2 * FEW)]
        found = match_requests(live, [*group, ask([bad, good]), ask([odd])])
    assert all(lists_of(own) == [[1]] and not own.bad_rows for own in found[: 2 * FEW])
    assert [(row.row, row.code) for row in found[-2].bad_rows] == [(0, "bad-json")]
    assert lists_of(found[-2]) == [[1]]
    assert [own.attribute for own in found[-1].ignored] == ["x"]


def test_neither_changes_nor_moments_go_back(tmp_path):
    """Small requests are matched together, before a large one that came first."""
    with LiveIndex.open(tmp_path) as live:

        class Changing:
            """A set that changes whenever somebody looks at it."""

            def view_now(self):
                live.add(f"s{live.change}", "x = 1")
                return live.view_now()

        small = [ask([b'{"x": 1}']) for _ in range(2 * FEW)]
        large = ask([b'{"x": 1}'] * (2 * FEW))
        found = match_requests(Changing(), [*small[:3], large, *small[3:], large])
        stamps = [(own.change, own.moment) for own in found]
    assert stamps == sorted(stamps)


def test_a_set_that_cannot_be_read_fails_requests_and_no_more(tmp_path, monkeypatch):
    with MatchServer.open(tmp_path) as server:

        def fail():
            raise StoreError("the store cannot be read")

        with monkeypatch.context() as broken:
            broken.setattr(server.live, "view_now", fail)
            with pytest.raises(StoreError, match="cannot be read"):
                server.publisher.publish(ask([b'{"x": 1}'])).result()
        assert server.publisher.publish(ask([b'{"x": 1}'])).result().first_event == 1


def test_an_audit_that_fails_harms_nobody(tmp_path, monkeypatch):
    with MatchServer.open(tmp_path) as server:

        def fail(_):
            raise ValueError("the audit fails")

        monkeypatch.setattr(server.auditor, "offer", fail)
        asked = [server.publisher.publish(ask([b'{"x": 1}'])) for _ in range(20)]
        assert sorted(own.result().first_event for own in asked) == list(range(1, 21))
        wait_until(lambda: server.hub.reached == 20, "readers are woken")


def test_a_publisher_who_has_gone_harms_nobody(tmp_path):
    with MatchServer.open(tmp_path) as server:
        server.live.add("a", "x = 1")
        gone = [server.publisher.publish(ask([b'{"x": 1}'])) for _ in range(50)]
        for future in gone:
            future.cancel()
        last = server.publisher.publish(ask([b'{"x": 1}'])).result()
        assert last.n_matches == 1
        assert server.archive.last_event == last.first_event
