"""The same events in every format, compressed or not: the same matches and the same rejects."""

from __future__ import annotations

import csv
import gzip
import io
import json
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.events.rejects import Rejects
from tamis.input.event_batches import split_events
from tamis.input.formats import detect_format
from tamis.input.rows import Wanted
from tests.cli.shell import run
from tests.effort import examples

fastavro = pytest.importorskip("fastavro")

SCHEMA = (
    "id STRING, n INT, d DOUBLE, s STRING, ok BOOLEAN, at TIMESTAMP, price NUMBER, "
    "geo.lat DOUBLE, tags ARRAY<STRING>, odd INT"
)
SUBSCRIPTIONS = {
    "n": "n > 3",
    "d": "d < 0.5 OR d IS NULL",
    "s": "s IN ('a', 'é') AND NOT ok",
    "at": "at >= TIMESTAMP '2024-01-02 00:00:00'",
    "price": "price = 0.1",
    "lat": "geo.lat > 10",
    "tag": "array_contains(tags, 'x')",
    "odd": "odd = 2",
    "always": "n = n OR n IS NULL",
}
ARROW_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("ok", pa.bool_()),
        ("at", pa.string()),
        ("price", pa.float64()),
        ("geo", pa.struct([("lat", pa.float64())])),
        ("tags", pa.list_(pa.string())),
        ("odd", pa.float64()),  # 1.5 is not of type integer
        ("unknown", pa.string()),
    ]
)
AVRO_SCHEMA = {
    "type": "record",
    "name": "event",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "d", "type": ["null", "double"]},
        {"name": "s", "type": ["null", "string"]},
        {"name": "ok", "type": ["null", "boolean"]},
        {"name": "at", "type": ["null", "string"]},
        {"name": "price", "type": ["null", "double"]},
        {
            "name": "geo",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "geo",
                    "fields": [{"name": "lat", "type": ["null", "double"]}],
                },
            ],
        },
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
        {"name": "odd", "type": ["null", "double"]},
        {"name": "unknown", "type": ["null", "string"]},
    ],
}
Event = dict[str, Any]


def draw_event(rng: Random, number: int) -> Event:
    def maybe(values: list[Any]) -> Any:
        return rng.choice([*values, None])

    return {
        "id": f"e{number}",
        "n": maybe([rng.randint(-5, 10), 2**62]),
        "d": maybe([0.25, 0.75, -1e300]),
        "s": maybe(["a", "é", "b,\"\n'"]),
        "ok": maybe([True, False]),
        "at": maybe(["2024-01-01 10:00:00", "2024-06-01T00:00:00", "soon"]),
        "price": maybe([0.1, 0.25]),
        "geo": maybe([{"lat": 11.5}, {"lat": None}]),
        "tags": maybe([["x"], [], ["y", "x"]]),
        "odd": maybe([2.0, 1.5]),
        "unknown": maybe(["u"]),
    }


# ── writing ─────────────────────────────────────────────────────────────────────────────────


def write_jsonl(events: list[Event]) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


def write_array(events: list[Event]) -> bytes:
    return json.dumps(events, indent=1).encode()


def write_csv(events: list[Event], delimiter: str = ",") -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter)
    names = [field.name if field.name != "geo" else "geo.lat" for field in ARROW_SCHEMA]
    writer.writerow(names)
    for event in events:
        flat = event | {"geo.lat": (event["geo"] or {}).get("lat")}
        writer.writerow([spell(flat[name]) for name in names])
    return file.getvalue().encode()


def spell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def write_tsv(events: list[Event]) -> bytes:
    return write_csv(events, "\t")


def write_parquet(events: list[Event]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(events, ARROW_SCHEMA), file, row_group_size=7)
    return file.getvalue()


def write_arrow(events: list[Event], new: Any = pa.ipc.new_file) -> bytes:
    file = io.BytesIO()
    with new(file, ARROW_SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(events, ARROW_SCHEMA), max_chunksize=7)
    return file.getvalue()


def write_arrow_stream(events: list[Event]) -> bytes:
    return write_arrow(events, pa.ipc.new_stream)


def write_avro(events: list[Event]) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, AVRO_SCHEMA, events)
    return file.getvalue()


WRITERS = {
    "e.jsonl": write_jsonl,
    "e.json": write_array,
    "e.csv": write_csv,
    "e.tsv": write_tsv,
    "e.parquet": write_parquet,
    "e.arrow": write_arrow,
    "e.arrows": write_arrow_stream,
    "e.avro": write_avro,
}
CODECS = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}
UNTYPED = ("e.csv", "e.tsv")
NAMES = [(name, codec) for name in WRITERS for codec in CODECS]


@pytest.fixture(scope="module")
def index():
    return tamis.build(SUBSCRIPTIONS, SCHEMA)


def draw_events(seed: int) -> list[Event]:
    rng = Random(seed)
    return [draw_event(rng, number) for number in range(rng.choice((1, 20, 60)))]


# ── the library ─────────────────────────────────────────────────────────────────────────────


def match_bytes(index: tamis.Index, name: str, codec: str, data: bytes) -> tuple[Any, Any]:
    """The matches by row, and each reject as its row, its attribute and its reason."""
    matches, rejects = [], []
    packed = CODECS[codec](data)
    for rows in split_events(packed, Wanted(n_rows=9), file_format=detect_format(name)):
        found = Rejects(first_row=len(matches), lists_all=True)
        batch = index.view.encoder.encode_read(rows.read(index.view.encoder.table, found))
        matches += [sorted(own) for own in index.match_lists(batch).to_pylist()]
        rejects += [(one.row, one.attribute, one.reason) for one in found.all_values()]
        assert len(found.all_values()) == len(found)
    return matches, rejects


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 2**32))
def test_matches_and_rejects(index, seed):
    events = draw_events(seed)
    expected = match_bytes(index, "e.jsonl", "", write_jsonl(events))
    assert len(expected[0]) == len(events)
    for name, codec in NAMES:
        matches, rejects = match_bytes(index, name, codec, WRITERS[name](events))
        assert matches == expected[0], name + codec
        if name in UNTYPED:  # of texts, other reasons are given
            assert [one[:2] for one in rejects] == [one[:2] for one in expected[1]], name + codec
        else:
            assert rejects == expected[1], name + codec


# ── the shell ───────────────────────────────────────────────────────────────────────────────

OPTIONS = [
    (),
    ("--event-id", "id"),
    ("--with-event", "id,geo.lat,unknown"),
    ("--with-event", "*", "--output", "pairs"),
    ("--counts", "event", "--event-id", "id"),
    ("--counts", "subscription"),
    ("--output", "tsv", "--only-matches"),
]


@pytest.fixture(scope="module")
def saved(index, tmp_path_factory):
    path = tmp_path_factory.mktemp("agree") / "index"
    index.save(path)
    return path


@pytest.mark.parametrize(("name", "codec"), NAMES, ids=lambda part: str(part) or "plain")
def test_the_shell(saved, tmp_path, name, codec):
    events = draw_events(5)
    plain, other = tmp_path / "plain.jsonl", tmp_path / (name + codec)
    plain.write_bytes(write_jsonl(events))
    other.write_bytes(CODECS[codec](WRITERS[name](events)))
    for options in OPTIONS:
        if name in UNTYPED and "--with-event" in options:
            continue  # of texts, those that no expression asks for stay texts
        expected, found = (
            run("match", saved, path, *options, "--rejects", tmp_path / f"{path.name}.rejects")
            for path in (plain, other)
        )
        assert (found.exit_code, found.stdout) == (0, expected.stdout), options
        if name not in UNTYPED:
            assert found.stderr == expected.stderr
    lists = [
        [
            (row["event"], row["attribute"], row["code"], name in UNTYPED or row["message"])
            for row in map(json.loads, (tmp_path / f"{own}.rejects").read_text().splitlines())
        ]
        for own in (plain.name, other.name)
    ]
    assert lists[0] == lists[1]
    assert lists[0]


@pytest.mark.parametrize(("name", "codec"), NAMES, ids=lambda part: str(part) or "plain")
def test_standard_input(saved, tmp_path, name, codec):
    events = draw_events(5)
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(write_jsonl(events))
    piped = CODECS[codec](WRITERS[name](events))
    found = run("match", saved, "-", "--format", detect_format(name), stdin=piped)
    assert (found.exit_code, found.stdout) == (0, run("match", saved, plain).stdout)
