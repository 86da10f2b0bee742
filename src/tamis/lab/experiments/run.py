"""Run experiments: plan, refuse what does not fit, measure what is not there yet."""

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
    """One setting to be measured."""

    sweep: Sweep
    setting: Setting

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self.setting.items())
        return f"{self.sweep.name}: {told}"


def plan(experiments: Iterable[Experiment], store: Store, *, again: bool = False) -> list[Step]:
    """What is to be measured: each setting of each sweep once, unless it was finished before.

    Raises `InputError` where a setting needs more memory than there is, where a file is no result,
    and where results cannot be written.
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
    """Say before any work which setting does not fit."""
    for step in steps:
        needed = step.sweep.n_bytes(step.setting)
        if needed > available:
            raise InputError(
                f"{step} needs about {needed / 2**30:.1f} GB of memory; "
                f"there are {available / 2**30:.1f} GB",
                hint="choose a smaller --scale, or other experiments",
            )


def measure(steps: Iterable[Step], store: Store) -> Iterator[Step]:
    """Measure the steps, keep each one's rows, and yield it when it is done."""
    for step in steps:
        begun = time.process_time()
        rows = step.sweep.measure(step.setting, store.seed)
        store.save(step.sweep, step.setting, rows, time.process_time() - begun)
        yield step
