"""Requests that are decided as a live set would decide them, and not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.types.moments import to_microseconds
from tamis.subscriptions import Reason, Refused, Subscription
from tamis.subscriptions.checking import Checked, check
from tamis.subscriptions.deciding import RequestGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.index.build import Built
    from tamis.live.settings import Settings
    from tamis.subscriptions import SubscriptionStore
    from tamis.subscriptions.model import Request, Result
    from tamis.subscriptions.rows import Row


class Rehearsal:
    """Decides request after request; each sees what the ones before it would have changed."""

    def __init__(self, store: SubscriptionStore, settings: Settings, last_change: int) -> None:
        self._store = store
        self.settings = settings  # with the types that accepted expressions would fix
        self._last_change = last_change
        self._rows: dict[str, Row] = {}  # the newest that would be, by id

    def apply(self, requests: Sequence[Request]) -> list[Result]:
        """A result for each request; numbers of changes are those that would follow now."""
        return self.decide([check(request) for request in requests])

    def decide(self, requests: Sequence[Checked | Refused]) -> list[Result]:
        """The same for requests that are checked already."""
        results: list[Result] = []
        while len(results) < len(requests):  # each id once at a time
            end = find_distinct_end(requests, len(results))
            results += self._decide(requests[len(results) : end])
        return results

    def _decide(self, requests: Sequence[Checked | Refused]) -> list[Result]:
        named = {own.subscription_id: own for own in requests if isinstance(own, Checked)}
        rows = self._store.latest_rows(named.keys() - self._rows.keys()) | self._rows
        moment = to_microseconds(self._store.settled_moment())
        refused = find_refused(named.values(), rows, moment)
        readable = {name: own for name, own in named.items() if name not in refused}
        refused |= self._check_expressions(readable)
        group = RequestGroup(rows, self._last_change, moment)
        results = [
            own
            if isinstance(own, Refused)
            else refused.get(own.subscription_id) or group.decide(own)
            for own in requests
        ]
        self._rows |= {row.subscription_id: row for row in group.rows}
        self._last_change = group.last_change
        accepted = {row.subscription_id for row in group.rows}
        # Only what is accepted fixes types.
        built = self._build({name: own for name, own in named.items() if name in accepted})
        if built is not None:
            self.settings = self.settings.with_part(built.contents)
        return results

    def _check_expressions(self, named: Mapping[str, Checked]) -> dict[str, Refused]:
        """The refusals of expressions that are wrong, by id."""
        built = self._build(named)
        return {
            str(error.subscription_id): Refused(Reason.INVALID, error.message, error=error)
            for error in (() if built is None else built.rejects)
        }

    def _build(self, named: Mapping[str, Checked]) -> Built | None:
        rows = [
            Subscription(name, own.columns["expression"], "", (), {}, None, None, None, at, at)
            for at, (name, own) in enumerate(named.items(), start=1)
            if "expression" in own.columns
        ]
        return self.settings.build(rows) if rows else None


def find_refused(
    requests: Iterable[Checked], rows: Mapping[str, Row], moment: int
) -> dict[str, Refused]:
    """The refusals that do not depend on expressions, by id: these requests must not decide how the
    others are read. Each id occurs once; `rows` has the newest row of each.
    """
    last_change = max((row.number for row in rows.values()), default=0)
    group = RequestGroup(rows, last_change, moment)
    decided = ((own.subscription_id, group.decide(own)) for own in requests)
    return {name: result for name, result in decided if isinstance(result, Refused)}


def find_distinct_end(requests: Sequence[Checked | Refused], start: int) -> int:
    """The end of the requests from `start` on that have distinct ids."""
    seen: set[str] = set()
    for at in range(start, len(requests)):
        request = requests[at]
        if isinstance(request, Checked):
            if request.subscription_id in seen:
                return at
            seen.add(request.subscription_id)
    return len(requests)
