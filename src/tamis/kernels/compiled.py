"""How kernels are compiled.

A kernel owns no memory: the caller passes its arrays, which live as long as the call. So reference
counting is off; Numba would count each array each time it is passed on. Without it, reading
expressions and sharing their nodes is twice as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from tamis.kernels.caching import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a kernel: @kernel, @kernel(inline="always"), or @kernel(_nrt=True) if it allocates
    arrays."""
    if function is None:
        return _compiler(options)
    return _compiler({})(function)


def _compiler(options: dict[str, Any]) -> Callable[[Any], Any]:
    chosen = {"nogil": True, "_nrt": False} | options

    def compile_kernel(function: Any) -> Any:
        compiled: Any = njit(**chosen)(function)
        if hasattr(compiled, "_cache"):  # it has none if compilation is turned off
            compiled._cache = KernelCache(function)
        return compiled

    return compile_kernel
