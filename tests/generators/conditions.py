"""Random typed conditions: every operator that has a meaning, over a given schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import TypeCheckError
from tamis.language.ast import (
    And,
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
    Not,
    Or,
    PatternList,
    Rlike,
    StringTest,
    Value,
    Xnor,
    Xor,
)
from tamis.language.check import check
from tamis.language.comparators import Comparator
from tamis.language.lambdas import element_types
from tamis.language.schema import Schema
from tamis.language.types import (
    ANY_ARRAY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    IP,
    STRING,
    TIMESTAMP,
    Type,
)
from tamis.language.value_functions import FUNCTIONS
from tests.generators.values import DECIMALS, random_literal, random_scalar

if TYPE_CHECKING:
    from random import Random

OPERATORS: Final = tuple(Comparator)
NETWORKS: Final = (
    *("10.0.0.0/8", "10.0.0.0/30", "10.0.0.2", "10.1.0.0/16", "0.0.0.0/0", "::/0", "::/127"),
    *("2001:db8::/32", "::ffff:10.0.0.0/104", "255.255.255.255/32", "ff00::/8"),
)
ESCAPES: Final = ("\\", "\\", "\\", "!", "/", "#", "'", "|", "A", "b", "é", "1", "\t", "日")
# RE2 expressions; each finds something in the pools of strings.
REGEXES: Final = (
    *("a", "^a", "a$", "^a$", "b+", "^$", "[a-c]{2}", "^(a|b)", "a.b", "(?s)a.b", "(?i)ca"),
    *(r"\d", r"\s", r"\S+", r"\bCA\b", r"^CA\s*$", r"\.", r"\\", "%", "_", "'", r"\$", "^.$"),
    *("^..$", "é", "[^a]", "日", r"\x{1F600}", "(?i)σ", "(?i)s", "(?i)k", r"\w", r"^\W", r"\z"),
    *("(?m)^b", "(?m)a$", r"\Aa", "a|", "", "a*?b", "(?:ab)+", "[[:alpha:]]", r"\pL", r"\p{Greek}"),
)


def random_condition(rng: Random, schema: Schema, depth: int = 3) -> Condition:
    """A condition over the schema's attributes, typed; at most `depth` levels above its leaves."""
    return check(random_condition_as_written(rng, schema, depth), schema)


def random_condition_as_written(rng: Random, schema: Schema, depth: int = 3) -> Condition:
    """The same, untyped."""
    if depth <= 0 or rng.random() < 0.15:
        return random_leaf_as_written(rng, schema)

    def operands(least: int, most: int) -> tuple[Condition, ...]:
        n_operands = rng.randint(least, most)
        return tuple(random_condition_as_written(rng, schema, depth - 1) for _ in range(n_operands))

    draw = rng.random()
    if draw < 0.25:
        return And(operands(2, 4))
    if draw < 0.5:
        return Or(operands(2, 4))
    if draw < 0.7:
        return Not(random_condition_as_written(rng, schema, depth - 1))
    if draw < 0.8:
        return Xor(operands(2, 4))
    if draw < 0.88:
        return Xnor(operands(2, 4))
    below = operands(1, 5)
    return AtLeast(rng.randint(1, len(below)), below)


def random_leaf(rng: Random, schema: Schema) -> Condition:
    """One typed predicate, Boolean attribute or constant."""
    return check(random_leaf_as_written(rng, schema), schema)


def random_leaf_as_written(rng: Random, schema: Schema) -> Condition:
    """One predicate, Boolean attribute or constant that fits the schema, but untyped."""
    while True:
        if rng.random() < 0.06:
            leaf = _constant_leaf(rng)
        else:
            path = rng.choice(list(schema))
            leaf = _attribute_leaf(rng, schema, Attribute(path), schema[path])
        try:
            check(leaf, schema)
        except TypeCheckError:
            continue  # decimals that no common type holds, bounds of two types, and so on
        return leaf


# ── leaves ──────────────────────────────────────────────────────────────────────────────────


def _constant_leaf(rng: Random) -> Condition:
    """TRUE, FALSE, or two constants compared."""
    if rng.random() < 0.4:
        return Literal(rng.random() < 0.5, BOOLEAN)
    type_ = rng.choice((BOOLEAN, INTEGER, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, *DECIMALS[:2]))
    return Comparison(rng.choice(OPERATORS), random_literal(rng, type_), random_literal(rng, type_))


def _attribute_leaf(rng: Random, schema: Schema, attribute: Attribute, type_: Type) -> Condition:
    if rng.random() < 0.2 and type_.element is None:
        derived = random_derived(rng, attribute, type_, schema)
        found = _result_of(derived, schema)
        if found is not None:
            attribute, type_ = derived, found
    if rng.random() < 0.15 and type_.element is not None:
        derived = _derived_from_array(rng, attribute)
        found = _result_of(derived, schema)
        if found is not None:
            attribute, type_ = derived, found
    if rng.random() < 0.08:
        return IsNull(attribute, rng.random() < 0.5)
    if type_.element is not None:
        return _array_leaf(rng, attribute, type_.element, schema)
    if type_ == STRING and rng.random() < 0.5:
        return _text_leaf(rng, attribute)
    if type_ == IP and rng.random() < 0.3:
        return InNetwork(attribute, tuple(rng.sample(NETWORKS, rng.choice((1, 1, 2, 3)))))
    if type_ == BOOLEAN and rng.random() < 0.6:
        return attribute
    draw = rng.random()
    if draw < 0.3:
        values = tuple(random_literal(rng, type_) for _ in range(_list_length(rng)))
        return In(attribute, values, rng.random() < 0.4)
    if draw < 0.5:
        return _between_leaf(rng, schema, attribute, type_)
    sides: list[Value] = [attribute, _comparand(rng, schema, type_, others=0.3)]
    if rng.random() < 0.3:
        sides.reverse()
    return Comparison(rng.choice(OPERATORS), *sides)


def _list_length(rng: Random) -> int:
    # Above ten members Spark changes from comparing to hashing.
    return rng.randint(11, 15) if rng.random() < 0.1 else rng.randint(1, 4)


def _comparand(rng: Random, schema: Schema, type_: Type, others: float) -> Value:
    """A constant of the type or, in a share of `others`, an attribute of the same family."""
    if rng.random() < others:
        family = [path for path in schema if _are_comparable(schema[path], type_)]
        if family:
            other = Attribute(rng.choice(family))
            if type_ == STRING and rng.random() < 0.3:
                other = random_derived(rng, other)
            return other
    return random_literal(rng, type_)


def _are_comparable(one: Type, other: Type) -> bool:
    return one == other or (one.is_numeric and other.is_numeric)


def _between_leaf(rng: Random, schema: Schema, attribute: Attribute, type_: Type) -> Between:
    """Constant and attribute bounds, often empty ranges; now and then a constant between two
    attributes."""
    low, high = (_comparand(rng, schema, type_, others=0.15) for _ in range(2))
    is_negated = rng.random() < 0.4
    if rng.random() < 0.1:
        other = _comparand(rng, schema, type_, others=0.8)
        return Between(random_literal(rng, type_), attribute, other, is_negated)
    return Between(attribute, low, high, is_negated)


def _result_of(derived: Derived, schema: Schema) -> Type | None:
    """The type of a derived value; None if its types are refused."""
    try:
        typed = check(IsNull(derived), schema)
    except TypeCheckError:
        return None
    assert isinstance(typed, IsNull)
    return typed.operand.type


def make_derived(function: str, *arguments: Attribute | Literal) -> Derived:
    """A function of values as the parser makes it."""
    return Derived((), None, (0, 0), function, arguments)


_UNITS: Final = ("YEAR", "quarter", "MONTH", "week", "DD", "Hour", "MINUTE", "second")
_REGEXES: Final = ("a", "[a-z]+", "(?i)B|é", r"\d{1,2}", r"\bx", "^.", "..", "a|ab", r"\s")
_TARGETS: Final = {
    "boolean": ("integer", "string"),
    "integer": ("double", "string", "decimal(5,2)", "decimal(38,0)"),
    "number": ("double",),
    "float": ("double",),
    "double": ("double",),
    "decimal": ("double", "decimal(38,18)"),
    "string": ("integer", "double", "boolean"),
    "date": ("string", "timestamp"),
    "timestamp": ("string", "date"),
}


def random_derived(
    rng: Random, attribute: Attribute, type_: Type = STRING, schema: Schema | None = None
) -> Derived:
    """A function of an attribute, perhaps of another function; untyped. Its types may be
    refused."""
    if rng.random() < 0.15:
        return make_derived("coalesce", attribute, _second(rng, attribute, type_, schema))
    if rng.random() < 0.15 and type_.name in _TARGETS:
        target = Literal(rng.choice(_TARGETS[type_.name]), STRING)
        return make_derived("cast", attribute, target)
    if type_.is_numeric:
        return _random_number(rng, attribute, type_, schema)
    if type_ in (TIMESTAMP, DATE) and rng.random() < 0.3:
        if rng.random() < 0.5:
            return make_derived("date_trunc", Literal(rng.choice(_UNITS), STRING), attribute)
        constant = Literal(random_scalar(rng, DATE), DATE)
        return make_derived("date_diff", *rng.sample((attribute, constant), 2))
    if type_ in (STRING, TIMESTAMP, DATE):
        return _random_part(rng, attribute, type_)
    return make_derived("coalesce", attribute, _second(rng, attribute, type_, schema))


def _second(
    rng: Random, attribute: Attribute, type_: Type, schema: Schema | None
) -> Attribute | Literal:
    """Another attribute of the same family, or a constant."""
    if schema is not None and rng.random() < 0.5:
        family = [path for path in schema if _are_comparable(schema[path], type_)]
        return Attribute(rng.choice(family)) if family else attribute
    return random_literal(rng, type_)


def _random_number(
    rng: Random, attribute: Attribute, type_: Type, schema: Schema | None
) -> Derived:
    draw = rng.random()
    if draw < 0.25:
        return make_derived(rng.choice(("abs", "negative", "round", "floor", "ceil")), attribute)
    if draw < 0.32:
        return make_derived("round", attribute, Literal(rng.choice((0, 1, 2, 5)), INTEGER))
    one: Attribute | Literal = attribute
    if draw < 0.5:
        one = make_derived("abs", attribute) if draw < 0.4 else make_derived("+", one, one)
    sides = [one, _second(rng, attribute, type_, schema)]
    if rng.random() < 0.3:
        sides.reverse()
    return make_derived(rng.choice("+-*/%"), *sides)


def _random_part(rng: Random, attribute: Attribute, type_: Type) -> Derived:
    """A function of a text or a moment."""
    if type_ == STRING and rng.random() < 0.3:
        attribute = make_derived(rng.choice(("lower", "upper", "trim")), attribute)
    name, overload = rng.choice(
        [
            (name, overload)
            for name, function in FUNCTIONS.items()
            for overload in function.overloads
            if overload.parameters[0] == type_
            and 0 not in function.constants
            and name not in ("cast", "date_diff", "occurrences")
        ]
    )
    if name == "regexp_count":
        return make_derived(name, attribute, Literal(rng.choice(_REGEXES), STRING))
    others = tuple(_random_argument(rng, own) for own in overload.parameters[1:])
    if overload.is_variadic and rng.random() < 0.3:
        others = (*others, attribute)
    return make_derived(name, attribute, *others)


def _random_argument(rng: Random, type_: Type) -> Literal:
    if type_ == INTEGER:
        return Literal(rng.choice((-7, -2, -1, 1, 2, 3, 4, 100)), INTEGER)
    return Literal(_piece(rng, random_scalar(rng, STRING))[:2], STRING)


def _derived_from_array(rng: Random, attribute: Attribute) -> Derived:
    if rng.random() < 0.5:
        return make_derived("size", attribute)
    position = Literal(rng.choice((1, 1, 2, 3, -1, -2)), INTEGER)
    return make_derived("element_at", attribute, position)


def _compared_array(
    rng: Random, attribute: Attribute, element: Type, schema: Schema
) -> Comparison | In:
    """An array compared as a whole, with constants or another array."""
    if rng.random() < 0.25:
        return In(attribute, tuple(_constant_array(rng, element) for _ in range(_list_length(rng))))
    others = [Attribute(path) for path in schema if schema[path] == schema[attribute.path]]
    other = rng.choice(others) if rng.random() < 0.4 else _constant_array(rng, element)
    operator = rng.choice((Comparator.EQUAL, Comparator.NOT_EQUAL, Comparator.SAME))
    return Comparison(operator, attribute, other)


def _constant_array(rng: Random, element: Type) -> Literal:
    members = [
        None if rng.random() < 0.2 else random_literal(rng, element)
        for _ in range(rng.choice((0, 1, 1, 2, 3)))
    ]
    return Literal(tuple(members), ANY_ARRAY)


def _array_leaf(
    rng: Random, attribute: Attribute, element: Type, schema: Schema
) -> ArraysOverlap | ElementTest | Comparison | In:
    if rng.random() < 0.4 or element.name == "struct":
        name = rng.choice(("t", "x", "in", "order id"))
        inner = Schema(element_types(element, name))
        body = random_condition_as_written(rng, inner, depth=rng.choice((0, 0, 1)))
        return ElementTest(rng.choice(("exists", "forall")), attribute, Lambda(name, body))
    if rng.random() < 0.4:
        return _compared_array(rng, attribute, element, schema)
    if rng.random() < 0.5:
        return ArraysOverlap(attribute, (random_literal(rng, element),), "array_contains")
    values = tuple(random_literal(rng, element) for _ in range(_list_length(rng)))
    return ArraysOverlap(attribute, values)


def _text_leaf(rng: Random, attribute: Attribute) -> Condition:
    draw = rng.random()
    if draw < 0.12:
        return random_pattern_list(rng, attribute)
    if draw < 0.5:
        escape = rng.choice(ESCAPES)
        pattern = random_like_pattern(rng, escape)
        ignores_case = rng.random() < 0.4 and escape.lower() == escape.upper()
        return Like(attribute, pattern, escape, ignores_case, rng.random() < 0.3)
    if draw < 0.7:
        return Rlike(attribute, rng.choice(REGEXES), rng.random() < 0.3)
    function = rng.choice(("startswith", "endswith", "contains"))
    text = random_scalar(rng, STRING)
    return StringTest(function, attribute, _piece(rng, text))


def random_pattern_list(rng: Random, attribute: Attribute) -> PatternList:
    """LIKE ANY and the like, with one to four patterns."""
    word = rng.choice(("LIKE", "ILIKE", "RLIKE"))
    patterns = tuple(
        rng.choice(REGEXES) if word == "RLIKE" else random_like_pattern(rng, "\\")
        for _ in range(rng.randint(1, 4))
    )
    quantifier = rng.choice(("ANY", "ALL"))
    return PatternList(word, attribute, patterns, quantifier, rng.random() < 0.4)


def random_like_pattern(rng: Random, escape: str) -> str:
    """A text of the pool with some of its characters replaced by wildcards."""
    pieces: list[str] = []
    for character in _piece(rng, random_scalar(rng, STRING)):
        draw = rng.random()
        if draw < 0.12:
            pieces.append("%")
        elif draw < 0.3:
            pieces.append("_")
        elif character in (escape, "%", "_"):
            pieces.append(escape + character)
        else:
            pieces.append(rng.choice((character, character, character.swapcase())))
    ends = [rng.choice(("%", "%%", "_", "", "", "")) for _ in range(2)]
    return "".join((ends[0], *pieces, ends[1]))


def _piece(rng: Random, text: str) -> str:
    """A short piece of the text, all of it most of the time."""
    if rng.random() < 0.7:
        return text[:8]
    start = rng.randint(0, len(text))
    return text[start : start + rng.randint(0, 4)]
