"""Experiments: planned, refused, measured once, resumed; answers compared before they are timed."""

from __future__ import annotations

import platform
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.lab.experiments.catalogue import EXPERIMENTS, find_experiments
from tamis.lab.experiments.experiment import (
    ALGORITHM,
    MICROSECONDS,
    RATIO,
    Chart,
    Experiment,
    Row,
    Scale,
    Setting,
    Sweep,
    add_ratios,
    series,
)
from tamis.lab.experiments.markdown import write_markdown
from tamis.lab.experiments.measure import DisagreementError, compare
from tamis.lab.experiments.page import write_page
from tamis.lab.experiments.report import collect
from tamis.lab.experiments.run import measure, plan
from tamis.lab.experiments.store import Store
from tamis.lab.forest import Rows


def make_sweep(measured: list[Setting], n_bytes: int = 0) -> Sweep:
    def run(setting: Setting, seed: int) -> list[Row]:
        measured.append(setting)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return [{ALGORITHM: "A", MICROSECONDS: 1.0, "seed": seed}]

    return Sweep("of-nothing", lambda scale: [{"n": n} for n in (1, 2, 3)], run, lambda _: n_bytes)


def make_experiment(sweep: Sweep) -> Experiment:
    return Experiment("one", "none", "Nothing", sweep, ("n", ALGORITHM), lambda rows: ["Nothing."])


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    measured: list[Setting] = []
    experiment = make_experiment(make_sweep(measured))
    store = Store(tmp_path, Scale.TINY, seed=7)
    steps = plan([experiment, experiment], store)
    assert [str(step) for step in steps] == [f"of-nothing: n {n}" for n in (1, 2, 3)]
    with pytest.raises(KeyboardInterrupt):
        list(measure(steps, store))
    steps = plan([experiment], store)
    assert [step.setting["n"] for step in steps] == [2, 3]
    assert list(measure(steps, store)) == steps
    assert plan([experiment], store) == []
    assert len(plan([experiment], store, again=True)) == 3
    assert len(plan([experiment], Store(tmp_path, Scale.TINY, seed=8))) == 3


def test_results_say_where_they_are_from(tmp_path):
    experiment = make_experiment(make_sweep([]))
    store = Store(tmp_path, Scale.TINY, seed=7)
    next(measure(plan([experiment], store), store))
    (result,) = store.load(experiment.sweep)
    assert result["rows"] == [{"n": 1, ALGORITHM: "A", MICROSECONDS: 1.0, "seed": 7}]
    assert (result["seed"], result["scale"], result["setting"]) == (7, "tiny", {"n": 1})
    machine = {"processor", "cores", "memory_gb", "caches", "system", "python"}
    assert set(result["machine"]) == machine | {"tamis", "numba", "numpy"}
    text = store.path_of(experiment.sweep, {"n": 1}).read_text()
    assert not any(name in text for name in (platform.node(), str(tmp_path), str(Path.home())))
    assert result["machine"]["cores"] > 0
    assert "commit" in result


def test_a_file_that_is_no_result(tmp_path):
    experiment = make_experiment(make_sweep([]))
    store = Store(tmp_path, Scale.TINY, seed=7)
    path = store.path_of(experiment.sweep, {"n": 1})
    path.parent.mkdir(parents=True)
    for text in ("{", "", "[]", "7", "null", "{}", '{"rows": [1]}', "\0"):
        path.write_text(text)
        message = r"(?s)n=1\.json is not a valid result of an experiment: .*hint: delete it and run"
        with pytest.raises(InputError, match=message):
            store.load(experiment.sweep)
        with pytest.raises(InputError, match=message):
            plan([experiment], store)
    assert len(plan([experiment], store, again=True)) == 3


def test_a_store_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    measured: list[Setting] = []
    with pytest.raises(InputError, match=r"cannot write into .*file.tiny-7: Not a directory"):
        plan([make_experiment(make_sweep(measured))], Store(tmp_path / "file", Scale.TINY, 7))
    assert measured == []


def test_what_does_not_fit_is_refused_before_work_starts(tmp_path):
    measured: list[Setting] = []
    experiment = make_experiment(make_sweep(measured, n_bytes=2**60))
    with pytest.raises(InputError, match=r"n 1 needs about 1073741824\.0 GB of memory; there are"):
        plan([experiment], Store(tmp_path, Scale.TINY, seed=7))
    assert measured == []


def test_unknown_experiments_are_refused():
    assert find_experiments(["all"]) == list(EXPERIMENTS.values())
    assert [one.name for one in find_experiments(["fontoura-table-2"])] == ["fontoura-table-2"]
    with pytest.raises(InputError, match=r'no experiment "table-2".*allowed: all, .*fontoura-tab'):
        find_experiments(["table-2"])


def test_ratios_are_against_the_slowest_that_is_everywhere():
    took = {("A", 1): 8.0, ("A", 2): 10.0, ("B", 1): 2.0, ("B", 2): 5.0, ("C", 1): 99.0}
    rows = [{ALGORITHM: name, "n": n, MICROSECONDS: us} for (name, n), us in took.items()]
    rows.append({ALGORITHM: "C", "n": 2, "ran out": "of all"})
    with_ratios = add_ratios(rows, "n")
    assert series(with_ratios, "n", RATIO, "A") == {1: 1, 2: 1}
    assert series(with_ratios, "n", RATIO, "B") == {1: 4, 2: 2}
    assert RATIO not in with_ratios[-1]


def test_wrong_answers_are_not_timed():
    right = Rows(np.array([0, 1, 3]), np.array([4, 5, 6], dtype=np.int32))
    wrong = Rows(np.array([0, 1, 3]), np.array([4, 5, 7], dtype=np.int32))
    compare(right, right, "A")
    with pytest.raises(DisagreementError, match=r"A and Tamis, batch differ for event 1 on 2"):
        compare(wrong, right, "A")


# ── all experiments ─────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("lab"), Scale.TINY, seed=1)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs(name, store):
    (experiment,) = find_experiments([name])
    for _ in measure(plan([experiment], store), store):
        pass
    results = store.load(experiment.sweep)
    assert len(results) == len(experiment.sweep.settings(Scale.TINY))
    rows = [row for result in results for row in result["rows"]]
    shown = [row for row in rows if experiment.shows(row)]
    assert any(row[ALGORITHM] == experiment.ours for row in rows)
    computed = {RATIO, "ran out", "run out"}
    assert all(any(column in row for row in shown) for column in {*experiment.columns} - computed)
    sentences = experiment.verdict(shown)
    assert sentences
    assert all(sentence.endswith(".") for sentence in sentences)
    assert experiment.published or experiment.claim
    for row in experiment.published:
        assert set(row) <= set(experiment.columns)


def test_all_of_the_report(store):
    list(measure(plan(EXPERIMENTS.values(), store), store))
    report = collect(EXPERIMENTS.values(), store)
    assert len(report.sections) == len(EXPERIMENTS)
    assert all(section.is_complete for section in report.sections)
    assert len(report.headlines) == 5
    for judged in report.headlines:
        kept = [check.holds for check in judged.checks]
        assert kept
        assert judged.verdict in ("reproduces", "reproduces in part", "does not reproduce")
        assert (judged.verdict == "reproduces") == all(kept) == (not judged.why)
    raced = {one.experiment.sweep.name for one in report.standings}
    sweeps = {one.sweep.name for one in EXPERIMENTS.values()}
    assert sweeps - raced == {"fontoura-dnf-size"}  # which is about sizes
    page, text = write_page(report), write_markdown(report)
    for name in EXPERIMENTS:
        assert f'<h3 id="{name}">' in page
        assert f"### {name}: " in text
    assert page.count("<svg") == sum(len(one.charts) for one in EXPERIMENTS.values())


def test_a_part_of_a_sweep_has_no_verdict(tmp_path):
    experiment, store = with_results(tmp_path)
    store.path_of(experiment.sweep, {"n": 2}).unlink()
    report = collect([experiment], store)
    message = "1 of 2 settings are measured; there is no verdict before all are."
    assert report.sections[0].verdict == [message]
    assert {judged.verdict for judged in report.headlines} == {"not measured"}
    assert message in write_markdown(report)
    assert "Not measured yet: irmak-figure-4.5." in write_page(report)


def test_names_of_settings_are_files(tmp_path):
    for experiment in EXPERIMENTS.values():
        for scale in Scale:
            store = Store(tmp_path, scale, 1)
            settings = experiment.sweep.settings(scale)
            paths = {store.path_of(experiment.sweep, setting) for setting in settings}
            assert len(paths) == len(settings)
            assert all(len(path.name) < 120 for path in paths)
            assert all(experiment.sweep.n_bytes(setting) < 24 * 2**30 for setting in settings)


# ── the report ──────────────────────────────────────────────────────────────────────────────


def with_results(tmp_path) -> tuple[Experiment, Store]:
    """An experiment with a published figure, and what was measured for it."""

    def run(setting: Setting, seed: int) -> list[Row]:
        fast = {ALGORITHM: "A & B", MICROSECONDS: 2.0 * setting["n"], "bytes": 10.0}
        slow = {ALGORITHM: "C", MICROSECONDS: 50.0, "bytes": 40.0}
        return [fast, slow, {ALGORITHM: "D", "ran out": "of room"}]

    sweep = Sweep("two", lambda scale: [{"n": 1}, {"n": 2}], run, lambda _: 0)
    experiment = Experiment(
        "two",
        "Nobody 2000",
        "Time & space",
        sweep,
        ("n", ALGORITHM, MICROSECONDS, RATIO, "bytes", "ran out"),
        lambda rows: [f"{len(rows)} rows."],
        published=({"n": 1, ALGORITHM: "A & B", "bytes": 7}, {"n": 1, ALGORITHM: "C", "bytes": 14}),
        claim="C is slow.",
        charts=(Chart("n", MICROSECONDS, is_log=True), Chart("n", "bytes")),
    )
    store = Store(tmp_path, Scale.TINY, 1)
    list(measure(plan([experiment], store), store))
    return experiment, store


def test_tables_set_the_paper_beside(tmp_path):
    (section,) = collect([with_results(tmp_path)[0]], Store(tmp_path, Scale.TINY, 1)).sections
    table = section.table()
    assert table.headings[:6] == ["n", ALGORITHM, MICROSECONDS, RATIO, "bytes", "ran out"]
    assert table.headings[6:] == ["our ratio", "paper", "paper's ratio"]
    assert table.cells[0] == ["1", "A & B", "2", "25", "10", "", "0.25", "7", "0.5"]
    assert table.cells[1] == ["1", "C", "50", "1", "40", "", "1", "14", "1"]
    assert table.cells[2] == ["1", "D", "", "", "", "of room", "", "", ""]
    assert section.notes == ["times faster: than C", "our ratio, paper's ratio: to the bytes of C"]


def test_several_measures_of_the_paper_have_a_table(tmp_path):
    experiment, store = with_results(tmp_path)
    assert collect([experiment], store).sections[0].published() is None
    both = tuple(row | {MICROSECONDS: 3.5} for row in experiment.published)
    (section,) = collect([replace(experiment, published=both)], store).sections
    printed = section.published()
    assert printed is not None
    assert printed.headings == ["n", ALGORITHM, MICROSECONDS, "bytes"]
    assert printed.cells == [["1", "A & B", "3.5", "7"], ["1", "C", "3.5", "14"]]
    assert "paper" not in section.table().headings
    (section,) = collect([replace(experiment, published=())], store).sections
    assert section.published() is None


def test_page_stands_alone(tmp_path):
    experiment, store = with_results(tmp_path)
    page = write_page(collect([experiment], store))
    assert page == write_page(collect([experiment], store))
    assert page.count("<svg") == 2
    assert "<li>6 rows.</li>" in page
    assert "Time &amp; space" in page
    assert "A & B" not in page
    for tag in ("link", "script", "img"):
        assert f"<{tag}" not in page
    assert not re.search(r'(href|src)="(?!#)', page)


def test_markdown_has_verdicts_and_tables(tmp_path):
    experiment, store = with_results(tmp_path)
    text = write_markdown(collect([experiment], store))
    assert "## Nobody 2000\n\n### two: Time & space\n\n*The paper:* C is slow.\n\n- 6 rows." in text
    assert "| 1 | A & B | 2 | 25 | 10 |  | 0.25 | 7 | 0.5 |" in text
    assert "- scale: tiny, seed 1" in text


def test_rows_of_another_version_are_refused(tmp_path):
    (experiment,) = find_experiments(["fontoura-figure-7"])
    store = Store(tmp_path, Scale.TINY, 1)
    for setting in experiment.sweep.settings(Scale.TINY):
        store.save(experiment.sweep, setting, [{ALGORITHM: "DNF"}], 0.0)
    message = (
        r"(?s)results of fontoura-figure-7 have another format .*"
        r"hint: tamis lab run fontoura-.* --ag"
    )
    with pytest.raises(InputError, match=message):
        write_markdown(collect([experiment], store))


def test_without_results_there_is_no_report(tmp_path):
    with pytest.raises(
        InputError, match=r"(?s)no results in .*hint: tamis lab run all --scale tiny"
    ):
        collect(EXPERIMENTS.values(), Store(tmp_path, Scale.TINY, 1))
