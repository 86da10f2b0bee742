"""Records of arrays that a kernel is given by address.

To pass an array, Numba finds its type and unpacks it on every call, which takes 0.1 µs for each. A
kernel for one event needs a hundred arrays, and runs for 1 µs. So the arrays are unpacked once, to
memory that the kernel reads, and a call passes the addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

if TYPE_CHECKING:
    from collections.abc import Sequence

_config: Any = numba.config
_is_compiled = not _config.DISABLE_JIT


class RecordsType(types.Type):
    """The type of the address of some records, all of one type."""

    def __init__(self, record: types.Type) -> None:
        self.record = record
        super().__init__(name=f"Records({record})")


class Records:
    """Named tuples of arrays, or of such tuples, that kernels get by `recall`.

    They must live as long as their address is used.
    """

    __slots__ = ("_words", "address", "records", "type")

    def __init__(self, records: Sequence[Any]) -> None:
        """There is at least one, and all are of one type."""
        self.records = tuple(records)
        # Without a compiler, a kernel is given the object itself.
        self.address: Any = self
        self.type: RecordsType | None = None
        if _is_compiled:
            self.type = RecordsType(numba.typeof(self.records[0]))
            assert all(numba.typeof(own) == self.type.record for own in self.records[1:])
            self._words = np.array([_unpack(own) for own in self.records], dtype=np.int64)
            self.address = _address_of(self._words)

    @classmethod
    def join(cls, several: Sequence[Records]) -> Records:
        """All their records, which are of one type."""
        if len(several) == 1:
            return several[0]
        joined = cls.__new__(cls)
        joined.records = tuple(record for own in several for record in own.records)
        joined.address, joined.type = joined, several[0].type
        if _is_compiled:
            assert cls.are_alike(several)
            joined._words = np.concatenate([own._words for own in several])
            joined.address = _address_of(joined._words)
        return joined

    @staticmethod
    def are_alike(several: Sequence[Records]) -> bool:
        """Whether all records are of one type."""
        return all(own.type == several[0].type for own in several)


def _address_of(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _unpack(record: Any) -> list[int]:
    """The words of Numba's array structures: two owners, sizes, the address, shape and strides."""
    if isinstance(record, tuple):
        return [word for own in record for word in _unpack(own)]
    address = _address_of(record)
    return [0, 0, record.size, record.itemsize, address, *record.shape, *record.strides]


def bind(kernel: Any, records: Sequence[Records], n_numbers: int) -> Any:
    """A kernel, compiled for records of these types and a number of integers: it is called with the
    addresses and the integers, and skips the search for the types of its arguments.
    """
    if not _is_compiled:
        return kernel
    signature = (*(own.type for own in records), *[types.int64] * n_numbers)
    return kernel.compile(signature)


@register_model(RecordsType)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, ir.IntType(64))


@unbox(RecordsType)
def _unbox_address(_type: Any, value: Any, context: Any) -> NativeValue:
    number = context.pyapi.long_as_longlong(value)
    return NativeValue(number, is_error=context.pyapi.c_api_error())


def _recall(_typing: Any, records: Any, at: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        record = context.get_value_type(signature.return_type)
        size = ir.Constant(ir.IntType(64), context.get_abi_sizeof(record))
        number = context.cast(builder, arguments[1], at, types.int64)
        address = builder.add(arguments[0], builder.mul(number, size))
        return builder.load(builder.inttoptr(address, record.as_pointer()))

    return records.record(records, at), write


def _recall_plainly(records: Records, at: int) -> Any:
    return records.records[at]


# recall(records, at): one of the records, in a kernel.
recall: Any = intrinsic(_recall) if _is_compiled else _recall_plainly
