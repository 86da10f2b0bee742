"""A document of a feed as it is read, whatever its format: the feed, its items, what was mended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

MOST_ITEMS: Final = 5_000  # of one document
MOST_TITLE: Final = 1_000  # characters
MOST_BODY: Final = 200_000
MOST_NAME: Final = 200  # of an author or a category
MOST_CATEGORIES: Final = 50
MOST_LINK: Final = 2_048
_EXAMPLE: Final = 120

# What can be wrong in a document and was mended, and what that means for its items.
NOTES: Final = {
    "bad-date": "dates cannot be read; the moment of the fetch is used",
    "bad-json-item": "items are not JSON objects; they are not used",
    "bad-language": "languages are not tags with a code of ISO 639; they are not used",
    "bad-link": "links are not web addresses; they are not used",
    "broken-xml": "the XML is broken; it was read as far as possible",
    "changing-ids": "items appear again with other ids; links or texts distinguish them now",
    "cut-off": "the end of the document is missing; the rest is read when it is there",
    "cut-text": "texts are too long; only their beginning is used",
    "duplicate-ids": "different items have the same id; it no longer distinguishes them",
    "empty-item": "items have no title, no text and no link; they are not used",
    "future-date": "dates are in the future; the moment of the fetch is used",
    "no-date": "items have no date; the moment of the fetch is used",
    "no-id": "items have no id; link or text distinguishes them",
    "old-date": "dates are before 1900; the moment of the fetch is used",
    "repeated-item": "items are in the document several times; each is used once",
    "restless-item": "items change again and again; further changes are not published",
    "too-many-items": f"there are more than {MOST_ITEMS:,} items; the rest is not used",
    "wrong-encoding": "the encoding is not the declared one; the text was read with another",
}


class NotAFeedError(Exception):
    """A document is not a feed; `links` has the feeds that it names, if it is a web page."""

    def __init__(self, message: str, links: list[str] | None = None) -> None:
        super().__init__(message)
        self.links = links or []


class Notes:
    """What was mended in a document: how often, with an example."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, example: str = "", count: int = 1) -> None:
        """Count a case; the first example is kept."""
        before, kept = self._found.get(kind, (0, example[:_EXAMPLE]))
        self._found[kind] = (before + count, kept)

    def to_json(self) -> list[dict[str, Any]]:
        """Each kind, in alphabetical order."""
        return [
            {"kind": kind, "count": count, "example": example, "meaning": NOTES[kind]}
            for kind, (count, example) in sorted(self._found.items())
        ]

    @classmethod
    def from_json(cls, found: list[dict[str, Any]]) -> Notes:
        """Notes that `to_json` wrote."""
        notes = cls()
        for one in found:
            notes.add(one["kind"], one["example"], one["count"])
        return notes


@dataclass(frozen=True)
class FeedItem:
    """One item. Texts are plain, without markup and control characters."""

    id: str  # empty if it has none
    link: str  # an absolute web address, or empty
    title: str
    body: str
    author: str = ""
    categories: tuple[str, ...] = ()
    lang: str = ""  # a primary language such as "en"
    published: int | None = None  # microseconds since 1970, as the document says


@dataclass(frozen=True)
class FeedDocument:
    """A document."""

    kind: str  # such as "rss20", "atom10", "json11"
    title: str = ""
    home: str = ""  # the web page that the feed belongs to
    # The publisher asks not to be read more often than this: seconds, hours (UTC), days (Monday 0).
    least_interval: float = 0.0
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()
    items: tuple[FeedItem, ...] = ()
    notes: Notes = field(default_factory=Notes)

    def to_json(self) -> dict[str, Any]:
        """The document as JSON values."""
        plain = {name: value for name, value in vars(self).items() if name not in _NESTED}
        items = [asdict(item) for item in self.items]
        return {**plain, "items": items, "notes": self.notes.to_json()}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> FeedDocument:
        """A document that `to_json` wrote."""
        items = tuple(
            FeedItem(**{**item, "categories": tuple(item["categories"])}) for item in found["items"]
        )
        days, hours = tuple(found["skip_days"]), tuple(found["skip_hours"])
        notes = Notes.from_json(found["notes"])
        nested = {"items": items, "notes": notes, "skip_days": days, "skip_hours": hours}
        return cls(**{**found, **nested})


_NESTED: Final = ("items", "notes")
