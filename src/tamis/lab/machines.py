"""All machines by name, for the contract tests and the experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import InputError
from tamis.lab.atree.a_tree import ATree
from tamis.lab.atree.bdd import BDD
from tamis.lab.atree.bop import BoP
from tamis.lab.atree.by_predicate import DeweyByPredicate, IntervalByPredicate
from tamis.lab.atree.translation import Translation
from tamis.lab.fontoura import Dewey, Dnf, Interval, Scan, ScanConjunctions

if TYPE_CHECKING:
    from tamis.lab.machine import Machine

_OF_FONTOURA: Final = (Scan, ScanConjunctions, Dnf, Dewey, Interval)
_OF_A_TREE: Final = (ATree, BoP, BDD, Translation, DeweyByPredicate, IntervalByPredicate)
MACHINES: Final[dict[str, type[Machine]]] = {
    machine.name: machine for machine in (*_OF_FONTOURA, *_OF_A_TREE)
}


def find_machine(name: str) -> type[Machine]:
    """The machine of that name."""
    if name not in MACHINES:
        raise InputError(f'no algorithm "{name}" in the lab; allowed: {", ".join(MACHINES)}')
    return MACHINES[name]
