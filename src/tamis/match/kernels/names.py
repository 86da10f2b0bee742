"""Prefetches objects before Python touches them."""

from __future__ import annotations

from tamis.kernels.compiled import kernel
from tamis.kernels.prefetch import prefetch_address


@kernel
def fetch_objects(places, addresses):
    """Prefetch the objects at these positions."""
    for at in range(len(places)):
        prefetch_address(addresses[places[at]])
