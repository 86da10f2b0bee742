"""Cold start: kernels are compiled once on each machine, and a message explains the delay.

A package is cold if none of its kernels is compiled: which of them are called depends on the
subscriptions and events.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS_PER_KERNEL: Final = 0.8  # on one core of an ordinary machine
MATCHING: Final = ("tamis.text", "tamis.index", "tamis.events", "tamis.match")
# Separate, because only subscriptions with operators need these kernels.
SCHEDULING: Final = ("tamis.operators",)


def announce(
    report: Callable[[str], None] | None = None, packages: tuple[str, ...] = MATCHING
) -> bool:
    """Report that kernels are about to be compiled, if they are; returns whether it was reported.

    Only kernels of imported modules count: import what you are going to use first. Without
    `report`, the message goes to stderr if that is a terminal, and otherwise nowhere.
    """
    if report is None:
        if sys.stderr is None or not sys.stderr.isatty():
            return False
        report = _print_on_terminal
    cold = cold_packages(packages)
    if not cold:
        return False
    seconds = SECONDS_PER_KERNEL * sum(len(kernels) for kernels in cold)
    report(f"compiling kernels, about {5 * round(seconds / 5) or 5} s, once on this machine")
    return True


def _print_on_terminal(message: str) -> None:
    sys.stderr.write(f"tamis: {message}\n")


def cold_packages(packages: tuple[str, ...]) -> list[list[Any]]:
    """The kernels of each cold package."""
    by_package = [
        [kernel for name in _kernel_modules(package) for kernel in _kernels_of(name)]
        for package in packages
    ]
    return [kernels for kernels in by_package if kernels and not any(map(_is_cached, kernels))]


def _kernel_modules(package: str) -> list[str]:
    """The imported modules of kernels."""
    names = (name for name in sys.modules if name.startswith(f"{package}."))
    return [name for name in names if "kernels" in name.split(".")]


def _kernels_of(name: str) -> list[Any]:
    """The functions of a module that are compiled separately."""
    from numba.core.dispatcher import Dispatcher

    # Imported kernels belong to another module; inlined ones are part of their callers.
    return [
        kernel
        for kernel in vars(sys.modules[name]).values()
        if isinstance(kernel, Dispatcher)
        and kernel.py_func.__module__ == name
        and kernel.targetoptions.get("inline", "never") == "never"
    ]


def _is_cached(kernel: Any) -> bool:
    """Whether the kernel, as it is written now, is compiled in this process or on disk."""
    if kernel.overloads:
        return True
    # Numba's cache has no public interface. If it changes, only the message is lost.
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    load_index = getattr(file, "_load_index", None)
    try:
        return load_index is None or bool(load_index())
    except (OSError, ValueError, EOFError):
        return False
