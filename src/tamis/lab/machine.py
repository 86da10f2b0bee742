"""The interface of the lab: each algorithm is a machine that is built from trees and matches
events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.forest import Rows, Tree


class Machine(ABC):
    """One algorithm of one paper."""

    name: ClassVar[str]  # its name in the paper
    paper: ClassVar[str]  # with its section

    def __init__(self, trees: Mapping[int, Tree], n_leaves: int) -> None:
        """Insert the trees, by the ordinal of their subscription; leaves are below `n_leaves`."""
        self.n_leaves = n_leaves
        self.counts: dict[str, int] = {}  # counts of the last `match`: postings read and the like
        self.build(trees)

    @abstractmethod
    def build(self, trees: Mapping[int, Tree]) -> None:
        """Build the arrays. Raises `RanOutError` if a tree is not supported."""

    @abstractmethod
    def match(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches, ascending, given the leaves it satisfies,
        ascending.
        """

    def find(self, satisfied: Rows) -> Rows:
        """The same in the order in which the algorithm finds them: no paper sorts them."""
        return self.match(satisfied)

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """The memory of the arrays."""


class Updatable(Machine):
    """A machine that supports insertion and deletion of subscriptions."""

    @abstractmethod
    def insert(self, ordinal: int, tree: Tree) -> None:
        """Insert a subscription, whose ordinal must not be in use."""

    @abstractmethod
    def delete(self, ordinal: int) -> None:
        """Delete a subscription."""
