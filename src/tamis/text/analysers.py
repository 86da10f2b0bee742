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
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unicodedata import unidata_version

from tamis.errors import SchemaError, suggest, warn
from tamis.text.fold import fold_accents, fold_case
from tamis.text.registered import add_definition, define, find_definition, registered_names
from tamis.text.segment import segment, segment_spans
from tamis.text.stop_words import STOP_WORDS
from tamis.text.word_break_classes import UNICODE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DEFAULT_ANALYSER: Final = "standard"
_PLAIN: Final = ("keyword", "simple", "standard")
# The languages that Snowball supports.
LANGUAGES: Final = tuple(
    "arabic armenian basque catalan czech danish dutch english esperanto estonian finnish french "
    "german greek hindi hungarian indonesian irish italian lithuanian nepali norwegian persian "
    "polish portuguese romanian russian serbian sesotho spanish swedish tamil turkish "
    "yiddish".split()
)
# The analyser of each language by its code in ISO 639-1, as documents name it.
LANGUAGE_CODES: Final = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
ANALYSERS: Final = (*_PLAIN, *(f"standard_{name}" for name in sorted(STOP_WORDS)), *LANGUAGES)
_REMEMBERED: Final = 1 << 16  # words whose form is cached
ANY_WORD: Final = ""  # in the place of a stop word: matches any word
_NOT_IN_WORDS: Final = str.maketrans("", "", " *?~>")  # these separate and mark words in terms


class TextWords(NamedTuple):
    """The words of a text in order, with ANY_WORD in the place of each stop word."""

    words: list[str]  # as they are searched for
    folded: list[str]  # before they are stemmed, as wildcards see them
    is_whole: bool = False  # the text is one word, in which * and ? are plain characters


@dataclass(frozen=True, slots=True)
class Analyser:
    """Splits a text into words; made by `get_analyser`."""

    name: str
    takes_whole: bool  # the whole text is one word, unchanged
    is_turkish: bool  # the case pairs are I and ı, İ and i
    normalize: Callable[[str], str] = field(compare=False, repr=False)  # makes the searched form
    # The form before stemming, of stop words too.
    fold: Callable[[str], str] = field(compare=False, repr=False)
    stems: bool = False

    def words(self, text: str) -> list[str]:
        """The words of a text in order, with ANY_WORD in the place of each stop word."""
        if self.takes_whole:
            return [text] if text else []
        return list(map(self.normalize, segment(text)))

    def read(self, text: str) -> TextWords:
        """The words of a text, stemmed and not."""
        if not self.stems:
            words = self.words(text)
            return TextWords(words, words, self.takes_whole)
        written = segment(text)
        words, folded = list(map(self.normalize, written)), map(self.fold, written)
        kept = [word and form for word, form in zip(words, folded, strict=True)]
        return TextWords(words, kept)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where each of the words begins and ends in the text."""
        if self.takes_whole:
            return [(0, len(text))] if text else []
        return list(segment_spans(text))


@cache
def get_analyser(name: str) -> Analyser:
    """The analyser of that name; raises `SchemaError` if it is unknown."""
    if name == "keyword":
        return Analyser(name, True, False, str, str)
    if name in ANALYSERS:
        return _make(name, name, _stop_words_of(name), _stem_of(name))
    found = find_definition(name)
    if found is None:
        likely = suggest(name, (*ANALYSERS, *registered_names()))
        raise SchemaError(
            f'unknown analyser "{name}"' + (f'; did you mean "{likely}"?' if likely else ""),
            hint=f"allowed: {', '.join(_PLAIN)}, standard_<language>, or a language: "
            f"{', '.join(LANGUAGES)}; one of your own is registered first: "
            "tamis.text.register_analyser",
        )
    words = _stop_words_of(found.like) if found.stop_words is None else found.stop_words
    stem = _stem_of(found.like) if found.stem is None else _guarded(name, found.stem)
    return _make(name, found.like, words, stem)


def register_analyser(
    name: str,
    *,
    like: str = DEFAULT_ANALYSER,
    stop_words: Iterable[str] | None = None,
    stem: Callable[[str], str] | None = None,
    version: str = "",
) -> None:
    """Make `TEXT(name)` a type: an analyser like another one, with other stop words or stems.

    `like` is an analyser of Tamis, but not "keyword". `stop_words` replace its stop words; they are
    folded as words are. `stem` replaces its stems: a function from a word in lower case to the form
    that is searched for, which is then folded; `version` names its present behaviour. An index
    records both, and cannot be opened where they differ. The same analyser may be registered again.
    """
    if like not in ANALYSERS or like == "keyword":
        raise SchemaError(
            f'analyser "{name}" is like {like!r:.60}',
            hint=f"allowed: {', '.join(own for own in ANALYSERS if own != 'keyword')}",
        )
    if name in ANALYSERS:
        raise SchemaError(f'"{name}" is an analyser of Tamis', hint="choose another name")
    add_definition(define(name, like, stop_words, stem, version))


def analyser_versions(name: str) -> dict[str, str]:
    """The versions of the libraries and data on which the words of this analyser depend."""
    if get_analyser(name).takes_whole:
        return {}
    versions = {"word boundaries": UNICODE_VERSION, "Unicode of Python": unidata_version}
    found = None if name in ANALYSERS else find_definition(name)
    if found is not None:
        versions["definition"] = found.digest
    like = name if found is None else found.like
    if like in LANGUAGES and (found is None or found.stem is None):
        import Stemmer

        versions["PyStemmer"] = Stemmer.version()
    return versions


def _make(
    name: str, like: str, stop_words: Iterable[str], stem: Callable[[str], str] | None
) -> Analyser:
    is_turkish = like.removeprefix("standard_") == "turkish"
    keeps_accents = like == "simple"
    fold = fold_case if keeps_accents else partial(_fold, is_turkish=is_turkish)
    stops = frozenset(map(fold, stop_words))

    def normalize(word: str) -> str:
        """The form of a word: folded, then stemmed, then without accents, which stemmers need."""
        plain = fold(word)
        if plain in stops:
            return ANY_WORD
        if stem is None:
            return plain
        stemmed = stem(fold_case(word, is_turkish=is_turkish))
        return (stemmed if keeps_accents else fold_accents(stemmed)) or plain

    remembering = lru_cache(_REMEMBERED)(normalize)
    folding = lru_cache(_REMEMBERED)(fold)
    return Analyser(name, False, is_turkish, remembering, folding, stem is not None)


def _fold(word: str, *, is_turkish: bool = False) -> str:
    """The word without case and accents."""
    folded = fold_case(word, is_turkish=is_turkish)
    return fold_accents(folded) or folded  # the word is nothing but a spacing accent


def _stop_words_of(name: str) -> list[str]:
    return [] if name in _PLAIN else STOP_WORDS.get(name.removeprefix("standard_"), "").split()


def _stem_of(name: str) -> Callable[[str], str] | None:
    return _stemmer(name) if name in LANGUAGES else None


def _guarded(name: str, stem: Callable[[str], str]) -> Callable[[str], str]:
    """The stems of a user; a word without a valid one stays as it is, which is reported once."""
    reported: list[str] = []

    def guarded(word: str) -> str:
        try:
            return fold_case(str.translate(stem(word), _NOT_IN_WORDS))
        except Exception as error:
            if not reported:
                reported.append(word)
                warn(
                    f'analyser "{name}": the stem of {word!r:.60} raised {error!r:.60}; the word '
                    "is taken as it is"
                )
            return word

    return guarded


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
