"""Results as short tables of text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP: Final = 2  # blanks between columns


def format_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The rows under the names of their columns."""
    cells = [list(names), *([format_value(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) + GAP for column in zip(*cells, strict=True)]
    lines = ("".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join(lines)


def format_value(value: Any) -> str:
    """The value in one line: integers with separators, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return " ".join(str(value).split())
