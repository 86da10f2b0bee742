"""Events of files, streams and iterators, a batch at a time."""

from __future__ import annotations

import io
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import InputError
from tamis.events.rejects import RejectKind
from tamis.input.event_batches import encode_batches
from tamis.language import parse
from tamis.language.check import check
from tamis.language.schema import Schema
from tests.events.engine import Engine, Matches
from tests.events.layouts import flat_texts, last_of_each
from tests.events.test_layouts import draw, read_flat

SCHEMA = Schema.of(
    "n INT, s STRING, geo.lat DOUBLE, at TIMESTAMP, `user-id` INT, tags ARRAY<STRING>"
)
TEXTS = (
    "n > 3",
    "s = 'a'",
    "geo.lat > 0.5",
    "at IS NULL",
    "`user-id` = 7",
    "array_contains(tags, 'x')",
)
ROWS = [{"n": row, "s": "ab"[row % 2], "geo": {"lat": row / 4}} for row in range(10)]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(SCHEMA, [check(parse(text), SCHEMA) for text in TEXTS])


def match_batches(engine: Engine, source, **options) -> tuple[Matches, list[int], Counter]:
    """All matches, the sizes of the batches, and the rejects of each attribute."""
    matches, sizes, refused = set(), [], Counter()
    for batch in encode_batches(engine.encoder, source, **options):
        matches |= {(sum(sizes) + row, at) for row, at in engine.match_arrays(batch.arrays)}
        sizes.append(batch.n_rows)
        refused += engine.count_rejects(batch.rejects)
    return matches, sizes, refused


TABLE = pa.Table.from_pylist(ROWS)
JSONL = b"\xef\xbb\xbf" + b"\n \n".join(
    b'{"n": %d, "s": "%s", "geo": {"lat": %f}}' % (row["n"], row["s"].encode(), row["geo"]["lat"])
    for row in ROWS
)
CSV = b"\xef\xbb\xbfn,s,other,geo.lat\r\n" + b"".join(
    b'%d,"%s",x,%f\r\n' % (row["n"], row["s"].encode(), row["geo"]["lat"]) for row in ROWS
)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROWS,
        lambda: iter(ROWS),
        lambda: iter(JSONL.removeprefix(b"\xef\xbb\xbf").replace(b"\n \n", b"\n").split(b"\n")),
        lambda: TABLE,
        TABLE.to_struct_array,
        lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=10)),
        lambda: JSONL,
        lambda: io.BytesIO(JSONL),
    ],
)
def test_batches(engine, make):
    matches, sizes, refused = match_batches(engine, make(), n_rows=4)
    assert matches == engine.expected(ROWS)
    assert sizes == [4, 4, 2]
    assert not refused


def write_arrow(path, make_writer):
    with make_writer(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("events.jsonl", lambda path: path.write_bytes(JSONL)),
        ("events.ndjson", lambda path: path.write_bytes(JSONL + b"\n\n")),
        ("events.csv", lambda path: path.write_bytes(CSV)),
        ("events.parquet", lambda path: pq.write_table(TABLE, path)),
        ("events.arrow", lambda path: write_arrow(path, pa.ipc.new_file)),
        ("events.arrows", lambda path: write_arrow(path, pa.ipc.new_stream)),
    ],
)
def test_files(engine, tmp_path, name, write):
    write(tmp_path / name)
    matches, sizes, refused = match_batches(engine, tmp_path / name, n_rows=4)
    assert matches == engine.expected(ROWS)
    assert sum(sizes) == len(ROWS)
    assert max(sizes) <= 4
    assert not refused
    assert match_batches(engine, str(tmp_path / name))[0] == matches
    with (tmp_path / name).open("rb") as stream:
        file_format = {"ndjson": "jsonl", "arrows": "arrow"}.get(name[7:], name[7:])
        assert match_batches(engine, stream, file_format=file_format)[0] == matches


def test_event_column_of_a_file(engine, tmp_path):
    texts = pa.array(['{"n": 5}', None, "{"])
    pq.write_table(pa.table({"id": [1, 2, 3], "event": texts}), tmp_path / "events.parquet")
    matches, _, refused = match_batches(engine, tmp_path / "events.parquet", column="event")
    assert matches == engine.expected([{"n": 5}, {}, {}])
    assert refused == {"None": 1}


def test_parquet_reads_only_what_is_asked_for(engine, tmp_path, monkeypatch):
    pq.write_table(TABLE.append_column("other", pa.nulls(10)), tmp_path / "events.parquet")
    seen = []
    original = pq.ParquetFile.iter_batches

    def iter_batches(self, *args, columns, **options):
        seen.append(columns)
        return original(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    assert match_batches(engine, tmp_path / "events.parquet")[0] == engine.expected(ROWS)
    assert seen == [["n", "s", "geo"]]


@given(seed=st.integers(0, 2**32))
def test_csv(seed):
    rng = Random(seed)
    drawn, events = draw(rng, wrong_types=False)
    flat = [last_of_each(flat_texts(rng, event, drawn.schema)) for event in events]
    # An empty field is a missing attribute; CSV has no zero bytes.
    flat = [{name: text.replace("\0", "0") for name, text in own.items() if text} for own in flat]
    names = list(dict.fromkeys(name for own in flat for name in own)) or ["nothing"]
    lines = [names, *([own.get(name, "") for name in names] for own in flat)]
    text = "".join(",".join(map(quote, line)) + "\r\n" for line in lines)
    rows, refused = read_flat(drawn, flat)
    found = match_batches(drawn, text.encode(), file_format="csv", n_rows=20)
    assert found[0] == drawn.expected(rows)
    assert found[2] == refused


def quote(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'


def test_bad_rows_of_csv(engine):
    text = b'n,s\n5,a\n5\n6,"b\n7,c"\n\n5,a,b\n8,\xff\n9,b\n'
    (batch,) = encode_batches(engine.encoder, text, file_format="csv")
    rows = [{"n": 5, "s": "a"}, {}, {"n": 6, "s": "b\n7,c"}, {}, {}, {"n": 9, "s": "b"}]
    assert engine.match_arrays(batch.arrays) == engine.expected(rows)
    assert batch.rejects.counts == {(None, RejectKind.BAD_ROW): 3}
    assert [(reject.row, reject.reason) for reject in batch.rejects] == [
        (1, "1 fields; the header has 2"),
        (3, "3 fields; the header has 2"),
        (4, "not UTF-8: byte 0xFF"),
    ]


def test_rows_are_counted_over_batches(engine):
    lines = b'{"n": 1}\n{"n": "x"}\n{"n": 2}\n{\n{"n": "y"}\n'
    shown = [
        str(reject)
        for batch in encode_batches(engine.encoder, lines, n_rows=2)
        for reject in batch.rejects
    ]
    assert [text.partition(":")[0] for text in shown] == [
        *("row 1, attribute n", "row 3", "row 4, attribute n"),
    ]
    with pytest.raises(InputError, match="row 3: not JSON"):
        list(encode_batches(engine.encoder, b"{}\n{}\n{}\n{\n", n_rows=2, strict=True))


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("missing.jsonl", {}, "cannot read missing.jsonl: No such file"),
        ("events.txt", {}, "cannot tell the format of events.txt"),
        (b"x", {"file_format": "xml"}, 'unknown format "xml"'),
        (b"", {"file_format": "csv"}, "is empty; a CSV file begins with a header line"),
        (b"a,a\n1,2\n", {"file_format": "csv"}, 'two columns "a"'),
        (b"not parquet", {"file_format": "parquet"}, "cannot be read as Parquet"),
        (b"not arrow", {"file_format": "arrow"}, "cannot be read as Arrow"),
        ({"n": 1}, {}, "no events can be read from dict"),
        (5, {}, "no events can be read from int"),
    ],
)
def test_what_cannot_be_read(engine, source, options, message):
    with pytest.raises(InputError, match=message):
        list(encode_batches(engine.encoder, source, **options))
