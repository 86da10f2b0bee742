"""Type checking: every attribute gets its type, every constant is fitted to it, once, early.

What passes here never fails at match time. There is no coercion between strings, numbers and
Booleans; a constant takes the type of the attribute it meets.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NoReturn

from tamis.errors import (
    ExpressionError,
    LimitError,
    TypeCheckError,
    UnknownAttributeError,
    suggest,
)
from tamis.language.ast import (
    And,
    Arithmetic,
    ArraysOverlap,
    AtLeast,
    Attribute,
    Between,
    Comparison,
    Condition,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Not,
    OperatorCall,
    Or,
    Rlike,
    Span,
    StringTest,
    Value,
    Variable,
    Words,
    Xnor,
    Xor,
    variables_of,
)
from tamis.language.functions import SIGNATURES
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.names import print_path
from tamis.language.patterns import BadPatternError, compile_regex, parse_like
from tamis.language.queries import query_words
from tamis.language.types import (
    ANY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    MAX_DECIMAL_DIGITS,
    STRING,
    TIMESTAMP,
    Type,
    WrongTypeError,
    decimal_digits,
    decimal_type,
    parse_date,
    parse_timestamp,
    round_to_float,
)
from tamis.language.variables import check_bound, collect_types
from tamis.text import ANY_WORD, get_analyser

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.language.signatures import Parameter, Signature


def check(
    condition: Condition, schema: Schema, limits: Limits = DEFAULT_LIMITS, text: str | None = None
) -> Condition:
    """`condition` with types; raises `TypeCheckError` or `LimitError` at the first misfit."""
    try:
        return _Checker(schema, limits, condition).check()
    except ExpressionError as error:
        raise (error.located(text) if text is not None else error) from None


class _Checker:
    def __init__(self, schema: Schema, limits: Limits, root: Condition) -> None:
        self.schema = schema
        self.limits = limits
        self.root = root
        self.variables: dict[str, Type] | None = None  # known when the first one is met

    def check(self) -> Condition:
        """The whole typed, its variables bound where they are used."""
        typed = self.condition(self.root)
        if self.variables is not None:
            check_bound(self.root)
        return typed

    def condition(self, node: Condition) -> Condition:
        """`node` typed, its operands first."""
        match node:
            case And() | Or() | Xor() | Xnor() | AtLeast():
                return replace(node, operands=tuple(map(self.condition, node.operands)))
            case Not():
                return replace(node, operand=self.condition(node.operand))
            case Comparison():
                return self.comparison(node)
            case Attribute():
                return self.boolean_attribute(node)
            case Literal():
                return node
            case In() | ArraysOverlap():
                return self.membership(node)
            case Between():
                return self.between(node)
            case IsNull():
                return replace(node, operand=self.attribute(node.operand))
            case Like() | Rlike() | StringTest():
                return self.text_test(node)
            case Matches():
                return self.matches(node)
            case Words():
                return node
            case OperatorCall():
                return self.operator_call(node)

    # ── leaves ─────────────────────────────────────────────────────────────────────────────

    def attribute(self, node: Attribute) -> Attribute:
        """The attribute with its declared type."""
        type_ = self.schema.get(node.path)
        if type_ is None:
            self.refuse_unknown(node)
        return replace(node, type=type_)

    def boolean_attribute(self, node: Attribute) -> Attribute:
        """An attribute that stands alone as a condition."""
        typed = self.attribute(node)
        if typed.type != BOOLEAN:
            _refuse(
                f"{_name(typed)} is {_article(typed)}, not a condition",
                node.span,
                hint=f"compare it with something, such as {_name(typed)} = …",
            )
        return typed

    def comparison(self, node: Comparison) -> Comparison:
        """Two attributes, or an attribute and a constant, or two constants; or a constraint."""
        left, right = self.operands(node.left, node.right, node.span)
        if node.operator == "<=>" and self.variables is not None and any(variables_of(node)):
            _refuse("a variable is never NULL", node.span, hint="write = instead of <=>")
        return replace(node, left=left, right=right)

    def between(self, node: Between) -> Between:
        """An operand and its two bounds, each compared with it."""
        operand, low = self.operands(node.operand, node.low, node.span)
        also, high = self.operands(node.operand, node.high, node.span)
        if operand != also:
            # One constant cannot take the types of two attributes.
            _refuse(
                "the two bounds of BETWEEN are of different types",
                node.span,
                hint="write two comparisons and join them with AND",
            )
        return replace(node, operand=operand, low=low, high=high)

    def operands(self, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
        """Two values that are compared, fitted to each other."""
        if isinstance(left, Variable | Arithmetic) or isinstance(right, Variable | Arithmetic):
            return self.constraint(left, right, span)
        if isinstance(left, Attribute):
            left = self.comparable(left)
        if isinstance(right, Attribute):
            right = self.comparable(right)
        if isinstance(left, Attribute) and isinstance(right, Attribute):
            _check_pair(left, right, span)
        elif isinstance(left, Attribute) and isinstance(right, Literal):
            right = fit_literal(right, left)
        elif isinstance(left, Literal) and isinstance(right, Attribute):
            left = fit_literal(left, right)
        elif isinstance(left, Literal) and isinstance(right, Literal):
            _check_constants(left, right, span)
        return left, right

    def comparable(self, node: Attribute) -> Attribute:
        """An attribute whose values have an order: anything but an array."""
        typed = self.attribute(node)
        assert typed.type is not None
        if typed.type.element is not None:
            _refuse(
                f"{_name(typed)} is {_article(typed)}; arrays are not compared",
                node.span,
                hint=f"test its members: array_contains({_name(typed)}, …)",
            )
        if typed.type == ANY:
            _refuse(f"the type of {_name(typed)} is not known", node.span, hint=_DECLARE)
        return typed

    def membership(self, node: In | ArraysOverlap) -> In | ArraysOverlap:
        """A list of constants, each fitted to the attribute or to its elements."""
        if isinstance(node, In):
            operand = self.comparable(node.operand)
            members_of = operand
        else:
            operand = self.attribute(node.operand)
            assert operand.type is not None
            if operand.type.element is None:
                _refuse(
                    f"{_name(operand)} is {_article(operand)}; {node.function}() tests an array",
                    node.operand.span,
                    hint=f"test one value with {_name(operand)} IN (…)",
                )
            members_of = replace(operand, type=operand.type.element)
        values = tuple(fit_literal(value, members_of) for value in node.values)
        if isinstance(node, In):
            _check_list(operand, values, node.span)
        return replace(node, operand=operand, values=values)

    def text_test(self, node: Like | Rlike | StringTest) -> Like | Rlike | StringTest:
        """A pattern over a string attribute."""
        operand = self.attribute(node.operand)
        if operand.type != STRING:
            _refuse(
                f"{_name(operand)} is {_article(operand)}; {_test_name(node)} tests a string",
                node.operand.span,
            )
        try:
            if isinstance(node, Like):
                parse_like(node.pattern, node.escape)
            elif isinstance(node, Rlike):
                self.check_regex(node)
        except BadPatternError as error:
            raise TypeCheckError("bad-pattern", str(error), span=node.span) from None
        return replace(node, operand=operand)

    def check_regex(self, node: Rlike) -> None:
        """Refuse a regular expression that is too long or that RE2 does not know."""
        if len(node.pattern) > self.limits.regex_length:
            raise LimitError(
                "regex-too-long",
                f"the regular expression has {len(node.pattern)} characters; "
                f"at most {self.limits.regex_length}",
                span=node.span,
            )
        compile_regex(node.pattern)

    def matches(self, node: Matches) -> Matches:
        """Words of strings that one analyser reads; the query must have some."""
        typed = tuple(map(self.attribute, node.attributes))
        for attribute in typed:
            if attribute.type != STRING:
                _refuse(
                    f"{_name(attribute)} is {_article(attribute)}; matches() searches strings",
                    attribute.span,
                )
        analysers = {attribute.type.analyser for attribute in typed if attribute.type}
        if len(analysers) > 1:
            _refuse(
                f"{', '.join(map(_name, typed))} have different analysers: "
                f"{', '.join(sorted(analysers))}",
                node.span,
                hint="search each by its own matches() and join them with OR",
            )
        checked = replace(node, attributes=typed)
        words = query_words(checked)
        if not words:
            analyser = analysers.pop()
            are_stopped = bool(get_analyser(analyser).words(node.query))
            raise TypeCheckError(
                "no-words",
                f"'{_cut(node.query)}' has no word to search for"
                + (": all are stop words" if are_stopped else ""),
                span=node.span,
                hint=f"the analyser is {analyser}: words hold letters, numbers or emoji",
            )
        self.check_words(node, len(words), len({*words} - {ANY_WORD}))
        return checked

    def check_words(self, node: Matches, n_words: int, n_distinct: int) -> None:
        """Refuse a query of more words than the limit, or of fewer than it asks for."""
        if n_words * len(node.attributes) > self.limits.predicates:
            message = (
                f"the query has {n_words} words; more than {self.limits.predicates} predicates"
            )
            raise LimitError("too-many-predicates", message, span=node.span)
        if node.k > n_distinct:
            raise TypeCheckError(
                "bad-count",
                f"matches_at_least({node.k}, …) of {n_distinct} words; k goes from 1 to their "
                "number",
                span=node.span,
                hint="words that the analyser makes equal count once, stop words do not count",
            )

    # ── operators and constraints ──────────────────────────────────────────────────────────

    def operator_call(self, node: OperatorCall) -> OperatorCall:
        """A call with constants of the right types, and variables where the operator binds."""
        signature = self.schema.operator(node.name)
        if signature is None:
            self.refuse_call(node)
        n_needed, n_given = len(signature.parameters), len(node.arguments)
        if n_needed != n_given:
            raise TypeCheckError(
                "wrong-arity",
                f"{signature.name}() takes {n_needed} arguments, found {n_given}",
                span=node.span,
                hint=str(signature),
            )
        pairs = zip(node.arguments, signature.parameters, strict=True)
        arguments = (self.argument(x, parameter, signature) for x, parameter in pairs)
        return OperatorCall(signature.name, tuple(arguments), signature.bound, node.span)

    def argument(self, value: Value, parameter: Parameter, signature: Signature) -> Value:
        """One argument: a constant, or a variable that the operator binds."""
        if isinstance(value, Variable):
            if not parameter.is_bound:
                raise TypeCheckError(
                    "unbound-variable",
                    f"{signature.name}() does not bind ?{value.name}: it needs a constant there",
                    span=value.span,
                    hint=f"{signature}: only what has a question mark may be a variable",
                )
            return self.variable(value)
        if not isinstance(value, Literal):
            _refuse(
                f"an argument of {signature.name}() is a constant or a variable",
                value.span,
                hint="an operator reads the attributes of the event by itself",
            )
        fitted = _FITTERS[parameter.type.name](value, parameter.type)
        # A decimal constant that is no whole number stays a decimal on integers.
        if fitted is None or (fitted.type.name != parameter.type.name):
            _refuse(
                f"{_with_article(value)} where {signature.name}() takes {parameter.type}",
                value.span,
                hint=str(signature),
            )
        return fitted

    def variable(self, node: Variable) -> Variable:
        """The variable with the type that the calls give it."""
        if self.variables is None:
            self.variables = collect_types(self.root, self.schema)
        type_ = self.variables.get(node.name)
        if type_ is None:
            raise TypeCheckError(
                "unbound-variable",
                f"no operator binds ?{node.name}",
                span=node.span,
                hint=f"call one beside it: p(?{node.name}) AND …",
            )
        return replace(node, type=type_)

    def constraint(self, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
        """Two values of which one has a variable, or at least arithmetic, in it."""
        if not any(variables_of(left)) and not any(variables_of(right)):
            raise TypeCheckError(
                "unsupported-syntax",
                "arithmetic is for constraints on variables, such as ?y > 2 * ?z",
                span=(left if isinstance(left, Arithmetic) else right).span,
                hint="a name with a minus in it is written in backticks: `user-id`",
            )
        left, right = self.term(left), self.term(right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Arithmetic) and not isinstance(other, Arithmetic):
                _check_number(other)
        if isinstance(left, Literal) and isinstance(right, Variable):
            left = fit_literal(left, right)
        elif isinstance(left, Variable) and isinstance(right, Literal):
            right = fit_literal(right, left)
        elif isinstance(left, Variable | Attribute) and isinstance(right, Variable | Attribute):
            _check_pair(left, right, span)
        return left, right

    def term(self, value: Value) -> Value:
        """One side of a constraint; arithmetic is on numbers."""
        match value:
            case Variable():
                return self.variable(value)
            case Attribute():
                return self.comparable(value)
            case Arithmetic():
                left, right = self.term(value.left), self.term(value.right)
                _check_number(left)
                _check_number(right)
                return replace(value, left=left, right=right)
            case Literal():
                return value

    # ── refusals ───────────────────────────────────────────────────────────────────────────

    def refuse_unknown(self, node: Attribute) -> NoReturn:
        """Say that the attribute is not declared, or not usable, and what is like it."""
        foreign = self.schema.unsupported(node.path)
        if foreign is not None:
            _refuse(
                f"attribute {_name(node)} has the type {foreign}, which expressions cannot test",
                node.span,
            )
        message = f'unknown attribute "{print_path(node.path)}"'
        known = {print_path(path) for path in self.schema}
        likely = suggest(print_path(node.path), known)
        if likely:
            message += f'; did you mean "{likely}"?'
        hint = None if likely or len(known) > _SHOWN else f"known: {', '.join(sorted(known))}"
        raise UnknownAttributeError("unknown-attribute", message, span=node.span, hint=hint)

    def refuse_call(self, node: OperatorCall) -> NoReturn:
        """Say that there is no such function or operator, and what is like it."""
        known = SIGNATURES | {own.name: str(own) for own in self.schema.operators}
        message = f'unknown function "{node.name}"'
        likely = suggest(node.name, known)
        message += f'; did you mean "{likely}"?' if likely else ""
        hint = known[likely] if likely else "operators of your own are registered: tamis.operator"
        raise TypeCheckError("unknown-function", message, span=node.span, hint=hint)


_SHOWN: Final = 12
_DECLARE: Final = "declare it in a schema, such as 'price DOUBLE, budget DOUBLE'"


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _name(value: Attribute | Variable) -> str:
    return f"?{value.name}" if isinstance(value, Variable) else print_path(value.path)


def _article(value: Attribute | Variable) -> str:
    return _with_article(value)


def _with_article(value: Attribute | Literal | Variable) -> str:
    shown = str(value.type)
    return f"an {shown}" if shown[0] in "aeiou" else f"a {shown}"


def _test_name(node: Like | Rlike | StringTest) -> str:
    if isinstance(node, StringTest):
        return f"{node.function}()"
    if isinstance(node, Rlike):
        return "RLIKE"
    return "ILIKE" if node.ignores_case else "LIKE"


def _refuse(message: str, span: Span, *, hint: str | None = None) -> NoReturn:
    raise TypeCheckError("type-mismatch", message, span=span, hint=hint)


# ── fitting ─────────────────────────────────────────────────────────────────────────────────


def fit_literal(literal: Literal, attribute: Attribute | Variable) -> Literal:
    """The constant as a value of the attribute's type; refused where that has no exact sense.

    On integers a decimal constant stays a decimal where it is no whole number: `level < 4.5` is
    exact. On floats and doubles it is rounded to the attribute's type.
    """
    type_ = attribute.type
    assert type_ is not None
    fitted = _FITTERS[type_.name](literal, type_)
    if fitted is None:
        _refuse_literal(literal, attribute)
    return fitted


def _fit_boolean(literal: Literal, type_: Type) -> Literal | None:
    return literal if literal.type == BOOLEAN else None


def _fit_integer(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == INTEGER:
        return literal
    if literal.type.name != "decimal":
        return None
    value: Decimal = literal.value
    if not INT64_MIN <= value <= INT64_MAX:
        # Spark answers such comparisons without looking: TRUE or FALSE even on NULL.
        _refuse(f"{value} does not fit in 64 bits, as the attribute does", literal.span)
    if decimal_digits(value)[1] == 0:
        return Literal(int(value), INTEGER, literal.span)
    _check_digits(_AS_DECIMAL, literal.type, literal.span)
    return literal


def _fit_double(literal: Literal, type_: Type) -> Literal | None:
    if not literal.type.is_numeric:
        return None
    return Literal(float(literal.value) + 0.0, DOUBLE, literal.span)


def _fit_float(literal: Literal, type_: Type) -> Literal | None:
    if not literal.type.is_numeric or literal.type == DOUBLE:
        return None
    rounded = round_to_float(float(literal.value))
    if math.isinf(rounded):
        _refuse(f"{literal.value} is too large for a float", literal.span)
    return Literal(rounded + 0.0, FLOAT, literal.span)


def _fit_decimal(literal: Literal, type_: Type) -> Literal | None:
    if literal.type.is_floating or not literal.type.is_numeric:
        return None
    value = Decimal(literal.value)
    before, after = decimal_digits(value)
    _check_digits(type_, decimal_type(max(1, before + after), after), literal.span)
    return Literal(value, type_, literal.span)


def _fit_string(literal: Literal, type_: Type) -> Literal | None:
    return literal if literal.type == STRING else None


def _fit_date(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == DATE:
        return literal
    if literal.type != STRING:
        return None
    try:
        return Literal(parse_date(literal.value), DATE, literal.span)
    except WrongTypeError as error:
        _refuse(str(error), literal.span)


def _fit_timestamp(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == TIMESTAMP:
        return literal
    if literal.type not in (STRING, DATE):
        return None
    text = literal.value if literal.type == STRING else literal.value.isoformat()
    try:
        return Literal(parse_timestamp(text), TIMESTAMP, literal.span)
    except WrongTypeError as error:
        _refuse(str(error), literal.span)


_FITTERS: Final = {
    "boolean": _fit_boolean,
    "integer": _fit_integer,
    "float": _fit_float,
    "double": _fit_double,
    "decimal": _fit_decimal,
    "string": _fit_string,
    "date": _fit_date,
    "timestamp": _fit_timestamp,
}


def _refuse_literal(literal: Literal, attribute: Attribute | Variable) -> NoReturn:
    type_ = attribute.type
    assert type_ is not None
    hint = None
    if type_ == STRING:
        hint = f"strings are written in quotes: '{literal.value}'"
    elif type_.is_numeric and literal.type == STRING:
        hint = "numbers are written without quotes"
    elif type_ in (INTEGER, FLOAT) or type_.name == "decimal":
        if literal.type.is_floating:
            plain = format(Decimal(repr(literal.value)), "f")
            hint = f"write it as a plain number: {plain}" + ("F" if type_ == FLOAT else "")
    elif type_ in (DATE, TIMESTAMP):
        hint = f"write {str(type_).upper()} '2024-01-31'"
    kind = "decimal" if literal.type.name == "decimal" else str(literal.type)
    article = "an" if kind[0] in "aeiou" else "a"
    _refuse(
        f"{_name(attribute)} is {_article(attribute)}, compared with {article} {kind}",
        literal.span,
        hint=hint,
    )


def _check_number(value: Value) -> None:
    """Refuse arithmetic on what is no number."""
    if isinstance(value, Arithmetic):
        return
    assert value.type is not None
    if not value.type.is_numeric:
        _refuse(f"{_with_article(value)} where arithmetic needs a number", value.span)


def _check_pair(left: Attribute | Variable, right: Attribute | Variable, span: Span) -> None:
    """Refuse to compare two attributes of which the types have no common order."""
    one, other = left.type, right.type
    assert one is not None
    assert other is not None
    if {one.name, other.name} <= {"decimal", "integer"}:
        exact_one = _AS_DECIMAL if one == INTEGER else one
        _check_digits(exact_one, _AS_DECIMAL if other == INTEGER else other, span)
    if one == other or (one.is_numeric and other.is_numeric):
        return
    _refuse(
        f"{_name(left)} is {_article(left)} and {_name(right)} {_article(right)}: "
        "they cannot be compared",
        span,
    )


_AS_DECIMAL: Final = decimal_type(20, 0)  # what Spark compares 64-bit integers as


def _check_digits(one: Type, other: Type, span: Span) -> None:
    """Refuse two decimals that no common decimal type can hold: Spark would round them."""
    integer_digits = max(one.precision - one.scale, other.precision - other.scale)
    if integer_digits + max(one.scale, other.scale) > MAX_DECIMAL_DIGITS:
        _refuse(f"{one} and {other} together need more than {MAX_DECIMAL_DIGITS} digits", span)


def _check_list(operand: Attribute, values: tuple[Literal, ...], span: Span) -> None:
    """Refuse an IN list that no common decimal type can hold: Spark would round its members."""
    type_ = operand.type
    assert type_ is not None
    if all(value.type.name != "decimal" for value in values):
        return
    one = _AS_DECIMAL if type_ == INTEGER else type_
    digits = [decimal_digits(Decimal(value.value)) for value in values]
    whole = max(one.precision - one.scale, *(before for before, _ in digits))
    scale = max(one.scale, *(after for _, after in digits))
    if whole + scale > MAX_DECIMAL_DIGITS:
        _refuse(
            f"{_name(operand)} and the list together need more than {MAX_DECIMAL_DIGITS} digits",
            span,
        )


def _check_constants(left: Literal, right: Literal, span: Span) -> None:
    """Refuse to compare two constants of different kinds; `1 = 1` is common in generated text."""
    one, other = (_AS_DECIMAL if x.type == INTEGER else x.type for x in (left, right))
    if one.name == other.name == "decimal":
        _check_digits(one, other, span)
    if left.type == right.type or (left.type.is_numeric and right.type.is_numeric):
        return
    _refuse(f"{_with_article(left)} and {_with_article(right)} cannot be compared", span)
