"""Finds the feeds that a web page names."""

from __future__ import annotations

from typing import Final

from selectolax.lexbor import LexborHTMLParser

from tamis.feeds.cleaning import read_link

FEED_TYPES: Final = (
    "application/rss+xml",
    "application/atom+xml",
    "application/feed+json",
    "application/rdf+xml",
)
_MOST_LINKS: Final = 20
_MOST_BYTES: Final = 1 << 20  # of a page: links are in its head


def find_feed_links(body: bytes, url: str) -> list[str]:
    """The addresses of the feeds of a page, in its order."""
    tree = LexborHTMLParser(body[:_MOST_BYTES])
    base = tree.css_first("base[href]")
    start = read_link(base.attributes.get("href"), url) if base is not None else ""
    found: dict[str, None] = {}
    for node in tree.css("link[rel][href]"):
        relations = (node.attributes.get("rel") or "").lower().split()
        kind = (node.attributes.get("type") or "").partition(";")[0].strip().lower()
        link = read_link(node.attributes.get("href"), start or url)
        if link and "alternate" in relations and kind in FEED_TYPES:
            found[link] = None
    return list(found)[:_MOST_LINKS]
