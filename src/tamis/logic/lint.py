"""Lint: reports parts that the author probably did not mean, with their place and a better
spelling.

The findings are computed from the canonical form (the meaning of one part, or of two parts
together), so they do not depend on the spelling; spans refer to the author's text.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.language.ast import (
    NOWHERE,
    And,
    ArraysOverlap,
    AtLeast,
    Between,
    Comparison,
    Condition,
    ElementTest,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    PatternList,
    Rlike,
    Span,
    StringTest,
    Xnor,
    Xor,
    children,
    tested_attributes,
)
from tamis.language.names import print_path
from tamis.language.patterns import Wild, parse_like
from tamis.language.printer import print_expression
from tamis.language.types import STRING
from tamis.logic.canonical import canonicalize
from tamis.logic.distribution import join_forms
from tamis.logic.evaluate import Missing
from tamis.logic.findings import Finding
from tamis.logic.leaves import FALSE, TRUE, scalar_attribute
from tamis.logic.literal_patterns import lint_literals
from tamis.logic.minus_names import find_minus_names
from tamis.logic.network_lists import find_network_lists
from tamis.logic.result_ranges import find_outside_range
from tamis.logic.text_order import find_text_order
from tamis.logic.wrong_case import find_wrong_case

if TYPE_CHECKING:
    from collections.abc import Iterator

# Up to this many operands are compared in pairs: more would take n * n canonical forms.
MAX_PAIRED_OPERANDS: Final = 40
_SHOWN: Final = 60
# A backslash before a letter or a digit, as in the path C:\temp.
_CONTROL: Final = re.compile(r"[\t\n\r\x08\0](?=\w)")
_CONTROLS: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\b": r"\b", "\0": r"\0"}
_BACKSLASH: Final = r"write a backslash twice, 'C:\\temp', or use a raw string, r'C:\temp'"


class _Reading(NamedTuple):
    """The logic in which the meaning of a part is computed."""

    missing: Missing
    is_exact: bool  # inside NOT and XOR, where false and undefined differ

    def of(self, *parts: Condition) -> _Reading:
        """The logic for some parts, which are compared with each other only.

        With `Missing.SATISFIES_NEGATION`, parts without a negation are true for the same events as
        they are otherwise, and then more rules apply to them.
        """
        if self.missing is Missing.UNDEFINED or not all(map(_is_positive, parts)):
            return self
        return _PLAIN

    def form(self, condition: Condition) -> Condition:
        """The canonical form of a part."""
        return canonicalize(condition, self.missing, is_exact=self.is_exact)

    def join(self, kind: type[And | Or], forms: tuple[Condition, Condition]) -> Condition:
        """The canonical form of two canonical parts together."""
        one, other = forms
        is_two_valued = self.missing is Missing.SATISFIES_NEGATION
        if is_two_valued and kind is Or and (one == Not(other) or other == Not(one)):
            return TRUE
        return join_forms(kind, forms, self.missing, is_exact=self.is_exact)


_PLAIN: Final = _Reading(Missing.UNDEFINED, is_exact=False)


def lint(condition: Condition, missing: Missing = Missing.UNDEFINED) -> list[Finding]:
    """All findings in a typed condition, in the order of the text."""
    reading = _Reading(missing, is_exact=False)
    findings = list(_lint_node(condition, reading))
    form = reading.of(condition).form(condition)
    if form in (TRUE, FALSE) and not isinstance(condition, Literal):
        never = "this expression is never true: no event can match"
        always = "this expression is always true: every event matches"
        code = "always-true" if form == TRUE else "never-true"
        message = always if form == TRUE else never
        # The part that causes this is reported instead of the whole, if it was found.
        if not any(finding.code in _DECISIVE for finding in findings):
            findings.append(Finding(code, message, condition.span))
    # Parts of definitions have no place in this text.
    own = [finding for finding in findings if finding.span != NOWHERE]
    return sorted(own, key=lambda finding: (finding.span, finding.code))


_DECISIVE: Final = frozenset(("conflict", "never-true", "always-true", "empty-range", "constant"))


def _lint_node(node: Condition, reading: _Reading) -> Iterator[Finding]:
    """Findings in `node` and below it."""
    if isinstance(node, And | Or):
        yield from _lint_operands(node, reading)
    elif not isinstance(node, Not) and not children(node):
        yield from _lint_leaf(node, reading.of(node))
    if isinstance(node, Not) and isinstance(node.operand, Not):
        yield Finding("double-negation", "NOT NOT cancels out", node.span)
    if isinstance(node, Not | Xor | Xnor):
        reading = reading._replace(is_exact=True)
    for operand in children(node):
        yield from _lint_node(operand, reading)


def _is_positive(condition: Condition) -> bool:
    """Whether no test of the condition is negated."""
    match condition:
        case Not() | Xor() | Xnor():
            return False
        case And() | Or() | AtLeast():
            return all(map(_is_positive, condition.operands))
        case Comparison():
            return condition.operator.positive is condition.operator
        case ElementTest():
            return _is_positive(condition.test.body)
        case IsNull():
            return True  # never undefined
        case _:
            return not getattr(condition, "negated", False)


# ── pairs of operands ───────────────────────────────────────────────────────────────────────


def _lint_operands(node: And | Or, reading: _Reading) -> Iterator[Finding]:
    word = "AND" if isinstance(node, And) else "OR"
    decisive = TRUE if isinstance(node, Or) else FALSE
    readings = [reading.of(operand) for operand in node.operands]
    forms = [own.form(part) for own, part in zip(readings, node.operands, strict=True)]
    seen: dict[tuple[_Reading, Condition], Condition] = {}
    is_marked = [False] * len(forms)
    for at, (operand, form) in enumerate(zip(node.operands, forms, strict=True)):
        is_marked[at] = True
        if isinstance(form, Literal) and not isinstance(operand, Literal):
            yield _constant_operand(operand, form, node)
        elif isinstance(operand, Literal) and operand == decisive:
            effect = "always" if decisive == TRUE else "never"
            message = f"{word} {print_expression(operand)}: the whole {word} is {effect} true"
            yield Finding(f"{effect}-true", message, operand.span)
        elif (readings[at], form) in seen:
            message = f"repeated: the same as {_shown(seen[readings[at], form])}"
            yield Finding("duplicate", message, operand.span, hint="remove one of them")
        else:
            is_marked[at] = False
            seen[readings[at], form] = operand
    fresh = [at for at in range(len(forms)) if not is_marked[at]]
    if len(fresh) <= MAX_PAIRED_OPERANDS:
        for first, second in combinations(fresh, 2):
            pair = (node.operands[first], node.operands[second])
            both = (forms[first], forms[second])
            joint = readings[first]
            if joint != readings[second]:
                joint = reading
                both = (reading.form(pair[0]), reading.form(pair[1]))
            found = _lint_pair(node, pair, both, joint.join(type(node), both))
            if found is not None:
                yield found


def _constant_operand(operand: Condition, form: Literal, node: And | Or) -> Finding:
    if form.value:
        return Finding("always-true", "this part is always true", operand.span)
    if isinstance(node, Or):
        message = "this branch is never true: it can be removed"
        return Finding("unreachable", message, operand.span)
    return Finding("never-true", "this part is never true, so neither is the AND", operand.span)


def _lint_pair(
    node: And | Or,
    pair: tuple[Condition, Condition],
    forms: tuple[Condition, Condition],
    joined: Condition,
) -> Finding | None:
    """Findings for two operands that exclude, imply or complete each other."""
    first, second = pair
    if isinstance(node, And) and joined == FALSE:
        message = f"conflicts with {_shown(first)}: never both true"
        hint = "did you mean OR?" if _same_attribute(forms) else None
        return Finding("conflict", message, second.span, hint=hint)
    if isinstance(node, Or) and joined == TRUE:
        return Finding("always-true", f"together with {_shown(first)} always true", second.span)
    if isinstance(node, Or) and isinstance(joined, IsNull) and joined not in forms:
        name = print_path(joined.operand.path)
        message = f"together with {_shown(first)} true wherever {name} is present"
        hint = f"did you mean AND? otherwise write {name} IS NOT NULL"
        return Finding("always-true", message, second.span, hint=hint)
    if joined in forms:
        kept, dropped = (first, second) if joined == forms[0] else (second, first)
        implied = "implied by" if isinstance(node, And) else "covered by"
        message = f"has no effect: {implied} {_shown(kept)}"
        return Finding("redundant", message, dropped.span, hint="remove it")
    return None


def _same_attribute(forms: tuple[Condition, Condition]) -> bool:
    one, other = map(scalar_attribute, forms)
    return one is not None and one == other


def _shown(condition: Condition) -> str:
    text = print_expression(condition)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


# ── single leaves ───────────────────────────────────────────────────────────────────────────


def _lint_leaf(leaf: Condition, reading: _Reading) -> Iterator[Finding]:
    yield from _lint_strings(leaf)
    yield from find_network_lists(leaf)
    literals = list(lint_literals(leaf))
    yield from literals
    match leaf:
        case In() | ArraysOverlap():
            if len({literal.value for literal in leaf.values}) < len(leaf.values):
                yield Finding("duplicate", "a value is listed twice", leaf.span)
        case Between():
            if canonicalize(leaf) == FALSE and not leaf.negated:
                message = "never true: the lower bound is above the upper one"
                yield Finding("empty-range", message, leaf.span, hint="swap the bounds")
        case PatternList():
            if len(set(leaf.patterns)) < len(leaf.patterns):
                yield Finding("duplicate", "a pattern is listed twice", leaf.span)
            for test in leaf.tests:
                yield from lint_literals(test)
        case ElementTest():
            yield from _lint_node(leaf.test.body, reading)
        case Like() if not literals:
            yield from _lint_like(leaf)
        case _:
            pass
    yield from find_wrong_case(leaf)
    yield from find_outside_range(leaf)
    yield from find_minus_names(leaf)
    if isinstance(leaf, Comparison | In):
        form = canonicalize(leaf, reading.missing)
        if form in (FALSE, TRUE):
            yield _lint_decided(leaf, form)


def _lint_decided(leaf: Comparison | In, form: Condition) -> Finding:
    name = next((print_path(own.path) for own in tested_attributes(leaf)), None)
    if name is None:
        return Finding("constant", "compares two constants: the result is fixed", leaf.span)
    if form == TRUE:
        message = f"always true, whatever {name} is and where it is missing"
        return Finding("always-true", message, leaf.span)
    message = f"never true: {name} cannot have such a value"
    return Finding("never-true", message, leaf.span)


def _lint_like(leaf: Like) -> Iterator[Finding]:
    tokens = parse_like(leaf.pattern, leaf.escape)
    if not any(isinstance(token, Wild) for token in tokens) and not leaf.ignores_case:
        hint = "write = instead, or add %"
        yield Finding("no-wildcard", "LIKE without % or _ is a plain comparison", leaf.span, hint)


def _lint_strings(leaf: Condition) -> Iterator[Finding]:
    yield from find_text_order(leaf)
    for literal in _string_literals(leaf):
        span = literal.span if literal.span != (0, 0) else leaf.span
        for is_odd, code, message, hint in _string_oddities(literal.value):
            if is_odd:
                yield Finding(code, message.format(literal.value), span, hint)
    for text, span in _written_texts(leaf):
        if found := _CONTROL.search(text):
            written = _CONTROLS[found[0]]
            message = f"{written} is read as a control character, not as a backslash and a letter"
            yield Finding("control-character", message, span, hint=_BACKSLASH)
    if isinstance(leaf, StringTest) and not leaf.text:
        message = f"{leaf.function}(…, '') is true for every text"
        yield Finding("always-true", message, leaf.span, hint="write IS NOT NULL")
    regexes = leaf.tests if isinstance(leaf, PatternList) else (leaf,)
    if any(isinstance(own, Rlike) and own.pattern.startswith(".*") for own in regexes):
        message = "RLIKE searches anywhere: the leading .* has no effect"
        yield Finding("redundant", message, leaf.span)


def _written_texts(leaf: Condition) -> Iterator[tuple[str, Span]]:
    """The string constants of a leaf, with their spans."""
    for literal in _string_literals(leaf):
        yield literal.value, literal.span if literal.span != (0, 0) else leaf.span
    if isinstance(leaf, StringTest):
        yield leaf.text, leaf.span
    elif isinstance(leaf, Like):
        yield leaf.pattern, leaf.span
    elif isinstance(leaf, PatternList) and leaf.word != "RLIKE":
        yield from ((pattern, leaf.span) for pattern in leaf.patterns)


def _string_literals(leaf: Condition) -> tuple[Literal, ...]:
    match leaf:
        case Comparison():
            sides = (leaf.left, leaf.right)
            return tuple(x for x in sides if isinstance(x, Literal) and x.type == STRING)
        case In() | ArraysOverlap():
            return tuple(literal for literal in leaf.values if literal.type == STRING)
        case _:
            return ()


def _string_oddities(text: str) -> tuple[tuple[bool, str, str, str | None], ...]:
    is_padded = text != text.strip() and bool(text.strip())
    is_word = text.lower() in ("null", "none", "nan")
    return (
        (is_padded, "padded-string", "'{}' begins or ends with blanks", "blanks count"),
        (bool(text) and not text.strip(), "padded-string", "'{}' is only blanks", None),
        (is_word, "null-string", "'{}' is a text, not a missing value", "write IS NULL"),
    )
