"""Imports subscriptions of a file, with a result for each row."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import TamisError
from tamis.input.subscription_rows import read_subscriptions
from tamis.live.rehearsal import Rehearsal
from tamis.live.requests import ask
from tamis.match.reports import describe_separators
from tamis.server.answers import spell_json
from tamis.server.grouping import expect_grouping
from tamis.server.misspelt import note_misspelt
from tamis.server.problems import Problem, describe
from tamis.server.routes.subscriptions import choose_end, choose_owner, limit_expression, too_many
from tamis.server.visible import conceal
from tamis.subscriptions import KEEP, Accepted, Refused, Replace, Subscribe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.broker.tickets import Ticket
    from tamis.input.formats import Format
    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext
    from tamis.subscriptions import Subscription
    from tamis.subscriptions.model import Result

    Change = Subscribe | Replace

CHUNK_ROWS: Final = 1_000  # of one transaction
CHUNK_BYTES: Final = 8 << 20  # of expressions
TICKET: Final = "ticket"  # the column that proves the right to replace


class ImportOptions(NamedTuple):
    """What an import does."""

    replaces: bool = False  # subscriptions that exist
    is_dry: bool = False  # nothing is stored


class _Asked(NamedTuple):
    """A row, what it asks for, or what is wrong with it."""

    row: SubscriptionRow
    wanted: Subscribe | None
    problem: Problem | None = None
    shown: Any = None  # the ticket of the row
    names_owner: bool = False
    ticket: Ticket | None = None  # of a new subscription
    change: Subscribe | Replace | None = None


class Importer:
    """Runs one import; not on the event loop."""

    def __init__(self, context: ServerContext, caller: Caller, options: ImportOptions) -> None:
        self._context = context
        self._caller = caller
        self._options = options
        self._live = context.match_server.live
        live = self._live
        rehearsal = Rehearsal(live.store, live.settings, live.change) if options.is_dry else None
        self._apply = self._live.apply if rehearsal is None else rehearsal.apply
        self._before = live.settings.schema
        self._tags: dict[str, None] = {}
        self._is_full = False  # the owner has as many as allowed: it is not counted again
        self._counts = {"rows": 0, "made": 0, "replaced": 0, "refused": 0}

    def run(self, file: IO[bytes], file_format: Format) -> Iterator[bytes]:
        """Lines of JSON: a result for each row, in order, and a summary.

        The first step raises an error if the file cannot be read at all. A later one is in the
        summary, which says that the import is not complete.
        """
        chunks = _chunked(read_subscriptions(file, file_format))
        try:
            for rows in chunks:
                yield b"".join(spell_json(own) + b"\n" for own in self._import(rows))
        except TamisError as error:
            if not self._counts["rows"]:
                raise
            yield self._summarise(describe(error))
        else:
            yield self._summarise(None)

    def _summarise(self, problem: Problem | None) -> bytes:
        notes = note_misspelt(self._context, self._caller, self._before)
        if (note := describe_separators(self._tags)) is not None:
            notes.append(note)
        summary: dict[str, Any] = {"summary": self._counts, "is_complete": problem is None}
        summary["notes"] = notes
        if problem is not None:
            summary["error"] = _describe(problem)
        return spell_json(summary) + b"\n"

    # ── a chunk ────────────────────────────────────────────────────────────────────────────

    def _import(self, rows: list[SubscriptionRow]) -> list[dict[str, Any]]:
        asked = [self._prepare(row) for row in rows]
        ids = {own.wanted.id for own in asked if own.wanted is not None}
        existing = self._live.store.get_many([name for name in ids if isinstance(name, str)])
        asked = [self._choose(own, existing) for own in asked]
        changes = [own.change for own in asked if own.change is not None]
        results = iter(self._apply_within_limit(changes))
        return [self._report(own, None if own.change is None else next(results)) for own in asked]

    def _prepare(self, row: SubscriptionRow) -> _Asked:
        """The request of a row, within the limits of the caller."""
        try:
            if row.error is not None:
                error = row.error
                raise Problem(422, error.code, error.message, hint=error.hint)
            wanted = ask(row)
            assert isinstance(wanted, Subscribe)
            attributes = dict(wanted.attributes)
            expect_grouping(self._context, attributes)
            shown = attributes.pop(TICKET, None)
            limit_expression(self._context, self._caller, wanted.expression)
            if wanted.ticket_hash is not None and not self._caller.actor.is_admin:
                raise Problem(403, "not-allowed", "only an admin may import ticket_hash")
            owner = choose_owner(self._caller, wanted.owner or None)
            names_owner = bool(wanted.owner)
            self._tags |= dict.fromkeys(wanted.tags)
            wanted = wanted._replace(owner=owner, attributes=attributes)
            return _Asked(row, wanted, None, shown, names_owner)
        except Problem as problem:
            return _Asked(row, None, problem)
        except TamisError as error:
            return _Asked(row, None, describe(error))

    def _choose(self, own: _Asked, existing: Mapping[str, Subscription]) -> _Asked:
        """Whether a row makes a subscription or replaces one, and whether that is allowed."""
        if own.wanted is None:
            return own
        found = existing.get(own.wanted.id)
        try:
            if found is not None and self._options.replaces:
                return own._replace(change=self._replace(own, found))
            return self._subscribe(own)
        except Problem as problem:
            return own._replace(problem=problem)

    def _subscribe(self, own: _Asked) -> _Asked:
        wanted, ticket = own.wanted, None
        assert wanted is not None
        until: Any = wanted.valid_until
        wanted = wanted._replace(valid_until=choose_end(self._context, until, None))
        if wanted.ticket_hash is None:
            ticket = self._context.match_server.broker.tickets.make()
            wanted = wanted._replace(ticket_hash=ticket.hash)
        return own._replace(change=wanted, ticket=ticket)

    def _replace(self, own: _Asked, found: Subscription) -> Replace:
        wanted, actor = own.wanted, self._caller.actor
        assert wanted is not None
        tickets = self._context.match_server.broker.tickets
        is_right = tickets.verify(own.shown, found.ticket_hash)
        if not (is_right or actor.is_admin):
            raise Problem(
                403,
                "wrong-ticket",
                f'subscription "{found.id}" can be replaced only with its ticket',
                hint=f'add the column "{TICKET}", or use a key of an admin',
            )
        until: Any = wanted.valid_until
        return Replace(
            found.id,
            wanted.expression,
            owner=wanted.owner if actor.is_admin and own.names_owner else KEEP,
            tags=wanted.tags,
            attributes=wanted.attributes,
            valid_from=wanted.valid_from,
            valid_until=KEEP if until is None else choose_end(self._context, until, None),
            ticket_hash=KEEP if wanted.ticket_hash is None else wanted.ticket_hash,
            if_revision=found.revision,
        )

    def _apply_within_limit(self, changes: list[Change]) -> list[Result | Problem]:
        """Apply changes until the owner has as many subscriptions as allowed."""
        results: list[Result | Problem] = []
        while changes:
            room = self._find_room(changes)
            end = _end_of_room(changes, room)
            if end:
                results += self._apply(changes[:end])
            else:  # no room: the others are replaced
                results.append(too_many(self._caller.actor.owner, self._most()))
                end = 1
            changes = changes[end:]
        return results

    def _find_room(self, changes: list[Change]) -> int:
        """How many new subscriptions the owner may have."""
        n_new = sum(isinstance(own, Subscribe) for own in changes)
        if self._caller.actor.is_admin or self._options.is_dry or not n_new:
            return n_new
        owner, most = self._caller.actor.owner, self._most()
        if self._is_full or not self._context.owners.is_full(owner, most, n_new):
            return 0 if self._is_full else n_new
        room = max(0, most - self._live.store.count(owner=owner))
        # Others may take the room in the meantime; what is left is reserved.
        self._is_full = room == 0 or self._context.owners.is_full(owner, most, room)
        return 0 if self._is_full else room

    def _most(self) -> int:
        own = self._caller.limits.subscriptions
        return self._context.settings.limits.subscriptions if own is None else own

    # ── results ────────────────────────────────────────────────────────────────────────────

    def _report(self, own: _Asked, result: Result | Problem | None) -> dict[str, Any]:
        row = own.row
        found: dict[str, Any] = {"row": row.number, "line": row.file_line}
        found["id"] = row.subscription_id
        self._counts["rows"] += 1
        problem = result if isinstance(result, Problem) else own.problem
        if isinstance(result, Refused):
            problem = describe(conceal(self._context, self._caller, result.to_error()))
        if problem is not None:
            self._counts["refused"] += 1
            return found | {"status": "refused", "error": _describe(problem)}
        assert isinstance(result, Accepted)
        is_new = isinstance(own.change, Subscribe)
        status = "made" if is_new else "replaced"
        self._counts[status] += 1
        found["status"] = status
        if not self._options.is_dry:
            found["revision"] = result.number
            if own.ticket is not None:
                found["ticket"] = own.ticket.secret.reveal()
        return found


def _chunked(rows: Iterable[SubscriptionRow]) -> Iterator[list[SubscriptionRow]]:
    """Some rows at a time, of bounded size."""
    chunk: list[SubscriptionRow] = []
    n_bytes = 0
    for row in rows:
        chunk.append(row)
        n_bytes += len(row.text)
        if len(chunk) == CHUNK_ROWS or n_bytes >= CHUNK_BYTES:
            yield chunk
            chunk, n_bytes = [], 0
    if chunk:
        yield chunk


def _end_of_room(changes: list[Change], room: int) -> int:
    """The end of the changes before the first new subscription for which there is no room."""
    for at, own in enumerate(changes):
        if isinstance(own, Subscribe):
            room -= 1
            if room < 0:
                return at
    return len(changes)


def _describe(problem: Problem) -> dict[str, Any]:
    """The code, the place and the hint of a problem."""
    found = {"code": problem.code, "message": problem.detail, "hint": problem.hint}
    return found | problem.more
