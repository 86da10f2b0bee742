"""What operators are given of events: the same wherever these come from, and nothing of others."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import SchemaError
from tamis.language import Schema
from tamis.language.signatures import Read, parse_signature
from tamis.language.types import DOUBLE, decimal_type
from tamis.match.build import build
from tamis.operators.registry import Registry, operator
from tests.effort import examples
from tests.schedules import SCHEDULES, use_schedule


def record(reads, *, signature="seen()", **options):
    """An index whose operator keeps what it is given."""
    given_events = []
    registry = Registry()

    def seen(event):
        given_events.append(event)
        return True

    operator(signature, reads=reads, registry=registry, timeout=None, **options)(seen)
    return build({"s": signature}, operators=registry), given_events


def layouts(event):
    """One event in all the forms that events have."""
    text = json.dumps(event)
    spelled = [(name, json.dumps(value)) for name, value in event.items()]
    return {
        "dict": ([event], None),
        "JSON": ([text], None),
        "bytes": ([text.encode()], None),
        "columns": (pa.Table.from_pylist([event]), None),
        "struct": (pa.table({"e": [event]}), "e"),
        "map": (pa.table({"e": pa.array([spelled], pa.map_(pa.string(), pa.string()))}), "e"),
    }


@pytest.mark.parametrize("layout", layouts({}))
def test_typed_attributes_are_the_same_in_every_layout(layout):
    event = {"lat": 40.7, "n": 3, "tags": ["a", "b"]}
    reads = ["lat double", "n double", "tags array<string>"]
    index, seen = record(reads)
    events, column = layouts(event)[layout]
    assert len(index.match_batch(index.encode(events, column=column))) == 1
    assert seen == [{"lat": 40.7, "n": 3.0, "tags": ["a", "b"]}]
    assert [type(value) for value in seen[0].values()] == [float, float, list]


@pytest.mark.parametrize(
    ("type_", "value", "given_value"),
    [
        ("double", Decimal("0.1"), 0.1),
        ("double", -0.0, 0.0),
        ("decimal(6,2)", 1.5, Decimal("1.50")),
        ("decimal(6,2)", Decimal("1.500"), Decimal("1.50")),
        ("decimal(38,10)", 10**27, Decimal(10**27).scaleb(0)),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("timestamp", "2024-02-29T12:00+02:00", datetime(2024, 2, 29, 10, tzinfo=UTC)),
        ("array<double>", (1, None), [1.0, None]),
    ],
)
def test_values_are_read_as_the_type(type_, value, given_value):
    index, seen = record([f"a {type_}"])
    index.match({"a": value})
    assert seen == [{"a": given_value}]
    assert str(seen[0]["a"]) == str(given_value) or type_ == "decimal(38,10)"


@pytest.mark.parametrize(
    ("type_", "value"),
    [("double", True), ("double", "1"), ("integer", 1.5), ("string", 5), ("integer", None)],
)
def test_a_value_of_another_type_is_missing(type_, value):
    index, seen = record([f"a {type_}"])
    assert index.match({"a": value, "b": 1}) == ["s"]
    assert seen == [{}]


def test_without_a_type_fractions_are_floats_and_the_rest_is_as_it_came():
    index, seen = record(["a", "in.b"])
    index.match({"a": [Decimal("0.5"), {"x": (Decimal(2), None)}], "in": {"b": b"x", "c": 1}})
    assert seen == [{"a": [0.5, {"x": (2.0, None)}], "in": {"b": b"x"}}]
    index, seen = record(None)
    index.match_lists(['{"a": 0.25, "b": null, "c": {"d": 1e2}}'])
    assert seen == [{"a": 0.25, "c": {"d": 100.0}}]


def test_an_operator_may_change_what_it_is_given():
    registry = Registry()

    @operator("first()", registry=registry)
    def first(event):
        event["a"].append(3)
        return event.pop("b") == 1

    @operator("later()", registry=registry)
    def later(event):
        return event == {"a": [1, 2], "b": 1}

    index = build({"both": "first() AND later()"}, operators=registry)
    event = {"a": [1, 2], "b": 1}
    assert index.match(event) == ["both"]
    assert event == {"a": [1, 2], "b": 1}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_calls_of_one_operator_do_not_see_each_other(schedule, monkeypatch):
    registry = Registry()

    @operator("grows(integer)", reads=["a integer", "b"], registry=registry)
    def grows(event, number):
        event["a"] += 1
        event["b"].add(number)
        return event["a"] == number and len(event["b"]) == 1

    index = build({f"s{n}": f"grows({n})" for n in range(4)}, operators=registry)
    use_schedule(monkeypatch, schedule)
    event = {"a": 0, "b": set()}
    assert index.match(event) == index.match_lists([event]).to_pylist()[0] == ["s1"]
    assert event == {"a": 0, "b": set()}


@pytest.mark.parametrize("reads", [["a", "x.y"], None])
def test_a_missing_attribute_is_told_and_breaks_nothing(reads):
    registry = Registry()
    operator("big()", reads=reads, registry=registry)(
        lambda event: event["a"] + event["x"]["y"] > 3
    )
    index = build({"s": "big()"}, operators=registry)
    poor = [{}, {"a": 1}, {"a": None, "x": {"y": 5}}, {"a": 1}, {"x": {}}] * 5
    result = index.match_lists([*poor, {"a": 2, "x": {"y": 2}}]).to_pylist()
    assert result == [[]] * len(poor) + [["s"]]
    (fault,) = index.operators.faults
    assert (fault.n_events, fault.message) == (25, "KeyError: 'a'")


def test_a_name_that_is_not_read_is_a_mistake():
    registry = Registry()
    operator("typo()", reads=["text"], registry=registry)(lambda event: event["txt"])
    index = build({"s": "typo()"}, operators=registry)
    assert (
        index.match_lists([{"text": str(n), "txt": True} for n in range(9)]).to_pylist() == [[]] * 9
    )
    assert [str(fault.kind) for fault in index.operators.faults] == ["raised", "breaker"]


# ── equal events ────────────────────────────────────────────────────────────────────────────

ALIKE = [{}, {"a": None}, {"a": 0}, {"a": 0.0}, {"a": -0.0}, {"a": False}, {"a": ""}, {"a": b""},
         {"a": "0"}, {"a": []}, {"a": ()}, {"a": {}}, {"a": [0]}, {"a": [0.0]}, {"a": [-0.0]},
         {"a": [False]}, {"a": {"x": None}}, {"a": float("nan")}, {"a": Decimal("1")}, {"a": 1},
         {"a": Decimal("1.0")}, {"a": datetime(2024, 1, 1, tzinfo=UTC)},
         {"a": date(2024, 1, 1)}]  # fmt: skip
VALUES = st.recursive(
    st.sampled_from([event.get("a") for event in ALIKE]),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from("xy"), below),
    max_leaves=4,
)


@pytest.mark.parametrize("batch", [False, True])
@settings(max_examples=examples(20), deadline=None)
@given(events=st.lists(st.fixed_dictionaries({}, optional={"a": VALUES}), max_size=8))
def test_what_is_shared_in_a_batch_is_what_each_has_alone(batch, events):
    def spell(event):
        return repr(dict(event))

    def spell_all(table):
        return pa.array([repr(event) for event in table.to_pylist()])

    registry = Registry()
    function = spell_all if batch else spell
    operator("spell(?string)", reads=["a"], registry=registry, timeout=None, batch=batch)(function)
    index = build({"s": "spell(?x)"}, operators=registry)
    alone = [index.match_bindings(event) for event in events]
    pairs = index.match_batch(events, bindings=True).to_pylist()
    together = {row["event_row"]: {"s": json.loads(row["bindings"])} for row in pairs}
    assert together == {row: found for row, found in enumerate(alone) if found}


def test_moments_of_different_zones_keep_theirs_in_a_batch():
    """One Arrow column has one zone: other zones are tested in separate columns."""
    seen = []

    def spell(table):
        seen.extend(table["a"].to_pylist())
        return pa.array([str(moment) for moment in table["a"].to_pylist()])

    registry = Registry()
    operator("spell(?string)", reads=["a"], registry=registry, batch=True)(spell)
    index = build({"s": "spell(?x)"}, operators=registry)
    noon = datetime(2024, 1, 1, 12)
    zones = [UTC, timezone(timedelta(hours=2)), None, timezone(timedelta(hours=-5))]
    events = [{"a": noon.replace(tzinfo=zone)} for zone in zones] * 2
    result = index.match_batch(events, bindings=True).to_pylist()
    assert [json.loads(row["bindings"])["x"] for row in result] == [str(e["a"]) for e in events]
    assert sorted(map(str, seen)) == sorted({str(event["a"]) for event in events})


def test_equal_events_are_asked_about_once():
    index, seen = record(["a"])
    index.match_lists(ALIKE * 2)
    distinct = {repr(dict(event)) for event in seen}
    # Missing and NULL are the same, and so are a number and the number as a decimal.
    assert len(seen) == len(distinct) == len(ALIKE) - 2


# ── signatures ──────────────────────────────────────────────────────────────────────────────


def test_types_are_told_in_every_notation():
    reads = ["lat double", "`my place`.lon decimal(9, 6)", "plain", "tags array<string>"]
    signature = parse_signature("at(string)", reads)
    assert signature.reads[:2] == (
        Read(("lat",), DOUBLE),
        Read(("my place", "lon"), decimal_type(9, 6)),
    )
    schema = Schema.of("a INT").with_operators([signature])
    for again in (Schema.of(schema.to_json()), Schema.of(schema.to_ddl())):
        assert again == schema
        assert again.operator("at").reads == signature.reads
    assert ("lat",) not in schema


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ("lat", "reads 'lat'; allowed: a list"),
        (5, "reads 5; allowed: a list"),
        ([5], "allowed: a list"),
        ([""], "reads ''"),
        (["lat dobule"], 'unknown type "dobule"'),
    ],
)
def test_reads_that_are_none(reads, said):
    with pytest.raises(SchemaError, match=said):
        operator("f()", reads=reads, registry=Registry())(lambda event: True)


def test_answers_do_not_depend_on_the_schema():
    registry = Registry()
    operator("is_float()", reads=["a"], registry=registry)(lambda event: type(event["a"]) is float)
    for schema in (None, "a DOUBLE", "a DECIMAL(5,2)", "a STRING"):
        index = build({"s": "is_float()"}, schema, operators=registry)
        assert index.match_lists(['{"a": 1.5}']).to_pylist() == [["s"]]
        assert index.match({"a": Decimal("1.5")}) == ["s"]


def test_the_reference_evaluator_gives_operators_the_same():
    registry_texts = {"s": "tests_view_share(?x) AND ?x > 0.2"}

    @tamis.operator("tests_view_share(?double)", reads=["a double"])
    def tests_view_share(event):
        return event["a"] / 2.0

    index = tamis.build(registry_texts)
    for event in ({"a": Decimal("0.5")}, {"a": 0.3}, {"a": "0.5"}, {"a": 1}, {}):
        expected = tamis.evaluate(registry_texts["s"], event) is True
        assert (index.match(event) == ["s"]) == expected


# ── texts ───────────────────────────────────────────────────────────────────────────────────

READERS = {"as_text": "code string", "as_number": "code integer", "as_it_is": "code"}
CODES = [("7", ["7"], [7], ["7"]), ("007", ["007"], [7], ["007"]), ("x", ["x"], [], ["x"])]


@pytest.mark.parametrize(("text", "texts", "numbers", "as_is"), CODES)
@pytest.mark.parametrize("others", [{}, {"o": "code > 1"}, {"o": "code = '7'"}])
def test_each_operator_reads_texts_as_it_likes(text, texts, numbers, as_is, others):
    """Whatever another operator, or a subscription, takes the attribute for."""
    registry = Registry()
    for name, read in READERS.items():
        bound = "integer" if name == "as_number" else "string"
        operator(f"{name}(?{bound})", reads=[read], registry=registry)(
            lambda event: event.get("code")
        )
    index = build({name: f"{name}(?x)" for name in READERS} | others, operators=registry)
    pairs = pa.array([[("code", text)]], pa.map_(pa.string(), pa.string()))
    encoded = index.encode(pa.table({"e": pairs}), column="e")
    result = index.match_batch(encoded, bindings=True).to_pylist()
    found = {row["subscription_id"]: [json.loads(row["bindings"])["x"]] for row in result
             if row["subscription_id"] in READERS}  # fmt: skip
    expected = {"as_text": texts, "as_number": numbers, "as_it_is": as_is}
    assert found == {name: values for name, values in expected.items() if values}


def test_an_index_built_without_the_code_reads_as_the_code_does():
    registry = Registry()
    operator("number(?integer)", reads=["code integer"], registry=registry)(
        lambda event: event["code"]
    )
    declared = Schema.of("number(?BIGINT) OPERATOR(code)")
    index = build({"s": "number(?x)"}, declared, operators=registry)
    pairs = pa.array([[("code", "5")]], pa.map_(pa.string(), pa.string()))
    assert len(index.match_batch(index.encode(pa.table({"e": pairs}), column="e"))) == 1


def test_code_that_reads_more_than_the_index_knows_is_refused():
    registry = Registry()
    operator("number()", reads=["code", "other"], registry=registry)(lambda event: True)
    declared = Schema.of("number() OPERATOR(code)")
    index = build({"s": "number()"}, declared, operators=registry)
    with pytest.raises(tamis.MissingOperatorError, match=r"operator\(code, other\)"):
        index.match({"code": 1})


# ── tables ──────────────────────────────────────────────────────────────────────────────────


def test_columns_that_nobody_reads_are_not_looked_at():
    registry = Registry()
    operator("big(integer)", reads=["a integer"], registry=registry)(
        lambda event, least: event["a"] >= least
    )
    index = build({"s": "big(2) AND b IS NULL"}, "b STRING", operators=registry)
    far = pa.array([10**7, 1, 1], pa.int32()).cast(pa.date32())
    table = pa.table({"a": [3, 1, 2], "b": [None, None, "x"], "far": far})
    assert index.match_lists(table).to_pylist() == [["s"], [], []]


def test_a_value_that_python_has_no_word_for_is_missing():
    registry = Registry()
    operator("a_day(?string)", reads=["far", "n"], registry=registry)(
        lambda event: str(event.get("far")) + str(event["n"])
    )
    index = build({"s": "a_day(?x)"}, operators=registry)
    far = pa.array([10**7, 0], pa.int32()).cast(pa.date32())
    for events, column in (
        (pa.table({"far": far, "n": [1, 2]}), None),
        (pa.table({"e": pa.StructArray.from_arrays([far, pa.array([1, 2])], ["far", "n"])}), "e"),
    ):
        result = index.match_batch(index.encode(events, column=column), bindings=True).to_pylist()
        assert [json.loads(row["bindings"])["x"] for row in result] == ["None1", "1970-01-012"]
