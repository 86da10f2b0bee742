"""Columns of subscriptions that look like switches, such as `enabled`, which Tamis does not
read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tamis.language.lookalikes import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

_ON: Final = ("active", "enabled", "live", "isactive", "isenabled", "islive")
_OFF: Final = ("archived", "deleted", "disabled", "inactive", "paused", "removed", "suspended")
_STATES: Final = ("state", "status")
_OFF_STATES: Final = (*_OFF, "cancelled", "canceled", "closed", "deprecated", "draft", "expired")
_OFF_STATES_TOO: Final = ("off", "retired", "stopped", "disable", "withdrawn")
_TRUE: Final = ("true", "t", "yes", "y", "on", "1", "1.0")
_FALSE: Final = ("false", "f", "no", "n", "off", "0", "0.0")


def is_switch(name: str) -> bool:
    """Whether a column of that name looks like a switch."""
    folded = fold(name)
    return folded in _ON or folded in _STATES or _bare(folded) in _OFF


def is_off(name: str, value: Any) -> bool:
    """Whether a subscription seems to be switched off by that value of such a column."""
    folded, text = fold(name), str(value).strip().casefold()
    if value is None or not text:
        return False
    if folded in _STATES:
        return text in _OFF_STATES or text in _OFF_STATES_TOO
    if folded in _ON:
        return text in _FALSE
    # A timestamp, as in deleted_at, is the time since when.
    return text in _TRUE or (folded.endswith("at") and text not in _FALSE)


def _bare(folded: str) -> str:
    """`is_deleted` and `deleted_at` as `deleted`."""
    return folded.removeprefix("is").removesuffix("at")


class Switches:
    """How many subscriptions seem to be switched off, by column, with the first such value."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, Any] = {}

    def add(self, name: str, value: Any, n_subscriptions: int = 1) -> None:
        """Add a value of a column that is a switch."""
        if is_off(name, value):
            self._counts[name] += n_subscriptions
            self._examples.setdefault(name, value)

    def add_all(self, attributes: Iterable[tuple[str, Any]]) -> None:
        """Add those columns of one subscription that are switches."""
        for name, value in attributes:
            if is_switch(name):
                self.add(name, value)

    def describe(self) -> list[str]:
        """One sentence about each column."""
        return [
            f"{name} is {_spell(self._examples[name])} in {_subscriptions(n)} and does not switch "
            f"{'it' if n == 1 else 'them'} off: leave out {'its row' if n == 1 else 'their rows'}"
            for name, n in sorted(self._counts.items())
        ]


def _subscriptions(n: int) -> str:
    return "1 subscription" if n == 1 else f"{n:,} subscriptions"


def _spell(value: Any) -> str:
    # Spark passes all values as strings.
    is_text = isinstance(value, str) and value not in ("true", "false", "0", "1")
    return f'"{value}"' if is_text else str(value).lower()
