"""The processor's prefetch instruction, which Numba does not provide.

The children of a node lie anywhere in memory, so the processor cannot predict which mask is read
next, but the links name it well ahead. Prefetching it makes an OR over masks that exceed the cache
about twice as fast.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1  # the instruction's arguments


def _prefetch_row(_typing: Any, rows: Any, at: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        offset = builder.mul(context.cast(builder, arguments[1], at, types.int64), stride)
        _write_prefetch(builder, builder.add(builder.ptrtoint(array.data, offset.type), offset))
        return context.get_dummy_value()

    return types.void(rows, at), write


def _prefetch_address(_typing: Any, address: Any) -> Any:
    def write(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        _write_prefetch(builder, arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64), write


def _write_prefetch(builder: Any, address: Any) -> None:
    pointer = ir.IntType(8).as_pointer()
    integer = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [pointer, integer, integer, integer])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
    hints = [integer(_READ), integer(_KEEP), integer(_DATA)]
    builder.call(prefetch, [builder.inttoptr(address, pointer), *hints])


def _do_nothing(*_arguments: Any) -> None:
    """Does nothing: the version for plain Python."""


# prefetch_row(rows, at): rows[at] will be read soon. This affects the speed only.
prefetch_row: Any = _do_nothing if numba.config.DISABLE_JIT else intrinsic(_prefetch_row)  # type: ignore[attr-defined]

# prefetch_address(address): the same for an address, which may be invalid.
prefetch_address: Any = _do_nothing if numba.config.DISABLE_JIT else intrinsic(_prefetch_address)  # type: ignore[attr-defined]
