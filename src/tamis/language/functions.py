"""Calls in the grammar: the built-in functions with their signatures, and operator calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import ParseError, SchemaError
from tamis.language.array_keys import ARRAY_KEY
from tamis.language.ast import (
    EVENT,
    SUBSCRIPTION,
    ArraysOverlap,
    AtLeast,
    Attribute,
    Condition,
    Derived,
    ElementTest,
    InNetwork,
    Lambda,
    Literal,
    Matches,
    OperatorCall,
    Reference,
    StringTest,
    Value,
    Xnor,
    Xor,
)
from tamis.language.foreign_values import hint_at_unsupported
from tamis.language.tokens import ARROW, END, KEYWORDS, QUOTED, WORD, refuse_word
from tamis.language.types import ANY_ARRAY, INTEGER, STRING, parse_type
from tamis.language.value_functions import FUNCTIONS, find_function, takes
from tamis.text.proximity import MAX_DISTANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Span
    from tamis.language.parser import Parser

SIGNATURES: Final = {
    "startswith": "startswith(attribute, 'text')",
    "endswith": "endswith(attribute, 'text')",
    "contains": "contains(attribute, 'text')",
    "array_contains": "array_contains(attribute, constant)",
    "arrays_overlap": "arrays_overlap(attribute, array(constant, …))",
    "array": "array(constant, …)",
    "exists": "exists(attribute, element -> condition)",
    "forall": "forall(attribute, element -> condition)",
    "any_attribute": "any_attribute(value -> condition)",
    "in_network": "in_network(attribute, '10.0.0.0/8', …)",
    "at_least": "at_least(k, condition, condition, …)",
    "xor": "xor(condition, condition, …)",
    "subscription": "subscription('id')",
    "xnor": "xnor(condition, condition, …)",
    "matches": "matches(attribute, 'all these words')",
    "matches_any": "matches_any(attribute, 'any of these words')",
    "matches_phrase": "matches_phrase(attribute, 'these words in a row')",
    "matches_at_least": "matches_at_least(k, attribute, 'k of these words')",
    "near": "near(attribute, 'these words', distance)",
    "near_in_order": "near_in_order(attribute, 'these words', distance)",
    **{name: own.signature for name, own in FUNCTIONS.items() if name != ARRAY_KEY},
}


def parse_call(parser: Parser, name: str, name_span: Span) -> Condition:
    """Parse the call at the current token; names of functions are case-insensitive, as in SQL."""
    parser.at += 2
    parser.enter()
    function = name.lower()
    try:
        reader = _READERS.get(function)
        start = name_span[0]
        value = find_function(name) if reader is None else None
        node: Condition
        if value is not None:
            node = _derived(parser, value, start)
        else:
            node = (
                reader(parser, function, start) if reader else _operator_call(parser, name, start)
            )
    except ParseError as error:
        is_misplaced = error.code in ("unexpected-token", "not-an-attribute")
        if error.hint is None and function in SIGNATURES and is_misplaced:
            error.hint = SIGNATURES[function]
        raise
    parser.depth -= 1
    return node


def _close(parser: Parser, start: int) -> Span:
    parser.expect(")")
    return start, parser.spans[parser.at - 1][1]


def _attribute(parser: Parser, function: str) -> Attribute:
    return parser.attribute(parser.expression(0), f"{function}()")


def _string_test(parser: Parser, function: str, start: int) -> StringTest:
    operand = _attribute(parser, function)
    parser.expect(",")
    text = parser.string("expected text in quotes")
    return StringTest(function, operand, text, _close(parser, start))


def _array_contains(parser: Parser, function: str, start: int) -> ArraysOverlap:
    operand = _attribute(parser, function)
    parser.expect(",")
    value = parser.literal("expected a constant")
    return ArraysOverlap(operand, (value,), function, _close(parser, start))


def _arrays_overlap(parser: Parser, function: str, start: int) -> ArraysOverlap:
    operand = _attribute(parser, function)
    parser.expect(",")
    if not parser.is_word("ARRAY"):
        parser.fail("expected array(…)", ("array",))
    parser.at += 1
    parser.expect("(")
    values = [parser.literal("expected a constant in the array")]
    while parser.kinds[parser.at] == ",":
        parser.at += 1
        values.append(parser.literal("expected a constant in the array"))
    parser.expect(")")
    span = _close(parser, start)
    parser.check_members(len(values), span)
    return ArraysOverlap(operand, tuple(values), function, span)


def _array(parser: Parser, function: str, start: int) -> Literal:
    """A constant array; NULL is allowed in it."""
    members: list[Literal | None] = []
    while parser.kinds[parser.at] != ")" or members:
        if parser.kinds[parser.at] == "NULL":
            parser.at += 1
            members.append(None)
        else:
            members.append(parser.literal("expected a constant in the array"))
        if parser.kinds[parser.at] != ",":
            break
        parser.at += 1
    span = _close(parser, start)
    parser.check_members(len(members), span)
    return Literal(tuple(members), ANY_ARRAY, span)


def _element_test(parser: Parser, function: str, start: int) -> ElementTest:
    operand = _attribute(parser, function)
    if function == "exists" and parser.kinds[parser.at] != ",":  # of other languages
        raise refuse_word(parser.text, start, start + len(function))
    parser.expect(",")
    test = parse_lambda(parser)
    return ElementTest(function, operand, test, _close(parser, start))


def _any_attribute(parser: Parser, function: str, start: int) -> ElementTest:
    test = parse_lambda(parser)
    span = _close(parser, start)
    return ElementTest("exists", Attribute(EVENT, None, span), test, span)


def parse_lambda(parser: Parser) -> Lambda:
    """A name, an arrow, and a condition over the value of that name: `t -> t > 5`."""
    begin = parser.here()[0]
    kind = parser.kinds[parser.at]
    if kind not in (WORD, QUOTED) and kind not in KEYWORDS:
        parser.fail("expected a name and ->, such as t -> t = 'a'")
    if kind in KEYWORDS:
        parser.fail("expected a name before ->")
    parameter = parser.name()
    parser.expect(ARROW, "after the name of the element")
    body = parser.condition(parser.expression(0))
    return Lambda(parameter, body, (begin, body.span[1]))


def _in_network(parser: Parser, function: str, start: int) -> InNetwork:
    operand = _attribute(parser, function)
    parser.expect(",")
    networks = [parser.string("expected a network in quotes")]
    while parser.kinds[parser.at] == ",":
        parser.at += 1
        networks.append(parser.string("expected a network in quotes"))
    span = _close(parser, start)
    parser.check_members(len(networks), span)
    return InNetwork(operand, tuple(networks), span)


def _conditions(parser: Parser) -> tuple[Condition, ...]:
    operands = [parser.condition(parser.expression(0))]
    while parser.kinds[parser.at] == ",":
        parser.at += 1
        operands.append(parser.condition(parser.expression(0)))
    return tuple(operands)


def _count(parser: Parser) -> tuple[int, Span]:
    literal = parser.literal("expected a whole number, the count")
    if literal.type != INTEGER:
        raise ParseError("bad-count", "expected a whole number, the count", span=literal.span)
    return literal.value, literal.span


def _at_least(parser: Parser, function: str, start: int) -> AtLeast:
    k, span = _count(parser)
    parser.expect(",")
    operands = _conditions(parser)
    if not 1 <= k <= len(operands):
        message = f"at_least({k}, …) of {len(operands)} conditions; k must be 1 to their number"
        raise ParseError("bad-count", message, span=span)
    return AtLeast(k, operands, _close(parser, start))


def _xor(parser: Parser, function: str, start: int) -> Xor | Xnor:
    operands = _conditions(parser)
    span = _close(parser, start)
    if len(operands) < 2:
        message = f"{function}() takes two conditions or more"
        raise ParseError("wrong-arity", message, span=span, hint=SIGNATURES[function])
    parser.check_xor(len(operands), span)
    return Xor(operands, span) if function == "xor" else Xnor(operands, span)


def _subscription(parser: Parser, function: str, start: int) -> Reference:
    name = parser.string("expected the id of a subscription in quotes")
    return Reference(SUBSCRIPTION + name, _close(parser, start))


def _matches(parser: Parser, function: str, start: int) -> Matches:
    mode = function.removeprefix("matches").removeprefix("_") or "all"
    k = 0
    if mode == "at_least":
        k, span = _count(parser)
        if k < 1:
            raise ParseError("bad-count", f"{function}({k}, …); k is at least 1", span=span)
        parser.expect(",")
    attributes = _attribute_list(parser, function)
    parser.expect(",")
    query = parser.string("expected words in quotes")
    return Matches(mode, attributes, query, k, _close(parser, start))


def _near(parser: Parser, function: str, start: int) -> Matches:
    attributes = _attribute_list(parser, function)
    parser.expect(",")
    query = parser.string("expected words in quotes")
    parser.expect(",")
    distance, span = _count(parser)
    if not 0 <= distance <= MAX_DISTANCE:
        message = (
            f"{function}(…, {distance}); the distance, in words between, is 0 to {MAX_DISTANCE}"
        )
        raise ParseError("bad-count", message, span=span)
    return Matches(function, attributes, query, distance, _close(parser, start))


def _attribute_list(parser: Parser, function: str) -> tuple[Attribute, ...]:
    if parser.kinds[parser.at] != "(":
        return (_attribute(parser, function),)
    parser.at += 1
    attributes = [_attribute(parser, function)]
    while parser.kinds[parser.at] == ",":
        parser.at += 1
        attributes.append(_attribute(parser, function))
    parser.expect(")")
    return tuple(attributes)


def _derived(parser: Parser, function: str, start: int) -> Derived:
    arguments = [_argument(parser, function)]
    while parser.kinds[parser.at] == ",":
        parser.at += 1
        arguments.append(_argument(parser, function))
    span = _close(parser, start)
    if not takes(function, len(arguments)):
        n_found = f"{len(arguments)} argument{'s' * (len(arguments) != 1)}"
        message = f"{function}() does not take {n_found}"
        raise ParseError("wrong-arity", message, span=span, hint=SIGNATURES[function])
    return Derived((), None, span, function, tuple(arguments))


def _cast(parser: Parser, function: str, start: int) -> Derived:
    value = _argument(parser, function)
    if not parser.is_word("AS"):
        parser.fail("expected AS and a type", ("AS",))
    parser.at += 1
    type_ = _type_name(parser)
    return Derived((), None, _close(parser, start), function, (value, type_))


def _type_name(parser: Parser) -> Literal:
    """The name of a type: DOUBLE, DECIMAL(10, 2)."""
    begin = parser.here()
    if parser.kinds[parser.at] != WORD:
        parser.fail("expected the name of a type")
    parser.at += 1
    if parser.kinds[parser.at] == "(":
        while parser.kinds[parser.at] not in (")", END):
            parser.at += 1
        parser.expect(")")
    span = (begin[0], parser.spans[parser.at - 1][1])
    try:
        return Literal(str(parse_type(parser.text[slice(*span)])), STRING, span)
    except SchemaError as error:
        raise ParseError("bad-type", error.message, span=span, hint=error.hint) from None


def _argument(parser: Parser, function: str) -> Attribute | Literal:
    node = parser.expression(0)
    return node if isinstance(node, Literal) else parser.attribute(node, f"{function}()")


def _operator_call(parser: Parser, name: str, start: int) -> OperatorCall:
    arguments: list[Value] = []
    hint = hint_at_unsupported(name)
    if parser.kinds[parser.at] != ")":
        arguments.append(parser.value(parser.expression(0), hint))
        while parser.kinds[parser.at] == ",":
            parser.at += 1
            arguments.append(parser.value(parser.expression(0), hint))
    return OperatorCall(name, tuple(arguments), (), _close(parser, start))


_READERS: Final[dict[str, Callable[[Parser, str, int], Condition]]] = {
    "startswith": _string_test,
    "endswith": _string_test,
    "contains": _string_test,
    "array": _array,
    "array_contains": _array_contains,
    "arrays_overlap": _arrays_overlap,
    "exists": _element_test,
    "forall": _element_test,
    "any_attribute": _any_attribute,
    "in_network": _in_network,
    "at_least": _at_least,
    "xor": _xor,
    "xnor": _xor,
    "matches": _matches,
    "matches_any": _matches,
    "matches_phrase": _matches,
    "matches_at_least": _matches,
    "near": _near,
    "near_in_order": _near,
    "cast": _cast,
    "subscription": _subscription,
}
