"""Random instances: conjunctions and any other gates, and what evaluating everything gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.operators.schedule import Gates
from tamis.operators.schedule.kernels.gates import FALSE, NO_RESULT, TRUE


class Instance(NamedTuple):
    gates: Gates
    costs: np.ndarray
    selectivities: np.ndarray
    starts: np.ndarray  # of the calls of conjunctions; empty for other gates
    calls: np.ndarray


def draw_conjunctions(rng, n_subscriptions, n_calls, most=4, *, same_costs=False) -> Instance:
    """Conjunctions of 1 to `most` calls, some of them alike, of calls some of which nobody uses."""
    lengths = rng.integers(1, min(most, n_calls), n_subscriptions, endpoint=True)
    calls = [rng.choice(n_calls, length, replace=False) for length in lengths]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    flat = np.concatenate([*calls, np.zeros(0)]).astype(np.int32)
    gates = Gates.conjunctions(starts, flat, n_calls)
    return Instance(gates, *draw_statistics(rng, n_calls, same_costs), starts, flat)


def draw_gates(rng, n_gates, n_calls, n_subscriptions) -> Instance:
    """Gates of any threshold over calls, negated calls and other gates, shared at will."""
    thresholds, starts, children = [], [0], []
    for gate in range(n_gates):
        n_below = 2 * n_calls + gate
        width = int(rng.integers(1, min(4, n_below), endpoint=True))
        own = rng.choice(n_below, width, replace=False).tolist()
        children += own
        starts.append(len(children))
        thresholds.append(int(rng.integers(1, width, endpoint=True)))
    roots = rng.integers(0, 2 * n_calls + n_gates, n_subscriptions)
    gates = Gates.of(n_calls, thresholds, starts, children, roots)
    none = np.zeros(0, dtype=np.int32)
    return Instance(gates, *draw_statistics(rng, n_calls, False), none, none)


def draw_statistics(rng, n_calls, same_costs):
    costs = np.ones(n_calls) if same_costs else rng.uniform(0.5, 4.0, n_calls)
    selectivities = rng.choice([0.0, 1.0, *rng.random(8)], n_calls)
    return costs, selectivities


def draw_results(rng, selectivities, failure=0.0):
    """Results of all calls for one event; a share of them has none."""
    results = np.where(rng.random(len(selectivities)) < selectivities, TRUE, FALSE)
    return np.where(rng.random(len(selectivities)) < failure, NO_RESULT, results).astype(np.int32)


def evaluate_everything(gates: Gates, results) -> list[int]:
    """The subscriptions that match, by their gates alone."""
    truths = [result == side for result in results for side in (TRUE, FALSE)]
    for gate in range(gates.n_gates):
        own = gates.children[gates.child_starts[gate] : gates.child_starts[gate + 1]]
        truths.append(sum(truths[child] for child in own) >= gates.thresholds[gate])
    return [at for at, root in enumerate(gates.roots) if truths[root]]
