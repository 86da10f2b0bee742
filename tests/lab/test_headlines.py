"""Headlines are judged by rules over rows: other rows, another verdict."""

from __future__ import annotations

import pytest

from tamis.lab.experiments.atree.ads import PUBLISHED
from tamis.lab.experiments.atree.statements import (
    are_behind_scan,
    are_similar,
    describe_ends,
    fall,
    keep_ranking,
    only_a_tree_scales,
    rise,
    scale_linearly,
    stay,
)
from tamis.lab.experiments.atree.task import (
    A_TREE,
    BDDS,
    BOP,
    DEWEY,
    DEWEY_2010,
    INTERVAL,
    INTERVAL_2010,
    LEFT_OUT,
    SCAN,
)
from tamis.lab.experiments.experiment import ALGORITHM, BATCH, MICROSECONDS, SINGLE, Experiment
from tamis.lab.experiments.headlines import (
    HEADLINES,
    Check,
    check_ads,
    check_calls,
    check_clustered,
    verdict_of,
)
from tamis.lab.experiments.irmak.clusters import (
    BY_METHOD,
    BY_WIDTH,
    OVERLAP,
    judge_methods,
    judge_widths,
)
from tamis.lab.experiments.irmak.growth import judge_growth
from tamis.lab.experiments.irmak.task import (
    ACCUMULATORS,
    BEST,
    BLOOM,
    POSTINGS,
    PRIMITIVE,
    SPLIT,
)
from tamis.lab.experiments.liu.calls import (
    CALLS,
    EXPERIMENTS,
    NAIVE,
    SEQUENTIAL,
    SUB_ORDER,
    describe_lengths,
)
from tamis.lab.experiments.report import judge
from tamis.lab.experiments.standing import stand
from tamis.lab.experiments.steadiness import describe_steadiness, find_repeats


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        ([True, True], "reproduces"),
        ([True, False], "reproduces in part"),
        ([False, False], "does not reproduce"),
        ([False], "does not reproduce"),
    ],
)
def test_verdicts(kept, verdict):
    assert verdict_of([Check("", "", holds) for holds in kept]) == verdict


@pytest.mark.parametrize(("took", "holds"), [(19.9, False), (20.1, True)])
def test_clustered_must_gain_20_times(took, holds):
    rows = [{ALGORITHM: PRIMITIVE, MICROSECONDS: took}, {ALGORITHM: OVERLAP, MICROSECONDS: 1.0}]
    (check,) = check_clustered({"irmak-figure-4.5": rows})
    assert check.holds is holds


def test_advertisements_are_judged_by_the_papers_ratios():
    took = {name: values[0] for name, values in PUBLISHED.items()}
    took |= {INTERVAL_2010: 1.0, DEWEY_2010: 1.0}
    shared = {"expressions": 1_000, LEFT_OUT: 0}
    shared |= {"nodes": 5, "postings": 5, "candidates": 5, "matches": 5}
    rows = [{ALGORITHM: name, MICROSECONDS: us} | shared for name, us in took.items()]
    results = {"atree-table-4-matching": rows}
    assert all(check.holds for check in check_ads(results))
    for row in rows:
        row[MICROSECONDS] *= 4 if row[ALGORITHM] == A_TREE else 1
    assert not any(check.holds for check in check_ads(results))
    for row in rows:
        row[MICROSECONDS] *= 2 if row[ALGORITHM] == DEWEY else 1
    (headline,) = [one for one in HEADLINES if one.check is check_ads]
    judged = judge(headline, results)
    assert judged.verdict == "reproduces in part"
    assert "Nanoseconds for each of 1,000 advertisements" in judged.why


def test_sub_order_must_be_below_sequential_everywhere():
    calls = {NAIVE: 100.0, SEQUENTIAL: 25.0, SUB_ORDER: 20.0}
    results = {
        one.name: [
            {one.columns[0]: at, ALGORITHM: name, CALLS: made}
            for at in (1, 2)
            for name, made in calls.items()
        ]
        for one in EXPERIMENTS
    }
    assert [check.holds for check in check_calls(results)] == [True, True, True]
    results["liu-figure-7"][2][CALLS] = 30.0
    assert [check.holds for check in check_calls(results)] == [True, True, False]
    results["liu-figure-4"][4][CALLS] = 50.0
    assert [check.holds for check in check_calls(results)] == [False, True, False]


@pytest.mark.parametrize(
    ("naive", "sequential", "sub_order", "kept"),
    [
        ((4_900, 4_990), (1_593, 1_784), (1_200, 1_500), [True, True, True]),
        ((4_400, 4_990), (1_593, 1_500), (1_200, 1_100), [False, False, False]),
        ((4_900, 4_990), (1_000, 1_300), (900, 1_190), [False, True, False]),
    ],
)
def test_lengths_are_judged_by_what_the_paper_says(naive, sequential, sub_order, kept):
    made = {NAIVE: naive, SEQUENTIAL: sequential, SUB_ORDER: sub_order}
    rows = [
        {"longest": at, ALGORITHM: name, CALLS: calls, "predicates": 5_000}
        for name, both in made.items()
        for at, calls in zip((5, 11), both, strict=True)
    ]
    assert [shown.endswith(" reproduces.") for shown in describe_lengths(rows)] == kept


def test_standing_says_where_the_product_is_behind():
    took = {("A", 1): 8.0, ("B", 1): 4.0, (BATCH, 1): 2.0, ("A", 2): 1.0, ("B", 2): 3.0}
    took |= {(BATCH, 2): 2.0, (SINGLE, 1): 8.0, (SINGLE, 2): 8.0}
    rows = [
        {ALGORITHM: name, "n": n, MICROSECONDS: us, "nodes": 50, "index nodes": 900}
        for (name, n), us in took.items()
    ]
    experiment = Experiment("one", "", "", None, ("n", ALGORITHM, MICROSECONDS), None)
    standing = stand(experiment, rows)
    assert standing is not None
    assert standing.behind == [2]
    assert standing.describe() == [
        "Tamis in batches is 0.5 to 2.0 times as fast as the fastest of the others (B; A).",
        (
            "It is slower at n 2: 2.0 µs, A 1.0. For an event A looks at 50 nodes, and gets the "
            "true leaves as input; Tamis finds them, and evaluates its 900 nodes for a block of "
            "512 events."
        ),
        (
            "With single events it takes 2.0 to 8.0 times as long as the fastest of the others; "
            "this includes reading the event and finding its true leaves, which the others get as "
            "input."
        ),
    ]


def test_equal_counts_are_one_workload():
    def rows_of(took: float, nodes: int) -> list[dict]:
        return [
            {ALGORITHM: "A", MICROSECONDS: took, "nodes": nodes},
            {ALGORITHM: "B", MICROSECONDS: 3.0, "postings": 7},
            {ALGORITHM: "C", "postings": 7, "ran out": "of room"},
        ]

    measured = [("x", rows_of(8.0, 5)), ("y", rows_of(9.0, 6)), ("z", rows_of(12.0, 5))]
    repeats = find_repeats(measured)
    assert [(one.algorithm, one.ratio) for one in repeats] == [("A", 1.5), ("B", 1.0)]
    assert {one.sweeps for one in repeats} == {("x", "z")}
    assert "up to 1.50 times (A)" in describe_steadiness(repeats)
    assert find_repeats([("x", [{ALGORITHM: "A", MICROSECONDS: 1.0}])] * 2) == []


def rows_by_n(**took: tuple[float, float]) -> list[dict]:
    """The times of algorithms at n 1 and 10."""
    names = {"tree": A_TREE, "bdd": BDDS, "bop": BOP, "interval": INTERVAL, "scan": SCAN}
    return [
        {ALGORITHM: names[name], "n": n, MICROSECONDS: one}
        for name, both in took.items()
        for n, one in zip((1, 10), both, strict=True)
    ]


@pytest.mark.parametrize(
    ("statement", "kept", "broken"),
    [
        (rise(A_TREE, SCAN), {"tree": (1, 2), "scan": (5, 50)}, {"tree": (1, 1.9)}),
        (fall(A_TREE, SCAN), {"tree": (2, 1), "scan": (50, 5)}, {"tree": (1.9, 1)}),
        (stay(A_TREE, SCAN), {"tree": (1, 1.9), "scan": (1.9, 1)}, {"tree": (1, 2.1)}),
        (scale_linearly, {"tree": (1, 19), "scan": (1, 6)}, {"tree": (1, 21)}),
        (only_a_tree_scales, {"tree": (1, 3), "scan": (1, 6)}, {"tree": (1, 4)}),
        (are_similar, {"bop": (1, 9), "interval": (1.9, 5)}, {"bop": (1, 11)}),
        (are_behind_scan, {"bop": (1, 9), "interval": (1, 8), "scan": (1, 7)}, {"bop": (1, 6)}),
        (keep_ranking, {"tree": (1, 9), "bdd": (2, 5), "scan": (3, 9)}, {"tree": (7, 1)}),
    ],
)
def test_statements_are_judged_by_a_factor(statement, kept, broken):
    assert statement("n", rows_by_n(**kept)).endswith(" reproduces.")
    assert " does not reproduce" in statement("n", rows_by_n(**(kept | broken)))


def test_statements_tell_the_first_and_the_last():
    rows = rows_by_n(tree=(1, 2), bdd=(8, 9), scan=(50, 40))[:3] + rows_by_n(scan=(50, 40))
    assert describe_ends("n", rows) == (
        "From n 1 to 10: A-Tree 1.0 to 2.0 µs, 2 times; BDD 8.0 to 8.0 µs, 1 times at n 1, its "
        "last; Scan 50.0 to 40.0 µs, 0.8 times."
    )


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [(70.0, "times or more) reproduces."), (81.0, "does not reproduce for random, alphabetical.")],
)
def test_overlap_must_outperform_all_other_clusterings(overlap, expected):
    took = {BEST: 100.0, BY_METHOD["random"]: 80.0, BY_METHOD["alphabetical"]: 80.0}
    shared = {"queries": 9, POSTINGS: 5, "superqueries": 3}
    rows = [
        {ALGORITHM: name, MICROSECONDS: us} | shared
        for name, us in (took | {OVERLAP: overlap}).items()
    ]
    assert judge_methods(rows)[0].endswith(expected)


@pytest.mark.parametrize(
    ("took", "expected"),
    [
        ((97, 98, 99), "at most) reproduces; that wider masks are no faster than 64 bits rep"),
        ((112, 119, 116), "at most) does not reproduce; that wider masks are no faster than 64 b"),
        (
            (96, 92, 120),
            "at most) reproduces; that wider masks are no faster than 64 bits does not",
        ),
        ((80, 92, 120), "at most) does not reproduce; that wider masks are no faster than 64 bits"),
    ],
)
def test_wider_masks_must_gain_slightly(took, expected):
    rows = [{ALGORITHM: OVERLAP, MICROSECONDS: 100}]
    names = zip(BY_WIDTH.values(), took, strict=True)
    rows += [{ALGORITHM: name, MICROSECONDS: us} for name, us in names]
    (found,) = judge_widths(rows)
    assert expected in found


def test_growth_must_be_slightly_more_than_linear():
    growth = {PRIMITIVE: 1.5, SPLIT: 0.9, BLOOM: 1.1, BEST: 0.7, BATCH: 0.3}
    rows = [
        {"queries": n, ALGORITHM: name, MICROSECONDS: n * share, POSTINGS: n, ACCUMULATORS: n}
        for name, last in growth.items()
        for n, share in ((1, 1), (8, last))
    ]
    _, roughly, exactly, _ = judge_growth(rows)
    assert roughly.endswith(" reproduces.")
    assert "does not reproduce for split lists; that partitions" in exactly
    assert exactly.endswith(" does not reproduce.")
