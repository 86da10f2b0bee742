"""Cold start: said once, and then all is compiled."""

from __future__ import annotations

import pytest

from tamis.kernels import cold
from tamis.match import warmup
from tests.cli.shell import run_process


def test_warm_after_warming_up():
    warmup.warm_up()
    assert not cold.cold_packages(cold.MATCHING)
    collected = []
    assert not cold.announce(collected.append)
    assert not cold.announce(collected.append, cold.SCHEDULING)
    assert collected == []


def test_what_is_said_when_cold(monkeypatch):
    monkeypatch.setattr(cold, "cold_packages", lambda packages: [[object()] * 20, [object()] * 10])
    collected = []
    assert cold.announce(collected.append)
    assert collected == ["compiling kernels, about 25 s, once on this machine"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_library_speaks_on_a_terminal_only(monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(cold, "cold_packages", lambda packages: [[object()]])
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    assert cold.announce() is is_terminal
    said = "tamis: compiling kernels, about 5 s, once on this machine\n"
    assert capsys.readouterr().err == (said if is_terminal else "")


@pytest.mark.slow
def test_said_once_on_a_machine(tmp_path):
    source = tmp_path / "s.jsonl"
    source.write_text('{"id": "s", "expression": "a = 1"}\n')
    cache = str(tmp_path / "cache")
    first = run_process("build", source, "-o", tmp_path / "i", NUMBA_CACHE_DIR=cache)
    assert first.stderr.startswith(b"note: compiling kernels, about ")
    for _ in range(2):
        again = run_process("match", tmp_path / "i", stdin=b'{"a": 1}\n', NUMBA_CACHE_DIR=cache)
        assert (again.stdout, again.stderr) == (b'{"event": 1, "matches": ["s"]}\n', b"")
