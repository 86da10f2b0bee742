"""Cold start: the kernels are compiled once on each machine, which takes a while and is said."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS_PER_KERNEL: Final = 0.8  # on one core of an ordinary machine
_PACKAGES: Final = ("tamis.text", "tamis.index", "tamis.events", "tamis.match")
# Apart: who has no operators never needs their kernels.
SCHEDULING: Final = ("tamis.operators",)

# Every operator and every kind of column, so that as few kernels as can be are left out.
_SUBSCRIPTIONS: Final = {
    "set": "a IN (1, 2) AND b <> 'x' AND c < 0.5",
    "pattern": "b LIKE '%y%' OR NOT b RLIKE 'z+' OR b ILIKE 'q_r%'",
    "array": "array_contains(t, 'u') AND a IS NOT NULL AND c IS NULL",
    "pair": "a < d OR d = 3",
    "counted": "at_least(2, a = 1, b = 'x', c > 0.5)",
    "parity": "a = 1 XOR b = 'x'",
    "shared": "(a = 1 OR d = 4) AND (m > 1.25 OR e <= DATE '2024-01-01')",
    "words": "matches(b, 'x') OR matches_phrase(b, 'x y')",
    "always": "TRUE",
}
_SCHEMA: Final = "a INT, b STRING, c DOUBLE, d INT, e DATE, m DECIMAL(9,2), t ARRAY<STRING>"
_EVENTS: Final = (
    {"a": 1, "b": "xyz", "c": 0.25, "d": 3, "e": "2023-05-01", "m": 2, "t": ["u", None]},
    {"b": "x", "t": []},
)


def is_cold() -> bool:
    """Whether kernels still have to be compiled, those that build an index included.

    Judged by package: one that has no compiled kernel at all is cold. Which kernels of a package
    are ever called depends on the subscriptions and events.
    """
    importlib.import_module("tamis.index.build")
    return bool(_cold_packages(_PACKAGES))


def announce(
    tell: Callable[[str], None] | None = None, packages: tuple[str, ...] = _PACKAGES
) -> bool:
    """Say that kernels are about to be compiled, if they are; whether it was said.

    Without `tell` it is said on stderr where that is a terminal, and nowhere else.
    """
    if tell is None:
        if sys.stderr is None or not sys.stderr.isatty():
            return False
        tell = _tell_terminal
    cold = _cold_packages(packages)
    if not cold:
        return False
    seconds = SECONDS_PER_KERNEL * sum(len(kernels) for kernels in cold)
    tell(f"compiling kernels, about {5 * round(seconds / 5) or 5} s, once on this machine")
    return True


def warm_up() -> None:
    """Compile the kernels, or load them from the cache, by building and matching a tiny index."""
    from tamis.match.index import build

    index = build(_SUBSCRIPTIONS, _SCHEMA)
    batch = index.encode(list(_EVENTS))
    index.match(_EVENTS[0])
    index.match_batch(batch)
    index.match_batch(batch, subset=["set"])
    index.count_by_subscription(batch)
    index.count_by_event(batch)
    index.summarise_by_subscription(batch)
    index.summarise_by_event(batch)
    _warm_up_schedule()


def _warm_up_schedule() -> None:
    """The same for what chooses calls of operators."""
    from tamis.match.index import build
    from tamis.operators.registry import Registry, operator

    registry = Registry()
    operator("p(?integer)", timeout=None, registry=registry)(lambda event: [1, 2])
    operator("q(integer)", timeout=None, registry=registry)(lambda event, number: number == 1)
    texts = {
        "joined": "p(?x) AND q(1) AND ?x > 1",
        "either": "q(1) AND (q(2) OR NOT q(3))",
        "both": "q(1) AND q(2)",
    }
    index = build(texts, operators=registry)
    index.match({})


def _tell_terminal(message: str) -> None:
    sys.stderr.write(f"tamis: {message}\n")


def _cold_packages(packages: tuple[str, ...]) -> list[list[Any]]:
    """The kernels of each of the packages of which none is compiled."""
    importlib.import_module("tamis.match.index")  # and with it every kernel that matching uses
    by_package = [
        [kernel for name in _kernel_modules(package) for kernel in _kernels_of(name)]
        for package in packages
    ]
    return [kernels for kernels in by_package if kernels and not any(map(_is_cached, kernels))]


def _kernel_modules(package: str) -> list[str]:
    """The modules of kernels that have been imported."""
    names = (name for name in sys.modules if name.startswith(f"{package}."))
    return [name for name in names if "kernels" in name.split(".")]


def _kernels_of(name: str) -> list[Any]:
    """The functions of a module that are compiled for their own sake."""
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
    # Numba has no public way to ask its cache; a change there means no notice, nothing worse.
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    load_index = getattr(file, "_load_index", None)
    try:
        return load_index is None or bool(load_index())
    except (OSError, ValueError, EOFError):
        return False
