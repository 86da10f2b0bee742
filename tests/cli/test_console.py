"""What people see: the status line, and text that cannot steer a terminal."""

from __future__ import annotations

import time

import pytest

from tamis.cli.console import STATUS_EVERY_SECONDS, StatusLine, printable


@pytest.fixture
def status():
    """A status line on a terminal, with its first second behind it."""
    line = StatusLine()
    line.is_terminal = True
    line.latest = 0
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


def test_status_is_silent_at_first_and_where_there_is_no_terminal(capsys):
    early = StatusLine()
    early.is_terminal = True
    early.refresh("read 1")
    piped = StatusLine()
    piped.latest = 0
    piped.refresh("read 1")
    assert capsys.readouterr().err == ""


def test_status_ticks_while_a_call_runs(status, capsys):
    with status.ticking(lambda seconds: f"building: {seconds:.0f} s"):
        time.sleep(3 * STATUS_EVERY_SECONDS)
    shown = capsys.readouterr().err
    assert shown.startswith("\r\x1b[Kbuilding: 0 s")
    assert shown.endswith("\r\x1b[K")


def test_status_ticks_leave_the_line_to_others(status, capsys):
    with status.ticking(lambda seconds: ""):
        time.sleep(2 * STATUS_EVERY_SECONDS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "shown"), [("a\tb\nc", "a b c"), ("\x1b[31m", "�[31m"), ("é", "é"), ("\ud800", "�")]
)
def test_printable(text, shown):
    assert printable(text) == shown
