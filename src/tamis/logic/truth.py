"""Three-valued truth: True, False, and None for undefined (A-Tree Table 2, which is SQL's).

In the order FALSE < undefined < TRUE, AND is the minimum, OR the maximum, NOT reverses the order,
and at_least(k) is the k-th greatest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Truth: TypeAlias = bool | None

_RANKS: Final = {False: 0, None: 1, True: 2}
_TRUTHS: Final[tuple[Truth, ...]] = (False, None, True)


def not_(truth: Truth) -> Truth:
    """The negation; undefined stays undefined."""
    return None if truth is None else not truth


def and_(truths: Iterable[Truth]) -> Truth:
    """False if any operand is false, else undefined if any is undefined, else true."""
    return _TRUTHS[min((_RANKS[truth] for truth in truths), default=2)]


def or_(truths: Iterable[Truth]) -> Truth:
    """True if any operand is true, else undefined if any is undefined, else false."""
    return _TRUTHS[max((_RANKS[truth] for truth in truths), default=0)]


def xor(truths: Iterable[Truth]) -> Truth:
    """Whether an odd number of operands is true; undefined if any is undefined."""
    is_odd = False
    for truth in truths:
        if truth is None:
            return None
        is_odd ^= truth
    return is_odd


def at_least(k: int, truths: Iterable[Truth]) -> Truth:
    """Whether at least k operands are true; undefined if the undefined ones could decide it."""
    return _TRUTHS[sorted((_RANKS[truth] for truth in truths), reverse=True)[k - 1]]
