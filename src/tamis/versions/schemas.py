"""A version's schema, extended by the attributes that new subscriptions mention."""

from __future__ import annotations

from tamis.errors import SchemaError
from tamis.language.schema import Schema
from tamis.language.types import ANY


def extend_schema(known: Schema, found: Schema) -> Schema:
    """The known types and those of new attributes; contradicting types are left out.

    An attribute that was only tested for presence has no type yet: it gets the one found.
    """
    types = {path: known[path] for path in known}
    for path in found:
        if path not in types or types[path] == ANY:
            try:
                Schema({**types, path: found[path]})
            except SchemaError:
                continue  # `a.b` when `a` is known: subscriptions that mention it are rejected
            types[path] = found[path]
    merged = Schema(types, definitions=found.definitions | known.definitions)
    more = [own for own in found.operators if known.operator(own.name) is None]
    return merged.with_operators((*known.operators, *more))
