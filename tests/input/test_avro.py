"""Avro files: types, columns that are not asked for, and files that cannot be read."""

from __future__ import annotations

import io
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.errors import InputError, MissingDependencyError
from tamis.input.event_batches import encode_batches, split_events
from tamis.input.rows import Wanted
from tamis.input.subscription_rows import read_subscriptions

fastavro = pytest.importorskip("fastavro")

COLOUR = {"type": "enum", "name": "Colour", "symbols": ["red", "blue"]}
FIELDS = {
    "colour": COLOUR,
    "other": "Colour",  # the same type by its name
    "small": ["null", "float"],
    "smalls": {"type": "array", "items": "float"},
    "inside": {
        "type": "record",
        "name": "Inside",
        "fields": [{"name": "x", "type": {"type": "map", "values": "float"}}],
    },
    "day": {"type": "int", "logicalType": "date"},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "mixed": ["null", "long", "string"],
    "key": ["null", {"type": "string", "logicalType": "uuid"}],
    "keys": {"type": "array", "items": ["long", {"type": "string", "logicalType": "uuid"}]},
}
KEY = "12345678-1234-5678-1234-567812345678"
EVENT = {
    "colour": "red",
    "other": "blue",
    "small": 0.1,
    "smalls": [0.1, 2.0],
    "inside": {"x": {"y": 0.1}},
    "day": date(2024, 2, 29),
    "at": datetime(2024, 2, 29, 12, tzinfo=UTC),
    "price": Decimal("9.99"),
    "mixed": "text",
    "key": KEY,
    "keys": [KEY, 5],
}


def write(events: list[Any], schema: Any = None, codec: str = "null") -> bytes:
    fields = [{"name": name, "type": kind} for name, kind in FIELDS.items()]
    file = io.BytesIO()
    whole = {"type": "record", "name": "E", "fields": fields}
    fastavro.writer(file, schema or whole, events, codec=codec)
    return file.getvalue()


def read(data: bytes, **wanted: Any) -> list[dict[str, Any]]:
    batches = split_events(data, Wanted(**wanted), file_format="avro")
    return [event for rows in batches for event in rows.to_mappings({})]


def test_values_have_their_types():
    (found,) = read(write([EVENT]))
    assert found["inside"]["x"]["y"] == found["small"] == found["smalls"][0] == np.float32(0.1)
    rest = {"small", "smalls", "inside"}
    assert {name: own for name, own in found.items() if name not in rest} == {
        name: own for name, own in EVENT.items() if name not in rest
    }


def test_expressions_find_them():
    index = tamis.build(
        {
            "colour": "colour = 'red' AND other = 'blue'",
            "small": "small = 0.1 AND inside.x.y = 0.1",
            "day": "day = DATE '2024-02-29' AND at > TIMESTAMP '2024-02-29 11:59:59'",
            "price": "price < 10",
            "mixed": "mixed LIKE 'te%'",
            "key": f"key = '{KEY}'",
        },
        "colour STRING, other STRING, small FLOAT, inside.x.y NUMBER, day DATE, at TIMESTAMP, "
        "price DECIMAL(9, 2), mixed STRING, key STRING",
    )
    events = [EVENT, EVENT | {"small": None, "mixed": 5}]
    found = [
        sorted(ids)
        for batch in encode_batches(index.view.encoder, write(events), file_format="avro")
        for ids in index.match_lists(batch).to_pylist()
    ]
    assert found == [
        ["colour", "day", "key", "mixed", "price", "small"],
        ["colour", "day", "key", "price"],
    ]


def test_other_fields_are_skipped():
    assert read(write([EVENT]), columns={"price", "nothing"}) == [{"price": Decimal("9.99")}]
    # The type is defined in a field that is not asked for: all fields are read.
    assert read(write([EVENT]), columns={"other"})[0]["other"] == "blue"


def test_rows_come_in_batches():
    batches = split_events(write([EVENT] * 10), Wanted(n_rows=4), file_format="avro")
    assert [list(rows.numbers) for rows in batches] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


def test_subscriptions(tmp_path):
    schema = {
        "type": "record",
        "name": "S",
        "fields": [{"name": name, "type": "string"} for name in ("id", "expression", "title")],
    }
    rows = [{"id": "a", "expression": "x > 1", "title": "A"}]
    path = tmp_path / "s.avro"
    path.write_bytes(write(rows, schema))
    (row,) = read_subscriptions(path)
    assert (row.subscription_id, row.text, row.details.attributes) == ("a", "x > 1", {"title": "A"})
    path.write_bytes(write([EVENT]))
    with pytest.raises(InputError, match='no column "subscription_id"'):
        list(read_subscriptions(path))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cannot be read as Avro: cannot read header"),
        (b"not Avro", "cannot be read as Avro"),
        (write([EVENT] * 3)[:-20], "cannot be read as Avro"),
        (write(["a"], "string"), "contains Avro values that are not records"),
    ],
    ids=["empty", "other", "cut", "texts"],
)
def test_what_cannot_be_read(data, message):
    with pytest.raises(InputError, match=message):
        read(data)


def test_text_that_is_not_utf8_is_a_value_that_is_refused():
    schema = {"type": "record", "name": "E", "fields": [{"name": "s", "type": "string"}]}
    data = write([{"s": "aXXb"}, {"s": "good"}], schema).replace(b"aXXb", b"a\xff\xffb")
    index = tamis.build({"good": "s = 'good'", "any": "s IS NOT NULL"}, "s STRING")
    (batch,) = encode_batches(index.view.encoder, data, file_format="avro")
    assert index.match_lists(batch).to_pylist() == [[], ["good", "any"]]
    assert len(batch.rejects) == 1


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_compressed_blocks(codec):
    assert read(write([EVENT], codec=codec), columns={"price"}) == [{"price": Decimal("9.99")}]


@pytest.mark.parametrize(
    ("codec", "package", "hint"),
    [
        ("snappy", "cramjam", "pip install 'tamis[avro]'"),
        ("zstandard", "backports.zstd", "pip install 'tamis[avro]'"),
        ("lz4", "lz4", "pip install lz4"),
    ],
)
def test_the_package_of_a_codec_may_be_missing(monkeypatch, codec, package, hint):
    def refuse(*_args: Any, **_options: Any) -> None:
        raise ValueError(f"{codec} codec is supported but you need to install {package}")

    monkeypatch.setattr(fastavro, "reader", refuse)
    with pytest.raises(MissingDependencyError, match=f"needs the package {package}") as raised:
        read(write([EVENT]))
    assert raised.value.hint == hint


def test_bytes_are_base64_in_the_json_of_events(tmp_path):
    fields = [{"name": "n", "type": "long"}, {"name": "raw", "type": "bytes"}]
    schema = {"type": "record", "name": "E", "fields": fields}
    (tmp_path / "e.avro").write_bytes(write([{"n": 1, "raw": b"\x00\xff"}], schema))
    index = tamis.build({"a": "n = 1"})
    found = index.match_batch(tmp_path / "e.avro", event_columns=["*"])
    assert found["attributes"].to_pylist() == ['{"n": 1, "raw": "AP8="}']


def test_the_package_may_be_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fastavro", None)
    (tmp_path / "e.avro").write_bytes(b"")
    with pytest.raises(MissingDependencyError, match="fastavro, which is not installed") as raised:
        tamis.build({"a": "x = 1"}).match_batch(tmp_path / "e.avro")
    assert raised.value.hint == "pip install 'tamis[avro]'"
