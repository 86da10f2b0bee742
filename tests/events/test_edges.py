"""The ends of what an event can be: empty, huge, missing, odd."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import MappingProxyType

import pyarrow as pa
import pytest

import tamis
from tamis.errors import InputError
from tamis.events import arrow_arrays as array_module
from tamis.language import parse
from tamis.language.check import check
from tamis.language.schema import Schema
from tests.events.engine import Engine

SCHEMA = Schema.of(
    "n INT, x DOUBLE, f FLOAT, s STRING, d DECIMAL(38,18), at TIMESTAMP, tags ARRAY<STRING>, "
    "geo.lat DOUBLE, geo.city STRING, `a.b` INT, m INT, t STRING, e DECIMAL(10,2)"
)


def make_engine(*texts: str, schema: Schema = SCHEMA) -> Engine:
    return Engine(schema, [check(parse(text), schema) for text in texts])


EVERYTHING = (
    *("n = 1", "n > 5", "n IS NULL", "x >= 0.5", "f = 0.1F", "s = 'a'", "s LIKE '%b%'", "s > 'm'"),
    *("d = 0.000000000000000001", "d < 12345678901234567890.5", "at >= TIMESTAMP '2024-01-01'"),
    *("array_contains(tags, 'a')", "NOT array_contains(tags, 'a')", "tags IS NOT NULL"),
    *("geo.lat > 1", "geo.city = 'Oslo'", "`a.b` = 1", "n < m", "s = t", "x > n", "e > x", "d > n"),
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return make_engine(*EVERYTHING)


def check_rows(engine: Engine, source, rows, **options) -> None:
    assert engine.match(source, **options) == engine.expected(rows)


# ── nothing ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "source",
    [
        [],
        (),
        iter([]),
        pa.table({}),
        pa.table({"n": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
        pa.table(
            {
                "s": pa.chunked_array([], pa.string()),
                "tags": pa.chunked_array([], pa.list_(pa.string())),
            }
        ),
        pa.record_batch({"d": pa.array([], pa.decimal128(10, 2))}),
        pa.array([], pa.struct({"n": pa.int64()})),
        pa.array([], pa.map_(pa.string(), pa.string())),
        pa.array([], pa.string()),
        pa.chunked_array([], pa.string()),
        pa.chunked_array([], pa.map_(pa.string(), pa.string())),
    ],
    ids=lambda source: type(source).__name__,
)
def test_no_events(engine, source):
    encoded = engine.encoder.encode(source)
    assert encoded.n_rows == 0
    assert encoded.arrays.row_starts.tolist() == [0]
    assert encoded.arrays.mark_starts.tolist() == [0]
    assert engine.match_arrays(encoded.arrays) == set()


@pytest.mark.parametrize(
    "source",
    [
        [{}, {"n": None, "s": None, "tags": None, "geo": None}, {"geo": {}}],
        pa.table({"unknown": [1, 2, 3]}),
        pa.table(
            {
                "n": pa.nulls(3),
                "s": pa.nulls(3, pa.string()),
                "geo": pa.nulls(3, pa.struct({"lat": pa.float64()})),
            }
        ),
        pa.nulls(3, pa.struct({"n": pa.int64()})),
        pa.nulls(3, pa.map_(pa.string(), pa.string())),
        pa.nulls(3, pa.string()),
        pa.nulls(3),
        pa.array([[("n", None)], [], None], pa.map_(pa.string(), pa.string())),
        ["{}", b"{}", '{"n": null}'],
    ],
    ids=range(9),
)
def test_events_of_nothing(engine, source):
    encoded = engine.encoder.encode(source)
    assert len(encoded.arrays.codes) == 0
    assert len(encoded.rejects) == 0
    assert engine.match_arrays(encoded.arrays) == engine.expected([{}] * 3)


def test_index_without_conditions():
    engine = Engine(Schema({}), [])
    for source in ([{"a": 1}], pa.table({"a": [1]}), ['{"a": 1}']):
        assert engine.match(source) == set()
    assert len(engine.encoder.encode_event({"a": 1}).codes) == 0


# ── much ────────────────────────────────────────────────────────────────────────────────────


def test_event_with_ten_thousand_attributes(engine):
    event = {f"unknown{i}": i for i in range(10_000)} | {"n": 1, "s": "ab"}
    check_rows(engine, [event], [event])
    assert engine.match_arrays(engine.encoder.encode_event(event)) == engine.expected([event])
    check_rows(engine, pa.Table.from_pylist([event]), [event])


def test_index_of_ten_thousand_attributes():
    schema = Schema.of({f"a{i}": "integer" for i in range(10_000)})
    engine = make_engine(*(f"a{i} = {i % 7}" for i in range(0, 10_000, 100)), schema=schema)
    event = {f"a{i}": i % 5 for i in range(10_000)}
    check_rows(engine, [event, {}], [event, {}])
    assert engine.match_arrays(engine.encoder.encode_event(event)) == engine.expected([event])


def test_long_strings():
    long = "x" * 60_000
    schema = Schema.of("s STRING")
    texts = (f"s = '{long}'", f"s = '{long}y'", f"s > '{long}'", "endswith(s, 'xx')", "s < 'b'")
    engine = make_engine(*texts, schema=schema)
    longer = "x" * 1_000_000
    values = [long, long + "y", long + "a", long[:-1], "", longer, longer + "y", "a" + longer]
    rows = [{"s": value} for value in values]
    check_rows(engine, rows, rows)
    check_rows(engine, pa.Table.from_pylist(rows), rows)
    maps = pa.array([[("s", value)] for value in values], pa.map_(pa.string(), pa.string()))
    check_rows(engine, maps, rows)
    for row in rows:
        assert engine.match_arrays(engine.encoder.encode_event(row)) == engine.expected([row])


def test_constants_that_begin_alike():
    schema = Schema.of("s STRING")
    texts = [
        "https://example.com/" + end for end in ("", "a", "a/b", "b", "zebra", "é", "\U0001f600")
    ]
    engine = make_engine(
        *(f"s = '{text}'" for text in texts), *(f"s < '{text}'" for text in texts), schema=schema
    )
    values = [*texts, *(text + "x" for text in texts), *(text[:-1] for text in texts)]
    values += [
        "",
        "h",
        "https://example.com",
        "https://example.org/a",
        "http",
        "z",
        "\uffff",
        "A\x00",
    ]
    rows = [{"s": value} for value in values]
    check_rows(engine, rows, rows)
    check_rows(engine, pa.Table.from_pylist(rows), rows)


def test_huge_and_tiny_numbers(engine):
    numbers = [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**200, 10**400, 1e308]
    numbers += [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        5e-324,
        0.1,
        1.5,
        Decimal("1e400"),
        Decimal("0.1"),
    ]
    rows = [{"n": v, "x": v, "f": v, "d": v, "m": 5, "e": v} for v in numbers]
    check_rows(engine, rows, rows)
    for row in rows:
        assert engine.match_arrays(engine.encoder.encode_event(row)) == engine.expected([row])


def test_decimal_constants_finer_than_their_column():
    schema = Schema.of("e DECIMAL(10,2), d DECIMAL(38,18)")
    constants = ("1.005", "1.00", "1.01", "-1.005", "-1.00", "-1.01", "0", "0.001", "99999999.99")
    texts = [f"e {operator} {c}" for c in constants for operator in ("=", "<", "<=", ">", "<>")]
    engine = make_engine(*texts, "e IN (1.005, 1.01)", "e < d", "e = d", schema=schema)
    values = [
        None,
        *map(Decimal, ("1.00", "1.01", "-1.00", "-1.01", "0.00", "99999999.99", "-99999999.99")),
    ]
    rows = [{"e": a, "d": b} for a in values for b in values]
    check_rows(engine, rows, rows)
    arrow_schema = pa.schema({"e": pa.decimal128(10, 2), "d": pa.decimal128(38, 18)})
    check_rows(engine, pa.Table.from_pylist(rows, arrow_schema), rows)


@pytest.mark.parametrize("precision", [1, 5, 18, 19, 37])
def test_decimals_at_the_ends_of_their_type(precision):
    """The largest that fits and the next one, which does not, above zero and below."""
    limit = 10**precision
    engine = make_engine("d < 0", "d > 0", "d <> 7", schema=Schema.of(f"d DECIMAL({precision})"))
    rows = [{"d": Decimal(n)} for n in (limit - 1, limit, limit + 1, 1 - limit, -limit, -limit - 1)]
    check_rows(engine, rows, rows)
    wide = pa.array([row["d"] for row in rows], pa.decimal128(38, 0))
    check_rows(engine, pa.table({"d": wide}), rows)
    (rejected,) = engine.expected_rejects(rows).values()
    assert rejected == 4


# ── odd ─────────────────────────────────────────────────────────────────────────────────────


def test_columns_nobody_asks_for_are_not_touched(engine, monkeypatch):
    touched = []

    def plain_array(array):
        touched.append(array.type)
        return array_module.plain_array(array)

    monkeypatch.setattr("tamis.events.arrow.plain_array", plain_array)
    other = pa.array([0], pa.duration("s"))
    geo = pa.StructArray.from_arrays([other, pa.array(["Oslo"])], ["unknown", "city"])
    names = ["unknown", "unknown", "geo", "n"]
    table = pa.Table.from_arrays([other, other, geo, pa.array([1])], names=names)
    check_rows(engine, table, [{"n": 1, "geo": {"city": "Oslo"}}])
    assert touched == [geo.type, pa.string(), pa.int64()]


def test_two_columns_of_one_name(engine):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    with pytest.raises(InputError, match='two columns "n"'):
        engine.encoder.encode(table)


def test_names_with_dots(engine):
    rows = [{"a.b": 1, "geo": {"lat": 2.0, "city": "Oslo"}}]
    check_rows(engine, rows, rows)
    check_rows(engine, pa.Table.from_pylist(rows), rows)
    flat = pa.table({"a.b": [1], "geo.lat": [2.0], "geo.city": ["Oslo"]})
    check_rows(engine, flat, [{"a.b": 1}])
    keys = pa.array(
        [[("`a.b`", "1"), ("geo.lat", "2"), ("geo.city", "Oslo")]],
        pa.map_(pa.string(), pa.string()),
    )
    check_rows(engine, keys, rows)


def test_map_columns_inside_a_table(engine):
    maps = [
        [("city", "Oslo"), ("other", "x")],
        None,
        [("city", None)],
        [("city", "Rome"), ("city", "Oslo")],
    ]
    table = pa.table({"geo": pa.array(maps, pa.map_(pa.string(), pa.string()))})
    rows = [{"geo": {"city": "Oslo"}}, {}, {}, {"geo": {"city": "Oslo"}}]
    check_rows(engine, table, rows)
    # There texts are texts: only a map that is the whole event spells other types.
    numbers = pa.table({"geo": pa.array([[("lat", "2")]], pa.map_(pa.string(), pa.string()))})
    assert len(engine.encoder.encode(numbers).rejects) == 1


@pytest.mark.parametrize(
    ("item_type", "values"),
    [
        (pa.int64(), [1, 6, None]),
        (pa.float32(), [1.0, 0.5, math.nan]),
        (pa.decimal128(20, 2), [Decimal("1.00"), None]),
        (pa.bool_(), [True]),
        (pa.list_(pa.string()), [["a"], [], [None]]),
        (pa.string(), None),
    ],
)
def test_maps_of_other_values(engine, item_type, values):
    names = ("n", "x", "f", "d", "tags", "s", "m")
    pairs = [[(name, value) for name in names] for value in values or ["a"]]
    array = pa.array(pairs, pa.map_(pa.string(), item_type))
    rows = [dict(own) for own in pairs]
    if item_type == pa.string():
        rows = [{"s": "a"}]
    check_rows(engine, array, rows)


def test_last_of_equal_keys_counts(engine):
    pairs = [
        [("n", "1"), ("n", "6")],
        [("n", "6"), ("n", None)],
        [("n", "1"), ("`n`", "6"), ("n", "x")],
    ]
    array = pa.array(pairs, pa.map_(pa.string(), pa.string()))
    encoded = engine.encoder.encode(array)
    assert engine.match_arrays(encoded.arrays) == engine.expected([{"n": 6}, {}, {}])
    assert len(encoded.rejects) == 1


def test_map_keys_must_be_strings(engine):
    with pytest.raises(InputError, match=r"keys .* are not strings"):
        engine.encoder.encode(pa.array([[(1, "x")]], pa.map_(pa.int64(), pa.string())))


@pytest.mark.parametrize(
    "array_type",
    [
        pa.list_(pa.string(), 2),
        pa.large_list(pa.string()),
        pa.list_(pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=str,
)
def test_lists(engine, array_type):
    lists = [["a", None], None, ["b", "c"], ["a", "b"], [None, None]]
    array = pa.array(lists, array_type)
    rows = [{"tags": own} for own in lists]
    check_rows(engine, pa.table({"tags": array}), rows)
    check_rows(engine, pa.table({"tags": array.slice(1, 3)}), rows[1:4])


def test_wrapped_columns(engine):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([1, 6]))
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", None]))
    rows = [{"n": 1, "s": "a"}, {"n": 1}, {"n": 6}]
    check_rows(engine, pa.table({"n": runs, "s": words}), rows)


def test_other_mappings_and_other_tables(engine):
    pd = pytest.importorskip("pandas")
    row = {"n": 6, "geo": MappingProxyType({"city": "Oslo"})}
    check_rows(engine, [MappingProxyType(row)], [row])
    assert engine.match_arrays(
        engine.encoder.encode_event(MappingProxyType(row))
    ) == engine.expected([row])
    frame = pd.DataFrame({"n": [1, 6], "s": ["a", None]})
    check_rows(engine, frame, [{"n": 1, "s": "a"}, {"n": 6}])
    fine = pd.Timestamp("2024-01-15 00:00:00.000000001")
    assert len(engine.encoder.encode([{"at": fine}, {"at": fine.floor("us")}]).rejects) == 1


@pytest.mark.parametrize("source", [{"n": 1}, "text", b"{}", 5, None, pa.array([1, 2])], ids=str)
def test_what_holds_no_events(engine, source):
    with pytest.raises(InputError, match="no event"):
        engine.encoder.encode(source)


def test_unknown_event_column(engine):
    table = pa.table({"event": ["{}"]})
    with pytest.raises(InputError, match='no column "evnt"') as raised:
        engine.encoder.encode(table, column="evnt")
    assert raised.value.hint == 'did you mean "event"?'


@pytest.mark.parametrize(
    ("text", "ordinals"),
    [
        ('{"d": 0.100000000000000001}', {0}),
        ('{"d": 0.1}', set()),
        ('{"w": 123456789012345678901}', {1}),
        ('{"w": 1.23456789012345678901e20}', {1}),
        ('{"w": 1e20}', set()),
        ('{"w": 9007199254740993e1}', {2}),
        ('{"w": 90071992547409940}', set()),
    ],
)
def test_exact_digits_of_json(text, ordinals):
    schema = Schema.of("d DECIMAL(38,18), w DECIMAL(38,0)")
    constants = ("d = 0.100000000000000001", "w = 123456789012345678901.0", "w = 90071992547409930")
    engine = make_engine(*constants, schema=schema)
    assert engine.match([text, text.encode()]) == {(row, at) for row in (0, 1) for at in ordinals}


def test_attributes_of_which_only_presence_is_asked():
    schema = Schema.of("a ANY, b.c ANY")
    engine = make_engine("a IS NULL", "a IS NOT NULL", "b.c IS NOT NULL", schema=schema)
    rows = [{"a": own, "b": {"c": own}} for own in (None, 0, "", [], {}, object(), math.nan)]
    check_rows(engine, rows, rows)
    for row in rows:
        assert engine.match_arrays(engine.encoder.encode_event(row)) == engine.expected([row])
    for array in (
        pa.array([b"", None]),
        pa.array([{"x": None}, None]),
        pa.array([[], None]),
        pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([1, None]).dictionary_encode(),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([5, None])]),
        pa.nulls(2),
    ):
        rows = [{"a": own, "b": {"c": own}} for own in array.to_pylist()]
        structs = pa.StructArray.from_arrays([array], ["c"])
        check_rows(engine, pa.table({"a": array, "b": structs}), rows)
    maps = pa.array([[("a", "")], [("b.c", "x")]], pa.map_(pa.string(), pa.string()))
    check_rows(engine, maps, [{"a": ""}, {"b": {"c": "x"}}])


def test_threads_share_an_encoder(engine):
    rows = [{"n": i % 9, "s": "ab"[i % 2], "x": i / 7, "tags": ["a"] * (i % 3)} for i in range(500)]
    expected = engine.expected(rows)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(engine.match, [rows] * 8))
    assert all(matches == expected for matches in found)


@pytest.mark.parametrize(
    "number", ["1.5", "1234567890.12345678901234567890"], ids=["short", "long"]
)
@pytest.mark.parametrize("schema", ["a BIGINT", "a BIGINT, m DECIMAL(38, 20)"])
@pytest.mark.parametrize("encode", [str, str.encode])
@pytest.mark.filterwarnings("ignore:1 event has a key twice")
def test_of_equal_keys_in_json_the_last_counts(number, schema, encode):
    """Also where a long number has the text read by another parser."""
    texts = {"first": "a = 1", "last": "a = 2", "in": "n.a = 2"}
    if "DECIMAL" in schema:
        texts["sum"] = "m = 7"  # so that numbers are read exactly
    index = tamis.build(texts, f"{schema}, n.a INT")
    for text in (
        f'{{"a": 1, "a": 2, "m": {number}}}',
        f'{{"a": 1, "m": {number}, "a": 2}}',
        f'{{"m": {number}, "a": 3, "a": null, "a": 2}}',
    ):
        assert index.match_lists([encode(text)]).to_pylist() == [["last"]]
    inside = f'{{"n": {{"a": 2}}, "m": {number}, "n": {{"a": 1, "a": 2}}}}'
    assert index.match_lists([encode(inside)]).to_pylist() == [["in"]]
