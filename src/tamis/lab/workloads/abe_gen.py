"""ABE-Gen, the generator of arbitrary Boolean expressions of the A-Tree paper (§6.1, Table 3).

An expression is a tree of `depth` levels. As in the paper's Figure 7, predicates are at level 1,
subexpressions made of predicates at level 2, and so on up to the expression itself. A node above
level 1 has an operator; AND and OR have `n_children` operands, NOT one, XOR and XNOR two. At the
defaults that is 3.5² = 12.25 predicates per expression.

The paper leaves open some points, which are decided here as follows:

- *Sharing.* The nodes below the root are drawn from a pool per level by P(r) = C / r^α. A pool has
  10^-α members per use; at α = 0 each is used once instead of drawn, so all nodes differ, as the
  paper says. The rule is ours: at the defaults it comes close to both figures of §6.1, 4.33 uses of
  a subexpression and 18.35 of a predicate. `sharing` measures them.
- *Attributes.* "The predicates' attributes are also drawn following the Zipf distribution": with
  `dimension_alpha`, in predicates and in events, since the attributes of most predicates are those
  of most events.
- *Predicates.* Attributes d0, d1, … are integers from 0 to `cardinality` - 1, values are drawn
  uniformly, operators by `PREDICATE_SHARES`. These were chosen so that at the defaults an event
  satisfies about 4.3% of the expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.lab.workloads.abe_forest import AbeParams, draw_forest
from tamis.lab.workloads.abe_write import join_forest, measure_sharing, write_forest
from tamis.lab.workloads.draws import Ints, draw_subsets, sparse_table, zipf_shares
from tamis.language import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.lab.workloads.abe_forest import Forest
    from tamis.lab.workloads.abe_write import LevelSharing
    from tamis.language.ast import Condition


class AbeGen:
    """Expressions and events; equal parameters give equal workloads."""

    def __init__(self, params: AbeParams | None = None) -> None:
        self.params = params or AbeParams()

    @property
    def schema(self) -> dict[str, str]:
        """The type of each attribute."""
        return {f"d{dimension}": "integer" for dimension in range(self.params.n_dimensions)}

    # ── expressions ────────────────────────────────────────────────────────────────────────

    def expressions(self, n: int | None = None) -> list[str]:
        """A workload of `n` expressions as text, `n_expressions` by default.

        Pools grow with `n`, so sharing does not depend on it, and a shorter workload is not a
        prefix of a longer one.
        """
        return write_forest(self.forest(n))

    def forest(self, n: int | None = None) -> Forest:
        """The same workload as arrays."""
        return draw_forest(self.params, self.params.n_expressions if n is None else n)

    def conditions(self, n: int | None = None) -> list[Condition]:
        """The parsed expressions, typed; equal parts are one object.

        Far faster than parsing them: only the pool of predicates is parsed.
        """
        return join_forest(self.forest(n), Schema.of(self.schema))

    def sharing(self, n: int | None = None) -> list[LevelSharing]:
        """How often predicates and subexpressions are used, level by level, identified by their
        text.
        """
        return measure_sharing(self.forest(n))

    # ── events ─────────────────────────────────────────────────────────────────────────────

    def events(self, n: int) -> list[dict[str, int]]:
        """Events as dictionaries."""
        dimensions, values = self._draw_events(n)
        names = list(self.schema)
        return [
            dict(zip([names[dimension] for dimension in row], numbers, strict=True))
            for row, numbers in zip(dimensions.tolist(), values.tolist(), strict=True)
        ]

    def event_table(self, n: int) -> pa.Table:
        """The same events as a table with a nullable column for each dimension."""
        return sparse_table(list(self.schema), *self._draw_events(n))

    def _draw_events(self, n: int) -> tuple[Ints, Ints]:
        """Dimensions and values, a row per event."""
        params = self.params
        rng = np.random.default_rng((params.seed, 1))
        shares = zipf_shares(params.n_dimensions, params.dimension_alpha)
        dimensions = draw_subsets(rng, shares, n, params.event_size)
        values = rng.integers(0, params.cardinality, size=dimensions.size)
        return dimensions, values.reshape(dimensions.shape)
