"""Parses tokens into the untyped syntax tree, by precedence climbing.

Each nested level takes at most six Python frames, and the depth is checked before a level is
entered, so no text can exhaust the stack. From loosest to tightest: OR, XOR/XNOR, AND, NOT,
comparisons, + -, * / %.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from tamis.errors import ExpressionError, LimitError, ParseError, suggest
from tamis.language import functions
from tamis.language.ast import (
    VALUES,
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Derived,
    ElementTest,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    OperatorCall,
    Or,
    PatternList,
    Reference,
    Rlike,
    Span,
    Value,
    Variable,
    Xnor,
    Xor,
    children,
    make_arithmetic,
)
from tamis.language.comparators import COMPARATORS, EQUALITIES, Comparator
from tamis.language.foreign_spellings import (
    hint_at_comparison,
    hint_at_constant,
    hint_at_infix,
    hint_at_tested,
)
from tamis.language.foreign_values import (
    NO_WHERE,
    hint_at_clock,
    hint_at_grouped,
    hint_at_wildcard,
)
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.literals import read_moment, read_number, read_string
from tamis.language.tokens import (
    ARROW,
    END,
    KEYWORDS,
    NUMBER,
    QUOTED,
    RAW_STRING,
    REFERENCE,
    STRING,
    VARIABLE,
    WORD,
    tokenize,
)
from tamis.language.types import BOOLEAN
from tamis.language.types import STRING as STRING_TYPE

if TYPE_CHECKING:
    Node = Condition | Value

(
    _OR_PRECEDENCE,
    _XOR_PRECEDENCE,
    _AND_PRECEDENCE,
    _NOT_PRECEDENCE,
    _COMPARISON_PRECEDENCE,
    _SUM_PRECEDENCE,
    _PRODUCT_PRECEDENCE,
) = range(1, 8)
_CLOSERS: Final = frozenset(("AND", "OR", ")", ",", END))
_POWERS: Final = {
    "OR": _OR_PRECEDENCE,
    "XOR": _XOR_PRECEDENCE,
    "XNOR": _XOR_PRECEDENCE,
    "AND": _AND_PRECEDENCE,
    **dict.fromkeys(COMPARATORS, _COMPARISON_PRECEDENCE),
    **dict.fromkeys(
        ("IN", "IS", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "NOT"), _COMPARISON_PRECEDENCE
    ),
    "+": _SUM_PRECEDENCE,
    "-": _SUM_PRECEDENCE,
    "*": _PRODUCT_PRECEDENCE,
    "/": _PRODUCT_PRECEDENCE,
    "%": _PRODUCT_PRECEDENCE,
}
_CONSTANTS: Final = ("expected a constant in the IN list", "expected a pattern in quotes")
_OPENED_LIST: Final = "expected '('"
_PATTERN_TESTS: Final = ("LIKE", "ILIKE", "RLIKE")
_QUANTIFIERS: Final = {"ANY": "ANY", "SOME": "ANY", "ALL": "ALL"}
_LISTS: Final = "one of several is name IN ('a', 'b')"
_COMPARE: Final = f"compare it with something, such as = or <; {_LISTS}"
_CONTINUATIONS: Final = ("AND", "OR", "XOR", "IN", "LIKE", "BETWEEN", "IS")


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Condition:
    """The condition written in `text`; raises `ParseError` or `LimitError`."""
    if not isinstance(text, str):
        raise ParseError(
            "not-text", f"an expression is text, not {type(text).__name__}", span=(0, 0)
        )
    try:
        return Parser(text, limits).parse()
    except ExpressionError as error:
        raise error.located(text) from None


class Parser:
    """One pass over the tokens of one text; `at` is the current token."""

    __slots__ = (
        *(
            "at",
            "chain",
            "depth",
            "flattens",
            "kinds",
            "limits",
            "n_levels",
            "n_predicates",
            "spans",
            "text",
        ),
    )

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.kinds, self.spans = tokenize(text, limits)
        self.at = 0
        self.depth = 0
        self.flattens = False  # whether a chain of connectives in parentheses is one node
        self.chain: Node | None = None  # the last such chain
        self.n_levels = 0  # all levels ever entered: the tree has no more, plus one of leaves
        self.n_predicates = 0

    def parse(self) -> Condition:
        """The whole text as one condition."""
        if self.kinds[0] == END:
            raise ParseError("empty", "the expression is empty", span=(0, len(self.text)))
        condition = self.condition(self.expression(0))
        if self.kinds[self.at] != END:
            self.fail("expected AND, OR or the end", _CONTINUATIONS)
        if self.n_levels >= self.limits.depth:
            self.check_height(condition)
        return condition

    # ── precedence climbing ────────────────────────────────────────────────────────────────

    def expression(self, loosest: int) -> Node:
        """An expression whose operators all bind tighter than `loosest`."""
        left = (
            self.plain_comparison() if loosest < _COMPARISON_PRECEDENCE else None
        ) or self.prefix()
        return self.climb(left, loosest)

    def climb(self, left: Node, loosest: int) -> Node:
        """The rest of an expression whose first operand has been read."""
        is_compared = False
        while True:
            kind = self.kinds[self.at]
            power = _POWERS.get(kind, 0)
            if power <= loosest:
                return left
            if power <= _AND_PRECEDENCE:
                left = self.connective(kind, power, left)
                continue
            if power == _COMPARISON_PRECEDENCE:
                if is_compared:
                    self.fail_here(
                        "chained-comparison",
                        "comparisons cannot be chained",
                        hint="join them with AND, or put one in parentheses",
                    )
                left = self.predicate(kind, left)
                is_compared = True
                continue
            self.n_levels += 1
            self.at += 1
            right = self.value(self.expression(power))
            left = make_arithmetic(kind, self.value(left), right, (left.span[0], right.span[1]))

    def connective(self, kind: str, power: int, left: Node) -> Condition:
        """AND, OR and XOR with all their operands; XNOR with two."""
        chained = _operands_of(left, kind) if self.flattens or left is self.chain else ()
        operands = [*chained] or [self.condition(left)]
        kinds = self.kinds
        self.enter()
        while kinds[self.at] == kind:
            self.at += 1
            operands.append(self.condition(self.expression(power)))
        self.depth -= 1
        span = (left.span[0], operands[-1].span[1])
        if kind == "AND":
            return And(tuple(operands), span)
        if kind == "OR":
            return Or(tuple(operands), span)
        mixes = kinds[self.at] in ("XOR", "XNOR")
        if mixes or (kind == "XNOR" and len(operands) > 2):
            # The parser has read the chain to its end, which is not a useful place to report.
            raise ParseError(
                "ambiguous",
                "XOR and XNOR cannot be mixed or XNOR chained without parentheses",
                span=self.here() if mixes else span,
                hint="xnor(p, q, r) is true when an even number of its operands is",
            )
        self.check_xor(len(operands), span)
        return Xor(tuple(operands), span) if kind == "XOR" else Xnor(tuple(operands), span)

    def prefix(self) -> Node:
        """A literal, attribute, call, NOT or parenthesised expression."""
        at = self.at
        kind = self.kinds[at]
        span = self.spans[at]
        if kind in (WORD, QUOTED):
            return self.name_or_call(span)
        self.at = at + 1
        if kind == "(":
            return self.parenthesised()
        if kind == "NOT":
            self.enter()
            operand = self.condition(self.expression(_NOT_PRECEDENCE))
            self.depth -= 1
            return Not(operand, (span[0], operand.span[1]))
        plain = self.plain_literal(at)
        if plain is not None:
            return plain
        if kind == RAW_STRING:
            return Literal(self.string_at(at), STRING_TYPE, span)
        if kind in ("XOR", "XNOR") and self.kinds[self.at] == "(":
            self.at = at
            return functions.parse_call(self, kind, span)
        if kind in ("TRUE", "FALSE"):
            return Literal(kind == "TRUE", BOOLEAN, span)
        if kind == REFERENCE:
            return Reference(self.text[span[0] + 1 : span[1]], span)
        if kind == VARIABLE:
            return Variable(self.text[span[0] + 1 : span[1]], None, span)
        if kind == "-" and self.kinds[self.at] == NUMBER:
            self.at += 1
            span = (span[0], self.spans[at + 1][1])
            token = self.text[self.spans[at + 1][0] : span[1]]
            return read_number(token, span, is_negative=True)
        if kind == "-" and self.kinds[self.at] in (WORD, QUOTED, VARIABLE, "("):
            return self.negative(span[0])
        self.at = at
        if kind == "NULL":
            self.fail_null()
        self.fail("expected a condition or a value", ("NOT", "TRUE", "FALSE"))

    def negative(self, start: int) -> Derived:
        """The value after a minus."""
        self.enter()
        operand = self.expression(_PRODUCT_PRECEDENCE)
        self.depth -= 1
        if not isinstance(operand, Attribute | Literal):
            raise ParseError(
                "unexpected-token",
                f"expected an attribute after '-', found {self.spell(operand)}",
                span=operand.span,
                hint="with variables, write 0 - ?x" if isinstance(operand, VALUES) else None,
            )
        return Derived((), None, (start, operand.span[1]), "negative", (operand,))

    def parenthesised(self) -> Node:
        """An expression in parentheses, of which the first has been read.

        Adjacent opening parentheses are one call. A chain that is written as ((p OR q) OR r) OR s
        is one node if it would be too deep otherwise, however long it is.
        """
        openings = [self.at - 1]
        while self.kinds[self.at] == "(":
            openings.append(self.at)
            self.at += 1
        if self.depth + len(openings) < self.limits.depth:
            return self.parenthesised_plainly(openings)
        flattened_before, self.flattens = self.flattens, True
        self.chain = self.parenthesised_chain(openings)
        self.flattens = flattened_before
        return self.chain

    def parenthesised_plainly(self, openings: list[int]) -> Node:
        """The expression after these opening parentheses, each of which is a level."""
        for _ in openings:
            self.enter()
        flattened_before, self.flattens = self.flattens, False
        inside = self.expression(0)
        while True:
            inside = self.close(inside, openings.pop())
            self.depth -= 1
            if not openings:
                self.flattens = flattened_before
                return inside
            inside = self.climb(inside, 0)

    def parenthesised_chain(self, openings: list[int]) -> Node:
        """The same, if those that continue a chain of connectives are not levels."""
        self.enter()
        inside = self.expression(0)
        n_levels = 0  # parentheses that do not continue a chain
        while True:
            inside = self.close(inside, openings.pop())
            n_levels += not _operands_of(inside, self.kinds[self.at])
            if self.depth - 1 + n_levels > self.limits.depth:
                start = inside.span[0]
                self.fail_depth((start, start + 1))
            if not openings:
                self.depth -= 1
                return inside
            inside = self.climb(inside, 0)

    def close(self, inside: Node, opening: int) -> Node:
        """The expression before a closing parenthesis, given the position of its opening one."""
        if self.kinds[self.at] == "," and isinstance(inside, Literal):
            message = "expected ')', found ',': a list can only come after IN"
            self.fail_here("unexpected-token", message, hint=_LISTS)
        self.expect(")")
        # With its parentheses, so that the spans of enclosing nodes are balanced.
        span = (self.spans[opening][0], self.spans[self.at - 1][1])
        if isinstance(inside, And | Or):  # most are, and `replace` is slow
            return type(inside)(inside.operands, span)
        return replace(inside, span=span)

    def plain_comparison(self) -> Comparison | None:
        """`name operator constant`, parsed at once, as most predicates are; None for others."""
        at, kinds = self.at, self.kinds
        operator = COMPARATORS.get(kinds[at + 1])
        if kinds[at] != WORD or operator is None or kinds[at + 3] not in _CLOSERS:
            return None
        right = self.plain_literal(at + 2)
        if right is None:
            return None
        self.at = at + 3
        span = self.spans[at]
        left = Attribute((self.text[span[0] : span[1]],), None, span)
        return Comparison(operator, left, right, (span[0], right.span[1]))

    def plain_literal(self, at: int) -> Literal | None:
        """The string or number token at `at` as a literal; None for others."""
        kind = self.kinds[at]
        span = self.spans[at]
        if kind == STRING:
            token = self.text[span[0] : span[1]]
            return Literal(read_string(token, span[0]), STRING_TYPE, span)
        if kind == NUMBER:
            return read_number(self.text[span[0] : span[1]], span)
        return None

    # ── predicates ─────────────────────────────────────────────────────────────────────────

    def predicate(self, kind: str, left: Node) -> Condition:
        """The predicate whose left operand has been read and whose operator is next."""
        self.at += 1
        is_negated = kind == "NOT"
        if is_negated:
            kind = self.kinds[self.at]
            if kind not in ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE"):
                self.fail("expected IN, BETWEEN, LIKE, ILIKE or RLIKE after NOT")
            self.at += 1
        if kind == "IN":
            return self.in_list(self.attribute(left, "IN"), is_negated=is_negated)
        if kind == "IS":
            return self.null_test(left)
        if kind == "BETWEEN":
            return self.between(self.value(left), is_negated=is_negated)
        if kind in _PATTERN_TESTS and self.is_quantifier():
            return self.pattern_list(kind, self.attribute(left, kind), is_negated=is_negated)
        if kind in ("LIKE", "ILIKE"):
            operand = self.attribute(left, kind)
            return self.like(operand, ignores_case=kind == "ILIKE", is_negated=is_negated)
        if kind == "RLIKE":
            operand = self.attribute(left, kind)
            pattern = self.string(f"expected a regular expression after {kind}")
            return Rlike(operand, pattern, is_negated, self.span_from(left))
        return self.comparison(COMPARATORS[kind], left)

    def comparison(self, operator: Comparator, left: Node) -> Condition:
        """Two values compared, or two conditions by = and <> (XNOR and XOR)."""
        right = self.expression(_COMPARISON_PRECEDENCE)
        span = (left.span[0], right.span[1])
        if isinstance(left, VALUES) and isinstance(right, VALUES):
            return Comparison(operator, left, right, span)
        for call, other in ((left, right), (right, left)):
            if isinstance(call, Reference) and isinstance(other, VALUES):
                self.fail_reference(call, other)
            is_ordered = operator not in EQUALITIES and isinstance(other, VALUES)
            if isinstance(call, OperatorCall) and (is_ordered or not self.is_condition(other)):
                raise ParseError(
                    "not-a-value",
                    f"{call.name}() is not a function that returns a value",
                    span=call.span,
                    hint=hint_at_comparison(
                        call.name, self.spell_arguments(call), operator, self.spell(other)
                    ),
                )
        if operator not in EQUALITIES:
            raise ParseError(
                "not-a-value",
                f"{operator} compares values, not conditions",
                span=span,
                hint="conditions are compared by (p) = (q) and (p) <> (q)",
            )
        operands = (self.condition(left), self.condition(right))
        self.n_levels += 1
        is_equal = operator is Comparator.EQUAL
        return Xnor(operands, span) if is_equal else Xor(operands, span)

    def in_list(self, operand: Attribute, *, is_negated: bool) -> In:
        """The members of an IN list."""
        self.expect("(")
        values: list[Literal] = []
        if self.kinds[self.at] == ")":
            self.fail("expected a constant in the IN list")
        while True:
            values.append(self.literal("expected a constant in the IN list"))
            if self.kinds[self.at] != ",":
                break
            self.at += 1
        self.expect(")")
        span = self.span_from(operand)
        self.check_members(len(values), span)
        return In(operand, tuple(values), is_negated, span)

    def null_test(self, left: Node) -> IsNull:
        """IS NULL and IS NOT NULL."""
        is_negated = self.kinds[self.at] == "NOT"
        if is_negated:
            self.at += 1
        if self.kinds[self.at] in ("TRUE", "FALSE"):
            self.fail_here(
                "unsupported-syntax",
                f"IS {self.kinds[self.at]} is not supported",
                hint="write the Boolean attribute alone or after NOT, or test IS NULL",
            )
        self.expect("NULL")
        return IsNull(self.attribute(left, "IS NULL"), is_negated, self.span_from(left))

    def between(self, operand: Value, *, is_negated: bool) -> Between:
        """The two bounds of BETWEEN."""
        low = self.value(self.expression(_COMPARISON_PRECEDENCE))
        self.expect("AND", "between the two bounds of BETWEEN")
        high = self.value(self.expression(_COMPARISON_PRECEDENCE))
        return Between(operand, low, high, is_negated, (operand.span[0], high.span[1]))

    def like(self, operand: Attribute, *, ignores_case: bool, is_negated: bool) -> Like:
        """The pattern of LIKE or ILIKE and its escape character."""
        pattern = self.string("expected a pattern in quotes")
        escape = "\\"
        if self.is_word("ESCAPE"):
            self.at += 1
            at = self.at
            escape = self.string("expected the escape character in quotes")
            self.check_escape(escape, self.spans[at], ignores_case=ignores_case)
        span = self.span_from(operand)
        return Like(operand, pattern, escape, ignores_case, is_negated, span)

    def is_quantifier(self) -> bool:
        """Whether a list of patterns comes next: ANY ('…', '…')."""
        if self.kinds[self.at] == "(" and self.kinds[self.at + 2] == ",":
            hint = "write LIKE ANY ('…', '…') for one of several patterns, LIKE ALL for all of them"
            self.fail_here("unexpected-token", "expected a pattern in quotes, found '('", hint=hint)
        return any(map(self.is_word, _QUANTIFIERS))

    def pattern_list(self, word: str, operand: Attribute, *, is_negated: bool) -> PatternList:
        """The quantifier and the patterns of LIKE ANY (…) and similar forms."""
        quantifier = _QUANTIFIERS[self.text[slice(*self.spans[self.at])].upper()]
        self.at += 1
        self.expect("(", "before the patterns")
        patterns = [self.string("expected a pattern in quotes")]
        while self.kinds[self.at] == ",":
            self.at += 1
            patterns.append(self.string("expected a pattern in quotes"))
        self.expect(")")
        span = self.span_from(operand)
        self.check_members(len(patterns), span)
        if self.is_word("ESCAPE"):
            self.fail_here(
                "unsupported-syntax",
                "ESCAPE is not allowed after a list of patterns",
                hint="the escape character is the backslash",
            )
        return PatternList(word, operand, tuple(patterns), quantifier, is_negated, span)

    def check_escape(self, escape: str, span: Span, *, ignores_case: bool) -> None:
        """Raise an error for an invalid escape character."""
        # Java's characters go to U+FFFF.
        if len(escape) != 1 or escape in "%_" or escape > "\uffff":
            raise ParseError(
                "bad-pattern",
                f"'{escape}' cannot be the escape character",
                span=span,
                hint="one character up to U+FFFF other than % and _",
            )
        if ignores_case and escape.lower() != escape.upper():
            raise ParseError(
                "bad-pattern",
                f"'{escape}' cannot be the escape character of ILIKE: it has two cases",
                span=span,
                hint="Spark brings the pattern to lower case, but not the escape character",
            )

    # ── names and calls ────────────────────────────────────────────────────────────────────

    def name_or_call(self, span: Span) -> Node:
        """An attribute path, DATE/TIMESTAMP '…', or a call."""
        kinds = self.kinds
        following = kinds[self.at + 1]
        if kinds[self.at] == WORD:
            if following == "(":
                return functions.parse_call(self, self.text[span[0] : span[1]], span)
            if following == STRING:
                keyword = self.text[span[0] : span[1]].upper()
                if keyword in ("DATE", "TIMESTAMP"):
                    self.at += 2
                    text = self.string_at(self.at - 1)
                    return read_moment(keyword, text, (span[0], self.spans[self.at - 1][1]))
        path = [self.name()]
        while kinds[self.at] == ".":
            self.at += 1
            if kinds[self.at] not in (WORD, QUOTED):
                self.fail("expected a name after '.'")
            if len(path) == self.limits.depth:
                self.fail_depth(self.here())
            path.append(self.name())
        return Attribute(tuple(path), None, (span[0], self.spans[self.at - 1][1]))

    def name(self) -> str:
        """One name, plain or in backticks."""
        at = self.at
        self.at = at + 1
        text = self.text[slice(*self.spans[at])]
        return text if self.kinds[at] == WORD else text[1:-1].replace("``", "`")

    # ── what the next token must be ────────────────────────────────────────────────────────

    def is_word(self, word: str) -> bool:
        """Whether the next token is this word, which is not a keyword elsewhere."""
        at = self.at
        if self.kinds[at] != WORD:
            return False
        return self.text[slice(*self.spans[at])].upper() == word

    def string(self, expected: str) -> str:
        """The text of the next token, which must be a string."""
        at = self.at
        if self.kinds[at] not in (STRING, RAW_STRING):
            if self.kinds[at] == "NULL":
                self.fail_null()
            self.fail(expected)
        self.at = at + 1
        return self.string_at(at)

    def string_at(self, at: int) -> str:
        """The text of the string token at `at`."""
        token = self.text[slice(*self.spans[at])]
        return (
            token[2:-1] if self.kinds[at] == RAW_STRING else read_string(token, self.spans[at][0])
        )

    def literal(self, expected: str) -> Literal:
        """The next expression, which must be a constant."""
        at = self.at
        if self.kinds[at + 1] in _CLOSERS:
            plain = self.plain_literal(at)
            if plain is not None:
                self.at = at + 1
                return plain
        node = self.expression(_COMPARISON_PRECEDENCE)
        if not isinstance(node, Literal):
            self.at = at
            self.fail(expected)
        return node

    def expect(self, kind: str, why: str = "") -> None:
        """Skip a token that must be present."""
        if self.kinds[self.at] != kind:
            self.fail(f"expected '{kind}'" + (f" {why}" if why else ""), (kind,))
        self.at += 1

    def span_from(self, node: Node) -> Span:
        """From the start of `node` to the end of the last token read."""
        return node.span[0], self.spans[self.at - 1][1]

    def condition(self, node: Node) -> Condition:
        """`node`, which must be a condition."""
        if type(node) is Comparison:
            self.count_predicate(node.span)
            return node
        if isinstance(node, VALUES):
            if not self.is_condition(node):
                raise ParseError(
                    "not-a-condition",
                    f"expected a condition, found the value {self.text[slice(*node.span)]}",
                    span=node.span,
                    hint=_COMPARE,
                )
            assert isinstance(node, Attribute | Literal)
            self.count_predicate(node.span)
            return node
        if not isinstance(node, And | Or | Not):
            self.count_predicate(node.span)
        return node

    @staticmethod
    def is_condition(node: Node) -> bool:
        """Whether `node` can be a condition: an attribute may be Boolean, 5 is not."""
        if isinstance(node, Literal):
            return node.type == BOOLEAN
        return not isinstance(node, Variable | Arithmetic)

    def value(self, node: Node, hint: str | None = None) -> Value:
        """`node`, which must be a value."""
        if not isinstance(node, VALUES):
            if isinstance(node, OperatorCall):
                hint = hint_at_clock(node.name) or hint
            raise ParseError(
                "not-a-value",
                f"expected a value, found the condition {self.text[slice(*node.span)]}",
                span=node.span,
                hint=hint,
            )
        return node

    def attribute(self, node: Node, tested_by: str) -> Attribute:
        """`node`, which must be an attribute."""
        if not isinstance(node, Attribute):
            raise ParseError(
                "not-an-attribute",
                f"{tested_by} tests an attribute, not {self.text[slice(*node.span)]}",
                span=node.span,
                hint=self.hint_at_operand(node, tested_by),
            )
        return node

    def hint_at_operand(self, node: Node, tested_by: str) -> str | None:
        """The hint for a test of something other than an attribute."""
        if isinstance(node, OperatorCall):
            arguments = self.spell_arguments(node)
            return hint_at_tested(node.name, arguments, tested_by, self.text, node.span[1])
        if isinstance(node, Literal):
            return hint_at_constant(self.spell(node), tested_by, self.text, node.span[1])
        return None

    def spell(self, node: Node) -> str:
        """The source text of the node."""
        return self.text[slice(*node.span)]

    def spell_arguments(self, call: OperatorCall) -> str:
        """The source text of the arguments of a call."""
        return ", ".join(map(self.spell, call.arguments))

    # ── limits ─────────────────────────────────────────────────────────────────────────────

    def enter(self) -> None:
        """Enter one more nested level."""
        self.n_levels += 1
        self.depth += 1
        if self.depth > self.limits.depth:
            self.fail_depth(self.here())

    def check_height(self, condition: Condition) -> None:
        """Raise an error for a tree with too many levels, which grows to the left without being
        entered.
        """
        pending: list[tuple[Node, int]] = [(condition, 1)]
        while pending:
            node, level = pending.pop()
            if level > self.limits.depth + 1:  # the leaves are one level below
                self.fail_depth(node.span)
            pending.extend((below, level + 1) for below in _below(node))

    def count_predicate(self, span: Span) -> None:
        """Count one more operand; inner nodes count too, so the limit applies to the whole tree."""
        self.n_predicates += 1
        if self.n_predicates > self.limits.predicates:
            message = f"more than {self.limits.predicates} predicates"
            raise LimitError("too-many-predicates", message, span=span)

    def check_members(self, n_members: int, span: Span) -> None:
        """Raise an error for a list of constants longer than the limit."""
        if n_members > self.limits.in_list:
            message = f"the list has {n_members} members; at most {self.limits.in_list}"
            raise LimitError("list-too-long", message, span=span)

    def check_xor(self, n_operands: int, span: Span) -> None:
        """Raise an error for a XOR with more operands than the limit."""
        if n_operands > self.limits.xor_operands:
            message = f"XOR has {n_operands} operands; at most {self.limits.xor_operands}"
            raise LimitError("too-many-operands", message, span=span)

    # ── errors ─────────────────────────────────────────────────────────────────────────────

    def fail(self, expected: str, candidates: tuple[str, ...] = ()) -> NoReturn:
        """Raise an error at the current token, which says what was expected."""
        at = self.at
        kind = self.kinds[at]
        word = self.text[slice(*self.spans[at])]
        found = "the end" if kind == END else f"'{word}'" if len(word) < 40 else kind
        message = f"{expected}, found {found}"
        likely = suggest(word, candidates) if kind == WORD else None
        if likely:
            message += f"; did you mean {likely}?"
        hint = None
        is_name = "name" in expected or (
            self.kinds[at + 1] in COMPARATORS if kind != END else False
        )
        if kind in KEYWORDS and is_name:
            hint = f"an attribute named like a keyword is written `{word}`"
        elif kind == STRING and at and self.kinds[at - 1] == STRING:
            hint = "write a quote inside a string as ''; adjacent strings are not joined"
        elif expected == _OPENED_LIST and kind in (STRING, NUMBER):
            hint = f"write the list in parentheses: ({word})"
        elif kind in _PATTERN_TESTS and self.kinds[at + 1] == "(":
            hint = f"the attribute comes first: write name {kind} 'pattern'"
        elif kind == "-" or (kind == NUMBER and at and self.kinds[at - 1] in (WORD, ".")):
            hint = "a name with such characters is written in backticks: `user-id`"
        elif kind == WORD and expected in _CONSTANTS and self.kinds[at + 1] in _CLOSERS:
            hint = f"write a string in quotes: '{word}'"
        elif kind == ARROW:
            hint = "only exists(), forall() and any_attribute() take a condition with ->"
        elif kind == WORD:
            hint = hint_at_infix(self.text, *self.spans[at])
        hint = self.hint_at_value() or hint
        raise ParseError("unexpected-token", message, span=self.here(), hint=hint)

    def hint_at_value(self) -> str | None:
        """The hint for a value written as in another language at the current token, or for WHERE
        before the condition.
        """
        at, kind = self.at, self.kinds[self.at]
        is_where = self.kinds[0] == WORD and self.text[slice(*self.spans[0])].upper() == "WHERE"
        if is_where and self.kinds[1 + (self.kinds[1] == "NOT")] in (WORD, QUOTED, "("):
            return NO_WHERE
        if kind == ",":
            return hint_at_grouped(self.text, self.spans[at][0])
        star = at if kind == "*" else at - 1
        return hint_at_wildcard(self.text, self.spans[star][0]) if self.kinds[star] == "*" else None

    def fail_here(self, code: str, message: str, *, hint: str) -> NoReturn:
        """Raise an error at the current token, with this message."""
        raise ParseError(code, message, span=self.here(), hint=hint)

    def fail_null(self) -> NoReturn:
        """Raise an error for NULL as a value."""
        raise ParseError(
            "null-literal",
            "NULL is not a value to compare with: the result would never be true",
            span=self.here(),
            hint="write IS NULL or IS NOT NULL",
        )

    def fail_reference(self, reference: Reference, other: Value) -> None:
        """Raise an error for a definition that is compared with a value, not with a condition."""
        if isinstance(other, Attribute) or self.is_condition(other):
            return
        shown = self.spell(reference)
        raise ParseError(
            "not-a-value",
            f"{shown} is a condition, not a value",
            span=reference.span,
            hint=f"an attribute of that name is written `{shown}`" if shown[0] == "@" else None,
        )

    def fail_depth(self, span: Span) -> NoReturn:
        """Raise the error for too many levels."""
        message = f"nested more than {self.limits.depth} levels deep"
        raise LimitError("too-deep", message, span=span)

    def here(self) -> Span:
        """The span of the current token."""
        start, end = self.spans[self.at]
        return start, max(end, start + 1)


def _operands_of(node: Node, kind: str) -> tuple[Condition, ...]:
    """The operands of an AND before AND or of an OR before OR; none otherwise."""
    if kind == "OR":
        return node.operands if isinstance(node, Or) else ()
    return node.operands if kind == "AND" and isinstance(node, And) else ()


def _below(node: Node) -> tuple[Node, ...]:
    """The operands of a condition or value, one level down."""
    match node:
        case Comparison() | Arithmetic():
            return node.left, node.right
        case Between():
            return node.operand, node.low, node.high
        case OperatorCall():
            return node.arguments
        case Derived():
            return node.arguments
        case ElementTest():
            return (node.test.body,)
        case Attribute() | Literal() | Variable():
            return ()
        case _:
            return children(node)
