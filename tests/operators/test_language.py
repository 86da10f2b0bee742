"""Operator calls, variables and constraints: the errors of invalid ones, and the types."""

from __future__ import annotations

import pytest

from tamis.errors import SchemaError, TamisError, TypeCheckError
from tamis.language import Schema, check, parse, print_expression
from tamis.language.ast import OperatorCall, leaves, variables
from tamis.language.printer import print_for_spark
from tamis.language.signatures import Read, parse_signature
from tamis.language.types import DOUBLE, INTEGER
from tamis.logic.bindings import call_of, calls_of

SCHEMA = Schema.of(
    "a BIGINT, s STRING, d DOUBLE, loc_in(STRING) OPERATOR(lat, lon), "
    "mob_pattern(?BIGINT) OPERATOR, distance_from(STRING, ?DOUBLE) OPERATOR, "
    "seen(?STRING, ?STRING) OPERATOR, nearby(STRING, DECIMAL(10,2)) OPERATOR, on(DATE) OPERATOR"
)


def typed(text):
    return check(parse(text), SCHEMA, text=text)


@pytest.mark.parametrize(
    "text",
    [
        "loc_in('Bronx')",
        "LOC_IN('Bronx') AND a = 1",
        "mob_pattern(?people) AND ?people > 50",
        "?people > 50 AND mob_pattern(?people)",
        "distance_from('StatueOfLiberty', ?x) AND ?x < 1000",
        "mob_pattern(?y) AND distance_from('A', ?z) AND ?y > 2 * ?z",
        "mob_pattern(?y) AND ?y BETWEEN 2 AND 3 + 4",
        "mob_pattern(?y) AND ?y > a",
        "mob_pattern(?y) AND ?y + a > 1.5",
        "mob_pattern(50)",
        "seen(?x, ?x)",
        "seen(?x, 'b') AND NOT seen(?x, ?x)",
        "seen(?x, ?y) AND ?x <> ?y",
        "mob_pattern(?x) OR distance_from('A', ?x)",
        "(mob_pattern(?x) OR distance_from('A', ?x)) AND ?x > 5",
        "NOT (NOT mob_pattern(?x) OR ?x <= 5)",
        "at_least(2, mob_pattern(?x), distance_from('A', ?x), a = 1)",
        "mob_pattern(?x) AND xor(?x > 5, a = 1)",
        "mob_pattern(?x) AND (?x > 5 OR loc_in('A'))",
        "nearby('x', 2.5) AND on('2024-01-31')",
    ],
)
def test_what_has_a_meaning(text):
    condition = typed(text)
    assert all(variable.type is not None for variable in variables(condition))
    assert check(parse(print_expression(condition)), SCHEMA) == condition


@pytest.mark.parametrize(
    ("text", "code", "where", "said"),
    [
        ("loc_inn('Bronx')", "unknown-function", "loc_inn('Bronx')", 'did you mean "loc_in"?'),
        ("loc_in()", "wrong-arity", "loc_in()", "takes 1 argument, found 0"),
        ("loc_in('a', 'b')", "wrong-arity", None, "takes 1 argument, found 2"),
        ("loc_in(5)", "type-mismatch", "5", "an integer where loc_in() takes string"),
        ("nearby('x', 'y')", "type-mismatch", "'y'", "a string where nearby() takes decimal(10,2)"),
        ("mob_pattern(2.5)", "type-mismatch", "2.5", "where mob_pattern() takes integer"),
        ("loc_in(?x)", "unbound-variable", "?x", "does not bind ?x"),
        ("loc_in(s)", "type-mismatch", "s", "is a constant or a variable"),
        ("mob_pattern(1 + 1)", "type-mismatch", "1 + 1", "is a constant or a variable"),
        ("?x > 5", "unbound-variable", "?x", "no operator binds ?x"),
        ("mob_pattern(?x) AND ?y > 5", "unbound-variable", "?y", "no operator binds ?y"),
        ("NOT mob_pattern(?x)", "unbound-variable", "?x", "occurs only under NOT"),
        ("a = 1 AND NOT mob_pattern(?x)", "unbound-variable", "?x", "occurs only under NOT"),
        ("xor(mob_pattern(?x), a = 1)", "unbound-variable", "?x", "only under NOT or XOR"),
        ("xor(NOT mob_pattern(?x), a = 1)", "unbound-variable", "?x", "only under NOT or XOR"),
        ("mob_pattern(?x) OR ?x > 5", "unbound-variable", "?x", "another part"),
        ("(mob_pattern(?x) OR a = 1) AND ?x > 5", "unbound-variable", "?x", "another part"),
        ("mob_pattern(?x) AND a = 1 OR ?x > 5", "unbound-variable", "?x", "another part"),
        ("at_least(1, mob_pattern(?x), ?x > 5)", "unbound-variable", "?x", "another part"),
        ("NOT (mob_pattern(?x) AND ?x > 5)", "unbound-variable", "?x", "occurs only under NOT"),
        ("mob_pattern(?x) AND seen(?x, ?y)", "type-mismatch", "?x", "has type integer earlier"),
        ("mob_pattern(?x) AND ?x = 'a'", "type-mismatch", "'a'", "?x is an integer"),
        ("mob_pattern(?x) AND ?x > s", "type-mismatch", None, "cannot be compared"),
        ("seen(?x, ?y) AND ?x + 1 > 2", "type-mismatch", "?x", "arithmetic needs a number"),
        ("mob_pattern(?x) AND ?x + 1 > 'a'", "type-mismatch", "'a'", "arithmetic needs a number"),
        ("mob_pattern(?x) AND ?x <=> 5", "type-mismatch", None, "never NULL"),
    ],
)
def test_what_has_none(text, code, where, said):
    with pytest.raises(TypeCheckError) as caught:
        typed(text)
    error = caught.value
    assert error.code == code
    assert said in error.message
    assert where is None or text[slice(*error.span)] == where
    assert str(error).count("^") >= 1


def test_types_of_variables_and_constants():
    condition = typed("distance_from('A', ?x) AND ?x < 1000")
    assert {variable.type for variable in variables(condition)} == {DOUBLE}
    assert condition.operands[1].right.type == DOUBLE
    assert typed("mob_pattern(?n)").arguments[0].type == INTEGER


def calls(text):
    return {call_of(leaf) for leaf in leaves(typed(text)) if isinstance(leaf, OperatorCall)}


def test_calls_that_differ_in_variables_only_are_one():
    assert calls("seen(?x1, ?y1)") == calls("seen(?x3, ?y4)")
    assert len(calls("distance_from('A', ?x) OR distance_from('B', ?x)")) == 2
    assert typed("seen(?x, ?x)") != typed("seen(?x, ?y)")
    assert len(calls_of(typed("seen(?x, ?x) AND seen(?x, 'b') AND loc_in('A')"))) == 2


def test_spark_sql_has_no_operators():
    with pytest.raises(TamisError, match=r"operators have no Spark SQL form: loc_in\('Bronx'\)"):
        print_for_spark(typed("a = 1 AND loc_in('Bronx')"))


def test_schemas_tell_operators_in_every_notation():
    again = Schema.of(SCHEMA.to_json())
    assert again == SCHEMA == Schema.of(SCHEMA.to_ddl())
    assert again.operator("LOC_IN").reads == (Read(("lat",)), Read(("lon",)))
    assert again.operator("mob_pattern").reads is None
    assert SCHEMA.with_operators(()) != SCHEMA
    assert SCHEMA.with_analysers({"s": "english"}).operators == SCHEMA.operators


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("loc in(string)", "is not the signature"),
        ("loc_in", "is not the signature"),
        ("in(string)", "a keyword"),
        ("matches(string)", "is a function"),
        ("f(colour)", 'unknown type "colour"'),
        ("f(array<string>)", "a parameter is a scalar"),
        ("é(string)", "cannot be the name"),
        (5, "is not the signature"),
    ],
)
def test_signatures_that_are_none(text, said):
    with pytest.raises(SchemaError, match=said.replace("(", r"\(")):
        parse_signature(text)


def test_operators_declared_twice_are_refused():
    with pytest.raises(SchemaError, match="declared twice"):
        Schema.of("f(STRING) OPERATOR, F(BIGINT) OPERATOR")
