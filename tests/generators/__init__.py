"""Random schemas, conditions and events, each drawn from one `random.Random`.

The same seed gives the same examples everywhere: under Hypothesis, in bulk against Spark, in a
loop of a fuzzer. Values come from small pools, so that equalities really hold, and from pools of
edges (see `values`).
"""

from tests.generators.conditions import random_condition
from tests.generators.events import random_event
from tests.generators.grammar import random_untyped_condition
from tests.generators.schemas import random_schema, read_other_kinds

__all__ = [
    "random_condition",
    "random_event",
    "random_schema",
    "random_untyped_condition",
    "read_other_kinds",
]
