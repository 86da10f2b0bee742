"""Names the subscription that fixed the type of an attribute, for those that contradict it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.index.deciders import DECLARE, find_path
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.index.build import Built
    from tamis.language.limits import Limits
    from tamis.language.schema import Path


def name_deciders(built: Built, deciders: Mapping[Path, str], limits: Limits) -> None:
    """Add to the hint of each reject of a wrong type why the attribute has its type."""
    schema = built.contents.schema
    for reject in built.rejects:
        if reject.code != "type-mismatch":
            continue
        path = find_path(reject, schema, limits)
        if path is not None and path in deciders:
            why = (
                f"{print_path(path)} is {schema.get(path)} since subscription "
                f'"{deciders[path]}" was added'
            )
            reject.hint = f"{reject.hint or DECLARE}; {why}"
