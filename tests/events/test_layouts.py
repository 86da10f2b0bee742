"""Whatever the layout, the kernels see the same events as the reference evaluator."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import InputError, RowError
from tamis.events.json_texts import parse_event
from tamis.events.rejects import Rejects
from tamis.language.names import print_path
from tamis.language.types import WrongTypeError, read_text
from tamis.logic.evaluate import Missing
from tests.events.engine import Engine
from tests.events.layouts import (
    Event,
    arrow_struct,
    cut,
    flat_texts,
    last_of_each,
    nest,
    to_json,
    to_rows,
)
from tests.generators import random_condition, random_event, random_schema, read_other_kinds

seeds = st.integers(0, 2**32)


def draw(rng: Random, *, wrong_types: bool) -> tuple[Engine, list[Event]]:
    """Some conditions, and events for them."""
    schema = random_schema(rng, rng.choice((1, 3, 8)))
    if rng.random() < 0.3:
        schema = read_other_kinds(rng, schema)
    conditions = [random_condition(rng, schema, depth=rng.choice((0, 0, 1, 2))) for _ in range(20)]
    n_events = rng.choice((0, 1, 2, 30, 65))
    events = [random_event(rng, schema, wrong_types=wrong_types) for _ in range(n_events)]
    return Engine(schema, conditions, rng.choice(list(Missing))), events


def check(engine: Engine, source: Any, rows: list[Any], **options: Any) -> None:
    """Matches and rejects are those of the reference on `rows`."""
    encoded = engine.encoder.encode(source, **options)
    assert encoded.n_rows == len(rows)
    assert engine.match_arrays(encoded.arrays) == engine.expected(rows)
    assert engine.count_rejects(encoded.rejects) == engine.expected_rejects(rows)


@given(seed=seeds)
def test_dicts(seed):
    engine, events = draw(Random(seed), wrong_types=True)
    check(engine, events, events)


@given(seed=seeds)
def test_one_event_at_a_time(seed):
    engine, events = draw(Random(seed), wrong_types=True)
    rejects = Rejects()
    found = {
        (row, ordinal)
        for row, event in enumerate(events)
        for _, ordinal in engine.match_arrays(engine.encoder.encode_event(event, rejects))
    }
    assert found == engine.expected(events)
    assert engine.count_rejects(rejects) == engine.expected_rejects(events)


@given(seed=seeds)
def test_typed_columns(seed):
    rng = Random(seed)
    engine, events = draw(rng, wrong_types=False)
    structs = arrow_struct(rng, events, engine.schema, nulls=0)
    table = pa.Table.from_struct_array(cut(rng, structs))
    rows = to_rows(structs)
    check(engine, table, rows)
    start = rng.randint(0, table.num_rows)
    check(engine, table.slice(start), rows[start:])
    for batch in table.to_batches():
        check(engine, batch, to_rows(batch.to_struct_array()))


@given(seed=seeds)
def test_struct_column(seed):
    rng = Random(seed)
    engine, events = draw(rng, wrong_types=False)
    structs = arrow_struct(rng, events, engine.schema)
    start = rng.randint(0, len(structs))
    rows = to_rows(structs)
    check(engine, structs.slice(start), rows[start:])
    table = pa.table({"id": pa.nulls(len(structs)), "event": cut(rng, structs)})
    check(engine, table, rows, column="event")


@given(seed=seeds)
def test_json(seed):
    rng = Random(seed)
    engine, events = draw(rng, wrong_types=True)
    texts = [to_json(event) for event in events]
    for bad in ("", "[1]", "null", "{", '{"a": NaN}', '{"a": 1e400, "b": 1}', "5"):
        texts.insert(rng.randint(0, len(texts)), bad)
    rows, n_bad = read_rows(texts)
    for source in (texts, [text.encode() for text in texts], cut(rng, pa.array(texts))):
        encoded = engine.encoder.encode(source)
        # Rows without an event have no codes that mean anything: they match nothing.
        bad = set(encoded.bad_rows.tolist())
        assert len(bad) == n_bad
        found = {pair for pair in engine.match_arrays(encoded.arrays) if pair[0] not in bad}
        assert found == {pair for pair in engine.expected(rows) if pair[0] not in bad}
        expected = engine.expected_rejects(rows) + Counter({"None": n_bad})
        assert engine.count_rejects(encoded.rejects) == expected


@pytest.mark.parametrize("declared", ["x INT", "x DECIMAL(38, 0)", None])
def test_integers_at_the_ends_of_64_bits_stay_exact_in_json(declared):
    numbers = [-(2**63) - 1025, -(2**63) - 1, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 2**64]
    index = tamis.build({str(n): f"x = {n}" for n in numbers if -(2**63) <= n < 2**63}, declared)
    texts = [f'{{"x": {number}}}' for number in numbers]
    assert index.match_lists(texts).to_pylist() == [index.match(text) for text in texts]
    assert [index.match(text) for text in texts] == [
        [str(n)] if -(2**63) <= n < 2**63 else [] for n in numbers
    ]


def read_rows(texts: list[str]) -> tuple[list[Event], int]:
    """The events that `parse_event` reads, an empty one for each bad row, and how many are bad."""
    rows, n_bad = [], 0
    for text in texts:
        try:
            rows.append(parse_event(text))
        except RowError:
            rows.append({})
            n_bad += 1
    return rows, n_bad


@given(seed=seeds)
def test_map_of_texts(seed):
    rng = Random(seed)
    engine, events = draw(rng, wrong_types=False)
    pairs = [flat_texts(rng, event, engine.schema) for event in events]
    rows, refused = read_flat(engine, [last_of_each(own) for own in pairs])
    array = pa.array(pairs, pa.map_(pa.string(), rng.choice((pa.string(), pa.large_string()))))
    check_flat(engine, array, rows, refused)
    start = rng.randint(0, len(array))
    rows, refused = read_flat(engine, [last_of_each(own) for own in pairs[start:]])
    check_flat(engine, cut(rng, array.slice(start)), rows, refused)


def read_flat(
    engine: Engine, flat: list[dict[str, str | None]]
) -> tuple[list[Event], Counter[str]]:
    """Typed events by the plain text reader, and how many values of each attribute it refuses."""
    rows, refused = [], Counter[str]()
    table = engine.encoder.table
    for texts in flat:
        values: dict[Any, Any] = {}
        for path, type_ in zip(table.paths, table.types, strict=True):
            text = texts.get(print_path(path))
            if text is not None:
                try:
                    values[path] = read_text(text, type_)
                except WrongTypeError:
                    refused[print_path(path)] += 1
        rows.append(nest(values))
        refused.update(engine.without_result(rows[-1]))
    return rows, refused


def check_flat(engine: Engine, source: Any, rows: list[Event], refused: Counter[str]) -> None:
    encoded = engine.encoder.encode(source)
    assert engine.match_arrays(encoded.arrays) == engine.expected(rows)
    assert engine.count_rejects(encoded.rejects) == refused


@given(seed=seeds)
def test_strict_raises_where_something_is_set_aside(seed):
    engine, events = draw(Random(seed), wrong_types=True)
    if engine.expected_rejects(events):
        wrong_value, no_result = r"row \d+, attribute .*expected: ", r"row \d+: .+ for "
        with pytest.raises(InputError, match=f"{wrong_value}|{no_result}"):
            engine.encoder.encode(events, strict=True)
    else:
        assert engine.match(events, strict=True) == engine.expected(events)
