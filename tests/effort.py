"""How hard the tests try: the seed of everything random, and the number of examples.

`TAMIS_SEED=… make test` draws other examples; `TAMIS_EFFORT=…` multiplies their number.
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("TAMIS_SEED", "20260"))
EFFORT = int(os.environ.get("TAMIS_EFFORT", "1"))


def examples(n_examples: int) -> int:
    """The number of examples for a test that needs another than the default."""
    return n_examples * EFFORT
