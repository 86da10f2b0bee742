"""The functions of values: one table, from which the parser, the checker, the evaluator, the
encoder and the printers read all they need.

A function is undefined if an argument is missing. Names and meaning are Spark's.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from tamis.language import array_keys
from tamis.language import moment_functions as moments
from tamis.language import text_functions as texts
from tamis.language.array_functions import ELEMENT_AT, SIZE
from tamis.language.ast import Literal
from tamis.language.casts import CAST, LIKELY_SOURCES, target_of
from tamis.language.coalescing import COALESCE
from tamis.language.counting import OCCURRENCES, REGEXP_COUNT
from tamis.language.number_functions import ARITHMETIC, NUMBER_FUNCTIONS
from tamis.language.overloads import FROM_ZERO, Function, Overload
from tamis.language.types import ANY, DATE, INTEGER, STRING, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Derived
    from tamis.language.overloads import Range
    from tamis.language.types import Type


def _of_text(
    signature: str,
    result: Type,
    compute: Callable[..., Any],
    compute_many: Callable[..., Any] | None = None,
    results: Range = (None, None),
) -> Function:
    overload = Overload((STRING,), result, compute, compute_many)
    return Function(signature, (overload,), range=results)


def _of_day(
    name: str,
    compute: Callable[[Any], int],
    many: Callable[[Any], Any],
    results: Range = (None, None),
) -> Function:
    return Function(
        f"{name}(timestamp), {name}(date)",
        (
            Overload((TIMESTAMP,), INTEGER, compute, moments.of_moments(many)),
            Overload((DATE,), INTEGER, compute, many),
        ),
        range=results,
    )


def _of_time(name: str, many: Callable[[Any], Any], greatest: int) -> Function:
    overload = Overload((TIMESTAMP,), INTEGER, attrgetter(name), many)
    return Function(f"{name}(timestamp)", (overload,), range=(0, greatest))


def _date_diff() -> Function:
    units = {DATE: 1, TIMESTAMP: moments.DAY}
    return Function(
        "date_diff(end, start)",
        tuple(
            Overload(
                (end, start),
                INTEGER,
                moments.days_between,
                moments.days_between_many(units[end], units[start]),
            )
            for end in (TIMESTAMP, DATE)
            for start in (TIMESTAMP, DATE)
        ),
    )


FUNCTIONS: Final[dict[str, Function]] = {
    "lower": _of_text("lower(string)", STRING, str.lower, texts.lower_many),
    "upper": _of_text("upper(string)", STRING, str.upper, texts.upper_many),
    "trim": _of_text("trim(string)", STRING, texts.trim, texts.trim_many),
    "ltrim": _of_text("ltrim(string)", STRING, texts.ltrim, texts.ltrim_many),
    "rtrim": _of_text("rtrim(string)", STRING, texts.rtrim, texts.rtrim_many),
    "length": _of_text("length(string)", INTEGER, len, texts.length_many, FROM_ZERO),
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
    "regexp_count": REGEXP_COUNT,
    "occurrences": OCCURRENCES,
    "year": _of_day("year", attrgetter("year"), moments.years),
    "quarter": _of_day("quarter", moments.quarter, moments.quarters, (1, 4)),
    "month": _of_day("month", attrgetter("month"), moments.months, (1, 12)),
    "day": _of_day("day", attrgetter("day"), moments.days_of_month, (1, 31)),
    "dayofyear": _of_day("dayofyear", moments.day_of_year, moments.days_of_year, (1, 366)),
    "dayofweek": _of_day("dayofweek", moments.day_of_week, moments.days_of_week, (1, 7)),
    "weekday": _of_day("weekday", lambda day: day.weekday(), moments.weekdays, (0, 6)),
    "hour": _of_time("hour", moments.hours, 23),
    "minute": _of_time("minute", moments.minutes, 59),
    "second": _of_time("second", moments.seconds, 59),
    "date_trunc": Function(
        "date_trunc('unit', timestamp)",
        (
            Overload((STRING, TIMESTAMP), TIMESTAMP, moments.truncate, moments.truncate_many),
            Overload((STRING, DATE), TIMESTAMP, moments.truncate, moments.truncate_days),
        ),
        constants=(0,),
        find_problem=moments.find_unit_problem,
    ),
    "date_diff": _date_diff(),
    **ARITHMETIC,
    **NUMBER_FUNCTIONS,
    "size": SIZE,
    "element_at": ELEMENT_AT,
    array_keys.ARRAY_KEY: array_keys.FUNCTION,
    "coalesce": COALESCE,
    "cast": CAST,
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
    "datediff": "date_diff",
    "ceiling": "ceil",
    "mod": "%",
    "cardinality": "size",
    "array_size": "size",
}


def find_function(name: str) -> str | None:
    """The usual name of a function of values, in lower case; None if there is no such function."""
    folded = name.lower()
    folded = ALIASES.get(folded, folded)
    return folded if folded in FUNCTIONS else None


@lru_cache(maxsize=4096)
def find_overload(
    name: str,
    types: tuple[Type | None, ...],
    constants: tuple[Any, ...] = (),
    analyser: str = "",  # of the first argument, if the function depends on it
) -> Overload | None:
    """The overload of a function for arguments of these types; None if there is none.

    `constants` has the values of the arguments that are constants, and None for others; functions
    that resolve their overloads need it. Raises WrongTypeError to say why there is none.
    """
    function = FUNCTIONS[name]
    if function.resolve is not None:
        return function.resolve(types, constants)  # type: ignore[arg-type]
    for overload in function.overloads:
        wanted = overload.parameters
        if overload.is_variadic:
            wanted = (*wanted, *wanted[-1:] * (len(types) - len(wanted)))
        if wanted == types:
            return overload
    return None


def find_overload_of(value: Derived) -> Overload | None:
    """The overload for the types of the arguments, which have been checked."""
    types = tuple(own.type for own in value.arguments)
    if FUNCTIONS[value.function].resolve is None:
        return find_overload(value.function, types)
    is_analysed = FUNCTIONS[value.function].is_analysed and types[0] is not None
    analyser = types[0].analyser if is_analysed and types[0] is not None else ""
    return find_overload(value.function, types, _constants_of(value), analyser)


def overload_of(value: Derived) -> Overload:
    """How a derived value that has been checked is computed."""
    overload = find_overload_of(value)
    assert overload is not None, "the value has been checked"
    return overload


def _constants_of(value: Derived) -> tuple[Any, ...]:
    return tuple(own.value if isinstance(own, Literal) else None for own in value.arguments)


def likely_result(value: Derived) -> Type:
    """The type of the result before the types of the arguments are known."""
    if value.function == "cast":
        return target_of(_constants_of(value))
    return FUNCTIONS[value.function].overloads[0].result


def likely_parameters(value: Derived) -> tuple[Type, ...]:
    """The types that the arguments most likely have; the last one is that of all others."""
    if value.function == "cast":
        return (LIKELY_SOURCES.get(likely_result(value).name, ANY),)
    return FUNCTIONS[value.function].parameters


def takes(name: str, n_arguments: int) -> bool:
    """Whether the function takes so many arguments."""
    return any(
        n_arguments == len(own.parameters)
        or (own.is_variadic and n_arguments >= len(own.parameters))
        for own in FUNCTIONS[name].overloads
    )
