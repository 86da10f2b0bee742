"""Matches the events of requests to publish: many at once, or one by one if there are few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.archive import ArrowEvents, JsonEvents
from tamis.broker.outcomes import (
    BadRow,
    Published,
    describe_rejects,
    describe_repeated_keys,
    list_bad_rows,
)
from tamis.errors import InputError, RowError
from tamis.events.json_source import JsonSpans
from tamis.events.json_texts import parse_event
from tamis.events.rejects import Rejects
from tamis.language.types.moments import from_microseconds, to_microseconds
from tamis.match.readouts.numbers import NamedNumbers, NumberLists, Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tamis.archive import Events
    from tamis.broker.outcomes import IgnoredValues
    from tamis.kernels.arrays import Int64
    from tamis.live.index import LiveIndex
    from tamis.match.question import Question
    from tamis.match.view import View

# Events: the kernel for batches matches up to 512 of them in the time of about so many single ones.
FEW: Final = 8


class Publication(NamedTuple):
    """A request to publish events."""

    events: JsonSpans | pa.RecordBatch
    n_bytes: int
    key: bytes | None = None  # a digest of the publisher and the idempotency key
    request: bytes = b""  # a digest of the events
    wants_ids: bool = False


class Matched(NamedTuple):
    """The events of a request and what they match; not yet written."""

    view: View  # that answered
    events: Events
    moment: int
    lists: NumberLists
    ids: list[list[str]] | None
    bad_rows: list[BadRow]
    ignored: list[IgnoredValues]
    is_matched: bool = True  # False if a stream matches them later
    notes: tuple[str, ...] = ()

    @property
    def change(self) -> int:
        """They were matched by the set as of this change."""
        assert self.view.change is not None
        return self.view.change

    def published(self, epoch: str, first: int) -> Published:
        """The answer, once the number of the first event is known."""
        sizes = np.diff(self.lists.starts)
        return Published(
            epoch,
            first if len(sizes) else None,
            len(sizes),
            self.change,
            from_microseconds(self.moment),
            int(np.count_nonzero(sizes)) if self.is_matched else None,
            int(self.lists.starts[-1]) if self.is_matched else None,
            self.bad_rows,
            self.ignored,
            self.ids,
            self.notes,
        )


class _Now(NamedTuple):
    """The set that answers, and the moment. It is one for all requests of a group, so that neither
    changes nor moments go back from one event to the next.
    """

    view: View
    moment: datetime


def match_requests(live: LiveIndex, group: Sequence[Publication]) -> list[Matched | Exception]:
    """The matches of each request; an error of one does not affect the others."""
    try:
        now = _Now(*live.view_now())
    except Exception as error:
        return [error for _ in group]
    small = [own for own in group if isinstance(own.events, JsonSpans) and not own.wants_ids]
    small = [own for own in small if len(own.events) <= FEW]
    if sum(len(own.events) for own in small) > FEW:
        joined = iter(_match_together(now, small))
        is_small = {id(own) for own in small}
        return [next(joined) if id(own) in is_small else _match(now, own) for own in group]
    return [_match(now, own) for own in group]


def accept_requests(live: LiveIndex, group: Sequence[Publication]) -> list[Matched | Exception]:
    """The events of each request, which are not matched: a stream does that later."""
    try:
        now = _Now(*live.view_now())
    except Exception as error:
        return [error for _ in group]
    return [_accept(now, own) for own in group]


def _accept(now: _Now, asked: Publication) -> Matched | Exception:
    try:
        if asked.wants_ids:
            raise InputError(
                "which subscriptions match is not known yet: a stream matches the events later",
                hint="publish without matches=ids, and read the mailboxes",
            )
        view, moment = now
        encoded = view.encoder.encode(asked.events)
        is_bad = np.zeros(encoded.n_rows, dtype=np.bool_)
        is_bad[encoded.bad_rows] = True
        n_events = encoded.n_rows - int(np.count_nonzero(is_bad))
        return Matched(
            view,
            _keep(asked.events, is_bad),
            to_microseconds(moment),
            NumberLists(np.zeros(n_events + 1, np.int64), _NOTHING),
            None,
            list_bad_rows(encoded.rejects),
            describe_rejects(encoded.rejects),
            is_matched=False,
            notes=describe_repeated_keys(encoded.rejects),
        )
    except Exception as error:
        return error


def _match(now: _Now, asked: Publication) -> Matched | Exception:
    try:
        if isinstance(asked.events, JsonSpans) and len(asked.events) <= FEW and not asked.wants_ids:
            return _match_few(now, asked.events)
        return _match_many(now, asked)
    except Exception as error:
        return error


def _match_many(now: _Now, asked: Publication) -> Matched:
    view, moment = now
    encoded = view.encoder.encode(asked.events)
    question = view.ask(None, None, moment)
    ids = None
    if asked.wants_ids:
        named = question.put([encoded], NamedNumbers())
        lists, ids = named.lists, named.ids
    else:
        lists = question.put([encoded], Numbers())
    is_bad = np.zeros(encoded.n_rows, dtype=np.bool_)
    is_bad[encoded.bad_rows] = True
    return Matched(
        view,
        _keep(asked.events, is_bad),
        to_microseconds(moment),
        _without(lists, is_bad),
        None if ids is None else [own for own, bad in zip(ids, is_bad, strict=True) if not bad],
        list_bad_rows(encoded.rejects),
        describe_rejects(encoded.rejects),
        notes=describe_repeated_keys(encoded.rejects),
    )


def _match_few(now: _Now, events: JsonSpans) -> Matched:
    view, moment = now
    rejects = Rejects()
    question = view.ask(None, None, moment).reporting_to(rejects)
    found: list[Int64] = []
    is_bad = np.zeros(len(events), dtype=np.bool_)
    bad_rows = []
    for row, text in enumerate(events):
        rejects.first_row = row
        try:
            found.append(_match_one(question, text))
        except RowError as error:
            is_bad[row] = True
            bad_rows.append(BadRow(row, error.code, error.message))
    sizes = np.cumsum([0, *map(len, found)], dtype=np.int64)
    lists = NumberLists(sizes, np.concatenate([_NOTHING, *found]))
    return Matched(
        view,
        _keep(events, is_bad),
        to_microseconds(moment),
        lists,
        None,
        bad_rows,
        describe_rejects(rejects),
        notes=describe_repeated_keys(rejects),
    )


_NOTHING: Final = np.empty(0, dtype=np.int64)


def _match_one(question: Question, text: Any) -> Int64:
    if isinstance(text, RowError):
        raise text
    try:
        return question.match_numbers(text)
    except InputError:
        parse_event(text)  # raises the error of the text itself, if it has one
        raise


def _match_together(now: _Now, group: Sequence[Publication]) -> list[Matched | Exception]:
    """The matches of small requests, found as one batch."""
    try:
        joined = _join([own.events for own in group])
        whole = _match_many(now, Publication(joined, 0))
    except Exception:
        return [_match(now, own) for own in group]
    if whole.bad_rows or whole.ignored or whole.notes:
        return [_match(now, own) for own in group]  # each learns its own
    matched: list[Matched | Exception] = []
    first = 0
    starts, numbers = whole.lists
    for own in group:
        end = first + len(own.events)
        begin, until = int(starts[first]), int(starts[end])
        lists = NumberLists(starts[first : end + 1] - begin, numbers[begin:until])
        events = _keep(own.events, np.zeros(len(own.events), dtype=np.bool_))
        matched.append(whole._replace(events=events, lists=lists))
        first = end
    return matched


def _join(events: Sequence[Any]) -> JsonSpans:
    """The texts of several requests in one buffer."""
    sizes = [len(own.data) for own in events]
    offsets = np.cumsum([0, *sizes[:-1]])
    return JsonSpans(
        np.concatenate([own.data for own in events]),
        np.concatenate([own.starts + at for own, at in zip(events, offsets, strict=True)]),
        np.concatenate([own.ends + at for own, at in zip(events, offsets, strict=True)]),
    )


def _keep(events: Any, is_bad: np.ndarray) -> Events:
    """The events without rows that are not an event."""
    if isinstance(events, JsonSpans):
        good = np.flatnonzero(~is_bad)
        return JsonEvents(events.data, events.starts[good], events.ends[good])
    return ArrowEvents(events.filter(pa.array(~is_bad)) if is_bad.any() else events)


def _without(lists: NumberLists, is_bad: np.ndarray) -> NumberLists:
    """The lists without those of rows that are not an event, which are empty."""
    if not is_bad.any():
        return lists
    return NumberLists(np.concatenate([lists.starts[:1], lists.starts[1:][~is_bad]]), lists.numbers)
