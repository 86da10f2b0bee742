"""Does one condition imply another? Decided from the shape of canonical forms alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.language.ast import And, Or

if TYPE_CHECKING:
    from tamis.language.ast import Condition

MOST_STEPS: Final = 10_000  # pairs of parts that are compared


class _OutOfStepsError(Exception):
    """The conditions are too large to be compared."""


def implies(left: Condition, right: Condition) -> bool:
    """Whether `right` is certainly TRUE for every event for which `left` is TRUE.

    Both are canonical. It knows AND and OR, and that a part implies itself; it does not compare
    constants (`a > 5` and `a > 3`). So False means that it is not known.
    """
    try:
        return _Comparison().implies(left, right)
    except _OutOfStepsError:
        return False


class _Comparison:
    def __init__(self) -> None:
        self._n_left = MOST_STEPS

    def implies(self, left: Condition, right: Condition) -> bool:
        self._n_left -= 1
        if self._n_left < 0:
            raise _OutOfStepsError
        if left == right:
            return True
        if isinstance(right, And):
            return all(self.implies(left, own) for own in right.operands)
        if isinstance(left, Or):
            return all(self.implies(own, right) for own in left.operands)
        if isinstance(right, Or) and any(self.implies(left, own) for own in right.operands):
            return True
        return isinstance(left, And) and any(self.implies(own, right) for own in left.operands)
