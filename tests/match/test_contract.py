"""The contract: every way to ask an index answers as the reference evaluator does.

Both before saving and after opening, in both meanings of missing, at the edges of blocks.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.events.rejects import RejectKind
from tamis.language import parse_many, print_expression
from tamis.language.ast import attributes
from tamis.language.names import print_path
from tamis.logic.evaluate import Missing, attribute_value, raw_value
from tamis.match import names
from tamis.match.build import build
from tamis.match.index import Index
from tests.effort import examples
from tests.match.engines import ENGINES, FORMS, ONE_BY_ONE, Engine, reopened
from tests.match.examples import RANDOM_EVENTS, Example, draw_example, reference, spread
from tests.match.forms import to_columns, to_texts
from tests.test_cases import FOLDER, read_cases
from tests.waiting import HANG_SECONDS

pytestmark = RANDOM_EVENTS

BATCH_SIZES = (0, 1, 63, 64, 65, 511, 512, 513, 1030)
SET_SIZES = (0, 1, 2, 50, 300)
N_DRAWN = 70  # different events of which large batches are made
SEEDS = st.integers(0, 2**40)


def assert_answers(engine: Engine, index: Index, example: Example, truth: np.ndarray) -> None:
    """The engine answers for the example's events what the truth is."""
    got, wanted = engine.ask(index, example.events), engine.expected(truth)
    where = f"{engine.name}, {index.contents.missing}, seed {example.seed}"
    assert got.shape == wanted.shape, where
    if not np.array_equal(got, wanted):
        place = np.argwhere(got != wanted)[0]
        shown = example.show(example.events[place[0]], place[1]) if len(place) == 2 else ""
        pytest.fail(
            f"{where}: {got[tuple(place)]} at {place} instead of {wanted[tuple(place)]}\n{shown}"
        )


# ── edges of blocks ─────────────────────────────────────────────────────────────────────────


class Prepared(NamedTuple):
    """An index and what is true of it for the drawn events."""

    example: Example
    index: Index
    truth: np.ndarray


@pytest.fixture(scope="module", params=SET_SIZES, ids="{}-expressions".format)
def drawn(request: pytest.FixtureRequest, seed: int) -> Example:
    return draw_example(seed + request.param, request.param, N_DRAWN, n_attributes=12)


@pytest.fixture(scope="module", params=Missing)
def built(request: pytest.FixtureRequest, drawn: Example) -> Prepared:
    index = build(drawn.texts, drawn.schema, missing=request.param)
    assert index.rejects == []
    assert len(index) == len(drawn.conditions)
    return Prepared(drawn, index, drawn.reference(request.param))


@pytest.fixture(scope="module", params=["as-built", "opened"])
def prepared(request: pytest.FixtureRequest, built: Prepared) -> Iterator[Prepared]:
    if request.param == "as-built":
        yield built
    else:
        with reopened(built.index) as opened:
            yield built._replace(index=opened)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_block_edges(engine, prepared):
    example, index, truth = prepared
    sizes = BATCH_SIZES
    if engine.name in ONE_BY_ONE:  # there are no blocks
        sizes = BATCH_SIZES[:5]
    elif engine.name in FORMS:  # writing the form takes longer than matching
        sizes = (0, 1, 65, 513)
    elif engine.name.endswith("threads"):  # of less than a block there is nothing to share
        sizes = (0, *BATCH_SIZES[-3:])
    for n_rows in sizes:
        rows = spread(random.Random(n_rows), N_DRAWN, n_rows)
        batch = Example(
            example.seed, example.schema, example.conditions, [example.events[row] for row in rows]
        )
        assert_answers(engine, index, batch, truth[rows])


def test_order_is_one_and_the_same(prepared):
    """By event, then in the order of the index, whoever asks and however often."""
    example, index, _ = prepared
    batch = index.match_batch(example.events)
    rows = [[] for _ in example.events]
    for pair in batch.to_pylist():
        rows[pair["event_row"]].append(pair["subscription_id"])
    assert index.match_lists(example.events, threads=2).to_pylist() == rows
    assert index.match_batch(example.events, threads=2).equals(batch)
    assert [index.match(event) for event in example.events] == rows
    wanted = index.contents.ids.to_pylist()[::2]
    chosen = index.match_lists(example.events, subset=wanted[::-1]).to_pylist()
    assert chosen == [[found for found in row if found in wanted] for row in rows]


# ── random sets ─────────────────────────────────────────────────────────────────────────────


def check_set(example: Example, missing: Missing, *, opens: bool = True) -> None:
    """All engines on one set, as built and after opening."""
    truth = example.reference(missing)
    index = build(example.texts, example.schema, missing=missing)
    assert index.rejects == [], f"seed {example.seed}"
    for engine in ENGINES:
        assert_answers(engine, index, example, truth)
    if opens:
        with reopened(index) as opened:
            for engine in ENGINES:
                assert_answers(engine, opened, example, truth)


@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(30))
def test_random_sets(missing, seed):
    check_set(draw_example(seed), missing)


def test_forms_carry_most_events(seed):
    """JSON and Arrow are asked about more than the few events that need no care."""
    n_texts = n_columns = n_events = 0
    for at in range(20):
        example = draw_example(seed + at)
        index = build(example.texts, example.schema)
        n_texts += len(to_texts(index, example.events).rows)
        n_columns += len(to_columns(index, example.events).rows)
        n_events += len(example.events)
    assert n_texts > n_events / 2
    assert n_columns > n_events / 2


@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(60))
def test_random_expressions_one_by_one(missing, seed):
    """Alone in an index, an expression has no other to lean on."""
    example = draw_example(seed, n_subscriptions=1, n_events=24)
    check_set(example, missing, opens=False)


@pytest.mark.slow
@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(20))
def test_random_sets_of_many(missing, seed):
    rng = random.Random(seed)
    example = draw_example(seed, rng.choice((50, 200)), rng.choice((65, 130)))
    check_set(example, missing)


@given(seed=SEEDS)
@settings(max_examples=examples(20))
def test_inferred_schema(seed):
    """Without a schema the index takes and refuses what parsing in bulk takes and refuses."""
    example = draw_example(seed, n_subscriptions=20)
    index = build(example.texts)
    parsed = parse_many(example.texts.items())
    taken = {row.subscription_id: row.condition for row in parsed if row.condition is not None}
    assert index.contents.ids.to_pylist() == list(taken)
    assert {(x.subscription_id, x.code, x.span) for x in index.rejects} == {
        (row.subscription_id, row.error.code, row.error.span) for row in parsed if row.error
    }
    inferred = Example(seed, index.contents.schema, taken, example.events)
    truth = inferred.reference(Missing.UNDEFINED)
    for engine in ENGINES[:2]:
        assert_answers(engine, index, inferred, truth)


@given(seed=SEEDS)
@settings(max_examples=examples(25))
def test_damaged_texts_are_refused_as_by_the_parser(seed):
    """Whatever reads the texts in bulk, it takes what the parser takes and says what it says."""
    rng = random.Random(seed)
    example = draw_example(seed, n_subscriptions=20)
    texts = {key: damaged(rng, text) for key, text in example.texts.items()}
    index = build(texts, example.schema)
    parsed = parse_many(texts.items(), example.schema)
    errors = {row.subscription_id: row.error for row in parsed if row.error is not None}
    assert index.contents.ids.to_pylist() == [key for key in texts if key not in errors]
    assert {x.subscription_id: x.to_dict() for x in index.rejects} == {
        key: error.to_dict() for key, error in errors.items()
    }
    taken = {row.subscription_id: row.condition for row in parsed if row.condition is not None}
    truth = reference(taken.values(), example.events, Missing.UNDEFINED)
    got = index.match_lists(example.events).to_pylist()
    for row, event in enumerate(example.events):
        wanted = {key for at, key in enumerate(taken) if truth[row, at]}
        assert set(got[row]) == wanted, (event, {key: texts[key] for key in wanted ^ set(got[row])})


def damaged(rng: random.Random, text: str) -> str:
    """The text with a character taken out, put in or doubled somewhere; now and then as it is."""
    at = rng.randrange(len(text) + 1)
    match rng.randrange(5):
        case 0:
            return text
        case 1:
            return text[:at] + text[at + 1 :]
        case 2:
            return text[:at] + rng.choice("()'`\\,.=<>-0 9aNé\x00\ud800") + text[at:]
        case 3:
            return text[:at] + text[at : at + 3] * 2 + text[at + 3 :]
        case _:
            return text[:at]


@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(25))
def test_wrong_types_are_reported(missing, seed):
    """Each value of a wrong type is counted for its attribute; nothing else is."""
    example = draw_example(seed, n_events=30)
    index = build(example.texts, example.schema, missing=missing)
    named = {
        attribute.path: attribute
        for condition in example.conditions.values()
        for attribute in attributes(condition)
    }
    wrong = {
        (row, print_path(path))
        for row, event in enumerate(example.events)
        for path, attribute in named.items()
        if raw_value(attribute, event) is not None and attribute_value(attribute, event) is None
    }
    rejects = index.encode(example.events).rejects
    asked = {print_path(x.path) for column in index.contents.columns for x in column.sources}
    counted: Counter[str | None] = Counter()
    for (attribute, kind), n_rejects in rejects.counts.items():
        if kind is not RejectKind.NO_RESULT:
            counted[attribute] += n_rejects
    assert counted == Counter(name for _, name in wrong if name in asked)
    values = [reject for reject in rejects if reject.kind is not RejectKind.NO_RESULT]
    shown = [(reject.row, reject.attribute) for reject in values]
    assert len(shown) == len(set(shown)), "a value is shown twice"
    assert set(shown) <= wrong
    assert all(reject.reason for reject in rejects)


# ── every case file ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_every_case(name, missing):
    """Each case in both meanings of missing: the reference gives what a case does not expect.

    Every engine is asked about every case, in turns as built and as opened.
    """
    for turn, case in enumerate(read_cases(FOLDER / name)):
        events = [expectation.event for expectation in case.expectations]
        example = Example(0, case.schema, {case.place: case.condition}, events)
        truth = example.reference(missing)
        index = build({case.place: case.query}, case.schema, missing=missing)
        with reopened(index) as opened:
            for at, engine in enumerate(ENGINES):
                assert_answers(engine, (index, opened)[(turn + at) % 2], example, truth)


# ── repeated expressions ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("missing", Missing)
def test_one_expression_under_many_ids(missing, seed):
    example = draw_example(seed, n_subscriptions=5, n_events=65)
    subscriptions = {
        f"{key}-{copy}": condition
        for copy in range(200)
        for key, condition in example.conditions.items()
    }
    many = Example(seed, example.schema, subscriptions, example.events)
    once = build(example.texts, example.schema, missing=missing)
    index = build(many.texts, example.schema, missing=missing)
    assert index.contents.n_nodes == once.contents.n_nodes
    truth = np.tile(example.reference(missing), (1, 200))
    for engine in ENGINES:
        assert_answers(engine, index, many, truth)


@pytest.mark.parametrize("missing", Missing)
def test_all_connectives_over_the_same_parts(missing, seed):
    """Every pair of parts under every connective: all that can be shared is."""
    example = draw_example(seed, n_subscriptions=5, n_events=65)
    parts = list(example.conditions.values())
    shared = {
        f"{kind} {one} {other}": kind.format(*map(print_expression, (parts[one], parts[other])))
        for kind in (
            "({}) AND ({})",
            "({}) OR ({})",
            "NOT ({}) OR ({})",
            "xor({}, {})",
            "xnor({}, {})",
            "at_least(2, {0}, {1}, {0})",
            "NOT at_least(2, {0}, {1}, {1})",
        )
        for one in range(len(parts))
        for other in range(len(parts))
    }
    parsed = parse_many(shared.items(), example.schema)
    conditions = {row.subscription_id: row.condition for row in parsed}
    everything = Example(seed, example.schema, conditions, example.events)
    index = build(shared, example.schema, missing=missing)
    truth = everything.reference(missing)
    for engine in ENGINES:
        assert_answers(engine, index, everything, truth)


# ── without the compiler ────────────────────────────────────────────────────────────────────

INTERPRETED = """
import numba
from tamis.logic.evaluate import Missing
from tests.match.examples import draw_example
from tests.match.test_contract import check_set
assert numba.config.DISABLE_JIT
for seed in range({first}, {first} + {n_sets}):
    for missing in Missing:
        check_set(draw_example(seed, n_subscriptions=8, n_events=5), missing, opens=seed % 4 == 0)
check_set(draw_example({first}, n_subscriptions=2, n_events=514), Missing.UNDEFINED, opens=False)
"""


def test_kernels_without_the_compiler(seed):
    """What Numba compiles means the same as Python that is not compiled."""
    program = INTERPRETED.format(first=seed, n_sets=examples(4))
    # This process's own path: the same sources, and the tests next to them.
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, f"seed {seed}\n{done.stderr[-4000:]}"


# ── ids ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "ids",
    [
        ["a"],
        ["a", "b", "always"],
        [" ", "é日\U0001f600", "zero\0inside"],
        [f"s{n}" for n in range(50)],
    ],
)
@pytest.mark.parametrize(("most_kept", "chunk"), [(0, 1), (1000, 7), (1000, names.CHUNK)])
def test_single_matches_name_any_id(
    ids: list[str], most_kept: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the ids are made of, those of an event come out as they went in."""
    monkeypatch.setattr(names, "MOST_KEPT", most_kept)
    monkeypatch.setattr(names, "CHUNK", chunk)
    texts = {one: f"x >= {at}" if one != "always" else "TRUE" for at, one in enumerate(ids)}
    index = build(texts, "x BIGINT")
    for x in range(-1, len(ids)):
        wanted = {one for at, one in enumerate(ids) if x >= at or one == "always"}
        assert set(index.match({"x": x})) == wanted
        assert len(index.match({"x": x})) == len(wanted)
