"""Operators that fail: their predicates are undefined, all is reported, nobody else is affected."""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import subprocess
import sys
import threading
from random import Random

import pyarrow as pa
import pytest

import tamis
from tamis.match.build import build
from tamis.operators.caller import ABSENT, BatchAnswers, Failure, OperatorLimits
from tamis.operators.faults import Breaker, FaultKind
from tamis.operators.registry import Registry, operator
from tamis.operators.scanner import Scanner
from tests.operators.toys import Toys
from tests.waiting import HANG_SECONDS, wait_until

EVENTS = [{"a": number} for number in range(20)]


def make_index(function, signature="bad()", subscriptions=None, **options):
    """An index with one operator that misbehaves and one that does not."""
    registry = Registry()
    operator(signature, registry=registry, **options)(function)
    operator("good()", registry=registry)(lambda event: event["a"] % 2 == 0)
    texts = subscriptions or {
        "bad": "bad()",
        "not": "NOT bad()",
        "or": "bad() OR good()",
        "good": "good()",
        "plain": "a >= 10",
    }
    return build(texts, "a BIGINT", operators=registry)


def matches(index):
    result = index.match_lists(EVENTS).to_pylist()
    return {name: [row for row, names in enumerate(result) if name in names] for name in IDS}


IDS = ("bad", "not", "or", "good", "plain")
EVEN = list(range(0, 20, 2))
EXPECTED = {"bad": [], "not": [], "or": EVEN, "good": EVEN, "plain": list(range(10, 20))}


def raises(event, *constants):
    raise ValueError("no model")


RELEASE = threading.Event()


def hangs(event, *constants):
    RELEASE.wait(HANG_SECONDS)


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        (raises, FaultKind.RAISED, "ValueError: no model"),
        (hangs, FaultKind.TIMEOUT, "no answer within 0.02 seconds"),
        (lambda event: "yes", FaultKind.WRONG_TYPE, "returned 'yes'; allowed: True, False or None"),
        (lambda event: 1, FaultKind.WRONG_TYPE, "returned 1"),
    ],
)
def test_a_fault_is_undefined_and_reported(function, kind, said):
    index = make_index(function, timeout=0.02 if function is hangs else None)
    index.operators.limits = OperatorLimits(faults_in_a_row=3, pause=3600)
    RELEASE.clear()
    try:
        assert matches(index) == EXPECTED
    finally:
        RELEASE.set()
    first, broken = index.operators.faults
    assert (first.call, first.kind, first.n_events) == ("bad()", kind, 3)
    assert said in first.message
    assert set(first.subscription_ids) >= {"bad", "not"}
    assert "good" not in first.subscription_ids
    # After three faults in a row it is not called any more.
    assert (broken.kind, broken.n_events) == (FaultKind.BREAKER, 17)
    assert first.to_dict()["kind"] == str(kind)
    index.operators.take_faults()
    assert index.operators.faults == []


def test_ten_percent_of_failures():
    toys = Toys()
    rng = Random(3)
    events = [
        {"id": number, "answers": {"yes": "raise" if rng.random() < 0.1 else True}, "a": number}
        for number in range(200)
    ]
    index = build(
        {"yes": "yes()", "no": "NOT yes()", "a": "a < 50"}, toys.schema, operators=toys.registry
    )
    result = index.match_lists(events).to_pylist()
    good = [row for row, event in enumerate(events) if event["answers"]["yes"] is True]
    assert [row for row, names in enumerate(result) if "yes" in names] == good
    assert not [row for row, names in enumerate(result) if "no" in names]
    assert [row for row, names in enumerate(result) if "a" in names] == list(range(50))
    (fault,) = index.operators.faults
    assert fault.n_events == len(events) - len(good) > 5


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("many", "wrong value"),
        ([1, None], "None in it"),
        ((1, 2), "a binding has 1 values"),
        (["x"], "wrong value"),
    ],
)
def test_wrong_bindings(returned, said):
    texts = {"one": "one(?x)", "plain": "a >= 10"}
    index = make_index(lambda event: returned, "one(?integer)", texts)
    assert index.match({"a": 12}) == ["plain"]
    (fault,) = index.operators.faults
    assert fault.kind is FaultKind.WRONG_TYPE
    assert said in fault.message


def test_budgets():
    texts = {"all": "one(?x) AND good()", "plain": "a >= 10"}
    index = make_index(lambda event: iter(range(1_000_000)), "one(?integer)", texts)
    index.operators.limits = OperatorLimits(bindings_per_call=50)
    assert index.match({"a": 12}) == ["plain"]
    assert {fault.message for fault in index.operators.faults} == {"more than 50 bindings"}
    index = make_index(lambda event: [1, 2], "one(?integer)", texts)
    index.operators.limits = OperatorLimits(calls_per_event=1)
    assert index.match({"a": 12}) == ["plain"]
    (fault,) = index.operators.faults
    assert (fault.message, list(fault.subscription_ids)) == ("more than 1 calls", ["all"])
    texts = {"pairs": "one(?x) AND one(?y) AND one(?z) AND ?x + ?y = ?z + 1000", "plain": "a >= 10"}
    index = make_index(lambda event: list(range(100)), "one(?integer)", texts)
    index.operators.limits = OperatorLimits(search_steps=500)
    assert index.match({"a": 12}) == ["plain"]
    (fault,) = index.operators.faults
    assert (fault.kind, list(fault.subscription_ids)) == (FaultKind.BUDGET, ["pairs"])


def test_batch_operators_that_fail():
    def short(table):
        return pa.array([True])

    def raises_on_some(table):
        raise RuntimeError("out of memory")

    for function, kind in (
        (short, FaultKind.WRONG_TYPE),
        (raises_on_some, FaultKind.RAISED),
        (lambda table: [True] * table.num_rows, FaultKind.WRONG_TYPE),
    ):
        index = make_index(function, batch=True)
        assert matches(index) == EXPECTED
        (fault,) = index.operators.faults
        assert (fault.kind, fault.n_events) == (kind, 20)


def test_the_breaker_tries_again():
    now = [0.0]
    breaker = Breaker(2, 10.0, clock=lambda: now[0])
    breaker.count_call(is_fault=True)
    assert not breaker.is_open
    breaker.count_call(is_fault=True)
    assert breaker.is_open
    now[0] = 11.0
    assert not breaker.is_open
    breaker.count_call(is_fault=True)
    assert breaker.is_open
    now[0] = 22.0
    breaker.count_call(is_fault=False)
    assert not breaker.is_open


def test_an_operator_that_is_missing_is_named(tmp_path):
    index = make_index(raises)
    index.save(tmp_path / "index")
    with pytest.raises(tamis.MissingOperatorError, match=r"not registered: bad\(\), good\(\)"):
        tamis.open(tmp_path / "index", operators=Registry())
    other = Registry()
    operator("bad(string)", registry=other)(raises)
    with pytest.raises(tamis.MissingOperatorError, match=r"registered is bad\(string\)"):
        tamis.open(tmp_path / "index", operators=other)
    inspected = tamis.open(tmp_path / "index", operators=None)
    assert len(inspected) == 5
    assert inspected.operators.calls == ["bad()", "good()"]
    with pytest.raises(tamis.MissingOperatorError, match="for inspection only"):
        inspected.match({"a": 1})


def test_registering():
    registry = Registry()
    operator("f(string)", registry=registry)(raises)
    operator("f(string)", registry=registry)(raises)  # the same function, loaded again
    for function in (lambda event, text: True, lambda event, text: False):
        with pytest.raises(tamis.SchemaError, match="registered already"):
            operator("f(string)", registry=registry)(function)
    one = Registry()
    for attribute in ("title", "title", "body"):
        scanner = Scanner(attribute)
        if attribute == "title":
            scanner.register("has(string)", registry=one)
    with pytest.raises(tamis.SchemaError, match="registered already"):
        scanner.register("has(string)", registry=one)
    with pytest.raises(tamis.SchemaError, match="registered already"):
        operator("F(string)", registry=registry)(hangs)
    for options in ({"cost": 0}, {"timeout": -1}):
        with pytest.raises(tamis.SchemaError, match="allowed: seconds"):
            operator("g()", registry=registry, **options)
    with pytest.raises(tamis.InputError, match="cannot be imported"):
        registry.load("no_such_module_anywhere")
    with pytest.raises(tamis.InputError, match="is not an operator"):
        registry.load(f"{__name__}:raises_nothing")
    assert registry.get("F").signature.name == "f"


def test_pure_operators_are_asked_once_for_equal_attributes():
    asked = []

    def good(event):
        asked.append(event["a"])
        return event["a"] == 1

    registry = Registry()
    operator("same()", reads=["a"], registry=registry)(good)
    index = build({"s": "same()"}, operators=registry)
    events = [{"a": number % 3, "b": number} for number in range(30)]
    assert index.count_by_event(events).tolist() == [int(number % 3 == 1) for number in range(30)]
    assert sorted(asked) == [0, 1, 2]


def test_batch_operators_are_called_once_per_batch():
    sizes = []

    def label(table, wanted):
        sizes.append(table.num_rows)
        return pa.array([name == wanted for name in table["b"].to_pylist()])

    registry = Registry()
    operator("label(string)", reads=["b"], batch=True, pure=False, registry=registry)(label)
    index = build({"x": "a = 1 AND label('x')", "y": "a = 2 AND label('y')"}, operators=registry)
    events = [{"a": number % 3, "b": "xyz"[number % 2]} for number in range(60)]
    assert int(index.count_by_subscription(events).sum()) == 20
    # Once for each call, with the events whose cheap part holds.
    assert sizes == [20, 20]


def test_what_was_not_asked_is_asked_again():
    """A call that a breaker held back has no answer to remember; one that failed has."""
    cache = BatchAnswers(make_index(raises).operators)
    for kind in FaultKind:
        failure = Failure(kind, "why")
        cache.put((0, str(kind)), failure)
        known = cache.get((0, str(kind)))
        assert known is (ABSENT if kind is FaultKind.BREAKER else failure)
    cache.put(None, Failure(FaultKind.RAISED, "nobody knows of whom"))
    assert cache.get(None) is ABSENT


@pytest.mark.parametrize("n_equal", [1, 2, 7])
def test_pure_batch_operators_are_asked_once_for_equal_attributes(n_equal):
    asked = []

    def label(table, wanted):
        asked.append(table["b"].to_pylist())
        return pa.array([name == wanted for name in table["b"].to_pylist()])

    registry = Registry()
    operator("label(string)", reads=["b"], batch=True, registry=registry)(label)
    index = build({"x": "label('x')"}, operators=registry)
    events = [{"a": number, "b": "xyz"[number % 3]} for number in range(3 * n_equal)]
    assert index.count_by_event(events).tolist() == [1, 0, 0] * n_equal
    assert asked == [["x", "y", "z"]], "of equal events the first is asked about, in order"


# ── calls that are given up ─────────────────────────────────────────────────────────────────


def test_calls_that_still_run_are_counted_and_limited():
    asked = []

    def hangs_at_first(event):
        asked.append(event)
        hangs(event)

    index = make_index(hangs_at_first, timeout=0.01)
    index.operators.limits = OperatorLimits(faults_in_a_row=1000, abandoned_calls=2)
    RELEASE.clear()
    try:
        assert matches(index) == EXPECTED
        assert index.operators.abandoned == {"bad": 2}
        assert len(asked) == 2
        timeout, breaker = index.operators.faults
        assert (timeout.kind, timeout.n_events) == (FaultKind.TIMEOUT, 2)
        assert (breaker.kind, breaker.n_events) == (FaultKind.BREAKER, 18)
        assert (
            breaker.message
            == "2 calls of bad timed out and still run; it is not called until they end"
        )
    finally:
        RELEASE.set()
    wait_until(lambda: not index.operators.abandoned, "the calls have ended")
    assert matches(index) == EXPECTED  # hangs no longer, and returns None: it cannot say
    assert len(asked) > 2, "it is called again"


def test_a_call_that_hangs_does_not_keep_the_process():
    program = """
import threading, tamis
@tamis.operator("hangs()", timeout=0.05)
def hangs(event, *constants):
    threading.Event().wait()
index = tamis.build({"h": "hangs()", "p": "a = 1"}, "a INT")
print(index.match({"a": 1}), index.operators.abandoned)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "['p'] {'hangs': 1}\n", "")


def test_an_answer_without_an_end_is_too_many():
    texts = {"many": "many(?x)", "plain": "a >= 10"}
    index = make_index(lambda event: itertools.repeat(1), "many(?integer)", texts)
    index.operators.limits = OperatorLimits(bindings_per_call=10)
    assert index.match({"a": 12}) == ["plain"]
    (fault,) = index.operators.faults
    assert (fault.kind, fault.message) == (FaultKind.BUDGET, "more than 10 bindings")


def test_what_is_no_exception_of_pythons_is_a_fault_too():
    def cancelled(event):
        raise asyncio.CancelledError("gone")

    index = make_index(cancelled)
    assert matches(index) == EXPECTED
    assert index.operators.faults[0].message == "CancelledError: gone"


# ── refused at once ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("signature", "function", "said"),
    [
        ("f()", 5, "operator f(): 5 is not a function"),
        ("f()", lambda: True, "is called with the event alone: too many"),
        ("f(string)", lambda event: True, "is called with the event and 1 constant: too many"),
        ("f(?integer)", lambda event, x: True, "the event alone: missing a required argument: 'x'"),
    ],
)
def test_a_function_that_cannot_be_called_so(signature, function, said):
    with pytest.raises(tamis.SchemaError, match=re.escape(said)):
        operator(signature, registry=Registry())(function)


@pytest.mark.parametrize("what", ["cost", "timeout"])
@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "1", True])
def test_seconds_that_are_none(what, seconds):
    with pytest.raises(tamis.SchemaError, match=f"{what} is {seconds!r}; allowed: seconds above 0"):
        operator("f()", registry=Registry(), **{what: seconds})


def test_flags_that_are_none():
    with pytest.raises(tamis.SchemaError, match="pure is 'no'; allowed: True, False"):
        operator("f()", registry=Registry(), pure="no")


@pytest.mark.parametrize(
    "wrong", [{"calls_per_event": 0}, {"search_steps": 1.5}, {"pause": -1}, {"pause": "1"}]
)
def test_limits_that_are_none(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(tamis.InputError, match=f"operator limit {name} is {value!r}; allowed"):
        OperatorLimits(**wrong)


def test_settings_of_the_wrong_kind():
    index = make_index(raises)
    with pytest.raises(tamis.InputError, match="limits is 5; allowed: an OperatorLimits"):
        index.operators.limits = 5
    with pytest.raises(tamis.InputError, match="operators has 5; allowed: names of modules"):
        build({}, operators=[5])


def test_a_module_that_fails_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "failing_operators.py").write_text("raise ValueError('no licence')")
    monkeypatch.syspath_prepend(tmp_path)
    said = 'operators "failing_operators" cannot be imported: ValueError: no licence'
    with pytest.raises(tamis.InputError, match=said):
        build({}, operators="failing_operators")
