"""A small file may hold large values: batches are bounded by bytes as well as rows."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.input import batches
from tamis.input.batches import MOST_BYTES, first_repeated
from tamis.input.columnar import cut, row_sizes
from tamis.input.event_batches import encode_batches, split_events
from tamis.input.formats import Format
from tamis.input.parquet import read_parquet
from tamis.input.rows import Columns, Wanted
from tamis.input.subscription_rows import read_subscriptions

LONG = "x" * 1_000_000
N_ROWS = 200
TEXTS = pa.DictionaryArray.from_arrays(pa.array([0] * N_ROWS, pa.int32()), pa.array([LONG]))
LISTS = pa.ListArray.from_arrays(pa.array(range(N_ROWS + 1), pa.int32()), TEXTS)


def as_parquet(array: pa.Array) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(pa.table({"s": array}), file, compression="zstd", store_schema=False)
    file.seek(0)
    return file


def read(array: pa.Array, n_rows: int = 8192) -> list[pa.RecordBatch]:
    return list(read_parquet(as_parquet(array), lambda names: None, n_rows))


@pytest.mark.parametrize(
    "array",
    [
        TEXTS,
        LISTS,
        pa.StructArray.from_arrays([TEXTS], ["t"]),
        pa.MapArray.from_arrays(range(N_ROWS + 1), pa.repeat("key", N_ROWS), TEXTS),
    ],
    ids=["texts", "lists", "structs", "maps"],
)
def test_texts_that_swell_stay_in_their_dictionary(array):
    found = read(array)
    assert len(as_parquet(array).getvalue()) < 1000
    assert sum(map(len, found)) == N_ROWS
    assert len(found) > 1
    for batch in found:
        assert row_sizes(batch).sum() <= MOST_BYTES
        assert batch.get_total_buffer_size() < 4 * len(LONG)  # what is in memory meanwhile
    assert found[-1].column(0)[-1].as_py() == array[-1].as_py()


def test_texts_that_are_short_are_read_as_they_are():
    (batch,) = read(pa.array([f"text {at}" for at in range(1000)]).dictionary_encode())
    assert batch.schema.types == [pa.string()]


def test_a_row_that_is_too_large_comes_alone():
    texts = pa.array(["a", "b" * (MOST_BYTES + 1), "c", "d"])
    assert [len(part) for part in cut(texts, 8192)] == [1, 1, 2]


def test_long_lists_are_read_in_fewer_rows():
    numbers = pa.array([[7] * 100_000] * 300)
    file = as_parquet(numbers)
    assert [len(batch) for batch in read_parquet(file, lambda names: None, 8192)] == [41] * 7 + [13]


@pytest.mark.parametrize(
    ("array", "sizes"),
    [
        (pa.array(["a", None, "éé"]), [1, 0, 4]),
        (pa.array(["a", None, "bb"], pa.large_string()), [1, 0, 2]),
        (pa.array(["a", None, "bb"], pa.string_view()), [1, 0, 2]),
        (pa.array([b"a", None, b"bb"]), [1, 0, 2]),
        (pa.array(["a", None, "bb"]).dictionary_encode(), [1, 0, 2]),
        (pa.array([1, None, 3]), [8, 8, 8]),
        (pa.array([True, None]), [1, 1]),
        (pa.nulls(2), [8, 8]),
        (pa.array([["a", "bb"], None, []]), [3, 0, 0]),
        (pa.array([["a", "b"], ["cc", "d"]], pa.list_(pa.string(), 2)), [2, 3]),
        (pa.array([[("k", "ab")], None], pa.map_(pa.string(), pa.string())), [3, 0]),
        (pa.array([{"x": "ab", "y": 1}, {"x": None, "y": 2}]), [10, 8]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "bb"]), [1, 1, 2]),
        (pa.chunked_array([["a"], ["bb"]]), [1, 2]),
        (pa.table({"x": ["a"], "y": ["bb"]}), [3]),
    ],
    ids=lambda given: str(getattr(given, "type", ""))[:20],
)
def test_sizes_of_rows(array, sizes):
    assert row_sizes(array).tolist() == sizes
    assert row_sizes(array.slice(1)).tolist() == sizes[1:]


def test_an_index_reads_them():
    index = tamis.build({"s": f"s = '{LONG[:60_000]}'", "any": "s IS NOT NULL"}, schema="s STRING")
    encoded = list(encode_batches(index.view.encoder, as_parquet(TEXTS), file_format="parquet"))
    assert len(encoded) > 1
    assert sum(np.sum(index.count_by_event(events)) for events in encoded) == N_ROWS


def test_the_shell_reads_them():
    found = list(split_events(as_parquet(TEXTS), Wanted(), file_format=Format.PARQUET))
    assert sum(map(len, found)) == N_ROWS
    assert all(
        sum(len(event["s"]) for event in rows.to_mappings({})) < MOST_BYTES + len(LONG)
        for rows in found
    )


def test_subscriptions_of_parquet_are_read_in_pieces():
    file = io.BytesIO()
    ids = pa.array([str(at) for at in range(N_ROWS)])
    pq.write_table(pa.table({"id": ids, "expression": TEXTS}), file, store_schema=False)
    file.seek(0)
    rows = list(read_subscriptions(file, Format.PARQUET, Columns()))
    assert [row.subscription_id for row in rows] == ids.to_pylist()
    assert {len(row.text) for row in rows} == {len(LONG)}


@pytest.mark.parametrize("file_format", [Format.JSONL, Format.CSV])
@pytest.mark.parametrize("is_pipe", [False, True])
def test_lines_are_read_in_pieces(monkeypatch, file_format, is_pipe):
    """The same for texts: here of a thousand bytes, against a bound of ten thousand."""
    for module in ("tamis.input.batches", "tamis.input.arrivals"):
        monkeypatch.setattr(f"{module}.MOST_BYTES", 10_000)
    text = "x" * 1000
    lines = [f'{{"s": "{text}"}}'] * 50 if file_format is Format.JSONL else ["s", *[text] * 50]
    data = "\n".join(lines).encode()
    index = tamis.build({"any": "s IS NOT NULL"}, schema="s STRING")
    encoded = list(encode_batches(index.view.encoder, data, file_format=file_format))
    assert [events.n_rows for events in encoded] == [10] * 5
    source = io.BytesIO(data)
    if is_pipe:
        monkeypatch.setattr("tamis.input.sources._is_file", lambda source: False)
    found = list(split_events(source, Wanted(as_they_come=True), file_format=file_format))
    assert sum(map(len, found)) == 50
    assert max(map(len, found)) <= 10
    assert batches.MOST_BYTES == 10_000


# ── wide headers ────────────────────────────────────────────────────────────────────────────


def test_a_wide_header_is_read_once():
    """A pass over all names for each name would take hours here."""
    names = [f"c{at}" for at in range(1_000_000)]
    assert first_repeated(names) is None
    assert first_repeated([*names, "c999999", "c5"]) == "c5"


def test_a_wide_csv_file_is_read():
    names = [f"c{at}" for at in range(40_000)]
    data = (",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n").encode()
    index = tamis.build({"s": "c39999 = 1"}, schema="c39999 INT")
    (encoded,) = encode_batches(index.view.encoder, data, file_format="csv")
    assert index.match_lists(encoded).to_pylist() == [["s"]]
    (rows,) = split_events(io.BytesIO(data), Wanted(), file_format="csv")
    assert len(rows.to_mappings({})[0]) == 40_000
