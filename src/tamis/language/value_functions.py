"""The functions of values: one table, from which the parser, the checker, the evaluator, the
encoder and the printers read all they need.

A function is undefined if an argument is missing. Names and meaning are Spark's.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.language import moment_functions as moments
from tamis.language import text_functions as texts
from tamis.language.types import DATE, INTEGER, STRING, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.types import Type

    Parameters = tuple[Type, ...]


class Overload(NamedTuple):
    """A function for arguments of certain types: what it returns, and how it is computed."""

    parameters: Parameters
    result: Type
    compute: Callable[..., Any]  # of Python values, none of them None
    # The same for many values at once, or None. A constant is a Python value. Strings are Arrow
    # large strings without NULL, integers int64[n], dates days and timestamps microseconds.
    compute_many: Callable[..., Any] | None = None
    is_variadic: bool = False  # whether the last parameter may be repeated


class Function(NamedTuple):
    """A function by its name."""

    signature: str
    overloads: tuple[Overload, ...]  # inference takes the first
    constants: tuple[int, ...] = ()  # the arguments that must be constants
    find_problem: Callable[..., str | None] | None = None  # of the values of these constants

    @property
    def parameters(self) -> Parameters:
        """The types that it most likely takes."""
        return self.overloads[0].parameters


def _of_text(
    signature: str,
    result: Type,
    compute: Callable[..., Any],
    compute_many: Callable[..., Any] | None = None,
) -> Function:
    return Function(signature, (Overload((STRING,), result, compute, compute_many),))


def _of_day(name: str, compute: Callable[[Any], int], many: Callable[[Any], Any]) -> Function:
    return Function(
        f"{name}(timestamp), {name}(date)",
        (
            Overload((TIMESTAMP,), INTEGER, compute, moments.of_moments(many)),
            Overload((DATE,), INTEGER, compute, many),
        ),
    )


def _of_time(name: str, many: Callable[[Any], Any]) -> Function:
    overload = Overload((TIMESTAMP,), INTEGER, attrgetter(name), many)
    return Function(f"{name}(timestamp)", (overload,))


FUNCTIONS: Final = {
    "lower": _of_text("lower(string)", STRING, str.lower, texts.lower_many),
    "upper": _of_text("upper(string)", STRING, str.upper, texts.upper_many),
    "trim": _of_text("trim(string)", STRING, texts.trim, texts.trim_many),
    "ltrim": _of_text("ltrim(string)", STRING, texts.ltrim, texts.ltrim_many),
    "rtrim": _of_text("rtrim(string)", STRING, texts.rtrim, texts.rtrim_many),
    "length": _of_text("length(string)", INTEGER, len, texts.length_many),
    "substring": Function(
        "substring(string, position, length)",
        (
            Overload((STRING, INTEGER, INTEGER), STRING, texts.substring),
            Overload((STRING, INTEGER), STRING, texts.substring),
        ),
        constants=(1, 2),
    ),
    "concat": Function(
        "concat(string, string, …)",
        (Overload((STRING, STRING), STRING, texts.concat, texts.concat_many, is_variadic=True),),
    ),
    "replace": Function(
        "replace(string, 'searched', 'replacement')",
        (
            Overload((STRING, STRING, STRING), STRING, texts.replace),
            Overload((STRING, STRING), STRING, texts.replace),
        ),
        constants=(1, 2),
    ),
    "split_part": Function(
        "split_part(string, 'delimiter', number)",
        (Overload((STRING, STRING, INTEGER), STRING, texts.split_part),),
        constants=(1, 2),
        find_problem=texts.find_part_problem,
    ),
    "year": _of_day("year", attrgetter("year"), moments.years),
    "quarter": _of_day("quarter", moments.quarter, moments.quarters),
    "month": _of_day("month", attrgetter("month"), moments.months),
    "day": _of_day("day", attrgetter("day"), moments.days_of_month),
    "dayofyear": _of_day("dayofyear", moments.day_of_year, moments.days_of_year),
    "dayofweek": _of_day("dayofweek", moments.day_of_week, moments.days_of_week),
    "weekday": _of_day("weekday", lambda day: day.weekday(), moments.weekdays),
    "hour": _of_time("hour", moments.hours),
    "minute": _of_time("minute", moments.minutes),
    "second": _of_time("second", moments.seconds),
}
# Other names of the same functions, as in Spark.
ALIASES: Final = {
    "lcase": "lower",
    "ucase": "upper",
    "len": "length",
    "char_length": "length",
    "character_length": "length",
    "substr": "substring",
    "dayofmonth": "day",
}


def find_function(name: str) -> str | None:
    """The usual name of a function of values, in lower case; None if there is no such function."""
    folded = name.lower()
    folded = ALIASES.get(folded, folded)
    return folded if folded in FUNCTIONS else None


@lru_cache(maxsize=4096)
def find_overload(name: str, types: tuple[Type | None, ...]) -> Overload | None:
    """The overload of a function for arguments of these types; None if there is none."""
    for overload in FUNCTIONS[name].overloads:
        wanted = overload.parameters
        if overload.is_variadic:
            wanted = (*wanted, *wanted[-1:] * (len(types) - len(wanted)))
        if wanted == types:
            return overload
    return None


def takes(name: str, n_arguments: int) -> bool:
    """Whether the function takes so many arguments."""
    return any(
        n_arguments == len(own.parameters)
        or (own.is_variadic and n_arguments >= len(own.parameters))
        for own in FUNCTIONS[name].overloads
    )
