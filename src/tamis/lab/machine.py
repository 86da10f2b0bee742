"""The contract of the lab: each algorithm is a machine that is given trees and answers events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.forest import Rows, Tree


class Machine(ABC):
    """One algorithm of one paper."""

    name: ClassVar[str]  # as the paper has it
    paper: ClassVar[str]  # and its section

    def __init__(self, trees: Mapping[int, Tree], n_leaves: int) -> None:
        """Take in the trees, by the ordinal of their subscription; leaves are below `n_leaves`."""
        self.n_leaves = n_leaves
        self.counts: dict[str, int] = {}  # what the last `match` did: postings read and the like
        self.build(trees)

    @abstractmethod
    def build(self, trees: Mapping[int, Tree]) -> None:
        """Make the arrays. Raises `RanOutError` where a tree cannot be taken in."""

    @abstractmethod
    def match(self, satisfied: Rows) -> Rows:
        """The ordinals each event matches, rising, given the leaves it satisfies, rising."""

    def find(self, satisfied: Rows) -> Rows:
        """The same in the order in which the algorithm comes upon them: no paper sorts them."""
        return self.match(satisfied)

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """How much memory the arrays take."""


class Updatable(Machine):
    """A machine that takes subscriptions in and lets them go while it runs."""

    @abstractmethod
    def insert(self, ordinal: int, tree: Tree) -> None:
        """Take in one more subscription, whose ordinal is not in use."""

    @abstractmethod
    def delete(self, ordinal: int) -> None:
        """Let a subscription go."""
