"""The subscriptions of a part as a table, from which larger parts are built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tamis.versions.tables import list_all

if TYPE_CHECKING:
    import numpy as np

    from tamis.index.contents import Contents

NUMBER: Final = "\x01number"  # that the store gave the subscription; no user's column has this name


def list_rows(contents: Contents, is_hidden: np.ndarray | None) -> pa.Table:
    """The subscriptions that are not hidden, with all their details."""
    table = list_all(contents, with_attributes=True)
    unknown = pa.nulls(len(table), pa.int64())
    numbers = pa.array(contents.numbers) if len(contents.numbers) else unknown
    table = table.append_column(NUMBER, numbers)
    return table if is_hidden is None else table.filter(pa.array(~is_hidden))
