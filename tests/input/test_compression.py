"""Compressed sources: recognised by their names, or by how they begin where they have none."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pytest

from tamis.errors import InputError
from tamis.input.event_rows import read_events
from tamis.input.subscription_rows import read_subscriptions

LINES = b'{"a": 1}\n{"a": 2}\n'
GZIPPED = gzip.compress(LINES, mtime=0)  # names of tests contain it: not the time of day
EVENTS = [{"a": 1}, {"a": 2}]


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


def events_of(source) -> list:
    return [row.event for row in read_events(source)]


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
def test_every_kind_of_source(tmp_path, ending, pack):
    path = tmp_path / f"e.jsonl{ending.upper()}"
    path.write_bytes(pack(LINES))
    assert events_of(path) == events_of(str(path)) == events_of(pack(LINES)) == EVENTS
    with path.open("rb") as stream:
        assert events_of(stream) == EVENTS
        assert not stream.closed
    assert events_of(io.BytesIO(pack(LINES))) == EVENTS
    subscriptions = tmp_path / f"s.csv{ending}"
    subscriptions.write_bytes(pack(b"id,expression\na,x > 1\n"))
    assert [row.subscription_id for row in read_subscriptions(subscriptions)] == ["a"]


def test_several_pieces_of_gzip_are_one_file():
    assert events_of(GZIPPED + GZIPPED) == EVENTS * 2


def test_an_empty_file_holds_nothing(tmp_path):
    (tmp_path / "e.jsonl.gz").touch()
    assert events_of(tmp_path / "e.jsonl.gz") == []
    (tmp_path / "e.jsonl.zst").write_bytes(zstd(b""))
    assert events_of(tmp_path / "e.jsonl.zst") == []


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("e.jsonl.gz", LINES, "e.jsonl.gz is not compressed with gzip, as its ending .gz says"),
        (
            "e.jsonl.zst",
            GZIPPED,
            "is not compressed with Zstandard, .*: it is compressed with gzip\n.*e.jsonl.gz",
        ),
        ("e.jsonl.gz", GZIPPED[:-9], "which is compressed with gzip: Truncated"),
        ("e.jsonl.zst", zstd(LINES)[:-3], "which is compressed with Zstandard: Truncated"),
        ("e.jsonl.gz", b"\x1f\x8b and more", "which is compressed with gzip: zlib inflate failed"),
        ("e.txt.gz", GZIPPED, "cannot tell the format of .*e.txt.gz"),
        ("e.parquet.gz", GZIPPED, "e.parquet.gz seems to be JSON, not parquet"),
    ],
)
def test_what_cannot_be_read(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        events_of(tmp_path / name)
