"""Files whose content is not what their names say: the error names what they seem to be."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.feather
import pytest

from tamis.errors import InputError
from tamis.input.event_batches import split_events
from tamis.input.rows import Wanted

JSONL_HINT = "ends in .jsonl, or in the shell write --format jsonl"


def read(path) -> list:
    return [event for rows in split_events(path, Wanted()) for event in rows.hold({})]


@pytest.mark.parametrize(
    ("name", "content", "message", "hint"),
    [
        ("e.csv", "n;s\n5;x\n5;x\n", "separated by semicolons, not by commas", "with commas"),
        ("e.csv", "n;s\n5,5;x\n", "separated by semicolons, not by commas", "with commas"),
        ("e.csv", "n|s\n5|x\n", "separated by vertical bars", "with commas"),
        ("e.csv", "n\ts\n5\tx\n", "separated by tabs, not by commas", "--format tsv"),
        ("e.tsv", "n,s\n5,x\n", "separated by commas, not by tabs", "--format csv"),
        ("e.csv", "sep=,\nn,s\n5,x\n", "begins with the line 'sep=,'", "delete that line"),
        ("e.csv", "\ufeffSEP=;\nn;s\n", "begins with the line 'SEP=;'", "delete that line"),
        ("e.csv", "PK\x03\x04", "is a ZIP archive", "unzip"),
        ("e.csv", '{"n": 5}\n', "seems to be JSON", JSONL_HINT),
        ("e.parquet", '{"n": 5}\n', "seems to be JSON, not parquet", JSONL_HINT),
        ("e.arrow", ' [{"n": 5}]', "seems to be JSON, not arrow", JSONL_HINT),
        ("e.avro", '{"n": 5}\n', "seems to be JSON, not avro", JSONL_HINT),
        ("e.parquet", "n,s\n5,x\n6,y\n", "is text, not parquet", "--format csv"),
        ("e.zip", "PK\x03\x04", "files that end in .zip are not read", "unzip"),
    ],
)
def test_the_error_names_what_it_seems_to_be(tmp_path, name, content, message, hint):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message) as raised:
        read(tmp_path / name)
    assert hint in raised.value.hint


def test_feather_called_parquet(tmp_path):
    path = tmp_path / "e.parquet"
    pyarrow.feather.write_feather(pa.table({"n": [5]}), str(path))
    with pytest.raises(InputError, match="is an Arrow file, not parquet") as raised:
        read(path)
    assert "ends in .arrow, or in the shell write --format arrow" in raised.value.hint


@pytest.mark.parametrize(
    ("content", "events"),
    [
        ("n\na;b\n", [{"n": "a;b"}]),
        ("n,s;t\n1,a;b\n", [{"n": "1", "s;t": "a;b"}]),
        ('"a;b"\nx;y\n', [{"a;b": "x;y"}]),
        ("sep\n1\n", [{"sep": "1"}]),
    ],
)
def test_other_separators_inside_fields(tmp_path, content, events):
    (tmp_path / "e.csv").write_text(content)
    assert read(tmp_path / "e.csv") == events
