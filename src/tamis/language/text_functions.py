"""Functions of strings, for one value and for many; see `value_functions`."""

from __future__ import annotations

from typing import Any


def lower_many(texts: Any) -> Any:
    """`str.lower` of Arrow strings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow changes each character by itself, but the case of some depends on others, or is longer.
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.ascii_lower(texts)
    return pa.array(map(str.lower, texts.to_pylist()), texts.type)


def upper_many(texts: Any) -> Any:
    """`str.upper` of Arrow strings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.ascii_upper(texts)
    return pa.array(map(str.upper, texts.to_pylist()), texts.type)


def trim(text: str) -> str:
    """The text without blanks at its ends; as in Spark, other white space stays."""
    return text.strip(" ")


def trim_many(texts: Any) -> Any:
    """`trim` of Arrow strings."""
    import pyarrow.compute as pc

    return pc.utf8_trim(texts, characters=" ")


def ltrim(text: str) -> str:
    """The text without blanks at its beginning."""
    return text.lstrip(" ")


def ltrim_many(texts: Any) -> Any:
    """`ltrim` of Arrow strings."""
    import pyarrow.compute as pc

    return pc.utf8_ltrim(texts, characters=" ")


def rtrim(text: str) -> str:
    """The text without blanks at its end."""
    return text.rstrip(" ")


def rtrim_many(texts: Any) -> Any:
    """`rtrim` of Arrow strings."""
    import pyarrow.compute as pc

    return pc.utf8_rtrim(texts, characters=" ")


def length_many(texts: Any) -> Any:
    """The number of characters of Arrow strings."""
    import pyarrow.compute as pc

    return pc.utf8_length(texts).to_numpy(zero_copy_only=False)


def substring(text: str, position: int, length: int | None = None) -> str:
    """The characters from a position on, which counts from 1, or from the end if it is negative.

    As in Spark, position 0 is the first, and characters before the first count for the length.
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length is None else start + length
    return text[max(start, 0) : max(end, 0)]


def concat(*texts: str) -> str:
    """The texts joined."""
    return "".join(texts)


def concat_many(*texts: Any) -> Any:
    """`concat` of Arrow strings and constants."""
    import pyarrow as pa
    import pyarrow.compute as pc

    type_ = next(own.type for own in texts if isinstance(own, pa.Array))
    empty = pa.scalar("", type_)
    each = (pa.scalar(own, type_) if isinstance(own, str) else own for own in texts)
    return pc.binary_join_element_wise(*each, empty)


def replace(text: str, searched: str, replacement: str = "") -> str:
    """The text with every occurrence of another replaced; nothing is replaced for an empty one."""
    return text.replace(searched, replacement) if searched else text


def split_part(text: str, delimiter: str, number: int) -> str:
    """The part of that number, from 1, or from the end if it is negative; empty if there is no
    such part.
    """
    parts = text.split(delimiter) if delimiter else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def find_part_problem(delimiter: str, number: int) -> str | None:
    """The error of the constants of `split_part`."""
    return "split_part() counts from 1, or from -1 at the end" if number == 0 else None
