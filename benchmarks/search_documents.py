"""Real documents and queries for searches: abstracts of arXiv, stories of Reuters, items of feeds,
and web queries.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tamis.feeds.parsing import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
_NUMBERS: Final = re.compile(r"^\d+(?:\t|:(?:\d+:)?)")
_MONTHS: Final = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()


def read_documents() -> list[dict[str, Any]]:
    """Title, body, the day as a date, and the kind of each document that has a body."""
    return [own for own in read_all_documents() if own.get("body") and "day" in own]


def read_all_documents() -> Iterator[dict[str, Any]]:
    """The same of all documents. 2,535 stories of Reuters have no body, some have no title; items
    of feeds have their tags, and no day.
    """
    yield from _read_abstracts()
    yield from _read_stories()
    yield from _read_items()


def _read_abstracts() -> Iterator[dict[str, Any]]:
    csv.field_size_limit(sys.maxsize)
    for path in sorted((DATA / "arxiv-abstracts").glob("*.tsv.xz")):
        text = io.StringIO(lzma.decompress(path.read_bytes()).decode("utf-8"))
        for row in csv.DictReader(text, delimiter="\t"):
            yield {
                "title": row["title"],
                "body": row["abstract"],
                "day": row["created"],
                "kind": row["primary_cat"],
            }


def _read_stories() -> Iterator[dict[str, Any]]:
    for path in sorted((DATA / "reuters-21578").glob("*.json.gz")):
        for row in json.loads(gzip.decompress(path.read_bytes())):
            day, month, year = row["date"].split()[0].split("-")
            date = f"{year}-{1 + _MONTHS.index(month):02}-{int(day):02}"
            texts = {name: row[name] for name in ("title", "body") if name in row}
            yield {**texts, "day": date, "kind": "reuters"}


def _read_items() -> Iterator[dict[str, Any]]:
    """The items of the feeds that are kept with the data, as a server publishes them."""
    for path in sorted((DATA / "rss-feeds" / "feeds").glob("*.xml")):
        document = read_document(path.read_bytes(), "application/xml", "https://example.com/")
        for item in document.items:
            own = {"title": item.title, "body": item.body, "tags": list(item.categories)}
            yield {**own, "kind": path.stem}


def vary(documents: list[dict[str, Any]], n_documents: int) -> Iterator[dict[str, Any]]:
    """So many documents: the real ones in random order, then again with sentences of others."""
    draw = random.Random(7)
    sentences = [draw.choice(own["body"].split(". ")) for own in documents]
    order = draw.sample(documents, len(documents))
    for at in range(n_documents):
        own = order[at % len(order)]
        if at >= len(order):
            parts = own["body"].split(". ")
            parts[draw.randrange(len(parts))] = draw.choice(sentences)
            own = own | {"body": ". ".join(parts)}
        yield own


def read_queries() -> list[str]:
    """Web queries of TREC, without their numbers and priorities, `17:4:bowflex recall`."""
    found = []
    for path in sorted((DATA / "trec-web-queries").glob("*.txt")):
        if path.name != "SOURCE.txt":
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            found += [_NUMBERS.sub("", line).strip() for line in lines]
    return found


def read_excite_queries() -> list[str]:
    """Queries of the log of Excite, without their users and times."""
    lines: list[str] = []
    for path in sorted((DATA / "excite-queries").glob("*.log")):
        lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [own.rpartition("\t")[2] for own in lines]
