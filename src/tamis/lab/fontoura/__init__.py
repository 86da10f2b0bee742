"""Fontoura's algorithms: trees of AND and OR over conjunctions."""

from tamis.lab.fontoura.dewey import Dewey
from tamis.lab.fontoura.dnf import Dnf
from tamis.lab.fontoura.interval import Interval
from tamis.lab.fontoura.scan import Scan
from tamis.lab.fontoura.scan_conjunctions import ScanConjunctions

__all__ = ["Dewey", "Dnf", "Interval", "Scan", "ScanConjunctions"]
