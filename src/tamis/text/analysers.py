"""Analysers: how a text becomes the words by which it is searched.

| name | words | case | accents | stop words | stems |
|---|---|---|---|---|---|
| `keyword` | the whole text is one | kept | kept | kept | no |
| `simple` | Unicode's | folded | kept | kept | no |
| `standard` | Unicode's | folded | folded | kept | no |
| `standard_english`, … | Unicode's | folded | folded | left out | no |
| `english`, … | Unicode's | folded | folded | left out | Snowball's |

The same object analyses queries and documents, so that both agree on which words are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final
from unicodedata import unidata_version

from tamis.errors import SchemaError, suggest
from tamis.text.fold import fold_accents, fold_case
from tamis.text.segment import segment
from tamis.text.stop_words import STOP_WORDS
from tamis.text.word_break_classes import UNICODE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_ANALYSER: Final = "standard"
_PLAIN: Final = ("keyword", "simple", "standard")
# The languages that Snowball supports.
LANGUAGES: Final = tuple(
    "arabic armenian basque catalan czech danish dutch english esperanto estonian finnish french "
    "german greek hindi hungarian indonesian irish italian lithuanian nepali norwegian persian "
    "polish portuguese romanian russian serbian sesotho spanish swedish tamil turkish "
    "yiddish".split()
)
ANALYSERS: Final = (*_PLAIN, *(f"standard_{name}" for name in sorted(STOP_WORDS)), *LANGUAGES)
_REMEMBERED: Final = 1 << 16  # words whose form is cached
ANY_WORD: Final = ""  # in the place of a stop word: matches any word


@dataclass(frozen=True, slots=True)
class Analyser:
    """Splits a text into words; made by `get_analyser`."""

    name: str
    takes_whole: bool  # the whole text is one word, unchanged
    is_turkish: bool  # the case pairs are I and ı, İ and i
    normalize: Callable[[str], str] = field(compare=False, repr=False)  # makes the searched form

    def words(self, text: str) -> list[str]:
        """The words of a text in order, with ANY_WORD in the place of each stop word."""
        if self.takes_whole:
            return [text] if text else []
        return list(map(self.normalize, segment(text)))


@cache
def get_analyser(name: str) -> Analyser:
    """The analyser of that name; raises `SchemaError` if it is unknown."""
    if name not in ANALYSERS:
        likely = suggest(name, ANALYSERS)
        raise SchemaError(
            f'unknown analyser "{name}"' + (f'; did you mean "{likely}"?' if likely else ""),
            hint=f"allowed: {', '.join(_PLAIN)}, standard_<language>, or a language: "
            f"{', '.join(LANGUAGES)}",
        )
    if name == "keyword":
        return Analyser(name, True, False, str)
    language = name.removeprefix("standard_")
    is_turkish = language == "turkish"
    if name == "simple":
        return Analyser(name, False, False, lru_cache(_REMEMBERED)(fold_case))
    stem = _stemmer(name) if name in LANGUAGES else None
    normalize = _normalizer(STOP_WORDS.get(language, ""), stem, is_turkish=is_turkish)
    return Analyser(name, False, is_turkish, lru_cache(_REMEMBERED)(normalize))


def analyser_versions(name: str) -> dict[str, str]:
    """The versions of the libraries and data on which the words of this analyser depend."""
    if get_analyser(name).takes_whole:
        return {}
    versions = {"word boundaries": UNICODE_VERSION, "Unicode of Python": unidata_version}
    if name in LANGUAGES:
        import Stemmer

        versions["PyStemmer"] = Stemmer.version()
    return versions


def has_words(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the wanted words are adjacent, in order, among the words of a text."""
    n_wanted = len(wanted)
    if n_wanted == 1:
        return wanted[0] in words
    return any(
        all(want in (ANY_WORD, words[at + i]) for i, want in enumerate(wanted))
        for at in range(len(words) - n_wanted + 1)
    )


def _normalizer(
    stop_words: str, stem: Callable[[str], str] | None, *, is_turkish: bool
) -> Callable[[str], str]:
    """The form of a word: folded, then stemmed, then without accents, which stemmers need."""
    stops = frozenset(fold_accents(fold_case(word)) for word in stop_words.split())

    def normalize(word: str) -> str:
        folded = fold_case(word, is_turkish=is_turkish)
        plain = fold_accents(folded) or folded  # the word is nothing but a spacing accent
        if plain in stops:
            return ANY_WORD
        return plain if stem is None else fold_accents(stem(folded)) or plain

    return normalize


def _stemmer(language: str) -> Callable[[str], str]:
    try:
        import Stemmer
    except ImportError:
        raise SchemaError(
            f'the analyser "{language}" stems words; this requires the package PyStemmer',
            hint=f'pip install \'tamis[text]\', or use "standard_{language}" or "standard"',
        ) from None
    # Words are cached here, once for all forms; a cache below would hold them again.
    stemmer: Any = Stemmer.Stemmer(language, 0)
    stem: Callable[[str], str] = stemmer.stemWord
    return stem
