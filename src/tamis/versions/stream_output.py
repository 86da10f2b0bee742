"""The output of a match stream: a folder for each batch, and the record that it is complete.

    output/
        batch_id=0/part-….parquet   a row for each match
        batch_id=0/_tamis.json      written last: which stream, which version, how many rows

A batch that runs again replaces its folder, and the record goes with it. Spark does not read files
whose names begin with an underscore.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import InputError
from tamis.versions.log_position import LogPosition

if TYPE_CHECKING:
    from tamis.versions.storage import Storage

RECORD: Final = "_tamis.json"
EVENT: Final = "attributes"  # the column of whole events, as JSON
_FORMAT: Final = 1
_FOLDER: Final = re.compile(r"batch_id=(\d{1,18})")


class BatchRecord(NamedTuple):
    """What is known of a batch that is complete."""

    stream: str  # the id that Spark keeps in the checkpoint
    batch: int
    version: str  # that answered
    position: LogPosition | None  # of the version; None if it was not built from a store
    moment: str  # of the question, in ISO's format
    n_matches: int  # rows
    written: str  # a random name of this run: it differs if the batch ran again

    @classmethod
    def read(cls, storage: Storage, batch: int) -> BatchRecord | None:
        """The record of a batch; None if it is not complete. Raises an `InputError` if the record
        cannot be read.
        """
        name = f"{folder_of(batch)}/{RECORD}"
        content = storage.read(name)
        if content is None:
            return None
        try:
            found: dict[str, Any] = json.loads(content)
            version = found.pop("format")
            if version == _FORMAT:
                position = found.pop("position")
                return cls(position=None if position is None else LogPosition(**position), **found)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{storage.where(name)} is damaged") from None
        raise InputError(
            f"{storage.where(name)} has format {version}; this program reads format {_FORMAT}"
        )

    def write(self, storage: Storage) -> None:
        """Record that a batch is complete."""
        position = None if self.position is None else self.position._asdict()
        found = {"format": _FORMAT, **self._asdict(), "position": position}
        storage.write(f"{folder_of(self.batch)}/{RECORD}", json.dumps(found).encode())


def folder_of(batch: int) -> str:
    """The folder of a batch."""
    return f"batch_id={batch}"


def list_batches(storage: Storage) -> list[int]:
    """The numbers of the batches that have a folder, ascending."""
    found = (_FOLDER.fullmatch(own.name) for own in storage.list() if own.is_folder)
    return sorted(int(own[1]) for own in found if own)


def list_files(storage: Storage, batch: int) -> list[str]:
    """The files with the rows of a batch."""
    names = sorted(own.name for own in storage.list(folder_of(batch)) if not own.is_folder)
    return [name for name in names if name.rpartition("/")[2][0] not in "._"]


def read_stream_id(checkpoint: Storage) -> str:
    """The id that Spark gave to a stream when its checkpoint was made."""
    content = checkpoint.read("metadata")
    try:
        return str(json.loads(content or b"")["id"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{checkpoint.where('metadata')}, in which Spark stores the id of the stream, cannot "
            "be read",
            hint="if the checkpoint is damaged, start with a new one and another output",
        ) from None
