"""Values spelled as text, as in `map<string,string>`, CSV and date strings.

`language.types.read_text` is the definition; `convert_texts` returns the same for many texts at
once: kernels decide the plain cases, and `read_text` the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.events.entries import Converted
from tamis.events.kernels.texts import (
    ASK,
    EXACT_DOUBLES,
    SHORT_NUMBERS,
    read_dates,
    read_decimals,
    read_floats,
    read_integers,
    read_timestamps,
)
from tamis.index.carriers import (
    doubles_as_numbers,
    integers_as_numbers,
    text_buffers,
    to_carrier,
)
from tamis.language.types import KINDS, WrongTypeError, read_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.kernels.arrays import Float64, Int64, UInt8
    from tamis.language.types import Type

# ── many at once ────────────────────────────────────────────────────────────────────────────


def _read_doubles(offsets: Int64, data: UInt8, values: Float64, statuses: UInt8) -> None:
    read_floats(offsets, data, EXACT_DOUBLES, values, statuses)


_KERNELS: Final[dict[str, tuple[Callable[..., None], Any]]] = {
    "integer": (read_integers, np.int64),
    "float": (_read_doubles, np.float64),
    "double": (_read_doubles, np.float64),
    "date": (read_dates, np.int64),
    "timestamp": (read_timestamps, np.int64),
}


_BEYOND_A_TIE: Final = np.int64((1 << 28) - 1)


def convert_texts(texts: pa.Array, type_: Type) -> Converted:
    """The results of `read_text` for many large strings of a scalar type."""
    if type_.name in ("string", "any"):
        return Converted(texts)
    if type_.name == "boolean":
        return _convert_booleans(texts)
    if type_.name == "number":
        return _convert_numbers(texts, type_)
    statuses = np.empty(len(texts), dtype=np.uint8)
    if type_.name == "decimal":
        values = np.empty((len(texts), 2), dtype=np.int64)
        read_decimals(*text_buffers(texts), type_.precision, type_.scale, values, statuses)
    elif type_.name not in _KERNELS:
        return _convert_distinct(texts, type_)
    else:
        read, dtype = _KERNELS[type_.name]
        values = np.empty(len(texts), dtype)
        read(*text_buffers(texts), values, statuses)
    if type_.name == "float":
        doubles, values = values, round_to_floats(values)
        statuses[are_ties(doubles, values)] = ASK
    return _ask_about(np.flatnonzero(statuses == ASK), texts, type_, values)


def _convert_numbers(texts: pa.Array, type_: Type) -> Converted:
    """Whole numbers as integers, others as doubles if they have few digits."""
    integers, doubles = np.empty(len(texts), np.int64), np.empty(len(texts), np.float64)
    is_whole, is_short = (np.empty(len(texts), dtype=np.uint8) for _ in range(2))
    read_integers(*text_buffers(texts), integers, is_whole)
    read_floats(*text_buffers(texts), SHORT_NUMBERS, doubles, is_short)
    records = doubles_as_numbers(doubles)
    whole = np.flatnonzero(is_whole != ASK)
    records[whole] = integers_as_numbers(integers[whole])
    return _ask_about(np.flatnonzero((is_whole == ASK) & (is_short == ASK)), texts, type_, records)


def round_to_floats(values: np.ndarray) -> np.ndarray:
    """Numbers rounded to 32-bit floats, infinite if they overflow; -0.0 becomes 0.0."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded: np.ndarray = values.astype(np.float32).astype(np.float64) + 0.0
    return rounded


def are_ties(doubles: np.ndarray, floats: np.ndarray) -> np.ndarray:
    """Where a double lies halfway between two floats.

    A number that rounds to that double may lie on either side: only there can rounding twice differ
    from rounding once.
    """
    # A float has 24 of a double's 53 bits, so a tie has 25; below the normal floats it has fewer.
    is_short: np.ndarray = doubles.view(np.int64) & _BEYOND_A_TIE == 0
    is_tie: np.ndarray = is_short & (doubles != floats)
    return is_tie


def _ask_about(places: np.ndarray, texts: pa.Array, type_: Type, values: Any) -> Converted:
    """Fill in `values` with the plain reader's results for the texts at `places`."""
    if len(places) == 0:
        return Converted(values)
    is_good = np.ones(len(texts), dtype=np.bool_)
    known: dict[str, Any] = {}
    for place, text in zip(places.tolist(), texts.take(pa.array(places)).to_pylist(), strict=True):
        if text not in known:
            try:
                known[text] = to_carrier([read_text(text, type_)], type_)[0]
            except WrongTypeError:
                known[text] = None
        is_good[place] = known[text] is not None
        if is_good[place]:
            values[place] = known[text]
    return Converted(values, is_good)


def _convert_distinct(texts: pa.Array, type_: Type) -> Converted:
    """By `read_text`, once for each distinct text."""
    encoded = texts.dictionary_encode()
    read, are_good = [], []
    for text in encoded.dictionary.to_pylist():
        try:
            read.append(read_text(text, type_))
            are_good.append(True)
        except WrongTypeError:
            read.append(KINDS[type_.name].filler)
            are_good.append(False)
    values, numbers = to_carrier(read, type_), encoded.indices
    is_good = np.array(are_good, dtype=np.bool_)[numbers.to_numpy()]
    taken = values.take(numbers) if isinstance(values, pa.Array) else values[numbers.to_numpy()]
    return Converted(taken, is_good)


def _convert_booleans(texts: pa.Array) -> Converted:
    numbers = {"true": 1, "false": 0}
    distinct = texts.dictionary_encode()
    spelled = (text.lower() for text in distinct.dictionary.to_pylist())
    known = np.array([numbers.get(text, -1) for text in spelled], np.int64)
    values = known[distinct.indices.to_numpy()] if len(known) else np.empty(0, np.int64)
    return Converted(values, values >= 0)
