"""Matches as an Atom feed (RFC 4287) and as a JSON feed (version 1.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree import ElementTree

import orjson

from tamis.broker.headlines import clean_line, find_headline, list_similar
from tamis.language.moments import spell_moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tamis.broker.mailbox import Mailbox
    from tamis.broker.stories import Story

ATOM: Final = "application/atom+xml"
JSON_FEED: Final = "application/feed+json"
_AUTHORITY: Final = "tag:tamis.invalid,2026"  # ids do not depend on the address of the server


class FeedContents(NamedTuple):
    """What a feed shows."""

    title: str
    mailbox: Mailbox
    epoch: str
    updated: datetime  # of the newest match, or when the feed was made
    stories: Sequence[Story]  # the newest first
    address: str  # of the feed itself


def name_feed(contents: FeedContents) -> str:
    """The id of a feed."""
    return f"{_AUTHORITY}:feed/{contents.mailbox}"


def name_entry(contents: FeedContents, event: int) -> str:
    """The id of an entry: the same for ever, and of no other event."""
    return f"{_AUTHORITY}:match/{contents.epoch}/{event}/{contents.mailbox}"


def write_atom(contents: FeedContents) -> bytes:
    """The feed as Atom."""
    feed = ElementTree.Element("feed", {"xmlns": "http://www.w3.org/2005/Atom"})
    _add(feed, "id", name_feed(contents))
    _add(feed, "title", clean_line(contents.title))
    _add(feed, "updated", spell_moment(contents.updated))
    _add(feed, "link", None, rel="self", type=ATOM, href=contents.address)
    _add(_add(feed, "author", None), "name", "Tamis")
    for story in contents.stories:
        match, headline = story.match, find_headline(story.match)
        entry = _add(feed, "entry", None)
        _add(entry, "id", name_entry(contents, story.event))
        _add(entry, "title", headline.title)
        _add(entry, "updated", spell_moment(match.moment))
        _add(entry, "published", spell_moment(match.moment))
        if headline.url is not None:
            _add(entry, "link", None, rel="alternate", href=headline.url)
        for name in match.subscriptions:
            _add(entry, "category", None, term=clean_line(name))
        for other in map(find_headline, story.similar):
            if other.url is not None:
                _add(entry, "link", None, rel="related", href=other.url, title=other.title)
        _add(entry, "content", headline.text + _spell_similar(story), type="text")
    text = ElementTree.tostring(feed, "unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'.encode()


def write_json(contents: FeedContents) -> bytes:
    """The feed as a JSON feed."""
    items = []
    for story in contents.stories:
        match, headline = story.match, find_headline(story.match)
        item: dict[str, Any] = {
            "id": name_entry(contents, story.event),
            "title": headline.title,
            "content_text": headline.text + _spell_similar(story),
            "date_published": spell_moment(match.moment),
            "tags": [clean_line(name) for name in match.subscriptions],
        }
        items.append(item if headline.url is None else item | {"url": headline.url})
    return orjson.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": clean_line(contents.title),
            "feed_url": contents.address,
            "items": items,
        }
    )


def _spell_similar(story: Story) -> str:
    return "".join(f"\n{line}" for line in ["", *list_similar(story)]) if story.similar else ""


def _add(
    parent: ElementTree.Element, name: str, text: str | None, **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, name, attributes)
    element.text = text
    return element
