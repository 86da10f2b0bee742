"""The record of a type, and the error for a value that is not of the type."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tamis.text import DEFAULT_ANALYSER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Literal

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Type:
    """One attribute type; compare with `is` or `==` against the constants of this package."""

    name: str
    precision: int = 0  # decimals only: all digits, 1..38
    scale: int = 0  # decimals only: digits after the point, 0..precision
    element: Type | None = None  # arrays only: a scalar type or a struct
    # Arrays only: whether a value that is not an array counts as an array of one element.
    takes_one: bool = field(default=False, compare=False)
    # Structs only: their fields. The type is a struct with any fields: nothing is read from them
    # but the fields that are tested.
    fields: tuple[tuple[str, Type], ...] = field(default=(), compare=False)
    # Strings only: how `matches` splits the text. The type is a string with any analyser.
    analyser: str = field(default=DEFAULT_ANALYSER, compare=False)
    # Values of these kinds are read as well, `integer from string`; see `as_they_come`.
    reads: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self._own_name} from {' or '.join(self.reads)}" if self.reads else self._own_name

    @property
    def _own_name(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.analyser != DEFAULT_ANALYSER:
            return f"text({self.analyser})"
        if self.name == "struct":
            return f"struct<{', '.join(f'{_quote(name)}: {own}' for name, own in self.fields)}>"
        if self.takes_one:
            return f"one_or_many<{self.element}>"
        is_known = self.element is not None and self.element.name != "any"
        return f"array<{self.element}>" if is_known else self.name

    @property
    def is_numeric(self) -> bool:
        """Whether values of the type are numbers."""
        return self.name in ("integer", "float", "double", "decimal", "number")

    @property
    def is_floating(self) -> bool:
        """Whether values are binary floating point, with NaN above all others."""
        return self.name in ("float", "double")


def _quote(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class WrongTypeError(ValueError):
    """A value is not of its attribute's declared type."""


def _never_fits(literal: Literal, type_: Type) -> None:
    return None


def _no_hint(literal: Literal, type_: Type) -> None:
    return None


def _as_text(text: str, type_: Type) -> Any:
    return text


@dataclass(frozen=True, slots=True)
class Kind:
    """All that the language knows about the types of one name. Later packages add what only they
    need, in one table each: the index how values become arrays, `events` fast converters."""

    name: str
    aliases: tuple[str, ...]  # further names that a schema may use, in lower case
    # A Python value as a value of the type; raises WrongTypeError.
    read: Callable[[Any, Type], Any]
    # The Python value that a text of CSV or of a map spells; the text itself where it spells none.
    parse: Callable[[str, Type], Any] = _as_text
    # A constant as it is compared with values of the type. None: it cannot be compared;
    # WrongTypeError: it could, but for its value.
    fit: Callable[[Literal, Type], Literal | None] = _never_fits
    # The hint for a constant that cannot be compared.
    hint: Callable[[Literal, Type], str | None] = _no_hint
    # A value as a constant of an expression that shows its type.
    print: Callable[[Any], str] = repr
    # The same for Spark SQL, if it differs.
    print_for_spark: Callable[[Any], str] | None = None
    # A value as an operator gets it, if it differs.
    show: Callable[[Any], Any] | None = None
    # Constants of one family vote together for the type of an attribute; None: the type alone.
    family: str | None = None
    # Whether string constants may spell values, so that they do not vote against the type.
    is_spelled: bool = False
    # The value this many steps away, or None beyond the last one; only for types with successors.
    step: Callable[[Any, int], Any] | None = None
    # Its Arrow type, given the module pyarrow: the language itself does not import Arrow.
    arrow: Callable[[Any, Type], Any] | None = None
    # Python classes some of whose values are of the type; values of others are reported together.
    classes: tuple[type, ...] = (object,)
    # Python classes whose values are converted in bulk; values of others are read one by one.
    bulk_classes: frozenset[type] = frozenset()
    filler: Any = None  # the filler in arrays for an event's rejected value


def wrong(value: Any, type_: Type) -> WrongTypeError:
    """The error of a value that is not of the type."""
    shown = spell_value(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "…"
    return WrongTypeError(f"{shown} is not of type {type_}")


def plain_value(value: Any) -> Any:
    """A NumPy scalar or array as a Python value; other values unchanged."""
    if isinstance(value, str | int | float) or not hasattr(value, "item"):
        return value
    return value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()


def spell_value(value: Any) -> str:
    """The value as shown to people: numbers as written, also inside lists."""
    try:
        return _spell(value)
    except Exception:  # printing fails for integers of more than 4,300 digits and for some objects
        return f"a value of class {type(value).__name__}"


def _spell(value: Any) -> str:
    match value:
        case Decimal():
            return str(value)
        case list():
            return f"[{', '.join(map(_spell, value))}]"
        case dict():
            return "{" + ", ".join(f"{key!r}: {_spell(own)}" for key, own in value.items()) + "}"
        case _:
            return repr(value)
