"""Frames of other libraries as Arrow data. None of these libraries is imported here."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

import pyarrow as pa

from tamis.errors import InputError
from tamis.events.arrow_arrays import make_unreadable
from tamis.input.batches import first_repeated

_FAILURES: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
_ADDRESSES: Final = frozenset((IPv4Address, IPv6Address))
ARROW_DATA: Final = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)


def is_frame(given: Any) -> bool:
    """Whether the object is a table of rows, by its class; nothing is converted."""
    return isinstance(given, ARROW_DATA) or hasattr(given, "__dataframe__")


def to_arrow(given: Any, *, is_partial: bool = False) -> Any:
    """The frame as a table, a record batch or a reader of batches; None for other objects.

    With `is_partial`, an unreadable column of a pandas frame raises an error only if it is used:
    see `make_unreadable`.
    """
    if isinstance(given, ARROW_DATA):
        return given
    if isinstance(given, pa.Array | pa.ChunkedArray | type):
        return None
    library, name = type(given).__module__.partition(".")[0], type(given).__name__
    if name == "Series":  # of events, read one after another
        return None
    if library == "pyspark":
        raise InputError(
            f"only tamis.spark accepts a Spark {name}",
            hint="tamis.spark.build(frame, store), tamis.spark.match(events, index)",
        )
    if name == "LazyFrame":
        raise InputError("a LazyFrame has no rows yet", hint="collect them: frame.collect()")
    is_pandas = library == "pandas" and name == "DataFrame"
    if is_pandas and (twice := first_repeated(list(map(str, given.columns)))) is not None:
        raise InputError(
            f'the pandas DataFrame has two columns "{twice}"', hint="rename or remove one of them"
        )
    try:
        return _convert(given, library, name)
    except _FAILURES as error:
        found = _convert_partly(given) if is_pandas and is_partial else None
        if found is not None:
            return found
        raise InputError(
            f"the {library} {name} cannot be read as Arrow data: {_describe_error(error)}",
            hint="each column needs values of one type" if is_pandas else None,
        ) from None


def _convert_partly(frame: Any) -> pa.Table | None:
    """The columns of a pandas frame that Arrow can represent, with fields of NULLs for the others;
    None if the columns are not the problem.
    """
    frame = _spell_addresses(frame)
    # A column of objects may contain any values, also if no expression uses it.
    bad: dict[Any, str] = {}
    for name in frame.columns:
        try:
            pa.Array.from_pandas(frame[name])
        except _FAILURES as error:
            bad[name] = _describe_error(error)
    try:
        table = pa.Table.from_pandas(frame.drop(columns=list(bad)))
    except _FAILURES:
        return None
    for name, reason in bad.items():
        field = make_unreadable(str(name), f"pandas DataFrame cannot be read: {reason}")
        table = table.append_column(field, pa.nulls(len(frame)))
    return table


def _spell_addresses(frame: Any) -> Any:
    """The pandas frame with objects of `ipaddress` as strings, which Arrow can represent."""
    spelled = frame.copy(deep=False)
    for name, kind in frame.dtypes.items():
        values = frame[name].dropna() if kind.kind == "O" else ()
        kinds = {type(value) for value in values}
        if kinds & _ADDRESSES and kinds <= {*_ADDRESSES, str}:
            spelled[name] = frame[name].map(str, na_action="ignore")
    return spelled


def _describe_error(error: Exception) -> str:
    """Arrow's message; it may name the column in a second text."""
    return "; ".join(map(str, error.args)) or type(error).__name__


def _convert(given: Any, library: str, name: str) -> Any:
    if library == "pandas" and name == "DataFrame":
        try:
            return pa.Table.from_pandas(given)
        except _FAILURES:
            return pa.Table.from_pandas(_spell_addresses(given))
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given)
    if hasattr(given, "to_arrow"):
        found = given.to_arrow()
        return found if isinstance(found, ARROW_DATA) else None
    if hasattr(given, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return from_dataframe(given)
    return None
