"""§6.4.3, Figure 13: the time to build an index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.atree import sweeps
from tamis.lab.experiments.atree.memory import ALGORITHMS
from tamis.lab.experiments.atree.task import A_TREE, BOP, BUILD, PAPER, RAN_OUT, rank
from tamis.lab.experiments.experiment import ALGORITHM, BATCH, Chart, Experiment, series
from tamis.lab.experiments.sentences import does, saved

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Sweep


WHY_NOT: Final = (
    "Here all algorithms get trees and first write them as arrays, part by part, which is most of "
    "the time of A-Tree and BoP; the paper's A-Tree gets expressions, and skips the parts that it "
    "already has."
)


def judge(x: str, rows: list[Row]) -> list[str]:
    """Whether A-Tree is built fastest."""
    order = rank(rows, x, BUILD, ALGORITHMS)
    tree, bop, ours = (series(rows, x, BUILD, name) for name in (A_TREE, BOP, BATCH))
    last = max(tree)
    return [
        f"From fastest to slowest: {'; '.join(order)}. A-Tree first: {does(order[0] == A_TREE)}.",
        f"At {x} {last:,} A-Tree takes {saved(tree[last], bop[last])} time than BoP. {WHY_NOT}",
        (
            f"Tamis builds its index from text in {ours[last]:.2f} s there, A-Tree from trees "
            f"in {tree[last]:.2f} s."
        ),
    ]


def figure(letter: str, title: str, x: str, sweep: Sweep, claim: str) -> Experiment:
    """A panel of Figure 13."""
    return Experiment(
        f"atree-figure-13{letter}",
        PAPER,
        f"Construction time by {title}",
        sweep,
        (x, ALGORITHM, BUILD, RAN_OUT),
        partial(judge, x),
        claim=f"{claim}.",
        charts=(Chart(x, BUILD, is_log=True),),
        shows=lambda row: row[ALGORITHM] in (*ALGORITHMS, BATCH),
        measure=BUILD,
    )


BEST: Final = "A-Tree, BoP and Interval ID before Translation and BDD, A-Tree fastest"
EXPERIMENTS: Final = (
    figure("a", "number of expressions", "expressions", sweeps.SIZE, BEST),
    figure("b", "tree depth", "depth", sweeps.DEPTH, BEST),
    figure("c", "number of children", "children", sweeps.CHILDREN, BEST),
    figure("d", "sharing", "alpha", sweeps.ALPHA, "A-Tree takes 75% less time than BoP at alpha 1"),
)
