"""How kernels are compiled.

A kernel owns no memory: the caller passes its arrays, which live as long as the call. So reference
counting is off; Numba would count each array each time it is passed on. Without it, reading
expressions and sharing their nodes is twice as fast.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from numba import njit

# @kernel, or @kernel(inline="always"); @kernel(_nrt=True) for a kernel that allocates arrays.
kernel: Any = partial(njit, cache=True, nogil=True, _nrt=False)
