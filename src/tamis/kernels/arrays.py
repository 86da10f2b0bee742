"""The kinds of arrays that records of an index hold.

A record's annotations are these names, and an index that is opened must have arrays of these kinds
(`index.content`): a kernel is compiled for them and looks no further.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

UInt8 = npt.NDArray[np.uint8]
Int16 = npt.NDArray[np.int16]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Starts = Int32 | Int64  # 32 bits where they are enough
Int32Rows = npt.NDArray[np.int32]  # two-dimensional
Int64Rows = npt.NDArray[np.int64]

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
