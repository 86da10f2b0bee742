"""Schemas that grow: what a version knows, and what new subscriptions mention."""

from __future__ import annotations

from tamis.errors import SchemaError
from tamis.language.schema import Schema


def extend_schema(known: Schema, found: Schema) -> Schema:
    """The known types, and those of attributes that are new. What contradicts is left out."""
    types = {path: known[path] for path in known}
    for path in found:
        if path not in types:
            try:
                Schema({**types, path: found[path]})
            except SchemaError:
                continue  # `a.b` beside a known `a`: whoever mentions it is rejected
            types[path] = found[path]
    merged = Schema(types)
    more = [own for own in found.operators if known.operator(own.name) is None]
    return merged.with_operators((*known.operators, *more))
