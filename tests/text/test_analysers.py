"""Words, as people expect them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tamis
from tamis.errors import SchemaError
from tamis.text import ANALYSERS, ANY_WORD, get_analyser
from tamis.text.analysers import TextWords
from tamis.text.segment import segment
from tamis.text.wildcards import has_words
from tests.waiting import HANG_SECONDS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\n", []),
        ("... -- !?", []),
        ("Can't stop, won't stop.", ["Can't", "stop", "won't", "stop"]),
        ("'quoted' “and” (so)", ["quoted", "and", "so"]),
        ("example.com e.g. U.S.A.", ["example.com", "e.g", "U.S.A"]),
        ("3.14 1,000,000 3..4 4;5", ["3.14", "1,000,000", "3", "4", "4;5"]),
        ("a.1 1.a a1 1a", ["a", "1", "1", "a", "a1", "1a"]),
        ("snake_case __x__ ___ _1", ["snake_case", "__x__", "_1"]),
        ("key:value wi-fi C++", ["key", "value", "wi", "fi", "C"]),
        ("日本語 カタカナ ひら 한국어", ["日", "本", "語", "カタカナ", "ひ", "ら", "한국어"]),
        ("שלום مرحبا", ["שלום", "مرحبا"]),
        ("nai\u0308ve \u0301x", ["nai\u0308ve", "x"]),
        ("a😀b 👨\u200d👩\u200d👧👍🏽", ["a", "😀", "b", "👨\u200d👩\u200d👧", "👍🏽"]),
        ("🇩🇪🇫🇷🇩 ❤️ ®", ["🇩🇪", "🇫🇷", "🇩", "❤️"]),
        ("soft\u00adhyphen", ["soft\u00adhyphen"]),
    ],
)
def test_segments(text, words):
    assert list(segment(text)) == words


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("keyword", " As It Is. ", [" As It Is. "]),
        ("keyword", "", []),
        ("simple", "Ünïted STRASSE Straße", ["ünïted", "strasse", "strasse"]),
        ("standard", "Ünïted the Houses", ["united", "the", "houses"]),
        ("standard", "I İ ı i", ["i", "i", "i", "i"]),
        ("turkish", "KIZ kız", ["kiz", "kiz"]),
        ("turkish", "EVLERİ evleri", ["ev", "ev"]),  # the dot is no accent that hides the ending
        ("simple", "ＡＢＣ ﬁsh soft\u00adhyphen", ["abc", "fish", "softhyphen"]),
        ("standard", "don’t don't", ["don't", "don't"]),
        ("standard", "Σίσυφος ΣΊΣΥΦΟΣ", ["σισυφοσ", "σισυφοσ"]),
        ("standard", "ёлка Łódź Ørsted Æther", ["елка", "lodz", "orsted", "aether"]),
        ("standard", "हिन्दी が か", ["हिन्दी", "が", "か"]),
        ("standard", "שָׁלוֹם שלום", ["שלום", "שלום"]),
        ("standard", "كَتَبَ كتب", ["كتب", "كتب"]),
        ("standard", "❤️ ❤", ["❤", "❤"]),
        ("standard_english", "The weapons of mass", ["", "weapons", "", "mass"]),
        ("english", "The hashing of Houses", ["", "hash", "", "hous"]),
        ("french", "les étés à Paris", ["", "ete", "", "paris"]),
        ("german", "die Häuser und das Haus", ["", "haus", "", "", "haus"]),
        ("russian", "книги и книга", ["книг", "", "книг"]),
    ],
)
def test_words(name, text, words):
    assert get_analyser(name).words(text) == words


@pytest.mark.parametrize("name", ANALYSERS)
def test_every_analyser_reads_any_text(name):
    analyser = get_analyser(name)
    assert analyser.name == name
    assert analyser.words("") == []
    assert analyser.words("x" * 100_000 + " y") != []


def test_unknown_analysers_are_told():
    with pytest.raises(SchemaError, match='unknown analyser "englsh"; did you mean "english"'):
        get_analyser("englsh")


def test_without_the_stemmer_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['Stemmer'] = None\n"
        "from tamis.text import get_analyser\n"
        "print(get_analyser('standard_english').words('the cat'))\n"
        "get_analyser('english')"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert finished.stdout == "['', 'cat']\n"
    assert "pip install 'tamis[text]'" in finished.stderr


@pytest.mark.parametrize(
    ("wanted", "is_there"),
    [
        (("mass",), True),
        (("weapons", "of", "mass"), True),
        (("weapons", "", "mass"), True),
        (("weapons", "mass"), False),
        (("mass", "weapons"), False),
        (("destruction", "of"), False),
        (("x",), False),
    ],
)
def test_words_side_by_side(wanted, is_there):
    words = ["some", "weapons", "of", "mass", "destruction"]
    assert has_words(TextWords(words, words), wanted) is is_there


@pytest.mark.parametrize("word", ["¸", "\ufc5e", "\ufe70"])
def test_an_accent_alone_is_no_stop_word(word):
    for name in ("standard", "english", "turkish"):
        assert ANY_WORD not in get_analyser(name).words(f"{word} {word}")
    assert tamis.evaluate(f"matches(body, '{word}')", {"body": f"x {word}"}) is True
    assert tamis.evaluate(f"matches_phrase(body, 'x {word} y')", {"body": "x z y"}) is False


def test_stop_words_alone_are_said_to_be():
    problems = tamis.check("matches(body, 'the of')", "body TEXT(english)")
    assert "all are stop words" in problems[0].reason.message
    assert problems[0].reason.hint == (
        'the analyser is english: to search for these words take "standard", which leaves none out'
    )
