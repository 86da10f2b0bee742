"""The search box in several languages: each document is searched as one in its language alone."""

from __future__ import annotations

import random

import pytest

import tamis
from tamis import InputError, search_query
from tamis.text import LANGUAGE_CODES
from tests.effort import SEED, examples

CODES = ("de", "en", "fr")
FIELDS = ("title", "body")
SCHEMA = "title TEXT, body TEXT, tags ARRAY<STRING>, " + ", ".join(
    f"{name}_{code} TEXT({LANGUAGE_CODES[code]})" for code in CODES for name in FIELDS
)
# Forms of the same words, and stop words of one of the languages only.
WORDS = ["Haus", "Häuser", "house", "houses", "maisons", "maison", "die", "the", "les", "oil"]


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        (
            "Haus",
            (
                "NOT (title_de IS NULL AND body_de IS NULL) AND "
                "matches((title_de, body_de), 'Haus') OR "
                "title_de IS NULL AND body_de IS NULL AND matches((title, body), 'Haus')"
            ),
        ),
        ("die", "matches((title, body), 'die')"),  # a stop word in German
        (
            "title:Haus",
            (
                "NOT (title_de IS NULL AND body_de IS NULL) AND matches(title_de, 'Haus') OR "
                "title_de IS NULL AND body_de IS NULL AND matches(title, 'Haus')"
            ),
        ),
    ],
)
def test_queries(query, expression):
    assert search_query(query, FIELDS, languages="de") == expression


def test_one_attribute_and_an_array():
    assert search_query("oil", "a.title", arrays="tags", languages=["de"]) == (
        "NOT a.title_de IS NULL AND (matches(a.title_de, 'oil') OR "
        "exists(tags, x -> matches(x, 'oil'))) OR a.title_de IS NULL AND "
        "(matches(a.title, 'oil') OR exists(tags, x -> matches(x, 'oil')))"
    )
    # Arrays have no versions.
    assert search_query("oil", (), arrays="tags", languages="de") == (
        "exists(tags, x -> matches(x, 'oil'))"
    )


@pytest.mark.parametrize("languages", ["german", ["de", "xx"], [3], 3])
def test_wrong_languages_are_refused(languages):
    with pytest.raises(InputError, match="language"):
        search_query("oil", FIELDS, languages=languages)


def draw_document(draw: random.Random) -> tuple[str | None, dict]:
    """A document and its language; other languages and none are possible."""
    language = draw.choice([*CODES, "xx", None])
    document: dict = {name: " ".join(draw.choices(WORDS, k=draw.randint(0, 4))) for name in FIELDS}
    if draw.random() < 0.2:
        del document[draw.choice(FIELDS)]
    if draw.random() < 0.5:
        document["tags"] = draw.choices(WORDS, k=draw.randint(0, 2))
    if language in CODES:
        document |= {f"{name}_{language}": document[name] for name in FIELDS if name in document}
    return language, document


def draw_query(draw: random.Random) -> str:
    def part() -> str:
        word = draw.choice(WORDS)
        forms = [word, word, f'"{word} {draw.choice(WORDS)}"', f"title:{word}", f"{word[:3]}*"]
        return draw.choice(forms)

    query = draw.choice([" ", " OR ", " "]).join(part() for _ in range(draw.randint(1, 3)))
    return f"({query}) -{part()}" if draw.random() < 0.4 else query


def expect(query: str, arrays: str | tuple, language: str | None, document: dict) -> bool:
    """Whether the document alone is found, by the analyser of its language for its texts."""
    expression = search_query(query, FIELDS, arrays=arrays)
    analyser = LANGUAGE_CODES.get(language or "", "standard")
    types = f"title TEXT({analyser}), body TEXT({analyser}), tags ARRAY<STRING>"
    if (
        tamis.check(expression, types)
        and tamis.check(expression, types)[0].reason.code == "no-words"
    ):
        types = "title TEXT, body TEXT, tags ARRAY<STRING>"
    plain = {name: own for name, own in document.items() if name in (*FIELDS, "tags")}
    return tamis.evaluate(expression, plain, types) is True


def test_every_document_is_searched_in_its_language():
    draw = random.Random(SEED)
    documents = [draw_document(draw) for _ in range(60)]
    queries = [(draw_query(draw), draw.choice([(), "tags"])) for _ in range(examples(60))]
    expressions = {
        str(at): search_query(query, FIELDS, arrays=arrays, languages=CODES)
        for at, (query, arrays) in enumerate(queries)
    }
    index = tamis.build(expressions, SCHEMA)
    assert not index.rejects
    n_found = 0
    for language, document in documents:
        expected = {
            str(at)
            for at, (query, arrays) in enumerate(queries)
            if expect(query, arrays, language, document)
        }
        assert set(index.match(document)) == expected, document
        judged = {
            name
            for name, own in expressions.items()
            if tamis.evaluate(own, document, SCHEMA) is True
        }
        assert judged == expected, document
        n_found += len(expected)
    assert n_found > len(documents)
