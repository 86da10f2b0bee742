"""The same input gives the same index, and the order of the input changes no match."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from tamis.index import finish
from tamis.index.build import CHUNK, build_contents
from tamis.index.text_columns import Columns
from tamis.language.schema import Schema
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tamis.match.index import Index
from tests.match.examples import RANDOM_EVENTS, draw_example, show_columns
from tests.waiting import HANG_SECONDS

pytestmark = RANDOM_EVENTS


def arrays_of(index: Index) -> dict[str, np.ndarray]:
    contents = index.contents
    groups = (contents.leaves, contents.nodes, contents.roots, contents.triggers)
    return {
        f"{type(group).__name__}.{name}": array
        for group in groups
        for name, array in group._asdict().items()
    }


def assert_identical(one: Index, other: Index) -> None:
    before, after = arrays_of(one), arrays_of(other)
    for name, array in before.items():
        assert array.dtype == after[name].dtype, name
        assert np.array_equal(array, after[name]), name
    assert one.contents.ids.equals(other.contents.ids)
    assert show_columns(one.contents) == show_columns(other.contents)


@pytest.mark.parametrize("missing", Missing)
def test_two_builds_are_identical(missing, seed):
    example = draw_example(seed, n_subscriptions=300, n_attributes=12)
    once, again = (build(example.texts, example.schema, missing=missing) for _ in range(2))
    assert_identical(once, again)


def test_the_kind_of_input_makes_no_difference(seed):
    example = draw_example(seed, n_subscriptions=50)
    from_mapping = build(example.texts, example.schema)
    assert_identical(from_mapping, build(list(example.texts.items()), example.schema))
    assert_identical(from_mapping, build(iter(example.texts.items()), example.schema))
    assert_identical(from_mapping, build(example.texts, example.schema.to_json()))


@pytest.mark.parametrize("missing", Missing)
def test_nor_do_columns_instead_of_strings(missing, seed):
    """However the columns are cut: in pieces of any size, of longer columns, and empty ones."""
    draw = random.Random(seed)
    example = draw_example(seed, n_subscriptions=CHUNK // 20, n_attributes=12)
    texts = {"broken": "a =", **example.texts, "odd": "x = 'é' OR", "always": "TRUE"}
    texts |= {f"more{at}": f"a0 = {at}" for at in range(CHUNK)}
    numbers = np.arange(100, 100 + len(texts))
    built = build_contents(texts, example.schema, missing, numbers=numbers)
    ends = [0, *sorted(draw.choices(range(len(texts)), k=30)), len(texts)]
    pieces = [cut(texts, *ends[at : at + 2]) for at in range(len(ends) - 1)]
    columns = Columns(*(pa.chunked_array(own, pa.string()) for own in zip(*pieces, strict=True)))
    again = build_contents(columns, example.schema, missing, numbers=numbers)
    assert_identical(Index(built.contents, registry=None), Index(again.contents, registry=None))
    assert again.contents.texts.to_pylist() == built.contents.texts.to_pylist()
    assert np.array_equal(again.contents.numbers, built.contents.numbers)
    assert len(built.contents.numbers) == len(built.contents.ids) < len(texts)
    assert list(map(str, again.rejects)) == list(map(str, built.rejects))


@pytest.mark.parametrize("at_once", [1, 3, 50])
@pytest.mark.parametrize("missing", Missing)
def test_nor_how_many_constants_are_ranked_at_once(missing, at_once, seed, monkeypatch):
    n_batches = 0
    rank = finish._LeafWriter._rank_columns

    def count(*arguments):
        nonlocal n_batches
        n_batches += 1
        return rank(*arguments)

    monkeypatch.setattr(finish._LeafWriter, "_rank_columns", count)
    for more in range(4):
        example = draw_example(seed + more, n_subscriptions=150, n_attributes=12)
        whole = build(example.texts, example.schema, missing=missing)
        n_batches = 0
        with monkeypatch.context() as small:
            small.setattr(finish, "_AT_ONCE", at_once)
            assert_identical(whole, build(example.texts, example.schema, missing=missing))
        assert n_batches > 1


def cut(texts: dict[str, str], begin: int, end: int) -> tuple[pa.Array, pa.Array]:
    """Ids and expressions of some rows, as slices of arrays with other strings around them."""
    ids = pa.array(["before", *list(texts)[begin:end], "after"])
    own = pa.array(["a = 0", *list(texts.values())[begin:end], "a = 0"])
    return ids.slice(1, end - begin), own.slice(1, end - begin)


@pytest.mark.parametrize("chunks", [[], [[]], [[], ["x"]]])
def test_columns_with_little_in_them(chunks):
    texts = [["a = 1" for _ in own] for own in chunks]
    columns = Columns(*(pa.chunked_array(own, pa.string()) for own in (chunks, texts)))
    contents = build_contents(columns, Schema.of("a INT")).contents
    assert contents.ids.to_pylist() == [name for own in chunks for name in own]


@pytest.mark.slow
def test_the_number_of_processes_makes_no_difference(seed):
    example = draw_example(seed, n_subscriptions=5_000, n_attributes=12)
    broken = example.texts | {"broken": "a ="}
    one, two = (build(broken, example.schema, processes=n) for n in (1, 2))
    assert_identical(one, two)
    assert [str(reject) for reject in one.rejects] == [str(reject) for reject in two.rejects]


def test_nor_where_plain_expressions_and_others_alternate():
    """More than a chunk of both kinds: the parser, which processes share, reads every other one."""
    plain = ("a = {0}", "a < {0} AND b > 5", "a IN ({0}, 5) OR b = {0}")
    other = ("day = DATE '2024-01-01' AND a = {0}", "a = b XOR a = {0}", "a = ")
    shapes = [shape for pair in zip(plain, other, strict=True) for shape in pair]
    texts = {str(at): shapes[at % 6].format(at) for at in range(2 * CHUNK + 100)}
    schema = "a BIGINT, b BIGINT, day DATE"
    one, two, three = (build(texts, schema, processes=n) for n in (1, 2, 3))
    assert len(one.rejects) == len(texts) // 6
    for more in (two, three):
        assert_identical(one, more)
        assert [str(reject) for reject in one.rejects] == [str(reject) for reject in more.rejects]
        for event in ({"a": 5, "b": 5}, {"a": 606, "b": 7, "day": "2024-01-01"}):
            assert one.match(event) == more.match(event), "the order is the same too"


DIGEST = """
import hashlib
from tests.match.examples import draw_example
from tests.match.test_determinism import arrays_of
from tamis.match.build import build
example = draw_example({seed}, n_subscriptions=200, n_attributes=12)
arrays = arrays_of(build(example.texts, example.schema))
print(hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest())
"""


def test_every_process_builds_the_same(seed):
    """Whatever Python's own hashes are in that process."""
    digests = set()
    for hash_seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST.format(seed=seed)],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
            env=os.environ
            | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        digests.add(done.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize("missing", Missing)
def test_the_order_of_subscriptions_changes_no_match(missing, seed):
    example = draw_example(seed, n_subscriptions=300, n_events=70, n_attributes=12)
    shuffled = list(example.texts.items())
    random.Random(seed).shuffle(shuffled)
    one = build(example.texts, example.schema, missing=missing)
    other = build(shuffled, example.schema, missing=missing)
    assert one.contents.n_nodes == other.contents.n_nodes
    for event in example.events:
        assert sorted(one.match(event)) == sorted(other.match(event))
    counts = [
        dict(
            zip(
                index.contents.ids.to_pylist(),
                index.count_by_subscription(example.events),
                strict=True,
            )
        )
        for index in (one, other)
    ]
    assert counts[0] == counts[1]


def test_the_order_of_events_changes_no_match(seed):
    example = draw_example(seed, n_subscriptions=100, n_events=600)
    index = build(example.texts, example.schema)
    order = list(range(600))
    random.Random(seed).shuffle(order)
    one = index.match_lists(example.events).to_pylist()
    other = index.match_lists([example.events[row] for row in order]).to_pylist()
    assert other == [one[row] for row in order]
    assert index.match_lists(example.events).to_pylist() == one, "a second time"
