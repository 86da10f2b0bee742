"""The result of the operator phase for one event."""

from __future__ import annotations

from typing import Any, NamedTuple


class Verdict(NamedTuple):
    """The operator subscriptions that an event satisfies, with substitutions if requested."""

    ordinals: set[int]
    bindings: dict[int, dict[str, Any]]
