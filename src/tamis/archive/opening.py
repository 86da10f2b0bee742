"""Finds the segments in the folder of an archive, and repairs what a killed writer left."""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis import durable
from tamis.archive import folder as files
from tamis.archive.closed_segment import AnswerFile, ClosedSegment
from tamis.archive.journal import RECORDS_AT, Journal
from tamis.archive.journal_segment import JournalSegment
from tamis.errors import StoreFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from tamis.archive.closed_segment import Caches
    from tamis.archive.folder import ArchiveFacts, SegmentName
    from tamis.archive.reading import Segment

_log = logging.getLogger(__name__)
_LOST: Final = "restore the archive from a backup, then call renew_epoch()"


class Opened(NamedTuple):
    """The segments of an archive, in order."""

    segments: tuple[Segment, ...]  # the last one is `open`
    answers: tuple[AnswerFile, ...]
    open: JournalSegment
    n_cut_bytes: int  # of writes that had not been acknowledged


def create(root: Path) -> None:
    """Make the files of a new archive, unless there is one; the facts come last."""
    files.make_folders(root)
    if files.has_facts(root):
        return
    journals = files.list_journals(root)
    if files.list_closed(root) or any(own.stat().st_size > RECORDS_AT for own in journals):
        raise StoreFormatError(
            f"{root} has segments of an archive, but {files.FACTS} is missing", hint=_LOST
        )
    for own in journals:  # of a creation that was killed
        own.unlink()
    epoch = files.new_epoch()
    Journal.create(files.journal_path(root, 1), epoch, 1, 1)
    files.write_facts(root, files.ArchiveFacts(epoch))


def open_segments(root: Path, facts: ArchiveFacts, caches: Caches, *, read_only: bool) -> Opened:
    """The segments of an archive; a writer removes leftovers and cuts off torn writes."""
    # Journals first: a segment that is being closed is then seen at least once.
    journals = [Journal.open(path, read_only=read_only) for path in files.list_journals(root)]
    if not journals:
        raise StoreFormatError(
            f"{root / files.JOURNALS} has no journal: events were lost", hint=_LOST
        )
    _expect_own(journals, facts)
    found = _sort_closed(root, facts, {own.serial for own in journals})
    if not read_only:
        for name, kinds in found.leftovers.items():
            for kind in kinds:
                name.path(root, kind).unlink()
    closed = [ClosedSegment(root, name, caches) for name in found.closed]
    answers = tuple(AnswerFile(root, name) for name in found.with_answers)
    waiting, n_cut_bytes = _load_journals(journals, {own.serial for own in closed}, read_only)
    if not waiting:
        raise StoreFormatError(
            f"the archive has no open journal after {journals[-1].path}, which is closed",
            hint=_LOST,
        )
    segments: list[Segment] = [*closed, *waiting]
    _expect_no_gap(root, facts, segments)
    return Opened(tuple(segments), answers, waiting[-1], n_cut_bytes)


class _Sorted(NamedTuple):
    """What the files of closed segments are."""

    closed: list[SegmentName]
    with_answers: list[SegmentName]  # closed ones, and removed ones of which the answers stay
    leftovers: dict[SegmentName, set[str]]  # of a segment that was removed, or not yet closed


def _sort_closed(root: Path, facts: ArchiveFacts, journals: set[int]) -> _Sorted:
    found = _Sorted([], [], {})
    for name, kinds in files.list_closed(root).items():
        missing = files.ENDINGS.keys() - kinds
        if name.last_event < facts.kept_from and name.serial not in journals:
            found.leftovers[name] = kinds - {files.ANSWERS}
            found.with_answers.extend([name] if files.ANSWERS in kinds else [])
        elif not missing:
            found.closed.append(name)
            found.with_answers.append(name)
        elif name.serial in journals:
            found.leftovers[name] = kinds
        else:
            path = name.path(root, min(missing))
            raise StoreFormatError(
                f"{path} is missing: events {name.first_event} to {name.last_event}", hint=_LOST
            )
    return found


# ── journals ────────────────────────────────────────────────────────────────────────────────


def _load_journals(
    journals: list[Journal],
    closed: set[int],
    read_only: bool,
) -> tuple[list[JournalSegment], int]:
    """The segments that are not closed; a writer removes the journals of those that are."""
    ends = [*(own.first_event for own in journals[1:]), None]
    segments, n_cut_bytes = [], 0
    for journal, end_event in zip(journals, ends, strict=True):
        if journal.serial not in closed:
            segment, n_cut = _load(journal, end_event, read_only=read_only)
            segments.append(segment)
            n_cut_bytes += n_cut
        elif not read_only:
            journal.path.unlink()
    return segments, n_cut_bytes


def _load(
    journal: Journal, end_event: int | None, *, read_only: bool
) -> tuple[JournalSegment, int]:
    segment = JournalSegment(journal)
    mark = journal.opened_mark
    if read_only and end_event is None:  # what comes before another journal was acknowledged
        journal.size = min(journal.size, mark)
    end = segment.load(mark=mark, end_event=end_event)
    n_cut = max(0, journal.size - end)
    if not read_only:
        tail = journal.recover(end)
        if tail:
            _keep_tail(journal.path, tail, end)
    return segment, n_cut


def _keep_tail(path: Path, tail: bytes, at: int) -> None:
    """Report bytes that were cut off a journal, and keep them for whoever wants to look."""
    kept = path.with_suffix(f".{at}.torn")
    _log.warning(
        "%s: the last %d bytes, from byte %d on, are a write that was never acknowledged; "
        "they were moved to %s",
        *(path, len(tail), at, kept.name),
    )
    with suppress(OSError):
        durable.replace_file(kept, [tail])


# ── checks ──────────────────────────────────────────────────────────────────────────────────


def _expect_own(journals: list[Journal], facts: ArchiveFacts) -> None:
    for journal in journals:
        epoch = journal.header().epoch
        if epoch not in (facts.epoch, *facts.earlier_epochs):
            raise StoreFormatError(
                f"{journal.path} is from another archive, of epoch {epoch}",
                hint="move it out of the folder",
            )


def _expect_no_gap(root: Path, facts: ArchiveFacts, segments: list[Segment]) -> None:
    first = segments[0]
    pairs = [(facts.kept_from, first), *((a.next_event, b) for a, b in pairwise(segments))]
    for expected, segment in pairs:
        if expected != segment.first_event:
            raise StoreFormatError(
                f"segment {segment.serial} of {root} begins with event {segment.first_event}, but "
                f"event {expected} is next: files are missing, or there twice",
                hint=_LOST,
            )
