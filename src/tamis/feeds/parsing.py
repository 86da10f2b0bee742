"""Reads a document of a feed: RSS 0.9x, 1.0 (RDF) and 2.0, Atom, JSON Feed.

feedparser reads the XML ones: it repairs broken XML, wrong encodings and undefined entities without
losing items, which a faster parser that was compared with it does not.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any, Final

from tamis.feeds.cleaning import (
    keep_items,
    read_language,
    read_link,
    read_moment,
    read_names,
    read_parts,
    read_text,
    read_title,
)
from tamis.feeds.discovery import find_feed_links
from tamis.feeds.documents import (
    MOST_ITEMS,
    MOST_LINK,
    FeedDocument,
    FeedItem,
    NotAFeedError,
    Notes,
)
from tamis.feeds.encodings import mend_encoding
from tamis.feeds.html_text import clean_line
from tamis.feeds.json_feed import read_json_feed

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PERIODS: Final = {"hourly": 3_600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000}
_HEAD: Final = 2_048  # bytes in which a document shows what it is
_FEED: Final = re.compile(rb"<\s*(?:rss|rdf|feed|[a-z]+:(?:rdf|rss|feed))\b", re.IGNORECASE)
_PAGE: Final = re.compile(rb"<\s*(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
# The tags of items and of the first element; a beginning or an end of all only if it is complete.
_MARK: Final = re.compile(
    rb"<(?:\w+:)?(?:(item|entry)|rss|feed|rdf)\b[^<>]*>"
    rb"|</(?:\w+:)?(?:(item|entry)\b|(rss|feed|rdf)\s*>)",
    re.IGNORECASE,
)
_REFERENCE: Final = re.compile(rb"&#(x[0-9a-f]+|\d+);?", re.IGNORECASE)
_LONGEST_LIST: Final = 4_096  # bytes of skipHours and of skipDays
_LONGEST_TTL: Final = 366 * 86_400.0  # seconds: the time of a larger one may be no finite number
_UTF_8: Final = b"\xef\xbb\xbf"


def read_document(body: bytes, content_type: str = "", url: str = "") -> FeedDocument:
    """The feed in a body; raises a `NotAFeedError` if it has none.

    Everything that is wrong in it and can be mended is mended, and is in its notes.
    """
    start = body.removeprefix(_UTF_8).lstrip()[:_HEAD]
    if not start:
        raise NotAFeedError("the document is empty")
    if start[:1] in b"{[":
        return read_json_feed(body.removeprefix(_UTF_8), url)
    if _PAGE.search(start) and not _FEED.search(start):
        raise NotAFeedError("the document is a web page", find_feed_links(body, url))
    return _read_xml(body, content_type, url)


def _read_xml(given: bytes, given_type: str, url: str) -> FeedDocument:
    notes = Notes()
    body, content_type = mend_encoding(given, given_type, notes)
    try:
        found = _parse(body, content_type)
    except (ValueError, OverflowError):  # feedparser fails at references to no character
        found = _parse(_REFERENCE.sub(_keep_character, body), content_type)
        found["bozo"], found["bozo_exception"] = True, ValueError("a reference to no character")
    if not found.get("version"):
        raise NotAFeedError("the document is neither RSS nor Atom nor JSON Feed")
    entries = found.entries
    if found.get("bozo"):
        entries = _note_faults(found.get("bozo_exception"), body, entries, notes)
    if len(entries) > MOST_ITEMS:
        notes.add("too-many-items", count=len(entries) - MOST_ITEMS)
    feed = found.feed
    hours, days = _read_skipped(body)
    language = read_language(feed.get("language"), notes)
    items = [_read_entry(entry, language, url, notes) for entry in entries[:MOST_ITEMS]]
    return FeedDocument(
        kind=found.version,
        title=read_title(
            feed.get("title"), is_html=_is_html(feed.get("title_detail")), notes=notes
        ),
        home=read_link(feed.get("link"), url),
        least_interval=_read_interval(feed),
        skip_hours=hours,
        skip_days=days,
        items=keep_items(items, notes),
        notes=notes,
    )


def _parse(body: bytes, content_type: str) -> Any:
    import feedparser

    # As a file: feedparser opens files and addresses that bytes or texts name. Without the address
    # of the document: ids would be resolved by it, and change when a feed moves. Without a type
    # that names no charset: feedparser would take text/xml for ASCII, which RFC 7303 has ended.
    has_charset = "charset" in content_type.lower()
    return feedparser.parse(
        BytesIO(body),
        response_headers={"content-type": content_type} if has_charset else {},
        resolve_relative_uris=False,
        sanitize_html=False,
    )


def _keep_character(found: re.Match[bytes]) -> bytes:
    """A character reference, if there is such a character."""
    digits = found[1].lower()
    number = int(digits[1:], 16) if digits[:1] == b"x" else int(digits)
    is_one = number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return found[0] if is_one else b""


def _note_faults(error: Any, body: bytes, entries: list[Any], notes: Notes) -> list[Any]:
    """The entries to use of a document that feedparser had to mend."""
    kind = type(error).__name__
    if kind == "CharacterEncodingOverride":
        notes.add("wrong-encoding", clean_line(str(error)))
        return entries
    if kind == "NonXMLContentType":
        return entries  # many servers say text/html or text/plain, and it harms nothing
    notes.add("broken-xml", clean_line(f"{kind}: {error}"))
    is_whole, is_item_open = _find_end(body)
    if is_whole:
        return entries
    notes.add("cut-off", clean_line(str(entries[-1].get("title", "")) if entries else ""))
    return entries[:-1] if is_item_open else entries


def _find_end(body: bytes) -> tuple[bool, bool]:
    """Whether the first element of a document ends in it, and whether its last item does not."""
    is_whole = is_item_open = False
    for mark in _MARK.finditer(body):
        begun, ended, root = mark.groups()
        is_whole = root is not None
        is_item_open = begun is not None or (is_item_open and ended is None)
    return is_whole, is_item_open


def _read_entry(entry: Any, language: str, url: str, notes: Notes) -> FeedItem:
    given = dict(entry)  # the parser's own class answers with other attributes, and warns of it
    contents = [own for own in given.get("content", ()) if own.get("value")]
    detail = contents[0] if contents else given.get("summary_detail") or {}
    title_detail = given.get("title_detail") or {}
    own_language = given.get("language") or detail.get("language") or title_detail.get("language")
    tags = given.get("tags") or ()
    names = (tag.get("label") or tag.get("term") for tag in tags)
    return FeedItem(
        id=clean_line(given.get("id") or "")[:MOST_LINK],
        link=_read_item_link(given, url, notes),
        title=read_title(given.get("title"), is_html=_is_html(title_detail), notes=notes),
        body=read_text(detail.get("value"), is_html=_is_html(detail), notes=notes),
        author=next(iter(read_names([given.get("author")])), ""),
        categories=read_names(names),
        lang=read_language(own_language, notes) or language,
        published=_read_published(given, notes),
    )


def _read_item_link(given: dict[str, Any], url: str, notes: Notes) -> str:
    link = str(given.get("link") or "")
    # By default the id of RSS is a link; many feeds with other ids do not declare that.
    is_id = given.get("guidislink") and link == given.get("id")
    return "" if is_id and "://" not in link else read_link(link, url, notes)


def _read_published(given: dict[str, Any], notes: Notes) -> int | None:
    for name in ("published", "updated", "created"):
        if given.get(name):
            return read_moment(given[name], read_parts(given.get(f"{name}_parsed")), notes)
    return read_moment(None, None, notes)


def _is_html(detail: Any) -> bool:
    return bool(detail) and "html" in str(detail.get("type"))


def _read_interval(feed: Any) -> float:
    """How many seconds the publisher asks to wait between fetches."""
    minutes = str(feed.get("ttl", "")).strip()
    ttl = float(minutes) * 60 if minutes.isascii() and minutes.isdigit() else 0.0
    period = _PERIODS.get(str(feed.get("sy_updateperiod", "")).strip().lower(), 0)
    times = str(feed.get("sy_updatefrequency", "1")).strip()
    frequency = int(times) if times.isascii() and times.isdigit() and len(times) < 6 else 1
    return min(max(ttl, period / max(1, frequency)), _LONGEST_TTL)


def _read_skipped(body: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The hours and days of an RSS channel in which it does not change; feedparser keeps only the
    last of each.
    """
    hours = {
        int(own) % 24
        for own in re.findall(rb"<hour\b[^<>]*>\s*(\d{1,2})\s*</", _cut(body, b"skipHours"))
    }
    named = re.findall(rb"<day\b[^<>]*>\s*(\w+)\s*</", _cut(body, b"skipDays"))
    days = {own.decode("ascii", "replace").lower() for own in named}
    return tuple(sorted(hours)), tuple(n for n, day in enumerate(_DAYS) if day in days)


def _cut(body: bytes, name: bytes) -> bytes:
    """What is in the first element of a name, in small letters."""
    found = re.search(rb"<%s(?:\s[^<>]*)?>" % name, body, re.IGNORECASE)
    if found is None:
        return b""
    content = body[found.end() : found.end() + _LONGEST_LIST].lower()
    inner, end, _ = content.partition(b"</%s" % name.lower())
    return inner if end else b""
