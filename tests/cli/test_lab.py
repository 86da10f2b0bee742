"""`tamis lab`: list, run, run on, report; and what is refused."""

from __future__ import annotations

import pytest

from tamis.lab.experiments import run as run_module
from tamis.lab.experiments.catalogue import EXPERIMENTS
from tests.cli.shell import run

QUICK = "fontoura-figure-7"


def test_list():
    result = run("lab", "list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == list(EXPERIMENTS)


def test_run_and_report(tmp_path):
    options = ["--scale", "tiny", "--seed", "3", "--out", tmp_path]
    result = run("lab", "run", QUICK, *options)
    assert result.exit_code == 0, result.output
    assert f"4 settings measured; results in {tmp_path / 'tiny-3'}" in result.output
    assert "1 of 4: fontoura-dnf-size: depth 1, most 1000" in result.output
    again = run("lab", "run", QUICK, *options)
    assert "0 settings measured, 4 were measured before" in again.output
    assert "4 settings measured;" in run("lab", "run", QUICK, *options, "--again").output
    report = run("lab", "report", *options, "--markdown", tmp_path / "summary.md")
    assert report.exit_code == 0, report.output
    assert f"report.html: 1 of {len(EXPERIMENTS)} experiments" in report.output
    assert "<svg" in (tmp_path / "tiny-3" / "report.html").read_text()
    assert QUICK in (tmp_path / "summary.md").read_text()


def test_generate(tmp_path):
    sizes = ["--expressions", "20", "--events", "5", "--set", "depth=2", "--set", "seed=4"]
    result = run("lab", "generate", "abe_gen", tmp_path / "out", *sizes)
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "out" / "subscriptions.jsonl").read_text().splitlines()
    assert len(lines) == 20
    assert str(tmp_path / "out" / "events.parquet") in result.output.replace("\n", " ").split()
    again = run("lab", "generate", "abe_gen", tmp_path / "out", *sizes)
    assert (again.exit_code, "exists already" in again.output) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["generate", "abc", "out"], 1, 'no workload "abc" in the lab; allowed: abe_gen, '),
        (["generate", "abe_gen", "out", "--set", "depth"], 1, '"depth" is not a parameter'),
        (["generate", "abe_gen"], 2, "Missing argument"),
        (["run", "figure-7"], 1, 'no experiment "figure-7" in the lab; allowed: all, fontoura-'),
        (["run", QUICK, "--scale", "huge"], 2, "'huge' is not one of 'tiny', 'small', 'full'"),
        (["run", "liu-figure-3"], 1, 'did you mean "liu-figure-'),
        (["generate", "abe_gen", "out", "--set", "depth=1.5"], 1, "depth is 1.5; allowed: a whole"),
        (["generate", "abe_gen", "out", "--set", "seed=-1"], 1, "seed is -1; allowed: 0 to"),
        (["generate", "in_sets", "out", "--set", "n_sets=3"], 1, "n_sets is 3; allowed: whole num"),
        (["generate", "abe_gen", "out", "--set", "depth=40"], 1, "allowed: 11 levels"),
        (["run", QUICK, "--seed", "-1"], 2, "-1 is not in the range 0<=x<=9223372036854775807"),
        (["run"], 2, "Missing argument"),
        (["report", "--out", "nowhere"], 1, "no results in nowhere"),
    ],
)
def test_refused(arguments, code, expected):
    result = run("lab", *arguments)
    assert (result.exit_code, expected in result.output) == (code, True), result.output


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(_steps, _store):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "measure", stop)
    result = run("lab", "run", QUICK, "--scale", "tiny", "--out", tmp_path)
    assert result.exit_code == 130
    assert f"interrupted; finished settings are in {tmp_path / 'tiny-1'}" in result.output


def test_a_damaged_file(tmp_path):
    options = ["--scale", "tiny", "--out", tmp_path]
    run("lab", "run", QUICK, *options)
    path = tmp_path / "tiny-1" / "fontoura-dnf-size" / "depth=2,most=1000.json"
    path.write_bytes(path.read_bytes()[:300])
    for command in (["run", QUICK], ["report"]):
        result = run("lab", *command, *options)
        assert result.exit_code == 1
        assert "depth=2,most=1000.json is not a valid result of an experiment" in result.output
    path.write_bytes(path.with_name("depth=1,most=1000.json").read_bytes())
    other = run("lab", "report", *options)
    assert "its setting is {'depth': 1, 'most': 1000}, not {'depth': 2" in other.output
    path.unlink()
    assert (
        "1 settings measured, 3 were measured before" in run("lab", "run", QUICK, *options).output
    )


def test_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "available_bytes", lambda: 1_000)
    result = run("lab", "run", QUICK, "--out", tmp_path)
    assert result.exit_code == 1
    assert "fontoura-dnf-size: depth 1, most 30000 needs about 0.1 GB of memory" in result.output
    assert not list(tmp_path.iterdir())


def test_a_report_that_cannot_be_written(tmp_path):
    options = ["--scale", "tiny", "--out", tmp_path]
    run("lab", "run", QUICK, *options)
    result = run("lab", "report", *options, "--html", tmp_path / "no" / "report.html")
    assert result.exit_code == 1
    assert "cannot write" in result.output
