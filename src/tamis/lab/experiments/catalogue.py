"""All experiments by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import InputError, suggest
from tamis.lab.experiments import atree, fontoura, irmak, liu

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.lab.experiments.experiment import Experiment

EVERY: Final = "all"
EXPERIMENTS: Final[dict[str, Experiment]] = {
    experiment.name: experiment
    for paper in (fontoura, atree, irmak, liu)
    for experiment in paper.EXPERIMENTS
}


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names; `all` means all of them."""
    found: dict[str, Experiment] = {}
    for name in names:
        if name != EVERY and name not in EXPERIMENTS:
            allowed = ", ".join((EVERY, *EXPERIMENTS))
            guess = suggest(name, (EVERY, *EXPERIMENTS))
            hint = f'did you mean "{guess}"?' if guess else None
            raise InputError(f'no experiment "{name}" in the lab; allowed: {allowed}', hint=hint)
        found |= EXPERIMENTS if name == EVERY else {name: EXPERIMENTS[name]}
    return list(found.values())
