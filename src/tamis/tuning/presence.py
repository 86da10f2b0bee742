"""Which attributes do events have, of which type, and can a rule be TRUE at all?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.language.ast import EVENT, Literal
from tamis.language.names import print_path
from tamis.language.types import BOOLEAN, WrongTypeError, read_value
from tamis.tuning.possible import find_lacking, possible_truths

if TYPE_CHECKING:
    from tamis.language.ast import Condition
    from tamis.language.schema import Path, Schema

SHOWN: Final = 60
LISTS_HINT: Final = " (imported rules test lists if types are learned from events: --learn)"
FALSE: Final = Literal(False, BOOLEAN)


class IgnoredValues(NamedTuple):
    """Values that are treated as missing, because their type is not that of the attribute."""

    attribute: str
    type: str  # of the attribute
    values: int  # how many
    example: str


class Presence:
    """Counts the values of attributes in events."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.n_events = 0
        self.n_read: Counter[Path] = Counter()
        self.n_wrong: Counter[Path] = Counter()
        self.wrong_example: dict[Path, str] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Count the values of one event."""
        self.n_events += 1
        self.n_read[EVENT] += 1  # what any_attribute tests
        for path in self._schema:
            value: Any = event
            for name in path:
                value = value.get(name) if isinstance(value, Mapping) else None
            if value is None:
                continue
            try:
                read_value(value, self._schema[path])
                self.n_read[path] += 1
            except WrongTypeError:
                self.n_wrong[path] += 1
                self.wrong_example.setdefault(path, repr(value)[:SHOWN])

    def list_ignored(self) -> list[IgnoredValues]:
        """The attributes that have values of another type, those with the most first."""
        return [
            IgnoredValues(
                print_path(path), str(self._schema[path]), n_values, self.wrong_example[path]
            )
            for path, n_values in self.n_wrong.most_common()
        ]

    def why_never(self, condition: Condition) -> list[str]:
        """The reasons why no such event can satisfy the canonical form of a rule; none if one
        could.
        """
        if condition == FALSE:
            return ["its conditions exclude each other: no event can satisfy it"]
        if True in possible_truths(condition, self._is_absent):
            return []
        lacking = sorted(set(find_lacking(condition, self._is_absent)))
        absent = [print_path(path) for path in lacking if not self.n_wrong[path]]
        reasons = [f"no event has {_join(absent)}"] if absent else []
        return reasons + [self._describe(path) for path in lacking if self.n_wrong[path]]

    def _is_absent(self, path: Path) -> bool:
        return not self.n_read[path]

    def _describe(self, path: Path) -> str:
        example = self.wrong_example[path]
        is_list = example.startswith("[") and self._schema[path].element is None
        return (
            f"{print_path(path)} has values of another type than {self._schema[path]}, such as "
            f"{example}{LISTS_HINT if is_list else ''}"
        )


def _join(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
