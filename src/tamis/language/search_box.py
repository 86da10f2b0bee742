"""Converts the query of a search box to an expression: `niger AND uranium -yellowcake "of
mass"`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from tamis.errors import ExpressionError, InputError, QueryError, SchemaError, warn
from tamis.language.ast import And, Attribute, Condition, Matches, Not, Or
from tamis.language.check import check
from tamis.language.infer import infer_schema
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.names import parse_path, split_listed
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.language.search_arrays import with_arrays
from tamis.language.search_languages import in_languages, read_languages
from tamis.language.search_missing import with_empty
from tamis.language.search_notices import find_notices
from tamis.language.search_tokens import (
    ALLOWED,
    END,
    FIELD,
    NEAR,
    PHRASE,
    WORD,
    field_names,
    refuse,
    split_tokens,
)
from tamis.text import DEFAULT_ANALYSER, get_analyser, terms
from tamis.text.proximity import MAX_DISTANCE
from tamis.text.queries import analyse_query

_SHOWN: Final = 60  # characters of the query


class SearchExpression(NamedTuple):
    """What a search-box query means."""

    expression: str
    notices: list[str]  # what may mean something else than its author thinks


def search_query(
    query: str,
    attributes: str | Sequence[str],
    *,
    arrays: str | Sequence[str] = (),
    languages: str | Sequence[str] = (),
    missing: str | None = None,
) -> str:
    """The expression that a search-box query means over the attributes.

    Adjacent words must all be found, each in any of the attributes. AND, OR and NOT in capitals
    join them, where OR, also written |, binds loosest; `-word` and `-"some words"` exclude, `+`
    changes nothing, and parentheses group. Words may have the wildcards * and ?. `"back pain"~3`
    and `back NEAR/3 pain` find words near each other, `ONEAR/3` in this order, and `title:fed`
    searches one of the attributes. Parts without a word are left out.

    Raises an `InputError` for a query that has no word to search for, or exceeds the limits, and
    for syntax of other search boxes, such as ranges and weights. A `TamisWarning` reports operators
    that are not in capitals, which are read as words, a dash before a blank, which excludes
    nothing, and words that are reduced to one letter, such as C++.

    `missing="empty"` treats a missing attribute as an empty text, which contains no excluded word;
    `missing="undefined"` leaves such a query undefined, as NOT of an expression is. The default is
    "empty" for several attributes and "undefined" for one.

    `arrays` names attributes that are arrays of texts, such as tags, to search in as well. Each
    word may be in another attribute or element; a phrase lies within one element.

    `languages` are codes such as "de": documents that have `title_de` are searched there instead of
    in `title`, and so on; all others in the attributes themselves.
    """
    expression, notices = convert_query(
        query, attributes, arrays=arrays, languages=languages, missing=missing
    )
    if notices:
        warn(f"the query {_show(query)}: {'; '.join(notices)}")
    return expression


def convert_query(  # noqa: PLR0913 - everything that changes its meaning
    query: str,
    attributes: str | Sequence[str],
    *,
    arrays: str | Sequence[str] = (),
    languages: str | Sequence[str] = (),
    shared: Collection[str] = (),
    missing: str | None = None,
) -> SearchExpression:
    """As `search_query`, with the notices instead of a warning about them. `shared` are those of
    the attributes that have no versions for languages.
    """
    if not isinstance(query, str):
        raise InputError(f"the query is {_show(query)}; a string is expected", hint=ALLOWED)
    texts = () if _is_empty(attributes) and not _is_empty(arrays) else _read_fields(attributes)
    listed = () if _is_empty(arrays) else _read_fields(arrays)
    fields = texts + listed
    if twice := [own for own in listed if own in texts]:
        raise InputError(f"{'.'.join(twice[0].path)} is both in attributes and in arrays")
    if missing not in (None, "empty", "undefined"):
        raise InputError(f"missing is {_show(missing)}; allowed: empty, undefined")
    codes = read_languages(languages)
    takes_for_empty = missing == "empty" or (missing is None and len(fields) > 1)

    def finish(condition: Condition) -> Condition:
        found = with_arrays(condition, listed)
        return with_empty(found, is_negated=False) if takes_for_empty else found

    try:
        box = _SearchBox(query, fields)
        condition = box.parse()
    except QueryError as error:
        raise error.located(query) from None
    named = {parse_path(name) for name in shared}
    versioned = [own for own in texts if own.path not in named]
    if codes and versioned:
        condition = in_languages(condition, versioned, codes, finish)
    else:
        condition = finish(condition)
    expression = print_expression(condition)
    try:
        parsed = parse(expression)
        check(parsed, infer_schema([parsed]), text=expression)
    except ExpressionError as error:
        raise InputError(
            f"the query {_show(query)} over {_show(attributes)} makes no expression: "
            f"{error.message}",
            hint=error.hint,
        ) from None
    return SearchExpression(expression, list(find_notices(box.tokens, fields)))


def _is_empty(attributes: Any) -> bool:
    return isinstance(attributes, list | tuple) and not attributes


def _read_fields(attributes: Any) -> tuple[Attribute, ...]:
    is_one = isinstance(attributes, str) or not isinstance(attributes, Sequence)
    names = [attributes] if is_one else list(attributes)
    try:
        if names and all(isinstance(name, str) for name in names):
            _refuse_listed(names)
            _report_blanks(names)
            return tuple(Attribute(parse_path(name)) for name in names)
    except SchemaError:  # an empty name
        pass
    raise InputError(
        f"the attributes to search in are {_show(attributes)}",
        hint='the name of an attribute, or a list of names: "body", ("title", "body")',
    )


def _refuse_listed(names: Sequence[str]) -> None:
    """Raise an error for several names in one string, which would be one attribute that no event
    has.
    """
    for name in names:
        listed = [one.strip() for one in split_listed(name)]
        if len(listed) > 1:
            raise InputError(
                f"the attributes to search in are one text, {_show(name)}",
                hint=f"write a list of names: {_show(tuple(listed))}; a name with a comma in it is "
                "written in backticks",
            )


def _report_blanks(names: Sequence[str]) -> None:
    """Warn about an attribute that is probably a query."""
    for name in names:
        if " " in name.strip() and "`" not in name:
            warn(
                f"the attribute to search in is {_show(name)}, which has blanks; the query comes "
                "first: search_query(query, attributes)"
            )


def _show(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _excludes(condition: Condition) -> bool:
    """Whether the query only excludes words."""
    parts = condition.operands if isinstance(condition, And) else (condition,)
    return all(isinstance(part, Not) for part in parts)


# ── reading ─────────────────────────────────────────────────────────────────────────────────


class _SearchBox:
    def __init__(self, query: str, fields: tuple[Attribute, ...]) -> None:
        self.query = query
        self.fields = fields  # of the current part of the query
        self.names = field_names(fields)
        self.tokens = split_tokens(query, fields)
        self.at = 0
        self.depth = 0

    @property
    def kind(self) -> str:
        """The kind of the current token; empty at the end."""
        return self.tokens[self.at][0]

    def parse(self) -> Condition:
        """The whole query."""
        condition = self.either()
        if self.kind:
            self.refuse_token("a parenthesis is closed that was not opened")
        if condition is None:
            refuse("the query has no word to search for", (0, len(self.query)))
        return condition

    def either(self) -> Condition | None:
        """Groups joined by OR; None if there is no word."""
        start = self.at
        groups = [self.group()] if self.kind != "OR" else []
        while self.kind == "OR":
            if self.at == start or self.tokens[self.at + 1][0] in (END, "OR", ")"):
                self.refuse_token(f"{self.tokens[self.at][1]} joins two words")
            self.at += 1
            groups.append(self.group())
        operands = tuple(group for group in groups if group is not None)
        return Or(operands) if len(operands) > 1 else next(iter(operands), None)

    def group(self) -> Condition | None:
        """All adjacent parts and those joined by AND: plain words in one query."""
        start = self.at
        words: list[str] = []
        others: list[Condition | None] = []
        while self.kind not in (END, "OR", ")"):
            following = self.tokens[self.at + 1][0]
            if self.kind == "AND":
                self.at += 1
                if self.at == start + 1 or self.kind in (END, "OR", ")", "AND"):
                    self.refuse_token("AND joins two words")
            elif self.kind == "+" and following == WORD:
                self.at += 1  # joined with the other words: alone, it could be a stop word
            elif self.kind == WORD and following != NEAR:
                words.append(self.take())
            else:
                others.append(self.other())
        found = [one for one in (self.find("all", " ".join(words)), *others) if one is not None]
        excluded = [one for one in found if _excludes(one)]
        wanted = [one for one in found if not _excludes(one)]
        # A single exclusion in parentheses may have its positive part outside: a AND (NOT b).
        is_enclosed = start > 0 and self.tokens[start - 1][0] == "(" and self.kind == ")"
        if not wanted and (self.at == start or (excluded and not is_enclosed)):
            what = "only excludes words" if excluded else "has no word to search for"
            begin, end = self.tokens[start][2], self.tokens[self.at][2]
            refuse(f"the query {what}", (begin, max(end, begin)))
        operands = (*wanted, *excluded)
        return And(operands) if len(operands) > 1 else next(iter(operands), None)

    def find(self, how: str, text: str, distance: int = 0) -> Condition | None:
        """The search for a text; None if it has no word."""
        has_words = bool(get_analyser(DEFAULT_ANALYSER).words(text))
        return Matches(how, self.fields, text, distance) if has_words else None

    def other(self) -> Condition | None:
        """An exclusion, or a part and what it is near to."""
        kind = self.kind
        if kind in ("-", "+", "NOT"):
            self.at += 1
            if self.kind not in (WORD, PHRASE, FIELD, "("):
                self.refuse_token(f"a word is expected after {kind}")
            condition = self.other()
            return condition if kind == "+" or condition is None else Not(condition)
        start = self.at
        left = self.part()
        if self.kind != NEAR:
            return left
        operator = self.at
        self.at += 1
        if self.kind not in (WORD, PHRASE, "("):
            self.refuse_token(f"a word is expected after {self.tokens[operator][1]}")
        right = self.part()
        if self.kind == NEAR:
            self.refuse_token("NEAR joins two words", 'for more words write "a b c"~3')
        return self.near(
            operator, self.alternatives(left, start), self.alternatives(right, operator + 1)
        )

    def part(self) -> Condition | None:
        """A word, a phrase, words near each other, a group in parentheses, or one of these in a
        field.
        """
        kind = self.kind
        if kind == NEAR:
            self.refuse_token(f"{self.tokens[self.at][1]} joins two words")
        if kind == WORD:
            return self.find("all", self.take())
        if kind == PHRASE:
            return self.phrase()
        self.at += 1
        if kind == FIELD:
            return self.field()
        self.depth += 1
        if 2 * self.depth > DEFAULT_LIMITS.depth:
            self.refuse_token("parentheses are nested too deep")
        inside = self.either()
        if self.kind != ")":
            self.refuse_token("a parenthesis is not closed")
        self.at += 1
        self.depth -= 1
        return inside

    def field(self) -> Condition | None:
        """What follows the name of a field, searched there only."""
        name = self.tokens[self.at - 1][1]
        if self.kind not in (WORD, PHRASE, "("):
            self.refuse_token(f"a word is expected after {name}")
        around, self.fields = self.fields, (self.names[name[:-1].lower()],)
        condition = self.part()
        self.fields = around
        return condition

    def phrase(self) -> Condition | None:
        """A phrase, or words near each other: "back pain"~3."""
        start = self.at
        text, _, distance = self.take().removeprefix('"').rpartition('"')
        if not distance or int(distance[1:]) == 0:
            return self.find(terms.PHRASE, text)
        found = self.find(terms.NEAR, text, self.distance(start, distance[1:]))
        if found is not None and _count_distinct(text) < 2:
            self.at = start
            self.refuse_token("two words or more can be near each other")
        return found

    # ── proximity ──────────────────────────────────────────────────────────────────────────

    def distance(self, at: int, written: str) -> int:
        """How many words may be between; raises an error if that is too many."""
        if len(written) > len(str(MAX_DISTANCE)) or int(written) > MAX_DISTANCE:
            self.at = at
            self.refuse_token(
                f"{written} words between are too many",
                f"0 to {MAX_DISTANCE} words may be between words near each other",
            )
        return int(written)

    def alternatives(self, condition: Condition | None, start: int) -> list[Matches]:
        """The words of one side of NEAR: one word, or a group of words joined by OR."""
        parts = condition.operands if isinstance(condition, Or) else (condition,)
        found = [part for part in parts if isinstance(part, Matches) and _is_word(part)]
        if len(found) < len(parts):
            begin = self.tokens[start][2]
            end = begin + len(self.tokens[start][1])
            hint = "as in back NEAR/3 (pain OR ache*)"
            refuse("NEAR joins words, or groups of words with OR between them", (begin, end), hint)
        return found

    def near(self, operator: int, left: list[Matches], right: list[Matches]) -> Condition:
        """Any word of one side near any other word of the other side."""
        _, text, place = self.tokens[operator]
        name, _, written = text.partition("/")
        mode = terms.NEAR if name.upper() == "NEAR" else terms.NEAR_IN_ORDER
        distance = self.distance(operator, written)
        pairs = [(one, other) for one in left for other in right]
        if any(one.attributes != other.attributes for one, other in pairs):
            hint = "name the field before the group: title:(back NEAR/3 pain)"
            refuse(f"both sides of {text} must be in one field", (place, place + len(text)), hint)
        found = tuple(
            Matches(mode, one.attributes, f"{one.query} {other.query}", distance)
            for one, other in pairs
            if mode == terms.NEAR_IN_ORDER or _count_distinct(f"{one.query} {other.query}") > 1
        )
        if not found:
            refuse(f"{text} joins two different words", (place, place + len(text)))
        return Or(found) if len(found) > 1 else found[0]

    # ── tokens ─────────────────────────────────────────────────────────────────────────────

    def take(self) -> str:
        """The text of the current token, which is consumed."""
        self.at += 1
        return self.tokens[self.at - 1][1]

    def refuse_token(self, message: str, hint: str = ALLOWED) -> NoReturn:
        """Raise an error at the current token."""
        _, text, place = self.tokens[self.at]
        refuse(message, (place, place + len(text)), hint)


def _count_distinct(text: str) -> int:
    return len({*analyse_query(DEFAULT_ANALYSER, text)})


def _is_word(search: Matches) -> bool:
    """Whether one word is searched for; wi-fi is one, although an analyser splits it."""
    return search.mode in ("all", terms.PHRASE) and len(search.query.split()) == 1
