"""A plain evaluator of Sigma rules: pySigma's tree, node by node, for many events. It has nothing
in common with the importer but the table of log sources.

A test of a missing field is false, and NOT makes it true. Values are compared as text; of a list,
one element must pass. Each node becomes a function of some of the events, as AND and OR ask only
about those that are not decided yet. A test looks at each distinct text of these once, so that all
events of a folder can be evaluated.
"""

from __future__ import annotations

import operator
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sigma import conditions, types
from sigma.rule import SigmaDetections, SigmaRule

import tamis.importers.sigma

TABLE = Path(tamis.importers.sigma.__file__).with_name("log_sources.toml")
FLAGS = {
    types.SigmaRegularExpressionFlag.IGNORECASE: re.IGNORECASE,
    types.SigmaRegularExpressionFlag.MULTILINE: re.MULTILINE,
    types.SigmaRegularExpressionFlag.DOTALL: re.DOTALL,
}
COMPARISONS = {
    types.CompareOperators.LT: operator.lt,
    types.CompareOperators.LTE: operator.le,
    types.CompareOperators.GT: operator.gt,
    types.CompareOperators.GTE: operator.ge,
}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
Event = Mapping[str, Any]
IsWanted = Callable[[str, str], bool]  # of a text, and of the same in lower case


class Texts(NamedTuple):
    """The texts of a field in many events."""

    distinct: list[tuple[str, str]]  # as it is, and in lower case
    rows: np.ndarray  # the event of each text, ascending
    codes: np.ndarray  # its place in `distinct`
    is_there: np.ndarray  # of each event: whether it has the field


class Events:
    """Events whose fields are looked up once."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self._fields: dict[tuple[str, ...] | None, Texts] = {}

    def texts(self, path: tuple[str, ...] | None) -> Texts:
        """The texts of a field; of all strings if there is no path."""
        if path not in self._fields:
            self._fields[path] = self._collect(path)
        return self._fields[path]

    def _collect(self, path: tuple[str, ...] | None) -> Texts:
        numbers: dict[str, int] = {}
        pairs = [
            (row, numbers.setdefault(text, len(numbers)))
            for row, event in enumerate(self.events)
            for text in (texts_in(event) if path is None else map(text_of, get(event, path)))
        ]
        rows, codes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        is_there = np.zeros(len(self.events), dtype=np.bool_)
        is_there[rows] = True
        return Texts([(text, text.lower()) for text in numbers], rows, codes, is_there)

    def where(
        self, path: tuple[str, ...] | None, is_wanted: IsWanted, rows: np.ndarray
    ) -> np.ndarray:
        """Of which of the rows a text of the field is wanted."""
        found = self.texts(path)
        begins = np.searchsorted(found.rows, rows)
        sizes = np.searchsorted(found.rows, rows, side="right") - begins
        owners = np.repeat(np.arange(len(rows)), sizes)
        places = np.arange(len(owners)) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
        codes, which = np.unique(found.codes[places], return_inverse=True)
        is_good = np.array([is_wanted(*found.distinct[code]) for code in codes], dtype=np.bool_)
        holds = np.zeros(len(rows), dtype=np.bool_)
        holds[owners[is_good[which]]] = True
        return holds


Holds = Callable[[Events, np.ndarray], np.ndarray]  # which of some rows, ascending; bool[n_rows]


class PlainRules:
    """Rules by id; those of one log source share its condition."""

    def __init__(self, rules: Mapping[str, SigmaRule]) -> None:
        self._by_source: dict[str, tuple[Holds, dict[str, Holds]]] = {}
        entries = tomllib.loads(TABLE.read_text())["log_sources"]
        for name, rule in rules.items():
            key = f"{rule.logsource.product}/{rule.logsource.category}/{rule.logsource.service}"
            if key not in self._by_source:
                self._by_source[key] = (read_source(rule.logsource, entries), {})
            trees = [read(own.parsed) for own in rule.detection.parsed_condition]
            self._by_source[key][1][name] = join(trees, decides=True)

    def fired(self, given: Sequence[Event]) -> list[set[str]]:
        """The rules that each event satisfies."""
        events = Events(given)
        found: list[set[str]] = [set() for _ in given]
        everything = np.arange(len(given))
        for is_of_source, rules in self._by_source.values():
            rows = everything[is_of_source(events, everything)]
            for name, holds in rules.items():
                for row in rows[holds(events, rows)].tolist():
                    found[row].add(name)
        return found


def read_source(source: Any, entries: list[dict[str, Any]]) -> Holds:
    """The condition of a log source; TRUE if the table has none."""
    best: tuple[int, Any] = (0, None)
    for entry in entries:
        names = [name for name in ("product", "category", "service") if name in entry]
        if all(getattr(source, name) == entry[name] for name in names) and len(names) > best[0]:
            best = (len(names), entry["any"])
    if best[1] is None:
        return lambda _, rows: np.ones(len(rows), dtype=np.bool_)
    detections = SigmaDetections.from_dict({"one": best[1], "condition": "one"})
    return read(conditions.SigmaCondition("one", detections).parsed)


def join(parts: list[Holds], *, decides: bool) -> Holds:
    """AND or OR: one part that is False, or True, decides."""

    def holds(events: Events, rows: np.ndarray) -> np.ndarray:
        found = np.full(len(rows), not decides)
        for part in parts:
            is_open = np.flatnonzero(found != decides)
            if len(is_open):
                found[is_open] = part(events, rows[is_open])
        return found

    return holds


def read(node: Any) -> Holds:
    """What a node of the tree asks of events."""
    if isinstance(node, conditions.ConditionAND):
        return join([read(own) for own in node.args], decides=False)
    if isinstance(node, conditions.ConditionOR):
        return join([read(own) for own in node.args], decides=True)
    if isinstance(node, conditions.ConditionNOT):
        negated = read(node.args[0])
        return lambda events, rows: ~negated(events, rows)
    if isinstance(node, conditions.ConditionValueExpression):
        is_wanted = read_keyword(node.value)
        return lambda events, rows: events.where(None, is_wanted, rows)
    assert isinstance(node, conditions.ConditionFieldEqualsValueExpression)
    return read_test(tuple(node.field.split(".")), node.value)


def read_test(path: tuple[str, ...], wanted: Any) -> Holds:
    """What a field and its value ask of events."""
    if isinstance(wanted, types.SigmaExpansion):
        return join([read_test(path, own) for own in wanted.values], decides=True)
    if isinstance(wanted, types.SigmaNull):
        return lambda events, rows: ~events.texts(path).is_there[rows]
    if isinstance(wanted, types.SigmaExists):
        return lambda events, rows: events.texts(path).is_there[rows] == wanted.exists
    if isinstance(wanted, types.SigmaFieldReference):
        other = tuple(wanted.field.split("."))
        return lambda events, rows: np.array(
            [
                are_equal(get(events.events[row], path), get(events.events[row], other))
                for row in rows
            ],
            dtype=np.bool_,
        )
    is_wanted = read_text_test(wanted)
    if is_neq(wanted):
        return lambda events, rows: ~events.where(path, is_wanted, rows)
    return lambda events, rows: events.where(path, is_wanted, rows)


def get(event: Event, path: tuple[str, ...]) -> list[Any]:
    """The values of a field, through nested objects: one, or those of a list."""
    value: Any = event
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    values = value if isinstance(value, list) else [value]
    return [own for own in values if own is not None and not isinstance(own, dict | list)]


def texts_in(value: Any) -> Iterator[str]:
    """All strings of an event."""
    if isinstance(value, dict | list):
        for own in value.values() if isinstance(value, dict) else value:
            yield from texts_in(own)
    elif isinstance(value, str):
        yield value


def text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def are_equal(values: list[Any], others: list[Any]) -> bool:
    return bool(lowered(values) & lowered(others))


def lowered(values: Iterable[Any]) -> set[str]:
    return {text_of(own).lower() for own in values}


def is_neq(wanted: Any) -> bool:
    return isinstance(wanted, types.SigmaCompareExpression) and (
        wanted.op is types.CompareOperators.NEQ
    )


def read_text_test(wanted: Any) -> IsWanted:
    """What a value asks of a text; for neq, what it must not be."""
    if is_neq(wanted):
        return read_text([text_of(wanted.number).lower()])
    if isinstance(wanted, types.SigmaCompareExpression):
        compare, number = COMPARISONS[wanted.op], wanted.number.number
        return lambda text, _: is_number(text) and compare(float(text), number)
    if isinstance(wanted, types.SigmaTimestampPart):
        return lambda text, _: get_part(text, wanted.timestamp_part) == wanted.number
    if isinstance(wanted, types.SigmaCIDRExpression):
        return lambda text, _: is_in_network(text, wanted.network)
    if isinstance(wanted, types.SigmaRegularExpression):
        flags = re.NOFLAG
        for flag in wanted.flags:
            flags |= FLAGS[flag]
        searched = re.compile(str(wanted.regexp), flags)
        return lambda text, _: searched.search(text) is not None
    if isinstance(wanted, types.SigmaString):
        parts = wanted.s
        if isinstance(wanted, types.SigmaCasedString):
            cased = re.compile("".join(map(spell_part, parts)), re.DOTALL)
            return lambda text, _: cased.fullmatch(text) is not None
        return read_text([own.lower() if isinstance(own, str) else own for own in parts])
    return read_text([text_of(getattr(wanted, "number", wanted)).lower()])


def read_keyword(wanted: Any) -> IsWanted:
    """What a keyword asks of a text: to contain it."""
    parts = wanted.s if isinstance(wanted, types.SigmaString) else [str(wanted)]
    lowered = [own.lower() if isinstance(own, str) else own for own in parts]
    while len(lowered) > 1 and lowered[0] is types.SpecialChars.WILDCARD_MULTI:
        del lowered[0]  # what contains the rest contains all
    while len(lowered) > 1 and lowered[-1] is types.SpecialChars.WILDCARD_MULTI:
        del lowered[-1]
    if len(lowered) == 1 and isinstance(lowered[0], str):
        (contained,) = lowered
        return lambda _, lower: contained in lower
    searched = re.compile("".join(map(spell_part, lowered)), re.DOTALL)
    return lambda _, lower: searched.search(lower) is not None


def read_text(parts: list[Any]) -> IsWanted:
    """The same without regard to case, for lower case; simple patterns without a regular
    expression."""
    many = types.SpecialChars.WILDCARD_MULTI
    texts = [own for own in parts if isinstance(own, str)]
    if len(texts) == 1 and len(texts) + parts.count(many) == len(parts):
        text = texts[0]
        if parts == [text]:
            return lambda _, lower: lower == text
        if parts == [many, text, many]:
            return lambda _, lower: text in lower
        if parts == [many, text]:
            return lambda _, lower: lower.endswith(text)
        if parts == [text, many]:
            return lambda _, lower: lower.startswith(text)
    pattern = re.compile("".join(map(spell_part, parts)), re.DOTALL)
    return lambda _, lower: pattern.fullmatch(lower) is not None


def spell_part(part: Any) -> str:
    if part is types.SpecialChars.WILDCARD_MULTI:
        return ".*"
    return "." if part is types.SpecialChars.WILDCARD_SINGLE else re.escape(part)


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.strip()) is not None


def get_part(text: str, part: types.TimestampPart) -> int | None:
    """A part of a moment in UTC; None if the text is no moment."""
    if not MOMENT.fullmatch(text):
        return None
    moment = datetime.fromisoformat(text)
    return getattr(moment.astimezone(UTC) if moment.tzinfo else moment, part.name.lower())


def is_in_network(text: str, network: Any) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address) in network
