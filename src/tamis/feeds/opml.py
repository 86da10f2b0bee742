"""OPML: lists of feeds, as feed readers write and read them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final
from xml.parsers.expat.errors import (
    XML_ERROR_INVALID_TOKEN,
    XML_ERROR_UNDEFINED_ENTITY,
    codes,
)
from xml.sax.saxutils import quoteattr

from tamis.broker.sources import MOST_TAGS, NewSource
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_BYTES: Final = 16 << 20
_REPAIRABLE: Final = (
    codes[XML_ERROR_INVALID_TOKEN],
    codes[XML_ERROR_UNDEFINED_ENTITY],
)
_BARE: Final = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d+|#[xX][0-9a-fA-F]+);)")


def read_opml(body: bytes, where: str = "the document") -> list[NewSource]:
    """The feeds of an OPML document; its folders and categories are their tags."""
    if len(body) > MOST_BYTES:
        raise InputError(f"{where} has {len(body):,} bytes; at most {MOST_BYTES:,} are read")
    try:
        root = _parse(body)
    except (ET.ParseError, ValueError, LookupError) as error:
        raise InputError(f"{where} is not XML: {error}", hint="an OPML file is expected") from None
    content = next((own for own in root if _name(own) == "body"), None)
    if _name(root) != "opml" or content is None:
        raise InputError(f"{where} is not OPML: its first element is <{root.tag[:50]}>")
    found = list(_read_outlines(content))
    if not found:
        raise InputError(f"{where} has no feeds", hint="outlines of feeds have an attribute xmlUrl")
    return found


def _parse(body: bytes) -> ET.Element:
    # Expat refuses entities that explode, and loads no external ones.
    try:
        return ET.fromstring(body)
    except ET.ParseError as error:
        if error.code not in _REPAIRABLE:
            raise
        try:  # many programs write & as it is in addresses
            return ET.fromstring(_BARE.sub(b"&amp;", body))
        except ET.ParseError:
            raise error from None


def _name(element: ET.Element) -> str:
    """The name of an element without its namespace; writers disagree about its case."""
    return element.tag.rpartition("}")[2].lower()


def _read_outlines(body: ET.Element) -> Iterator[NewSource]:
    # Not by recursion: folders may be nested deeply.
    waiting: list[tuple[ET.Element, tuple[str, ...]]] = [(own, ()) for own in reversed(body)]
    while waiting:
        outline, folders = waiting.pop()
        if _name(outline) != "outline":
            continue
        given = {name.lower(): " ".join(value.split()) for name, value in outline.items()}
        name = given.get("title") or given.get("text") or ""
        if url := given.get("xmlurl"):
            categories = [own.strip("/ ") for own in given.get("category", "").split(",")]
            tags = tuple(dict.fromkeys(filter(None, (*folders, *categories))))
            yield NewSource(url, name, tags)
        # A source with more tags is refused.
        inner = (*folders, name)[: MOST_TAGS + 1] if name else folders
        waiting += [(own, inner) for own in reversed(outline)]


def write_opml(sources: Iterable[NewSource], title: str = "Feeds of Tamis") -> str:
    """The OPML document of feeds: the first tag is a folder, all of them are categories."""
    folders: dict[str, list[NewSource]] = {}
    for source in sources:
        folders.setdefault(source.tags[0] if source.tags else "", []).append(source)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<opml version="2.0">']
    lines += [f"  <head><title>{_escape(title)}</title></head>", "  <body>"]
    for folder, own in sorted(folders.items()):
        if folder:
            lines.append(f"    <outline text={quoteattr(folder)}>")
        lines += [f"    {'  ' if folder else ''}{_write_outline(source)}" for source in own]
        if folder:
            lines.append("    </outline>")
    return "\n".join([*lines, "  </body>", "</opml>", ""])


def _write_outline(source: NewSource) -> str:
    title = quoteattr(source.title or source.url)
    tags = _write_tags(source.tags)
    return f'<outline type="rss" text={title} xmlUrl={quoteattr(source.url)}{tags}/>'


def _write_tags(tags: Sequence[str]) -> str:
    return f" category={quoteattr(','.join(tags))}" if tags else ""


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
