"""Prints the syntax tree as text, in our dialect and in Spark SQL's.

Ours is the inverse of `parse`. Spark's is for typed trees: XOR and at_least are expressed with
Spark's functions, regular expressions are rewritten for Java, and constants carry their type. Given
the text from which the tree was parsed, numbers are printed as written there, so that Spark reads
and rounds them itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from tamis.errors import TamisError
from tamis.language.array_keys import compared_array, elements_of
from tamis.language.ast import (
    ARITHMETIC,
    NOWHERE,
    SUBSCRIPTION,
    And,
    Arithmetic,
    ArraysOverlap,
    AtLeast,
    Attribute,
    Between,
    Comparison,
    Condition,
    Derived,
    ElementTest,
    In,
    InNetwork,
    IsNull,
    Like,
    Literal,
    Matches,
    Not,
    OperatorCall,
    Or,
    PatternList,
    Reference,
    Rlike,
    StringTest,
    Value,
    Variable,
    Words,
    Xnor,
    Xor,
    is_event,
    sources,
    tested_attributes,
)
from tamis.language.java_regex import to_java_regex
from tamis.language.literals import read_number
from tamis.language.names import print_path
from tamis.language.types import (
    ANY_ARRAY,
    DOUBLE,
    FLOAT,
    INTEGER,
    IP,
    KINDS,
    NUMBER,
    Type,
    decimal_type,
    parse_network,
    print_string,
    round_to_float,
)
from tamis.language.value_functions import FUNCTIONS, overload_of
from tamis.text.terms import NEAR, NEAR_IN_ORDER, PHRASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_OR_PRECEDENCE, _XOR_PRECEDENCE, _AND_PRECEDENCE, _NOT_PRECEDENCE = range(1, 5)
_TIGHTNESS: Final = {Or: _OR_PRECEDENCE, And: _AND_PRECEDENCE, Not: _NOT_PRECEDENCE}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spellings that differ between dialects."""

    print_literal: Callable[[Literal], str]
    print_element: Callable[[Literal], str]  # a constant that is searched in an array
    print_regex: Callable[[str], str]
    print_xor: Callable[[Xor | Xnor, Callable[[Condition, int], str], int], str]
    print_at_least: Callable[[int, list[str]], str]
    print_patterns: Callable[[PatternList, Dialect], str]
    print_overlap: Callable[[ArraysOverlap, Dialect], str]
    print_networks: Callable[[InNetwork, Dialect], str]
    print_matches: Callable[[Matches | Words], str]
    print_call: Callable[[OperatorCall], str]
    print_derived: Callable[[Derived, Dialect], str]
    print_any_attribute: Callable[[ElementTest], str]
    # The array in a comparison of arrays; None: as it is.
    print_compared_array: Callable[[str, Type], str] | None = None
    # Whether a number is a struct of NUMBER_PARTS, at most one of which is not NULL.
    splits_numbers: bool = False


def print_expression(condition: Condition) -> str:
    """The text that `parse` reads as this condition."""
    return _print(condition, 0, TAMIS)


def print_for_spark(
    condition: Condition, text: str | None = None, *, splits_numbers: bool = False
) -> str:
    """The Spark SQL text that means this typed condition.

    With `text`, from which the condition was parsed, numbers that may be rounded are printed as
    written there: Spark's result then does not depend on our parsing. An attribute of type `number`
    is a column of any numeric type; with `splits_numbers` it is a struct of NUMBER_PARTS, for
    events whose values are of several kinds.
    """
    dialect = replace(SPARK, splits_numbers=splits_numbers)
    if text is None:
        return _print(condition, 0, dialect)
    literal, element = partial(_print_as_written, text), partial(_print_cast, text)
    return _print(condition, 0, replace(dialect, print_literal=literal, print_element=element))


def print_value(value: Value) -> str:
    """The text of one attribute, constant, variable or arithmetic expression."""
    return _print_value(value, TAMIS)


def _print_value(value: Value, dialect: Dialect) -> str:
    match value:
        case Derived():
            return dialect.print_derived(value, dialect)
        case Attribute():
            return print_path(value.path)
        case Literal():
            return dialect.print_literal(value)
        case Variable():
            return f"?{value.name}"
        case Arithmetic():
            return _print_arithmetic(value.operator, value.left, value.right)


def _print_derived(value: Derived, dialect: Dialect) -> str:
    if value.function in ARITHMETIC:
        left, right = value.arguments
        return _print_arithmetic(value.function, left, right)
    if value.function == "cast":
        operand, type_ = value.arguments
        assert isinstance(type_, Literal)
        return f"cast({_print_value(operand, dialect)} AS {type_.value})"
    arguments = ", ".join(_print_value(own, dialect) for own in value.arguments)
    return f"{value.function}({arguments})"


def _print_derived_for_spark(value: Derived, dialect: Dialect) -> str:
    function = FUNCTIONS[value.function]
    if function.is_analysed:
        _refuse_words(print_value(value))
    text = overload_of(value).spark
    if text is None and function.check_regex is not None:
        *others, pattern = value.arguments
        assert isinstance(pattern, Literal)
        arguments = [_print_value(own, dialect) for own in others]
        arguments.append(print_string(to_java_regex(pattern.value)))
        return f"{value.function}({', '.join(arguments)})"
    if text is None:
        return _print_derived(value, dialect)
    if not text:
        raise TamisError(
            f"addresses read from strings have no Spark SQL form: {_print_derived(value, TAMIS)}",
            hint="declare the attribute as IP",
        )
    return text.format(*(_print_value(own, dialect) for own in value.arguments))


def _print_literal_for_spark(literal: Literal) -> str:
    kind = KINDS[literal.type.name]
    return (kind.print_for_spark or kind.print)(literal.value)


def print_literal(literal: Literal) -> str:
    """The constant, spelled so that its type is visible."""
    if literal.type == ANY_ARRAY:  # as it was parsed
        return _print_array(literal.value, TAMIS)
    return KINDS[literal.type.name].print(literal.value)


# ── conditions ──────────────────────────────────────────────────────────────────────────────


def _print(node: Condition, loosest: int, dialect: Dialect) -> str:
    """`node`, in parentheses unless it binds tighter than `loosest`."""

    def below(operand: Condition, tightness: int) -> str:
        return _print(operand, tightness, dialect)

    match node:
        case And():
            text = " AND ".join(below(operand, _AND_PRECEDENCE) for operand in node.operands)
        case Or():
            text = " OR ".join(below(operand, _OR_PRECEDENCE) for operand in node.operands)
        case Not():
            # NOT NOT p needs no parentheses: NOT takes an operand that binds as tightly as itself.
            text = "NOT " + below(node.operand, _NOT_PRECEDENCE - 1)
        case Xor() | Xnor():
            return dialect.print_xor(node, below, loosest)
        case AtLeast():
            return dialect.print_at_least(node.k, [below(operand, 0) for operand in node.operands])
        case _:
            return (
                _print_split(node, dialect)
                if dialect.splits_numbers
                else _print_leaf(node, dialect)
            )
    return f"({text})" if _TIGHTNESS[type(node)] <= loosest else text


def _print_xor(node: Xor | Xnor, below: Callable[[Condition, int], str], loosest: int) -> str:
    if isinstance(node, Xnor) and len(node.operands) > 2:
        return f"xnor({', '.join(below(operand, 0) for operand in node.operands)})"
    word = " XOR " if isinstance(node, Xor) else " XNOR "
    text = word.join(below(operand, _XOR_PRECEDENCE) for operand in node.operands)
    return f"({text})" if loosest >= _XOR_PRECEDENCE else text


def _print_xor_for_spark(
    node: Xor | Xnor, below: Callable[[Condition, int], str], loosest: int
) -> str:
    first, *others = (f"({below(operand, 0)})" for operand in node.operands)
    for other in others[:-1]:
        first = f"({first} <> {other})"
    return f"({first} {'<>' if isinstance(node, Xor) else '='} {others[-1]})"


def _print_at_least(k: int, operands: list[str]) -> str:
    return f"at_least({k}, {', '.join(operands)})"


def _print_at_least_for_spark(k: int, operands: list[str]) -> str:
    # The k-th largest in the order FALSE < NULL < TRUE; names each operand once.
    ranks = "x -> CASE WHEN x IS NULL THEN 1 WHEN x THEN 2 ELSE 0 END"
    sorted_ranks = f"sort_array(transform(array({', '.join(operands)}), {ranks}), false)"
    return f"(CASE element_at({sorted_ranks}, {k}) WHEN 2 THEN true WHEN 0 THEN false END)"


# ── leaves ──────────────────────────────────────────────────────────────────────────────────


def _print_leaf(node: Condition, dialect: Dialect) -> str:
    match node:
        case Comparison():
            array = compared_array(node.left) or compared_array(node.right)
            if array is not None:
                left, right = (_print_side(own, array, dialect) for own in (node.left, node.right))
                return f"{left} {node.operator} {right}"
            left, right = _print_value(node.left, dialect), _print_value(node.right, dialect)
            return f"{left} {node.operator} {right}"
        case In() if array := compared_array(node.operand):
            values = ", ".join(_print_side(own, array, dialect) for own in node.values)
            return f"{_print_side(node.operand, array, dialect)}{_not(node)} IN ({values})"
        case In():
            values = ", ".join(map(dialect.print_literal, node.values))
            return f"{_print_value(node.operand, dialect)}{_not(node)} IN ({values})"
        case Between():
            bounds = " AND ".join(_print_value(bound, dialect) for bound in (node.low, node.high))
            return f"{_print_value(node.operand, dialect)}{_not(node)} BETWEEN {bounds}"
        case IsNull() if array := compared_array(node.operand):
            return f"{_print_side(node.operand, array, dialect)} IS{_not(node)} NULL"
        case IsNull():
            return f"{_print_value(node.operand, dialect)} IS{_not(node)} NULL"
        case Like():
            word = "ILIKE" if node.ignores_case else "LIKE"
            escape = "" if node.escape == "\\" else f" ESCAPE {print_string(node.escape)}"
            pattern = print_string(node.pattern)
            return f"{_print_value(node.operand, dialect)}{_not(node)} {word} {pattern}{escape}"
        case Rlike():
            pattern = print_string(dialect.print_regex(node.pattern))
            return f"{_print_value(node.operand, dialect)}{_not(node)} RLIKE {pattern}"
        case PatternList():
            return dialect.print_patterns(node, dialect)
        case StringTest():
            operand = _print_value(node.operand, dialect)
            return f"{node.function}({operand}, {print_string(node.text)})"
        case ArraysOverlap():
            return dialect.print_overlap(node, dialect)
        case ElementTest():
            if is_event(node.operand):
                return dialect.print_any_attribute(node)
            parameter, body = print_path((node.test.parameter,)), _print(node.test.body, 0, dialect)
            return f"{node.function}({print_value(node.operand)}, {parameter} -> {body})"
        case InNetwork():
            return dialect.print_networks(node, dialect)
        case Matches() | Words():
            return dialect.print_matches(node)
        case OperatorCall():
            return dialect.print_call(node)
        case Reference():
            return print_reference(node.name)
        case Attribute() | Literal():
            return _print_value(node, dialect)  # TRUE, FALSE or a Boolean attribute
        case _:
            raise AssertionError(node)


def _print_side(value: Value, array: Type, dialect: Dialect) -> str:
    """One side of a comparison of arrays, of which the tree has the keys."""
    assert array.element is not None
    if isinstance(value, Literal):
        shown = _print_array(elements_of(value.value, array.element), dialect)
    else:
        assert isinstance(value, Derived)
        shown = print_value(value.arguments[0])
    convert = dialect.print_compared_array
    return shown if convert is None else convert(shown, array)


def _print_array(elements: Iterable[Literal | None], dialect: Dialect) -> str:
    shown = ("NULL" if own is None else dialect.print_literal(own) for own in elements)
    return f"array({', '.join(shown)})"


def _print_array_for_spark(array: str, type_: Type) -> str:
    """Converted to the declared type: Spark's columns may have a narrower one, and constants,
    `array()` above all, their own.
    """
    element = {IP: "string", INTEGER: "bigint"}.get(cast("Type", type_.element), type_.element)
    return f"CAST({array} AS array<{element}>)"


def print_reference(name: str) -> str:
    """A reference to a condition as an expression spells it."""
    if name.startswith(SUBSCRIPTION):
        return f"subscription({print_string(name.removeprefix(SUBSCRIPTION))})"
    return f"@{name}"


# The form of a number on Spark if its kind changes from event to event.
NUMBER_PARTS: Final = {"double": DOUBLE, "exact": decimal_type(38, 18), "whole": INTEGER}


def _print_split(node: Condition, dialect: Dialect) -> str:
    """A leaf whose numbers are structs: compared by the part that is not NULL."""
    if isinstance(node, ArraysOverlap) and _is_number(node.operand):
        # `exists` is undefined like array_contains: if none is found and an element is NULL.
        element = Attribute(("e",), NUMBER)
        found = _print_split(In(element, node.values), dialect)
        return f"exists({print_value(node.operand)}, e -> {found})"
    if isinstance(node, ElementTest):
        return _print_leaf(node, dialect)
    tested = list(tested_attributes(node))
    if any(isinstance(own, Derived) and any(map(_is_number, sources(own))) for own in tested):
        text = _print_leaf(node, TAMIS)
        raise TamisError(
            f"functions of numbers of several kinds have no Spark SQL form: {text}",
            hint="declare the attribute with the type of its column",
        )
    number = next((own for own in tested if _is_number(own)), None)
    if number is None or number.type != NUMBER:
        return _print_leaf(node, dialect)
    cases = [
        (
            print_path((*number.path, part)),
            _print_split(_with_part(node, number.path, part), dialect),
        )
        for part in NUMBER_PARTS
    ]
    tests = " ".join(f"WHEN {name} IS NOT NULL THEN {text}" for name, text in cases[:-1])
    return f"(CASE {tests} ELSE {cases[-1][1]} END)"


def _is_number(attribute: Attribute) -> bool:
    return attribute.type is not None and (attribute.type.element or attribute.type) == NUMBER


def _with_part(node: Condition, path: tuple[str, ...], part: str) -> Condition:
    """The leaf with one part instead of a number."""
    own = Attribute((*path, part), NUMBER_PARTS[part])
    sides = {
        side: own
        for side in ("left", "right", "operand", "low", "high")
        if isinstance(value := getattr(node, side, None), Attribute) and value.path == path
    }
    changed: Condition = replace(cast("Any", node), **sides)
    return changed


def _not(node: In | Between | IsNull | Like | Rlike | PatternList) -> str:
    return " NOT" if node.negated else ""


def _print_patterns(node: PatternList, dialect: Dialect) -> str:
    patterns = ", ".join(map(print_string, node.patterns))
    operand = _print_value(node.operand, dialect)
    return f"{operand}{_not(node)} {node.word} {node.quantifier} ({patterns})"


def _print_patterns_for_spark(node: PatternList, dialect: Dialect) -> str:
    if node.word != "RLIKE":
        return _print_patterns(node, dialect)
    # Spark has no lists of regular expressions.
    tests = (_print_leaf(replace(own, negated=node.negated), dialect) for own in node.tests)
    return f"({(' AND ' if node.quantifier == 'ALL' else ' OR ').join(tests)})"


def _print_overlap(node: ArraysOverlap, dialect: Dialect) -> str:
    values = ", ".join(map(dialect.print_element, node.values))
    members = values if node.function == "array_contains" else f"array({values})"
    return f"{node.function}({print_value(node.operand)}, {members})"


def _print_overlap_for_spark(node: ArraysOverlap, dialect: Dialect) -> str:
    # arrays_overlap does not convert decimals to a common type, array_contains does.
    if node.function == "array_contains" or all(v.type.name != "decimal" for v in node.values):
        return _print_overlap(node, dialect)
    array = print_value(node.operand)
    tests = (f"array_contains({array}, {dialect.print_element(value)})" for value in node.values)
    return f"({' OR '.join(tests)})"


def _print_networks(node: InNetwork, dialect: Dialect) -> str:
    networks = ", ".join(map(print_string, node.networks))
    return f"in_network({_print_value(node.operand, dialect)}, {networks})"


def _print_ranges(node: InNetwork, dialect: Dialect) -> str:
    """The networks as ranges of addresses, which Spark has as texts of 32 digits."""
    operand = _print_value(node.operand, dialect)
    ranges = (
        f"{operand} BETWEEN {print_string(network.first)} AND {print_string(network.last)}"
        for network in map(parse_network, node.networks)
    )
    return f"({' OR '.join(ranges)})"


def _print_matches(node: Matches | Words) -> str:
    if isinstance(node, Words):
        function = "matches" if len(node.words) == 1 else "matches_phrase"
        written = f"{print_value(node.operand)}, {print_string(' '.join(node.words))}"
        if node.mode != PHRASE:
            return f"{node.mode}({written}, {node.distance})"
        return f"{function}({written})"
    names = ", ".join(map(print_value, node.attributes))
    names = names if len(node.attributes) == 1 else f"({names})"
    k = f"{node.k}, " if node.mode == "at_least" else ""
    distance = f", {node.k}" if node.mode in (NEAR, NEAR_IN_ORDER) else ""
    return f"{node.function}({k}{names}, {print_string(node.query)}{distance})"


def _print_any_attribute(node: ElementTest) -> str:
    """The test; that of no string, which only canonical trees have, as a negation."""
    parameter, body = print_path((node.test.parameter,)), node.test.body
    if node.function == "exists":
        return f"any_attribute({parameter} -> {print_expression(body)})"
    opposite = body.operand if isinstance(body, Not) else Not(body)
    return f"NOT any_attribute({parameter} -> {print_expression(opposite)})"


def _refuse_any_attribute(node: ElementTest) -> str:
    raise TamisError(
        f"Spark SQL has no test of all columns: {_print_any_attribute(node)}",
        hint="match on Spark by an index, or write the attributes: a ILIKE '%x%' OR b ILIKE '%x%'",
    )


def _refuse_matches(node: Matches | Words) -> str:
    _refuse_words(_print_matches(node))


def _refuse_words(text: str) -> NoReturn:
    raise TamisError(
        f"keywords have no Spark SQL form: {text}",
        hint="match on Spark by an index; the words of a text depend on its analyser",
    )


def _print_call(node: OperatorCall) -> str:
    return f"{node.name}({', '.join(map(print_value, node.arguments))})"


def _refuse_call(node: OperatorCall) -> str:
    raise TamisError(
        f"operators have no Spark SQL form: {_print_call(node)}",
        hint="match on Spark by an index; its workers call the operators",
    )


def _print_arithmetic(operator: str, left: Value, right: Value) -> str:
    def side(value: Value, *, is_right: bool) -> str:
        text = print_value(value)
        own = _operator_of(value)
        if own is None:
            return text
        is_looser = own in "+-" and operator not in "+-"
        is_same_level = (own in "+-") == (operator in "+-")
        return f"({text})" if is_looser or (is_right and is_same_level) else text

    return f"{side(left, is_right=False)} {operator} {side(right, is_right=True)}"


def _operator_of(value: Value) -> str | None:
    """The operator of arithmetic; None for other values."""
    if isinstance(value, Arithmetic):
        return value.operator
    return value.function if isinstance(value, Derived) and value.function in ARITHMETIC else None


# ── constants as the user wrote them ────────────────────────────────────────────────────────


def _print_as_written(text: str, literal: Literal) -> str:
    """The constant as written in the text; by its value if no rounding was involved."""
    if literal.type not in (INTEGER, FLOAT, DOUBLE) or literal.span == NOWHERE:
        return _print_literal_for_spark(literal)
    written, kind = _written_number(text, literal)
    if _is_reprinted(literal, kind):
        return print_literal(literal)
    if kind.name == "decimal" and literal.type != DOUBLE:
        return print_literal(literal) if literal.type == INTEGER else f"CAST({written} AS FLOAT)"
    return written


def _print_cast(text: str, literal: Literal) -> str:
    """The constant converted to the elements' type: Spark converts it only in some cases."""
    if not literal.type.is_floating or literal.span == NOWHERE:
        return _print_literal_for_spark(literal)
    written, kind = _written_number(text, literal)
    if _is_reprinted(literal, kind):
        return print_literal(literal)
    return f"CAST({written} AS {literal.type})"


def _is_reprinted(literal: Literal, kind: Type) -> bool:
    """Whether a constant written as a float means the double that it prints as."""
    return (
        kind == FLOAT and literal.type == DOUBLE and round_to_float(literal.value) != literal.value
    )


def _written_number(text: str, literal: Literal) -> tuple[str, Type]:
    """The number as written in the text, and its type there."""
    written = text[slice(*literal.span)].strip("() \t\r\n")
    digits = written.lstrip("- \t\r\n")
    number = read_number(digits, literal.span, is_negative=digits != written)
    # A decimal is exact, but zeros at its ends would count as digits in Spark, which has 38.
    return print_literal(number) if number.type.name == "decimal" else written, number.type


TAMIS: Final = Dialect(
    print_literal,
    print_literal,
    lambda pattern: pattern,
    _print_xor,
    _print_at_least,
    _print_patterns,
    _print_overlap,
    _print_networks,
    _print_matches,
    _print_call,
    _print_derived,
    _print_any_attribute,
)
SPARK: Final = Dialect(
    _print_literal_for_spark,
    _print_literal_for_spark,
    to_java_regex,
    _print_xor_for_spark,
    _print_at_least_for_spark,
    _print_patterns_for_spark,
    _print_overlap_for_spark,
    _print_ranges,
    _refuse_matches,
    _refuse_call,
    _print_derived_for_spark,
    _refuse_any_attribute,
    _print_array_for_spark,
)
