"""One event: from a mapping and from JSON, the same values reach the kernels."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import chain
from typing import Any

import numba
import numpy as np
import pytest

import tamis
from tamis.errors import RowError
from tamis.events.json_texts import parse_event
from tamis.events.kernels.single import (
    AS_DOUBLE,
    AS_NOTHING,
    AS_NUMBER,
    AS_TEXT,
    AS_WIDE,
    AS_WORD,
    LAST_STAMP,
    STAMP,
    TAG_DOUBLE,
    TAG_FOLDED,
    TAG_MARK,
    TAG_SHIFT,
)
from tamis.events.part_coder import no_patterns
from tamis.events.rejects import Rejects
from tamis.events.repeated_keys import find_repeated_key
from tamis.events.single_reader import EventReader, Needs
from tamis.events.single_space import EventBuffer
from tamis.index.patterns import PatternMatcher
from tamis.index.patterns.arrays import build_arrays
from tamis.match.index import Index
from tests.bounds_checked import run_bounds_checked
from tests.effort import SEED, examples
from tests.events.test_json_reader import TABLES, Writer

N_ROWS = 100 if numba.config.DISABLE_JIT else 6000


def make_reader(name: str) -> EventReader:
    """Some attributes are kept, some are needed in lower case, and some are not needed at all."""
    table = TABLES[name]
    numbers = range(len(table))
    texts = {at for at in numbers if table.types[at].name == "string"}
    used = frozenset(at for at in numbers if at % 7 != 5)
    kept = frozenset(at for at in used if at % 5 == 4)
    return EventReader(table, Needs(used, kept, frozenset(texts & used) - kept))


def listed(buffer: EventBuffer, forms: list[int]) -> Counter[Any]:
    """The values in a buffer, in no order."""
    words = buffer.space.words[: buffer.n_words].tolist()
    doubles = iter(buffer.space.doubles[: buffer.n_doubles].tolist())
    found: Counter[Any] = Counter()
    at = here = 0

    def take_text() -> bytes:
        nonlocal at, here
        begin, here = here, here + words[at]
        at += 1
        return buffer.text(begin, here)

    while at < len(words):
        attribute, tag = words[at] & (2**TAG_SHIFT - 1), words[at] >> TAG_SHIFT
        at += 1
        form, value = forms[attribute], None
        if tag >= TAG_MARK or form == AS_NOTHING:
            value = ("mark", tag)
        elif form == AS_TEXT:
            value = (take_text(), take_text() if tag == TAG_FOLDED else None)
        elif form == AS_DOUBLE or (form == AS_NUMBER and tag == TAG_DOUBLE):
            value = repr(next(doubles))  # tells NaN from other values, and finds it equal to NaN
        elif form in (AS_WORD, AS_NUMBER):
            value, at = words[at], at + 1
        elif form == AS_WIDE:
            value, at = tuple(words[at : at + 2]), at + 2
        found[attribute, value] += 1
    assert here == buffer.n_bytes
    assert next(doubles, None) is None
    found.update((attribute, repr(value)) for attribute, value in buffer.typed.items())
    found.update((attribute, repr(value)) for attribute, value in buffer.exact)
    return found


def reported(rejects: Rejects) -> list[str]:
    return sorted(f"{reject.attribute}: {reject.reason}" for reject in rejects)


@pytest.mark.parametrize("name", TABLES)
def test_text_is_read_as_what_it_parses_to(name):
    writer, reader = Writer(random.Random(SEED)), make_reader(name)
    forms = TABLES[name].forms.tolist()
    n_read = 0
    for _ in range(examples(N_ROWS)):
        row = writer.row()
        from_text, from_mapping = Rejects(), Rejects()
        buffer = reader.read_text(row, from_text)
        if buffer is None:
            assert not reported(from_text)
            continue
        n_read += 1
        values = listed(buffer, forms)
        reader.give_back(buffer)
        assert find_repeated_key(row) is None
        other = reader.read(parse_event(row), from_mapping)
        assert values == listed(other, forms)
        reader.give_back(other)
        assert reported(from_text) == reported(from_mapping)
    assert n_read > N_ROWS / 20


@pytest.mark.parametrize("name", TABLES)
def test_text_that_is_no_event_is_left_to_the_parser(name):
    reader = make_reader(name)
    for text in (b"", b"{", b"[1]", b"null", b'{"s":"x"', b'{"s":1,"s":2}', "\ud800", b'{"s":NaN}'):
        assert reader.read_text(text, None) is None
        try:
            is_event = bool(parse_event(text))
        except RowError:
            is_event = False
        assert is_event == (text in (b'{"s":1,"s":2}', b'{"s":NaN}'))


# ── indexes ─────────────────────────────────────────────────────────────────────────────────

RULES = {
    "short": "s = 'x'",
    "like": "s ILIKE '%ÄÖ_b%' OR s LIKE '%yy%'",
    "regex": "s RLIKE 'z{3,}' AND NOT r RLIKE '^a'",
    "number": "n > 1.5 AND n < 3000000000000000000000000.5",
    "many": "array_contains(tags, 't7') AND n IS NOT NULL",
    "pair": "s < r",
    "words": "matches(r, 'oil')",
    "derived": "length(s) > 90000",
    "decimal": "m >= 12.25",
}
SCHEMA = "s STRING, r STRING, n NUMBER, tags ARRAY<STRING>, m DECIMAL(30, 2)"
EVENTS: list[dict[str, Any]] = [
    {},
    {"s": "x"},
    {"s": "xäöäbx", "r": "y"},
    {"s": "zzzz", "r": "ba"},
    {"s": "zzzz", "r": "ab"},
    {"s": "yy" * 50_000, "n": 2, "r": "crude oil"},
    {"tags": [f"t{at}" for at in range(5_000)], "n": 1e300},
    {"tags": [None], "n": 2.5, "m": 12.5},
    {"m": 10**27, "n": 10**25},
    {"m": -0.01, "n": -5, "s": "\x00", "r": "\x00\x00"},
    {"s": 1, "n": "x", "tags": "t7", "m": None},
]


@pytest.fixture(scope="module")
def index() -> tamis.Index:
    return tamis.build(RULES, SCHEMA)


@pytest.mark.filterwarnings("ignore:a value of attribute:tamis.RejectWarning")
def test_single_events_match_as_in_a_batch(index):
    """Small ones after large ones, which made the memory of events grow."""
    batch = index.match_lists(EVENTS).to_pylist()
    for _ in range(2):
        for event, expected in zip(EVENTS, batch, strict=True):
            assert index.match(event) == expected
            assert index.match(json.dumps(event)) == expected
            assert index.match(json.dumps(event, ensure_ascii=False).encode()) == expected
    assert {found for own in batch for found in own} == set(RULES)


@pytest.mark.filterwarnings("ignore:a value of attribute:tamis.RejectWarning")
def test_many_events_are_matched_one_by_one(index):
    texts = [json.dumps(event) for event in EVENTS]
    expected = index.match_lists(EVENTS).to_pylist()
    assert index.match_many(EVENTS) == index.match_many(iter(texts)) == expected
    assert index.match_many([]) == []
    subset = ["short", "like"]
    found = index.match_many(EVENTS, subset=subset)
    assert found == [[own for own in ids if own in subset] for ids in expected]


@pytest.mark.parametrize("given", [{"s": "x"}, '{"s": "x"}', b"events.jsonl", 5])
def test_one_event_is_not_many(index, given):
    with pytest.raises(tamis.InputError, match="a list of events is expected, not"):
        index.match_many(given)


def test_what_is_not_an_event_has_a_row(index):
    with pytest.raises(tamis.InputError, match=r"row 1: .*this text is not an event"):
        index.match_many([{}, "{", {}])


def test_stamps_of_texts_start_again(index):
    event = {"s": "yy"}
    expected = index.match(event)
    (part,) = index.view.ask(None, None, None).parts
    for scratch in part.engine.scratches:
        for buffer in scratch.buffers:
            buffer.counts[STAMP] = LAST_STAMP
    assert expected == ["like"]
    assert [index.match(own) for own in (event, {"s": "y"}, event)] == [expected, [], expected]
    for scratch in part.engine.scratches:
        assert [int(buffer.counts[STAMP]) for buffer in scratch.buffers] == [3]


PARTS = [
    {"one": "s = 'x' OR n = 1", "always": "TRUE", "late": "m > 5"},
    {"two": "s RLIKE 'x+y' OR r LIKE '%q%'", "three": "s ILIKE '%É%'"},
    {"four": "n > 0.5", "five": "s IS NULL AND array_contains(tags, 'a')", "six": "TRUE"},
    {"seven": "n <> 10000000000000000000000000.5"},
]


@pytest.mark.parametrize("more", [{}, {"pair": "s < r"}, {"word": "matches(r, 'q')"}])
def test_parts_answer_in_their_order(more):
    """All by one call, unless a part needs more than a kernel, or a value does."""
    parts = [*PARTS, more] if more else PARTS
    whole = tamis.build({key: text for part in parts for key, text in part.items()}, SCHEMA)
    index = Index(*(tamis.build(part, SCHEMA).contents for part in parts))
    number = Decimal("10000000000000000000000000.5")
    events = [
        {},
        {"s": "x", "n": 1, "m": 6},
        {"s": "xxy", "r": "aqa"},
        {"s": "é", "n": number},
        {"s": "É" * 9_000, "n": 2.5},
        {"tags": ["a", None], "n": -1},
        {"s": "a", "r": "b q"},
    ]
    for event in events:
        found = set(whole.match(event))
        answer = index.match(event)
        assert sorted(answer) == sorted(found)
        numbers = [at for key in answer for at, part in enumerate(parts) if key in part]
        assert numbers == sorted(numbers)
        assert index.match(event, subset=["one", "two", "six"]) == [
            key for key in ("one", "two", "six") if key in found
        ]


def test_no_patterns_have_the_types_of_others():
    search = PatternMatcher((), build_arrays((), ())).search
    for own, other in zip(chain(*no_patterns()), chain(*search), strict=True):
        assert (own.dtype, own.ndim) == (other.dtype, other.ndim)
        assert own.flags.writeable == other.flags.writeable


class AskingMapping(dict[str, Any]):
    """A mapping that asks the index while it is read."""

    def __init__(self, index: tamis.Index, values: dict[str, Any], asked: dict[str, Any]) -> None:
        super().__init__(values)
        self._index, self._asked = index, asked
        self.answers: list[list[str]] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.answers.append(self._index.match(self._asked))
        return super().get(name, default)


def test_an_event_may_ask_while_it_is_read(index):
    event = AskingMapping(index, {"s": "x"}, {"s": "yy"})
    assert index.match(event) == ["short"]
    assert event.answers
    assert all(found == ["like"] for found in event.answers)


@pytest.mark.filterwarnings("ignore:a value of attribute:tamis.RejectWarning")
def test_threads_have_their_own_memory(index):
    expected = index.match_lists(EVENTS).to_pylist()
    order = np.random.default_rng(SEED).integers(0, len(EVENTS), 300).tolist()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda at: index.match(EVENTS[at]), order))
    assert found == [expected[at] for at in order]


@pytest.mark.slow
def test_kernels_stay_within_their_arrays(tmp_path):
    """All of the above again with every index checked: a wrong one is memory overwritten."""
    run_bounds_checked(__file__, tmp_path)
