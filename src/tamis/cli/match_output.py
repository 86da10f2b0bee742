"""How `tamis match` prints: events with their matches, pairs, or counts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.cli.console import make_console, print_columns, printable
from tamis.cli.output import UNSEEN, print_data, spell_json
from tamis.match.event_columns import ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

SHOWN_MATCHES: Final = 5  # of one event, in a table
OTHERS: Final = {"event": "subscription", "subscription": "event"}
_TSV_ESCAPES: Final = UNSEEN | str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


def _place_of(ids: pa.StringArray) -> tuple[int, int, int]:
    """Where the ids are in memory: equal for the same list, without comparing a million ids."""
    offsets = ids.buffers()[1]
    return 0 if offsets is None else offsets.address, ids.offset, len(ids)


class Printer(ABC):
    """Prints the results, chunk by chunk."""

    def __init__(self, ids: pa.StringArray) -> None:
        self.show(ids)

    def show(self, ids: pa.StringArray) -> None:
        """Print matches of an index with these ids from now on."""
        self._ids = ids
        # Ids are converted when first printed: most of a million never are.
        self._is_spelled = np.zeros(len(ids), dtype=np.bool_)
        self._spelled = np.empty(len(ids), dtype=object)

    def print_matches(
        self, events: Sequence[Any], lists: pa.ChunkedArray, *, only_matches: bool
    ) -> None:
        """The matches of some events, each given by its name."""
        lines: list[str] = []
        named = iter(events)
        for chunk in lists.chunks:
            offsets = chunk.offsets.to_numpy()
            ordinals = chunk.values.indices.to_numpy()[offsets[0] : offsets[-1]]
            ids = self._spell_listed(chunk.values.dictionary, ordinals)
            for begin, end in pairwise((offsets - offsets[0]).tolist()):
                event = next(named)
                if begin < end or not only_matches:
                    lines.extend(self.format_matches(self.spell(event), ids[begin:end]))
        self.write(lines)

    def print_pairs(self, events: Sequence[Any], pairs: pa.Table, *, only_matches: bool) -> None:
        """The same of pairs of events and subscriptions, in the order of the pairs."""

        def format_event(at: int, event: str, ids: list[str], _: list[Any]) -> Iterable[str]:
            return self.format_matches(event, ids)

        details = [None] * len(pairs)
        self._print_pairs(events, pairs, details, format_event, only_matches=only_matches)

    def print_bound(self, events: Sequence[Any], pairs: pa.Table, *, only_matches: bool) -> None:
        """The same with the values of variables as JSON, or None if there are none."""
        bindings = [one and one.translate(UNSEEN) for one in pairs["bindings"].to_pylist()]

        def format_event(at: int, event: str, ids: list[str], bound: list[Any]) -> Iterable[str]:
            return self.format_bound(event, ids, bound)

        self._print_pairs(events, pairs, bindings, format_event, only_matches=only_matches)

    def print_detailed(
        self,
        events: Sequence[Any],
        pairs: pa.Table,
        columns: list[str],
        values: list[dict[str, Any]] | None,
        *,
        only_matches: bool,
    ) -> None:
        """The same with some columns of the subscriptions, and some values of the events."""
        details = [_json_values(row) for row in pairs.select(columns).to_pylist()]

        def format_event(at: int, event: str, ids: list[str], rows: list[Any]) -> Iterable[str]:
            own = None if values is None else values[at]
            return self.format_detailed(event, ids, rows if columns else None, own)

        self._print_pairs(events, pairs, details, format_event, only_matches=only_matches)

    def _print_pairs(
        self,
        events: Sequence[Any],
        pairs: pa.Table,
        details: list[Any],
        # takes the row of the event, its name, the ids and the details of its matches
        format_event: Callable[[int, str, list[str], list[Any]], Iterable[str]],
        *,
        only_matches: bool,
    ) -> None:
        chunks = pairs["subscription_id"].chunks
        ids = [
            spelled
            for chunk in chunks
            for spelled in self._spell_listed(chunk.dictionary, chunk.indices.to_numpy())
        ]
        limits = np.searchsorted(pairs["event_row"].to_numpy(), np.arange(len(events) + 1))
        lines: list[str] = []
        for at, (begin, end) in enumerate(pairwise(limits.tolist())):
            if begin < end or not only_matches:
                lines.extend(
                    format_event(at, self.spell(events[at]), ids[begin:end], details[begin:end])
                )
        self.write(lines)

    def print_event_counts(
        self, events: Sequence[Any], counts: Sequence[int], examples: np.ndarray
    ) -> None:
        """How many subscriptions each event matches, and one of them (-1 for none)."""
        has_one = examples >= 0
        shown = np.full(len(examples), self.spell(None), dtype=object)
        shown[has_one] = self._spell_ids(examples[has_one])
        self._print_counts("event", map(self.spell, events), counts, shown)

    def print_subscription_counts(
        self, ordinals: np.ndarray, counts: Sequence[int], examples: Sequence[Any]
    ) -> None:
        """How many events each subscription matches, and the first of them."""
        shown = map(self.spell, examples)
        self._print_counts("subscription_id", self._spell_ids(ordinals), counts, shown)

    def _print_counts(
        self, key: str, names: Iterable[str], counts: Sequence[int], examples: Iterable[str]
    ) -> None:
        rows = zip(names, counts, examples, strict=True)
        self.write([self.format_count(key, *row) for row in rows])

    def _spell_listed(self, ids: pa.StringArray, ordinals: np.ndarray) -> list[str]:
        """The ids of a result. It has a list of its own, which may be that of the index before
        subscriptions were removed.
        """
        if _place_of(ids) != _place_of(self._ids):
            self.show(ids)
        return self._spell_ids(ordinals)

    def _spell_ids(self, ordinals: np.ndarray) -> list[str]:
        new = np.unique(ordinals[~self._is_spelled[ordinals]])
        if len(new):
            self._spelled[new] = [self.spell(self._ids[at].as_py()) for at in new.tolist()]
            self._is_spelled[new] = True
        return list(self._spelled[ordinals])

    def write(self, lines: list[str]) -> None:
        """Print the lines and flush them."""
        if lines:
            print_data("\n".join(lines) + "\n")

    @abstractmethod
    def spell(self, name: Any) -> str:
        """The name of an event or a subscription."""

    @abstractmethod
    def format_matches(self, event: str, ids: list[str]) -> Iterable[str]:
        """The lines of one event."""

    @abstractmethod
    def format_bound(self, event: str, ids: list[str], bindings: list[str | None]) -> Iterable[str]:
        """The lines of one event, with the bindings of each match."""

    @abstractmethod
    def format_detailed(
        self,
        event: str,
        ids: list[str],
        details: list[dict[str, Any]] | None,
        values: dict[str, Any] | None,
    ) -> Iterable[str]:
        """The lines of one event, with columns of each subscription and values of the event."""

    @abstractmethod
    def format_count(self, key: str, name: str, count: int, example: str) -> str:
        """The line of one count."""


def _json_values(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _flat(
    ids: list[str], details: list[dict[str, Any]] | None, values: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """The columns of each match's subscription and event."""
    return [own | (values or {}) for own in details or ({} for _ in ids)]


class JsonPrinter(Printer):
    """One JSON object for each event."""

    def spell(self, name: Any) -> str:
        return spell_json(name)

    def format_matches(self, event: str, ids: list[str]) -> Iterable[str]:
        return (f'{{"event": {event}, "matches": [{", ".join(ids)}]}}',)

    def format_bound(self, event: str, ids: list[str], bindings: list[str | None]) -> Iterable[str]:
        bound = ", ".join(f"{name}: {one}" for name, one in zip(ids, bindings, strict=True) if one)
        return (f'{{"event": {event}, "matches": [{", ".join(ids)}], "bindings": {{{bound}}}}}',)

    def format_detailed(
        self,
        event: str,
        ids: list[str],
        details: list[dict[str, Any]] | None,
        values: dict[str, Any] | None,
    ) -> Iterable[str]:
        parts = [f'"event": {event}']
        if values is not None:
            whole = values.get(ATTRIBUTES) if values.keys() == {ATTRIBUTES} else values
            parts.append(f'"attributes": {spell_json(whole)}')
        parts.append(f'"matches": [{", ".join(ids)}]')
        if details is not None:
            own = (f"{name}: {spell_json(one)}" for name, one in zip(ids, details, strict=True))
            parts.append(f'"with": {{{", ".join(own)}}}')
        return (f"{{{', '.join(parts)}}}",)

    def format_count(self, key: str, name: str, count: int, example: str) -> str:
        return f'{{"{key}": {name}, "matches": {count}, "example": {example}}}'


class PairPrinter(JsonPrinter):
    """One JSON object for each match."""

    def format_matches(self, event: str, ids: list[str]) -> Iterable[str]:
        return [f'{{"event": {event}, "subscription_id": {name}}}' for name in ids]

    def format_bound(self, event: str, ids: list[str], bindings: list[str | None]) -> Iterable[str]:
        start = f'{{"event": {event}, "subscription_id": '
        return [
            f'{start}{name}, "bindings": {one or "{}"}}}'
            for name, one in zip(ids, bindings, strict=True)
        ]

    def format_detailed(
        self,
        event: str,
        ids: list[str],
        details: list[dict[str, Any]] | None,
        values: dict[str, Any] | None,
    ) -> Iterable[str]:
        start = f'{{"event": {event}, "subscription_id": '
        return [
            f"{start}{name}, {spell_json(one)[1:]}"
            for name, one in zip(ids, _flat(ids, details, values), strict=True)
        ]


class TsvPrinter(Printer):
    """One line for each match: event, tab, subscription; control characters are escaped.

    JSON, the form of values of variables, contains neither tabs nor line ends.
    """

    def spell(self, name: Any) -> str:
        return name.translate(_TSV_ESCAPES) if isinstance(name, str) else spell_json(name)

    def format_matches(self, event: str, ids: list[str]) -> Iterable[str]:
        return [f"{event}\t{name}" for name in ids]

    def format_bound(self, event: str, ids: list[str], bindings: list[str | None]) -> Iterable[str]:
        return [f"{event}\t{name}\t{one or '{}'}" for name, one in zip(ids, bindings, strict=True)]

    def format_detailed(
        self,
        event: str,
        ids: list[str],
        details: list[dict[str, Any]] | None,
        values: dict[str, Any] | None,
    ) -> Iterable[str]:
        return [
            "\t".join((event, name, *("" if v is None else self.spell(v) for v in one.values())))
            for name, one in zip(ids, _flat(ids, details, values), strict=True)
        ]

    def format_count(self, key: str, name: str, count: int, example: str) -> str:
        return f"{name}\t{count}\t{example if count else ''}"


class TablePrinter(Printer):
    """A table for people, with the first few matches of each event."""

    def __init__(self, ids: pa.StringArray) -> None:
        super().__init__(ids)
        self._rows: list[list[str]] = []
        self._is_begun = False

    def spell(self, name: Any) -> str:
        return printable(name if isinstance(name, str) else json.dumps(name, ensure_ascii=False))

    def format_matches(self, event: str, ids: list[str]) -> Iterable[str]:
        self._begin("event", "matches", "subscriptions")
        shown = ids[:SHOWN_MATCHES]
        if len(ids) > SHOWN_MATCHES:
            shown.append(f"and {len(ids) - SHOWN_MATCHES:,} more")
        self._rows.append([event, f"{len(ids):,}", ", ".join(shown)])
        return ()

    def format_bound(self, event: str, ids: list[str], bindings: list[str | None]) -> Iterable[str]:
        rows = zip(ids, bindings, strict=True)
        return self.format_matches(
            event, [f"{name} {printable(one)}" if one else name for name, one in rows]
        )

    def format_detailed(
        self,
        event: str,
        ids: list[str],
        details: list[dict[str, Any]] | None,
        values: dict[str, Any] | None,
    ) -> Iterable[str]:
        rows = _flat(ids, details, values)
        if rows:
            self._begin("event", "subscription", *rows[0])
        for name, one in zip(ids, rows, strict=True):
            shown = ["" if value is None else self.spell(value) for value in one.values()]
            self._rows.append([event, name, *shown])
        return ()

    def format_count(self, key: str, name: str, count: int, example: str) -> str:
        named = key.removesuffix("_id")
        self._begin(named, "matches", f"example {OTHERS[named]}")
        self._rows.append([name, f"{count:,}", example if count else ""])
        return ""

    def _begin(self, *headings: str) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._rows.append(list(headings))

    def write(self, lines: list[str]) -> None:
        if self._rows:
            print_columns(make_console(), self._rows)
            self._rows = []


PRINTERS: Final[dict[str, type[Printer]]] = {
    "json": JsonPrinter,
    "pairs": PairPrinter,
    "tsv": TsvPrinter,
    "table": TablePrinter,
}
