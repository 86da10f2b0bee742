"""How an event is shown to people: its title, its link, its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

if TYPE_CHECKING:
    from tamis.broker.mail import MailedMatch
    from tamis.broker.stories import Story

_TITLES: Final = ("title", "subject", "name")
_LINKS: Final = ("url", "link")
_TEXT: Final = "body"  # as the items of feeds have it
MOST_TITLE: Final = 300  # characters
MOST_TEXT: Final = 20_000
# What XML cannot have in any form; surrogates cannot be written as UTF-8 either.
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BREAKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Headline(NamedTuple):
    """An event as people read it."""

    title: str  # one line
    url: str | None  # of the web
    text: str  # what it says itself, or the event, indented


def find_headline(match: MailedMatch) -> Headline:
    """The title, the link and the text that an event has itself, if it has them."""
    event = _read(match.content)
    fields: dict[str, Any] = event if isinstance(event, dict) else {}
    titles = (clean_line(fields[own]) for own in _TITLES if isinstance(fields.get(own), str))
    title = next((own for own in titles if own), f"Event {match.event}")
    links = (fields[own] for own in _LINKS if isinstance(fields.get(own), str))
    url = next((own for own in links if is_web_address(own)), None)
    text = fields.get(_TEXT)
    if isinstance(text, str) and text.strip():
        return Headline(title, url, _cut(text))
    return Headline(title, url, _spell(event, match.content))


def count_similar(story: Story) -> str:
    """How many matches are grouped under the first one."""
    return f"and {len(story.similar):,} similar:"


def list_similar(story: Story) -> list[str]:
    """Lines with the titles and the links of what is grouped under the first one."""
    lines = [count_similar(story)]
    for match in story.similar:
        headline = find_headline(match)
        link = "" if headline.url is None else f": {headline.url}"
        lines.append(f"- {headline.title}{link}")
    return lines


def clean_line(text: str) -> str:
    """Text of others as one line without control characters: it cannot break a header."""
    return _BREAKS.sub(" ", clean_text(text)).strip()[:MOST_TITLE]


def clean_text(text: str) -> str:
    """Text of others without characters that XML cannot have."""
    return _NOT_XML.sub("\ufffd", text)


def is_web_address(text: str) -> bool:
    """Whether a text is the address of a page; no script hides behind it."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    is_plain = text.isprintable() and " " not in text and len(text) < 2_048
    return parts.scheme in ("http", "https") and bool(parts.netloc) and is_plain


def _read(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _spell(event: Any, content: bytes | None) -> str:
    if content is None:
        return "The event is no longer in the archive."
    if event is None:
        text = content.decode(errors="replace")
    else:
        text = orjson.dumps(event, option=orjson.OPT_INDENT_2).decode()
    return _cut(text)


def _cut(text: str) -> str:
    is_long = len(text) > MOST_TEXT
    return clean_text(text[:MOST_TEXT]) + (" …" if is_long else "")
