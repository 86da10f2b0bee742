"""Prints the syntax tree as text, in our dialect and in Spark SQL's.

Ours is the inverse of `parse`. Spark's is for typed trees: XOR and at_least are expressed with
Spark's functions, regular expressions are rewritten for Java, and constants carry their type. Given
the text from which the tree was parsed, numbers are printed as written there, so that Spark reads
and rounds them itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from tamis.errors import TamisError
from tamis.language.ast import (
    And,
    Arithmetic,
    ArraysOverlap,
    AtLeast,
    Attribute,
    Between,
    Comparison,
    Condition,
    Derived,
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
    Rlike,
    StringTest,
    Value,
    Variable,
    Words,
    Xnor,
    Xor,
    tested_attributes,
)
from tamis.language.java_regex import to_java_regex
from tamis.language.literals import read_number
from tamis.language.names import print_path
from tamis.language.types import (
    DOUBLE,
    FLOAT,
    INTEGER,
    KINDS,
    NUMBER,
    Type,
    decimal_type,
    parse_network,
    print_string,
    round_to_float,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_OR, _XOR, _AND, _NOT = range(1, 5)
_TIGHTNESS: Final = {Or: _OR, And: _AND, Not: _NOT}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spellings that differ between dialects."""

    print_literal: Callable[[Literal], str]
    print_element: Callable[[Literal], str]  # a constant that is searched in an array
    print_regex: Callable[[str], str]
    print_xor: Callable[[Xor | Xnor, Callable[[Condition, int], str], int], str]
    print_at_least: Callable[[int, list[str]], str]
    print_patterns: Callable[[PatternList], str]
    print_overlap: Callable[[ArraysOverlap, Dialect], str]
    print_networks: Callable[[InNetwork], str]
    print_matches: Callable[[Matches | Words], str]
    print_call: Callable[[OperatorCall], str]
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
            arguments = ", ".join(_print_value(own, dialect) for own in value.arguments)
            return f"{value.function}({arguments})"
        case Attribute():
            return print_path(value.path)
        case Literal():
            return dialect.print_literal(value)
        case Variable():
            return f"?{value.name}"
        case Arithmetic():
            return _print_arithmetic(value)


def _print_literal_for_spark(literal: Literal) -> str:
    kind = KINDS[literal.type.name]
    return (kind.print_for_spark or kind.print)(literal.value)


def print_literal(literal: Literal) -> str:
    """The constant, spelled so that its type is visible."""
    return KINDS[literal.type.name].print(literal.value)


# ── conditions ──────────────────────────────────────────────────────────────────────────────


def _print(node: Condition, loosest: int, dialect: Dialect) -> str:
    """`node`, in parentheses unless it binds tighter than `loosest`."""

    def below(operand: Condition, tightness: int) -> str:
        return _print(operand, tightness, dialect)

    match node:
        case And():
            text = " AND ".join(below(operand, _AND) for operand in node.operands)
        case Or():
            text = " OR ".join(below(operand, _OR) for operand in node.operands)
        case Not():
            # NOT NOT p needs no parentheses: NOT takes an operand that binds as tightly as itself.
            text = "NOT " + below(node.operand, _NOT - 1)
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
    text = word.join(below(operand, _XOR) for operand in node.operands)
    return f"({text})" if loosest >= _XOR else text


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
            left, right = _print_value(node.left, dialect), _print_value(node.right, dialect)
            return f"{left} {node.operator} {right}"
        case In():
            values = ", ".join(map(dialect.print_literal, node.values))
            return f"{_print_value(node.operand, dialect)}{_not(node)} IN ({values})"
        case Between():
            bounds = " AND ".join(_print_value(bound, dialect) for bound in (node.low, node.high))
            return f"{_print_value(node.operand, dialect)}{_not(node)} BETWEEN {bounds}"
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
            return dialect.print_patterns(node)
        case StringTest():
            operand = _print_value(node.operand, dialect)
            return f"{node.function}({operand}, {print_string(node.text)})"
        case ArraysOverlap():
            return dialect.print_overlap(node, dialect)
        case InNetwork():
            return dialect.print_networks(node)
        case Matches() | Words():
            return dialect.print_matches(node)
        case OperatorCall():
            return dialect.print_call(node)
        case Attribute() | Literal():
            return print_value(node)  # TRUE, FALSE or a Boolean attribute
        case _:
            raise AssertionError(node)


# The form of a number on Spark if its kind changes from event to event.
NUMBER_PARTS: Final = {"double": DOUBLE, "exact": decimal_type(38, 18), "whole": INTEGER}


def _print_split(node: Condition, dialect: Dialect) -> str:
    """A leaf whose numbers are structs: compared by the part that is not NULL."""
    if isinstance(node, ArraysOverlap) and _is_number(node.operand):
        # `exists` is undefined like array_contains: if none is found and an element is NULL.
        element = Attribute(("e",), NUMBER)
        found = _print_split(In(element, node.values), dialect)
        return f"exists({print_value(node.operand)}, e -> {found})"
    number = next((own for own in tested_attributes(node) if _is_number(own)), None)
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


def _print_patterns(node: PatternList) -> str:
    patterns = ", ".join(map(print_string, node.patterns))
    return f"{print_value(node.operand)}{_not(node)} {node.word} {node.quantifier} ({patterns})"


def _print_patterns_for_spark(node: PatternList) -> str:
    if node.word != "RLIKE":
        return _print_patterns(node)
    # Spark has no lists of regular expressions.
    tests = (_print_leaf(replace(own, negated=node.negated), SPARK) for own in node.tests)
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


def _print_networks(node: InNetwork) -> str:
    networks = ", ".join(map(print_string, node.networks))
    return f"in_network({print_value(node.operand)}, {networks})"


def _print_ranges(node: InNetwork) -> str:
    """The networks as ranges of addresses, which Spark has as texts of 32 digits."""
    operand = print_value(node.operand)
    ranges = (
        f"{operand} BETWEEN {print_string(network.first)} AND {print_string(network.last)}"
        for network in map(parse_network, node.networks)
    )
    return f"({' OR '.join(ranges)})"


def _print_matches(node: Matches | Words) -> str:
    if isinstance(node, Words):
        function = "matches" if len(node.words) == 1 else "matches_phrase"
        return f"{function}({print_value(node.operand)}, {print_string(' '.join(node.words))})"
    function = "matches" if node.mode == "all" else f"matches_{node.mode}"
    names = ", ".join(map(print_value, node.attributes))
    names = names if len(node.attributes) == 1 else f"({names})"
    k = f"{node.k}, " if node.mode == "at_least" else ""
    return f"{function}({k}{names}, {print_string(node.query)})"


def _refuse_matches(node: Matches | Words) -> str:
    raise TamisError(
        f"keywords have no Spark SQL form: {_print_matches(node)}",
        hint="match on Spark by an index; the words of a text depend on its analyser",
    )


def _print_call(node: OperatorCall) -> str:
    return f"{node.name}({', '.join(map(print_value, node.arguments))})"


def _refuse_call(node: OperatorCall) -> str:
    raise TamisError(
        f"operators have no Spark SQL form: {_print_call(node)}",
        hint="match on Spark by an index; its workers call the operators",
    )


def _print_arithmetic(node: Arithmetic) -> str:
    def side(value: Value, *, is_right: bool) -> str:
        text = print_value(value)
        if not isinstance(value, Arithmetic):
            return text
        is_looser = value.operator in "+-" and node.operator in "*/"
        is_same_level = (value.operator in "+-") == (node.operator in "+-")
        return f"({text})" if is_looser or (is_right and is_same_level) else text

    left, right = side(node.left, is_right=False), side(node.right, is_right=True)
    return f"{left} {node.operator} {right}"


# ── constants as the user wrote them ────────────────────────────────────────────────────────


def _print_as_written(text: str, literal: Literal) -> str:
    """The constant as written in the text; by its value if no rounding was involved."""
    if literal.type not in (INTEGER, FLOAT, DOUBLE):
        return _print_literal_for_spark(literal)
    written, kind = _written_number(text, literal)
    if _is_reprinted(literal, kind):
        return print_literal(literal)
    if kind.name == "decimal" and literal.type != DOUBLE:
        return print_literal(literal) if literal.type == INTEGER else f"CAST({written} AS FLOAT)"
    return written


def _print_cast(text: str, literal: Literal) -> str:
    """The constant converted to the elements' type: Spark converts it only in some cases."""
    if not literal.type.is_floating:
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
)
