"""The reference evaluator: the definition of the meaning of expressions. This is the law.

It is kept as simple as possible and does not use indexes. Every engine answers exactly as it does,
and it answers exactly as Spark SQL does on the text printed for Spark.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import TamisError
from tamis.language.ast import (
    EVENT,
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
    Rlike,
    StringTest,
    Value,
    Variable,
    Words,
    Xnor,
    Xor,
)
from tamis.language.comparators import Comparator
from tamis.language.patterns import compile_regex, is_like, parse_like
from tamis.language.printer import print_expression, print_value
from tamis.language.queries import distinct_words, near_words, query_words
from tamis.language.types import Type, WrongTypeError, parse_network, read_value
from tamis.logic.arithmetic import calculate, compare_terms
from tamis.logic.bindings import call_of, substitutions, test_call
from tamis.logic.comparing import common_type, compare
from tamis.logic.derive import compute_derived
from tamis.logic.event_strings import strings_of
from tamis.logic.truth import Truth, and_, at_least, not_, or_, xor
from tamis.text import get_analyser
from tamis.text.proximity import has_term
from tamis.text.terms import NEAR, NEAR_IN_ORDER, PHRASE, Term
from tamis.text.wildcards import find_occurring

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.logic.bindings import Answers, Substitution
    from tamis.text.analysers import TextWords


class Missing(StrEnum):
    """The truth of a test on a missing attribute."""

    UNDEFINED = "undefined"  # SQL's and the A-Tree paper's meaning
    SATISFIES_NEGATION = "satisfies_negation"  # Fontoura's: ∉ on a missing attribute is true


class Known(NamedTuple):
    """Facts in addition to the event: the operators' answers, and values of the variables."""

    answers: Answers
    values: Substitution
    failures: Mapping[OperatorCall, str] = {}


NOTHING: Final = Known({}, {})


class ReadEvent(dict[str, Any]):
    """An event whose values have been read: they are of the types of their attributes."""


def evaluate(
    condition: Condition,
    event: Mapping[str, Any],
    missing: Missing = Missing.UNDEFINED,
    answers: Answers = NOTHING.answers,
) -> Truth:
    """Whether the typed condition holds for the event: True, False, or None for undefined.

    A value of the wrong type for its attribute counts as missing. With `Missing.SATISFIES_NEGATION`
    an undefined test is false, so its negation is true, and the answer is never None. `answers`
    must contain all calls of the condition. A condition with variables is true if some substitution
    makes it true; otherwise it is undefined if some substitution makes it undefined.
    """
    return or_(
        evaluate_under(condition, event, Known(answers, values), missing)
        for values in substitutions(condition, answers)
    )


def solve(
    condition: Condition,
    event: Mapping[str, Any],
    answers: Answers,
    missing: Missing = Missing.UNDEFINED,
) -> dict[str, Any] | None:
    """The bound variables of the first substitution that makes the condition true, or None."""
    for values in substitutions(condition, answers):
        if evaluate_under(condition, event, Known(answers, values), missing):
            return {name: value for name, value in values.items() if value is not None}
    return None


def evaluate_under(
    condition: Condition, event: Mapping[str, Any], known: Known, missing: Missing
) -> Truth:
    """Whether the typed condition holds for the event under one substitution."""

    def truth_of(node: Condition) -> Truth:
        match node:
            case And():
                return and_(map(truth_of, node.operands))
            case Or():
                return or_(map(truth_of, node.operands))
            case Not():
                return not_(truth_of(node.operand))
            case Xor():
                return xor(map(truth_of, node.operands))
            case Xnor():
                return not_(xor(map(truth_of, node.operands)))
            case AtLeast():
                return at_least(node.k, map(truth_of, node.operands))
            case _:
                return evaluate_leaf(node, event, missing, known)

    return truth_of(condition)


def evaluate_leaf(
    node: Condition, event: Mapping[str, Any], missing: Missing, known: Known = NOTHING
) -> Truth:
    """A leaf, which may be a negated one: `<>`, NOT IN, NOT LIKE and so on."""
    is_negated = getattr(node, "negated", False)
    is_negated |= isinstance(node, Comparison) and node.operator.positive is not node.operator
    truth = _test(node, event, known, missing)
    if missing is Missing.SATISFIES_NEGATION and truth is None:
        truth = False
    return not_(truth) if is_negated else truth


def test_leaf(node: Condition, event: Mapping[str, Any]) -> Truth:
    """The leaf's test in its positive form, ignoring `negated`; None if undefined."""
    return _test(node, event, NOTHING, Missing.UNDEFINED)


def _test(node: Condition, event: Mapping[str, Any], known: Known, missing: Missing) -> Truth:
    match node:
        case Comparison():
            return _compare(node.operator.positive, node.left, node.right, event, known)
        case OperatorCall():
            return _test_call(node, known)
        case In():
            return _is_member(_value(node.operand, event), node)
        case Between():
            above = _compare(Comparator.AT_LEAST, node.operand, node.low, event, known)
            below = _compare(Comparator.AT_MOST, node.operand, node.high, event, known)
            return and_((above, below))
        case IsNull():
            return _value(node.operand, event) is None
        case Attribute():
            flag: Truth = _value(node, event)
            return flag
        case Literal():
            constant: bool = node.value
            return constant
        case Like() | Rlike() | StringTest():
            text = _value(node.operand, event)
            return None if text is None else test_text(node, text)
        case PatternList():
            text = _value(node.operand, event)
            return None if text is None else _test_patterns(node, text)
        case ArraysOverlap():
            return _overlaps(_value(node.operand, event), node)
        case ElementTest():
            return _test_elements(node, _value(node.operand, event), missing)
        case InNetwork():
            return _is_within(_value(node.operand, event), node)
        case Words():
            return _has_term(node.operand, Term(node.words, node.mode, node.distance), event)
        case Matches():
            return _matches(node, event)
        case _:
            raise TamisError(f"the reference evaluator does not support: {print_expression(node)}")


# ── tests ───────────────────────────────────────────────────────────────────────────────────


def _test_call(node: OperatorCall, known: Known) -> Truth:
    call = call_of(node)
    if call not in known.answers:
        raise TamisError(f"no answer for the call {print_expression(node)}")
    return test_call(node, known.answers[call], known.values)


def _compare(
    operator: Comparator, one: Value, other: Value, event: Mapping[str, Any], known: Known
) -> Truth:
    left, right = _value(one, event, known.values), _value(other, event, known.values)
    if operator is Comparator.SAME and (left is None or right is None):
        return left is right
    if left is None or right is None:
        return None
    is_constraint = isinstance(one, Variable | Arithmetic) or isinstance(
        other, Variable | Arithmetic
    )
    order = (
        compare_terms(left, right)
        if is_constraint
        else compare(left, right, _common_type(one, other))
    )
    return operator.holds(order)


def _is_within(address: str | None, node: InNetwork) -> Truth:
    if address is None:
        return None
    networks = map(parse_network, node.networks)
    return any(network.first <= address <= network.last for network in networks)


def _is_member(value: Any, node: In) -> Truth:
    if value is None:
        return None
    type_ = node.operand.type
    return any(compare(value, member.value, type_) == 0 for member in node.values)


def test_text(node: Like | Rlike | StringTest, text: str) -> bool:
    """Whether the string satisfies the pattern, ignoring `negated`."""
    match node:
        case Like(ignores_case=True):
            # Spark's ILIKE is LIKE on the lower case of both sides.
            return is_like(text.lower(), parse_like(node.pattern.lower(), node.escape))
        case Like():
            return is_like(text, parse_like(node.pattern, node.escape))
        case Rlike():
            return compile_regex(node.pattern).search(text) is not None
        case StringTest(function="startswith"):
            return text.startswith(node.text)
        case StringTest(function="endswith"):
            return text.endswith(node.text)
        case StringTest():
            return node.text in text


def _test_patterns(node: PatternList, text: str) -> bool:
    found = (test_text(own, text) for own in node.tests)
    return all(found) if node.needs_all else any(found)


def _matches(node: Matches, event: Mapping[str, Any]) -> Truth:
    """Whether each word, or all of them as a phrase or near each other, are found in at least one
    of the attributes.
    """
    if node.mode in (PHRASE, NEAR, NEAR_IN_ORDER):
        words = query_words(node) if node.mode == PHRASE else near_words(node)
        term = Term(words, node.mode, node.k)
        return or_(_has_term(attribute, term, event) for attribute in node.attributes)
    each = find_words(node, event).values()
    match node.mode:
        case "all":
            return and_(each)
        case "any":
            return or_(each)
        case _:
            return at_least(node.k, each)


def find_words(node: Matches, event: Mapping[str, Any]) -> dict[str, Truth]:
    """Whether each word of a query occurs anywhere in at least one of the attributes."""
    wanted = distinct_words(node)
    # Each text is analysed once: both the text and the query may be long.
    texts = [_words_of(attribute, event) for attribute in node.attributes]
    found = [None if text is None else find_occurring(text, wanted) for text in texts]
    return {word: or_(None if own is None else word in own for own in found) for word in wanted}


def _has_term(attribute: Attribute, term: Term, event: Mapping[str, Any]) -> Truth:
    """Whether the words are adjacent, or near each other, in the text; undefined if there is no
    text.
    """
    text = _words_of(attribute, event)
    return None if text is None else has_term(text, term)


def _words_of(attribute: Attribute, event: Mapping[str, Any]) -> TextWords | None:
    """The words of the attribute's text; None if there is no text."""
    text = attribute_value(attribute, event)
    if text is None:
        return None
    assert attribute.type is not None
    return get_analyser(attribute.type.analyser).read(text)


def _overlaps(elements: tuple[Any, ...] | None, node: ArraysOverlap) -> Truth:
    """True if a listed value is an element; otherwise undefined if an element is NULL."""
    if elements is None:
        return None
    assert node.operand.type is not None
    type_ = node.operand.type.element
    listed = [member.value for member in node.values]
    known = [element for element in elements if element is not None]
    if any(compare(element, value, type_) == 0 for element in known for value in listed):
        return True
    return False if len(known) == len(elements) else None


def _test_elements(node: ElementTest, elements: tuple[Any, ...] | None, missing: Missing) -> Truth:
    """The condition of any element (exists) or of all elements (forall)."""
    if elements is None:
        return None
    each = (test_element(node, element, missing) for element in elements)
    return or_(each) if node.function == "exists" else and_(each)


def test_element(node: ElementTest, element: Any, missing: Missing) -> Truth:
    """Whether one element satisfies the condition."""
    type_ = node.operand.type
    assert type_ is not None
    assert type_.element is not None
    # The fields of a struct are read when they are tested.
    hold = dict if type_.element.name == "struct" else ReadEvent
    event = hold({node.test.parameter: element})
    return evaluate_under(node.test.body, event, NOTHING, missing)


# ── values ──────────────────────────────────────────────────────────────────────────────────


def _value(value: Value, event: Mapping[str, Any], values: Substitution = NOTHING.values) -> Any:
    """The value of the constant, the attribute, or the variable; None if missing."""
    match value:
        case Literal():
            return value.value
        case Attribute():
            return attribute_value(value, event)
        case Variable():
            _expect_type(value)
            return values.get(value.name)
        case Arithmetic():
            left, right = _value(value.left, event, values), _value(value.right, event, values)
            return calculate(value.operator, left, right)


def attribute_value(attribute: Attribute, event: Mapping[str, Any]) -> Any:
    """The event's value converted to the attribute's type; None if missing or of the wrong type."""
    type_ = _expect_type(attribute)
    if isinstance(attribute, Derived):
        return compute_derived(attribute, lambda own: attribute_value(own, event))
    if attribute.path == EVENT:
        return strings_of(event)
    value = raw_value(attribute, event)
    if value is None or isinstance(event, ReadEvent):
        return value
    try:
        return read_value(value, type_)
    except WrongTypeError:
        return None


def _expect_type(value: Attribute | Variable) -> Type:
    if value.type is None:
        raise TamisError(
            f"{print_value(value)} has no type", hint="check the condition against a schema"
        )
    return value.type


def raw_value(attribute: Attribute, event: Mapping[str, Any]) -> Any:
    """The event's value, unconverted; None if missing."""
    return value_at(event, attribute.path)


def value_at(event: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The event's value at a path; None if missing."""
    value: Any = event
    for name in path:
        value = value.get(name) if hasattr(value, "get") else None
    return value


def _common_type(left: Value, right: Value) -> Type | None:
    """The type in which two values are compared; None for two constants of one type."""
    types = [side.type for side in (left, right) if isinstance(side, Attribute | Literal)]
    return common_type(types[0], types[-1]) if types else None
