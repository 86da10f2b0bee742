"""Copies of a store that is in use."""

from __future__ import annotations

import pytest

from tamis.errors import StoreError
from tamis.subscriptions import Accepted, Subscribe, SubscriptionStore


def test_a_copy_is_a_store(store, place, tmp_path):
    store.apply([Subscribe("a", "x = 1", tags=("t",)), Subscribe("b", "x = 2")])
    target = tmp_path / "copy"
    if "://" in str(place):
        with pytest.raises(StoreError, match="PostgreSQL") as raised:
            store.backup(target)
        assert "pg_dump" in raised.value.hint
        return
    assert store.backup(target) == 2
    store.apply([Subscribe("c", "x = 3")])
    with SubscriptionStore.open(target) as copied:
        assert [own.id for own in copied.list(tag="t").subscriptions] == ["a"]
        assert (copied.last_change, copied.epoch) == (2, store.epoch)
        assert copied.renew_epoch() != store.epoch
        assert copied.apply([Subscribe("d", "x = 4")]) == [Accepted(3)]
    assert store.get("d") is None
