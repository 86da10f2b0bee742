"""The last step of an import: each expression is parsed and typed, and ids are unique."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import LimitError, RowError
from tamis.importers.model import Imported, not_expressible
from tamis.language.bulk import parse_many
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.names import print_path
from tamis.language.schema import Schema
from tamis.language.types import ANY, STRING, parse_declared

if TYPE_CHECKING:
    from tamis.errors import ExpressionError
    from tamis.importers.model import Rule
    from tamis.language.limits import Limits
    from tamis.language.schema import Path
    from tamis.language.types import Type

_TEXT_OF_OBJECTS: Final = parse_declared("string from number or boolean or object")


def finish(
    rules: list[Rule],
    used: list[dict[Path, Type]],  # the attributes of each rule
    limits: Limits = DEFAULT_LIMITS,
) -> Imported:
    """The rules without those whose expression is invalid, or whose id is taken."""
    _refuse_duplicates(rules)
    _refuse_inner(rules, used)
    schema = _join(rules, used)
    good = [rule for rule in rules if rule.error is None]
    texts = [(rule.rule_id or "", rule.expression or "") for rule in good]
    for rule, parsed in zip(good, parse_many(texts, schema, limits), strict=True):
        if parsed.error is not None:
            error = parsed.error
            rule.refuse(RowError(error.code, error.message, hint=error.hint or _hint(error)))
    return Imported(rules, _join(rules, used))


def _hint(error: ExpressionError) -> str | None:
    is_limit = isinstance(error, LimitError)
    return "other limits can be set: Limits(…), in the shell --limit-…" if is_limit else None


def _join(rules: list[Rule], used: list[dict[Path, Type]]) -> Schema:
    """The types of the attributes that accepted rules test."""
    types: dict[Path, Type] = {}
    for rule, own in zip(rules, used, strict=True):
        if rule.error is None:
            # One that is only tested for presence by some rules has the type of the others.
            types |= {p: type_ for p, type_ in own.items() if type_ != ANY or p not in types}
    # An object that is tested as text, and of which others test a member, is read as both.
    for path in _find_members(rules, used).keys() & types.keys():
        types[path] = _TEXT_OF_OBJECTS
    return Schema(dict(sorted(types.items())))


def _refuse_duplicates(rules: list[Rule]) -> None:
    first: dict[str, Rule] = {}
    for rule in rules:
        if rule.error is not None or rule.rule_id is None:
            continue
        known = first.setdefault(rule.rule_id, rule)
        if known is not rule:
            rule.refuse(RowError("duplicate-id", f"the id was already given in {known.place}"))


def _refuse_inner(rules: list[Rule], used: list[dict[Path, Type]]) -> None:
    """Refuse rules that test an object as a number or a Boolean, since others test its members."""
    inner = _find_members(rules, used)
    for rule, own in zip(rules, used, strict=True):
        wrong = (path for path, type_ in own.items() if path in inner and not _is_text(type_))
        found = next(wrong, None)
        if found is not None and rule.error is None:
            rule.refuse(
                not_expressible(
                    f"{print_path(found)} is an object here: another rule tests its member "
                    f"{print_path(inner[found])}",
                    hint="test its members, or import these rules separately",
                )
            )


def _is_text(type_: Type) -> bool:
    return type_ in (STRING, ANY)


def _find_members(rules: list[Rule], used: list[dict[Path, Type]]) -> dict[Path, Path]:
    """The objects of which accepted rules test a member, each with one of these."""
    return {
        path[:length]: path
        for rule, own in zip(rules, used, strict=True)
        if rule.error is None
        for path in own
        for length in range(1, len(path))
    }
