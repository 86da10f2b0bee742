"""How kernels are compiled.

A kernel owns no memory: its arrays come from outside and live as long as the call. So none is
counted, where Numba would count each one each time it is handed on: reading expressions and
sharing their nodes is twice as fast for it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from numba import njit

# @kernel, or @kernel(inline="always"); @kernel(_nrt=True) for one that makes arrays of its own.
kernel: Any = partial(njit, cache=True, nogil=True, _nrt=False)
