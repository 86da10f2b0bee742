"""Turns the trees that pySigma parses into conditions."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionItem,
    ConditionNOT,
    ConditionOR,
    ConditionSelector,
    ConditionValueExpression,
    SigmaCondition,
)
from sigma.types import (
    CompareOperators,
    Placeholder,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaFieldReference,
    SigmaNull,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaRegularExpressionFlag,
    SigmaString,
    SigmaTimestampPart,
    SpecialChars,
    TimestampPart,
)

from tamis.errors import RowError
from tamis.importers.conditions import All, AtLeast, Not, Test, quote
from tamis.importers.conditions import Any as AnyOf
from tamis.importers.fields import Wildcard, spell_like
from tamis.importers.model import not_expressible
from tamis.importers.sigma.checks import name_kind
from tamis.language.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sigma.types import SigmaType

    from tamis.importers.conditions import Wish
    from tamis.importers.fields import Fields
    from tamis.language.types import Type

_WILDCARDS: Final = {
    SpecialChars.WILDCARD_MULTI: Wildcard.ANY_TEXT,
    SpecialChars.WILDCARD_SINGLE: Wildcard.ONE_CHARACTER,
}
_COMPARATORS: Final = {
    CompareOperators.LT: "<",
    CompareOperators.LTE: "<=",
    CompareOperators.GT: ">",
    CompareOperators.GTE: ">=",
}
_FLAGS: Final = {
    SigmaRegularExpressionFlag.IGNORECASE: "i",
    SigmaRegularExpressionFlag.MULTILINE: "m",
    SigmaRegularExpressionFlag.DOTALL: "s",
}
_PARTS: Final = {
    TimestampPart.MINUTE: "minute",
    TimestampPart.HOUR: "hour",
    TimestampPart.DAY: "day",
    TimestampPart.MONTH: "month",
    TimestampPart.YEAR: "year",
}


# ── conditions ──────────────────────────────────────────────────────────────────────────────

MOST_CHARACTERS: Final = 20_000  # of a condition; pySigma reads some 10,000 in a second
_COUNTED: Final = re.compile(r"(?<![\w*-])([0-9]+|any|all)\s+of\s+([\w*-]+)")
_KNOWN: Final = ("1", "any", "all")  # which pySigma reads, of names without a dash


class _AtLeast(ConditionItem):
    """So many of the detections, which pySigma does not have."""

    n_wanted: int


class _CountedSelection:
    """Stands for `2 of selection*` among the detections of a rule."""

    def __init__(self, wanted: str, pattern: str) -> None:
        self._wanted = wanted
        self._pattern = pattern

    def postprocess(self, detections: Any, parent: Any = None, source: Any = None) -> _AtLeast:
        selector = ConditionSelector(["any", self._pattern])
        named = selector.resolve_referenced_detections(detections)
        n_wanted = {"any": 1, "all": max(1, len(named))}.get(self._wanted) or int(self._wanted)
        if not 1 <= n_wanted <= len(named):
            raise RowError(
                "bad-rule",
                f'the condition has "{self._wanted} of {self._pattern}", but the number of '
                f"detections with such a name is {len(named)}",
            )
        node = _AtLeast([own.postprocess(detections, parent, source) for own in named])
        node.n_wanted = n_wanted
        return node


def parse_condition(condition: SigmaCondition) -> Any:
    """The tree of a condition, `2 of selection*` included."""
    detections = condition.detections.detections
    numbers = count()

    def name_selection(found: re.Match[str]) -> str:
        if found[1] in _KNOWN and "-" not in found[2]:
            return found[0]
        name = f"_counted_{next(numbers)}"
        detections[name] = _CountedSelection(found[1], found[2])  # type: ignore[assignment]
        return name

    given: Any = condition.condition
    if not isinstance(given, str):
        raise RowError("bad-rule", f"the condition is {name_kind(given)}; a text is expected")
    if len(given) > MOST_CHARACTERS:
        message = f"a condition has {len(given):,} characters; at most {MOST_CHARACTERS:,}"
        raise RowError("bad-rule", message)
    condition.condition = _COUNTED.sub(name_selection, given)
    return condition.parsed


# ── trees ───────────────────────────────────────────────────────────────────────────────────


class TreeReader:
    """Turns trees into conditions of fields."""

    def __init__(self, fields: Fields, values: Mapping[str, Sequence[str]]) -> None:
        """`values` are those of placeholders."""
        self._fields = fields
        self._values = values

    def read(self, node: Any) -> Wish:
        """The condition that a tree stands for."""
        match node:
            case ConditionAND():
                return All(tuple(map(self.read, node.args)))
            case ConditionOR():
                return AnyOf(tuple(map(self.read, node.args)))
            case ConditionNOT():
                return Not(self.read(node.args[0]))
            case _AtLeast():
                return AtLeast(node.n_wanted, tuple(map(self.read, node.args)))
            case ConditionFieldEqualsValueExpression():
                return self._test(node.field, node.value)
            case ConditionValueExpression():
                return self._search(node.value)
        raise RowError("bad-rule", f"the condition has no part that tests anything: {node!r}")

    def _test(self, field: str, value: SigmaType) -> Wish:
        """The condition that a field has a value."""
        fields = self._fields
        match value:
            case SigmaExpansion():
                return AnyOf(tuple(self._test(field, own) for own in value.values))
            case SigmaString():
                is_cased = isinstance(value, SigmaCasedString)
                tests = (
                    fields.matches(field, _read_pattern(own), is_cased=is_cased)
                    for own in self._expand(value)
                )
                return AnyOf(tuple(tests))
            case SigmaTimestampPart():
                return self._test_moment(field, value)
            case SigmaNumber() | SigmaBool():
                return fields.matches(field, (str(value).lower(),))
            case SigmaNull():
                return fields.is_missing(field)
            case SigmaExists():
                return fields.exists(field) if value.exists else fields.is_missing(field)
            case SigmaRegularExpression():
                tests = (
                    fields.contains_regex(field, _read_regex(own)) for own in self._expand(value)
                )
                return AnyOf(tuple(tests))
            case SigmaCIDRExpression():
                return fields.in_network(field, str(value.network))
            case SigmaCompareExpression(op=CompareOperators.NEQ):
                return Not(fields.matches(field, (str(value.number),)))
            case SigmaCompareExpression():
                return fields.compare(field, _COMPARATORS[value.op], value.number.number)
            case SigmaFieldReference():
                return self._test_reference(field, value)
        raise not_expressible(f"{field}: a value of the kind {type(value).__name__}")

    def _test_reference(self, field: str, value: SigmaFieldReference) -> Wish:
        if value.starts_with or value.ends_with:
            raise not_expressible(
                f"{field}: a test for the text of another field, {value.field}, inside a value",
                hint="only whole fields can be compared: fieldref without contains, startswith and "
                "endswith",
            )
        return self._fields.equals_field(field, value.field)

    def _test_moment(self, field: str, value: SigmaTimestampPart) -> Wish:
        function = _PARTS.get(value.timestamp_part)
        if function is None:
            raise not_expressible(f"{field}: the week of a timestamp")

        def spell(name: str, type_: Type) -> Wish:
            subject = f"cast({name} AS TIMESTAMP)" if type_ == STRING else name
            derived = f"{function}({subject})"
            return Test(derived, "=", str(value.number), (derived,))

        return self._fields.each(field, spell)

    def _search(self, value: SigmaType) -> Wish:
        """The condition that a string of the event contains a keyword."""
        match value:
            case SigmaExpansion():
                return AnyOf(tuple(map(self._search, value.values)))
            case SigmaRegularExpression():
                return AnyOf(
                    tuple(_find("RLIKE", quote(_read_regex(own))) for own in self._expand(value))
                )
            case SigmaString() | SigmaNumber():
                word = "LIKE" if isinstance(value, SigmaCasedString) else "ILIKE"
                given = value if isinstance(value, SigmaString) else SigmaString(str(value))
                anything = Wildcard.ANY_TEXT
                patterns = (
                    [anything, *_read_pattern(own), anything] for own in self._expand(given)
                )
                return AnyOf(tuple(_find(word, quote(spell_like(own))) for own in patterns))
        raise not_expressible(
            f"a keyword that is {_name_value(value)}: only texts are searched for"
        )

    def _expand(self, value: Any) -> Iterator[Any]:
        """The value with each combination of values for its placeholders."""
        if not value.contains_placeholder():
            return iter((value,))

        def replace(placeholder: Placeholder) -> Iterator[Any]:
            if placeholder.name not in self._values:
                raise not_expressible(
                    f"the placeholder %{placeholder.name}% has no values",
                    hint=f'give them in the settings: [values] {placeholder.name} = ["…"]',
                )
            return map(SigmaString, self._values[placeholder.name])

        return iter(value.replace_placeholders(replace))


def _name_value(value: SigmaType) -> str:
    match value:
        case SigmaNull():
            return "empty"
        case SigmaBool():
            return str(value).lower()
        case SigmaCIDRExpression():
            return "a network"
        case SigmaFieldReference():
            return "the name of a field"
    return "a comparison"


def _find(word: str, constant: str) -> Test:
    return Test(f"any_attribute(v -> v {word} {constant})")


def _read_pattern(value: SigmaString) -> list[str | Wildcard]:
    return [_WILDCARDS[own] if isinstance(own, SpecialChars) else str(own) for own in value.s]


def _read_regex(value: SigmaRegularExpression) -> str:
    flags = "".join(sorted(_FLAGS[flag] for flag in value.flags))
    return f"(?{flags}){value.regexp}" if flags else str(value.regexp)
