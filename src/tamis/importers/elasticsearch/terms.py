"""Tests of fields as Elasticsearch makes them: exact values, words, patterns and ranges.

A field is analysed text if the schema declares it with an analyser, such as TEXT(english), and a
keyword if it declares another type or the name ends in `.keyword`. Of other fields the query
decides: `match` and query strings look for words, `term` and its relatives for the whole value.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tamis.importers.conditions import NEVER, All, AtLeast, Test, Wish, quote
from tamis.importers.conditions import Any as AnyOf
from tamis.importers.elasticsearch.errors import bad
from tamis.importers.elasticsearch.lucene_regex import ALL_OPERATORS, translate
from tamis.importers.elasticsearch.moments import (
    FORMATS,
    MOMENTS,
    compare_moment,
    equal_moment,
    read_span,
)
from tamis.importers.elasticsearch.parameters import refuse_parameter
from tamis.importers.fields import Wildcard, match_text, without_host
from tamis.importers.model import not_expressible
from tamis.importers.votes import spell_number
from tamis.language.types import ANY, STRING
from tamis.text import DEFAULT_ANALYSER
from tamis.text.analysers import get_analyser
from tamis.text.segment import segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.importers.fields import Fields
    from tamis.language.types import Type

    Count = Callable[[int], int]  # how many of so many words must be found

WORDS_NOTE: Final = "a wildcard in analysed text is searched for as a word of letters and digits"
TERM_NOTE: Final = "a term is compared with the whole value, as in a keyword field"
EXISTS_NOTE: Final = (
    "exists is also true for an empty list or object: declare the field's type in the schema"
)
DATE_NOTE: Final = (
    "a date is compared as text, as in a keyword field: declare the field TIMESTAMP in the schema"
)
ANCHOR_NOTE: Final = (
    "^ and $ are plain characters in Lucene's regular expressions, which describe the whole value"
)
_KEYWORD: Final = ".keyword"
_NO_WILDCARDS: Final = str.maketrans("*?", "  ")  # a match query ignores them
_BOUNDS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_LOOKS_LIKE_A_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2}.*)?", re.DOTALL)


class Terms:
    """Tests of fields."""

    def __init__(self, fields: Fields, notes: list[str]) -> None:
        self.fields = fields
        self.notes = notes

    def name(self, field: Any) -> str:
        """The field, without a boost and the subfield `.keyword`."""
        if not isinstance(field, str) or not field:
            raise bad(f"a field is {field!r}; a name is expected")
        if "*" in field:
            raise not_expressible(
                f"all fields whose names are like {field}; an expression names the attributes that "
                "it tests",
                hint="name the fields",
            )
        return field.partition("^")[0].removesuffix(_KEYWORD)

    def is_keyword(self, field: str, type_: Type) -> bool:
        """Whether values of the field are compared as a whole, although words are looked for."""
        is_declared = self.fields.is_declared(self.name(field))
        is_plain = type_.analyser == DEFAULT_ANALYSER
        is_whole = type_ != STRING or type_.analyser == "keyword"
        has_suffix = field.partition("^")[0].endswith(_KEYWORD)
        return has_suffix or is_whole or (is_declared and is_plain)

    # ── exact values ───────────────────────────────────────────────────────────────────────

    def equals(self, field: str, value: Any, *, is_cased: bool = True) -> Wish:
        """The whole value."""
        if value is None:
            raise bad(f"{field}: null is not a value to search for")
        self._note_terms(field)

        def spell(name: str, type_: Type) -> Wish:
            return self._equal(field, name, type_, value, is_cased)

        return self.fields.each(self.name(field), spell)

    def _equal(self, field: str, name: str, type_: Type, value: Any, is_cased: bool) -> Wish:
        if type_.name in MOMENTS:
            return equal_moment(name, type_, read_span(field, str(value)))
        found = equal_value(name, type_, value, is_cased)
        if found == NEVER:
            self.notes.append(
                f"{field} has values of type {type_}, which never are {json.dumps(value)}: the "
                "test is always false"
            )
        return found

    def like(self, field: str, pattern: list[str | Wildcard], *, is_cased: bool = True) -> Wish:
        """The whole value is like the pattern."""
        self._note_terms(field)
        return self.fields.matches(self.name(field), pattern, is_cased=is_cased)

    def regex(
        self,
        field: str,
        pattern: str,
        *,
        operators: frozenset[str] = ALL_OPERATORS,
        is_cased: bool = True,
    ) -> Wish:
        """The whole value is like Lucene's regular expression."""
        self._note_terms(field)
        if pattern.startswith("^") or re.search(r"(?<!\\)\$$", pattern):
            self.notes.append(ANCHOR_NOTE)
        spelled = translate(field, pattern, operators)
        flags = "(?s)" if is_cased else "(?is)"
        return self.fields.contains_regex(self.name(field), f"{flags}^(?:{spelled})$")

    def _note_terms(self, field: str) -> None:
        """Elasticsearch tests the words of an analysed text, one by one."""
        if any(
            type_ == STRING and not self.is_keyword(field, type_)
            for type_ in self.fields.types(self.name(field))
        ):
            self.notes.append(TERM_NOTE)

    def exists(self, field: str) -> Wish:
        """The field has a value; an array has an element that is one."""
        name = self.name(field)
        if any(type_ == ANY for type_ in self.fields.types(name, ANY)):
            self.notes.append(EXISTS_NOTE)
        return self.fields.has_value(name)

    def range(self, field: str, bounds: dict[str, Any]) -> Wish:
        """The value lies between the bounds."""
        if bounds.get("format", FORMATS[0]) not in FORMATS:
            raise not_expressible(f"{field}: dates in the format {bounds['format']}")
        tests = [
            self._compare(field, comparator, bounds[key])
            for key, comparator in _BOUNDS.items()
            if bounds.get(key) is not None
        ]
        return All(tuple(tests)) if tests else self.exists(field)

    def _compare(self, field: str, comparator: str, bound: Any) -> Wish:
        if isinstance(bound, str) and ("||" in bound or bound.startswith("now")):
            read_span(field, bound)  # raises the error

        def spell(name: str, type_: Type) -> Wish:
            if type_.name in MOMENTS:
                return compare_moment(name, type_, comparator, read_span(field, str(bound)))
            is_number = type_.is_numeric or type_.name == "number"
            if is_number != _is_number(bound) and not (is_number and _spells_number(bound)):
                raise not_expressible(
                    f"{field}: {json.dumps(bound)} is compared with values of type {type_}",
                    hint="write a bound of that type, or declare the field with another type",
                )
            if not is_number and not self.is_keyword(field, type_):
                is_date = _LOOKS_LIKE_A_DATE.fullmatch(str(bound))
                self.notes.append(DATE_NOTE if is_date else TERM_NOTE)
            constant = spell_number(bound) if _is_number(bound) else quote(str(bound))
            if is_number and isinstance(bound, str):  # Elasticsearch reads it as the number
                constant = bound
            return Test(f"{name} {comparator} {constant}", needed=(name,))

        return self.fields.each(self.name(field), spell)

    # ── words ──────────────────────────────────────────────────────────────────────────────

    def words(
        self, field: str, text: str, count: Count, if_none: Wish = NEVER, *, is_phrase: bool = False
    ) -> Wish:
        """So many words of a text are found as `count` says, given how many there are; in a
        keyword, the whole text. `if_none`: if it has no words.
        """
        plain = text.translate(_NO_WILDCARDS)

        def spell(name: str, type_: Type) -> Wish:
            if self.is_keyword(field, type_):
                return self._equal(field, name, type_, text, True)
            words = _find_words(type_, plain)
            if not words:
                return if_none
            if is_phrase:
                return Test(f"matches_phrase({name}, {quote(plain)})", needed=(name,))
            return _spell_words(name, words, plain, count(len(words)))

        return self.fields.each(self.name(field), spell)

    def phrase(self, field: str, text: str, if_none: Wish = NEVER) -> Wish:
        """The words of a text are found one after another; in a keyword, the whole text."""
        return self.words(field, text, count_all, if_none, is_phrase=True)

    def has_words(self, field: str, text: str) -> bool:
        """Whether words are left of the text, or it is compared as a whole."""
        plain = text.translate(_NO_WILDCARDS)
        types = self.fields.types(self.name(field))
        return any(self.is_keyword(field, own) or _find_words(own, plain) for own in types)

    def check_analyser(self, kind: str, field: str, given: Any) -> None:
        """Raise an error if a query names another analyser than the field has."""
        types = self.fields.types(self.name(field))
        if given is not None and any(
            self.is_keyword(field, own) or own.analyser != given for own in types
        ):
            raise refuse_parameter(kind, "analyzer", given, field)

    def word_pattern(self, field: str, pattern: list[str | Wildcard]) -> Wish:
        """A word is like the pattern; in a keyword, the whole value."""

        def spell(name: str, type_: Type) -> Wish:
            if self.is_keyword(field, type_):
                return match_text(name, type_, pattern, is_cased=True)
            self.notes.append(WORDS_NOTE)
            spelled = "".join(map(_spell_word_part, pattern))
            return Test(name, "RLIKE", quote(rf"(?i)\b{spelled}\b"), (name,))

        return self.fields.each(self.name(field), spell)


def count_one(n_words: int) -> int:
    """One of the words is enough."""
    return 1


def count_all(n_words: int) -> int:
    """All words are needed."""
    return n_words


def _find_words(type_: Type, text: str) -> list[tuple[str, str]]:
    """The words of a text without stop words, as they are searched for and as written."""
    written = segment(text)
    searched = get_analyser(type_.analyser).words(text)
    return [pair for pair in zip(searched, written, strict=True) if pair[0]]


def _spell_words(name: str, words: list[tuple[str, str]], text: str, count: int) -> Wish:
    if count > len(words):
        return NEVER
    if 1 < count < len(words):
        if len({searched for searched, _ in words}) == len(words):
            text = f"matches_at_least({count}, {name}, {quote(text)})"
            return Test(text, needed=(name,))
        # A word that is given twice counts twice.
        tests = (Test(f"matches({name}, {quote(written)})", needed=(name,)) for _, written in words)
        return AtLeast(count, tuple(tests))
    function = "matches" if count == len(words) and len(words) > 1 else "matches_any"
    return Test(f"{function}({name}, {quote(text)})", needed=(name,))


def spell_value(value: Any) -> str:
    """A value as Elasticsearch's keyword fields and analysers see it."""
    if not isinstance(value, str | int | float):
        raise bad(f"{json.dumps(value)[:60]} is searched for; a text or a number is expected")
    if isinstance(value, bool):
        return str(value).lower()
    return spell_number(value) if isinstance(value, float) else str(value)


def _spell_word_part(part: str | Wildcard) -> str:
    if isinstance(part, Wildcard):
        return r"\w*" if part is Wildcard.ANY_TEXT else r"\w"
    return re.escape(part)


def equal_value(name: str, type_: Type, value: Any, is_cased: bool) -> Wish:
    """The whole value; a text that spells a number fits a number, and the other way round."""
    text = spell_value(value)
    if type_ == STRING or type_.name == "string":
        if is_cased:
            return Test(name, "=", quote(text), (name,))
        return Test(f"lower({name})", "=", quote(text.lower()), (name,))
    if type_.name == "boolean":
        known = {"true": "TRUE", "false": "FALSE"}.get(text)
        return NEVER if known is None else Test(name, "=", known, (name,))
    if type_.is_numeric or type_.name == "number":
        return Test(name, "=", text, (name,)) if _spells_number(text) else NEVER
    if type_.name == "ip" and "/" in text:
        return Test(name, "in_network", quote(without_host(text)), (name,))
    return Test(name, "=", quote(text), (name,))  # dates and addresses, which are checked later


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _spells_number(value: Any) -> bool:
    text = value.removeprefix("-").replace(".", "", 1) if isinstance(value, str) else ""
    return text.isdecimal() and text.isascii()


def split_wildcards(text: str) -> Iterator[str | Wildcard]:
    """`*` and `?`; a backslash makes the next character plain."""
    plain = ""
    characters = iter(text)
    for character in characters:
        if character in "*?":
            if plain:
                yield plain
            yield Wildcard.ANY_TEXT if character == "*" else Wildcard.ONE_CHARACTER
            plain = ""
        else:
            plain += next(characters, "\\") if character == "\\" else character
    if plain:
        yield plain


def join(parts: list[Wish], operator: str) -> Wish:
    """The parts, joined as the parameter `operator` says."""
    return All(tuple(parts)) if operator.lower() == "and" else AnyOf(tuple(parts))
