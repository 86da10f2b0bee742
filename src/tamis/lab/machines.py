"""All machines by name; the contract tests and the experiments take them from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import InputError
from tamis.lab.fontoura import Dewey, Dnf, Interval, Scan, ScanConjunctions

if TYPE_CHECKING:
    from tamis.lab.machine import Machine

MACHINES: Final[dict[str, type[Machine]]] = {
    machine.name: machine for machine in (Scan, ScanConjunctions, Dnf, Dewey, Interval)
}


def find_machine(name: str) -> type[Machine]:
    """The machine of that name."""
    if name not in MACHINES:
        raise InputError(f'no algorithm "{name}" in the lab; allowed: {", ".join(MACHINES)}')
    return MACHINES[name]
