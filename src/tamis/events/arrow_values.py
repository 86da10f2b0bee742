"""Converts Arrow arrays to carriers: from the buffers in bulk; unusual values one by one.

A pair of an Arrow type and an attribute's type is converted in bulk, rejected as a whole (a string
column for a number), or left to `read_value`, once for each distinct value.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.events.arrow_arrays import (
    is_text,
    plain_array,
    read_bits,
    read_fixed,
    read_texts,
    take,
    valid_places,
)
from tamis.events.entries import Converted, ConvertedArrays, Given, find_nulls, group_elements
from tamis.events.objects import Objects
from tamis.events.python_values import (
    FINER_THAN_MICROSECONDS,
    as_objects,
    classes_of,
    convert_objects,
    to_integers,
)
from tamis.events.rejects import explain_by
from tamis.events.spelled import convert_texts, round_to_floats
from tamis.index.carriers import (
    LARGE_STRING,
    are_within,
    doubles_as_numbers,
    integers_as_numbers,
    to_numbers,
    view_buffer,
)
from tamis.language.types import (
    INT64_MAX,
    MAX_DECIMAL_DIGITS,
    WrongTypeError,
    print_as_double,
    read_text,
    read_value,
)
from tamis.language.types.moments import FIRST_DAY, FIRST_INSTANT, LAST_DAY, LAST_INSTANT

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int64
    from tamis.language.types import Type

_is = pa.types
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY_MILLISECONDS: Final = 86_400_000
_DAY_MICROSECONDS: Final = 86_400_000_000
_INTEGERS: Final = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
)
_NUMBERS: Final = (
    *_INTEGERS,
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(1), pa.decimal256(1)),
)
_TEXTS: Final = (pa.string(), pa.large_string())
_LISTS: Final = (
    *(pa.list_(pa.null()), pa.large_list(pa.null()), pa.list_(pa.null(), 1)),
    *(pa.list_view(pa.null()), pa.large_list_view(pa.null())),
)
_UNREADABLE: Final = object()  # stands for a value that is of no type
_NO_LIST: Final = 0  # stands for a text that is not a list
_TEXT_IDS: Final = frozenset(arrow_type.id for arrow_type in _TEXTS)
# The plain Arrow types that can contain values of each attribute type; other types are read from
# strings.
_HOLDERS: Final = {
    name: frozenset(arrow_type.id for arrow_type in arrow_types)
    for name, arrow_types in {
        "boolean": (pa.bool_(),),
        "integer": _NUMBERS,
        "float": _NUMBERS,
        "double": _NUMBERS,
        "decimal": _NUMBERS,
        "number": _NUMBERS,
        "string": _TEXTS,
        "date": (pa.date32(), pa.date64(), *_TEXTS),
        "timestamp": (pa.timestamp("us"), pa.date32(), pa.date64(), *_TEXTS),
        "array": _LISTS,
        "struct": (pa.struct([]), pa.map_(pa.string(), pa.string())),
    }.items()
}


# ── conversion ──────────────────────────────────────────────────────────────────────────────


def convert_array(
    array: pa.Array, places: Int64 | None, type_: Type, *, is_spelled: bool
) -> Converted | ConvertedArrays:
    """The values at `places`, none of which is NULL, as values of `type_`.

    `is_spelled`: strings spell values of any type, as in a `map<string,string>`.
    """
    if type_.name == "any":
        return Converted(None)
    if is_spelled and is_text(array.type):
        convert = _convert_scalars_spelled if type_.element is None else _convert_lists_spelled
        return convert(read_texts(array, places), type_)
    if type_.reads and _kind_of(array.type) in type_.reads:
        return _convert_foreign(array, places, type_)
    if type_.takes_one and not _can_hold(array.type.id, type_.name):
        return _convert_ones(array, places, type_)
    if not _can_hold(array.type.id, type_.name):
        return _refuse_all(len(array) if places is None else len(places), type_)
    if type_.element is not None:
        return _convert_lists(array, places, type_)
    return _CONVERTERS.get(type_.name, _convert_spelled)(array, places, type_)


def give(array: pa.Array, places: Int64 | None, type_: Type, *, is_spelled: bool) -> Given:
    """A function that describes the error of values that `convert_array` was given."""

    def value_at(at: int) -> Any:
        place = at if places is None else int(places[at])
        try:
            return array[place].as_py()
        except (ValueError, OverflowError):  # not UTF-8, outside Python's dates
            return _show_raw(array.slice(place, 1))

    can_hold = _can_read(array.type, type_) or (is_spelled and is_text(array.type))
    explain = explain_by(
        _read_spelled if is_spelled else read_value, type_, FINER_THAN_MICROSECONDS
    )
    return Given(value_at, lambda asked: np.full(len(asked), not can_hold), explain)


def _read_spelled(value: Any, type_: Type) -> Any:
    return read_text(value, type_) if isinstance(value, str) else read_value(value, type_)


def _show_raw(one: pa.Array) -> Any:
    """A description of a value that Python cannot represent."""
    for shown_type in (pa.large_binary(), pa.string()):
        try:
            return one.cast(shown_type)[0].as_py()
        except (pa.ArrowException, ValueError):
            continue
    return one.type


def can_hold(arrow_type: pa.DataType, type_: Type) -> bool:
    """Whether a column of an Arrow type can have values of an attribute's type."""
    if not _can_read(arrow_type, type_):
        return False
    return type_.element is None or can_hold(arrow_type.value_type, type_.element)


@cache
def _can_hold(arrow_id: int, type_name: str) -> bool:
    """Whether values of an Arrow type can be of an attribute's type."""
    return type_name == "any" or arrow_id in _HOLDERS.get(type_name, _TEXT_IDS)


def _can_read(arrow_type: pa.DataType, type_: Type) -> bool:
    """The same, with the kinds of values that the type reads as well."""
    return _can_hold(arrow_type.id, type_.name) or _kind_of(arrow_type) in type_.reads


def _kind_of(arrow_type: pa.DataType) -> str | None:
    """The kind of the values of a plain array, as a schema names it."""
    if is_text(arrow_type):
        return "string"
    if _is.is_boolean(arrow_type):
        return "boolean"
    if arrow_type.id in _HOLDERS["number"]:
        return "number"
    return "object" if _is.is_nested(arrow_type) else None


def _convert_foreign(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    """Values of another kind that the type reads: texts in bulk, others one by one."""
    if is_text(array.type):
        converted = _convert_scalars_spelled(read_texts(array, places), type_)
        n_values = len(array) if places is None else len(places)
        return converted._replace(is_foreign=np.ones(n_values, dtype=np.bool_))
    if _is.is_floating(array.type) and not _is.is_float64(array.type):
        objects = _printed(read_fixed(array, places)).tolist()
    else:
        # Arrow cannot take from some nested arrays, such as structs with views of strings.
        objects = _to_objects(array)
        if places is not None:
            objects = [objects[place] for place in places.tolist()]
    found = convert_objects(as_objects(objects, len(objects)), classes_of(objects), type_)
    assert isinstance(found, Converted)
    return found


def _to_objects(array: pa.Array) -> list[Any]:
    """The values as Python objects; `_UNREADABLE` for those that Python cannot represent."""
    try:
        return array.to_pylist(maps_as_pydicts="lossy")  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        return [_to_object(scalar) for scalar in array]


def _to_object(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py(maps_as_pydicts="lossy")
    except (ValueError, OverflowError):
        return _UNREADABLE


def _refuse_all(length: int, type_: Type) -> Converted | ConvertedArrays:
    none_good = np.zeros(length, dtype=np.bool_)
    if type_.element is None:
        return Converted(None, none_good)
    return ConvertedArrays(None, np.zeros(length, dtype=np.int64), None, none_good)


def _convert_boolean(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    bits = read_bits(array.buffers()[1], array.offset, len(array)).astype(np.int64)
    return Converted(bits if places is None else bits[places])


def _convert_integer(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    if _is.is_decimal(array.type):
        return _convert_distinct(take(array, places), type_)
    values = read_fixed(array, places)
    if _is.is_floating(array.type):  # pandas' integers in a column with missing values
        return to_integers(values.astype(np.float64))
    is_good = values <= INT64_MAX if values.dtype == np.uint64 else None
    return Converted(values.astype(np.int64), is_good)


def _convert_floating(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    if _is.is_decimal(array.type):
        return _convert_distinct(take(array, places), type_)
    numbers = read_fixed(array, places)
    if type_.name == "float":
        return Converted(round_to_floats(numbers))
    return Converted(numbers.astype(np.float64) + 0.0)  # -0.0 + 0.0 is 0.0


def _convert_decimal(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    array = take(array, places)
    if not _scales_exactly(array.type, type_.scale):
        return _convert_distinct(array, type_)
    array = array.cast(pa.decimal128(MAX_DECIMAL_DIGITS, type_.scale))
    data = array.buffers()[1]
    words = view_buffer(data, np.int64, 2 * len(array), 16 * array.offset).reshape(-1, 2)
    return Converted(words, are_within(words, 10**type_.precision))


def _convert_number(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    """The numbers of each column, by their kind."""
    if _is.is_decimal(array.type):
        return _convert_distinct(take(array, places), type_)
    values = read_fixed(array, places)
    if values.dtype == np.uint64 and (values > INT64_MAX).any():
        return Converted(to_numbers(values.tolist()))
    if _is.is_integer(array.type):
        return Converted(integers_as_numbers(values.astype(np.int64)))
    doubles = values.astype(np.float64)
    return Converted(doubles_as_numbers(doubles if values.itemsize == 8 else _printed(values)))


def _printed(narrow: np.ndarray) -> np.ndarray:
    """Floats of fewer bits as the doubles that they print as; integers unchanged."""
    doubles: np.ndarray = narrow.astype(np.float64)
    with np.errstate(invalid="ignore"):
        odd = np.flatnonzero(np.isfinite(doubles) & (doubles != np.floor(doubles)))
    if narrow.dtype == np.float32:
        spelled = pa.array(narrow[odd]).cast(pa.string())
        doubles[odd] = spelled.cast(pa.float64()).to_numpy()
    else:
        doubles[odd] = [print_as_double(value) for value in narrow[odd]]
    return doubles


def _scales_exactly(arrow_type: pa.DataType, scale: int) -> bool:
    """Whether every value of the Arrow type fits in 38 digits, `scale` of them after the point."""
    if _is.is_decimal(arrow_type):
        n_more: int = scale - arrow_type.scale
        n_digits: int = arrow_type.precision + n_more
        return n_more >= 0 and n_digits <= MAX_DECIMAL_DIGITS
    n_digits = 20 if _is.is_uint64(arrow_type) else 19
    return _is.is_integer(arrow_type) and n_digits + scale <= MAX_DECIMAL_DIGITS


def _convert_string(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    texts = read_texts(array, places)
    return Converted(texts, _are_utf8(texts))


def _are_utf8(texts: pa.Array) -> np.ndarray | None:
    """Where the strings are valid UTF-8, which Arrow does not check; None for everywhere."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        data = texts.cast(pa.large_binary()).to_pylist()
        return np.array([_is_utf8(own) for own in data], dtype=np.bool_)
    return None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _convert_date(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    if is_text(array.type):
        return _convert_scalars_spelled(read_texts(array, places), type_)
    days = read_fixed(array, places).astype(np.int64)
    if _is.is_date64(array.type):
        days //= _DAY_MILLISECONDS
    return Converted(days, (days >= FIRST_DAY) & (days <= LAST_DAY))


def _convert_timestamp(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    """Instants in UTC, regardless of the zone they are shown in; without a zone they are in UTC. A
    date is its midnight.
    """
    if is_text(array.type):
        return _convert_scalars_spelled(read_texts(array, places), type_)
    if _is.is_date(array.type):
        days = _convert_date(array, places, type_)
        return days._replace(values=np.clip(days.values, FIRST_DAY, LAST_DAY) * _DAY_MICROSECONDS)
    ticks = read_fixed(array, places)
    if array.type.unit == "ns":
        instants, rest = np.divmod(ticks, 1000)
        is_good = rest == 0
    else:
        microseconds = _MICROSECONDS[array.type.unit]
        first, last = -(-FIRST_INSTANT // microseconds), LAST_INSTANT // microseconds
        is_good = (ticks >= first) & (ticks <= last)
        instants = np.where(is_good, ticks, 0) * microseconds
    return Converted(instants, is_good)


def _convert_struct(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    return Converted(Objects.of(take(array, places)))


def _convert_spelled(array: pa.Array, places: Int64 | None, type_: Type) -> Converted:
    """Values of a type that Arrow does not have: strings spell them."""
    return _convert_scalars_spelled(read_texts(array, places), type_)


_CONVERTERS: Final = {
    "boolean": _convert_boolean,
    "integer": _convert_integer,
    "float": _convert_floating,
    "double": _convert_floating,
    "decimal": _convert_decimal,
    "number": _convert_number,
    "string": _convert_string,
    "date": _convert_date,
    "timestamp": _convert_timestamp,
    "struct": _convert_struct,
}


def _convert_distinct(array: pa.Array, type_: Type) -> Converted:
    """Converted by `read_value`, once for each distinct value."""
    encoded = array.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    objects = as_objects(distinct, len(distinct))
    converted = convert_objects(objects, classes_of(distinct), type_)
    numbers = encoded.indices.to_numpy()
    is_good = None if converted.is_good is None else converted.is_good[numbers]
    return Converted(converted.values[numbers], is_good)


def _convert_scalars_spelled(texts: pa.Array, type_: Type) -> Converted:
    """The values that strings spell; a text that is not UTF-8 has no value."""
    are_utf8 = _are_utf8(texts)
    if are_utf8 is None:
        return convert_texts(texts, type_)
    values, is_good, _ = convert_texts(_blank(texts, are_utf8), type_)
    return Converted(values, are_utf8 if is_good is None else are_utf8 & is_good)


def _blank(texts: pa.Array, are_utf8: np.ndarray) -> pa.Array:
    """The texts, with those that are not UTF-8 replaced by empty ones."""
    import pyarrow.compute as pc  # takes 50 ms, needed only for events in Arrow

    return pc.if_else(pa.array(are_utf8), texts, pa.scalar("", LARGE_STRING))


# ── arrays of values ────────────────────────────────────────────────────────────────────────


def _convert_lists(array: pa.Array, places: Int64 | None, type_: Type) -> ConvertedArrays:
    import pyarrow.compute as pc

    assert type_.element is not None
    elements = plain_array(pc.list_flatten(array))  # those of lists that are not NULL
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    n_lists = len(array) if places is None else len(places)
    numbers = np.full(len(array), -1, dtype=np.int64)  # of the requested lists
    numbers[slice(None) if places is None else places] = np.arange(n_lists)
    parents = np.repeat(numbers, lengths)
    known = valid_places(elements)
    is_known = np.full(len(elements), known is None)
    if known is not None:
        is_known[known] = True
    is_asked = parents >= 0
    nulls = find_nulls(parents, is_known, n_lists)
    known = np.flatnonzero(is_asked & is_known)
    converted = convert_array(elements, known, type_.element, is_spelled=False)
    assert isinstance(converted, Converted)
    return group_elements(converted, parents[known], nulls, np.ones(n_lists, dtype=np.bool_))


def _convert_ones(array: pa.Array, places: Int64 | None, type_: Type) -> ConvertedArrays:
    """Single values as arrays of one element."""
    assert type_.element is not None
    found = convert_array(array, places, type_.element, is_spelled=False)
    assert isinstance(found, Converted)
    n_values = len(array) if places is None else len(places)
    is_good = np.ones(n_values, dtype=np.bool_) if found.is_good is None else found.is_good
    parents = np.arange(n_values)
    return group_elements(found, parents, None, is_good)._replace(is_one=is_good)


def _convert_lists_spelled(texts: pa.Array, type_: Type) -> ConvertedArrays:
    """Lists spelled as JSON; `read_text` decides about each."""
    are_utf8 = _are_utf8(texts)
    found: list[Any] = []
    for text in (texts if are_utf8 is None else _blank(texts, are_utf8)).to_pylist():
        try:
            found.append(read_text(text, type_))
        except WrongTypeError:
            found.append(_NO_LIST)
    converted = convert_objects(as_objects(found, len(found)), classes_of(found), type_)
    assert isinstance(converted, ConvertedArrays)
    return converted
