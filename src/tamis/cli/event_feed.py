"""Passes the events of a source to the matcher, in batches and by columns if possible."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from tamis.cli.console import print_note
from tamis.events.names import find_names
from tamis.events.rejects import Rejects
from tamis.input.arrivals import LINGER_SECONDS
from tamis.input.event_batches import split_events, wanted_columns
from tamis.input.events import names_in_source
from tamis.input.formats import DELIMITERS, detect_format
from tamis.input.rows import Wanted
from tamis.language.ast import EVENT
from tamis.language.names import parse_path, print_path
from tamis.match.ahead import map_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import tamis
    from tamis.cli.event_rejects import EventRejects
    from tamis.errors import RowError
    from tamis.events.encoder import EncodedEvents
    from tamis.input.formats import Format
    from tamis.input.rows import Rows
    from tamis.language.schema import Path as AttributePath

CHUNK: Final = 4_096  # events: some blocks of the batch matcher
SHOWN_NAMES: Final = 5


class _Prepared(NamedTuple):
    """A batch that is ready to be matched, and the rows without an event, which it lacks."""

    read: Rows
    errors: dict[int, RowError]  # by row of `read`
    rows: Rows
    events: list[Any] | None
    encoded: EncodedEvents


class EventFeed:
    """Reads and encodes events for an index, and counts those that cannot be read."""

    def __init__(
        self,
        index: tamis.Index,
        source: str | IO[bytes],
        file_format: Format | None,
        rejects: EventRejects,
    ) -> None:
        self._index = index
        self._source = source
        self._format = file_format or detect_format(str(source))
        self._rejects = rejects
        self._is_file = isinstance(source, str) and Path(source).is_file()
        self._first: Any = None  # the first events, of a source that cannot be read twice
        self.linger = LINGER_SECONDS  # how long events of a pipe wait for more
        # Batches of a file are encoded by so many threads, while the caller matches earlier ones.
        self.threads = 1
        # Called when events have been read, before they are matched.
        self.on_events: Callable[[], None] = lambda: None
        # Attributes whose Python values are needed, by their first names; None for all.
        self._needed: set[str] | None = {path[0] for path in rejects.checked_paths}

    def need(self, names: Collection[str] | None) -> None:
        """Make `batches` also return the values of these attributes, by their first names; None for
        all.
        """
        needs_all = names is None or self._needed is None
        self._needed = None if needs_all else {*self._needed, *names}  # type: ignore[misc]

    def show(self, index: tamis.Index) -> None:
        """Encode further events for another index."""
        self._index = index
        self.need({path[0] for path in self._rejects.checked_paths})

    def batches(self) -> Iterator[tuple[Rows, list[Any] | None, EncodedEvents]]:
        """Rows with events: as mappings if needed, and encoded."""
        wanted = Wanted(
            self._columns,
            CHUNK,
            expect=self._expect_names,
            as_they_come=True,
            linger=self.linger,
        )
        found = split_events(self._source, wanted, file_format=self._format)
        # Events of a pipe are answered as they come: reading ahead would wait for later ones.
        threads = self.threads if self._is_file else 1
        for read, errors, rows, events, encoded in map_ahead(self._prepare, found, threads):
            if errors:
                self._rejects.count_rows(read, errors)
            if self._first is None and len(rows) and not self._is_file:
                self._first = rows.hold(self._rejects.types)
            self._rejects.count(rows, events, encoded)
            yield rows, events, encoded

    def find_names(self) -> set[AttributePath]:
        """The names in the first events."""
        if self._is_file:
            return names_in_source(str(self._source), self._format)
        return set() if self._first is None else find_names(self._first)

    def _prepare(self, read: Rows) -> _Prepared:
        """Called by several threads at once."""
        rows = read
        self.on_events()
        events, encoded = self._encode(rows)
        errors = encoded.rejects.row_errors
        if errors:
            rows = rows.without(errors)
            events, encoded = self._encode(rows)
        return _Prepared(read, errors, rows, events, encoded)

    def _encode(self, rows: Rows) -> tuple[list[Any] | None, EncodedEvents]:
        types, encoder = self._rejects.types, self._index.view.encoder
        has_operators = bool(len(self._index.operators))
        events = None
        if has_operators or self._needed is None or self._needed:
            events = rows.to_mappings(types, self._needed)
        encoded = encoder.encode_read(rows.read(encoder.table, Rejects(lists_all=True)))
        if has_operators:
            encoded = encoded._replace(source=rows.hold(types))
        return events, encoded

    @property
    def _columns(self) -> frozenset[str] | None:
        """The columns to read; all if the source can be read only once."""
        engines = [engine for engine in self._index.view.engines if engine.has_operators]
        for_operators = [engine.operators.attribute_names for engine in engines]
        if not self._is_file or self._needed is None or None in for_operators:
            return None
        known = wanted_columns(self._index.view.encoder.table)
        if known is None:
            return None
        return known.union(self._needed, *(own for own in for_operators if own))

    def _expect_names(self, names: list[str]) -> None:
        """Print a note if a header contains no attribute of the index."""
        if self._format not in DELIMITERS:
            return
        paths = [parse_path(name) if name else ("",) for name in names]
        wanted = self._rejects.types
        if wanted and EVENT not in wanted and wanted.keys().isdisjoint(paths):
            # Most likely the header line is missing, or the index is another one.
            name = self._source if isinstance(self._source, str) else "stdin"
            print_note(
                f"{name}: the header names no attribute of the index, so all are missing from "
                f"all events; it names {_shorten(paths)}; the index uses {_shorten(list(wanted))}"
            )


def _shorten(paths: list[AttributePath]) -> str:
    shown = [*map(print_path, paths[:SHOWN_NAMES]), *["…"] * (len(paths) > SHOWN_NAMES)]
    return ", ".join(shown)
