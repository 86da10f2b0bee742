"""The kinds of arrays that records of an index hold.

A record's annotations are these names, and an index that is opened must have arrays of these kinds
(`index.content`): a kernel is compiled for them and looks no further.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

# As `numpy.typing.NDArray`, whose import takes 30 ms.
UInt8 = np.ndarray[Any, np.dtype[np.uint8]]
Int16 = np.ndarray[Any, np.dtype[np.int16]]
Int32 = np.ndarray[Any, np.dtype[np.int32]]
Int64 = np.ndarray[Any, np.dtype[np.int64]]
Float32 = np.ndarray[Any, np.dtype[np.float32]]
Float64 = np.ndarray[Any, np.dtype[np.float64]]
Starts = Int32 | Int64  # 32 bits where they are enough
Int32Rows = Int32  # two-dimensional
Int64Rows = Int64

# By the name of the annotation: the dtypes that a file may have, and the number of dimensions.
KINDS: Final[dict[str, tuple[tuple[str, ...], int]]] = {
    "UInt8": (("|u1",), 1),
    "Int16": (("<i2",), 1),
    "Int32": (("<i4",), 1),
    "Int64": (("<i8",), 1),
    "Float64": (("<f8",), 1),
    "Starts": (("<i4", "<i8"), 1),
    "Int32Rows": (("<i4",), 2),
    "Int64Rows": (("<i8",), 2),
}
