"""Checks of a Sigma rule before pySigma reads it, whose own errors name classes of Python."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from tamis.errors import RowError
from tamis.importers.model import not_expressible
from tamis.language.patterns import BadPatternError, compile_regex

if TYPE_CHECKING:
    from collections.abc import Mapping

_KINDS: Final = (
    (bool, "a Boolean"),
    (int | float, "a number"),
    (str, "a string"),
    (date, "a date"),
    (bytes, "binary data"),
    (list, "a list"),
    (dict, "a mapping"),
    (type(None), "empty"),
)
TIMEFRAME_NOTE: Final = "timeframe is not used: it is for conditions that count events"
EMPTY_NOTE: Final = "an empty list of values is read as null: the field is absent"
KEYWORD_NOTE: Final = (
    "keywords with startswith or endswith are searched for anywhere in a text, like all keywords"
)
_ENCODINGS: Final = frozenset(("base64", "base64offset", "utf16", "utf16be", "wide"))
_FORGOTTEN: Final = (
    ("cased", frozenset(("fieldref",)), "two fields are compared without regard to case"),
    (
        "re",
        frozenset(("startswith", "endswith")),
        "write ^ or $ in the regular expression instead",
    ),
    ("expand", _ENCODINGS, "write the rule with the values, or give values that are encoded"),
)


def name_kind(value: Any) -> str:
    """What a value of YAML is, for people."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "an unknown value")


def check_rule(content: Mapping[Any, Any]) -> list[str]:
    """Notes about what is read otherwise than its author may expect; raises an error for an id, a
    name of a field or a value that pySigma cannot read.
    """
    notes: dict[str, None] = {}
    if content.get("id") is not None:
        _check_id(content["id"])
    for part in ("detection", "filter"):
        detections = content.get(part)
        if isinstance(detections, dict):
            if "timeframe" in detections:
                notes[TIMEFRAME_NOTE] = None
            for name, own in detections.items():
                if name not in ("condition", "timeframe", "rules"):
                    _Checker(str(name), notes).check(own)
    return list(notes)


def _check_id(given: Any) -> None:
    try:
        UUID(given if isinstance(given, str) else "")
    except ValueError:
        raise _bad(
            f"the id is {given!r}; a UUID is expected",
            hint="such as id: e28a5a99-da44-436d-b7a0-2afc20a5f413",
        ) from None


class _Checker(NamedTuple):
    """Checks the values below a detection or a field."""

    place: str  # its name
    notes: dict[str, None]  # what is found
    is_field: bool = False
    modifiers: tuple[str, ...] = ()

    def check(self, value: Any) -> None:
        """Check a value, or each in a list or mapping."""
        if isinstance(value, dict) and not self.is_field:
            for key, own in value.items():
                self._enter(key).check(own)
        elif isinstance(value, list):
            if self.is_field and not value:
                self.notes[EMPTY_NOTE] = None
            for own in value:
                if self.is_field and isinstance(own, list):
                    raise self._wrong("a list inside a list")
                self.check(own)
        elif isinstance(value, date | bytes):
            shown = value.isoformat() if isinstance(value, date) else "!!binary"
            raise _bad(
                f"{self.place}: {shown} is {name_kind(value)}; a string or a number is expected",
                hint="write it in quotes",
            )
        elif not isinstance(value, str | int | float | None):
            raise self._wrong(name_kind(value))
        elif "re" in self.modifiers:
            _check_regex(value, self.place)

    def _enter(self, key: Any) -> _Checker:
        if not isinstance(key, str):
            shown = str(key).lower() if isinstance(key, bool) else str(key)
            raise _bad(
                f"{self.place}: the field {shown} is {name_kind(key)}; a name is expected",
                hint=f"write it in quotes: '{shown}'",
            )
        field, *modifiers = key.split("|")
        _check_modifiers(key, set(modifiers))
        if not field and {"startswith", "endswith"} & set(modifiers):
            self.notes[KEYWORD_NOTE] = None
        return _Checker(field or self.place, self.notes, bool(field), tuple(modifiers))

    def _wrong(self, what: str) -> RowError:
        return _bad(
            f"{self.place}: the value is {what}; a string, a number, a Boolean or a list of these "
            "is expected"
        )


def _check_modifiers(key: str, modifiers: set[str]) -> None:
    """Raise an error for modifiers of which pySigma forgets one."""
    for first, others, hint in _FORGOTTEN:
        found = sorted(others & modifiers)
        if first in modifiers and found:
            raise not_expressible(f"{key}: {first} together with {found[0]}", hint=hint)


def _check_regex(value: Any, place: str) -> None:
    if not isinstance(value, str):
        raise _bad(
            f"{place}: the regular expression is {name_kind(value)}; a string is expected",
            hint="write it in quotes",
        )
    try:
        compile_regex(value)
    except BadPatternError as error:
        reason = str(error.args[0]).removeprefix("not an RE2 regular expression: ")
        raise _bad(
            f"{place}: the regular expression '{value}' is invalid: {reason}", hint=error.hint
        ) from None


def _bad(message: str, *, hint: str | None = None) -> RowError:
    return RowError("bad-rule", message, hint=hint)
