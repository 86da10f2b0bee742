"""What a row of a subscription has besides its expression: kept, asked for, obeyed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tamis
from tamis.index.attributes import spell_attributes
from tamis.language.moments import read_at, read_moment
from tamis.language.types import WrongTypeError
from tests.cli.shell import run
from tests.input.files import NAMES, write_rows
from tests.match.engines import reopened

ROWS = [
    {"id": "always", "expression": "age > 3", "title": "A", "level": 3},
    {"id": "until", "expression": "age > 3", "valid_until": "2099-01-01", "link": "http://u"},
    {"id": "gone", "expression": "age > 3", "valid_until": "2020-01-01T00:00:00"},
    {"id": "later", "expression": "age > 3", "valid_from": "2090-01-01", "tags": ["x", "y"]},
    {"id": "true", "expression": "TRUE", "valid_from": "2090-01-01", "valid_until": "2099-01-01"},
]
EVENTS = [{"age": 5}, {"age": 1}]
MOMENTS = {
    None: {"always", "until"},
    "2089-12-31 23:59:59.999999": {"always", "until"},
    "2090-01-01": {"always", "until", "later", "true"},
    "2095-01-01T00:00:00Z": {"always", "until", "later", "true"},
    date(2099, 1, 1): {"always", "later"},
    datetime(2098, 12, 31, 23, 59, 59, 999999, tzinfo=UTC): {"always", "until", "later", "true"},
}


@pytest.fixture(params=["built", "opened"])
def index(request):
    built = tamis.build(ROWS)
    if request.param == "built":
        yield built
    else:
        with reopened(built) as opened:
            yield opened


# ── validity ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("at", MOMENTS, ids=str)
def test_who_is_valid_matches_in_every_way(index, at):
    hit = MOMENTS[at]
    both = [hit, hit & {"true"}]
    assert set(index.match(EVENTS[0], at=at)) == hit
    assert set(index.match_bindings(EVENTS[0], at=at)) == hit
    assert [set(ids) for ids in index.match_lists(EVENTS, at=at).to_pylist()] == both
    pairs = index.match_batch(EVENTS, at=at).to_pylist()
    assert {p["subscription_id"] for p in pairs if p["event_row"] == 0} == hit
    assert index.count_by_event(EVENTS, at=at).tolist() == [len(ids) for ids in both]
    counts = index.count_by_subscription(EVENTS, at=at)
    counted = dict(zip(index, counts.tolist(), strict=True))
    assert counted == {one: sum(one in ids for ids in both) for one in index}
    some = index.match_lists(EVENTS, subset=["until", "later"], at=at).to_pylist()
    assert set(some[0]) == hit & {"until", "later"}
    for one in index:
        assert index.explain(one, EVENTS[0], at=at).matches == (one in hit)


def test_validity_and_operators():
    registry = tamis.operators.registry.Registry()
    tamis.operator("agrees()", registry=registry)(lambda event: True)
    rows = [dict(row, expression=f"{row['expression']} AND agrees()") for row in ROWS]
    index = tamis.build(rows, operators=registry)
    for at, hit in MOMENTS.items():
        assert set(index.match(EVENTS[0], at=at)) == hit
        assert set(index.match_lists(EVENTS, at=at).to_pylist()[0]) == hit
        assert index.count_by_event(EVENTS, at=at).tolist()[0] == len(hit)


def test_expired_rows_are_left_out_and_counted():
    rows = [dict(ROWS[2]), dict(ROWS[2], valid_until=None)]
    index = tamis.build(rows)
    assert (list(index), index.rejects) == (["gone"], [])
    assert index.contents.provenance["expired"] == 1
    assert index.match({"age": 5}) == ["gone"], "another row may have its id"


def test_an_explanation_names_the_validity(index):
    result = index.explain("true", {}, at="2080-01-01")
    assert result.truth is True
    assert result.to_dict()["valid"] is False
    assert "not valid at 2080-01-01 00:00:00 UTC, but from 2090-01-01 00:00:00 until" in str(result)


def test_an_index_without_validity_does_nothing_for_it(monkeypatch):
    index = tamis.build({"a": "age > 3"})
    monkeypatch.setattr("tamis.match.view.read_at", lambda at: pytest.fail("asked for the time"))
    assert index.match({"age": 5}) == ["a"]
    assert index.match_lists(EVENTS).to_pylist() == [["a"], []]
    assert index.view.moments[0].everyone.is_wanted is None


@pytest.mark.parametrize("wrong", ["tomorrow", 5, "2030-13-01", "2030-01-01T25:00", float("nan")])
def test_what_is_no_moment_is_refused(index, wrong):
    with pytest.raises(tamis.InputError, match="is not a moment"):
        index.match({}, at=wrong)
    with pytest.raises(tamis.InputError, match="is not a moment"):
        tamis.build({"a": "TRUE"}).match({}, at=wrong)


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        ({"valid_from": "soon"}, "bad-validity", "valid_from is 'soon', not a timestamp"),
        ({"valid_until": 5}, "bad-validity", "valid_until is '5', not a timestamp"),
        (
            {"valid_from": "2090-01-01", "valid_until": "2090-01-01"},
            "bad-validity",
            "valid_until is '2090-01-01 00:00:00', not after valid_from, '2090-01-01 00:00:00'",
        ),
        ({"tags": 5}, "bad-tags", "the tags are the number 5"),
        ({"tags": [1]}, "bad-tags", "the tags are a list"),
        ({"tags": "[1"}, "bad-tags", "the tags are a string"),
    ],
)
def test_wrong_details_reject_their_row(row, code, message):
    index = tamis.build([{"id": "a", "expression": "x = 1"}, {"id": "b", "expression": "x", **row}])
    assert list(index) == ["a"]
    (reject,) = index.rejects
    assert (reject.code, reject.subscription_id) == (code, "b")
    assert message in reject.message


def test_a_reversed_validity_is_explained():
    row = {"id": "a", "expression": "x = 1", "valid_from": "2030", "valid_until": "2020"}
    (reject,) = tamis.build([row, {"id": "b", "expression": "x = 1"}]).rejects
    assert reject.hint == "it would never be valid; are the two swapped?"


MOMENT_TEXTS = {
    "2030": "2030-01-01",
    "2030-2": "2030-02-01",
    "2030-02-03": "2030-02-03",
    "2030-2-3 4:05": "2030-02-03T04:05",
    "2030-02-03T04:05:06": "2030-02-03T04:05:06",
    "2030-02-03 04:05:06.5": "2030-02-03T04:05:06.500000",
    "2030-02-03 04:05:06.1234567": "2030-02-03T04:05:06.123456",
    "2030-02-03T04:05:06Z": "2030-02-03T04:05:06",
    "2030-02-03 04:05:06 UTC": "2030-02-03T04:05:06",
    "2030-02-03 04:05:06+02:00": "2030-02-03T02:05:06",
    "2030-02-03T04:05:06-1:30": "2030-02-03T05:35:06",
    " 2030-02-03 ": "2030-02-03",
    "": None,
    "soon": None,
    "2030-13-01": None,
    "2030-02-30": None,
    "2030-02-03T24:00:00": None,
    "20300203": None,
}


@pytest.mark.parametrize("text", MOMENT_TEXTS, ids=repr)
def test_moments_in_texts(text):
    expected = MOMENT_TEXTS[text]
    if expected is None:
        with pytest.raises(WrongTypeError):
            read_moment(text)
    else:
        assert read_moment(text) == datetime.fromisoformat(expected).replace(tzinfo=UTC)
        assert read_at(text) == read_moment(text)


def test_moments_are_read_as_spark_reads_them(spark):
    frame = spark.createDataFrame([(text,) for text in MOMENT_TEXTS], "text string")
    rows = frame.selectExpr("text", "CAST(try_cast(text AS timestamp) AS string) AS moment")
    found = {row["text"]: row["moment"] for row in rows.collect()}
    for text, expected in MOMENT_TEXTS.items():
        ours = None if expected is None else datetime.fromisoformat(expected)
        assert found[text] == (None if ours is None else spelled(ours)), text


def spelled(moment: datetime) -> str:
    """As Spark spells it: a fraction without zeros at its end."""
    whole = moment.isoformat(sep=" ")
    return whole.rstrip("0") if "." in whole else whole


# ── attributes ──────────────────────────────────────────────────────────────────────────────


def test_attributes_of_one(index):
    assert index.attributes("always") == {"title": "A", "level": 3}
    assert index.attributes("later") == {
        "tags": ["x", "y"],
        "valid_from": datetime(2090, 1, 1, tzinfo=UTC),
    }
    assert index.tagged("x") == ["later"]
    with pytest.raises(tamis.InputError, match="no subscription"):
        index.attributes("other")
    assert tamis.build({"a": "x = 1"}).attributes("a") == {}


def test_columns_of_results(index):
    found = index.match_batch(EVENTS[:1], columns=["level", "title", "link", "valid_until", "tags"])
    assert found.column_names[2:] == ["level", "title", "link", "valid_until", "tags"]
    rows = {row["subscription_id"]: row for row in found.to_pylist()}
    assert (rows["always"]["title"], rows["always"]["level"]) == ("A", 3)
    assert (rows["until"]["link"], rows["until"]["level"]) == ("http://u", None)
    assert rows["until"]["valid_until"] == datetime(2099, 1, 1, tzinfo=UTC)
    assert found.schema.field("level").type == pa.int64()
    named = index.match_batch(EVENTS[:1], columns=["expression"], event_id="age")
    assert set(named["expression"].to_pylist()) == {"age > 3"}
    chunks = list(index.match_chunks(EVENTS, columns=["title"]))
    assert pa.Table.from_batches(chunks).column_names[2:] == ["title"]
    assert index.match_batch([], columns=["title"]).column_names[2:] == ["title"]
    for wrong, said in ((["titel"], 'did you mean "title"'), ("title", r"write \['title'\]")):
        with pytest.raises(tamis.InputError, match=said):
            index.match_batch(EVENTS, columns=wrong)


def test_columns_of_several_types_become_text():
    rows = [{"id": str(at), "expression": "TRUE", "x": x} for at, x in enumerate([1, "a", [2]])]
    found = tamis.build(rows).match_batch([{}], columns=["x"])
    assert found["x"].to_pylist() == ["1", "a", "[2]"]


def test_the_first_row_of_an_id_gives_its_details():
    rows = [{"id": "a", "expression": "TRUE"}, {"id": "a", "expression": "TRUE", "title": "B"}]
    index = tamis.build([*rows, {"id": "b", "expression": "TRUE", "title": "C"}])
    assert (index.attributes("a"), index.attributes("b")) == ({}, {"title": "C"})
    assert [reject.code for reject in index.rejects] == ["duplicate-id"]


def test_tags_that_are_handed_over_are_added_to_those_of_the_rows():
    rows = [{"id": one, "expression": "TRUE", "tags": ["row"]} for one in "ab"]
    index = tamis.build(rows, tags={"a": ["own"]})
    assert (index.tagged("own"), index.tagged("row")) == (["a"], ["a", "b"])


@pytest.mark.parametrize("name", NAMES)
def test_every_format_carries_the_same(tmp_path, name):
    rows = [
        {"id": "a", "expression": "x = 1", "tags": ["u", "v"], "title": "A", "valid_from": "2020"},
        {"id": "b", "expression": "x = 1", "tags": [], "title": "B", "valid_from": "2090-01-01"},
    ]
    if name.endswith(("csv", "tsv")):
        rows = [dict(row, tags=",".join(row["tags"])) for row in rows]
    path = write_rows(tmp_path / name, rows)
    run("build", path, "-o", tmp_path / "x.tamis")
    for index in (tamis.build(path), tamis.open(tmp_path / "x.tamis")):
        assert index.match({"x": 1}) == ["a"]
        assert index.tagged("v") == ["a"]
        assert index.attributes("b") == {
            "title": "B",
            "valid_from": datetime(2090, 1, 1, tzinfo=UTC),
        }


def test_frames_carry_types():
    frame = pd.DataFrame(
        {
            "id": ["a", "b"],
            "expression": ["TRUE", "TRUE"],
            "valid_from": pd.to_datetime(["2090-01-01", None]),
            "level": [1, 2],
            "since": [date(2024, 1, 31), None],
            "nested": [{"x": 1, "y": None}, None],
        }
    )
    index = tamis.build(frame)
    assert index.match({}) == ["b"]
    assert index.attributes("b") == {"level": 2}
    assert index.attributes("a") == {
        "valid_from": datetime(2090, 1, 1, tzinfo=UTC),
        "level": 1,
        "since": "2024-01-31",
        "nested": {"x": 1},
    }


def test_any_value_is_spelled():
    from decimal import Decimal

    odd = {"b": b"\xff", "d": Decimal("1.5"), "big": 10**30, "s": "\ud800", "o": object}
    shown = json.loads(spell_attributes(odd))
    assert (shown["d"], shown["big"], shown["s"]) == (1.5, 10**30, "\ud800")
    assert list(shown) == sorted(shown)


# ── the shell ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shell(tmp_path):
    write_rows(tmp_path / "subs.jsonl", ROWS)
    write_rows(tmp_path / "events.jsonl", EVENTS)
    result = run("build", tmp_path / "subs.jsonl", "-o", tmp_path / "x.tamis")
    assert "1 subscription has expired (valid_until is past) and is left out" in " ".join(
        result.stderr.split()
    )
    return tmp_path


def match(folder, *options):
    result = run("match", folder / "x.tamis", folder / "events.jsonl", *options)
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def test_the_shell_matches_at_a_moment(shell):
    for at, hit in MOMENTS.items():
        options = () if at is None else ("--at", str(at))
        shown = json.loads(match(shell, *options)[0])
        assert set(shown["matches"]) == hit
        counted = json.loads(match(shell, "--counts", "event", *options)[0])
        assert counted["matches"] == len(hit)
        counts = map(json.loads, match(shell, "--counts", "subscription", *options))
        assert {row["subscription_id"] for row in counts if row["matches"]} == hit
    assert run("match", shell / "x.tamis", "--at", "soon").exit_code == 1
    explained = run(
        *("explain", shell / "x.tamis", "later", "--event", '{"age": 5}', "--at", "2095-01-01")
    )
    assert explained.stdout.startswith("later: matches")


def test_the_shell_prints_attributes(shell):
    shown = json.loads(match(shell, "--with", "title,link")[0])
    assert shown["with"] == {
        "always": {"title": "A", "link": None},
        "until": {"title": None, "link": "http://u"},
    }
    pairs = [json.loads(line) for line in match(shell, "--with", "title", "--output", "pairs")]
    assert {"event": 1, "subscription_id": "always", "title": "A"} in pairs
    assert "1\talways\tA\t3" in match(shell, "--with", "title,level", "--output", "tsv")
    table = match(shell, "--with", "title,valid_until", "--output", "table")
    assert table[0].split() == ["event", "subscription", "title", "valid_until"]
    wrong = run("match", shell / "x.tamis", shell / "events.jsonl", "--with", "titel")
    assert (wrong.exit_code, 'did you mean "title"?' in wrong.stderr) == (1, True)
    for names in ("title,title", "subscription_id"):
        twice = run("match", shell / "x.tamis", shell / "events.jsonl", "--with", names)
        assert (twice.exit_code, "already" in twice.stderr) == (1, True)
    for option in ("--with", "--with-event"):
        both = run("match", shell / "x.tamis", option, "title", "--counts", "event")
        assert (both.exit_code, f"{option} cannot be combined" in both.stderr) == (2, True)
    both = run("match", shell / "x.tamis", "--with", "title", "--bindings")
    assert (both.exit_code, "cannot be combined" in both.stderr) == (2, True)


def test_the_shell_prints_attributes_of_events(shell):
    shown = json.loads(match(shell, "--with-event", "age")[0])
    assert (shown["attributes"], "with" in shown) == ({"age": 5}, False)
    shown = json.loads(match(shell, "--with-event", "age", "--with", "title")[0])
    assert (shown["attributes"], shown["with"]["always"]) == ({"age": 5}, {"title": "A"})
    shown = json.loads(match(shell, "--with-event", "*")[0])
    assert shown["attributes"] == EVENTS[0]
    pairs = match(shell, "--with-event", "age", "--with", "title", "--output", "pairs")
    wanted = {"event": 1, "subscription_id": "always", "title": "A", "age": 5}
    assert wanted in map(json.loads, pairs)
    assert "1\talways\tA\t5" in match(
        shell, "--with-event", "age", "--with", "title", "--output", "tsv"
    )
    table = match(shell, "--with-event", "age,*", "--output", "table", "--only-matches")
    assert table[0].split() == ["event", "subscription", "age", "attributes"]
    taken = run("match", shell / "x.tamis", shell / "events.jsonl", "--with-event", "event")
    assert (taken.exit_code, 'has a column "event" already' in taken.stderr) == (1, True)
    unknown = run("match", shell / "x.tamis", shell / "events.jsonl", "--with-event", "agee")
    assert "note: no event has the attribute agee, which --with-event names" in unknown.stderr


def test_rejected_rows_keep_their_details(tmp_path):
    row = {"id": "a", "expression": "x =", "tags": ["t"], "title": "A", "valid_from": "2090-01-01"}
    write_rows(tmp_path / "x.jsonl", [row])
    result = run("build", tmp_path / "x.jsonl", "-o", tmp_path / "x.tamis", "--rejects", "-")
    shown = json.loads(result.stdout.splitlines()[0])
    assert (shown["tags"], shown["title"]) == (["t"], "A")
    assert shown["valid_from"] == "2090-01-01T00:00:00+00:00"


# ── indexes from others ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("ordinals", lambda array: array + 100),
        ("ordinals", lambda array: array[::-1]),
        ("starts", lambda array: array[:-1]),
        ("ends", lambda array: np.full_like(array, 2**62)),
        ("ends", lambda array: np.full_like(array, -(2**62))),
    ],
)
def test_an_altered_validity_is_refused(tmp_path, field, make):
    from dataclasses import replace

    from tamis.index import artefact

    contents = tamis.build(ROWS).contents
    altered = make(getattr(contents.validity, field)).copy()
    validity = contents.validity._replace(**{field: altered})
    artefact.save(replace(contents, validity=validity), tmp_path / "x.tamis")
    with pytest.raises(tamis.IndexFormatError, match="validity"):
        tamis.open(tmp_path / "x.tamis", trusted=False)


def test_numbers_of_subscriptions_are_not_rounded():
    row = {"id": "a", "expression": "age > 1", "price": Decimal("1.50"), "n": 2**53 + 1}
    index = tamis.build([row | {"long": Decimal("0.12345678901234567890123"), "large": 2**70}])
    shown = {"price": 1.5, "n": 2**53 + 1, "long": "0.12345678901234567890123", "large": 2**70}
    assert index.attributes("a") == shown
    (found,) = index.match_batch([{"age": 3}], columns=list(shown)).to_pylist()
    assert {name: found[name] for name in shown} == shown | {"large": str(2**70)}


def test_attributes_that_hold_themselves():
    more: dict = {}
    more["more"] = more
    with pytest.raises(tamis.InputError, match='of subscription "a" contain themselves'):
        tamis.build([{"id": "a", "expression": "age > 1", "more": more}])
