"""Names a subscription that decided the inferred type of an attribute, for rejects."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from tamis.index.uses import count_uses
from tamis.language.ast import Attribute, Derived, attributes, leaves, tested_attributes
from tamis.language.names import print_path
from tamis.language.parser import parse
from tamis.language.value_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.errors import ExpressionError
    from tamis.index.contents import Contents
    from tamis.language.ast import Span
    from tamis.language.limits import Limits
    from tamis.language.lookalikes import Use
    from tamis.language.schema import Path, Schema

DECLARE: Final = "declare the attribute in a schema to choose its type"


def name_deciders(rejects: Iterable[ExpressionError], contents: Contents, limits: Limits) -> None:
    """Add to the hint of each reject of a wrong type why the attribute has its type.

    Every subscription of the index that uses the attribute agrees with the inferred type.
    """
    paths = {
        id(reject): path
        for reject in rejects
        if reject.code == "type-mismatch" and (path := find_path(reject, contents.schema, limits))
    }
    uses = count_uses(contents, set(paths.values())) if paths else {}
    for reject in rejects:
        path = paths.get(id(reject))
        if path is not None and uses[path].n_subscriptions:
            decider = _describe(path, uses[path], contents.schema)
            reject.hint = f"{reject.hint or DECLARE}; {decider}"


def find_path(reject: ExpressionError, schema: Schema, limits: Limits) -> Path | None:
    """The typed attribute that the reject marks, or the first one of the test that it marks; none
    if it marks an argument that must be a constant: then no attribute has a wrong type.
    """
    assert reject.text is not None
    start, end = reject.span
    for leaf in leaves(parse(reject.text, limits)):
        if leaf.span[0] <= start and end <= leaf.span[1]:
            if reject.span in chain.from_iterable(map(_constants, tested_attributes(leaf))):
                return None
            typed = [own for own in attributes(leaf) if own.path in schema]
            marked = [own for own in typed if own.span[0] <= start and end <= own.span[1]]
            return next((own.path for own in (*marked, *typed)), None)
    return None


def _constants(value: Attribute) -> Iterator[Span]:
    """The places of the arguments of functions that must be constants."""
    if isinstance(value, Derived):
        taken = FUNCTIONS[value.function].constants
        for at, own in enumerate(value.arguments):
            if at in taken:
                yield own.span
            elif isinstance(own, Attribute):
                yield from _constants(own)


def _describe(path: Path, use: Use, schema: Schema) -> str:
    name, n = print_path(path), use.n_subscriptions
    agree = "1 subscription agrees" if n == 1 else f"{n:,} subscriptions agree"
    return (
        f"the type of {name} is inferred as {schema.get(path)}: {agree} with it, "
        f'such as "{use.subscription_id}"'
    )
