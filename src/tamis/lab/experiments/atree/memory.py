"""§6.4.1, Figure 11: memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tamis.lab.atree.arrays import NODE_BYTES
from tamis.lab.experiments.atree import sweeps
from tamis.lab.experiments.atree.task import (
    A_TREE,
    BDDS,
    BOP,
    COMPARED,
    LEFT_OUT,
    MEGABYTES,
    PAPER,
    RAN_OUT,
    SCAN,
    TRANSLATION,
    describe_ran_out,
    rank,
)
from tamis.lab.experiments.experiment import ALGORITHM, SINGLE, Chart, Experiment, series
from tamis.lab.experiments.sentences import does, saved

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Sweep

ALGORITHMS: Final = tuple(name for name in COMPARED if name != SCAN)


def judge(x: str, ran_out: dict[str, str], rows: list[Row]) -> list[str]:
    """Whether A-Tree takes the least, and its bytes per expression."""
    order = rank(rows, x, MEGABYTES, ALGORITHMS)
    tree, bop = (series(rows, x, MEGABYTES, name) for name in (A_TREE, BOP))
    last, first = max(tree), min(tree)
    each = {at: 1e6 * tree[at] / _expressions(rows, x, at) for at in (first, last)}
    is_first = order[0] == A_TREE
    return [
        f"From least to most: {'; '.join(order)}. That A-Tree takes least {does(is_first)}.",
        (
            f"At {x} {last:,} A-Tree takes {saved(tree[last], bop[last])} than BoP; it has "
            f"{each[first]:,.0f} bytes per expression at {x} {first:,} and {each[last]:,.0f} at "
            f"{x} {last:,}, BoP {1e6 * bop[last] / _expressions(rows, x, last):,.0f}."
        ),
        *([] if is_first else [_describe_nodes(rows, x, last)]),
        *describe_ran_out(rows, x, ran_out),
    ]


def _describe_nodes(rows: list[Row], x: str, at: object) -> str:
    """Why A-Tree does not take the least."""
    n = _expressions(rows, x, at)
    nodes = series(rows, x, "index nodes", A_TREE)[at]
    return (
        f"A-Tree has {nodes / n:.1f} inner nodes per expression there, with {NODE_BYTES} bytes "
        "for a node and 8 for a link; BoP has 8 bytes for each predicate of an expression: a word "
        "of its encoding and a posting. A-Tree takes less only if nodes are shared more often."
    )


def _expressions(rows: list[Row], x: str, at: object) -> int:
    return next(int(row["expressions"]) for row in rows if row[x] == at)


def figure(letter: str, title: str, x: str, sweep: Sweep, claim: str, **ran_out: str) -> Experiment:
    """A panel of Figure 11."""
    by_name = {BDDS: ran_out.get("bdd", ""), TRANSLATION: ran_out.get("translation", "")}
    return Experiment(
        f"atree-figure-11{letter}",
        PAPER,
        f"Memory by {title}",
        sweep,
        (x, ALGORITHM, MEGABYTES, RAN_OUT, LEFT_OUT),
        partial(judge, x, {name: where for name, where in by_name.items() if where}),
        claim=f"{claim}.",
        charts=(Chart(x, MEGABYTES, is_log=True),),
        shows=lambda row: row[ALGORITHM] not in (SCAN, SINGLE),
        measure=MEGABYTES,
    )


EXPERIMENTS: Final = (
    figure(
        "a",
        "number of expressions",
        "expressions",
        sweeps.SIZE,
        "A-Tree takes least from 300 K expressions on; 71% less than BoP at 30 M",
        translation="at 30 M expressions",
    ),
    figure(
        "b",
        "tree depth",
        "depth",
        sweeps.DEPTH,
        "A-Tree takes least",
        bdd="from depth 4 on",
        translation="from depth 5 on",
    ),
    figure(
        "c",
        "number of children",
        "children",
        sweeps.CHILDREN,
        "A-Tree takes least, then BoP, then Interval ID",
        bdd="from 10 children on",
        translation="from 6 children on",
    ),
    figure(
        "d",
        "sharing",
        "alpha",
        sweeps.ALPHA,
        "A-Tree takes least from an alpha of 0.2 on; 68% less than others at 1",
    ),
)
