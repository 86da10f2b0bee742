"""The kinds of arrays in the records of an index.

The annotations of a record use these names. When an index is opened, its arrays must be of these
kinds (`index.content_file`): the kernels are compiled for them and do not check again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

# Instead of `numpy.typing.NDArray`, whose import takes 30 ms.
UInt8 = np.ndarray[Any, np.dtype[np.uint8]]
Int16 = np.ndarray[Any, np.dtype[np.int16]]
Int32 = np.ndarray[Any, np.dtype[np.int32]]
Int64 = np.ndarray[Any, np.dtype[np.int64]]
Float32 = np.ndarray[Any, np.dtype[np.float32]]
Float64 = np.ndarray[Any, np.dtype[np.float64]]
Starts = Int32 | Int64  # 32 bits where they suffice
Int32Rows = Int32  # two-dimensional
Int64Rows = Int64

# By name of the annotation: the dtypes that a file may have, and the number of dimensions.
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
