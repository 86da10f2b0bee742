"""A server in another process, for clients."""

from __future__ import annotations

import pytest

from tests.server.conftest import STORES, choose_store, postgres
from tests.server.processes import serving

__all__ = ["postgres"]


@pytest.fixture(scope="module", params=STORES)
def address(request, tmp_path_factory):
    """The address of a server that needs no keys."""
    store = choose_store(request)
    options = [] if store is None else ["--store", store]
    folder = tmp_path_factory.mktemp("server")
    # Webhooks of tests are on this machine.
    with serving(folder, *options, TAMIS_DELIVERY_ALLOW_PRIVATE_ADDRESSES="true") as server:
        yield server.url
