"""One bad event, call or constant is one: what goes wrong with it does not reach the others."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from tamis.language import check, parse
from tamis.logic.evaluate import evaluate
from tamis.match.build import build
from tamis.operators.ask import ask
from tamis.operators.caller import OperatorLimits
from tamis.operators.faults import FaultKind
from tamis.operators.registry import Registry, operator
from tests.operators.test_faults import RELEASE, hangs, make_index, raises
from tests.schedules import SCHEDULES, use_schedule
from tests.waiting import HANG_SECONDS

# ── one bad event ───────────────────────────────────────────────────────────────────────────


def test_one_value_of_another_type_leaves_the_rest_of_a_batch_alone():
    def loud(table, least):
        return pc.greater_equal(pc.count_substring(table["b"], "!"), least)

    registry = Registry()
    operator("loud(integer)", reads=["b"], batch=True, registry=registry)(loud)
    index = build({"l": "loud(1)"}, operators=registry)
    events = [{"b": "hey!"}, {"b": 5}, {"b": "no"}, {"b": ["x", 1]}, {"b": "hi!!"}, {}]
    assert index.match_lists(events).to_pylist() == [["l"], [], [], [], ["l"], []]
    kinds = {(str(fault.kind), fault.n_events) for fault in index.operators.faults}
    assert kinds == {("raised", 2), ("wrong-type", 1)}  # the number and nothing; the list


@pytest.mark.parametrize("bad", ["\ud800", 2**70, {1: 2}, object()])
def test_a_value_that_makes_no_column_is_one_fault(bad):
    registry = Registry()
    operator("any()", batch=True, registry=registry)(lambda table: pa.array([True] * len(table)))
    index = build({"s": "any()"}, operators=registry)
    events = [{"a": 1}, {"a": bad}, {"a": 2}, {"b": "x"}]
    assert index.match_lists(events).to_pylist() == [["s"], [], ["s"], ["s"]]
    (fault,) = index.operators.faults
    assert (fault.kind, fault.n_events) == (FaultKind.WRONG_TYPE, 1)
    assert "any reads a, which cannot be converted to an Arrow column" in fault.message


def test_a_type_makes_one_column_of_all_events():
    types = []

    def loud(table):
        types.append(table.schema.field("b").type)
        return pc.greater_equal(pc.count_substring(table["b"], "!"), 1)

    registry = Registry()
    operator("loud()", reads=["b string"], batch=True, registry=registry)(loud)
    index = build({"l": "loud()"}, operators=registry)
    events = [{"b": "hey!"}, {"b": 5}, {}, {"b": "no"}]
    assert index.match_lists(events).to_pylist() == [["l"], [], [], []]
    assert index.match_lists([{}, {"c": 1}]).to_pylist() == [[], []]
    assert types == [pa.string(), pa.string()]
    assert not index.operators.faults


@pytest.mark.parametrize("poison", [[], [7], [0, 399], list(range(0, 400, 2))])
def test_events_that_make_a_batch_fail_are_found(poison):
    calls = []

    def fragile(table):
        values = table["a"].to_pylist()
        calls.append(len(values))
        if not set(poison).isdisjoint(values):
            raise ValueError("poison")
        return pa.array([True] * len(values))

    registry = Registry()
    operator("ok()", reads=["a integer"], batch=True, registry=registry)(fragile)
    index = build({"s": "ok()"}, operators=registry)
    counts = index.count_by_event([{"a": number} for number in range(400)])
    lost = [number for number in range(400) if not counts[number]]
    if len(poison) < 3:
        assert lost == poison
    else:  # too many to look for: the rest is undefined
        assert set(lost) > set(poison)
    assert len(calls) <= 33
    assert sum(fault.n_events for fault in index.operators.faults) == len(lost)


def test_an_impure_batch_operator_is_not_called_again():
    calls = []

    def fails(table):
        calls.append(table.num_rows)
        raise ValueError("no")

    registry = Registry()
    operator("ok()", batch=True, pure=False, registry=registry)(fails)
    build({"s": "ok()"}, operators=registry).match_lists([{"a": n} for n in range(50)])
    assert calls == [50]


def test_equal_events_share_a_failure():
    calls = []

    def fails(event):
        calls.append(event["a"])
        raise ValueError("no")

    registry = Registry()
    operator("f()", reads=["a"], registry=registry)(fails)
    index = build({"s": "f()"}, operators=registry)
    index.match_lists([{"a": 1}] * 20)
    assert calls == [1]
    (fault,) = index.operators.faults
    assert (fault.kind, fault.n_events) == (FaultKind.RAISED, 20)


# ── circuit breakers ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("schedule", ["adaptive", "naive"])
def test_a_call_that_fails_does_not_silence_others_of_its_operator(schedule, monkeypatch):
    def by_name(event, name):
        return {"good": True}[name]

    registry = Registry()
    operator("by_name(string)", registry=registry)(by_name)
    texts = {"g": "by_name('good')"} | {f"b{n}": f"by_name('bad{n}')" for n in range(10)}
    index = build(texts, operators=registry)
    use_schedule(monkeypatch, schedule)
    assert index.match_lists([{"a": n} for n in range(20)]).to_pylist() == [["g"]] * 20
    broken = [fault for fault in index.operators.faults if fault.kind is FaultKind.BREAKER]
    assert len(broken) == 10
    assert all("bad" in fault.message and fault.n_events == 15 for fault in broken)


def test_an_operator_that_hangs_is_not_asked_by_other_calls():
    registry = Registry()
    operator("slow(integer)", timeout=0.01, registry=registry)(hangs)
    index = build({f"s{n}": f"slow({n})" for n in range(8)}, operators=registry)
    index.operators.limits = OperatorLimits(faults_in_a_row=3, pause=3600, abandoned_calls=100)
    RELEASE.clear()
    try:
        assert index.match({"a": 1}) == []
    finally:
        RELEASE.set()
    kinds = [str(fault.kind) for fault in index.operators.faults]
    assert kinds == ["timeout"] * 3 + ["breaker"] * 5
    assert index.operators.faults[-1].message == "slow failed too often: not called"


# ── answers ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("returned", "signature", "bindings"),
    [
        ([[1, 2], [3, 4]], "f(?integer, ?integer)", {"x": 1, "y": 2}),
        ([(1, 2)], "f(?integer, ?integer)", {"x": 1, "y": 2}),
        ({4, 3}, "f(?integer)", {"x": 3}),
        ({"x": 1}, "f(?integer)", None),
        ({1: 2}, "f(?integer)", None),
        ([1, 2], "f(?integer, ?integer)", None),
        ([[1]], "f(?integer)", None),
    ],
)
def test_forms_of_answers(returned, signature, bindings):
    registry = Registry()
    operator(signature, registry=registry)(lambda event: returned)
    text = "f(?x, ?y)" if "," in signature else "f(?x)"
    index = build({"s": text}, operators=registry)
    assert index.match_bindings({}) == ({} if bindings is None else {"s": bindings})
    assert len(index.operators.faults) == (bindings is None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("half(?x) AND whole(?x)", 2.0),
        ("whole(?x) AND half(?x)", 2),
        ("exact(?x) AND whole(?x)", Decimal("2.00")),
        ("(whole(?x) AND a = 2) OR (exact(?x) AND half(?x) AND ?x > 1)", 2),
        ("(half(?x) AND a = 2) OR (exact(?x) AND ?x < 1)", 0.5),
    ],
)
def test_a_variable_is_of_the_type_of_its_first_place(text, value):
    """Whichever operator found its value, and whichever were not asked."""
    registry = Registry()
    operator("whole(?integer)", registry=registry)(lambda event: [1, 2])
    operator("half(?double)", registry=registry)(lambda event: [0.5, 2.0])
    operator("exact(?decimal(9,2))", registry=registry)(lambda event: [Decimal("0.5"), 2])
    index = build({"s": text}, operators=registry)
    found = index.match_bindings({"a": 1})["s"]["x"]
    assert (found, type(found), str(found)) == (value, type(value), str(value))


def test_explanations_tell_why_there_is_no_answer():
    shown = str(make_index(raises).explain("bad", {"a": 1}))
    assert "bad()   (no answer: ValueError: no model)" in shown


# ── constants that an operator refuses ──────────────────────────────────────────────────────


def expect_even(number):
    if number % 2:
        raise tamis.InputError(f"{number} is odd", hint="take an even one")


def test_constants_are_checked_when_a_subscription_is_read(tmp_path):
    registry = Registry()
    operator("even(integer, ?integer)", check=expect_even, registry=registry)(
        lambda event, number: number
    )
    texts = {"good": "even(2, ?x)", "bad": "a = 1 AND even(3, ?x)", "plain": "a = 1"}
    index = build(texts, operators=registry)
    assert sorted(index.match({"a": 1})) == ["good", "plain"]
    (reject,) = index.rejects
    assert (reject.subscription_id, reject.code) == ("bad", "bad-argument")
    assert reject.message == "even() rejects it: 3 is odd"
    assert reject.hint == "take an even one"
    assert texts["bad"][slice(*reject.span)] == "even(3, ?x)"
    index.save(tmp_path / "index")
    assert tamis.open(tmp_path / "index", operators=registry).match({}) == ["good"]


def test_checks_of_the_wrong_kind():
    with pytest.raises(tamis.SchemaError, match="its check is called with 2 constants"):
        operator("f(string, integer)", check=expect_even, registry=Registry())(raises)
    with pytest.raises(tamis.SchemaError, match="5 is not a function"):
        operator("f(string)", check=5, registry=Registry())(raises)


def test_checks_are_not_asked_again_when_matching(tmp_path):
    asked = []

    def once(name):
        asked.append(name)
        if len(asked) > 1:
            raise ValueError("again")

    registry = Registry()
    operator("f(string, ?integer)", check=once, registry=registry)(lambda event, name: 1)
    index = build({"s": "f('x', ?n) AND ?n > 0"}, operators=registry)
    assert index.match_bindings({}) == {"s": {"n": 1}}
    assert index.explain("s", {}).matches
    assert asked == ["x"]


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [MuteError, SystemExit, GeneratorExit, BaseException])
def test_errors_of_any_kind_are_contained(error):
    def raises_it(*given):
        raise error

    registry = Registry()
    operator("f()", registry=registry)(raises_it)
    operator("g(string)", check=raises_it, registry=registry)(lambda event, name: True)

    class Odd:
        __iter__ = raises_it

    operator("h(?integer)", registry=registry)(lambda event: Odd())
    index = build({"f": "f()", "g": "g('x')", "h": "h(?x)", "p": "a = 1"}, operators=registry)
    assert [reject.subscription_id for reject in index.rejects] == ["g"]
    assert index.match({"a": 1}) == ["p"]
    assert len(index.operators.faults) == 2


def test_an_answer_is_read_under_the_watch():
    class Slow:
        def __iter__(self):
            RELEASE.wait(HANG_SECONDS)
            return iter([1])

    registry = Registry()
    operator("slow(?integer)", timeout=0.05, registry=registry)(lambda event: Slow())
    index = build({"s": "slow(?x)"}, operators=registry)
    RELEASE.clear()
    try:
        assert index.match({}) == []
    finally:
        RELEASE.set()
    assert index.operators.faults[0].kind is FaultKind.TIMEOUT


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_nan_is_equal_to_itself_in_one_call_and_in_two(schedule, monkeypatch):
    registry = Registry()
    operator("one(?double, ?double)", registry=registry)(lambda event: [(math.nan, float("nan"))])
    operator("two(?double, ?double)", registry=registry)(lambda event: [(-math.nan, 1.0)])
    joined = "one(?x, ?y) AND two(?x, ?z)"
    texts = {"itself": "one(?x, ?x)", "other": "two(?x, ?x)", "joined": joined}
    index = build(texts, operators=registry)
    use_schedule(monkeypatch, schedule)
    assert sorted(index.match({})) == ["itself", "joined"]
    for text in texts.values():
        condition = check(parse(text), index.contents.schema)
        answers = ask(condition, {}, registry).answers
        assert (evaluate(condition, {}, answers=answers) is True) == (text != texts["other"])


# ── budgets ─────────────────────────────────────────────────────────────────────────────────


def test_a_budget_of_calls_names_all_it_leaves_open():
    registry = Registry()
    operator("yes(integer)", registry=registry)(lambda event, number: True)
    index = build({f"s{n}": f"yes({n})" for n in range(8)}, operators=registry)
    index.operators.limits = OperatorLimits(calls_per_event=3)
    found = index.match({})
    (fault,) = index.operators.faults
    assert len(found) == 3
    assert set(fault.subscription_ids) == {f"s{n}" for n in range(8)} - set(found)


def test_a_budget_of_steps_is_each_subscription_s_own():
    registry = Registry()
    operator("few(integer, ?integer)", registry=registry)(lambda event, n: [n, n + 1])
    texts = {f"s{n}": f"few({n}, ?x) AND few({n}, ?y) AND ?x > ?y" for n in range(50)}
    index = build(texts, operators=registry)
    index.operators.limits = OperatorLimits(search_steps=20)
    assert len(index.match({})) == 50
    assert not index.operators.faults


def test_an_index_with_long_constants_opens_again(tmp_path):
    registry = Registry()
    operator("f(string)", registry=registry)(lambda event, text: len(text) == 70_000)
    limits = tamis.Limits(text_length=200_000)
    index = build({"s": f"f('{'x' * 70_000}')"}, limits=limits, operators=registry)
    index.save(tmp_path / "index")
    assert tamis.open(tmp_path / "index", operators=registry).match({}) == ["s"]


def test_a_fault_names_those_that_depend_on_the_call():
    registry = Registry()
    operator("at(string)", reads=["lat"], registry=registry)(lambda event, place: event["lat"] > 1)
    operator("nearby(?integer)", reads=["lat"], registry=registry)(lambda event: event["lat"])
    texts = {"a": "at('x')", "b": "at('x') AND n = 1", "c": "at('y') OR n = 1",
             "d": "nearby(?m) AND ?m > 3", "e": "n = 1 OR at('x')"}  # fmt: skip
    index = build(texts, operators=registry)
    assert sorted(index.match({"n": 1})) == ["c", "e"]
    named = {fault.call: set(fault.subscription_ids) for fault in index.operators.faults}
    assert named == {"at('x')": {"a", "b"}, "nearby(?)": {"d"}}
