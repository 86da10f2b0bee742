"""What users do without an index, each done as well as its tool allows.

`PlainScan` and `NumpyScan` evaluate everything with array operations, `Lambdas` calls one compiled
Python lambda per expression, `BucketedLambdas` only those of expressions whose first test is true,
`PolarsSelect` is one bulk select over a batch of rows. Each takes typed conditions and answers as
the reference evaluator does: `match(event)` and `match_batch(events)` give the positions of the
conditions that are TRUE.

`RuleMatcher` is an automaton for simple rules over JSON texts, one by one: `match_text(text)`.
"""

from benchmarks.baselines.lambdas import BucketedLambdas, Lambdas
from benchmarks.baselines.numpy_scan import NumpyScan, PlainScan
from benchmarks.baselines.polars_select import PolarsSelect
from benchmarks.baselines.rule_matcher import RuleMatcher
from benchmarks.baselines.trees import Sharing

__all__ = [
    "BucketedLambdas",
    "Lambdas",
    "NumpyScan",
    "PlainScan",
    "PolarsSelect",
    "RuleMatcher",
    "Sharing",
]
