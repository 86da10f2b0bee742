"""Makes items of what a feed says: texts are cut, links and languages checked, faults counted."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from tamis.feeds.documents import (
    MOST_BODY,
    MOST_CATEGORIES,
    MOST_LINK,
    MOST_NAME,
    MOST_TITLE,
    FeedItem,
    Notes,
)
from tamis.feeds.html_text import clean_line, clean_text, to_text
from tamis.feeds.languages import find_language
from tamis.language.types.moments import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from time import struct_time

_LANGUAGE: Final = re.compile(r"([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{1,8})*")
_MOST_HTML: Final = 10 * MOST_BODY  # characters that are parsed
_DAY_NAME: Final = re.compile(r"\s*[^\W\d_]+\.?(?:\s*,\s*|\s+)(?=\d)")
_OLDEST: Final = datetime(1900, 1, 1, tzinfo=UTC)


def read_text(value: Any, *, is_html: bool, notes: Notes, most: int = MOST_BODY) -> str:
    """Plain text of at most so many characters."""
    given = value if isinstance(value, str) else ""
    html = given[:_MOST_HTML] if is_html else given
    text = to_text(html) if is_html else clean_text(given)
    if len(text) > most or len(html) < len(given):
        notes.add("cut-text", text[:80])
    return text[:most].rstrip()


def read_title(value: Any, *, is_html: bool, notes: Notes) -> str:
    """A title, on one line."""
    return read_text(value, is_html=is_html, notes=notes, most=MOST_TITLE).replace("\n", " ")


def read_link(value: Any, base: str, notes: Notes | None = None) -> str:
    """An absolute web address; empty if the text is not one."""
    if not isinstance(value, str) or not value.strip():
        return ""
    try:
        link = urljoin(base, clean_line(value))
        parts = urlsplit(link)
        is_link = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_link = False
    if not is_link or len(link) > MOST_LINK:
        if notes is not None:
            notes.add("bad-link", clean_line(value))
        return ""
    return link


def read_language(value: Any, notes: Notes) -> str:
    """The primary language of a tag, in small letters: "en" of "en-US", of "EN_us" and of "eng"."""
    if not isinstance(value, str) or not value.strip():
        return ""
    found = _LANGUAGE.fullmatch(value.strip())
    language = None if found is None else find_language(found[1])
    if language is None:
        notes.add("bad-language", clean_line(value))
    return language or ""


def read_names(values: Iterable[Any]) -> tuple[str, ...]:
    """Names such as categories, each once, in order."""
    names = (clean_line(value)[:MOST_NAME] for value in values if isinstance(value, str))
    return tuple(dict.fromkeys(filter(None, names)))[:MOST_CATEGORIES]


def read_parts(parts: struct_time | None) -> datetime | None:
    """The moment that feedparser read; None if it is impossible."""
    try:
        return None if parts is None else datetime(*parts[:6], tzinfo=UTC)
    except ValueError:
        return None


def read_moment(given: Any, moment: datetime | None, notes: Notes) -> int | None:
    """The microseconds of a date, if it can be true; `given` is its text, for the notes."""
    moment = moment or _read_without_day(given)
    if not given:
        notes.add("no-date")
    elif moment is None:
        notes.add("bad-date", clean_line(str(given)))
    elif moment < _OLDEST:
        notes.add("old-date", clean_line(str(given)))
    else:
        return to_microseconds(moment)
    return None


def _read_without_day(given: Any) -> datetime | None:
    """The moment of a date whose day of the week is not English, as in "Lun, 02 Jan 2006 …"; that
    day says nothing that the date does not.
    """
    found = _DAY_NAME.match(given) if isinstance(given, str) else None
    if found is None:
        return None
    try:
        moment = parsedate_to_datetime(given[found.end() :])
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return zoned.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def keep_items(items: Iterable[FeedItem], notes: Notes) -> tuple[FeedItem, ...]:
    """The items with a title, a text or a link."""
    kept = []
    for item in items:
        if not (item.title or item.body or item.link):
            notes.add("empty-item", item.id)
            continue
        if not item.id:
            notes.add("no-id", item.title)
        kept.append(item)
    return tuple(kept)
