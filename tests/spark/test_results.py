"""What jobs return: named, printed as short tables, as pandas has tables; and rules on trial."""

from __future__ import annotations

import inspect
import re
from contextlib import nullcontext
from dataclasses import fields, is_dataclass

import pytest

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tamis.errors import ExpressionError, IndexFormatError, InputError, TamisWarning
from tamis.operators.registry import REGISTRY
from tests.spark.workloads import (
    DDL,
    event_frame,
    make_workload,
    subscription_frame,
)

SUBSCRIPTIONS, EVENTS = make_workload(5, n_subscriptions=20, n_events=100)
RULES = {"s0": "age >= 50", "s1": "country = 'NO' AND colour = 'red'", "new": "vip"}


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("stores") / "index")
    ts.build(subscription_frame(spark, SUBSCRIPTIONS), path, parts=2, schema=DDL)
    return path


@pytest.fixture(scope="module")
def events(spark):
    return event_frame(spark, EVENTS)[0].persist()


def small(spark, path, *expressions: str) -> ts.BuildReport:
    rows = [(f"s{number}", text) for number, text in enumerate(expressions)]
    return ts.build(subscription_frame(spark, rows), path)


# ── tables ──────────────────────────────────────────────────────────────────────────────────


def test_reports_and_versions_print_as_tables(spark, tmp_path):
    report = small(spark, tmp_path, "a = 1", "a = 2", "a =")
    names, values = str(report).splitlines()
    assert names.split() == [
        *("version", "subscriptions", "rejects", "expired", "parts", "built", "bytes", "published"),
    ]
    assert values.split()[:6] == ["v00000001", "2", "1", "0", "1", "1"]
    assert values.endswith("yes")
    assert "no: nothing has changed" in str(small(spark, tmp_path, "a = 1", "a = 2", "a ="))
    small(spark, tmp_path, "a = 3")
    store = tv.IndexStore(tmp_path)
    names, *rows = str(store).splitlines()[1:]
    assert names.split() == ["version", "created_at", "subscriptions", "rejects", "parts", "bytes"]
    assert [row.split()[0] for row in rows] == ["v00000001", "v00000002"]
    assert [row.split()[-1] == "current" for row in rows] == [False, True]
    assert rows[1].startswith(str(store.current()).splitlines()[1])
    assert repr(store) == f"IndexStore({str(tmp_path)!r})"
    for table in (store.to_pandas(), tv.versions(tmp_path).to_pandas()):
        assert table["version"].tolist() == ["v00000001", "v00000002"]
        assert table["subscriptions"].tolist() == [2, 1]


def test_operators_that_nobody_calls_change_nothing(spark, tmp_path, monkeypatch):
    known = dict(REGISTRY._operators)
    monkeypatch.setattr(REGISTRY, "_operators", known)
    tamis.operator("never_called(string)", reads=["a"])(lambda event, x: True)
    assert small(spark, tmp_path, "a = 1", "a =").is_published
    assert not small(spark, tmp_path, "a = 1", "a =").is_published
    tamis.operator("newer(string)", reads=["a"])(lambda event, x: True)
    assert small(spark, tmp_path, "a = 1", "a =").n_built == 1  # what was rejected may be right now


def test_jobs_print_and_become_pandas(spark, events, store):
    backtest = ts.backtest(events, store, event_id="id")
    assert repr(backtest).startswith("<Backtest of v00000001, 100 events")
    lines = str(backtest).splitlines()
    assert (lines[0], lines[1].split()) == ("v00000001, 100 events", ["subscription_id", "n"])
    assert lines[2].split() == ["always", "100"]
    assert lines[-1] == "… and more"
    assert len(backtest.to_pandas()) == backtest.totals.count()
    sampled = str(ts.backtest(events, store, event_id="id", sample=0.5)).splitlines()
    assert re.fullmatch(r"v00000001, 100 events, of which \d+ were evaluated", sampled[0])
    assert sampled[1].split() == ["subscription_id", "n", "expected", "low", "high"]
    diff = ts.diff(events, store, store, event_id="id")
    assert (diff.before, diff.after, len(diff.to_pandas())) == ("v00000001", "v00000001", 0)
    assert str(diff).splitlines() == [
        "v00000001 → v00000001: subscriptions that differ",
        "subscription_id  n_before  n_after  change",
    ]
    assert repr(diff) == "<Diff of v00000001 and v00000001: print it, or see counts and pairs()>"


def test_an_audit_is_counted_and_listed(spark, events, store):
    audit = ts.audit(events, store, event_id="id", share=1.0, n_subscriptions=5)
    assert audit.n_compared >= 5 * len(EVENTS)
    assert (audit.n_disagreements, len(audit.to_pandas())) == (0, 0)
    names, values = str(audit).splitlines()
    assert names.split() == ["version", "by", "compared", "disagreements"]
    assert values.split() == ["v00000001", "reference", f"{audit.n_compared:,}", "0"]
    wrong = spark.createDataFrame(
        [(1, "s", "true", "undefined", None), (None, None, None, None, 7)],
        "event_id int, subscription_id string, engine string, reference string, n_compared bigint",
    )
    result = ts.Audit("v00000001", "reference", wrong)
    assert (result.n_compared, result.n_disagreements) == (7, 1)
    assert str(result).splitlines()[-2:] == [
        "event_id  subscription_id  engine  reference",
        "1         s                true    undefined",
    ]
    assert result.to_pandas().columns.tolist() == result.disagreements.columns


def test_a_damaged_version_is_named_and_left_out(spark, tmp_path):
    small(spark, tmp_path, "a = 1")
    small(spark, tmp_path, "a = 2")
    (tmp_path / "v00000001" / "manifest.json").write_text("{")
    with pytest.warns(TamisWarning, match="v00000001 cannot be read"):
        assert [own.name for own in tv.versions(tmp_path)] == ["v00000002"]


def test_rolling_back(spark, tmp_path):
    small(spark, tmp_path, "a = 1")
    small(spark, tmp_path, "a = 2")
    assert tv.roll_back(tmp_path, 1).name == "v00000003"
    assert [own.name for own in tv.versions(tmp_path)] == [f"v0000000{n}" for n in (1, 2, 3)]
    assert tv.roll_back(tmp_path, "v00000003").name == "v00000003"  # it is the newest
    with pytest.raises(IndexFormatError, match='no version "v00000009"'):
        tv.roll_back(tmp_path, 9)
    (tmp_path / "v00000004").mkdir()
    (tmp_path / "v00000004" / "manifest.json").write_text("{")
    # The newest is damaged: what it hides is published again.
    assert tv.roll_back(tmp_path, 3).name == "v00000005"


# ── rules on trial ──────────────────────────────────────────────────────────────────────────


def change_pairs(rules: dict[str, str]) -> dict[str, tuple[set, set]]:
    """The events of each rule before and after, as the reference evaluator says."""
    schema = tamis.Schema.of(f"{DDL}, colour STRING")
    first = dict(reversed(SUBSCRIPTIONS))

    def matched(text: str | None) -> set[int]:
        if text is None:
            return set()
        return {
            at
            for at, event in enumerate(EVENTS)
            if tamis.evaluate(tamis.parse(text, schema), event)
        }

    return {name: (matched(first.get(name)), matched(text)) for name, text in rules.items()}


@pytest.mark.parametrize("layout", ["columns", "struct", "json"])
def test_changed_rules_are_counted_beside_the_version(spark, store, layout):
    frame, attributes = event_frame(spark, EVENTS, layout)
    where = {"event_id": "id", "attributes": attributes}
    # What JSON has is not known before it is read.
    expects = pytest.warns(tamis.TamisWarning, match="missing in the columns of the events: colour")
    with expects if layout != "json" else nullcontext():
        result = ts.backtest(frame, store, changed=RULES, n_samples=2, **where)
    assert (result.version, result.n_events, result.n_looked_at) == ("v00000001", 100, 100)
    expected = change_pairs(RULES)
    totals = {row["subscription_id"]: row.asDict() for row in result.totals.collect()}
    assert totals.keys() == RULES.keys()
    for name, (before, after) in expected.items():
        assert totals[name] == {
            "subscription_id": name,
            "change": "added" if name == "new" else "rewritten",
            "n_before": len(before),
            "n_after": len(after),
            "n_gained": len(after - before),
            "n_lost": len(before - after),
        }
    samples: dict[tuple, set] = {}
    for row in result.samples.collect():
        samples.setdefault((row["subscription_id"], row["change"]), set()).add(row["event_id"])
    wanted = {
        (name, change): pairs
        for name, (before, after) in expected.items()
        for change, pairs in (("gained", after - before), ("lost", before - after))
        if pairs
    }
    assert samples.keys() == wanted.keys()
    assert any(change == "lost" for _, change in wanted)
    for key, found in samples.items():
        assert found <= wanted[key]
        assert len(found) == min(2, len(wanted[key]))
    assert tv.IndexStore(store).numbers() == [1]  # nothing is published


def test_changed_rules_print_as_tables(events, store):
    result = ts.backtest(events, store, event_id="id", changed={"new": "age = 200"})
    assert str(result).splitlines() == [
        "v00000001, 100 events",
        "subscription_id  change  n_before  n_after  n_gained  n_lost",
        "new              added   0         0        0         0",
        "",
        "subscription_id  change  event_id",
    ]
    assert result.to_pandas()["n_after"].tolist() == [0]
    assert repr(result).startswith("<ChangedBacktest of v00000001, 100 events")


def test_changed_rules_of_equal_and_missing_ids(spark, tmp_path):
    """Pairs are those of rows: events may have one id, or none."""
    small(spark, tmp_path, "a = 1")
    events = spark.createDataFrame([("e", 1), ("e", 2), (None, 2), (None, 3)], "id string, a int")
    result = ts.backtest(events, tmp_path, event_id="id", changed={"s0": "a >= 2"})
    (row,) = result.totals.collect()
    assert tuple(row) == ("s0", "rewritten", 1, 3, 3, 1)


def test_changed_rules_see_what_is_valid_and_saved(spark, tmp_path):
    rows = spark.sql(
        "SELECT 'x' subscription_id, 'a = 1' expression, TIMESTAMP'2999-01-01' valid_until"
    )
    ts.build(rows, tmp_path / "i")
    events = spark.createDataFrame([(1, 1), (2, 2)], "id int, a int")
    for at, change in (("2030-01-01", "rewritten"), ("2999-01-02", "added")):
        parts = tv.open_version(tmp_path / "i", at=at)
        (row,) = ts.backtest(events, parts, changed={"x": "a = 2"}).totals.collect()
        assert row["change"] == change
    tamis.build({"x": "a = 1"}).save(tmp_path / "saved")
    before = sorted((tmp_path / "saved").rglob("*"))
    (row,) = ts.backtest(events, tmp_path / "saved", changed={"x": "a > 0"}).totals.collect()
    assert tuple(row)[2:] == (1, 2, 1, 0)
    assert sorted((tmp_path / "saved").rglob("*")) == before


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"s0": "age >="}, ExpressionError, 'subscription "s0"'),
        ({"s0": "age = 'old'"}, ExpressionError, 'subscription "s0"'),
        ({}, InputError, "changed is empty"),
        ("age = 1", InputError, "not a mapping"),
        ({"s0": None}, InputError, "ids and expressions must be strings"),
    ],
)
def test_wrong_changes_are_refused(events, store, changed, error, said):
    with pytest.raises(error) as raised:
        ts.backtest(events, store, changed=changed)
    assert said in str(raised.value)
    with pytest.raises(InputError, match="day cannot be combined"):
        ts.backtest(events, store, changed={"s0": "vip"}, day="id")


# ── documented ──────────────────────────────────────────────────────────────────────────────

CALLS = [name for name in ts.__all__ if inspect.isfunction(getattr(ts, name))]
RESULTS = [
    *("Audit", "Backtest", "BatchReport", "BuildReport", "ChangedBacktest", "Diff", "Retention"),
    *("StreamMetrics", "Version"),
]
# What every call takes first.
OBVIOUS = {"spark", "events", "subscriptions", "index", "store"}


@pytest.mark.parametrize("name", CALLS)
def test_every_parameter_is_documented(name):
    call = getattr(ts, name)
    shown = inspect.getdoc(call) or ""
    named = [own for own in inspect.signature(call).parameters if own not in OBVIOUS]
    assert not [own for own in named if f"`{own}`" not in shown]


@pytest.mark.parametrize("name", RESULTS)
def test_every_attribute_is_documented(name):
    kind = getattr(tv if name in tv.__all__ else ts, name)
    assert is_dataclass(kind)
    source = inspect.getsource(kind)
    own = [each.name for each in fields(kind) if not each.name.startswith("_")]
    undocumented = [
        each
        for each in own
        if not re.search(rf"\b{each}\b[\w, ]*:", inspect.getdoc(kind) or "")
        and not re.search(rf"^    {each}: .*#", source, re.MULTILINE)
    ]
    assert not undocumented
