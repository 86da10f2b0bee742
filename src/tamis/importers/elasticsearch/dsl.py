"""Turns Elasticsearch's query DSL into conditions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tamis.importers.conditions import ALWAYS, NEVER, All, AtLeast, Not, Wish
from tamis.importers.conditions import Any as AnyOf
from tamis.importers.elasticsearch.errors import bad
from tamis.importers.elasticsearch.lucene_regex import read_flags
from tamis.importers.elasticsearch.parameters import check_parameters, refuse_parameter
from tamis.importers.elasticsearch.query_string import find_numbers, parse_query_string
from tamis.importers.elasticsearch.terms import (
    Terms,
    count_all,
    count_one,
    join,
    spell_value,
    split_wildcards,
)
from tamis.importers.fields import Wildcard
from tamis.importers.model import not_expressible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.importers.fields import Fields

_CLAUSES: Final = ("must", "filter", "should", "must_not")
_BOOL_MEMBERS: Final = {
    *_CLAUSES,
    "minimum_should_match",
    "adjust_pure_negative",
    "boost",
    "_name",
}
_PERCENT: Final = re.compile(r"(-?[0-9]+)%")


def find_constants(query: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a query with the constants that they are compared with."""
    if isinstance(query, list):
        for own in query:
            yield from find_constants(own)
    if not isinstance(query, dict):
        return
    for name, own in query.items():
        if name in ("term", "match", "range") and isinstance(own, dict):
            for field, given in own.items():
                values = given.values() if isinstance(given, dict) else [given]
                scalars = (one for one in values if isinstance(one, str | int | float))
                yield from ((field.removesuffix(".keyword"), one) for one in [*scalars][:1])
        elif name == "query_string":
            text = own.get("query") if isinstance(own, dict) else own
            yield from ((field, 0) for field in find_numbers(text if isinstance(text, str) else ""))
        elif name == "terms" and isinstance(own, dict):
            for field, values in own.items():
                if isinstance(values, list):
                    yield from ((field.removesuffix(".keyword"), one) for one in values)
        else:
            yield from find_constants(own)


class QueryReader:
    """Turns queries into conditions, with notes about what differs."""

    def __init__(self, fields: Fields) -> None:
        self.notes: list[str] = []
        self._terms = Terms(fields, self.notes)
        self._readers: dict[str, Callable[[Any], Wish]] = {
            "bool": self._bool,
            "boosting": lambda given: self.read(_member(given, "boosting", "positive")),
            "constant_score": lambda given: self.read(_member(given, "constant_score", "filter")),
            "dis_max": lambda given: AnyOf(self._each(_member(given, "dis_max", "queries"))),
            "exists": lambda given: self._terms.exists(_member(given, "exists", "field")),
            "function_score": self._scored,
            "match": self._match,
            "match_all": lambda given: _constant(given, "match_all", ALWAYS),
            "match_none": lambda given: _constant(given, "match_none", NEVER),
            "match_phrase": self._match_phrase,
            "multi_match": self._multi_match,
            "prefix": self._prefix,
            "query_string": self._query_string,
            "range": self._range,
            "regexp": self._regexp,
            "simple_query_string": self._simple_query_string,
            "term": self._term,
            "terms": self._terms_of,
            "wildcard": self._wildcard,
        }

    def read(self, query: Any) -> Wish:
        """The condition of a query: an object with one member, the name of its kind."""
        if not isinstance(query, dict) or len(query) != 1:
            raise bad(f"a query is an object with one member; found {_show(query)}")
        ((name, given),) = query.items()
        reader = self._readers.get(name)
        if reader is None:
            raise not_expressible(
                f"queries of the kind {name}", hint=f"known ones: {', '.join(self._readers)}"
            )
        return reader(given)

    def _each(self, queries: Any) -> tuple[Wish, ...]:
        return tuple(map(self.read, queries if isinstance(queries, list) else [queries]))

    # ── compound queries ───────────────────────────────────────────────────────────────────

    def _bool(self, given: Any) -> Wish:
        if not isinstance(given, dict):
            raise bad(f"bool is {_show(given)}; an object is expected")
        unknown = given.keys() - _BOOL_MEMBERS
        if unknown:
            raise bad(f'bool has an unknown member "{min(unknown)}"')
        parts = {name: self._each(given.get(name, [])) for name in _CLAUSES}
        if not any(parts.values()):
            return ALWAYS
        required = (*parts["must"], *parts["filter"])
        should = parts["should"]
        if not required and not should and given.get("adjust_pure_negative") is False:
            return NEVER  # what is excluded is excluded from nothing
        # Without a required query one of the optional ones must hold, whatever the parameter says.
        needed = 1 if should and not required else 0
        given_least = given.get("minimum_should_match", needed)
        least = max(needed, count_required(given_least, len(should)))
        required = (*required, AtLeast(least, should))
        return All((*required, *map(Not, parts["must_not"])))

    def _scored(self, given: Any) -> Wish:
        named = _object(given, "function_score")
        if "min_score" in named:
            raise not_expressible("function_score with min_score: there are no scores")
        check_parameters("function_score", named)
        return self.read(named["query"]) if "query" in named else ALWAYS

    # ── exact values ───────────────────────────────────────────────────────────────────────

    def _term(self, given: Any) -> Wish:
        field, value, rest = _read_field(given, "term", "value")
        return self._terms.equals(field, value, is_cased=not rest.get("case_insensitive", False))

    def _terms_of(self, given: Any) -> Wish:
        named = {k: v for k, v in _object(given, "terms").items() if k not in ("boost", "_name")}
        if len(named) != 1:
            raise bad(f"terms is {_show(given)}; one field is expected")
        ((field, values),) = named.items()
        if not isinstance(values, list):
            raise not_expressible(f"{field}: terms from another index")
        return AnyOf(tuple(self._terms.equals(field, value) for value in values))

    def _prefix(self, given: Any) -> Wish:
        field, value, rest = _read_field(given, "prefix", "value")
        is_cased = not rest.get("case_insensitive", False)
        return self._terms.like(field, [str(value), Wildcard.ANY_TEXT], is_cased=is_cased)

    def _wildcard(self, given: Any) -> Wish:
        field, value, rest = _read_field(given, "wildcard", "value", "wildcard")
        is_cased = not rest.get("case_insensitive", False)
        return self._terms.like(field, list(split_wildcards(str(value))), is_cased=is_cased)

    def _regexp(self, given: Any) -> Wish:
        field, value, rest = _read_field(given, "regexp", "value")
        return self._terms.regex(
            field,
            str(value),
            operators=read_flags(str(rest.get("flags") or "ALL")),
            is_cased=not rest.get("case_insensitive", False),
        )

    def _range(self, given: Any) -> Wish:
        named = {k: v for k, v in _object(given, "range").items() if k not in ("boost", "_name")}
        if len(named) != 1:
            raise bad(f"range is {_show(given)}; one field is expected")
        ((field, bounds),) = named.items()
        check_parameters("range", _object(bounds, f"the range of {field}"), field)
        return self._terms.range(field, bounds)

    # ── words ──────────────────────────────────────────────────────────────────────────────

    def _match(self, given: Any) -> Wish:
        field, value, rest = _read_field(given, "match", "query")
        return self._find_words("match", field, value, rest)

    def _find_words(self, kind: str, field: str, value: Any, rest: dict[str, Any]) -> Wish:
        self._terms.check_analyser(kind, field, rest.get("analyzer"))
        needs_all = _read_operator(kind, "operator", rest) == "and"
        least = rest.get("minimum_should_match")
        if needs_all and least is not None:
            raise refuse_parameter(f"{kind} with operator and", "minimum_should_match", least)

        def count(n_words: int) -> int:
            if least is None:
                return n_words if needs_all else 1
            # A single word is a query of its own, to which the parameter does not apply.
            return 1 if n_words == 1 else max(1, count_required(least, n_words))

        return self._terms.words(field, spell_value(value), count, _read_zero_terms(kind, rest))

    def _match_phrase(self, given: Any) -> Wish:
        field, value, rest = _read_field(given, "match_phrase", "query")
        return self._find_phrase("match_phrase", field, value, rest)

    def _find_phrase(self, kind: str, field: str, value: Any, rest: dict[str, Any]) -> Wish:
        self._terms.check_analyser(kind, field, rest.get("analyzer"))
        return self._terms.phrase(field, spell_value(value), _read_zero_terms(kind, rest))

    def _multi_match(self, given: Any) -> Wish:
        rest = _object(given, "multi_match")
        check_parameters("multi_match", rest)
        value, fields = rest.get("query"), _listed(rest.get("fields"))
        if value is None or not fields:
            raise not_expressible("multi_match without the names of fields")
        kind = rest.get("type", "best_fields")
        readers = {
            "phrase": self._find_phrase,
            "best_fields": self._find_words,
            "most_fields": self._find_words,
        }
        if kind not in readers:
            raise not_expressible(f"multi_match of the type {kind}")
        return AnyOf(tuple(readers[kind]("multi_match", field, value, rest) for field in fields))

    # ── query strings ──────────────────────────────────────────────────────────────────────

    def _query_string(self, given: Any) -> Wish:
        rest = {"query": given} if isinstance(given, str) else _object(given, "query_string")
        text = _member(rest, "query_string", "query")
        if rest.get("type", "best_fields") not in ("best_fields", "most_fields"):
            raise refuse_parameter("query_string", "type", rest["type"])
        fields = _listed(rest.get("fields") or rest.get("default_field"))
        operator = _read_operator("query_string", "default_operator", rest)
        analyser = rest.get("analyzer")
        return parse_query_string(str(text), self._terms, fields, operator, analyser)

    def _simple_query_string(self, given: Any) -> Wish:
        rest = _object(given, "simple_query_string")
        text, fields = (
            str(_member(rest, "simple_query_string", "query")),
            _listed(rest.get("fields")),
        )
        if not fields:
            raise not_expressible("simple_query_string without the names of fields")
        if re.search(r'[+|\-"*()~\\]', text):
            raise not_expressible(
                f"the operators of simple_query_string in {text!r}", hint="use query_string"
            )
        for field in fields:
            self._terms.check_analyser("simple_query_string", field, rest.get("analyzer"))
        operator = _read_operator("simple_query_string", "default_operator", rest)
        count = count_all if operator == "and" else count_one
        words = (
            [field for field in fields if self._terms.has_words(field, own)] for own in text.split()
        )
        tests = [
            AnyOf(tuple(self._terms.words(field, own, count) for field in found))
            for own, found in zip(text.split(), words, strict=True)
            if found
        ]
        return join(list(tests), operator) if tests else NEVER


def count_required(given: Any, n_parts: int) -> int:
    """How many parts must hold: a number, or a share, of which the rest may be missing."""
    text = str(given).strip()
    if found := _PERCENT.fullmatch(text):
        share = int(found[1]) * n_parts
        count = share // 100 if share >= 0 else n_parts - (-share) // 100
    elif re.fullmatch(r"-?[0-9]+", text):
        count = int(text) if not text.startswith("-") else n_parts + int(text)
    else:
        raise not_expressible(f"minimum_should_match is {given!r}")
    return count


def _read_operator(kind: str, name: str, rest: dict[str, Any]) -> str:
    """How the words of a query are joined: and, or."""
    given = str(rest.get(name, "or")).lower()
    if given not in ("and", "or"):
        raise bad(f"{kind} with {name} {given}; and or or is expected")
    return given


def _read_zero_terms(kind: str, rest: dict[str, Any]) -> Wish:
    """The condition if no word is left of a text."""
    given = str(rest.get("zero_terms_query", "none")).lower()
    if given not in ("none", "all"):
        raise bad(f"{kind} with zero_terms_query {given}; none or all is expected")
    return ALWAYS if given == "all" else NEVER


def _read_field(given: Any, kind: str, *keys: str) -> tuple[str, Any, dict[str, Any]]:
    """The field of a query, its value, and other parameters."""
    named = {k: v for k, v in _object(given, kind).items() if k not in ("boost", "_name")}
    if len(named) != 1:
        raise bad(f"{kind} is {_show(given)}; one field is expected")
    ((field, value),) = named.items()
    if not isinstance(value, dict):
        return field, value, {}
    check_parameters(kind, value, field)
    for key in keys:
        if key in value:
            return field, value[key], value
    raise bad(f"{kind} of {field} is {_show(value)}; the member {keys[0]} is expected")


def _listed(fields: Any) -> list[str]:
    """The names of fields, given as a list or as one name."""
    found = [fields] if isinstance(fields, str) else fields or []
    if not isinstance(found, list) or not all(isinstance(own, str) for own in found):
        raise bad(f"fields are {_show(fields)}; a list of names is expected")
    return found


def _constant(given: Any, kind: str, wish: Wish) -> Wish:
    check_parameters(kind, _object(given, kind))
    return wish


def _object(given: Any, name: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise bad(f"{name} is {_show(given)}; an object is expected")
    return given


def _member(given: Any, kind: str, name: str) -> Any:
    check_parameters(kind, _object(given, kind))
    if name not in given:
        raise bad(f"{kind} has no {name}")
    return given[name]


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:60]
