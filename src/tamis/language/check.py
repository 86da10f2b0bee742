"""Type checking: gives every attribute its type and converts every constant to it, once and early.

A condition that passes here never fails at match time. There is no coercion between strings,
numbers and Booleans; a constant takes the type of the attribute it is compared with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from tamis.errors import (
    ExpressionError,
    LimitError,
    TypeCheckError,
    UnknownAttributeError,
    suggest,
)
from tamis.language.argument_checks import check_constant_arguments, refuse_arguments
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
    Span,
    StringTest,
    Value,
    Variable,
    Words,
    Xnor,
    Xor,
    variables_of,
)
from tamis.language.calls import check_call
from tamis.language.comparators import EQUALITIES, Comparator
from tamis.language.fitting import (
    check_constants,
    check_list,
    check_number,
    check_pair,
    fit_element,
    fit_literal,
    fit_members,
    refuse,
    spell,
    with_article,
)
from tamis.language.foreign_spellings import hint_at_function, hint_at_network
from tamis.language.functions import SIGNATURES
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.names import DERIVED_MARK, print_path
from tamis.language.patterns import BadPatternError, compile_regex, parse_like
from tamis.language.printer import print_value
from tamis.language.queries import query_words
from tamis.language.types import (
    ANY,
    BOOLEAN,
    IP,
    STRING,
    Type,
    WrongTypeError,
    parse_network,
)
from tamis.language.value_functions import find_overload
from tamis.language.variables import check_bound, collect_types
from tamis.text import ANY_WORD, get_analyser

if TYPE_CHECKING:
    from tamis.language.schema import Schema


def check(
    condition: Condition, schema: Schema, limits: Limits = DEFAULT_LIMITS, text: str | None = None
) -> Condition:
    """`condition` with types; raises `TypeCheckError` or `LimitError` at the first error."""
    try:
        return _Checker(schema, limits, condition).check()
    except ExpressionError as error:
        raise (error.located(text) if text is not None else error) from None


class _Checker:
    def __init__(self, schema: Schema, limits: Limits, root: Condition) -> None:
        self.schema = schema
        self.limits = limits
        self.root = root
        self.variables: dict[str, Type] | None = None  # known when the first one is found

    def check(self) -> Condition:
        """The whole condition typed, with its variables bound where they are used."""
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
            case PatternList():
                return self.pattern_list(node)
            case InNetwork():
                return self.in_network(node)
            case Matches():
                return self.matches(node)
            case Words():
                return node
            case OperatorCall():
                return self.operator_call(node)

    # ── leaves ─────────────────────────────────────────────────────────────────────────────

    def attribute(self, node: Attribute) -> Attribute:
        """The attribute with its declared type, or the derived value with that of its function."""
        if isinstance(node, Derived):
            return self.derived(node)
        type_ = self.schema.get(node.path)
        if type_ is None:
            self.refuse_unknown(node)
        return replace(node, type=type_)

    def derived(self, node: Derived) -> Derived:
        """A function whose arguments have the types that it takes."""
        arguments = tuple(
            own if isinstance(own, Literal) else self.attribute(own) for own in node.arguments
        )
        overload = find_overload(node.function, tuple(own.type for own in arguments))
        if overload is None:
            refuse_arguments(node.function, arguments, node.span)
        check_constant_arguments(node.function, arguments)
        constants = [own.value for own in arguments if isinstance(own, Literal)]
        if len(constants) == len(arguments):
            value = Literal(overload.compute(*constants), overload.result)
            refuse(
                f"{print_value(node)} is a constant",
                node.span,
                hint=f"write its value: {print_value(value)}",
            )
        typed = replace(node, type=overload.result, arguments=arguments)
        return replace(typed, path=(DERIVED_MARK + print_value(typed),))

    def boolean_attribute(self, node: Attribute) -> Attribute:
        """An attribute used alone as a condition."""
        typed = self.attribute(node)
        if typed.type != BOOLEAN:
            refuse(
                f"{spell(typed)} is {with_article(typed)}, not a condition",
                node.span,
                hint=f"compare it with something, such as {spell(typed)} = …",
            )
        return typed

    def comparison(self, node: Comparison) -> Condition:
        """Two attributes, or an attribute and a constant, or two constants; or a constraint.

        Two Boolean attributes are conditions: `p = q` is `p XNOR q`, and `p <> q` is `p XOR q`.
        """
        if node.operator in EQUALITIES:
            self.refuse_bare_word(node.left, node.right)
        left, right = self.operands(node.left, node.right, node.span)
        if isinstance(left, Attribute) and isinstance(right, Attribute) and left.type == BOOLEAN:
            if node.operator is Comparator.EQUAL:
                return Xnor((left, right), node.span)
            if node.operator is Comparator.NOT_EQUAL:
                return Xor((left, right), node.span)
        is_same = node.operator is Comparator.SAME
        if is_same and self.variables is not None and any(variables_of(node)):
            refuse("a variable is never NULL", node.span, hint="write = instead of <=>")
        return replace(node, left=left, right=right)

    def between(self, node: Between) -> Between:
        """An operand and its two bounds, each compared with it."""
        operand, low = self.operands(node.operand, node.low, node.span)
        also, high = self.operands(node.operand, node.high, node.span)
        if operand != also:
            # One constant cannot take the types of two attributes.
            refuse(
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
            check_pair(left, right, span)
        elif isinstance(left, Attribute) and isinstance(right, Literal):
            right = fit_literal(right, left)
        elif isinstance(left, Literal) and isinstance(right, Attribute):
            left = fit_literal(left, right)
        elif isinstance(left, Literal) and isinstance(right, Literal):
            check_constants(left, right, span)
        return left, right

    def comparable(self, node: Attribute) -> Attribute:
        """An attribute whose values are ordered: any type but an array."""
        typed = self.attribute(node)
        assert typed.type is not None
        if typed.type.element is not None:
            refuse(
                f"{spell(typed)} is {with_article(typed)}; arrays are not compared",
                node.span,
                hint=f"test its members: array_contains({spell(typed)}, …)",
            )
        if typed.type == ANY:
            refuse(f"the type of {spell(typed)} is not known", node.span, hint=_DECLARE)
        return typed

    def membership(self, node: In | ArraysOverlap) -> In | ArraysOverlap:
        """A list of constants, each fitted to the attribute or to its elements."""
        if isinstance(node, In):
            operand = self.comparable(node.operand)
            values = fit_members(node.values, operand, fit_literal)
            check_list(operand, values, node.span)
        else:
            operand = self.attribute(node.operand)
            assert operand.type is not None
            if operand.type.element is None:
                refuse(
                    f"{spell(operand)} is {with_article(operand)}; "
                    f"{node.function}() tests an array",
                    node.operand.span,
                    hint=f"test one value with {spell(operand)} IN (…)",
                )
            element = replace(operand, type=operand.type.element)
            values = fit_members(node.values, element, fit_element)
        return replace(node, operand=operand, values=values)

    def text_test(self, node: Like | Rlike | StringTest) -> Like | Rlike | StringTest:
        """A pattern over a string attribute."""
        operand = self.attribute(node.operand)
        if operand.type != STRING:
            refuse(
                f"{spell(operand)} is {with_article(operand)}; {_test_name(node)} tests a string",
                node.operand.span,
                hint=f"declare it as one: {spell(operand)} STRING",
            )
        try:
            if isinstance(node, Like):
                parse_like(node.pattern, node.escape)
            elif isinstance(node, Rlike):
                self.check_regex(node)
        except BadPatternError as error:
            raise TypeCheckError(
                "bad-pattern", str(error), span=node.span, hint=error.hint
            ) from None
        return replace(node, operand=operand)

    def pattern_list(self, node: PatternList) -> PatternList:
        """Several patterns over a string attribute."""
        for test in node.tests:
            operand = self.text_test(test).operand
        return replace(node, operand=operand)

    def check_regex(self, node: Rlike) -> None:
        """Raise an error for a regular expression that is too long or that RE2 does not support."""
        if len(node.pattern) > self.limits.regex_length:
            raise LimitError(
                "regex-too-long",
                f"the regular expression has {len(node.pattern)} characters; "
                f"at most {self.limits.regex_length}",
                span=node.span,
            )
        compile_regex(node.pattern)

    def in_network(self, node: InNetwork) -> InNetwork:
        """Networks, and an attribute that is an address."""
        operand = self.attribute(node.operand)
        assert operand.type is not None
        if operand.type != IP:
            hint = f"declare it as one: {spell(operand)} IP"
            if operand.type.element is not None:
                hint = (
                    "members of arrays cannot be tested against networks: give the events an "
                    "attribute with one address, or list addresses, "
                    f"array_contains({spell(operand)}, '10.0.0.1')"
                )
            refuse(
                f"{spell(operand)} is {with_article(operand)}; in_network() tests one address",
                node.operand.span,
                hint=hint,
            )
        for network in node.networks:
            try:
                parse_network(network)
            except WrongTypeError as error:
                raise TypeCheckError("bad-network", str(error), span=node.span) from None
        return replace(node, operand=operand)

    def matches(self, node: Matches) -> Matches:
        """Words of strings with one analyser; the query must have at least one."""
        typed = tuple(map(self.attribute, node.attributes))
        for attribute in typed:
            if attribute.type != STRING:
                refuse(
                    f"{spell(attribute)} is {with_article(attribute)}; matches() searches strings",
                    attribute.span,
                )
        analysers = {attribute.type.analyser for attribute in typed if attribute.type}
        if len(analysers) > 1:
            refuse(
                f"{', '.join(map(spell, typed))} have different analysers: "
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
                hint=f"the analyser is {analyser}: "
                + (
                    'to search for these words take "standard", which leaves none out'
                    if are_stopped
                    else "words hold letters, numbers or emoji"
                ),
            )
        self.check_words(node, len(words), len({*words} - {ANY_WORD}))
        return checked

    def check_words(self, node: Matches, n_words: int, n_distinct: int) -> None:
        """Raise an error for a query of more words than the limit, or of fewer than it requires."""
        if n_words * len(node.attributes) > self.limits.predicates:
            message = (
                f"the query has {n_words} words; more than {self.limits.predicates} predicates"
            )
            raise LimitError("too-many-predicates", message, span=node.span)
        if node.k > n_distinct:
            raise TypeCheckError(
                "bad-count",
                f"matches_at_least({node.k}, …) of {_count_words(n_distinct)}; "
                "k goes from 1 to their number",
                span=node.span,
                hint="words that the analyser makes equal count once, stop words do not count",
            )

    # ── operators and constraints ──────────────────────────────────────────────────────────

    def operator_call(self, node: OperatorCall) -> OperatorCall:
        """A call with constants of the right types, and variables where the operator binds
        values.
        """
        signature = self.schema.operator(node.name)
        if signature is None:
            self.refuse_call(node)
        return check_call(node, signature, self.variable)

    def variable(self, node: Variable) -> Variable:
        """The variable with the type that its calls determine."""
        if self.variables is None:
            self.variables = collect_types(self.root, self.schema)
        type_ = self.variables.get(node.name)
        if type_ is None:
            raise TypeCheckError(
                "unbound-variable",
                f"no operator binds ?{node.name}",
                span=node.span,
                hint=f"call one in the same condition: p(?{node.name}) AND …",
            )
        return replace(node, type=type_)

    def constraint(self, left: Value, right: Value, span: Span) -> tuple[Value, Value]:
        """Two values, at least one of which contains a variable or arithmetic."""
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
                check_number(other)
        if isinstance(left, Literal) and isinstance(right, Variable):
            left = fit_literal(left, right)
        elif isinstance(left, Variable) and isinstance(right, Literal):
            right = fit_literal(right, left)
        elif isinstance(left, Variable | Attribute) and isinstance(right, Variable | Attribute):
            check_pair(left, right, span)
        return left, right

    def term(self, value: Value) -> Value:
        """One side of a constraint; arithmetic requires numbers."""
        match value:
            case Variable():
                return self.variable(value)
            case Attribute():
                return self.comparable(value)
            case Arithmetic():
                left, right = self.term(value.left), self.term(value.right)
                check_number(left)
                check_number(right)
                return replace(value, left=left, right=right)
            case Literal():
                return value

    # ── refusals ───────────────────────────────────────────────────────────────────────────

    def refuse_unknown(self, node: Attribute) -> NoReturn:
        """Raise the error that the attribute is not declared, or not usable, with similar names."""
        foreign = self.schema.unsupported(node.path)
        if foreign is not None:
            refuse(
                f"attribute {spell(node)} has the type {foreign}, which expressions cannot test",
                node.span,
            )
        self.refuse_nested(node)
        message = f'unknown attribute "{print_path(node.path)}"'
        known = {print_path(path) for path in self.schema}
        likely = suggest(print_path(node.path), known)
        if likely:
            message += f'; did you mean "{likely}"?'
        hint = None if likely or len(known) > _SHOWN else f"known: {', '.join(sorted(known))}"
        raise UnknownAttributeError("unknown-attribute", message, span=node.span, hint=hint)

    def refuse_nested(self, node: Attribute) -> None:
        """Raise an error for an attribute that lies inside a known one, or that contains one."""
        path = node.path
        outer = next((path[:n] for n in range(1, len(path)) if path[:n] in self.schema), None)
        if outer is not None:
            kind = with_article(Attribute(outer, self.schema[outer]))
            message = f"{spell(node)} lies inside {print_path(outer)}, which is {kind}"
        else:
            inner = next((own for own in self.schema if own[: len(path)] == path), None)
            if inner is None:
                return
            message = f"{spell(node)} contains {print_path(inner)}, so it is not a value"
        raise UnknownAttributeError(
            "unknown-attribute",
            message,
            span=node.span,
            hint="in events, one name has either a value or an object: use one of the two in all "
            "expressions, or declare it in a schema",
        )

    def refuse_bare_word(self, left: Value, right: Value) -> None:
        """Raise an error for two attributes of unknown types, the second of which may be a
        string.
        """
        if not (isinstance(left, Attribute) and isinstance(right, Attribute)):
            return
        if {self.schema.get(left.path), self.schema.get(right.path)} == {ANY}:
            one, other = spell(left), spell(right)
            hint = f"declare them in a schema, such as '{one} STRING, {other} STRING'"
            if len(right.path) == 1 and "`" not in other:
                hint = f"if {other} is a text, write '{other}'; otherwise {hint}"
            refuse(f"the types of {one} and {other} are not known", left.span, hint=hint)

    def refuse_call(self, node: OperatorCall) -> NoReturn:
        """Raise the error that there is no such function or operator, with similar names."""
        known = SIGNATURES | {own.name: str(own) for own in self.schema.operators}
        message = f'unknown function "{node.name}"'
        hint = None
        match node.arguments:
            case [Attribute() as argument]:  # a function of other languages is not a misspelling
                hint = hint_at_function(node.name, spell(argument))
        hint = hint or _hint_at_network(node)
        likely = suggest(node.name, known) if hint is None else None
        if likely is not None:
            message += f'; did you mean "{likely}"?'
            hint = known[likely]
        hint = hint or "operators of your own are registered: tamis.operator"
        raise TypeCheckError("unknown-function", message, span=node.span, hint=hint)


_SHOWN: Final = 12
_DECLARE: Final = "declare it in a schema, such as 'price DOUBLE, budget DOUBLE'"


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _test_name(node: Like | Rlike | StringTest) -> str:
    if isinstance(node, StringTest):
        return f"{node.function}()"
    if isinstance(node, Rlike):
        return "RLIKE"
    return "ILIKE" if node.ignores_case else "LIKE"


def _hint_at_network(node: OperatorCall) -> str | None:
    """The call of in_network() that other languages write with the network first or last."""
    attribute = next((own for own in node.arguments if isinstance(own, Attribute)), None)
    constants = [own for own in node.arguments if isinstance(own, Literal) and own.type == STRING]
    if attribute is None:
        return None
    return hint_at_network(node.name, spell(attribute), [f"'{own.value}'" for own in constants])


def _count_words(n_words: int) -> str:
    return "1 word" if n_words == 1 else f"{n_words} words"
