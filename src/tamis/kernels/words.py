"""Eight bytes at once: unaligned loads and stores, and the number of zero bits that end a word.

Numba provides none of them. They mean the same as plain Python.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, register_jitable

_BITS = 64


def _load_word(_typing: Any, data: Any, at: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        offset = context.cast(builder, arguments[1], at, types.int64)
        address = builder.gep(array.data, [offset])
        word = builder.load(builder.bitcast(address, ir.IntType(_BITS).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, at), write


def _store_word(_typing: Any, data: Any, at: Any, word: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        offset = context.cast(builder, arguments[1], at, types.int64)
        address = builder.gep(array.data, [offset])
        pointer = builder.bitcast(address, ir.IntType(_BITS).as_pointer())
        builder.store(arguments[2], pointer).align = 1
        return context.get_dummy_value()

    return types.none(data, at, types.uint64), write


def _trailing_zeros(_typing: Any, word: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.int64(types.uint64), write


def _load_word_bytewise(data: Any, at: Any) -> Any:
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return word


def _store_word_bytewise(data: Any, at: Any, word: Any) -> Any:
    for place in range(8):
        data[at + place] = np.uint8((word >> np.uint64(8 * place)) & np.uint64(255))


def _trailing_zeros_plainly(word: np.uint64) -> int:
    number = int(word)
    return (number & -number).bit_length() - 1 if number else _BITS


_config: Any = numba.config


def _choose(instruction: Any, bytewise: Any) -> Any:
    if _config.DISABLE_JIT:
        return bytewise
    # With NUMBA_BOUNDSCHECK, Numba checks each index; it does not know the instruction.
    return register_jitable(bytewise) if _config.BOUNDSCHECK else intrinsic(instruction)


# load_word(data, at): data[at : at + 8], lowest byte first. The caller checks the bounds.
load_word: Any = _choose(_load_word, _load_word_bytewise)

# store_word(data, at, word): sets data[at : at + 8]. The caller checks the bounds.
store_word: Any = _choose(_store_word, _store_word_bytewise)

# trailing_zeros(word): the number of zero bits below the lowest bit that is set.
trailing_zeros: Any = _trailing_zeros_plainly if _config.DISABLE_JIT else intrinsic(_trailing_zeros)
