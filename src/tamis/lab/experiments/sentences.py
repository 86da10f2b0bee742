"""Words that verdicts have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def does(is_so: bool) -> str:
    """The word of a verdict."""
    return "reproduces" if is_so else "does not reproduce"


def does_but(exceptions: Iterable[str]) -> str:
    """The word of a verdict on several, with those for which it does not hold."""
    listed = ", ".join(exceptions)
    return f"does not reproduce for {listed}" if listed else "reproduces"


def times(ratio: float) -> str:
    """A ratio for a sentence."""
    return f"{ratio:,.1f} times" if ratio < 20 else f"{ratio:,.0f} times"


def factor(ratio: float) -> str:
    """A ratio for a sentence, where its second decimal matters."""
    return f"{ratio:,.2f} times"


def spread(ratios: Iterable[float]) -> str:
    """The least and the most of ratios, for a sentence."""
    known = sorted(ratios)
    low, high = times(known[0]).removesuffix(" times"), times(known[-1])
    return high if f"{low} times" == high else f"{low} to {high}"


def over(one: Mapping[Any, float], other: Mapping[Any, float]) -> str:
    """By how much one series is above another, for a sentence."""
    return spread(one[x] / other[x] for x in one if x in other)


def saved(ours: float, theirs: float) -> str:
    """By how much less, in per cent, as the papers say it."""
    return f"{1 - ours / theirs:.0%} less" if ours <= theirs else f"{ours / theirs - 1:.0%} more"
