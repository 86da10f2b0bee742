"""Definitions as a schema has them: expressions by name."""

from __future__ import annotations

import re
from typing import Any, Final

from tamis.errors import SchemaError
from tamis.language.ast import SUBSCRIPTION

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_definitions(given: Any) -> dict[str, str]:
    """Definitions as a caller passes them: expressions by name, with or without the `@`."""
    if not hasattr(given, "items"):
        raise SchemaError(
            f"the definitions are {given!r}",
            hint="allowed: expressions by name: {'office_hours': 'hour(ts) BETWEEN 8 AND 18'}",
        )
    found: dict[str, str] = {}
    for name, text in given.items():
        plain = name.removeprefix("@") if isinstance(name, str) else ""
        if not _NAME.fullmatch(plain) and not plain.startswith(SUBSCRIPTION):
            raise SchemaError(
                f"{name!r} is not the name of a definition",
                hint="a name has letters, digits and underscores: office_hours",
            )
        if not isinstance(text, str):
            raise SchemaError(f"the definition @{plain} is {text!r}; an expression is expected")
        found[plain] = text
    return found
