"""Checks of arguments: the `InputError` names the argument, its value, and what is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Final

from tamis.errors import InputError

MOST_MATCHES: Final = 2**31 - 1  # of one event: subscriptions are numbered in 32 bits


def expect_count(value: Any, argument: str, least: int = 1) -> int:
    """The value as an integer of at least `least`."""
    try:
        found = None if isinstance(value, bool) else index(value)
    except TypeError:
        found = None
    if found is None or found < least:
        raise InputError(
            f"{argument} is {value!r}; a whole number of at least {least} is expected",
            hint=f"write {argument}={least}, or more",
        )
    return found


def expect_best(value: Any, argument: str) -> int:
    """The number of best matches asked for; a larger number than any index has means all."""
    return min(expect_count(value, argument), MOST_MATCHES)


def expect_path(value: Any) -> None:
    """Raise an error unless the value can be the path of an index."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(
            f"the path of an index is {value!r}; a string or a Path is expected",
            hint="write the path of a directory, such as 'people.index'",
        )


def expect_name(value: Any, argument: str) -> str:
    """The value, if it is a valid name."""
    if isinstance(value, str) and value:
        return value
    hint = None
    if isinstance(value, list | tuple) and len(value) == 1:
        hint = f"write {argument}={value[0]!r}"
    raise InputError(f"{argument} is {value!r}; one name is expected, as a string", hint=hint)


def expect_names(values: Any, argument: str) -> list[str]:
    """The values, if they are a list of strings."""
    if isinstance(values, str):
        raise InputError(f"{argument} is the string {values!r}", hint=f"write [{values!r}]")
    if not isinstance(values, Iterable) or isinstance(values, Mapping | bytes):
        raise InputError(f"{argument} is {values!r}; a list of names is expected")
    names = list(values)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{argument} has {name!r}; a list of names is expected, as strings")
    return names


def expect_distinct(names: list[str], taken: Iterable[str], argument: str, hint: str) -> None:
    """Raise an error if the result already has a column of that name; `hint` says what to do."""
    others = set(taken)
    for at, name in enumerate(names):
        is_twice = name in names[:at]
        if is_twice or name in others:
            raise InputError(
                f'the result has a column "{name}" already; {argument} cannot add another',
                hint="name it once" if is_twice else hint,
            )
