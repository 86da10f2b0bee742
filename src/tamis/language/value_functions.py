"""The functions of values: one table, from which the parser, the checker, the evaluator, the
encoder and the printers read all they need.

A function has no effect but its result. It is undefined if an argument is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.language.types import INTEGER, STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.types import Type


class Function(NamedTuple):
    """One function: what it takes, what it returns, and how it is computed."""

    signature: str
    parameters: tuple[Type, ...]
    result: Type
    compute: Callable[..., Any]  # of Python values, none of them None
    # The same for many values at once. Strings are Arrow large strings without NULL, integers
    # int64[n], doubles float64[n].
    compute_many: Callable[..., Any]


def _lower_many(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow changes each character by itself, but the case of some depends on others, or is longer.
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.ascii_lower(texts)
    return pa.array(map(str.lower, texts.to_pylist()), texts.type)


def _upper_many(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.ascii_upper(texts)
    return pa.array(map(str.upper, texts.to_pylist()), texts.type)


def _trim_many(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_trim(texts, characters=" ")


def _ltrim_many(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_ltrim(texts, characters=" ")


def _rtrim_many(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_rtrim(texts, characters=" ")


def _length_many(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_length(texts).to_numpy(zero_copy_only=False)


def _trim(text: str) -> str:
    return text.strip(" ")  # blanks only, as in Spark


def _ltrim(text: str) -> str:
    return text.lstrip(" ")


def _rtrim(text: str) -> str:
    return text.rstrip(" ")


FUNCTIONS: Final = {
    "lower": Function("lower(string)", (STRING,), STRING, str.lower, _lower_many),
    "upper": Function("upper(string)", (STRING,), STRING, str.upper, _upper_many),
    "trim": Function("trim(string)", (STRING,), STRING, _trim, _trim_many),
    "ltrim": Function("ltrim(string)", (STRING,), STRING, _ltrim, _ltrim_many),
    "rtrim": Function("rtrim(string)", (STRING,), STRING, _rtrim, _rtrim_many),
    "length": Function("length(string)", (STRING,), INTEGER, len, _length_many),
}
# Other names of the same functions, as in Spark.
ALIASES: Final = {
    "lcase": "lower",
    "ucase": "upper",
    "len": "length",
    "char_length": "length",
    "character_length": "length",
}


def find_function(name: str) -> str | None:
    """The usual name of a function of values, in lower case; None if there is no such function."""
    folded = name.lower()
    folded = ALIASES.get(folded, folded)
    return folded if folded in FUNCTIONS else None
