"""What the store promises, in plain Python: a dictionary, and the list of what it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tamis.subscriptions import (
    KEEP,
    ChangeKind,
    Reason,
    Renew,
    Replace,
    State,
    Subscribe,
    Subscription,
    Unsubscribe,
)

FIELDS = ("expression", "owner", "tags", "attributes", "valid_from", "valid_until", "ticket_hash")


class ModelStore:
    """Answers as the store should."""

    def __init__(self) -> None:
        self.held: dict[str, Subscription] = {}  # ended leases too, until that is written
        self.states: list[dict[str, Subscription]] = [{}]  # as of each change
        self.log: list[tuple[ChangeKind, str, datetime]] = []
        self.ends: dict[str, ChangeKind] = {}  # how subscriptions ended that are no longer held
        self.expired: dict[str, Subscription] = {}  # whose end is written, and not forgotten
        self.seen = self.durable = datetime(1970, 1, 1, tzinfo=UTC)
        self.horizon = 0

    @property
    def last_change(self) -> int:
        return len(self.log)

    def see(self, moment: datetime) -> None:
        self.seen = max(self.seen, moment)

    def restart(self, moment: datetime) -> None:
        """The clock goes on at the moment on disk, or later; leases that have ended stay ended."""
        assert self.durable <= moment
        ended = [one for one in self.held.values() if self.has_ended(one)]
        self.seen = moment
        assert all(map(self.has_ended, ended))

    def has_ended(self, one: Subscription) -> bool:
        return one.valid_until is not None and one.valid_until <= self.seen

    def apply(self, request) -> int | Reason:
        """The number of the change, or why there is none."""
        one = self.held.get(request.id)
        if isinstance(request, Subscribe):
            return self._subscribe(request, one)
        if one is None:
            has_expired = self.ends.get(request.id) is ChangeKind.EXPIRE
            return Reason.EXPIRED if has_expired else Reason.UNKNOWN
        if self.has_ended(one):
            return Reason.EXPIRED
        if request.if_revision not in (None, one.revision):
            return Reason.REVISION
        if isinstance(request, Unsubscribe):
            return self._end(ChangeKind.UNSUBSCRIBE, one)
        if isinstance(request, Renew):
            until = request.valid_until
            if until is not None and (one.valid_until is None or until < one.valid_until):
                return Reason.SHORTER
            return self._change(ChangeKind.RENEW, one._replace(valid_until=until))
        assert isinstance(request, Replace)
        given = {name: getattr(request, name) for name in FIELDS}
        return self._change(
            ChangeKind.REPLACE,
            one._replace(**{name: value for name, value in given.items() if value is not KEEP}),
        )

    def expire(self) -> int:
        due = [one for one in self.held.values() if self.has_ended(one)]
        for one in sorted(due, key=lambda one: (one.valid_until, one.revision)):
            self._end(ChangeKind.EXPIRE, one)
        return len(due)

    def prune(self, before: int) -> None:
        self.horizon = max(self.horizon, before)
        for name in list(self.ends):
            last = max(n for n, (_, named, _) in enumerate(self.log, 1) if named == name)
            if last <= before:
                del self.ends[name]
                self.expired.pop(name, None)

    def list(self, owner, tag, text, state) -> list[str]:
        if state is State.EXPIRED:
            ended = {name: one for name, one in self.held.items() if self.has_ended(one)}
            found = self.expired | ended
        else:
            found = {name: one for name, one in self.held.items() if not self.has_ended(one)}
        return sorted(
            name
            for name, one in found.items()
            if (owner is None or one.owner == owner)
            and (tag is None or tag in one.tags)
            and (text is None or text in one.expression or text in name)
            and (state in (None, State.EXPIRED) or self._is_waiting(one) == (state == "waiting"))
            and (state is not State.EXPIRING or self._expires_soon(one))
        )

    def _expires_soon(self, one: Subscription) -> bool:
        if one.valid_until is None:
            return False
        begun = one.changed if one.valid_from is None else max(one.changed, one.valid_from)
        left = one.valid_until - self.seen
        return left < timedelta(days=1) and 10 * left < one.valid_until - begun

    def _is_waiting(self, one: Subscription) -> bool:
        return one.valid_from is not None and one.valid_from > self.seen

    def _subscribe(self, request: Subscribe, one: Subscription | None) -> int | Reason:
        if one is not None and not self.has_ended(one):
            return Reason.EXISTS
        number = self.last_change + 1 + (one is not None)
        given = (getattr(request, name) for name in FIELDS)
        new = Subscription(request.id, *given, revision=number, created=number)
        if (reason := self._refuse_validity(new)) is not None:
            return reason
        if one is not None:
            self._end(ChangeKind.EXPIRE, one)
        return self._change(ChangeKind.SUBSCRIBE, new)

    def _refuse_validity(self, one: Subscription) -> Reason | None:
        if one.valid_until is None:
            return None
        is_empty = one.valid_from is not None and one.valid_from >= one.valid_until
        return Reason.INVALID if is_empty or self.has_ended(one) else None

    def _change(self, kind: ChangeKind, one: Subscription) -> int | Reason:
        if (reason := self._refuse_validity(one)) is not None:
            return reason
        self.held[one.id] = one._replace(revision=self.last_change + 1, changed=self.seen)
        self.ends.pop(one.id, None)
        self.expired.pop(one.id, None)
        return self._write(kind, one.id)

    def _end(self, kind: ChangeKind, one: Subscription) -> int:
        del self.held[one.id]
        self.ends[one.id] = kind
        if kind is ChangeKind.EXPIRE:
            self.expired[one.id] = one
        return self._write(kind, one.id)

    def _write(self, kind: ChangeKind, name: str) -> int:
        self.log.append((kind, name, self.seen))
        self.states.append(dict(self.held))
        self.durable = self.seen
        return self.last_change
