"""Structs, which are elements of arrays: their fields have names and types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tamis.language.types.type import Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Path = tuple[str, ...]

_FIELD: Final = re.compile(r"\s*(?:([A-Za-z_]\w*)|`((?:[^`]|``)+)`)(?:\s*:\s*|\s+)(.+)", re.DOTALL)
_PIECE: Final = re.compile(r"`(?:[^`]|``)*`|[<(]|[>)]|,|[^`<(>),]+")


def struct_type(fields: Mapping[str, Type]) -> Type:
    """The type of structs with these fields."""
    return Type("struct", fields=tuple(fields.items()))


def struct_of(types: Mapping[Path, Type]) -> Type:
    """The type of structs that have these paths inside."""
    inside: dict[str, dict[Path, Type]] = {}
    for path, type_ in types.items():
        inside.setdefault(path[0], {})[path[1:]] = type_
    return struct_type(
        {name: own[()] if () in own else struct_of(own) for name, own in inside.items()}
    )


def paths_in(type_: Type) -> Iterator[tuple[Path, Type]]:
    """The paths inside a struct that have values, and their types."""
    for name, own in type_.fields:
        if own.name == "struct":
            yield from (((name, *path), inner) for path, inner in paths_in(own))
        else:
            yield (name,), own


def split_fields(text: str) -> Iterator[tuple[str, str]] | None:
    """The names and the texts of the types of fields; None if the text is not a list of fields."""
    found = [_FIELD.fullmatch(own) for own in _split(text)]
    if not all(found):
        return None
    return (
        (own[1] or own[2].replace("``", "`"), own[3].strip()) for own in found if own is not None
    )


def _split(text: str) -> list[str]:
    """The parts between commas outside parentheses, angle brackets and backticks."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        if piece == "," and depth == 0:
            parts.append("")
            continue
        depth += (piece in ("<", "(")) - (piece in (">", ")"))
        parts[-1] += piece
    return parts
