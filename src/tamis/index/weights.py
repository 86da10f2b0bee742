"""How much a subscription weighs: of an event's matches, those of the highest weight come first.

A subscription without a weight weighs 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.index.layout import freeze
from tamis.language.weights import WEIGHT, read_weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.kernels.arrays import Float64, Int32


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
