"""Decides which requests are accepted, and makes their rows. Nothing is stored here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.moments import REVERSED_HINT
from tamis.language.types.moments import from_microseconds
from tamis.subscriptions.model import Accepted, ChangeKind, Reason, Refused, Result
from tamis.subscriptions.rows import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.subscriptions.checking import Checked

_STATE: Final = Row._fields[Row._fields.index("created") :]
_NO_STATE: Final = (None,) * len(_STATE)
# Plain strings: database drivers treat enumerations in different ways.
_KINDS: Final = {kind: str(kind.value) for kind in ChangeKind}


class RequestGroup:
    """The requests of one transaction."""

    def __init__(self, latest: Mapping[str, Row], last_change: int, moment: int) -> None:
        """`latest` has the newest row of each id that the requests name."""
        self.last_change = last_change
        self.rows: list[Row] = []  # to insert
        self.superseded: list[tuple[int, int]] = []  # stored rows: by which change, which row
        self._first = last_change + 1
        self._latest = dict(latest)
        self._moment = moment

    def decide(self, request: Checked) -> Result:
        """Accept or refuse the next request."""
        row = self._latest.get(request.subscription_id)
        if request.kind is ChangeKind.SUBSCRIBE:
            return self._subscribe(request, row)
        if (refusal := self._refuse_absent(request, row)) is not None:
            return refusal
        assert row is not None
        if request.kind in (ChangeKind.UNSUBSCRIBE, ChangeKind.EXPIRE):
            return self._append(request.kind, request.subscription_id, _NO_STATE)
        if (refusal := self._refuse_state(request, row)) is not None:
            return refusal
        state = row._replace(**request.columns)[-len(_STATE) :]
        return self._append(request.kind, request.subscription_id, state)

    def _subscribe(self, request: Checked, row: Row | None) -> Result:
        if row is not None and row.has_state():
            if not row.has_ended(self._moment):
                message = f'subscription "{row.subscription_id}" exists already'
                return Refused(Reason.EXISTS, message, row.number)
        else:
            row = None
        if (refusal := self._refuse_validity(request.columns)) is not None:
            return refusal
        if row is not None:
            # Its lease has ended without an entry yet: write that before the id is used again.
            self._append(ChangeKind.EXPIRE, request.subscription_id, _NO_STATE)
        state = (self.last_change + 1, *request.columns.values())
        return self._append(ChangeKind.SUBSCRIBE, request.subscription_id, state)

    def _refuse_absent(self, request: Checked, row: Row | None) -> Refused | None:
        named = f'subscription "{request.subscription_id}"'
        if row is None or row.kind == ChangeKind.UNSUBSCRIBE:
            when = "" if row is None else f": it was unsubscribed by change {row.number}"
            return Refused(Reason.UNKNOWN, f"there is no {named}{when}")
        has_ended = row.has_ended(self._moment)
        if request.kind is ChangeKind.EXPIRE:
            is_due = row.has_state() and has_ended
            return None if is_due else Refused(Reason.INVALID, f"{named} has not ended", row.number)
        if not row.has_state() or has_ended:
            return Refused(Reason.EXPIRED, f"the lease of {named} has ended")
        if request.if_revision not in (None, row.number):
            message = f"{named} has revision {row.number}, not {request.if_revision}"
            return Refused(Reason.REVISION, message, row.number)
        return None

    def _refuse_state(self, request: Checked, row: Row) -> Refused | None:
        columns = request.columns
        if request.kind is ChangeKind.RENEW:
            until = columns["valid_until"]
            if until is not None and (row.valid_until is None or until < row.valid_until):
                end = row.valid_until
                ends = "has no end" if end is None else f"is valid until {_show(end)}"
                message = (
                    f'subscription "{row.subscription_id}" {ends}; a renewal does not shorten it, '
                    "a replacement does"
                )
                return Refused(Reason.SHORTER, message, row.number)
        validity = {"valid_from": row.valid_from, "valid_until": row.valid_until, **columns}
        return self._refuse_validity(validity)

    def _refuse_validity(self, columns: Mapping[str, Any]) -> Refused | None:
        start, end = columns.get("valid_from"), columns.get("valid_until")
        if end is None:
            return None
        if end <= self._moment:
            now = _show(self._moment)
            message = (
                f"valid_until {_show(end)} is not in the future; the store's clock is at {now}"
            )
            return Refused(Reason.INVALID, message)
        if start is not None and start >= end:
            message = f"valid_from {_show(start)} is not before valid_until {_show(end)}"
            return Refused(Reason.INVALID, f"{message}; {REVERSED_HINT}")
        return None

    def _append(self, kind: ChangeKind, subscription_id: str, state: tuple[Any, ...]) -> Accepted:
        before = self._latest.get(subscription_id)
        self.last_change = number = self.last_change + 1
        if before is not None:
            self._supersede(before, number)
        previous = None if before is None else before.number
        kept = (number, _KINDS[kind], subscription_id, self._moment, previous, None)
        row = Row(*kept, *state)
        self._latest[subscription_id] = row
        self.rows.append(row)
        return Accepted(number)

    def _supersede(self, row: Row, number: int) -> None:
        if row.number < self._first:
            self.superseded.append((number, row.number))
        else:
            at = row.number - self._first
            self.rows[at] = row._replace(superseded_by=number)


def _show(micros: int) -> str:
    return from_microseconds(micros).isoformat()
