"""The sweeps of §6.4: ABE-Gen with one parameter of Table 3 changed at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tamis.lab.experiments.atree.task import estimate, run
from tamis.lab.experiments.experiment import Scale, Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.lab.experiments.experiment import Row, Setting

SIZES: Final = {Scale.TINY: (100, 6), Scale.SMALL: (3_000, 512), Scale.FULL: (100_000, 512)}
# Expressions with many predicates are fewer.
LARGE: Final = {Scale.TINY: (24, 4), Scale.SMALL: (600, 512), Scale.FULL: (6_000, 512)}


def _settings(
    name: str, values: Sequence[Any], sizes: dict[Scale, tuple[int, int]], scale: Scale
) -> list[Setting]:
    n_expressions, n_events = sizes[scale]
    shared = {"expressions": n_expressions, "events": n_events}
    chosen = values[-1:] if scale == Scale.TINY else values
    return [{name: value} | shared for value in chosen]


def _by_size(scale: Scale) -> list[Setting]:
    """Numbers of expressions that grow like the paper's, from 100 K to 30 M."""
    n_most, n_events = {Scale.TINY: (90, 6), Scale.SMALL: (12_000, 512)}.get(scale, (300_000, 512))
    shares = (3, 1) if scale == Scale.TINY else (30, 10, 3, 1)
    return [{"expressions": n_most // share, "events": n_events} for share in shares]


def _measure(setting: Setting, seed: int) -> list[Row]:
    return run(setting, seed)


def _sweep(name: str, values: Sequence[Any], sizes: dict[Scale, tuple[int, int]] = SIZES) -> Sweep:
    settings = partial(_settings, name, values, sizes)
    return Sweep(f"atree-{name.replace(' ', '-')}", settings, _measure, estimate)


SIZE: Final = Sweep("atree-size", _by_size, _measure, estimate)
DEPTH: Final = _sweep("depth", (1, 2, 3, 4, 5, 6), LARGE)
CHILDREN: Final = _sweep("children", (2, 4, 6, 8, 10, 12), LARGE)
ALPHA: Final = _sweep("alpha", (0, 0.2, 0.4, 0.6, 0.8, 1))
DIMENSIONS: Final = _sweep("dimensions", (30, 100, 300, 1_000, 3_000, 10_000))
CARDINALITY: Final = _sweep("cardinality", (3, 10, 30, 100, 300, 1_000))
DIMENSION_ALPHA: Final = _sweep("dimension alpha", (0, 0.2, 0.4, 0.6, 0.8, 1))
EVENT_SIZE: Final = _sweep("event size", (5, 10, 15, 20, 25, 30))
