"""A cache of compiled kernels on disk that never returns code of other sources.

Numba compares only the file of the kernel itself. But a kernel also contains what it inlines, the
constants that it imports and the order of fields in its records, and these are in other files.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

from tamis.kernels.records import RecordsType

_PACKAGE: Final = Path(__file__).parents[1]
# Modules outside of the folders of kernels whose constants kernels import.
CONSTANTS: Final = (
    "events/event_arrays.py",
    "events/json_source.py",
    "index/carriers.py",
    "index/layout.py",
    "index/numbers.py",
    "index/patterns/plan.py",
    "lab/atree/arrays.py",
    "lab/atree/encoding.py",
    "language/comparators.py",
    "language/tokens.py",
)


@cache
def digest_sources() -> int:
    """A checksum of everything that can be compiled into a kernel."""
    kernels = sorted(_PACKAGE.glob("**/kernels/*.py"))
    checksum = 0
    for path in (*kernels, *(_PACKAGE / name for name in CONSTANTS)):
        checksum = zlib.crc32(path.read_bytes(), checksum)
    return checksum


class KernelCache(FunctionCache):
    """Compiled code of one kernel, for the present sources and records."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), digest_sources()),
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # The type of a record has its class and the types of its fields, but not their names: if
        # two fields of one type change places, only these differ.
        return (*super()._index_key(sig, codegen), tuple(map(_fields, sig)))


def _fields(type_: Any) -> tuple[Any, ...]:
    """The names of a record's fields, and of records in it; nothing for other types."""
    if isinstance(type_, RecordsType):
        return _fields(type_.record)
    if not isinstance(type_, types.NamedTuple | types.NamedUniTuple):
        return ()
    return type_.fields, tuple(map(_fields, type_.types))


class _CacheFile(IndexDataCacheFile):
    """Files that cannot be read count as missing: they may name a class that exists no more."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except Exception as error:
            raise OSError(f"{name} cannot be read: {error!r}") from error  # Numba compiles again
