"""Runs experiments: plans, checks the memory, and measures the missing settings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import InputError
from tamis.lab.memory import available_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.lab.experiments.experiment import Experiment, Setting, Sweep
    from tamis.lab.experiments.store import Store


class Step(NamedTuple):
    """One setting to measure."""

    sweep: Sweep
    setting: Setting

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.setting.items())
        return f"{self.sweep.name}: {values}"


def plan(experiments: Iterable[Experiment], store: Store, *, again: bool = False) -> list[Step]:
    """The settings to measure: each setting of each sweep once, unless finished before.

    Raises `InputError` if a setting needs more memory than is available, if a file is not a valid
    result, or if results cannot be written.
    """
    sweeps = {experiment.sweep.name: experiment.sweep for experiment in experiments}
    steps = [
        Step(sweep, setting)
        for sweep in sweeps.values()
        for setting in sweep.settings(store.scale)
        if again or not store.has(sweep, setting)
    ]
    refuse_too_large(steps, available_bytes())
    store.prepare()
    return steps


def refuse_too_large(steps: list[Step], available: int) -> None:
    """Raise an error before any work if a setting does not fit."""
    for step in steps:
        needed = step.sweep.n_bytes(step.setting)
        if needed > available:
            raise InputError(
                f"{step} needs about {needed / 2**30:.1f} GB of memory; "
                f"there are {available / 2**30:.1f} GB",
                hint="choose a smaller --scale, or other experiments",
            )


def measure(steps: Iterable[Step], store: Store) -> Iterator[Step]:
    """Measure the steps, store the rows of each, and yield it when it is done."""
    for step in steps:
        begun = time.process_time()
        rows = step.sweep.measure(step.setting, store.seed)
        store.save(step.sweep, step.setting, rows, time.process_time() - begun)
        yield step
