"""Figure 7: the size of one expression's disjunctive normal form."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    BATCH,
    Chart,
    Experiment,
    Scale,
    Sweep,
    series,
)
from tamis.lab.experiments.fontoura.task import DNF, INTERVAL, PAPER
from tamis.lab.experiments.measure import build_index, product_bytes
from tamis.lab.experiments.sentences import does
from tamis.lab.fontoura.dnf import expand
from tamis.lab.fontoura.expressions import conjunctions_of, read_expression
from tamis.lab.forest import RanOutError
from tamis.lab.workloads.fontoura import Fontoura, FontouraParams

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.lab.experiments.experiment import Row, Setting
    from tamis.lab.fontoura.expressions import Conjunction

MOST: Final = {Scale.TINY: 1_000, Scale.SMALL: 30_000, Scale.FULL: 300_000}
N_EXPRESSIONS: Final = 20  # as in the paper
KILOBYTES: Final = "kilobytes"


def settings(scale: Scale) -> list[Setting]:
    """The paper's depths, and one more."""
    return [{"depth": depth, "most": MOST[scale]} for depth in (1, 2, 3, 4)]


def kilobytes(conjunctions: Iterable[Conjunction]) -> float:
    """4 bytes per predicate for a posting, 8 bytes per conjunction for an annotation."""
    return sum(8 + 4 * (len(one.wanted) + len(one.unwanted)) for one in conjunctions) / 1000


def measure(setting: Setting, seed: int) -> list[Row]:
    """The average over expressions; those that run out count with the limit."""
    workload = Fontoura(FontouraParams(max_depth=setting["depth"], seed=seed))
    expressions = [read_expression(tree, {}) for tree in workload.trees(N_EXPRESSIONS)]
    sizes, numbers, n_ran_out = [], [], 0
    for expression in expressions:
        try:
            expanded = expand(expression, setting["most"])
            sizes.append(kilobytes(expanded))
            numbers.append(len(expanded))
        except RanOutError:
            n_ran_out += 1
    texts = workload.expressions(N_EXPRESSIONS)
    index = build_index(texts, workload.schema)
    leaves = [list(conjunctions_of(expression)) for expression in expressions]
    dnf: Row = {ALGORITHM: DNF, "run out": n_ran_out}
    if numbers:
        dnf |= {KILOBYTES: mean(sizes), "conjunctions": mean(numbers)}
    return [
        dnf,
        {
            ALGORITHM: INTERVAL,
            KILOBYTES: mean(map(kilobytes, leaves)),
            "conjunctions": mean(map(len, leaves)),
        },
        {ALGORITHM: BATCH, KILOBYTES: product_bytes(index) / 1000 / N_EXPRESSIONS},
    ]


def judge(rows: list[Row]) -> list[str]:
    """Whether the form grows faster than the tree."""
    dnf, tree = (series(rows, "depth", "conjunctions", name) for name in (DNF, INTERVAL))
    bytes_of, bytes_of_tree = (series(rows, "depth", KILOBYTES, name) for name in (DNF, INTERVAL))
    listed = "; ".join(f"{tree[d]:,.1f} and {dnf[d]:,.1f}" for d in dnf)
    ran_out = {row["depth"]: row["run out"] for row in rows if row.get("run out")}
    more = "".join(f" At depth {d}, {n} of {N_EXPRESSIONS} ran out." for d, n in ran_out.items())
    shares = [bytes_of[d] / bytes_of_tree[d] for d in bytes_of]
    growth = ", ".join(f"{share:,.1f}" for share in shares)
    is_so = bool(ran_out) or shares[-1] > 10 * shares[0]
    return [
        (
            f"Conjunctions in the tree and in its normal form, by depth: {listed}.{more} The "
            "form multiplies where an OR is below an AND, which is at every second level."
        ),
        f"It takes {growth} times the tree's bytes; that it blows up with depth {does(is_so)}.",
    ]


FIGURE_7: Final = Experiment(
    "fontoura-figure-7",
    PAPER,
    "Size of a DNF-expanded expression by depth",
    Sweep("fontoura-dnf-size", settings, measure, lambda setting: setting["most"] * 4_000),
    ("depth", ALGORITHM, "conjunctions", KILOBYTES, "run out"),
    judge,
    claim="The average size grows exponentially with depth.",
    charts=(Chart("depth", KILOBYTES, is_log=True),),
)
