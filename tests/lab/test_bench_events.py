"""The benchmarks of events run, and draw what they measured."""

from __future__ import annotations

import pytest

from benchmarks import draw_ways, sigma_rules
from benchmarks.bench_ways import STAGES
from benchmarks.measuring import choose_size
from tamis.errors import TamisError
from tests.spark.benches import run_tiny


@pytest.mark.slow
@pytest.mark.parametrize("name", ["single", "json", "logs"])
def test_all_of_it_runs(name, tmp_path):
    shown = run_tiny(f"bench_{name}", tmp_path)
    assert ("'value'" in shown) == (name != "logs" or sigma_rules.find_data())
    assert "'met': False" not in shown  # a target is not judged at this size


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ways", "spark_json"])
def test_all_of_it_runs_on_spark(name, tmp_path):
    shown = run_tiny(f"bench_{name}", tmp_path)
    assert "Spark" in shown
    assert "'met': False" not in shown


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small"):
        choose_size({"tiny": 1, "small": 2})


def test_ways_are_drawn(tmp_path):
    rows = [
        {"events": events, "way": way, **dict.fromkeys(STAGES, 1.0), "total": 5.0}
        for events in ("short", "long")
        for way in ("a buffer", "one <event>")
    ]
    path = tmp_path / "ways.svg"
    draw_ways.draw(rows, path)
    drawn = path.read_text(encoding="utf-8")
    for text in ("short", "long", "a buffer", "one &lt;event&gt;", *STAGES):
        assert text in drawn
    draw_ways.draw(rows, path)
    assert path.read_text(encoding="utf-8") == drawn
