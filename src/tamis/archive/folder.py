"""The folder of an archive: its files and their names, and the facts that are not in segments.

    archive.json                      the epoch, and up to where events were removed
    journals/000000007.journal        the open segment, and those that wait to be closed
    events/000000006-….parquet        of each closed segment: the texts of its events,
    matches/000000006-….parquet       their matches,
    index/000000006-….index           the same by subscription,
    answers/000000006-….answers       and the answers to requests with an idempotency key

Segments are numbered. The name of a closed one also has its first and its last event.
"""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from tamis import durable
from tamis.archive.journal import FORMAT
from tamis.errors import StoreFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FACTS: Final = "archive.json"
JOURNALS: Final = "journals"
EVENTS, MATCHES, INDEX, ANSWERS = "events", "matches", "index", "answers"
ENDINGS: Final = {
    MATCHES: ".parquet",
    INDEX: ".index",
    ANSWERS: ".answers",
    EVENTS: ".parquet",
}
_JOURNAL: Final = re.compile(r"(\d{9})\.journal")
_CLOSED: Final = re.compile(r"(\d{9})-(\d{15})-(\d{15})\.\w+")


class SegmentName(NamedTuple):
    """The number of a closed segment, and its events."""

    serial: int
    first_event: int
    last_event: int  # one less than the first if there is none

    def path(self, root: Path, kind: str) -> Path:
        """One of its files."""
        stem = f"{self.serial:09}-{self.first_event:015}-{self.last_event:015}"
        return root / kind / f"{stem}{ENDINGS[kind]}"


class ArchiveFacts(NamedTuple):
    """What `archive.json` says."""

    epoch: str
    earlier_epochs: tuple[str, ...] = ()
    kept_from: int = 1  # segments that end before this event were removed

    def renewed(self) -> ArchiveFacts:
        """With another epoch."""
        return self._replace(epoch=new_epoch(), earlier_epochs=(*self.earlier_epochs, self.epoch))


def new_epoch() -> str:
    """The name of a new history."""
    return secrets.token_hex(16)


def has_facts(root: Path) -> bool:
    """Whether the folder is an archive."""
    return (root / FACTS).exists()


def read_facts(root: Path) -> ArchiveFacts:
    """The facts; raises a `StoreFormatError` if they are damaged."""
    path = root / FACTS
    try:
        found = orjson.loads(path.read_bytes())
        facts = ArchiveFacts(
            _epoch(found["epoch"]), tuple(map(_epoch, found["earlier_epochs"])), found["kept_from"]
        )
        version = found["format"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreFormatError(
            f"{path} is damaged", hint="restore it from a backup, then call renew_epoch()"
        ) from None
    except FileNotFoundError:
        raise StoreFormatError(
            f"{root} is not an archive: {FACTS} is missing", hint="was another folder meant?"
        ) from None
    if version != FORMAT:
        raise StoreFormatError(
            f"{root} has format {version}; this program reads format {FORMAT}",
            hint="use the program that wrote it",
        )
    return facts


def _epoch(value: Any) -> str:
    bytes.fromhex(value)
    return str(value)


def write_facts(root: Path, facts: ArchiveFacts) -> None:
    """Replace the facts, durably."""
    content = {"format": FORMAT, **facts._asdict()}
    durable.replace_file(root / FACTS, [orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)])


def make_folders(root: Path) -> None:
    """Make the folder and those in it."""
    for name in (JOURNALS, *ENDINGS):
        durable.make_directory(root / name)


def journal_path(root: Path, serial: int) -> Path:
    """The journal of a segment."""
    return root / JOURNALS / f"{serial:09}.journal"


def list_journals(root: Path) -> list[Path]:
    """All journals, in order."""
    paths = (root / JOURNALS).iterdir() if (root / JOURNALS).is_dir() else ()
    return sorted(path for path in paths if _JOURNAL.fullmatch(path.name))


def list_closed(root: Path) -> dict[SegmentName, set[str]]:
    """The closed segments, in order, and the kinds of files that each has."""
    found: dict[SegmentName, set[str]] = {}
    for kind in ENDINGS:
        for name in _list_names(root / kind):
            found.setdefault(name, set()).add(kind)
    return dict(sorted(found.items()))


def _list_names(folder: Path) -> Iterator[SegmentName]:
    if folder.is_dir():
        for entry in os.scandir(folder):
            if matched := _CLOSED.fullmatch(entry.name):
                yield SegmentName(*map(int, matched.groups()))


def sweep(root: Path) -> None:
    """Remove what dead writers left; waits until processes that they started have ended."""
    with durable.locked(root / JOURNALS):
        pass
    for folder in (root, *(root / name for name in (JOURNALS, *ENDINGS))):
        durable.sweep(folder)
