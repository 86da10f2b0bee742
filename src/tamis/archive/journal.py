"""The file of an open segment: a header, then records.

The header has a *mark*: the length up to which the file is known to be on disk. It is written after
each flush and flushed with the next one, so it may lag behind, but is never ahead. It distinguishes
damage (a bad record before the mark, which had been acknowledged) from a torn write (after it), and
limits what other processes read.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import weakref
import zlib
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis import durable
from tamis.archive.records import MAGIC, check_record
from tamis.errors import StoreFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tamis.archive.records import Head

FORMAT: Final = 1
_FILE_MAGIC: Final = b"TamisJnl"
_HEADER: Final = struct.Struct("<8sII16sqq")
_MARK: Final = struct.Struct("<QII")
_MARK_AT: Final = _HEADER.size
RECORDS_AT: Final = _MARK_AT + _MARK.size
_CHUNK: Final = 1 << 24
_DAMAGED: Final = (
    "restore the archive from a backup, then call renew_epoch(); or, to go on without the events "
    "from there on, cut the file at that byte (truncate -s) and remove later journals"
)


class JournalHeader(NamedTuple):
    """What the first bytes of a journal contain."""

    epoch: str
    serial: int
    first_event: int
    mark: int  # the file is on disk up to here


class Journal:
    """A journal that records are appended to, or that is only read."""

    def __init__(self, path: Path, header: JournalHeader, descriptor: int, size: int) -> None:
        self.path = path
        self.serial = header.serial
        self.first_event = header.first_event
        self.opened_mark = header.mark  # when the size was read, or before
        self.size = size  # of what is on disk
        self.is_broken = False  # it must not be written to again
        self.descriptor = descriptor
        # Readers may still use it when its segment has been closed and its file removed.
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def create(cls, path: Path, epoch: str, serial: int, first_event: int) -> Journal:
        """A new, empty journal; it is on disk when this returns."""
        header = JournalHeader(epoch, serial, first_event, RECORDS_AT)
        durable.replace_file(path, [_write_header(header)])
        return cls(path, header, os.open(path, os.O_RDWR | os.O_CLOEXEC), RECORDS_AT)

    @classmethod
    def open(cls, path: Path, *, read_only: bool) -> Journal:
        """A journal that exists; `size` is the length of its file."""
        flags = os.O_RDONLY if read_only else os.O_RDWR
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            # In this order: another process may be writing, and the mark must not pass the size.
            header = _read_header(path, os.pread(descriptor, RECORDS_AT, 0))
            size = os.fstat(descriptor).st_size
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, header, descriptor, size)

    def header(self) -> JournalHeader:
        """The header as it is now in the file."""
        return _read_header(self.path, os.pread(self.descriptor, RECORDS_AT, 0))

    def length(self) -> int:
        """The length of the file as it is now."""
        return os.fstat(self.descriptor).st_size

    def append(self, records: bytes) -> None:
        """Write records; they are on disk when this returns. If it raises OSError, none of them
        is there.
        """
        try:
            _write_all(self.descriptor, records, self.size)
        except OSError:
            self._cut()
            raise
        try:
            _flush(self.descriptor)
            self._expect_name()
        except OSError:
            # The kernel may have dropped what it could not write, and will not report it again.
            self.is_broken = True
            self._cut()
            raise
        self.size += len(records)
        self.write_mark()

    def _expect_name(self) -> None:
        """Raise OSError if the file was removed: what is written would end with the process."""
        if not os.fstat(self.descriptor).st_nlink:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))

    def write_mark(self) -> None:
        """Record that the file is on disk up to its size; an error is harmless."""
        with suppress(OSError):
            os.pwrite(self.descriptor, _write_mark(self.size), _MARK_AT)

    def _cut(self) -> None:
        try:
            os.ftruncate(self.descriptor, self.size)
        except OSError:
            self.is_broken = True

    def recover(self, end: int) -> bytes:
        """Cut the file at `end`, and make sure that the rest is on disk; returns what was cut.

        A writer that was killed may have left pages that the disk refused, and that look
        intact in memory. Writing the same bytes again makes the kernel write them again.
        """
        tail = os.pread(self.descriptor, max(0, self.size - end), end)
        if self.size > end:
            os.ftruncate(self.descriptor, end)
        at = 0
        while at < end:
            chunk = os.pread(self.descriptor, min(_CHUNK, end - at), at)
            _write_all(self.descriptor, chunk, at)
            at += len(chunk)
        _flush(self.descriptor)
        self.size = end
        self.write_mark()
        return tail

    def copy(self, path: Path, size: int) -> None:
        """Write the first bytes of this journal to another file, durably."""
        header = self.header()._replace(mark=size)
        durable.replace_file(path, chain([_write_header(header)], self._chunks(size)))

    def _chunks(self, size: int) -> Iterator[bytes]:
        for at in range(RECORDS_AT, size, _CHUNK):
            yield self.read(at, min(_CHUNK, size - at))

    def read(self, place: int, length: int) -> bytes:
        """Some bytes of the file."""
        return os.pread(self.descriptor, length, place)

    def map(self) -> Any:
        """The file up to its size, mapped into memory."""
        return mmap.mmap(self.descriptor, self.size, prot=mmap.PROT_READ)


def _write_all(descriptor: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        n_written = os.pwrite(descriptor, view, at)
        view, at = view[n_written:], at + n_written


def _flush(descriptor: int) -> None:
    # macOS has no fdatasync.
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(descriptor)


# ── the header ──────────────────────────────────────────────────────────────────────────────


def _write_header(header: JournalHeader) -> bytes:
    fields = (bytes.fromhex(header.epoch), header.serial, header.first_event)
    checksum = zlib.crc32(_HEADER.pack(_FILE_MAGIC, FORMAT, 0, *fields))
    return _HEADER.pack(_FILE_MAGIC, FORMAT, checksum, *fields) + _write_mark(header.mark)


def _write_mark(size: int) -> bytes:
    return _MARK.pack(size, zlib.crc32(struct.pack("<Q", size)), 0)


def _read_header(path: Path, data: bytes) -> JournalHeader:
    if len(data) < RECORDS_AT or not data.startswith(_FILE_MAGIC):
        raise StoreFormatError(f"{path} is not a journal of an archive", hint=_DAMAGED)
    magic, version, checksum, epoch, serial, first_event = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise StoreFormatError(
            f"{path} has format {version}; this program reads format {FORMAT}",
            hint="use the program that wrote it",
        )
    if checksum != zlib.crc32(_HEADER.pack(magic, version, 0, epoch, serial, first_event)):
        raise StoreFormatError(f"{path} is damaged at byte 0: its header", hint=_DAMAGED)
    size, size_checksum, _ = _MARK.unpack_from(data, _MARK_AT)
    is_intact = size_checksum == zlib.crc32(struct.pack("<Q", size)) and size >= RECORDS_AT
    return JournalHeader(epoch.hex(), serial, first_event, size if is_intact else RECORDS_AT)


# ── records ─────────────────────────────────────────────────────────────────────────────────


class Found(NamedTuple):
    """A record and its place in the file."""

    at: int
    head: Head


def find_records(
    data: Any, path: Path, *, begin: int, first_event: int, mark: int
) -> Iterator[Found]:
    """The records from a place on, each of which is intact and continues the one before it.

    The first bad one ends them, if it is a torn write. Raises a `StoreFormatError` if it had been
    acknowledged.
    """
    at = begin
    while at < len(data):
        head = check_record(data, at)
        if head is None or head.first_event != first_event:
            _expect_torn(data, path, at, mark)
            return
        yield Found(at, head)
        at += head.n_bytes
        first_event += head.n_events
    if mark > len(data):
        raise StoreFormatError(
            f"{path} ends at byte {len(data)}; it had {mark} bytes that were acknowledged",
            hint=_DAMAGED,
        )


def _expect_torn(data: Any, path: Path, at: int, mark: int) -> None:
    """Raise a `StoreFormatError` if the bad record at a place had been acknowledged."""
    is_damaged = at < mark
    later = data.find(MAGIC, at + 1)
    while later >= 0 and not is_damaged:
        # Only records that were written together can be on disk without the earlier ones.
        head = check_record(data, later)
        is_damaged = head is not None and head.group_start > at
        later = data.find(MAGIC, later + 1)
    if is_damaged:
        raise StoreFormatError(
            f"{path} is damaged at byte {at}: the record there is not intact, but later ones were "
            "written after it was acknowledged",
            hint=_DAMAGED,
        )
