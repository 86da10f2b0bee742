"""An index as a Python object: iterated, asked, pickled, closed, with the ids of events."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from datetime import date
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import tamis
from tamis.operators.registry import Registry, operator
from tests.waiting import HANG_SECONDS

TEXTS = {"high": "level >= 4", "any": "level IS NOT NULL", "low": "level < 4"}


@pytest.fixture
def index() -> tamis.Index:
    return tamis.build(TEXTS)


def test_an_index_is_a_collection_of_ids(index):
    assert list(index) == list(TEXTS)
    assert "high" in index
    assert "hihg" not in index
    assert 5 not in index
    assert [] not in index
    assert {one: index.expression(one) for one in index} == TEXTS
    with pytest.raises(tamis.InputError, match='no subscription "hihg"'):
        index.expression("hihg")


def test_a_saved_index_has_its_expressions(index, tmp_path):
    index.save(tmp_path / "x.tamis")
    opened = tamis.open(tmp_path / "x.tamis")
    assert {one: opened.expression(one) for one in opened} == TEXTS


# ── pickling ────────────────────────────────────────────────────────────────────────────────


def test_an_index_is_pickled_by_its_path(index, tmp_path):
    with pytest.raises(tamis.InputError, match="not saved cannot be pickled"):
        pickle.dumps(index)
    index.save(tmp_path / "x.tamis")
    opened = tamis.open(tmp_path / "x.tamis", mmap=False)
    for one in (index, opened, copy.deepcopy(opened)):
        pickled = pickle.dumps(one)
        assert len(pickled) < 1_000
        assert pickle.loads(pickled).match({"level": 5}) == one.match({"level": 5})


def test_another_process_opens_what_was_pickled(index, tmp_path):
    index.save(tmp_path / "x.tamis")
    (tmp_path / "pickled").write_bytes(pickle.dumps(index))
    script = "import pickle, sys; print(sorted(pickle.load(open(sys.argv[1], 'rb'))))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, tmp_path / "pickled"],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
        cwd="/",
    )
    assert done.stdout == f"{sorted(TEXTS)}\n"


def test_a_pickled_index_that_was_overwritten_is_not_another_one(index, tmp_path):
    index.save(tmp_path / "x.tamis")
    pickled = pickle.dumps(index)
    tamis.build({"other": "level = 1"}).save(tmp_path / "x.tamis", overwrite=True)
    with pytest.raises(tamis.IndexFormatError, match="was overwritten since"):
        pickle.loads(pickled)


def test_a_pickled_index_needs_its_operators(tmp_path):
    registry = Registry()
    operator("agrees()", registry=registry)(lambda event: True)
    tamis.build({"a": "agrees()"}, operators=registry).save(tmp_path / "x.tamis")
    inspected = tamis.open(tmp_path / "x.tamis", operators=None)
    assert list(pickle.loads(pickle.dumps(inspected))) == ["a"]


# ── closing ─────────────────────────────────────────────────────────────────────────────────


def test_an_index_is_closed_at_the_end_of_with(index, tmp_path):
    index.save(tmp_path / "x.tamis")
    with tamis.open(tmp_path / "x.tamis") as opened:
        table = opened.match_batch([{"level": 5}])
    assert table.num_rows == 2, "results stay"
    assert table["subscription_id"].to_pylist() == ["high", "any"]
    assert repr(opened) == "Index(closed)"
    for ask in (opened.match, opened.match_batch, opened.count_by_event, opened.expression):
        with pytest.raises(tamis.InputError, match="the index is closed"):
            ask({"level": 5})
    opened.close()
    with pytest.raises(tamis.InputError, match="the index is closed"):
        len(opened)


def test_an_open_index_has_no_other_attributes(index):
    with pytest.raises(AttributeError, match="has no attribute 'mach'"):
        index.mach  # noqa: B018


# ── ids of events ───────────────────────────────────────────────────────────────────────────

EVENTS = [{"id": "x", "level": 5}, {"id": "y", "level": 2}, {"level": 1}]


@pytest.mark.parametrize(
    "make", [lambda e: e, lambda e: map(str.encode, as_json(e)), pd.DataFrame, pa.Table.from_pylist]
)
def test_event_ids(index, make):
    found = index.match_batch(make(EVENTS), event_id="id")
    assert found.column_names == ["event_id", "subscription_id"]
    rows = {(row["event_id"], row["subscription_id"]) for row in found.to_pylist()}
    assert rows == {("x", "high"), ("x", "any")} | {
        (name, one) for name in ("y", None) for one in ("any", "low")
    }
    assert found["event_id"].type == pa.string()


def as_json(events):
    return [json.dumps(event) for event in events]


def test_event_ids_keep_their_type_and_come_from_structs(index):
    events = [{"level": 5, "meta": {"id": 7}}, {"level": 5, "meta": {"id": 8}}]
    for made in (events, pa.Table.from_pylist(events), iter(as_json(events))):
        found = index.match_batch(made, event_id="meta.id", subset=["high"])
        assert found["event_id"].to_pylist() == [7, 8]
        assert found["event_id"].type == pa.int64()


def test_event_ids_of_several_types_become_text(index):
    events = [{"level": 5, "id": 7}, {"level": 5, "id": "x"}, {"level": 5, "id": [1]}]
    found = index.match_batch(events, event_id="id", subset=["high"])
    assert found["event_id"].to_pylist() == ["7", "x", "[1]"]


def test_event_ids_of_a_file_and_of_chunks(index, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"id": {n}, "level": 5}}\n' for n in range(20_000)))
    chunks = list(index.match_chunks(path, event_id="id", subset=["high"]))
    assert len(chunks) > 1
    assert pa.Table.from_batches(chunks)["event_id"].to_pylist() == list(range(20_000))
    path.write_text(path.read_text() + '{"id": "x", "level": 5}\n')
    with pytest.raises(tamis.InputError, match="of type int64 first, and of type string later"):
        index.match_batch(path, event_id="id")


def test_an_event_id_that_no_event_has_is_reported(index):
    with pytest.warns(tamis.TamisWarning, match='none of the 3 events has the attribute "di"'):
        found = index.match_batch(EVENTS, event_id="di", subset=["high"])
    assert found["event_id"].to_pylist() == [None]
    assert index.match_batch([], event_id="id").num_rows == 0
    with pytest.raises(tamis.InputError, match="encoded without the original events"):
        index.match_batch(index.encode(EVENTS), event_id="id")


# ── attributes of events ────────────────────────────────────────────────────────────────────

PEOPLE = [
    {"id": "x", "level": 5, "user": {"name": "eve"}, "when": "2024-05-01"},
    {"id": "y", "level": 1, "user": {"name": "bob"}},
]


@pytest.mark.parametrize(
    "make", [lambda e: e, lambda e: map(str.encode, as_json(e)), pd.DataFrame, pa.Table.from_pylist]
)
def test_attributes_of_events(index, make):
    asked = ["user.name", "when"]
    found = index.match_batch(make(PEOPLE), event_columns=asked, subset=["high", "low"])
    assert found.column_names == ["event_row", "subscription_id", *asked]
    assert found.to_pylist() == [
        {"event_row": 0, "subscription_id": "high", "user.name": "eve", "when": "2024-05-01"},
        {"event_row": 1, "subscription_id": "low", "user.name": "bob", "when": None},
    ]


def test_attributes_of_events_come_after_ids_and_columns(index):
    options = {"event_id": "id", "columns": ["expression"], "event_columns": ["level"]}
    for found in (
        index.match_batch(PEOPLE, subset=["high"], **options),
        pa.Table.from_batches(list(index.match_chunks(PEOPLE, subset=["high"], **options))),
    ):
        assert list(found.to_pylist()[0].items()) == [
            *(("event_id", "x"), ("subscription_id", "high")),
            *(("expression", index.expression("high")), ("level", 5)),
        ]
    assert index.match_batch([], **options).column_names == [
        *("event_id", "subscription_id", "expression", "level"),
    ]


@pytest.mark.parametrize("make", [lambda e: e, as_json, pa.Table.from_pylist])
def test_whole_events(index, make):
    found = index.match_batch(make(PEOPLE), event_columns=["*"], subset=["high"])
    assert json.loads(found["attributes"].to_pylist()[0]) == PEOPLE[0]


def test_whole_events_of_any_values(index):
    event = {"level": 5, "price": Decimal("1.50"), "day": date(2024, 5, 1), "raw": b"x"}
    found = index.match_batch([event], event_columns=["*"], subset=["high"])
    shown = json.loads(found["attributes"].to_pylist()[0])
    assert shown == {"level": 5, "price": 1.5, "day": "2024-05-01", "raw": "eA=="}


def test_attributes_of_events_of_a_file(index, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"n": {n}, "level": 5}}\n' for n in range(20_000)))
    found = index.match_batch(path, event_columns=["n", "level"], subset=["high"])
    assert found["n"].to_pylist() == list(range(20_000))


def test_wrong_attributes_of_events_are_reported(index):
    with pytest.warns(tamis.TamisWarning, match='has the attribute "usr", which event_columns'):
        index.match_batch(PEOPLE, event_columns=["usr"])
    for wrong, said in (
        (["subscription_id"], 'has a column "subscription_id" already'),
        (["level", "level"], 'has a column "level" already'),
        ("level", r"write \['level'\]"),
    ):
        with pytest.raises(tamis.InputError, match=said):
            index.match_batch(PEOPLE, event_columns=wrong)
    with pytest.raises(tamis.InputError, match="encoded without the original events"):
        index.match_batch(index.encode(PEOPLE), event_columns=["level"])


LONG = "0.12345678901234567890123"


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([Decimal("1.50"), Decimal(2), None], "decimal128(38, 2)", ["1.50", "2.00", None]),
        ([Decimal("1.5"), 2, 0.25], "decimal128(38, 2)", ["1.50", "2.00", "0.25"]),
        ([Decimal("1e50"), 1], "string", ["1E+50", "1"]),
        ([Decimal("NaN"), 1], "string", ["NaN", "1"]),
        ([2**53 + 1, 2.5], "string", [str(2**53 + 1), "2.5"]),
        ([2**53 + 1], "int64", [str(2**53 + 1)]),
        ([2**70, 1], "string", [str(2**70), "1"]),
    ],
)
def test_numbers_of_events_are_not_rounded(index, values, type_, expected):
    events = [{"level": 5, "x": value} for value in values]
    found = index.match_batch(events, event_columns=["x"], subset=["high"])["x"]
    assert str(found.type) == type_
    assert [None if own is None else str(own) for own in found.to_pylist()] == expected


def test_numbers_of_json_are_doubles_if_they_spell_the_same(index):
    texts = ['{"level": 5, "x": 10.1, "y": 1.5}', f'{{"level": 5, "x": 3, "y": {LONG}}}']
    found = index.match_batch(texts, event_columns=["x", "y"], subset=["high"])
    assert found["x"].to_pylist() == [10.1, 3.0]
    assert list(map(str, found["y"].to_pylist())) == ["1.50000000000000000000000", LONG]
    whole = index.match_batch(texts, event_columns=["*"], subset=["high"])["attributes"]
    assert json.loads(whole[1].as_py()) == {"level": 5, "x": 3, "y": LONG}


@pytest.mark.parametrize("later", [LONG, str(2**53 + 1)])
def test_numbers_that_have_to_be_rounded_are_reported(index, tmp_path, later):
    path = tmp_path / "x.jsonl"
    lines = ['{"level": 5, "x": 1.5}'] * 20_000 + [f'{{"level": 5, "x": {later}}}'] * 20_000
    path.write_text("\n".join(lines))
    with pytest.warns(tamis.TamisWarning, match=r'values of "x" were rounded to doubles') as notes:
        found = index.match_batch(path, event_columns=["x"], subset=["high"])
    assert len(notes) == 1
    assert found["x"].to_pylist()[-1] == float(later)


def test_events_that_hold_themselves(index):
    event: dict = {"level": 5}
    event["self"] = event
    for asked in ("*", "self"):
        with pytest.raises(tamis.InputError, match="cannot be written: Circular reference"):
            index.match_batch([event], event_columns=[asked])
    with pytest.raises(tamis.InputError, match="cannot be written: keys must be"):
        index.match_batch([{"level": 5, "x": {(1, 2): 3}}], event_columns=["*"])
