"""Experiments: planned, refused, measured once, resumed; answers compared before they are timed."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import InputError
from tamis.lab.experiments.catalogue import EXPERIMENTS, find_experiments
from tamis.lab.experiments.experiment import (
    ALGORITHM,
    BATCH,
    MICROSECONDS,
    RATIO,
    Experiment,
    Row,
    Scale,
    Setting,
    Sweep,
    add_ratios,
    series,
)
from tamis.lab.experiments.measure import DisagreementError, compare
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
    assert result["machine"]["cores"] > 0
    assert "commit" in result


def test_a_file_that_is_no_result(tmp_path):
    experiment = make_experiment(make_sweep([]))
    store = Store(tmp_path, Scale.TINY, seed=7)
    path = store.path_of(experiment.sweep, {"n": 1})
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(InputError, match=r"n=1\.json is no result of an experiment"):
        store.load(experiment.sweep)


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
    assert any(row[ALGORITHM] == BATCH for row in rows)
    computed = {RATIO, "ran out", "run out"}
    assert all(any(column in row for row in shown) for column in {*experiment.columns} - computed)
    sentences = experiment.verdict(shown)
    assert sentences
    assert all(sentence.endswith(".") for sentence in sentences)
    assert experiment.published or experiment.told
    for row in experiment.published:
        assert set(row) <= set(experiment.columns)


def test_names_of_settings_are_files(tmp_path):
    for experiment in EXPERIMENTS.values():
        for scale in Scale:
            store = Store(tmp_path, scale, 1)
            settings = experiment.sweep.settings(scale)
            paths = {store.path_of(experiment.sweep, setting) for setting in settings}
            assert len(paths) == len(settings)
            assert all(len(path.name) < 120 for path in paths)
            assert all(experiment.sweep.n_bytes(setting) < 24 * 2**30 for setting in settings)
