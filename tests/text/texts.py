"""Texts of every kind: scripts, marks, emoji, odd spaces, and words that nearly are words."""

from __future__ import annotations

from random import Random
from typing import Final

WORDS: Final = (
    *("house", "Houses", "HASHING", "hash", "don't", "don’t", "e.g", "U.S.A.", "example.com"),
    *("3.14", "3,14", "1,000,000", "a.1", "1.a", "x'y'z", "'quoted'", "_", "__init__", "a_b"),
    *("key:value", "a;b", "1;2", "wi-fi", "C++", "#tag", "@you", "a..b", "3..4", "a.", ".b", "..."),
    *("the", "of", "und", "I", "i", "İ", "ı", "Straße", "STRASSE", "naïve", "nai\u0308ve", "É"),
    *("Σίσυφος", "ΣΊΣΥΦΟΣ", "ёлка", "Ёлка", "ﬁsh", "ＡＢＣ", "½", "²", "ŁÓDŹ", "ﷺ", "Å", "K"),
    *("日本語", "東京", "カタカナ", "ｶﾀｶﾅ", "ひらがな", "한국어", "ภาษาไทย", "हिन्दी", "தமிழ்"),
    *("שלום", "שָׁלוֹם", "ג׳", 'צה"ל', "مرحبا", "مَرْحَبًا", "می\u200cخواهم", "\u200frtl\u200e"),
    *("😀", "👨\u200d👩\u200d👧", "👍🏽", "🇩🇪🇫🇷", "🇩", "❤️", "❤", "1️⃣", "\u200d😀", "®", "©"),
    *("\u0301", "\u0301abc", "soft\u00adhyphen", "zero\u200bwidth", "\ufeffbom", "a\u0301\u0302b"),
    *("\x00", "a\x00b", "\x7f", "a\x7fb", "𝐀𝐁", "\U0010ffff", "x" * 300, "é" * 200, "٣٫١٤", "०"),
)
GAPS: Final = (
    *(" ", " ", " ", " ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028", ""),
    *(", ", ". ", "-", "—", "“", "”", "/", "\x1f", "\x0b", "\u0085"),
)


def random_text(rng: Random, n_most: int = 12) -> str:
    """Some words with anything between them; now and then nothing."""
    pieces = []
    for _ in range(rng.randint(0, n_most)):
        pieces.extend((rng.choice(WORDS), rng.choice(GAPS)))
    return "".join(pieces)


def with_wildcards(rng: Random, word: str) -> str:
    """The word with some of its characters replaced by wildcards; it may have too few left."""
    characters = list(word)
    for _ in range(rng.randint(1, 3)):
        match rng.randint(0, 5):
            case 0 | 1:
                characters = [*characters[: rng.randint(0, len(characters))], "*"]
            case 2:
                characters = ["*", *characters[rng.randint(0, len(characters)) :]]
            case 3:
                characters.insert(rng.randint(0, len(characters)), "*")
            case _ if characters:
                characters[rng.randrange(len(characters))] = "?"
    return "".join(characters)
