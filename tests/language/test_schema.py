"""Schemas from every notation, and back."""

from __future__ import annotations

import json
import re
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import SchemaError, TypeCheckError
from tamis.language import Schema, check, parse
from tamis.language.bulk import parse_many
from tamis.language.names import parse_path, print_path
from tamis.language.types import (
    ANY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    array_type,
    decimal_type,
    parse_type,
    struct_type,
)
from tests.generators import random_schema
from tests.generators.schemas import ODD_NAMES, PLAIN_NAMES

LEVEL_AND_NAME = Schema({("level",): INTEGER, ("name",): STRING})


@pytest.mark.parametrize(
    "source",
    [
        LEVEL_AND_NAME,
        {"level": "integer", "name": "string"},
        {"level": INTEGER, "name": STRING},
        "level BIGINT, name STRING",
        "level: bigint, name: string,",
        " `level`\tint ,\n`name` VARCHAR( 20 ) ",
        '{"level": "integer", "name": "string"}',
        pa.schema([("level", pa.int32()), ("name", pa.string())]),
        {
            "type": "struct",
            "fields": [{"name": "level", "type": "long"}, {"name": "name", "type": "string"}],
        },
    ],
    ids=["itself", "names", "types", "DDL", "colons", "quoted", "JSON", "Arrow", "Spark JSON"],
)
def test_every_notation(source):
    assert Schema.of(source) == LEVEL_AND_NAME


def test_names_are_not_paths():
    with pytest.raises(SchemaError, match="'x' is not the path of an attribute") as error:
        Schema({"x": INTEGER})
    assert error.value.hint == "to declare attributes by name: Schema.of({'name': 'type'})"


def test_spark_struct_type():
    from pyspark.sql import types as t

    struct = t.StructType(
        [
            t.StructField("geo", t.StructType([t.StructField("lat", t.DoubleType())])),
            t.StructField("tags", t.ArrayType(t.StringType())),
            t.StructField("price", t.DecimalType(10, 2)),
            t.StructField("at", t.TimestampNTZType()),
            t.StructField("code", t.CharType(3)),
            t.StructField("small", t.ByteType()),
            t.StructField("extra", t.MapType(t.StringType(), t.StringType())),
            t.StructField("points", t.ArrayType(t.StructType([]))),
            t.StructField("raw", t.BinaryType()),
        ]
    )
    schema = Schema.of(struct)
    assert schema == Schema.of(
        "geo.lat DOUBLE, tags ARRAY<STRING>, price DECIMAL(10,2), at TIMESTAMP, code STRING, "
        "small INT"
    )
    assert schema == Schema.of(json.loads(struct.json()))
    assert schema.unsupported(("extra",)) == "map"
    assert schema.unsupported(("raw",)) == "binary"
    assert schema.unsupported(("points",)).startswith("array<")
    assert schema.unsupported(("tags",)) is None


@pytest.mark.parametrize(
    ("arrow_type", "type_"),
    [
        (pa.bool_(), BOOLEAN),
        (pa.int8(), INTEGER),
        (pa.int64(), INTEGER),
        (pa.uint32(), INTEGER),
        (pa.uint64(), None),
        (pa.float16(), None),
        (pa.float32(), FLOAT),
        (pa.float64(), DOUBLE),
        (pa.string(), STRING),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.dictionary(pa.int32(), pa.string()), STRING),
        (pa.date32(), DATE),
        (pa.date64(), DATE),
        (pa.timestamp("us", "UTC"), TIMESTAMP),
        (pa.timestamp("ms"), TIMESTAMP),
        (pa.decimal128(10, 2), decimal_type(10, 2)),
        (pa.decimal128(5, -2), None),
        (pa.decimal256(50, 2), None),
        (pa.list_(pa.string()), array_type(STRING)),
        (pa.large_list(pa.int64()), array_type(INTEGER)),
        (pa.list_(pa.float64(), 3), array_type(DOUBLE)),
        (pa.list_(pa.list_(pa.string())), None),
        (pa.list_(pa.struct([("a", pa.int64())])), array_type(struct_type({"a": INTEGER}))),
        (pa.list_(pa.struct([("a", pa.binary())])), None),
        (pa.map_(pa.string(), pa.string()), None),
        (pa.binary(), None),
        (pa.duration("s"), None),
        (pa.null(), None),
    ],
    ids=str,
)
def test_arrow_type(arrow_type, type_):
    schema = Schema.of(pa.schema([("x", arrow_type)]))
    assert schema.get(("x",)) == type_
    assert schema.unsupported(("x",)) == (None if type_ else str(arrow_type))


def test_struct_columns_declare_paths():
    nested = pa.struct([("lat", pa.float64()), ("by", pa.struct([("id", pa.int64())]))])
    schema = Schema.of(pa.schema([("geo", nested), ("a.b", pa.int64())]))
    assert schema == Schema.of("geo.lat DOUBLE, geo.by.id BIGINT, `a.b` BIGINT")
    assert schema == Schema.of({"geo": {"lat": "double", "by": {"id": "long"}}, "`a.b`": "long"})


def test_a_column_of_foreign_type_is_named_in_the_error():
    schema = Schema.of(pa.schema([("raw", pa.binary()), ("level", pa.int64())]))
    with pytest.raises(TypeCheckError, match="raw has the type binary, which expressions cannot"):
        check(parse("raw = 'x'"), schema)


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        *((name, INTEGER) for name in ("tinyint", "SMALLINT", "int", "Integer", "long", "byte")),
        ("bool", BOOLEAN),
        ("real", FLOAT),
        ("decimal", decimal_type(10, 0)),
        ("DEC(5)", decimal_type(5, 0)),
        ("numeric( 38 , 18 )", decimal_type(38, 18)),
        ("char(3)", STRING),
        ("timestamp_ltz", TIMESTAMP),
        ("array<decimal(5,2)>", array_type(decimal_type(5, 2))),
        (" Array < date > ", array_type(DATE)),
        ("any", ANY),
    ],
)
def test_type_name(name, type_):
    assert parse_type(name) == type_
    assert parse_type(str(type_)) == type_


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("level STRNG", 'unknown type "STRNG"'),
        ("level", "does not declare an attribute"),
        ("user-id BIGINT", "does not declare an attribute"),
        ("a BIGINT, , b BIGINT", "does not declare an attribute"),
        ("a BIGINT, a STRING", "attribute a is declared twice"),
        ("a BIGINT, a.b STRING", "a.b lies inside a"),
        ("a.b.c BIGINT, a STRING", "a.b.c lies inside a"),
        ("x DECIMAL(39,0)", "is not a type; allowed: 1 to 38 digits"),
        ("x DECIMAL(5,6)", "is not a type"),
        ("x DECIMAL(0,0)", "is not a type"),
        ("x ARRAY<ARRAY<INT>>", "allowed: arrays of scalars"),
        ("x ARRAY<any>", "allowed: arrays of scalars"),
        ("x MAP<STRING,STRING>", "unknown type"),
        ({"a": 5}, "5 is not the name of a type"),
        ({"a": None}, "None is not the name of a type"),
        ({"": "string"}, "needs a name"),
        ('{"a": ', "not JSON"),
        (5, "cannot read a schema from int"),
        (None, "cannot read a schema from NoneType"),
    ],
)
def test_refused(source, message):
    with pytest.raises(SchemaError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Schema.of(source)


@given(st.integers(0, 2**32))
def test_ddl_and_json_read_back(seed):
    schema = random_schema(Random(seed))
    assert Schema.of(schema.to_ddl()) == schema
    assert Schema.of(json.loads(json.dumps(schema.to_json()))) == schema
    assert list(Schema.of(schema.to_ddl())) == list(schema)
    assert eval(repr(schema)) == schema


@pytest.mark.parametrize("name", [*PLAIN_NAMES, *ODD_NAMES])
def test_name_reads_back(name):
    assert parse_path(print_path((name,))) == (name,)
    assert parse_path(print_path((name, name, "x"))) == (name, name, "x")
    assert parse(f"{print_path((name,))} IS NULL").operand.path == (name,)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b", ("a", "b")),
        ("`a.b`", ("a.b",)),
        ("`a``b`.c", ("a`b", "c")),
        ("user-id", ("user-id",)),
        ("a..b", ("a..b",)),
        ("a.", ("a.",)),
        ("`a", ("`a",)),
        ("é", ("é",)),
    ],
)
def test_path_of_a_name(text, path):
    assert parse_path(text) == path


def test_unquoted_letters_of_other_alphabets_in_ddl():
    assert list(Schema.of("é.ß BIGINT, a.1st BIGINT")) == [("é", "ß"), ("a", "1st")]


def test_a_schema_is_a_mapping():
    schema = Schema.of("level BIGINT, geo.lat DOUBLE")
    assert schema["level"] == INTEGER
    assert schema["geo.lat"] == schema[("geo", "lat")] == DOUBLE
    assert schema.get(("geo",)) is None
    assert (len(schema), list(schema)) == (2, [("level",), ("geo", "lat")])
    assert ("geo", "lat") in schema
    assert ("geo.lat",) not in schema
    assert schema == Schema.of("geo.lat DOUBLE, level INT")
    assert hash(schema) == hash(Schema.of("geo.lat DOUBLE, level INT"))
    assert schema != Schema.of("level BIGINT")
    assert schema != "level BIGINT, geo.lat DOUBLE"
    with pytest.raises(KeyError):
        schema["zzz"]


def test_what_sparks_own_ddl_adds_is_passed_over():
    schema = Schema.of("a BIGINT NOT NULL COMMENT 'the first', b STRING NOT NULL, c DOUBLE")
    assert schema.to_json() == {"a": "integer", "b": "string", "c": "double"}


def test_two_columns_of_one_name_are_refused():
    twice = pa.schema([("a", pa.int64()), ("a", pa.string())])
    with pytest.raises(SchemaError, match="two columns are named a"):
        Schema.of(twice)


def test_malformed_spark_json_is_refused():
    with pytest.raises(SchemaError, match="not the JSON of a Spark schema"):
        Schema.of({"type": "struct", "fields": [{"name": "a"}]})


@pytest.mark.parametrize("analysers", ["english", None, {"s": None}, {3: "english"}, {"s": ["a"]}])
def test_analysers_that_are_no_names_are_refused(analysers):
    with pytest.raises(SchemaError, match=re.escape(f"the analysers are {analysers!r}")) as refused:
        Schema.of("s STRING").with_analysers(analysers)
    assert "{'body': 'english'}" in str(refused.value)


@pytest.mark.parametrize(
    ("expressions", "rejected", "message"),
    [
        (["p = 1", "p > 2", "p.q = 2"], "p.q = 2", "p.q lies inside p, which is a number"),
        (["p.q = 1", "p.q > 2", "p = 2"], "p = 2", "p contains p.q, so it is not a value"),
    ],
)
def test_a_value_and_a_part_of_it_are_told_apart_without_a_schema(expressions, rejected, message):
    rows = parse_many((text, text) for text in expressions)
    errors = {row.subscription_id: row.error for row in rows if row.error is not None}
    assert list(errors) == [rejected]
    assert errors[rejected].code == "unknown-attribute"
    assert errors[rejected].message == message
