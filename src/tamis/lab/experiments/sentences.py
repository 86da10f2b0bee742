"""Phrases shared by verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def does(is_so: bool) -> str:
    """The phrase of a verdict."""
    return "reproduces" if is_so else "does not reproduce"


def does_but(exceptions: Iterable[str]) -> str:
    """The phrase of a verdict on several subjects, with the exceptions."""
    listed = ", ".join(exceptions)
    return f"does not reproduce for {listed}" if listed else "reproduces"


def times(ratio: float) -> str:
    """A ratio as text."""
    return f"{ratio:,.1f} times" if ratio < 20 else f"{ratio:,.0f} times"


def factor(ratio: float) -> str:
    """A ratio as text, if its second decimal matters."""
    return f"{ratio:,.2f} times"


def spread(ratios: Iterable[float]) -> str:
    """The minimum and maximum of ratios, as text."""
    known = sorted(ratios)
    low, high = times(known[0]).removesuffix(" times"), times(known[-1])
    return high if f"{low} times" == high else f"{low} to {high}"


def over(one: Mapping[Any, float], other: Mapping[Any, float]) -> str:
    """By what factor one series is above another, as text."""
    return spread(one[x] / other[x] for x in one if x in other)


def saved(ours: float, theirs: float) -> str:
    """By how many per cent a value is smaller, in the papers' wording."""
    return f"{1 - ours / theirs:.0%} less" if ours <= theirs else f"{ours / theirs - 1:.0%} more"
