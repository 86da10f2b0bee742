"""Three-valued truth: True, False, and None for undefined (A-Tree Table 2, which is SQL's).

In the order FALSE < undefined < TRUE, AND is the least, OR the greatest, NOT the mirror image,
and at_least(k) the k-th greatest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Truth: TypeAlias = bool | None

_RANKS: Final = {False: 0, None: 1, True: 2}
_TRUTHS: Final[tuple[Truth, ...]] = (False, None, True)


def not_(truth: Truth) -> Truth:
    """The opposite; undefined stays undefined."""
    return None if truth is None else not truth


def and_(truths: Iterable[Truth]) -> Truth:
    """False if one is false, else undefined if one is undefined, else true."""
    return _TRUTHS[min((_RANKS[truth] for truth in truths), default=2)]


def or_(truths: Iterable[Truth]) -> Truth:
    """True if one is true, else undefined if one is undefined, else false."""
    return _TRUTHS[max((_RANKS[truth] for truth in truths), default=0)]


def xor(truths: Iterable[Truth]) -> Truth:
    """Whether an odd number is true; undefined if one is undefined."""
    is_odd = False
    for truth in truths:
        if truth is None:
            return None
        is_odd ^= truth
    return is_odd


def at_least(k: int, truths: Iterable[Truth]) -> Truth:
    """Whether k are true; undefined if the undefined ones could decide it."""
    return _TRUTHS[sorted((_RANKS[truth] for truth in truths), reverse=True)[k - 1]]
