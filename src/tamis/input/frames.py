"""Frames of other libraries as Arrow data. None of these libraries is imported here."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from tamis.errors import InputError

ARROW_DATA: Final = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)


def is_frame(given: Any) -> bool:
    """Whether it is a table of rows, by its class: nothing is converted."""
    return isinstance(given, ARROW_DATA) or hasattr(given, "__dataframe__")


def to_arrow(given: Any) -> Any:
    """The frame as a table, a record batch or a reader of batches; None for what is no frame."""
    if isinstance(given, ARROW_DATA):
        return given
    if isinstance(given, pa.Array | pa.ChunkedArray | type):
        return None
    library, name = type(given).__module__.partition(".")[0], type(given).__name__
    if library == "pyspark":
        raise InputError(
            f"a Spark {name} is taken by tamis.spark only",
            hint="tamis.spark.build(frame, store), tamis.spark.match(events, index)",
        )
    if name == "LazyFrame":
        raise InputError("a LazyFrame has no rows yet", hint="collect them: frame.collect()")
    try:
        return _convert(given, library, name)
    except (pa.ArrowException, TypeError, ValueError) as error:
        # pandas' columns of objects may hold anything; Arrow names the column in a second text.
        reason = "; ".join(map(str, error.args)) or type(error).__name__
        raise InputError(
            f"the {library} {name} cannot be read as Arrow data: {reason}",
            hint="each column needs values of one type",
        ) from None


def _convert(given: Any, library: str, name: str) -> Any:
    if library == "pandas" and name == "DataFrame":
        return pa.Table.from_pandas(given)
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given)
    if hasattr(given, "to_arrow"):
        found = given.to_arrow()
        return found if isinstance(found, ARROW_DATA) else None
    if hasattr(given, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return from_dataframe(given)
    return None
