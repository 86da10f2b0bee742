"""The papers' headlines: each claim, the rules that judge it, and the result here.

A headline has a few checks; each is a rule that the stored rows satisfy or violate. The headline
reproduces if all rules are satisfied, and in part if some are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tamis.lab.experiments.atree import task as atree
from tamis.lab.experiments.atree.ads import PUBLISHED as PUBLISHED_ADS
from tamis.lab.experiments.atree.ads import describe_counts, describe_each
from tamis.lab.experiments.experiment import ALGORITHM, MICROSECONDS, series
from tamis.lab.experiments.fontoura import task as fontoura
from tamis.lab.experiments.irmak.clusters import OVERLAP, describe_costs
from tamis.lab.experiments.irmak.task import PRIMITIVE, ratio_of
from tamis.lab.experiments.liu import calls as liu
from tamis.lab.experiments.sentences import does, over, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.lab.experiments.experiment import Row

Results: TypeAlias = "dict[str, list[Row]]"  # rows by the name of an experiment that shows them

SLACK: Final = 1.05  # times that differ by less count as equal
FLAT: Final = 1.2  # growth by less counts as none
BLOW_UP: Final = 10  # from the first depth to the last, beyond the growth of the trees
SAME_ORDER: Final = 10**0.5  # within half an order of magnitude
IRMAK: Final = 20
LIU: Final = 0.7  # "almost 80%" fewer


class Check(NamedTuple):
    """A rule, the finding, and whether the rule is satisfied."""

    rule: str
    found: str
    holds: bool


class Headline(NamedTuple):
    """A claim of a paper."""

    paper: str
    claim: str
    experiments: tuple[str, ...]  # whose rows are judged
    check: Callable[[Results], list[Check]]
    explain: Callable[[Results], str]  # from counts, used if some rule is violated


def verdict_of(checks: list[Check]) -> str:
    """The text of a verdict."""
    kept = [check.holds for check in checks]
    return "reproduces in part" if any(kept) and not all(kept) else does(all(kept))


# ── Fontoura ────────────────────────────────────────────────────────────────────────────────


def check_interval(results: Results) -> list[Check]:
    """Interval no slower than Dewey, and flat with depth."""
    checks = []
    for name, x in (("fontoura-figure-10", "depth"), ("fontoura-figure-12", "expressions")):
        dewey, interval = (
            series(results[name], x, MICROSECONDS, one) for one in fontoura.ANNOTATED
        )
        checks.append(
            Check(
                f"by {x}, Interval takes at most {SLACK} times Dewey's time everywhere",
                f"Dewey takes {over(dewey, interval)} Interval's",
                all(interval[at] <= SLACK * dewey[at] for at in interval),
            )
        )
    rows = results["fontoura-figure-11"]
    took, read = (
        series(rows, "depth", what, fontoura.INTERVAL)
        for what in (fontoura.EVALUATE, "annotations")
    )
    costs = [1e3 * took[depth] / read[depth] for depth in took]
    rule = "flat refers to annotations, not to events: evaluating an annotation takes at most "
    rule += f"{FLAT} times as long at the last depth as at 1"
    found = (
        f"{', '.join(f'{cost:.1f}' for cost in costs)} ns by depth; {_describe_events(took, read)}"
    )
    checks.append(Check(rule, found, costs[-1] <= FLAT * costs[0]))
    return checks


def _describe_events(took: dict[int, float], read: dict[int, float]) -> str:
    """The growth of an event's time, which is not judged."""
    first, last = min(took), max(took)
    listed = ", ".join(f"{one:,.0f}" for one in took.values())
    return (
        f"evaluating an event takes {listed} µs, {times(took[last] / took[first])} as long at the "
        f"last for {times(read[last] / read[first])} the annotations"
    )


def explain_interval(results: Results) -> str:
    """The work that Interval does."""
    read = series(results["fontoura-figure-11"], "depth", "annotations", fontoura.INTERVAL)
    return f"Annotations for an event, by depth: {', '.join(f'{n:,.0f}' for n in read.values())}."


def check_blow_up(results: Results) -> list[Check]:
    """DNF and BDD blow up with depth."""
    dnf = _blow_up(
        results["fontoura-figure-7"], "kilobytes", fontoura.DNF, fontoura.INTERVAL, "run out"
    )
    diagram = _blow_up(
        results["atree-figure-11b"], atree.MEGABYTES, atree.BDDS, atree.A_TREE, atree.RAN_OUT
    )
    rule = "{0} run out, or grow {1} times as much as {2} from depth 1 to the last"
    return [
        Check(rule.format("normal forms", BLOW_UP, "their trees"), *dnf),
        Check(rule.format("diagrams", BLOW_UP, "the A-Tree"), *diagram),
    ]


def _blow_up(rows: list[Row], size: str, name: str, other: str, ran_out: str) -> tuple[str, bool]:
    own, theirs = (series(rows, "depth", size, one) for one in (name, other))
    shares = {depth: own[depth] / theirs[depth] for depth in own}
    listed = ", ".join(f"{share:,.1f}" for share in shares.values())
    gone = sorted(row["depth"] for row in rows if row[ALGORITHM] == name and row.get(ran_out))
    found = f"{listed} times the {size} of {other}, at depths {min(own)} to {max(own)}"
    found += f"; ran out from depth {gone[0]} on" if gone else ""
    return found, bool(gone) or shares[max(shares)] > BLOW_UP * shares[min(shares)]


def explain_blow_up(results: Results) -> str:
    """The size of a normal form."""
    rows = results["fontoura-figure-7"]
    grown = series(rows, "depth", "conjunctions", fontoura.DNF)
    return f"Conjunctions of a form, by depth: {', '.join(f'{n:,.0f}' for n in grown.values())}."


# ── A-Tree ──────────────────────────────────────────────────────────────────────────────────

BEATEN: Final = (atree.BOP, atree.INTERVAL, atree.DEWEY, atree.SCAN)


def check_ads(results: Results) -> list[Check]:
    """A-Tree ahead of BoP, Interval, Dewey and Scan by the paper's order of magnitude."""
    took = {
        row[ALGORITHM]: row[MICROSECONDS]
        for row in results["atree-table-4-matching"]
        if MICROSECONDS in row
    }
    checks = []
    for name in BEATEN:
        paper = PUBLISHED_ADS[name][0] / PUBLISHED_ADS[atree.A_TREE][0]
        ratio = took[name] / took[atree.A_TREE]
        least = paper / SAME_ORDER
        rule = f"{name} takes at least {least:,.1f} times A-Tree's time: the paper's {paper:,.1f} "
        rule += "minus half an order of magnitude"
        checks.append(Check(rule, times(ratio), ratio >= least))
    return checks


def explain_ads(results: Results) -> str:
    """The cost of an advertisement for each algorithm, and the work done."""
    rows = results["atree-table-4-matching"]
    return f"{describe_each(rows)} {describe_counts(rows)}"


# ── Irmak ───────────────────────────────────────────────────────────────────────────────────


def check_clustered(results: Results) -> list[Check]:
    """More than 20 times from primitive to clustered."""
    ratio = ratio_of(results["irmak-figure-4.5"], PRIMITIVE, OVERLAP)
    rule = f"superqueries by overlap are more than {IRMAK} times as fast as the primitive algorithm"
    return [Check(rule, times(ratio), ratio > IRMAK)]


def explain_clustered(results: Results) -> str:
    """The cost of a posting."""
    return describe_costs(results["irmak-figure-4.5"])


# ── Liu ─────────────────────────────────────────────────────────────────────────────────────

FIGURES: Final = {
    experiment.name: experiment.columns[0] for experiment in liu.EXPERIMENTS
}  # the parameter that each varies
LIU_ORDER: Final = (liu.NAIVE, liu.SEQUENTIAL, liu.SUB_ORDER)
POPULARITIES: Final = {"liu-figure-4": "uniform", "liu-figure-5": "Zipf"}


def check_calls(results: Results) -> list[Check]:
    """About 80% fewer evaluations, and Sub-Order below Sequential."""
    checks = []
    for name, popularity in POPULARITIES.items():
        made = {one: series(results[name], "subscriptions", liu.CALLS, one) for one in LIU_ORDER}
        most = max(made[liu.NAIVE])
        fewer = [1 - made[one][most] / made[liu.NAIVE][most] for one in LIU_ORDER[1:]]
        rule = f"at the most subscriptions, with {popularity} popularity, Sequential and Sub-Order "
        rule += f"make {LIU:.0%} fewer calls than naive or better"
        checks.append(Check(rule, " and ".join(f"{f:.0%}" for f in fewer), min(fewer) >= LIU))
    ratios = []
    for name, x in FIGURES.items():
        sequential, sub_order = (series(results[name], x, liu.CALLS, one) for one in LIU_ORDER[1:])
        ratios += [sub_order[at] / sequential[at] for at in sequential]
    found = f"{min(ratios):.2f} to {max(ratios):.2f} times its calls, in {len(ratios)} settings"
    checks.append(Check("Sub-Order is below Sequential in all figures", found, max(ratios) < 1))
    return checks


def explain_calls(results: Results) -> str:
    """The number of calls that every schedule needs."""
    counts = []
    for name, popularity in POPULARITIES.items():
        rows = results[name]
        floors, naive = (
            series(rows, "subscriptions", w, liu.NAIVE) for w in (liu.FLOOR, liu.CALLS)
        )
        most = max(naive)
        counts.append(
            f"with {popularity} popularity, whatever the schedule, at least {floors[most]:,.0f} of "
            f"naive's {naive[most]:,.0f} calls are needed at {most:,} subscriptions"
        )
    paper = ", ".join(f"{row[liu.CALLS]:,}" for row in liu.EXPERIMENTS[0].published)
    return f"Counts: {'; '.join(counts)}. The paper has {paper} with uniform popularity."


HEADLINES: Final = (
    Headline(
        fontoura.PAPER,
        "Interval is no slower than Dewey, and its cost is flat with depth.",
        ("fontoura-figure-10", "fontoura-figure-11", "fontoura-figure-12"),
        check_interval,
        explain_interval,
    ),
    Headline(
        f"{fontoura.PAPER}; {atree.PAPER}",
        "DNF and BDD blow up with depth.",
        ("fontoura-figure-7", "atree-figure-11b"),
        check_blow_up,
        explain_blow_up,
    ),
    Headline(
        atree.PAPER,
        "On advertisements, A-Tree is ahead of BoP, Interval, Dewey and Scan by the paper's order "
        "of magnitude.",
        ("atree-table-4-matching",),
        check_ads,
        explain_ads,
    ),
    Headline(
        "Irmak",
        "All techniques together, from primitive to clustered, gain more than a factor of 20.",
        ("irmak-figure-4.5",),
        check_clustered,
        explain_clustered,
    ),
    Headline(
        liu.PAPER,
        "Almost 80% fewer evaluations than naive; Sub-Order below Sequential.",
        tuple(FIGURES),
        check_calls,
        explain_calls,
    ),
)
