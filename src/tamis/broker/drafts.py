"""What is known of an expression before it is a subscription: problems, types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.errors import ExpressionError
from tamis.language.ast import attributes
from tamis.language.names import print_path
from tamis.language.printer import print_expression
from tamis.logic.canonical import canonicalize
from tamis.validate import Problem, Severity, check_expression

if TYPE_CHECKING:
    from tamis.language.ast import Condition
    from tamis.language.lookalikes import Lookalike
    from tamis.live.index import LiveIndex

_DRAFT: Final = "draft"


class DraftAttribute(NamedTuple):
    """An attribute of an expression."""

    name: str
    type: str
    is_known: bool  # the set fixes its type; otherwise the expression implies it


class CheckedDraft(NamedTuple):
    """An expression that was checked against a live set."""

    condition: Condition | None  # None if it has an error
    canonical: Condition | None
    problems: tuple[Problem, ...]
    attributes: list[DraftAttribute]
    misspelt: list[Lookalike]  # of the attributes


def check_draft(live: LiveIndex, expression: str) -> CheckedDraft:
    """Everything that is wrong or suspicious, and the types that the set gives to attributes."""
    settings = live.settings
    schema = settings.schema_for([expression]).with_operators(settings.operators)
    condition, problems = check_expression(
        expression, schema, settings.limits, missing=settings.missing
    )
    if condition is None:
        return CheckedDraft(None, None, _name_decider(live, expression, problems), [], [])
    canonical = canonicalize(condition, settings.missing)
    known = dict.fromkeys(own.path for own in attributes(condition))
    found = [
        DraftAttribute(
            print_path(path), str(schema.get(path)), settings.schema.get(path) is not None
        )
        for path in known
    ]
    return CheckedDraft(condition, canonical, problems, found, live.find_misspelt(known))


def warn_misspelt(draft: CheckedDraft, expression: str, found: Lookalike) -> Problem:
    """The warning of a misspelt attribute, at its first place."""
    assert draft.condition is not None
    spans = (own.span for own in attributes(draft.condition))
    named = (print_path(own.path) for own in attributes(draft.condition))
    span = next(span for span, name in zip(spans, named, strict=True) if name == found.attribute)
    warning = ExpressionError(
        "misspelt-attribute",
        f"no subscription uses {found.attribute}, which looks like {found.looks_like}",
        span=span,
        hint=f"write {found.looks_like} if that is meant",
    )
    return Problem(Severity.WARNING, warning.located(expression, None))


def _name_decider(
    live: LiveIndex, expression: str, problems: tuple[Problem, ...]
) -> tuple[Problem, ...]:
    """The error as subscribing reports it: it names the subscription that fixed a type."""
    try:
        live.draft({_DRAFT: expression})
    except ExpressionError as error:
        error.subscription_id = None
        return (Problem(Severity.ERROR, error),)
    return problems


def spell_canonical(canonical: Condition) -> str:
    """The text of a canonical form."""
    return print_expression(canonical)
