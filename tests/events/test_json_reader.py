"""The JSON reader that skips returns what parsing every row returns, for valid and broken rows."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import InputError, RowError
from tamis.events.attributes import AttributeTable
from tamis.events.entries import Collector, EventValues
from tamis.events.json_events import read_json
from tamis.events.json_source import JsonSpans
from tamis.events.json_texts import parse_exactly, parse_quickly
from tamis.events.kernels.json_scan import MOST_DEPTH, MOST_KEYS
from tamis.events.mappings import _collect
from tamis.events.read import read_events
from tamis.events.rejects import Rejects
from tamis.events.repeated_keys import find_repeated_key
from tamis.language.types import parse_type
from tests.bounds_checked import run_bounds_checked
from tests.effort import SEED, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

# Plain Python is a hundred times as slow.
N_BATCHES = 1 if numba.config.DISABLE_JIT else 60
BATCH = 80  # fewer rows than are searched for repeated keys
TYPES = {
    "s": "string",
    "é✓": "string",
    "b": "boolean",
    "i": "integer",
    "f": "float",
    "d": "double",
    "m": "decimal(20,4)",
    "n": "number",
    "day": "date",
    "t": "timestamp",
    "ip": "ip",
    "tags": "array<string>",
    "sizes": "array<number>",
    "here": "any",
    "": "string",
}
NESTED = {("o", name): kind for name, kind in TYPES.items() if name} | {
    ("o", "deep", "x"): "integer",
    ("o", "deep", "er", "s"): "string",
    ("s", "inside"): "string",
    ("a name of more than sixteen bytes",): "double",
    ("a name of more than sixteen bytes!",): "string",
}


def make_table(types: dict[tuple[str, ...], str]) -> AttributeTable:
    return AttributeTable({path: parse_type(name) for path, name in types.items()})


TABLES = {
    "all": make_table({(name,): kind for name, kind in TYPES.items()} | NESTED),
    "texts": make_table({("s",): "string", ("o", "s"): "string", ("d",): "double"}),
    "one": make_table({("o", "deep", "er", "s"): "string"}),
    "none": make_table({}),
}


# ── the reader that parses every row ────────────────────────────────────────────────────────


def read_plainly(texts: Sequence[Any], table: AttributeTable, rejects: Rejects) -> EventValues:
    parse = parse_exactly if table.needs_digits else parse_quickly
    rows, found = [], []
    for row, text in enumerate(texts):
        try:
            event = parse(text)
        except RowError as error:
            shown = text.decode(errors="replace") if isinstance(text, bytes) else text
            rejects.add_row(row, shown, error)
            continue
        rows.append(row)
        found.append(event)
        if (key := find_repeated_key(text)) is not None:
            rejects.oddities.add_repeated(row, key)
    collector = Collector(table, rejects)
    _collect(found, np.array(rows, dtype=np.int32), table.tree, collector)
    return collector.finish(len(texts))


def listed(values: EventValues) -> Counter[Any]:
    """Everything that was read, in no order."""
    found: Counter[Any] = Counter()
    for carrier, entries in values.entries.items():
        own = [None] * len(entries.rows) if entries.values is None else entries.values.tolist()
        for row, attribute, value in zip(entries.rows, entries.attributes, own, strict=True):
            found[carrier, int(row), int(attribute), repr(value)] += 1
    for row, attribute, has_null, size in zip(*values.marks, strict=True):
        found["marks", int(row), int(attribute), bool(has_null), int(size)] += 1
    return found


def reported(rejects: Rejects) -> dict[str, Any]:
    """Everything that was rejected, and how it is reported."""
    return {
        "counts": dict(rejects.counts),
        "examples": rejects.examples,
        "rows": {row: (error.code, error.message) for row, error in rejects.row_errors.items()},
        "all": rejects.all_values(),
        "repeated": (rejects.oddities.n_repeated, rejects.oddities.repeated),
    }


def check(texts: Sequence[Any], table: AttributeTable) -> None:
    plain, ours = Rejects(lists_all=True), Rejects(lists_all=True)
    expected = read_plainly(texts, table, plain)
    found = read_json(texts, table, ours)
    assert found.n_rows == expected.n_rows
    if listed(found) != listed(expected) or reported(ours) != reported(plain):
        for text in texts:
            check_one(text, table)
        assert listed(found) == listed(expected)
        assert reported(ours) == reported(plain)


def check_one(text: Any, table: AttributeTable) -> None:
    plain, ours = Rejects(lists_all=True), Rejects(lists_all=True)
    expected, found = read_plainly([text], table, plain), read_json([text], table, ours)
    assert listed(found) == listed(expected), text
    assert reported(ours) == reported(plain), text


# ── events that are written in many ways, and broken ────────────────────────────────────────

TEXTS = [
    *("", "x", "Zürich", "日本語 と 中文", "😀 a 😀", "a\nb\t", 'q"q', "\\", "\x7f", "\u2028", "/"),
    *("2024-02-29", "2024-02-30", "2024-05-06T07:08:09.123Z", "1.2.3.4", "::1", "1.2.3", "true"),
    *("a text of some length, longer than any word of eight bytes", "0", "1.5", "\x00", "\ud800"),
]
NUMBERS = [
    *("0", "-0", "-0.0", "1", "-1", "42", "1.5", "1.50", "-2.25", "0.1", "1e3", "1E-2", "1.5e+10"),
    *("9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808"),
    *(
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "0.30000000000000004",
    ),
    *("16777217", "16777217.0000001", "1.00000005960464477539", "123456789012345678.9", "1e22"),
    *("1e23", "1e99", "1e308", "1e400", "-1e400", "1e-400", "5.0", "12345678901234.56789", "1e018"),
    *("99999999999999999999999999999999999999", "1" * 41, "1" * 400, "1" * 5000, "0." + "3" * 60),
    *("1e99999999999999999999", "1e-99999999999999999999", "1e0000000000000000000000001"),
    *("01", "+1", ".5", "5.", "1e", "--1", "1.e5", "NaN", "Infinity", "-Infinity", "-", "0x10"),
]
LITERALS = ["true", "false", "null", "True", "nul", "nulls", "tru"]
NAMES = [*TYPES, "o", "deep", "er", "x", "inside", "unknown", "k1", "k2", "\\", "A" * 20]
BYTES = b'"\\{}[]:,0123456789.eE+-tfnu \t\n\r\x00\x1f\x80\xc3\xa9\xed\xa0\xf0\xff/bd8'


class Writer:
    """Writes random JSON."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def blank(self) -> str:
        return "" if self.rng.random() < 0.9 else self.rng.choice([" ", "  ", "\t", "\r\n", "\n"])

    def text(self, text: str) -> str:
        if self.rng.random() < 0.8:
            return json.dumps(text, ensure_ascii=self.rng.random() < 0.2)
        units = text.encode("utf-16-be", errors="surrogatepass")
        pairs = zip(units[::2], units[1::2], strict=True)
        return '"' + "".join(f"\\u{high:02x}{low:02X}" for high, low in pairs) + '"'

    def scalar(self) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return self.text(self.rng.choice(TEXTS))
        if kind < 0.9:
            usual = NUMBERS[:30] if self.rng.random() < 0.9 else NUMBERS
            return self.rng.choice(usual)
        return self.rng.choice(LITERALS[:3] if self.rng.random() < 0.9 else LITERALS)

    def value(self, depth: int) -> str:
        kind = self.rng.random()
        if depth and kind < 0.2:
            return self.object(depth - 1)
        if depth and kind < 0.35:
            items = [self.value(depth - 1) for _ in range(self.rng.randrange(4))]
            return "[" + ",".join(self.blank() + item + self.blank() for item in items) + "]"
        return self.scalar()

    def object(self, depth: int, n_members: int = 4) -> str:
        names = self.rng.sample(NAMES, self.rng.randrange(n_members + 1))
        if names and self.rng.random() < 0.03:
            names.append(self.rng.choice(names))
        members = [
            f"{self.blank()}{self.text(name)}{self.blank()}:{self.blank()}{self.value(depth)}"
            for name in names
        ]
        return "{" + f"{self.blank()},".join(members) + self.blank() + "}"

    def row(self) -> bytes:
        text = self.blank() + self.object(4, 12) + self.blank()
        data = text.encode(errors="surrogatepass")
        n_changes = self.rng.choice([0, 0, 0, 1, 1, 2, 5])
        for _ in range(n_changes):
            data = self.change(data)
        return data

    def change(self, data: bytes) -> bytes:
        """The same with bytes inserted, removed, replaced or repeated."""
        at, other = self.rng.randrange(len(data) + 1), self.rng.randrange(len(data) + 1)
        byte = bytes([self.rng.choice(BYTES)])
        match self.rng.randrange(5):
            case 0:
                return data[:at] + byte + data[at:]
            case 1:
                return data[:at] + data[at + 1 :]
            case 2:
                return data[:at] + byte + data[at + 1 :]
            case 3:
                return data[:at] + data[min(at, other) : max(at, other)][:20] + data[at:]
            case _:
                return data[:at]


def check_changed_rows(name: str, seed: int, n_batches: int) -> None:
    """Compare both readers on batches of random rows, most of them changed in a few bytes."""
    writer = Writer(random.Random(seed))
    for _ in range(n_batches):
        check([writer.row() for _ in range(BATCH)], TABLES[name])


@pytest.mark.parametrize("name", TABLES)
def test_reads_as_if_each_row_was_parsed(name):
    """`test_many_json_rows` and `test_more_json_rows` have millions of further rows."""
    check_changed_rows(name, SEED, examples(N_BATCHES))


def test_texts_of_python_are_read_alike():
    writer = Writer(random.Random(SEED + 1))
    for _ in range(examples(5)):
        rows = [writer.row().decode(errors="surrogateescape") for _ in range(BATCH)]
        check(
            [row if at % 2 else row.encode(errors="replace") for at, row in enumerate(rows)],
            TABLES["all"],
        )


def test_single_tokens():
    """Each odd text and number as the value of each attribute."""
    values = [json.dumps(text) for text in TEXTS] + NUMBERS + LITERALS
    values += [f"[{value}]" for value in values] + ["[]", "{}", "[null]", "[[]]", '{"s":1}', ""]
    rows = [
        f"{{{json.dumps(name)}: {value}}}".encode(errors="surrogatepass")
        for name in TYPES
        for value in values
    ]
    for begin in range(0, len(rows), BATCH):
        check(rows[begin : begin + BATCH], TABLES["all"])


EDGES = [
    *(
        b"",
        b" ",
        b"{",
        b"}",
        b"{}",
        b" {} ",
        b"{}{}",
        b"{} x",
        b"[]",
        b"[{}]",
        b"1",
        b'"s"',
        b"null",
    ),
    *(b'{"s"}', b'{"s":}', b'{"s":"x",}', b"{,}", b'{"s":"x" "i":1}', b'{"s":"x"]', b'{"o":[}}'),
    *(b"\xef\xbb\xbf{}", b"\xff\xfe{\x00}\x00", b"\x00", b'{"s":"\xc3"}', b'{"s":"\xed\xa0\x80"}'),
    *(b'{"s":"\xf4\x90\x80\x80"}', b'{"s":"\xc0\x80"}', b'{"s":"\xe0\x80\x80"}', b'{"s":"\xf0'),
    *(
        b'{"s":"\\ud83d\\ude00"}',
        b'{"s":"\\ud83d"}',
        b'{"s":"\\ude00"}',
        b'{"s":"\\u00e',
        b'{"s":"\\',
    ),
    *(b'{"s":"\\ud83d\\u0041"}', b'{"\\u0073":"x"}', b'{"s":"x","\\u0073":"y"}', b'{"s":"\\x"}'),
    *(
        b'{"s":"x","s":"y"}',
        b'{"s":"x","s":null}',
        b'{"o":{"s":"x"},"o":{"i":1}}',
        b'{"k":1,"k":2}',
    ),
    *(b'{"u":{"k":1,"k":2},"s":"x"}', b'{"u":[{"k":1},{"k":1}],"s":"x"}', b'{"s":{"s":{"s":1}}}'),
    *(b'{"u":[{"k":1,"v":{"k":2}},{"k":1}]}', b'{"u":[{"a":1,"b":{"a":2,"a":3}}]}'),
    *(b'{"s":"' + b"x" * n + b'"}' for n in range(20)),
    *(b'{"s":"' + b"x" * n + b"\xc3\xa9" + b'"}' for n in range(20)),
    b"[" * 100_000,
    b'{"u":' + b"[" * (MOST_DEPTH - 2) + b"]" * (MOST_DEPTH - 2) + b',"s":"x"}',
    b'{"u":' + b"[" * MOST_DEPTH + b"]" * MOST_DEPTH + b',"s":"x"}',
    b'{"u":' + b'{"u":' * 2000 + b"1" + b"}" * 2000 + b',"s":"x"}',
    b'{"s":"x"' + b"".join(b',"k%d":1' % at for at in range(MOST_KEYS)) + b"}",
    b'{"s":"x"' + b"".join(b',"k%d":1' % at for at in range(MOST_KEYS)) + b',"k7":1}',
    b'{"u":[' + b",".join(b'{"k%d":{"k":1}}' % at for at in range(3 * MOST_KEYS)) + b'],"s":"x"}',
]


@pytest.mark.parametrize("name", TABLES)
def test_edges(name):
    check(EDGES, TABLES[name])
    for text in EDGES:
        check_one(text, TABLES[name])


def test_all_layouts_of_texts_are_read_alike():
    writer = Writer(random.Random(SEED + 2))
    rows = [writer.row() for _ in range(BATCH)]
    table = TABLES["all"]
    expected = Rejects(lists_all=True)
    values = listed(read_plainly(rows, table, expected))
    column = pa.array([None, *rows, None], pa.binary())[1:-1]
    chunks = pa.chunked_array([column[:7], column[7:7], column[7:]])
    buffer = np.frombuffer(b"\n".join(rows), dtype=np.uint8)
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    spans = JsonSpans(buffer, ends - [len(row) for row in rows], ends)
    for source in (column, column.cast(pa.large_binary()), chunks, spans, tuple(rows)):
        rejects = Rejects(lists_all=True)
        assert listed(read_events(source, table, rejects)) == values
        assert reported(rejects) == reported(expected)


def test_null_is_an_event_without_attributes():
    column = pa.array(['{"s":"x"}', None, '{"s":"y"}'])
    rejects = Rejects()
    found = read_events(column, TABLES["texts"], rejects)
    assert found.n_rows == 3
    assert found.entries["texts"].rows.tolist() == [0, 2]
    assert not len(rejects)


@pytest.mark.parametrize(
    "rows",
    [
        [b'{"i":1}', b'{"i":"x","b":1}', b'{"i":"y"}'],
        [b'{"i":1}', b'{"\\u0069":"x"}', b'{"i":"y"}'],
        [b'{"i":1}', b'{"i":"y"}', b'{"\\u0069":"x"}', b"no"],
    ],
)
def test_strict_raises_the_same_error(rows):
    table = TABLES["all"]
    with pytest.raises(InputError) as expected:
        read_plainly(rows, table, Rejects(strict=True))
    with pytest.raises(InputError) as found:
        read_json(rows, table, Rejects(strict=True))
    assert str(found.value) == str(expected.value)


def test_all_rows_are_searched_for_repeated_keys():
    """However many rows have nested objects before the one with a repeated key."""
    rows = [b'{"o":{"s":"x"}}'] * 500 + [b'{"o":{"s":"x","s":"y"}}']
    rejects = Rejects()
    read_json(rows, TABLES["texts"], rejects)
    assert rejects.oddities.repeated == (500, "s")


@pytest.mark.slow
def test_kernels_stay_within_their_arrays(tmp_path):
    """All of the above again with every index checked: a wrong one is memory overwritten."""
    run_bounds_checked(__file__, tmp_path)
