"""A part's subscriptions and rejects as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from tamis.index.stored_texts import all_texts
from tamis.index.validity import limits_columns
from tamis.match.catalogue import Catalogue, IndexPart
from tamis.match.details import Details
from tamis.versions.part_files import REJECT_SCHEMA, REJECTS

if TYPE_CHECKING:
    from tamis.index.contents import Contents
    from tamis.versions.manifest import Part
    from tamis.versions.part_set import OpenPart, PartSet

OWNER: Final = "owner"
# All attributes of a subscription in one column, as JSON objects; no user's column has this name.
PACKED: Final = "\x01attributes"


def read_rejects(parts: PartSet, part: Part) -> pa.Table:
    """The subscriptions that the part's builder rejected, and why."""
    table = parts.read(part, REJECTS)
    return REJECT_SCHEMA.empty_table() if table is None else table


def _read_owner(contents: Contents) -> pa.Array:
    return Details(Catalogue([IndexPart(contents)])).column(OWNER)


def list_subscriptions(part: OpenPart, *, with_attributes: bool = False) -> pa.Table:
    """The part's subscriptions, except those that later parts replace or remove.

    With attributes, there is one more column: `PACKED`.
    """
    table = list_all(part.contents, with_attributes=with_attributes)
    is_gone = None if part.gone is None else pc.is_in(part.contents.ids, part.gone)
    return table if is_gone is None else table.filter(pc.invert(is_gone))


def list_all(contents: Contents, *, with_attributes: bool) -> pa.Table:
    """All subscriptions of an index."""
    n_subscriptions = len(contents.ids)
    nobody = pa.nulls(n_subscriptions, pa.string())
    owner = _read_owner(contents) if OWNER in contents.attribute_names else nobody
    start, end = limits_columns(contents.validity, n_subscriptions)
    columns = {
        "subscription_id": contents.ids,
        "expression": all_texts(contents.texts),
        "tags": contents.tags,
        OWNER: owner.cast(pa.string()),
        "valid_from": start,
        "valid_until": end,
    }
    if with_attributes:
        own = contents.attributes
        columns[PACKED] = nobody if own is None else all_texts(own)
    return pa.table(columns)
