"""The error of a query that Elasticsearch would refuse too."""

from __future__ import annotations

from tamis.errors import RowError


def bad(message: str, *, hint: str | None = None) -> RowError:
    """The error."""
    return RowError("bad-rule", message, hint=hint)
