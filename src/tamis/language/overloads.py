"""What a function of values is: its overloads, and how each is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.language.types.type import WrongTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.types import Type

    Parameters = tuple[Type, ...]
    # Of each argument: the value of a constant, None for others.
    Constants = tuple[Any, ...]
    Resolve = Callable[[Parameters, Constants], "Overload | None"]


# The result of a function that is NULL for a reason that is not worth reporting.
NULL: Final = object()


class RefusedConstantError(WrongTypeError):
    """A constant argument that a function refuses, with the code and the hint of the error."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


class Partial(NamedTuple):
    """Results of which some do not exist: those that are not good are undefined."""

    values: Any
    is_good: Any  # bool[n]


class Overload(NamedTuple):
    """A function for arguments of certain types: what it returns, and how it is computed."""

    parameters: Parameters
    result: Type
    # Of Python values, none of them None unless the function takes missing values. None: there is
    # no result, such as after a division by zero. NULL: the result is missing.
    compute: Callable[..., Any]
    # The same for many values at once, or None. A constant is a Python value. Strings are Arrow
    # large strings without NULL, integers int64[n], doubles float64[n], dates days and timestamps
    # microseconds. Returns an array, or a `Partial`.
    compute_many: Callable[..., Any] | None = None
    is_variadic: bool = False  # whether the last parameter may be repeated
    # The text in Spark SQL, with {0}, {1} … for the arguments; None: the name and the arguments;
    # empty: there is none.
    spark: str | None = None


# The least and the greatest result; None: there is none. Both None: lint knows nothing.
Range = tuple[int | None, int | None]
FROM_ZERO: Final[Range] = (0, None)


class Function(NamedTuple):
    """A function by its name."""

    signature: str
    overloads: tuple[Overload, ...]  # inference takes the first
    constants: tuple[int, ...] = ()  # the arguments that must be constants
    find_problem: Callable[..., str | None] | None = None  # of the values of these constants
    # For types with digits, and results that depend on a constant: the overload for arguments of
    # these types, instead of the listed ones. Raises WrongTypeError to say why there is none.
    resolve: Resolve | None = None
    takes_missing: bool = False  # whether it has a result if arguments are missing
    no_result: str = ""  # why it may have no result although all arguments are present
    # Whether the result depends on the analyser of the first argument: then it has a `resolve`.
    is_analysed: bool = False
    # If the last argument is a regular expression of RE2: raises BadPatternError for one that the
    # function cannot use.
    check_regex: Callable[[str], None] | None = None
    range: Range = (None, None)  # of all its results: lint reports comparisons beyond it

    @property
    def parameters(self) -> Parameters:
        """The types that it most likely takes."""
        return self.overloads[0].parameters
