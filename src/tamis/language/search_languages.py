"""One analyser per language, in the condition of a search-box query.

A document in German has `title_de` and `body_de` besides `title` and `body`. A search in several
languages is one search for each of them, over its own attributes, and one for all other documents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tamis.errors import ExpressionError, InputError, SchemaError
from tamis.language.ast import And, Attribute, Condition, IsNull, Matches, Not, Or
from tamis.language.check import check
from tamis.language.infer import infer_schema
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.language.schema import Schema
from tamis.language.types import text_type
from tamis.text import LANGUAGE_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

_NO_WORDS: Final = "no-words"
_HINT: Final = 'codes of two letters: languages=("en", "de")'


def read_languages(languages: Any) -> tuple[str, ...]:
    """The codes without repetitions; raises an `InputError` for one that no analyser stems."""
    given = [languages] if isinstance(languages, str) else languages
    if not isinstance(given, list | tuple) or not all(isinstance(own, str) for own in given):
        raise InputError(f"languages is {languages!r:.60}; codes are expected", hint=_HINT)
    for code in given:
        if code not in LANGUAGE_CODES:
            raise InputError(
                f"there is no analyser for the language {code!r:.60}",
                hint=f"allowed: {', '.join(LANGUAGE_CODES)}",
            )
    return tuple(dict.fromkeys(given))


def in_languages(
    condition: Condition,
    texts: Sequence[Attribute],
    languages: Sequence[str],
    finish: Callable[[Condition], Condition],
) -> Condition:
    """The condition on documents in each of some languages, or in another one.

    `texts` are the attributes that have a version for each language; `finish` completes a branch.
    """
    branches: list[Condition] = []
    others: list[Condition] = []  # tests that a document is in none of the languages
    for code in languages:
        versions = {own: _name_version(own, code) for own in texts}
        branch = finish(_translate(condition, versions))
        if _has_words(branch, versions.values(), LANGUAGE_CODES[code]):
            missing = [IsNull(own) for own in versions.values()]
            there = Not(_join(And, missing)) if len(missing) > 1 else Not(missing[0])
            branches.append(_join(And, [there, branch]))
            others += missing
    return _join(Or, [*branches, _join(And, [*others, finish(condition)])])


def _name_version(own: Attribute, code: str) -> Attribute:
    return replace(own, path=(*own.path[:-1], f"{own.path[-1]}_{code}"))


def _translate(condition: Condition, versions: Mapping[Attribute, Attribute]) -> Condition:
    match condition:
        case Not():
            return replace(condition, operand=_translate(condition.operand, versions))
        case And() | Or():
            operands = tuple(_translate(own, versions) for own in condition.operands)
            return replace(condition, operands=operands)
        case Matches():
            own = tuple(versions.get(one, one) for one in condition.attributes)
            return replace(condition, attributes=own)
    raise AssertionError(condition)


def _has_words(condition: Condition, texts: Iterable[Attribute], analyser: str) -> bool:
    """Whether each part of the search has a word that is no stop word of the language. Otherwise
    its documents are searched as those in other languages.
    """
    text = print_expression(condition)
    parsed = parse(text)
    inferred = infer_schema([parsed])
    try:
        own = text_type(analyser)
    except SchemaError:  # PyStemmer is missing: declaring the type reports it
        return True
    known = {path: inferred[path] for path in inferred}
    try:
        check(parsed, Schema(known | {one.path: own for one in texts}), text=text)
    except ExpressionError as error:
        return error.code != _NO_WORDS
    return True


def _join(kind: type[And | Or], operands: Collection[Condition]) -> Condition:
    """The operands joined, with nested operands of the same kind lifted."""
    flat: list[Condition] = []
    for own in operands:
        flat.extend(own.operands if isinstance(own, kind) else (own,))
    return kind(tuple(flat)) if len(flat) > 1 else flat[0]
