"""All cases of `tests/cases` in one set of subscriptions, for engines that are slow to start.

The attributes of each case are inside one of its own name: `price > 10` of case c7 is
`c7.price > 10`, and its events are `{"c7": {"price": 11}}`. What is true of a case stays true.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

from tamis.language import Schema, parse, print_expression
from tamis.language.ast import EVENT, Attribute, Derived, Lambda
from tamis.logic.evaluate import Missing, evaluate
from tests.test_cases import CASES


class JoinedCases(NamedTuple):
    """Subscriptions, events and the pairs that match, each of an event and its own case."""

    schema: Schema
    texts: dict[str, str]
    events: list[dict[str, Any]]
    owners: list[str]  # of each event, its case
    matches: list[bool]  # whether the event matches its case


def join_cases(missing: Missing) -> JoinedCases:
    """The cases, also those of the other meaning of a missing attribute."""
    joined = JoinedCases(Schema({}), {}, [], [], [])
    types = {}
    for at, case in enumerate(CASES):
        name = f"c{at}"
        types |= {(name, *path): case.schema[path] for path in case.schema}
        joined.texts[name] = print_expression(_put_inside(parse(case.query), name))
        for expectation in case.expectations:
            joined.events.append({name: expectation.event})
            joined.owners.append(name)
            joined.matches.append(evaluate(case.condition, expectation.event, missing) is True)
    return joined._replace(schema=Schema(types))


def assert_matches(joined: JoinedCases, found: list[list[str]]) -> None:
    """Each event, of which these subscriptions were found, matches its case if it should."""
    for at, owner in enumerate(joined.owners):
        is_found = owner in found[at]
        assert is_found is joined.matches[at], (joined.texts[owner], joined.events[at])
    assert sum(joined.matches) > len(joined.matches) / 5


def _put_inside(node: Any, name: str) -> Any:
    """The condition about attributes inside the one of this name."""
    if isinstance(node, tuple):
        return tuple(_put_inside(own, name) for own in node)
    if isinstance(node, Lambda) or not hasattr(node, "span"):
        return node  # a lambda is about the element alone
    if isinstance(node, Attribute) and not isinstance(node, Derived):
        return node if node.path == EVENT else replace(node, path=(name, *node.path))
    inside = {own.name: _put_inside(getattr(node, own.name), name) for own in fields(node)}
    return replace(node, **{key: own for key, own in inside.items() if key != "span"})
