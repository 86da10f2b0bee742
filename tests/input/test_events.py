"""What `match_batch` and its like take, and what they refuse."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from ipaddress import ip_address

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.operators.registry import Registry, operator
from tests.input.files import NAMES, write_rows

EVENTS = [{"age": 5, "name": "x"}, {"age": 1, "name": "y"}, {"age": 7, "name": "z"}]
TABLE = pa.Table.from_pylist(EVENTS)
LINES = "".join(json.dumps(event) + "\n" for event in EVENTS)


@pytest.fixture(scope="module")
def index() -> tamis.Index:
    return tamis.build({"a": "age > 3", "b": "age > 6", "c": "TRUE"})


@pytest.fixture(scope="module")
def asking() -> tamis.Index:
    """An index that needs the events themselves."""
    registry = Registry()
    operator("is_named(string)", registry=registry)(lambda event, name: event["name"] == name)
    return tamis.build({"z": "age > 3 AND is_named('z')"}, operators=registry)


def expect_events(index: tamis.Index, make) -> None:
    rows = [(0, "a"), (0, "c"), (1, "c"), (2, "a"), (2, "b"), (2, "c")]
    found = index.match_batch(make()).to_pylist()
    assert sorted((row["event_row"], row["subscription_id"]) for row in found) == rows
    lists = index.match_lists(make()).to_pylist()
    assert [sorted(ids) for ids in lists] == [["a", "c"], ["c"], ["a", "b", "c"]]
    assert index.count_by_event(make()).tolist() == [2, 1, 3]
    counts = index.count_by_subscription(make()).tolist()
    assert dict(zip(index.contents.ids.to_pylist(), counts, strict=True)) == {
        "a": 2,
        "b": 1,
        "c": 3,
    }
    assert index.encode(make()).n_rows == 3
    assert index.match_lists(index.encode(make())).to_pylist() == lists


KINDS = [
    lambda: EVENTS,
    lambda: iter(EVENTS),
    lambda: TABLE,
    TABLE.to_reader,
    lambda: TABLE.to_batches(max_chunksize=2),
    lambda: iter(TABLE.to_batches(max_chunksize=1)),
    lambda: pd.DataFrame(EVENTS),
    lambda: pl.DataFrame(EVENTS),
    LINES.splitlines,
    lambda: LINES,
    LINES.encode,
    lambda: json.dumps(EVENTS),
    lambda: json.dumps(EVENTS, indent=1).encode(),
    lambda: io.BytesIO(LINES.encode()),
]


@pytest.mark.parametrize("make", KINDS)
def test_events_of_every_kind(index, asking, make):
    expect_events(index, make)
    assert asking.match_lists(make()).to_pylist() == [[], [], ["z"]]
    assert asking.match_lists(asking.encode(make())).to_pylist() == [[], [], ["z"]]


@pytest.mark.parametrize("name", NAMES)
def test_files_of_every_format(index, asking, tmp_path, name):
    path = write_rows(tmp_path / name, EVENTS)
    expect_events(index, lambda: path)
    expect_events(index, lambda: str(path))
    assert asking.match_lists(path).to_pylist() == [[], [], ["z"]]
    assert asking.match_lists(asking.encode(path)).to_pylist() == [[], [], ["z"]]


def test_batches_of_a_parquet_file(index, tmp_path):
    path = write_rows(tmp_path / "x.parquet", EVENTS)
    expect_events(index, lambda: pq.ParquetFile(path))
    expect_events(index, lambda: pq.ParquetFile(path).iter_batches(batch_size=2))


def test_event_rows_go_on_from_part_to_part(index, tmp_path):
    path = write_rows(tmp_path / "x.jsonl", EVENTS * 5_000)
    found = index.match_batch(path, subset=["b"])
    assert found["event_row"].to_pylist() == list(range(2, 15_000, 3))
    assert len(index.match_lists(path)) == 15_000


def test_one_object_over_several_lines(index):
    assert len(index.match_lists('{"age": 5,\n "name": "x"}')) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("events", "'events' is neither the path of a file nor JSON"),
        ("missing.jsonl", "cannot read missing.jsonl: No such file"),
        ({"age": 5}, "a dict is one event, not a list of events"),
        (5, "no events can be read from int"),
        (None, "no events can be read from NoneType"),
        (pd.DataFrame({"age": [1, "x"]}), "pandas DataFrame cannot be read"),
    ],
)
def test_what_is_not_taken(index, given, message):
    for ask in (index.match_batch, index.match_lists, index.count_by_event, index.encode):
        with pytest.raises(tamis.InputError, match=message):
            ask(given)


def test_what_cannot_be_read_of_a_file_is_reported_once(index, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"age": "old"}\n{\n{"age": 5}\n')
    with pytest.warns(tamis.TamisWarning, match="2 values and rows were not read") as notes:
        found = index.match_batch(path)
    assert len(notes) == 1
    assert notes[0].filename == __file__
    assert set(found["event_row"].to_pylist()) == {0, 2}
    assert len(index.encode(path).rejects) == 2


def test_a_bad_row_of_csv_matches_nothing(index, asking, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("age,name\n5,x\n5\n7,z\n")
    with pytest.warns(tamis.TamisWarning, match="1 fields; the header has 2"):
        assert [sorted(ids) for ids in index.match_lists(path).to_pylist()] == [
            ["a", "c"],
            [],
            ["a", "b", "c"],
        ]
    encoded = asking.encode(path)
    assert [reject.reason for reject in encoded.rejects] == ["1 fields; the header has 2"]
    assert asking.match_lists(encoded).to_pylist() == [[], [], ["z"]]


@pytest.mark.parametrize("make", [str, lambda path: path], ids=["text", "path"])
def test_compressed_events_are_refused(index, tmp_path, make):
    for name in ("e.jsonl.xz", "missing.csv.zip"):
        with pytest.raises(tamis.InputError, match="is compressed: files that end in"):
            index.match_batch(make(tmp_path / name))


def test_compressed_events_are_recognised_by_their_beginning(index, tmp_path):
    packed = gzip.compress(b'{"age": 5}')
    (tmp_path / "e.jsonl").write_bytes(packed)
    with pytest.raises(tamis.InputError, match="is compressed with gzip, not jsonl"):
        index.match_batch(tmp_path / "e.jsonl")
    # What has no name is read as it begins.
    found = index.match_batch(io.BytesIO(packed))
    assert found.equals(index.match_batch([{"age": 5}]))
    with pytest.raises(tamis.InputError, match="is compressed with xz, not jsonl"):
        index.match_batch(io.BytesIO(lzma.compress(b"{}")))


def test_one_event_as_json_text(index):
    assert sorted(index.match('{"age": 5}')) == ["a", "c"]
    assert sorted(index.match(b'{"age": 7}')) == ["a", "b", "c"]
    assert index.explain("a", '{"age": 5}').matches
    assert sorted(index.match_bindings('{"age": 5}')) == ["a", "c"]
    for wrong in ("{", "[1]", b"\xff", "5"):
        with pytest.raises(tamis.InputError):
            index.match(wrong)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"age": [5]}), pl.DataFrame({"age": [5]}), pa.table({"age": [5]})]
)
def test_a_frame_is_not_one_event(index, frame):
    for ask in (index.match, index.match_bindings, lambda event: index.explain("a", event)):
        with pytest.raises(tamis.InputError, match="match several events with match_batch"):
            ask(frame)


def test_a_row_of_a_pandas_frame_is_one_event(index):
    assert sorted(index.match(pd.DataFrame({"age": [5]}).iloc[0])) == ["a", "c"]


def test_booleans_of_csv_are_in_any_case(tmp_path):
    index = tamis.build({"yes": "flag = TRUE", "no": "flag = FALSE"}, "flag BOOLEAN")
    path = tmp_path / "x.csv"
    path.write_text("flag\ntrue\nTrue\nTRUE\nfalse\nFalse\nFALSE\n")
    assert index.match_lists(path).to_pylist() == [["yes"]] * 3 + [["no"]] * 3
    path.write_text("flag\nyes\n1\nTrue \ntrue\n")
    with pytest.warns(tamis.TamisWarning, match="'yes' is not of type boolean; write true or f"):
        assert index.match_lists(path).to_pylist() == [[], [], [], ["yes"]]


MIXED = pd.DataFrame({"age": [5, 7], "junk": [1, "a"]})


def test_a_mixed_column_that_nobody_asks_for(index):
    assert list(map(sorted, index.match_lists(MIXED).to_pylist())) == [["a", "c"], ["a", "b", "c"]]
    assert index.match_batch(MIXED, event_id="age", event_columns=["age"]).num_rows == 5
    assert index.count_by_event(index.encode(MIXED)).tolist() == [2, 3]


@pytest.mark.parametrize(
    "asked", [{"event_id": "junk"}, {"event_columns": ["junk"]}, {"event_columns": ["*"]}]
)
def test_a_mixed_column_that_a_result_asks_for(index, asked):
    with pytest.raises(tamis.InputError, match='the column "junk" of the pandas DataFrame cannot'):
        index.match_batch(MIXED, **asked)


def test_a_mixed_column_that_an_expression_or_an_operator_asks_for(asking):
    message = 'the column "{}" of the pandas DataFrame cannot be read: '
    with pytest.raises(tamis.InputError, match=message.format("junk")):
        tamis.build({"x": "junk.inner = 1"}).match_lists(MIXED)
    with pytest.raises(tamis.InputError, match=message.format("name")):
        asking.match_lists(pd.DataFrame({"age": [5, 7], "name": [1, "a"]}))
    with pytest.raises(tamis.InputError, match=message.format("junk")):
        asking.encode(MIXED, column="junk")


@pytest.mark.parametrize("extra", [{}, {"junk": [1, "a", 2, 3]}])
def test_addresses_in_a_column_of_objects(extra):
    index = tamis.build({"net": "in_network(ip, '10.0.0.0/8')"})
    values = [ip_address("10.0.0.1"), "10.0.0.2", None, ip_address("2001:db8::1")]
    frame = pd.DataFrame({"ip": values, **extra})
    assert index.match_lists(frame).to_pylist() == [["net"], ["net"], [], []]
    assert frame["ip"][0] == ip_address("10.0.0.1")


def test_two_columns_of_one_name(index):
    frame = pd.DataFrame([[1, 2]], columns=["age", "age"])
    with pytest.raises(tamis.InputError) as raised:
        index.match_lists(frame)
    assert raised.value.message == 'the pandas DataFrame has two columns "age"'
    assert raised.value.hint == "rename or remove one of them"


@pytest.mark.parametrize("make", [pd.Series, pl.Series])
def test_a_series_of_events(index, make):
    expect_events(index, lambda: make(EVENTS))
    expect_events(index, lambda: make(list(map(json.dumps, EVENTS))))
    with pytest.warns(tamis.TamisWarning, match="not int"):
        assert index.match_lists(make([1])).to_pylist() == [[]]
