"""Documents that tests of feeds share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "rss-feeds" / "feeds"


def rss(*items: str, channel: str = "", encoding: str = "utf-8", title: str = "News") -> bytes:
    """An RSS 2.0 document."""
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><rss version="2.0"><channel>'
        f"<title>{title}</title>{channel}{''.join(items)}</channel></rss>"
    )
    return text.encode(encoding)


def item(title: str, **fields: Any) -> str:
    """An item of RSS; `body` is its description, a list makes several elements."""
    names = {"body": "description", "date": "pubDate"}
    given = {"title": title} | {names.get(name, name): value for name, value in fields.items()}
    elements = [
        f"<{name}>{one}</{name}>"
        for name, value in given.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return f"<item>{''.join(elements)}</item>"
