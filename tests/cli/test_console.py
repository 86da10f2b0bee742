"""What people see: the status line, and text that cannot steer a terminal."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

from tamis.cli import console
from tamis.cli.console import (
    STATUS_AFTER_SECONDS,
    STATUS_EVERY_SECONDS,
    StatusLine,
    noting_warnings,
    printable,
)
from tamis.errors import TamisWarning
from tests.waiting import wait_until


@pytest.fixture
def clock(monkeypatch):
    """The time that status lines see; it stands still."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def status(clock):
    """A status line on a terminal, with its first second behind it."""
    line = StatusLine()
    line.is_terminal = True
    clock.now += STATUS_AFTER_SECONDS
    return line


def test_status_counts_what_is_read(status, capsys):
    assert list(status.watch_reading("abc")) == ["a", "b", "c"]
    assert capsys.readouterr().err == "\r\x1b[Kread 1"
    assert status.total == 3


def test_status_draws_a_bar_once_the_total_is_known(status, capsys):
    status.total = 2
    assert list(status.watch_checking("ab")) == ["a", "b"]
    assert capsys.readouterr().err == "\r\x1b[Kchecked [############            ] 1 of 2"


def test_status_makes_room(status, capsys):
    status.refresh("read 1")
    status.clear()
    status.clear()
    assert capsys.readouterr().err == "\r\x1b[Kread 1\r\x1b[K"


def test_status_is_silent_at_first_and_where_there_is_no_terminal(clock, capsys):
    early = StatusLine()
    early.is_terminal = True
    early.refresh("read 1")
    piped = StatusLine()
    clock.now += 10 * STATUS_AFTER_SECONDS
    piped.refresh("read 1")
    assert capsys.readouterr().err == ""


def test_status_is_drawn_again_after_a_while(status, clock, capsys):
    for count in range(4):
        status.refresh(f"read {count}")
        clock.now += 0.6 * STATUS_EVERY_SECONDS
    assert capsys.readouterr().err == "\r\x1b[Kread 0\r\x1b[Kread 2"


def test_status_ticks_while_a_call_runs(status, clock, capsys):
    collected = []

    def describe(seconds):
        collected.append(f"building: {seconds:.0f} s")
        return collected[-1]

    with status.ticking(describe):
        wait_until(lambda: collected, "the line ticks")
        clock.now += 7
        wait_until(lambda: collected[-1] == "building: 7 s", "it ticks again")
    assert capsys.readouterr().err == "\r\x1b[Kbuilding: 0 s\r\x1b[Kbuilding: 7 s\r\x1b[K"


def test_status_ticks_leave_the_line_to_others(status, capsys):
    ticks = []
    with status.ticking(lambda seconds: ticks.append(seconds) or ""):
        wait_until(lambda: len(ticks) > 1, "it has ticked twice")
    assert capsys.readouterr().err == ""


def test_a_log_gets_a_line_at_each_interval(capsys):
    line = StatusLine(log_every=0.001)
    line.is_terminal = False
    ticks = []
    with line.ticking(lambda seconds: f"tick {ticks.append(seconds) or len(ticks)}"):
        wait_until(lambda: len(ticks) > 2, "it has ticked three times")
    shown = capsys.readouterr().err.splitlines()
    assert shown == [f"progress: tick {number}" for number in range(1, len(ticks) + 1)]


def test_a_log_gets_nothing_from_a_call_that_ends_before(capsys):
    line = StatusLine(log_every=3600)
    line.is_terminal = False
    with line.ticking(lambda seconds: "too early"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "shown"), [("a\tb\nc", "a b c"), ("\x1b[31m", "�[31m"), ("é", "é"), ("\ud800", "�")]
)
def test_printable(text, shown):
    assert printable(text) == shown


@pytest.mark.filterwarnings("always")
def test_our_warnings_are_remarks_and_others_are_as_python_shows_them(capsys):
    with noting_warnings():
        warnings.warn("v00000002 answers", TamisWarning, stacklevel=1)
        assert capsys.readouterr().err == "note: v00000002 answers\n"
        with pytest.warns(UserWarning, match="theirs"):
            warnings.warn("theirs", UserWarning, stacklevel=1)
