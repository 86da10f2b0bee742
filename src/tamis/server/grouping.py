"""Whether the matches of a subscription can be grouped as it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.broker.groupings import GROUP_SIMILAR, read_window
from tamis.broker.minhash import expect_library
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.server.context import ServerContext


def expect_grouping(context: ServerContext, attributes: Mapping[str, Any]) -> None:
    """Raise an error if the attributes of a subscription ask for groups that cannot be made."""
    if read_window(attributes) is None:
        return
    expect_library()
    if context.settings.archive.keep == "none":
        raise Problem(
            422,
            "no-texts",
            "similar matches cannot be grouped: the archive keeps no texts",
            hint='set archive.keep to "matched" or "all"',
        )


def add_grouping(attributes: Mapping[str, Any], window: str | None) -> dict[str, Any]:
    """The attributes with another window; None removes it."""
    others = {name: own for name, own in attributes.items() if name != GROUP_SIMILAR}
    return others if window is None else others | {GROUP_SIMILAR: window}
