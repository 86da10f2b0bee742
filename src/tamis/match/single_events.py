"""Single events as callers pass them, read once for all parts of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.input.events import read_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tamis.events.rejects import Rejects
    from tamis.events.single_reader import EventReader
    from tamis.events.single_space import EventBuffer

    Event = Mapping[str, Any] | str | bytes  # a mapping, or the JSON text of one


class SingleEvents:
    """Reads single events. Threads share it."""

    def __init__(
        self,
        reader: EventReader,
        rejects: Rejects,
        *,
        has_operators: bool,
        report_repeated: Callable[[str], None] | None = None,
    ) -> None:
        self._reader = reader
        self._rejects = rejects
        self._has_operators = has_operators
        self._report_repeated = report_repeated
        self.give_back = reader.give_back

    def reporting_to(self, rejects: Rejects) -> SingleEvents:
        """The same; values that cannot be read, and repeated keys, are added to these rejects."""
        return SingleEvents(
            self._reader,
            rejects,
            has_operators=self._has_operators,
            report_repeated=lambda key: rejects.oddities.add_repeated(rejects.first_row, key),
        )

    def read(self, event: Event) -> EventBuffer:
        """The event in a buffer, which the caller gives back; raises an `InputError` if it is
        none.
        """
        if type(event) is not dict:
            # Operators need the whole event.
            if isinstance(event, str | bytes) and not self._has_operators:
                buffer = self._reader.read_text(event, self._rejects)
                if buffer is not None:
                    return buffer
            event = read_event(event, self._report_repeated)
        return self._reader.read(event, self._rejects)
