"""Suspicious subscriptions and events are reported, once for each call."""

from __future__ import annotations

import json
import pickle
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis import TamisWarning
from tamis.match.unseen import MANY

RULES = {f"r{number}": f"age > {number} AND country = 'FR'" for number in range(20)}


def warned(call):
    """The warnings of a call, which must be ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(issubclass(one.category, TamisWarning) for one in caught)
    assert all(one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


# ── building ────────────────────────────────────────────────────────────────────────────────


def test_a_misspelt_attribute_is_reported():
    (note,) = warned(lambda: tamis.build(RULES | {"typo": "agee > 3", "case": "Country = 'FR'"}))
    assert note == (
        '2 attributes look misspelt: Country (subscription "case") looks like country '
        '(20 subscriptions); agee (subscription "typo") looks like age (20 subscriptions). '
        "Correct the expressions, or declare a schema that has all names if they are right"
    )


def test_a_declared_schema_has_the_names_that_are_meant():
    schema = "age INT, agee INT, country STRING"
    assert warned(lambda: tamis.build(RULES | {"twin": "agee > 3"}, schema)) == []


def test_an_unknown_attribute_of_a_declared_schema_is_a_reject_with_a_suggestion():
    index = tamis.build(RULES | {"typo": "agee > 3"}, "age INT, country STRING")
    assert 'did you mean "age"?' in str(index.rejects[0])


@pytest.mark.parametrize("given", ["age INT, foo STRING", {"age": "int", "foo": "string"}])
def test_attributes_that_only_the_schema_has_are_reported(given):
    (note,) = warned(lambda: tamis.build({"a": "age > 3"}, given))
    assert note == (
        "no subscription in the index uses foo, which the schema declares. Correct the name in the "
        "schema or remove it, unless this is intended"
    )
    assert warned(lambda: tamis.build({"a": "age > 3 OR foo = 'x'"}, given)) == []


def test_a_schema_of_events_may_have_more_than_is_used():
    events = pa.schema({"age": pa.int64(), "foo": pa.string()})
    assert warned(lambda: tamis.build({"a": "age > 3"}, events)) == []


def test_tags_of_nobody_are_reported():
    tags = {"r1": ["a"], "R2": ["b"], "nobody": ["c"]}
    (note,) = warned(lambda: tamis.build(RULES, tags=tags))
    assert note == '2 ids in tags belong to no subscription: such as "R2"; did you mean "r2"?'


def test_tags_of_a_reject_are_not():
    (note,) = warned(lambda: tamis.build({"a": "x >", "b": "y = 1"}, tags={"a": ["t"]}))
    assert "rejected" in note


def test_rejects_are_reported():
    with pytest.warns(tamis.RejectWarning) as caught:
        tamis.build({"a": "x >", "b": "y = 1", "c": "(z = 1"})
    (note,) = [str(one.message) for one in caught]
    assert note == (
        '2 subscriptions were rejected and are not in the index, for example subscription "a": '
        "expected a condition or a value, found the end; index.rejects lists them"
    )


def test_an_index_of_rejects_alone_is_not_built():
    with pytest.raises(tamis.BuildError) as raised:
        tamis.build({"a": "age >", "b": "= 3"})
    assert raised.value.message == (
        'no index was built: all 2 subscriptions were rejected, for example subscription "a": '
        "expected a condition or a value, found the end"
    )
    assert [reject.subscription_id for reject in raised.value.rejects] == ["a", "b"]
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.message, len(again.rejects)) == (raised.value.message, 2)


def test_the_only_subscription_is_shown_with_its_error():
    with pytest.raises(tamis.BuildError) as raised:
        tamis.build({"a": "status == 'x' && age > 3"})
    (reject,) = raised.value.rejects
    assert raised.value.message == (
        'no index was built: the only subscription was rejected: subscription "a": '
        f"{reject.message}\n{reject.picture()}"
    )
    assert raised.value.hint == reject.hint
    assert reject.hint is not None


def test_an_index_of_no_subscriptions_is_built():
    assert len(tamis.build({})) == 0
    expired = {"id": "old", "expression": "x = 1", "valid_until": "2001-01-01"}
    assert len(tamis.build([expired])) == 0


def test_rows_without_an_id_are_reported():
    rows = [{"id": "a", "expression": "x = 1"}, {"id": None, "expression": "x = 2"}]
    (note,) = warned(lambda: tamis.build(rows))
    assert note == (
        "1 subscription was rejected and is not in the index, for example row 2: the id is null; "
        "a string or a whole number is expected; index.rejects lists it"
    )


def test_expired_subscriptions_are_reported():
    rows = [
        {"id": "old", "expression": "x = 1", "valid_until": "2001-01-01"},
        {"id": "new", "expression": "x = 1"},
    ]
    assert warned(lambda: tamis.build(rows)) == [
        "1 subscription has expired (valid_until is past) and is left out"
    ]


@pytest.mark.parametrize("name", ["Weight", "weigth", "weights", " weight"])
def test_a_column_that_looks_like_the_weight_is_reported(name):
    row = {"id": "a", "expression": "x = 1", name: 2}
    (note,) = warned(lambda: tamis.build([row]))
    assert f"{name} looks like weight: rename it if that is meant" in note


@pytest.mark.parametrize("others", [{"height": 2}, {"weight": 2, "weights": 3}, {"weight": 2}])
def test_other_columns_are_not_taken_for_the_weight(others):
    assert warned(lambda: tamis.build([{"id": "a", "expression": "x = 1", **others}])) == []


def test_columns_that_look_like_others_are_reported():
    row = {"id": "a", "expression": "x = 1", "Valid_Until": "2040-01-01", "enabled": False}
    (note,) = warned(lambda: tamis.build([row | {"title": "A"}]))
    assert note == (
        "2 columns are stored with the subscriptions and not used: Valid_Until looks like "
        "valid_until: rename it if that is meant; enabled is false in 1 subscription and "
        "does not switch it off: leave out its row"
    )


@pytest.mark.parametrize(
    ("name", "off", "on"),
    [
        ("status", "disabled", "live"),
        ("State", "Inactive", "new"),
        ("active", False, True),
        ("enabled", 0, 1),
        ("deleted", True, False),
        ("is_deleted", "yes", "no"),
        ("deleted_at", "2026-01-01", None),
    ],
)
def test_columns_that_look_like_switches_are_reported_by_their_values(name, off, on):
    def rows(*values):
        return [{"id": f"s{n}", "expression": "x = 1", name: v} for n, v in enumerate(values)]

    (note,) = warned(lambda: tamis.build(rows(off, off, on)))
    spelled = f'"{off}"' if isinstance(off, str) else str(off).lower()
    assert note == (
        f"a column is stored with the subscriptions and not used: {name} is {spelled} in 2 "
        "subscriptions and does not switch them off: leave out their rows"
    )
    assert warned(lambda: tamis.build(rows(on, on))) == []


def test_columns_of_other_names_for_validity_are_reported():
    row = {"subscription_id": "a", "expression": "x = 1", "id": 7, "validTo": "2020-01-01"}
    (note,) = warned(lambda: tamis.build([row]))
    assert "validTo looks like valid_until" in note
    assert "id is not the id, which is in subscription_id" in note


def test_swapped_ids_and_expressions_are_reported():
    (note,) = warned(lambda: tamis.build({"x = 1": "a", "x IN (2)": "b"}))
    assert note.startswith("the ids look like expressions and the expressions like ids")
    assert warned(lambda: tamis.build({"r1": "vip", "r2": "mobile"})) == []


def test_evaluate_reports_values_of_another_type():
    with pytest.warns(tamis.RejectWarning, match="attribute level: '4' is not of type number"):
        assert tamis.evaluate("level > 3", {"level": "4"}) is None


def test_several_tags_in_one_are_reported():
    row = {"id": "a", "expression": "x = 1", "tags": "urgent; news"}
    assert warned(lambda: tamis.build([row])) == [
        'a tag seems to be several in one: "urgent; news". Separate tags by commas, or write a list'
    ]


@pytest.mark.parametrize("tags", [["a"], {"a": "one"}, {"a": 1}, {"a": [1]}])
def test_tags_are_a_dict_of_lists(tags):
    with pytest.raises(tamis.InputError, match="tags"):
        tamis.build({"a": "x = 1"}, tags=tags)


# ── attributes that no event has ────────────────────────────────────────────────────────────

ABROAD = [{"age": 30, "Country": "FR", "city": "Lyon"}] * MANY


@pytest.fixture(scope="module")
def index() -> tamis.Index:
    return tamis.build(RULES | {"gone": "deleted IS NULL", "lone": "city = 'Lyon'"})


CALLS = {
    "match_batch": lambda index, events: index.match_batch(events),
    "match_chunks": lambda index, events: list(index.match_chunks(events)),
    "match_lists": lambda index, events: index.match_lists(events),
    "count_by_event": lambda index, events: index.count_by_event(events),
    "count_by_subscription": lambda index, events: index.count_by_subscription(events),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_attribute_that_no_event_has_is_reported(index, call):
    (note,) = warned(lambda: call(index, ABROAD))
    assert note == (
        "an attribute that subscriptions use is missing in every event (100 events): country (20 "
        'subscriptions, such as "r0"), but they have Country. Correct the expressions or the names '
        "in the events, unless this is intended"
    )


def test_lists_of_single_events_are_looked_at_once(index):
    fresh = tamis.build({"a": "n > 1", "b": "m.n > 1"})
    events = [{"N": 3, "m": {"n": 2}}] * MANY
    notes = warned(lambda: fresh.match_many(iter(events[:3])))
    assert len(notes) == 1
    assert 'n (subscription "a"), but they have N.' in notes[0]
    texts = [json.dumps(event) for event in events]
    assert warned(lambda: fresh.match_many(texts)) == [notes[0].replace("3 events", "100 events")]
    assert warned(lambda: fresh.match_many(events)) == []
    assert warned(lambda: index.match_many([{"age": 30, "country": "FR", "city": "Lyon"}])) == []


def layouts(tmp_path):
    table = pa.Table.from_pylist(ABROAD)
    lines = tmp_path / "events.jsonl"
    lines.write_text("".join(json.dumps(event) + "\n" for event in ABROAD))
    parquet = tmp_path / "events.parquet"
    pq.write_table(table, parquet)
    csv = tmp_path / "events.csv"
    csv.write_text("age,Country,city\n" + "30,FR,Lyon\n" * MANY)
    pairs = [list({**event, "age": "30"}.items()) for event in ABROAD]
    return {
        "json texts": list(map(json.dumps, ABROAD)),
        "table": table,
        "pandas": table.to_pandas(),
        "structs": pa.array(ABROAD),
        "maps": pa.array(pairs, pa.map_(pa.string(), pa.string())),
        "json column": pa.array(list(map(json.dumps, ABROAD))),
        "batches": iter(table.to_batches(max_chunksize=30)),
        "reader": table.to_reader(max_chunksize=30),
        "lines": str(lines),
        "parquet": parquet,
        "open parquet": pq.ParquetFile(parquet),
        "csv": csv,
    }


@pytest.mark.parametrize(
    "layout",
    [
        *("json texts", "table", "pandas", "structs", "maps", "json column", "batches", "reader"),
        *("lines", "parquet", "open parquet", "csv"),
    ],
)
def test_it_is_in_every_layout(index, tmp_path, layout):
    (note,) = warned(lambda: index.match_lists(layouts(tmp_path)[layout]))
    assert 'country (20 subscriptions, such as "r0"), but they have Country.' in note


def test_what_few_events_lack_is_not_reported(index):
    few = [{"age": 30, "other": 1}] * (MANY - 1)
    assert warned(lambda: index.match_lists(few)) == []
    assert "country (20 sub" in warned(lambda: index.match_lists([*few, {}]))[0]
    assert warned(lambda: index.match_lists([*few, {"country": "DE", "city": "Bonn"}])) == []


def test_another_case_is_reported_of_few_events_too(index):
    (note,) = warned(lambda: index.match_lists([{"Age": 30}]))
    assert note.startswith(
        "an attribute that subscriptions use is missing in every event (1 event)"
    )
    assert 'age (20 subscriptions, such as "r0"), but they have Age.' in note


@pytest.mark.parametrize("kind", ["dicts", "csv", "pandas"])
def test_blanks_around_a_name_are_reported_of_few_events_too(index, tmp_path, kind):
    csv = tmp_path / "events.csv"
    csv.write_text("age, country\n30,FR\n")
    events = [{"age": 30, " country": "FR"}]
    given = {"dicts": events, "csv": csv, "pandas": pd.DataFrame(events)}[kind]
    (note,) = warned(lambda: index.match_lists(given))
    assert 'country (20 subscriptions, such as "r0"), but they have ` country`.' in note


def test_a_single_event_and_no_events_are_not_reported(index):
    assert warned(lambda: index.match({"Age": 30})) == []
    assert warned(lambda: index.match_lists([])) == []


def test_events_that_were_encoded_before_are_not_reported(index):
    assert warned(lambda: index.match_lists(index.encode(ABROAD))) == []


def test_names_inside_structs_are_found():
    index = tamis.build({"a": "user.name = 'x'"})
    (note,) = warned(lambda: index.match_lists([{"user": {"nmae": "x"}}] * MANY))
    assert 'user.name (subscription "a"), but they have user.nmae.' in note


# ── values of another type ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["dicts", "table", "lines"])
def test_a_column_of_another_type_is_reported(index, tmp_path, kind):
    events = [{"age": "30", "country": "FR", "city": None}, {"age": "31", "country": "FR"}]
    lines = tmp_path / "events.jsonl"
    lines.write_text("".join(json.dumps(event) + "\n" for event in events))
    given = {"dicts": events, "table": pa.Table.from_pylist(events), "lines": lines}[kind]
    (note,) = warned(lambda: index.match_lists(given))
    assert note == (
        "an attribute has no usable value: age (2 values; row 0: '30' is not of type number). The "
        "values are treated as missing: convert them, or declare the type that they have in the "
        "schema of the index"
    )


def test_single_values_of_a_stream_are_reported_apart(index, tmp_path):
    lines = tmp_path / "events.jsonl"
    lines.write_text('{"age": "30", "country": 1}\n{"age": 30, "country": 2}\n')
    notes = warned(lambda: index.match_lists(lines))
    assert [one.partition(":")[0] for one in notes] == [
        "1 value or row was not read and treated as missing, for example row 0, attribute age",
        "an attribute has no usable value",
    ]


# ── what is no event ────────────────────────────────────────────────────────────────────────


def test_none_is_no_event():
    index = tamis.build({"a": "age IS NULL"})
    events = [None, {"age": 20}, {}]
    for given in (events, [None, '{"age": 20}', "{}"]):
        (note,) = warned(lambda given=given: index.match_lists(given))
        assert "row 0: an event is a mapping of attributes, not None" in note
        assert index.match_lists(index.encode(given)).to_pylist() == [[], [], ["a"]]
        (reject,) = index.encode(given).rejects
        assert (reject.row, reject.kind) == (0, "bad-row")
        assert index.count_by_subscription(index.encode(given)).tolist() == [1]


def test_a_null_in_a_column_of_events_is_an_event_without_attributes():
    index = tamis.build({"a": "age IS NULL"})
    for given in (pa.array([None, '{"age": 20}']), pa.array([None, {"age": 20}])):
        assert index.match_lists(given).to_pylist() == [["a"], []]


@pytest.mark.parametrize("name", ["e.jsonl", "e.json", "e.csv", "e.parquet"])
def test_a_file_without_events_is_reported(index, tmp_path, name):
    path = tmp_path / name
    if name == "e.parquet":
        pq.write_table(pa.table({"age": pa.array([], pa.int64())}), path)
    else:
        path.write_text({"e.jsonl": "", "e.json": "[]", "e.csv": "age\n"}[name])
    assert warned(lambda: index.match_lists(path)) == [f"there are no events in {path}"]
    assert warned(lambda: index.match_lists(str(path))) == [f"there are no events in {path}"]


# ── single events and small batches ─────────────────────────────────────────────────────────


def test_values_of_single_events_are_reported_once_for_each_attribute():
    index = tamis.build({"a": "age > 3 AND country = 'FR'"})

    def match():
        return index.match({"age": "five", "country": 5})

    with pytest.warns(tamis.RejectWarning) as caught:
        assert match() == []
    notes = [str(one.message).partition(". ")[0].partition(" was ")[0::2] for one in caught]
    assert notes == [
        (f"a value of attribute {name}", f"not read and is treated as missing: {reason}")
        for name, reason in [
            ("age", "'five' is not of type number"),
            ("country", "5 is not of type string"),
        ]
    ]
    assert warned(match) == []


@pytest.mark.parametrize("way", ["match_batch", "match_lists", "count_by_event"])
def test_values_and_rows_of_lists_are_reported(way):
    index = tamis.build({"a": "age > 3"})
    notes = warned(lambda: getattr(index, way)([{"age": 5}, {"age": "six"}, 7]))
    assert len(notes) == 1
    assert notes[0].startswith(
        "2 values and rows were not read and treated as missing, for example"
    )


def test_a_dotted_name_is_likened_to_a_path():
    index = tamis.build({"a": "process.name = 'x'"})
    (note,) = warned(lambda: index.match_lists([{"process.name": "x"}]))
    assert '(subscription "a"), but they have `process.name`.' in note
    index = tamis.build({"a": "`process.name` = 'x'"})
    (note,) = warned(lambda: index.match_lists([{"process": {"Name": "x"}}]))
    assert '(subscription "a"), but they have process.Name.' in note


@pytest.mark.parametrize("wrap", [lambda event: [event], json.dumps])
def test_events_in_a_list_inside_an_event(wrap):
    index = tamis.build({"a": "user.age > 3"})
    given = wrap({"n": 2, "Records": [{"user": {"age": 5}}, {"user": {"age": 6}}]})
    (note,) = warned(lambda: index.match_lists(given))
    assert "but the objects in the list Records have it: match these" in note


# ── schemas and arguments ───────────────────────────────────────────────────────────────────


def test_a_schema_may_be_a_file(tmp_path):
    (tmp_path / "s.json").write_text('{"x": "integer"}')
    for given in (tmp_path / "s.json", str(tmp_path / "s.json")):
        assert str(tamis.build({"a": "x = 1"}, given).contents.schema) == "Schema.of('x integer')"


def test_swapped_arguments_of_build_are_recognised():
    with pytest.raises(tamis.InputError, match="not the string 'x INT'"):
        tamis.build("x INT", {"a": "x = 1"})


def test_limits_are_limits():
    with pytest.raises(tamis.InputError, match=r"limits must be tamis\.Limits, not dict"):
        tamis.build({"a": "x = 1"}, limits={"depth": 3})


# ── something wrapped around each event ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("expression", "event", "message"),
    [
        ("action = 'x'", {"event": {"action": "x"}}, "they have event.action."),
        ("EventID = 1", {"Event": {"System": {"EventID": 1}}}, "they have Event.System.EventID."),
        ("user.name = 'x'", {"e": {"user": {"name": "x"}}}, "they have e.user.name."),
        ("action = 'x'", {"message": '{"action": "x"}'}, "the JSON inside the text message has it"),
        ("a.b = 1", {"body": {"text": ' {"a": {"b": 1}}'}}, "inside the text body.text has it"),
        ("geo.city = 'x'", {"geo": '{"city": "x"}'}, "the JSON inside the text geo has it"),
    ],
)
def test_what_is_wrapped_around_an_event_is_reported(expression, event, message, tmp_path):
    index = tamis.build({"a": expression})
    lines = tmp_path / "e.jsonl"
    lines.write_text(json.dumps(event))
    for given in ([event], [json.dumps(event)], pd.DataFrame([event]), lines):
        (note,) = warned(lambda given=given: index.match_lists(given))
        assert "missing in every event (1 event)" in note
        assert message in note


def test_what_few_events_have_elsewhere_is_no_envelope():
    index = tamis.build({"a": "name = 'x' OR age > 3", "b": "geo.city = 'x'"})
    event = {"age": 3, "user": {"name": "x"}, "note": '{"name": "x"}', "text": "{no JSON"}
    assert warned(lambda: index.match_lists([event])) == []
    assert warned(lambda: index.match_lists([{"age": "x", "user": {"name": "x"}}]))[1:] == []
    (note,) = warned(lambda: index.match_lists([event] * MANY))
    assert 'name (subscription "a"), but they have user.name' in note
    assert 'geo.city (subscription "b").' in note
    (note,) = warned(lambda: index.match_lists([event | {"geo": '{"city": "x"}'}]))
    assert "but the JSON inside the text geo has it: parse that text first" in note


def test_attributes_without_an_example_are_reported():
    names = [f"a{number:03}" for number in range(200)]  # more than have an example
    index = tamis.build({name: f"{name} = 1" for name in names}, dict.fromkeys(names, "integer"))
    with pytest.warns(TamisWarning, match="200 attributes have no usable value"):
        index.match_batch([dict.fromkeys(names, "one")])
    # Of the last attributes alone, which had good values before, there is no example at all.
    events = [dict.fromkeys(names, 1), *([dict.fromkeys(names, "one")] * 3)]
    with pytest.warns(tamis.RejectWarning, match="600 values and rows were not read"):
        index.match_batch(events)
