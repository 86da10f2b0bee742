"""The benchmark runner finds, runs, shows and keeps."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import __main__ as runner
from benchmarks.targets import Target, at_size


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """One benchmark, "sieve", and results kept aside."""
    rows = [
        {"engine": "batch", "µs": 43.21, "n": np.int64(100_000)},
        {"engine": "single", "µs": np.float32(1250.4), "exact": True},
    ]
    module = SimpleNamespace(TITLE="How fast?", run=lambda: rows)
    monkeypatch.setattr(runner, "find_benchmarks", lambda: ["sieve"])
    monkeypatch.setattr(runner, "load_benchmark", {"sieve": module}.__getitem__)
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "results")
    return rows


def test_run_shows_a_table_and_keeps_the_rows(bench, tmp_path, capsys):
    assert runner.main(["sieve"]) == 0
    shown = capsys.readouterr().out
    for cell in ("How fast?", "43.21", "1,250", "100,000", "yes"):
        assert cell in shown
    kept = json.loads((tmp_path / "results" / "sieve.json").read_text(encoding="utf-8"))
    assert kept["rows"][0] == bench[0]


@pytest.mark.usefixtures("bench")
def test_list_names_and_titles(capsys):
    assert runner.main(["--list"]) == 0
    assert capsys.readouterr().out.split() == ["sieve", "How", "fast?"]


@pytest.mark.usefixtures("bench")
def test_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        runner.main(["seive"])
    assert stopped.value.code == 2
    assert "unknown benchmark 'seive'; known are: sieve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "judged"),
    [
        ("small", {"target": "≤ 1.4 × at full", "met": None}),
        ("full", {"target": "≤ 1.4 ×", "met": False}),
    ],
)
def test_targets_are_judged_at_their_size_only(monkeypatch, size, judged):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", size)
    slow = {"value": 7.0, "ratio": 2.0}
    target = Target(1.4, "ratio")
    assert at_size("full", {"match": target})["match"].judge(slow) == judged
    assert target.judge(slow) == {"target": "≤ 1.4 ×", "met": False}
    assert Target(7, is_least=True).judge(slow) == {"target": "≥ 7", "met": True}


def test_every_benchmark_has_a_title_and_a_run():
    for name in runner.find_benchmarks():
        module = runner.load_benchmark(name)
        assert module.TITLE
        assert callable(module.run)
