"""Reads JSON Feed, versions 1 and 1.1."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import orjson

from tamis.feeds.cleaning import (
    keep_items,
    read_language,
    read_link,
    read_moment,
    read_names,
    read_text,
    read_title,
)
from tamis.feeds.documents import (
    MOST_ITEMS,
    MOST_LINK,
    FeedDocument,
    FeedItem,
    NotAFeedError,
    Notes,
)
from tamis.feeds.html_text import clean_line

_VERSION: Final = "https://jsonfeed.org/version/"


def read_json_feed(body: bytes, url: str) -> FeedDocument:
    """The feed in a JSON document; raises a `NotAFeedError` if it is another document."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotAFeedError(f"the document is not JSON: {error}") from None
    items = found.get("items") if isinstance(found, dict) else None
    version = str(found.get("version", "")) if isinstance(found, dict) else ""
    if not isinstance(items, list) or "jsonfeed.org/version/" not in version:
        raise NotAFeedError("the document is JSON, but not a JSON Feed")
    notes = Notes()
    if len(items) > MOST_ITEMS:
        notes.add("too-many-items", count=len(items) - MOST_ITEMS)
    language = read_language(found.get("language"), notes)
    read = []
    for item in items[:MOST_ITEMS]:
        if isinstance(item, dict):
            read.append(_read_item(item, language, url, notes))
        else:
            notes.add("bad-json-item", repr(item)[:80])
    return FeedDocument(
        kind="json" + version.rpartition("/")[2].replace(".", "")[:4],
        title=read_title(found.get("title"), is_html=False, notes=notes),
        home=read_link(found.get("home_page_url"), url),
        items=keep_items(read, notes),
        notes=notes,
    )


def _read_item(item: dict[str, Any], language: str, url: str, notes: Notes) -> FeedItem:
    html = item.get("content_html")
    is_html = isinstance(html, str) and bool(html)
    body = html if is_html else item.get("content_text") or item.get("summary")
    identity = item.get("id")
    is_id = isinstance(identity, str | int | float) and not isinstance(identity, bool)
    date = item.get("date_published") or item.get("date_modified")
    tags = item.get("tags")
    return FeedItem(
        id=clean_line(str(identity))[:MOST_LINK] if is_id else "",
        link=read_link(item.get("url") or item.get("external_url"), url, notes),
        title=read_title(item.get("title"), is_html=False, notes=notes),
        body=read_text(body, is_html=is_html, notes=notes),
        author=next(iter(read_names(_list_authors(item))), ""),
        categories=read_names(tags if isinstance(tags, list) else ()),
        lang=read_language(item.get("language"), notes) or language,
        published=read_moment(date, _read_date(date), notes),
    )


def _list_authors(item: dict[str, Any]) -> list[Any]:
    authors = item.get("authors")
    given = authors if isinstance(authors, list) else [item.get("author")]
    return [own.get("name") for own in given if isinstance(own, dict)]


def _read_date(text: Any) -> datetime | None:
    """A date of RFC 3339; without a zone, it is UTC."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        if moment is None:
            return None
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return zoned.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
