"""`coalesce`: the first value that is not missing; see `value_functions`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tamis.language.overloads import Function, Overload
from tamis.language.types import (
    ANY,
    DOUBLE,
    MAX_DECIMAL_DIGITS,
    NUMBER,
    WrongTypeError,
    decimal_type,
)
from tamis.language.types.numbers import AS_DECIMAL, to_double

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.overloads import Constants, Parameters
    from tamis.language.types import Type


def _resolve(types: Parameters, constants: Constants) -> Overload | None:
    result = _common_type(types)
    if result is None:
        return None
    convert = _CONVERSIONS.get(result.name)
    is_mixed = any(own != result for own in types)
    text = ", ".join(f"CAST({{{at}}} AS {result})" for at in range(len(types)))
    is_cast = is_mixed and result != NUMBER
    return Overload(
        types,
        result,
        _first(convert if is_mixed else None),
        spark=f"coalesce({text})" if is_cast else None,
    )


def _first(convert: Callable[[Any], Any] | None) -> Callable[..., Any]:
    def compute(*values: Any) -> Any:
        found = next((own for own in values if own is not None), None)
        return found if found is None or convert is None else convert(found)

    return compute


def _common_type(types: Parameters) -> Type | None:
    """The type that holds the values of all types exactly, or doubles as in Spark."""
    first = types[0]
    if first.element is not None or first == ANY:
        return None
    if all(own == first for own in types):
        return DOUBLE if first.is_floating else first
    if not all(own.is_numeric for own in types):
        return None
    if NUMBER in types:
        return NUMBER
    if any(own.is_floating for own in types):
        return DOUBLE
    exact = [own if own.name == "decimal" else AS_DECIMAL for own in types]
    scale = max(own.scale for own in exact)
    precision = max(own.precision - own.scale for own in exact) + scale
    if precision > MAX_DECIMAL_DIGITS:
        raise WrongTypeError(
            f"{', '.join(map(str, types))} together need more than {MAX_DECIMAL_DIGITS} digits"
        )
    return decimal_type(precision, scale)


_CONVERSIONS: Final[dict[str, Callable[[Any], Any]]] = {"double": to_double, "decimal": Decimal}
COALESCE: Final = Function(
    "coalesce(value, value, …)",
    (Overload((ANY, ANY), ANY, _first(None), is_variadic=True),),
    resolve=_resolve,
    takes_missing=True,
)
