"""No test depends on how fast the machine is: limits are `HANG_SECONDS`, which only ends hangs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS, wait_until

TESTS = Path(__file__).parent
# Calls that give up after a time, by the name they are called by.
WAITING = {"call", "check_call", "check_output", "communicate", "flush", "get", "join"}
WAITING |= {"list_topics", "result", "run", "run_process", "wait"}


def fixed_limits(source: str) -> list[str]:
    """Calls that wait for a number of seconds; parts of a second are pauses, not limits."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            limits = [own.value for own in node.keywords if own.arg == "timeout"]
            limits += node.args if name in ("flush", "join", "result", "wait") else []
            if name in WAITING and any(is_seconds(limit) for limit in limits):
                found.append(f"line {node.lineno}: {ast.unparse(node)[:80]}")
    return found


def is_seconds(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value > 1


@pytest.mark.parametrize(
    "path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS))
)
def test_no_limit_of_its_own(path):
    found = fixed_limits(path.read_text(encoding="utf-8"))
    assert not found, "wait for what has to happen, at most `tests.waiting.HANG_SECONDS`"


@pytest.mark.parametrize(
    ("source", "n_found"),
    [
        ("subprocess.run(command, timeout=120)", 1),
        ("process.wait(60)", 1),
        ("thread.join(30)", 1),
        ("thread.join(HANG_SECONDS)", 0),
        ("is_over.wait(0.3)", 0),
        ("', '.join(names)", 0),
        ("operator('f()', timeout=20)", 0),
    ],
)
def test_limits_are_seen(source, n_found):
    assert len(fixed_limits(source)) == n_found


def test_what_never_happens_is_named(monkeypatch):
    monkeypatch.setattr("tests.waiting.HANG_SECONDS", 0)
    with pytest.raises(AssertionError, match="still waiting until pigs fly"):
        wait_until(lambda: False, "pigs fly")
    wait_until(lambda: True, "it is so")


def test_a_hang_fails_one_test_before_it_ends_the_run(pytestconfig):
    assert float(pytestconfig.getini("faulthandler_timeout")) > HANG_SECONDS
