"""What `tamis.build` takes, and what it refuses."""

from __future__ import annotations

import io

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tests.input.files import NAMES, write_rows

ROWS = [
    {"id": "a", "expression": "age > 3"},
    {"id": "b", "expression": "age > "},
    {"id": "c", "expression": "age > 6"},
]
TABLE = pa.Table.from_pylist(ROWS)


def parquet_file() -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    return pq.ParquetFile(sink)


def expect_rows(index: tamis.Index) -> None:
    assert index.contents.ids.to_pylist() == ["a", "c"]
    assert index.match({"age": 5}) == ["a"]
    assert [(reject.subscription_id, reject.code) for reject in index.rejects] == [
        ("b", "unexpected-token")
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROWS,
        lambda: iter(ROWS),
        lambda: [{"subscription_id": r["id"], "expression": r["expression"]} for r in ROWS],
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        TABLE.to_reader,
        lambda: iter(TABLE.to_batches(max_chunksize=1)),
        parquet_file,
        lambda: parquet_file().iter_batches(batch_size=1),
        lambda: pd.DataFrame(ROWS),
        lambda: pd.DataFrame(ROWS).set_index("id"),
        lambda: pl.DataFrame(ROWS),
        lambda: [(row["id"], row["expression"]) for row in ROWS],
        lambda: [[row["id"], row["expression"]] for row in ROWS],
    ],
)
def test_rows_of_every_kind(make):
    expect_rows(tamis.build(make()))


@pytest.mark.parametrize("name", NAMES)
def test_files_of_every_format(tmp_path, name):
    path = write_rows(tmp_path / name, ROWS)
    expect_rows(tamis.build(path))
    expect_rows(tamis.build(str(path)))


def test_integer_ids_of_rows_become_text():
    rows = [{"id": 1, "expression": "age > 3"}, {"id": 2, "expression": "age > 6"}]
    for given in (rows, pd.DataFrame(rows), pa.Table.from_pylist(rows)):
        assert tamis.build(given).contents.ids.to_pylist() == ["1", "2"]


def test_rows_without_a_subscription_are_rejects_in_their_order(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "expression": "age > 3"}\n{\n{"id": null, "expression": "age"}\n')
    index = tamis.build(path)
    assert len(index) == 1
    assert [reject.code for reject in index.rejects] == ["bad-json", "bad-id"]
    assert index.rejects[0].message.startswith(f"{path}, line 2: not JSON")
    index = tamis.build([*ROWS, {"id": "d"}])
    assert [reject.code for reject in index.rejects] == ["unexpected-token", "missing-key"]
    assert index.rejects[1].message.startswith("row 4: ")


@pytest.mark.parametrize("given", ["age > 3", b"age > 3", 5, None, "", "x" * 10_000, "a\nb.csv"])
def test_what_is_not_taken_is_told_what_is(given):
    with pytest.raises(tamis.InputError, match="or the path of a file"):
        tamis.build(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("missing.csv", "cannot read missing.csv: No such file"),
        ([{"name": "x", "expression": "a"}], 'the first dict has no key "subscription_id"'),
        (pd.DataFrame({"id": ["a"], "text": ["b"]}), 'the frame has no column "expression"'),
        (pl.DataFrame({"x": [1]}).lazy(), "a LazyFrame has no rows yet"),
        (pd.DataFrame({"id": [1, "x"]}), "pandas DataFrame cannot be read .* column id"),
        (
            [("a", "age > 3"), {"id": "b", "expression": "c"}],
            "subscription 2 is not a pair: it is dict",
        ),
        (["ab"], "subscription 1 is not a pair: it is str, 'ab'"),
        ([*ROWS, ("d", "age")], "subscription 4 is tuple; the first is a dict"),
        ({1: "age > 3"}, "none of the 1 subscriptions has a valid id; the first is 1"),
        ([(None, "age > 3")], "not NoneType"),
    ],
)
def test_mistakes_name_the_place(given, message):
    with pytest.raises(tamis.InputError, match=message):
        tamis.build(given)


@pytest.mark.parametrize("name", ["s.jsonl.xz", "s.csv.bz2", "s.parquet.zip"])
def test_compressed_files_are_refused(tmp_path, name):
    for given in (name, str(tmp_path / name), tmp_path / name):
        with pytest.raises(tamis.InputError, match="is compressed: files that end in") as refused:
            tamis.build(given)
        assert "unpack it first" in str(refused.value)


def test_a_spark_frame_is_sent_to_spark():
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with pytest.raises(tamis.InputError, match=r"only tamis\.spark accepts"):
        tamis.build(frame)


@pytest.mark.parametrize(
    ("text", "ids", "codes"),
    [
        ('[{"id": "a", "expression": "x = 1"}]', ["a"], []),
        ("[]", [], []),
        ('[\n{"id": "a", "expression": "x = 1"},\n5\n]', ["a"], ["bad-row"]),
        ('[{"id": "a", "expression": "x = 1"},\n {"id": ]', ["a"], ["bad-json"]),
        ('[{"id": "a", "expression": "x = 1"}', ["a"], ["bad-json"]),
        ('[{"id": "a", "expression": "x = 1"}]\n{}', ["a"], ["bad-json"]),
        ('["a"]\n{"id": "a", "expression": "x = 1"}', ["a"], ["bad-row"]),
        ('[\n{"id": "a", "expression": "x = 1"}] {}', ["a"], ["bad-json"]),
    ],
)
def test_arrays_of_json(tmp_path, text, ids, codes):
    path = tmp_path / "x.json"
    path.write_text(text)
    index = tamis.build(path)
    assert index.contents.ids.to_pylist() == ids
    assert [reject.code for reject in index.rejects] == codes
