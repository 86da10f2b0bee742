"""Which changes of a store of subscriptions a version includes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from tamis.versions.manifest import Version

STORE: Final = "subscription_store"  # in a version's provenance


class LogPosition(NamedTuple):
    """A place in the log of changes: the version includes all changes up to it."""

    epoch: str  # of the store: change numbers are valid only within one epoch
    change: int

    @classmethod
    def of(cls, version: Version | None) -> LogPosition | None:
        """The position that a version has recorded; None if it was not built from a store."""
        found = None if version is None else version.provenance.get(STORE)
        return None if found is None else cls(found["epoch"], found["change"])

    def to_provenance(self, where: str) -> dict[str, Any]:
        """What a version's provenance records; `where` is the store, without passwords."""
        return {STORE: {"where": where, **self._asdict()}}
