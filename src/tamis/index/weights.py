"""How much a subscription weighs: of an event's matches, those of the highest weight come first.

A subscription without a weight weighs 0. The weight is one of its attributes, named `weight`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.index.layout import freeze

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.kernels.arrays import Float64, Int32

WEIGHT: Final = "weight"  # the name of the attribute
SHOWN: Final = 60  # characters of a value that is no weight


class WeightArrays(NamedTuple):
    """The subscriptions that have a weight."""

    ordinals: Int32  # ascending
    values: Float64  # finite


NO_WEIGHTS: Final = freeze(WeightArrays(np.empty(0, np.int32), np.empty(0, np.float64)))


def add_weights(
    attributes: Mapping[str, Mapping[str, Any]], weights: Mapping[str, Any]
) -> Mapping[str, Mapping[str, Any]]:
    """The attributes of subscriptions, with these weights."""
    given = {
        one: {**attributes.get(one, {}), WEIGHT: _to_plain(value)} for one, value in weights.items()
    }
    return {**attributes, **given} if given else attributes


def make_weights(ids: Iterable[str], attributes: Mapping[str, Mapping[str, Any]]) -> WeightArrays:
    """The weights among the attributes of these subscriptions."""
    if not any(WEIGHT in own for own in attributes.values()):
        return NO_WEIGHTS
    given = [
        (at, read_weight(attributes[one].get(WEIGHT)))
        for at, one in enumerate(ids)
        if one in attributes
    ]
    kept = [(at, weight) for at, weight in given if weight is not None]
    return freeze(
        WeightArrays(
            np.array([at for at, _ in kept], dtype=np.int32),
            # Adding 0 makes -0.0 to 0.0: they are the same weight.
            np.array([weight for _, weight in kept], dtype=np.float64) + 0.0,
        )
    )


def read_weight(value: Any) -> float | None:
    """The weight that a value stands for, None for NULL; raises a `ValueError` that says why it is
    none."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        weight = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        weight = math.nan
    if not math.isfinite(weight):
        raise ValueError(f"the weight is {_show(value)}; allowed: a finite number")
    return weight


def all_weights(arrays: WeightArrays, n_subscriptions: int) -> Float64:
    """The weight of each subscription, by ordinal."""
    found = np.zeros(n_subscriptions, dtype=np.float64)
    found[arrays.ordinals] = arrays.values
    return found


def _to_plain(value: Any) -> Any:
    """A number of another library as Python's; what is no weight stays as it is."""
    try:
        return read_weight(value)
    except ValueError:
        return value


def _show(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"
