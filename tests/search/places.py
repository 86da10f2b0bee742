"""Archives of documents, random queries about them, and what the reference evaluator says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from tamis.archive import Archive
from tamis.events.json_texts import parse_event
from tamis.language import Schema
from tamis.language.check import check
from tamis.language.parser import parse
from tamis.logic.evaluate import Missing, evaluate
from tamis.search import Asked, Budget, Order, Page, Query, Search, SearchIndexes
from tests.archive.places import make_entry

SCHEMA = Schema.of(
    "title STRING, body TEXT(english), tag TEXT(keyword), `a.b` STRING, note.text TEXT(standard), "
    "price INTEGER, any_text STRING"
)
WORDS = (
    *("oil", "gas", "prices", "price", "the", "of", "weapons", "mass", "e-mail", "Łódź", "don't"),
    *("日", "本", "👍", "3.14", "C++", "x" * 120, "y" * 101),
)
UNLIMITED = Budget()
TEXTS = ("title", "body", "tag", "`a.b`", "note.text")


def draw_document(draw: random.Random) -> dict[str, Any]:
    """A document; attributes may be missing, or of another type."""

    def text() -> str:
        return draw.choice([" ", ", ", "\n"]).join(draw.choices(WORDS, k=draw.choice([0, 1, 3, 9])))

    found: dict[str, Any] = {
        "title": text(),
        "body": text(),
        "tag": draw.choice(["oil", "oil gas", " ", "", text()]),
        "a.b": text(),
        "note": draw.choice([{"text": text()}, {"text": None}, {}, text(), [text()]]),
        "price": draw.randint(0, 5),
    }
    for name in list(found):
        if draw.random() < 0.15:
            found[name] = draw.choice([None, 7, ["oil"], True])
        if draw.random() < 0.1:
            del found[name]
    return found


def draw_expression(draw: random.Random, depth: int = 3) -> str:
    """An expression over words and numbers, as text."""
    if depth == 0 or draw.random() < 0.25:
        return _draw_leaf(draw)
    below = [draw_expression(draw, depth - 1) for _ in range(draw.choice([1, 2, 2, 3]))]
    kind = draw.random()
    if kind < 0.2 or len(below) == 1:
        return f"NOT ({below[0]})"
    if kind < 0.3:
        return f"AT LEAST {draw.randint(1, len(below))} OF ({', '.join(below)})"
    word = draw.choice(["AND", "AND", "OR", "OR", "XOR"])
    return f" {word} ".join(f"({own})" for own in below)


OPEN = (  # wildcards and distances, which an index of words does not find
    "matches(body, 'ura*')",
    "matches_any((title, `a.b`), '*il gas')",
    "matches_phrase(body, 'weap* of mass')",
    "matches(title, 'g?s oil')",
    "near(body, 'oil gas', 2)",
    "near_in_order((title, body), 'gas oil', 1)",
    "near(body, 'ura* oil', 3)",
)


def _draw_leaf(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.15:
        return draw.choice(["price > 2", "price IN (1, 3)", "title IS NULL", "body LIKE '%oil%'"])
    if kind < 0.2:
        return draw.choice(["TRUE", "FALSE", "matches(lower(title), 'oil')"])
    if kind < 0.3:
        return draw.choice(OPEN)
    words = draw.choices([own for own in WORDS if own not in ("the", "of")], k=draw.randint(1, 3))
    query = " ".join(words).replace("'", "\\'")
    where = draw.choice([*TEXTS, "(title, `a.b`)", "(title, note.text)"])
    if kind < 0.45:
        return f"matches_phrase({where}, '{query}')"
    if kind < 0.5:
        return "matches_phrase(body, 'weapons of mass')"
    if kind < 0.6:
        return f"matches_any({where}, '{query}')"
    if kind < 0.65 and where != "tag":
        return f"matches_at_least(1, {where}, '{query}')"
    return f"matches({where}, '{query}')"


class Documents:
    """An archive of documents, and a list of the same."""

    def __init__(self, folder: Path) -> None:
        self.archive = Archive.open(folder)
        self.indexes = SearchIndexes(self.archive)
        self.search = Search(self.archive, self.indexes)
        self.texts: list[bytes] = []

    def add(self, documents: Sequence[dict[str, Any]], moment: int = 0) -> None:
        """Publish documents together."""
        texts = [orjson.dumps(own) for own in documents]
        self.archive.append([make_entry(texts, [[] for _ in texts], moment=moment)])
        self.texts += texts

    def build(self) -> None:
        """Index what is closed."""
        self.indexes.build(self.indexes.plan())

    def judge(self, expression: str, missing: Missing = Missing.UNDEFINED) -> list[int]:
        """The numbers of the documents that match, by the reference evaluator."""
        condition = check(parse(expression), SCHEMA)
        return [
            number
            for number, text in enumerate(self.texts, start=1)
            if evaluate(condition, parse_event(text), missing) is True
        ]

    def pages(self, query: Query, asked: Asked, budget: Budget = UNLIMITED) -> list[Page]:
        """All pages, one after the other."""
        found = [self.search.find(query, asked, budget)]
        while found[-1].place is not None:
            assert len(found) < 10_000
            found.append(self.search.find(query, asked._replace(place=found[-1].place), budget))
        return found

    def find(
        self, query: Query, order: Order = Order.NEWEST, limit: int = 10, **more: Any
    ) -> list[int]:
        """The numbers of all hits, in order."""
        pages = self.pages(query, Asked(order=order, limit=limit, **more))
        assert all(len(own.hits) == limit for own in pages[:-1])
        return [hit.event.number for page in pages for hit in page.hits]
