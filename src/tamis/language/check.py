"""Type checking: gives every attribute its type and converts every constant to it, once and early.

A condition that passes here never fails at match time. There is no coercion between strings,
numbers and Booleans; a constant takes the type of the attribute it is compared with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn, cast

from tamis.errors import (
    ExpressionError,
    LimitError,
    TypeCheckError,
    UnknownAttributeError,
    suggest,
)
from tamis.language.argument_checks import (
    check_constant_arguments,
    fit_arguments,
    hint_at_digits,
    refuse_arguments,
    refuse_constant,
)
from tamis.language.array_keys import ARRAY_KEY, has_keys
from tamis.language.ast import (
    ARITHMETIC,
    EVENT,
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
    Lambda,
    Like,
    Literal,
    Matches,
    Not,
    OperatorCall,
    Or,
    PatternList,
    Reference,
    Rlike,
    Span,
    StringTest,
    Value,
    Variable,
    Words,
    Xnor,
    Xor,
    is_event,
    variables,
    variables_of,
)
from tamis.language.comparators import EQUALITIES, Comparator
from tamis.language.definitions import has_more_leaves, height_of, without_places
from tamis.language.fitting import (
    check_constants,
    check_list,
    check_number,
    check_pair,
    fit_array,
    fit_element,
    fit_literal,
    fit_members,
    refuse,
    spell,
    with_article,
)
from tamis.language.foreign_spellings import hint_at_function, hint_at_network
from tamis.language.foreign_values import NO_WHERE, hint_at_clock, hint_at_unsupported
from tamis.language.functions import SIGNATURES
from tamis.language.lambdas import ELEMENT, element_types, move_into
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.names import DERIVED_MARK, print_path
from tamis.language.operator_calls import check_call
from tamis.language.overloads import RefusedConstantError
from tamis.language.parser import parse
from tamis.language.patterns import BadPatternError, compile_regex, parse_like
from tamis.language.printer import print_reference, print_value
from tamis.language.queries import near_words, query_words
from tamis.language.types import (
    ANY,
    ANY_ARRAY,
    BOOLEAN,
    IP,
    NUMBER,
    STRING,
    STRINGS,
    Type,
    WrongTypeError,
    parse_network,
)
from tamis.language.value_functions import FUNCTIONS, find_overload_of
from tamis.language.variables import check_bound, collect_types
from tamis.text import ANY_WORD
from tamis.text.queries import describe_bad_wildcard, describe_no_words
from tamis.text.terms import NEAR, NEAR_IN_ORDER

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
    def __init__(
        self,
        schema: Schema,
        limits: Limits,
        root: Condition,
        referring: tuple[str, ...] = (),
        scope: str = "",
    ) -> None:
        self.schema = schema
        self.scope = scope  # the function and the parameter of the lambda that the condition is in
        self.limits = limits
        self.root = root
        self.referring = referring  # the definitions in which the condition is
        self.has_references = False
        self.variables: dict[str, Type] | None = None  # known when the first one is found

    def check(self) -> Condition:
        """The whole condition typed, with its variables bound where they are used."""
        typed = self.condition(self.root)
        if self.has_references:
            self.check_size(typed)
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
                return replace(node, operand=self.attribute(self.nullable(node.operand)))
            case Like() | Rlike() | StringTest():
                return self.text_test(node)
            case PatternList():
                return self.pattern_list(node)
            case ElementTest():
                return self.element_test(node)
            case InNetwork():
                return self.in_network(node)
            case Matches():
                return self.matches(node)
            case Words():
                return node
            case OperatorCall():
                return self.operator_call(node)
            case Reference():
                return self.reference(node)

    # ── named conditions ───────────────────────────────────────────────────────────────────

    def reference(self, node: Reference) -> Condition:
        """The condition that a reference stands for, at the place of the reference."""
        if self.scope:
            self.refuse_in_lambda(f"{print_reference(node.name)} is a condition of the event", node)
        self.has_references = True
        known = self.schema.expanded.get(node.name)
        if known is None:
            known = self.schema.expanded[node.name] = without_places(self.expand(node))
        return replace(known, span=node.span)

    def expand(self, node: Reference) -> Condition:
        """The typed condition of a definition."""
        shown = print_reference(node.name)
        path = (*self.referring, node.name)
        if node.name in self.referring:
            around = " → ".join(map(print_reference, path[path.index(node.name) :]))
            message = f"{shown} refers to itself: {around}"
            raise TypeCheckError("cyclic-definition", message, span=node.span)
        text = self.schema.definitions.get(node.name)
        if text is None:
            self.refuse_reference(node)
        try:
            condition = parse(text, self.limits)
            typed = _Checker(self.schema, self.limits, condition, path).check()
        except ExpressionError as error:
            is_cycle = error.code == "cyclic-definition"
            message = error.message if is_cycle else f"{shown} is wrong: {error.message}"
            code = error.code if is_cycle else "bad-definition"
            raise TypeCheckError(code, message, span=node.span, hint=error.hint) from None
        if any(variables(typed)):
            refuse(f"{shown} has variables: only the expression itself can bind them", node.span)
        return typed

    def check_size(self, typed: Condition) -> None:
        """Raise an error for a condition that is too large with its definitions."""
        span = self.root.span
        if has_more_leaves(typed, self.limits.predicates):
            message = f"more than {self.limits.predicates} predicates, with its definitions"
            raise LimitError("too-many-predicates", message, span=span)
        if height_of(typed) > self.limits.depth + 1:
            message = f"nested more than {self.limits.depth} levels deep, with its definitions"
            raise LimitError("too-deep", message, span=span)

    # ── leaves ─────────────────────────────────────────────────────────────────────────────

    def attribute(self, node: Attribute) -> Attribute:
        """The attribute with its declared type, or the derived value with that of its function."""
        if isinstance(node, Derived):
            return self.derived(node)
        type_ = self.schema.get(node.path) if node.path != EVENT else STRINGS
        if type_ is None:
            self.refuse_unknown(node)
        return replace(node, type=type_)

    def derived(self, node: Derived) -> Derived:
        """A function whose arguments have the types that it takes."""
        if node.function == "size":  # of the values of a field: that of the array
            first = node.arguments[0]
            array = self.nullable(first) if isinstance(first, Attribute) else first
            node = replace(node, arguments=(array,))
        arguments = fit_arguments(node.function, self.arguments(node))
        check_constant_arguments(node.function, arguments)
        typed = replace(node, arguments=arguments)
        self.check_counted(typed)
        try:
            overload = find_overload_of(typed)
        except RefusedConstantError as error:
            raise TypeCheckError(error.code, str(error), span=node.span, hint=error.hint) from None
        except WrongTypeError as error:
            is_known = all(own.type != ANY for own in arguments)
            hint = hint_at_digits(node.function) if is_known else "declare its type in a schema"
            refuse(f"{print_value(typed)}: {error}", node.span, hint=hint)
        if overload is None:
            refuse_arguments(node.function, arguments, node.span)
        refuse_constant(typed, overload)
        typed = replace(typed, type=overload.result)
        return replace(typed, path=(DERIVED_MARK + print_value(typed),))

    def check_counted(self, node: Derived) -> None:
        """Raise an error for a regular expression that a function cannot count."""
        check_regex = FUNCTIONS[node.function].check_regex
        pattern = node.arguments[-1].value if isinstance(node.arguments[-1], Literal) else None
        if check_regex is None or not isinstance(pattern, str):
            return
        try:
            self.check_regex(pattern, node.span)
            check_regex(pattern)
        except BadPatternError as error:
            refuse_pattern(error, node.span)

    def arguments(self, node: Derived) -> tuple[Attribute | Literal, ...]:
        """The arguments of a function, with their types."""
        try:
            return tuple(
                own if isinstance(own, Literal) else self.attribute(own) for own in node.arguments
            )
        except UnknownAttributeError as error:
            names = [
                own.path[0] for own in node.arguments if isinstance(own, Attribute) and own.path
            ]
            if node.function == "-" and len(names) == 2:
                error.hint = (
                    f"a name with a minus in it is written in backticks: `{'-'.join(names)}`"
                )
            raise

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
        if self.is_array(node.left) and self.is_array(node.right):
            return self.compare_arrays(node)
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

    def is_array(self, value: Value) -> bool:
        """Whether a value is an array, an attribute or a constant."""
        if isinstance(value, Attribute) and not isinstance(value, Derived):
            type_ = self.schema.get(value.path)
            return type_ is not None and type_.element is not None
        return isinstance(value, Literal) and value.type == ANY_ARRAY

    def compare_arrays(self, node: Comparison) -> Comparison:
        """Two arrays as the comparison of their keys."""
        if node.operator not in (*EQUALITIES, Comparator.SAME):
            refuse(
                "arrays have no order here: only =, <>, <=> and IN compare them",
                node.span,
                hint="compare their sizes, size(a) < size(b), or their elements",
            )
        sides = node.left, node.right
        arrays = [self.array_key(own) for own in sides if isinstance(own, Attribute)]
        if not arrays:
            refuse("one side of a comparison of arrays must be an attribute", node.span)
        types = [own.arguments[0].type for own in arrays]
        if len({str(own.element) for own in types if own is not None}) > 1:
            one, other = (own.arguments[0] for own in arrays)
            refuse(
                f"{print_value(one)} is {with_article(one)} and {print_value(other)} "
                f"{with_article(other)}: they cannot be compared",
                node.span,
            )
        left, right = (
            self.array_key(own)
            if isinstance(own, Attribute)
            else fit_array(cast("Literal", own), cast("Attribute", arrays[0].arguments[0]))
            for own in sides
        )
        return replace(node, left=left, right=right)

    def array_key(self, node: Attribute) -> Derived:
        """What is compared of an array."""
        typed = self.attribute(node)
        assert typed.type is not None
        if not has_keys(typed.type.element):
            refuse(
                f"{spell(typed)} is {with_article(typed)}; such arrays are not compared",
                node.span,
                hint=f"declare the type of the elements: {spell(typed)} ARRAY<DOUBLE>"
                if typed.type.element in (ANY, NUMBER)
                else f"test the elements: exists({spell(typed)}, x -> …)",
            )
        key = Derived((), STRING, node.span, ARRAY_KEY, (typed,))
        return replace(key, path=(DERIVED_MARK + print_value(key),))

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
        if any(isinstance(own, Variable | Arithmetic) for own in (left, right)):
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
                f"{spell(typed)} is {with_article(typed)}; arrays are compared with arrays only",
                node.span,
                hint=f"test its members: array_contains({spell(typed)}, …) or "
                f"exists({spell(typed)}, x -> x > …); or all of it: {spell(typed)} = array(…)",
            )
        if typed.type == ANY:
            refuse(f"the type of {spell(typed)} is not known", node.span, hint=_DECLARE)
        return typed

    def membership(self, node: In | ArraysOverlap) -> In | ArraysOverlap | ElementTest:
        """A list of constants, each fitted to the attribute or to its elements."""
        array = self.array_above(node.operand) if isinstance(node, ArraysOverlap) else None
        if array is not None:
            assert isinstance(node, ArraysOverlap)
            return self.overlap_of_fields(node, array)
        if (
            isinstance(node, In)
            and self.is_array(node.operand)
            and any(map(self.is_array, node.values))
        ):
            array = self.array_key(node.operand)
            keys = (fit_array(own, cast("Attribute", array.arguments[0])) for own in node.values)
            return replace(node, operand=array, values=tuple(keys))
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

    def element_test(self, node: ElementTest) -> ElementTest:
        """A condition over the elements of an array, or over the strings of an event."""
        is_whole = is_event(node.operand)
        function = "any_attribute" if is_whole else node.function
        if self.scope and is_whole:
            self.refuse_in_lambda("any_attribute() is a condition of the event", node)
        array = self.array_above(node.operand)
        if array is not None:
            inside = node.operand.path[len(array.path) :]
            self.refuse_array_of_arrays(node.operand, array, f"{function}({{}}, …)")
            node = replace(node, operand=array, test=move_into(node.test, inside))
        operand = self.attribute(node.operand)
        assert operand.type is not None
        if operand.type == ANY:
            hint = f"declare it in a schema, such as '{spell(operand)} ARRAY<STRING>'"
            refuse(f"the type of {spell(operand)} is not known", node.operand.span, hint=hint)
        if operand.type.element is None:
            refuse(
                f"{spell(operand)} is {with_article(operand)}; {node.function}() tests an array",
                node.operand.span,
            )
        name = node.test.parameter
        types = element_types(operand.type.element, name)
        body = _Checker(
            type(self.schema)(types), self.limits, node.test.body, scope=f"{function}() {name}"
        ).check()
        return replace(node, operand=operand, test=replace(node.test, body=body))

    def array_above(self, node: Attribute) -> Attribute | None:
        """The array of structs in which a path lies: `items`, of `items.sku`."""
        if isinstance(node, Derived) or node.path in self.schema:
            return None
        for length in range(1, len(node.path)):
            type_ = self.schema.get(node.path[:length])
            if type_ is not None and type_.element is not None and type_.element.name == "struct":
                return Attribute(node.path[:length], type_, node.span)
        return None

    def nullable(self, node: Attribute) -> Attribute:
        """What is missing where the attribute is: of the fields of structs, the array."""
        array = self.array_above(node)
        if array is None:
            return node
        assert array.type is not None
        assert array.type.element is not None
        types = element_types(array.type.element, ELEMENT)
        return array if (ELEMENT, *node.path[len(array.path) :]) in types else node

    def overlap_of_fields(self, node: ArraysOverlap, array: Attribute) -> ElementTest:
        """array_contains(items.sku, 'a') as exists(items, x -> x.sku IN ('a'))."""
        assert array.type is not None
        assert array.type.element is not None
        path = (ELEMENT, *node.operand.path[len(array.path) :])
        self.refuse_array_of_arrays(node.operand, array, f"{node.function}({{}}, …)")
        type_ = element_types(array.type.element, ELEMENT).get(path)
        if type_ is None:
            self.refuse_unknown(node.operand)
        field = Attribute(path, type_, node.operand.span)
        values = fit_members(node.values, field, fit_element)
        return ElementTest(
            "exists", array, Lambda(ELEMENT, In(field, values, span=node.span)), node.span
        )

    def refuse_array_of_arrays(self, node: Attribute, array: Attribute, test: str) -> None:
        """Raise an error for a path through an array of structs to a field that is an array."""
        assert array.type is not None
        assert array.type.element is not None
        path = (ELEMENT, *node.path[len(array.path) :])
        type_ = element_types(array.type.element, ELEMENT).get(path)
        if type_ is not None and type_.element is not None:
            inner = test.format(print_path(path))
            refuse(
                f"{spell(node)} is an array of arrays",
                node.span,
                hint=f"write exists({spell(array)}, x -> {inner})",
            )

    def refuse_in_lambda(self, what: str, node: Condition | Variable) -> NoReturn:
        """Raise the error for something other than the element in the condition of a lambda."""
        function, _, parameter = self.scope.partition(" ")
        refuse(
            f"{what}; the condition of {function} can only use the element, {parameter}, and "
            "constants",
            node.span,
            hint="test the attributes of the event outside: join both conditions with AND",
        )

    def text_test(self, node: Like | Rlike | StringTest) -> Like | Rlike | StringTest:
        """A pattern over a string attribute."""
        operand = self.attribute(node.operand)
        if operand.type != STRING:
            refuse(
                f"{spell(operand)} is {with_article(operand)}; {_test_name(node)} tests a string",
                node.operand.span,
                hint=_hint_at_text(operand, node),
            )
        try:
            if isinstance(node, Like):
                parse_like(node.pattern, node.escape)
            elif isinstance(node, Rlike):
                self.check_regex(node.pattern, node.span)
        except BadPatternError as error:
            refuse_pattern(error, node.span)
        return replace(node, operand=operand)

    def pattern_list(self, node: PatternList) -> PatternList:
        """Several patterns over a string attribute."""
        for test in node.tests:
            operand = self.text_test(test).operand
        return replace(node, operand=operand)

    def check_regex(self, pattern: str, span: Span) -> None:
        """Raise an error for a regular expression that is too long or that RE2 does not support."""
        if len(pattern) > self.limits.regex_length:
            raise LimitError(
                "regex-too-long",
                f"the regular expression has {len(pattern)} characters; "
                f"at most {self.limits.regex_length}",
                span=span,
            )
        compile_regex(pattern)

    def in_network(self, node: InNetwork) -> InNetwork:
        """Networks, and an attribute that is an address."""
        operand = self.attribute(node.operand)
        assert operand.type is not None
        if operand.type != IP:
            hint = f"declare it as one: {spell(operand)} IP"
            if operand.type.element is not None:
                hint = _test_elements_by(operand, "in_network(x, '…')")
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
                    f"{spell(attribute)} is {with_article(attribute)}; {node.function}() searches "
                    "strings",
                    attribute.span,
                    hint=_hint_at_elements(attribute, node.function),
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
            message, hint = describe_no_words(analysers.pop(), node.query)
            raise TypeCheckError("no-words", message, span=node.span, hint=hint)
        if short := describe_bad_wildcard(analysers.pop(), node.query):
            raise TypeCheckError("bad-wildcard", short[0], span=node.span, hint=short[1])
        self.check_words(node, len(words), len({*words} - {ANY_WORD}))
        if node.mode in (NEAR, NEAR_IN_ORDER) and len(near_words(checked)) < 2:
            raise TypeCheckError(
                "bad-count",
                f"{node.function}('{node.query}') of one word; two or more can be near each other",
                span=node.span,
                hint="words that the analyser makes equal count once, stop words do not count",
            )
        return checked

    def check_words(self, node: Matches, n_words: int, n_distinct: int) -> None:
        """Raise an error for a query of more words than the limit, or of fewer than it requires."""
        if n_words * len(node.attributes) > self.limits.predicates:
            message = (
                f"the query has {n_words} words; more than {self.limits.predicates} predicates"
            )
            raise LimitError("too-many-predicates", message, span=node.span)
        if node.mode == "at_least" and node.k > n_distinct:
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
        if self.scope:
            self.refuse_in_lambda(f"{node.name}() is not a function of values", node)
        signature = self.schema.operator(node.name)
        if signature is None:
            self.refuse_call(node)
        return check_call(node, signature, self.variable)

    def variable(self, node: Variable) -> Variable:
        """The variable with the type that its calls determine."""
        if self.scope:
            self.refuse_in_lambda(f"?{node.name} is a variable of the subscription", node)
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
            case Derived(function=operator) if operator in ARITHMETIC:
                one, other = value.arguments
                return self.term(Arithmetic(operator, one, other, value.span))
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
        if self.scope and node.path[0] != self.scope.partition(" ")[2]:
            self.refuse_in_lambda(f"{spell(node)} is not the element", node)
        foreign = self.schema.unsupported(node.path)
        array = self.array_above(node)
        if array is not None and foreign is None:
            self.refuse_field(node, array)
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

    def refuse_field(self, node: Attribute, array: Attribute) -> NoReturn:
        """Raise the error for a field of an array of structs that is used as one value."""
        assert array.type is not None
        assert array.type.element is not None
        inside = node.path[len(array.path) :]
        known = {path[1:] for path in element_types(array.type.element, ELEMENT)}
        name = print_path((ELEMENT, *inside))
        if inside in known:
            refuse(
                f"{spell(node)} is an array: {spell(array)} is an array of structs",
                node.span,
                hint=f"write exists({spell(array)}, x -> {name} = …), or "
                f"array_contains({spell(node)}, …)",
            )
        message = f"the elements of {spell(array)} have no field {print_path(inside)}"
        hint = f"known: {', '.join(sorted(map(print_path, known)))}" if known else None
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

    def refuse_reference(self, node: Reference) -> NoReturn:
        """Raise the error that there is no such definition or subscription, with similar names."""
        names = [name for name in self.schema.definitions if not name.startswith(SUBSCRIPTION)]
        if node.name.startswith(SUBSCRIPTION):
            message = f"unknown {print_reference(node.name)}"
            hint = "a subscription can refer to others that are built together with it"
        else:
            message = f"unknown definition {print_reference(node.name)}"
            likely = suggest(node.name, names)
            hint = f"an attribute of that name is written `@{node.name}`"
            if likely is not None:
                message += f"; did you mean @{likely}?"
            elif names:
                hint = f"known: {', '.join(f'@{name}' for name in sorted(names)[:_SHOWN])}; {hint}"
        raise TypeCheckError("unknown-definition", message, span=node.span, hint=hint)

    def refuse_call(self, node: OperatorCall) -> NoReturn:
        """Raise the error that there is no such function or operator, with similar names."""
        known = SIGNATURES | {own.name: str(own) for own in self.schema.operators}
        message = f'unknown function "{node.name}"'
        hint = NO_WHERE if node.name.lower() == "where" else hint_at_clock(node.name)
        hint = hint or hint_at_unsupported(node.name)
        match node.arguments:
            case [Attribute() as argument] if (
                hint is None
            ):  # a function of other languages is not a misspelling
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


def refuse_pattern(error: BadPatternError, span: Span) -> NoReturn:
    """Raise the error of a pattern with its place."""
    raise TypeCheckError("bad-pattern", str(error), span=span, hint=error.hint) from None


def _test_name(node: Like | Rlike | StringTest) -> str:
    if isinstance(node, StringTest):
        return f"{node.function}()"
    if isinstance(node, Rlike):
        return "RLIKE"
    return "ILIKE" if node.ignores_case else "LIKE"


def _hint_at_text(operand: Attribute, node: Like | Rlike | StringTest) -> str:
    """What to write instead of a test of a text on something else."""
    if operand.type is None or operand.type.element is None:
        return f"declare it as one: {spell(operand)} STRING"
    name = _test_name(node)
    return _test_elements_by(operand, f"{name[:-1]}x, '…')" if "(" in name else f"x {name} '…'")


def _test_elements_by(array: Attribute, test: str) -> str:
    """How to test the elements of an array."""
    return f"for each element of it, write exists({spell(array)}, x -> {test})"


def _hint_at_network(node: OperatorCall) -> str | None:
    """The call of in_network() that other languages write with the network first or last."""
    attribute = next((own for own in node.arguments if isinstance(own, Attribute)), None)
    constants = [own for own in node.arguments if isinstance(own, Literal) and own.type == STRING]
    if attribute is None:
        return None
    return hint_at_network(node.name, spell(attribute), [f"'{own.value}'" for own in constants])


def _hint_at_elements(attribute: Attribute, function: str) -> str | None:
    """How to search an array of texts."""
    if attribute.type is None or attribute.type.element != STRING:
        return None
    example = f"exists({spell(attribute)}, x -> {function}(x, …))"
    return f"search its elements: {example}; search_query writes it for arrays=…"


def _count_words(n_words: int) -> str:
    return "1 word" if n_words == 1 else f"{n_words} words"
