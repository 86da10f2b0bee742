"""Analysers: how a text becomes the words it is searched by.

| name | words | case | accents | stop words | stems |
|---|---|---|---|---|---|
| `keyword` | the whole text is one | kept | kept | kept | no |
| `simple` | Unicode's | folded | kept | kept | no |
| `standard` | Unicode's | folded | folded | kept | no |
| `standard_english`, … | Unicode's | folded | folded | left out | no |
| `english`, … | Unicode's | folded | folded | left out | Snowball's |

A query and a document are analysed by the same object, so that what is equal for the one is equal
for the other.
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
from tamis.text.word_break import UNICODE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_ANALYSER: Final = "standard"
_PLAIN: Final = ("keyword", "simple", "standard")
# The languages of Snowball.
LANGUAGES: Final = tuple(
    "arabic armenian basque catalan czech danish dutch english esperanto estonian finnish french "
    "german greek hindi hungarian indonesian irish italian lithuanian nepali norwegian persian "
    "polish portuguese romanian russian serbian sesotho spanish swedish tamil turkish "
    "yiddish".split()
)
ANALYSERS: Final = (*_PLAIN, *(f"standard_{name}" for name in sorted(STOP_WORDS)), *LANGUAGES)
_REMEMBERED: Final = 1 << 16  # words whose form is kept
ANY_WORD: Final = ""  # in the place of a stop word: whatever stands there


@dataclass(frozen=True, slots=True)
class Analyser:
    """How a text becomes words; made by `get_analyser`."""

    name: str
    takes_whole: bool  # the text is one word, as it is
    is_turkish: bool  # I and ı, İ and i are the pairs of cases
    normalize: Callable[[str], str] = field(compare=False, repr=False)  # a word as it is searched

    def words(self, text: str) -> list[str]:
        """The words of a text, one after another; ANY_WORD in the place of a stop word."""
        if self.takes_whole:
            return [text] if text else []
        return list(map(self.normalize, segment(text)))


@cache
def get_analyser(name: str) -> Analyser:
    """The analyser of that name; raises a `SchemaError` where there is none."""
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
    """The versions of all that the words of this analyser depend on."""
    if get_analyser(name).takes_whole:
        return {}
    versions = {"word boundaries": UNICODE_VERSION, "Unicode of Python": unidata_version}
    if name in LANGUAGES:
        import Stemmer

        versions["PyStemmer"] = Stemmer.version()
    return versions


def has_words(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the wanted words stand side by side among the words of a text."""
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
    """A word's form: folded, then stemmed, then without accents, which stemmers look at."""
    stops = frozenset(fold_accents(fold_case(word)) for word in stop_words.split())

    def normalize(word: str) -> str:
        folded = fold_case(word, is_turkish=is_turkish)
        plain = fold_accents(folded) or folded  # a spacing accent is all there is of it
        if plain in stops:
            return ANY_WORD
        return plain if stem is None else fold_accents(stem(folded)) or plain

    return normalize


def _stemmer(language: str) -> Callable[[str], str]:
    try:
        import Stemmer
    except ImportError:
        raise SchemaError(
            f'the analyser "{language}" stems words, which needs the package PyStemmer',
            hint=f'pip install \'tamis[text]\', or take "standard_{language}" or "standard"',
        ) from None
    # Words are remembered here, once for all forms; a cache below would hold them again.
    stemmer: Any = Stemmer.Stemmer(language, 0)
    stem: Callable[[str], str] = stemmer.stemWord
    return stem
