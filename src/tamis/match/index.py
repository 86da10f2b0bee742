"""The index as its users see it: match one event, match many, count, explain, save."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from tamis.arguments import expect_best, expect_names, expect_path
from tamis.errors import InputError
from tamis.index import artefact
from tamis.index.uses import unused_attributes
from tamis.input.events import expect_events, is_event, read_event
from tamis.language.moments import read_at
from tamis.language.weights import WEIGHT
from tamis.match.catalogue import IndexPart
from tamis.match.details import report_weightless
from tamis.match.encode_events import encode_parts, encode_whole, report_missing
from tamis.match.place import Place, SavedPlace, open_saved, reopen
from tamis.match.readouts.counts import EventCounts, SubscriptionCounts
from tamis.match.readouts.lists import Lists
from tamis.match.readouts.rows import ResultRows
from tamis.match.readouts.summaries import Counted, EventSummary, SubscriptionSummary
from tamis.match.readouts.top import TopRows, best_of_one
from tamis.match.result import Result, refuse_columns
from tamis.match.terms import share_terms
from tamis.match.view import View
from tamis.operators.registry import REGISTRY, Registry

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tamis.errors import ExpressionError
    from tamis.events.encoder import EncodedEvents
    from tamis.index.contents import Contents
    from tamis.match.explain import Explanation
    from tamis.match.joined_operators import JoinedOperators
    from tamis.match.operators import Operators
    from tamis.match.question import Question, Readout
    from tamis.match.questions import Subset, Tags

Answer = TypeVar("Answer")


class Index:
    """Subscriptions, ready to be matched. Safe to use from several threads at once.

    It has one or several parts; each part has some of the subscriptions, and answers are in the
    order of parts. In all methods that match, `subset` (ids) and `tagged` (tags, of which a
    subscription must have at least one) select the subscriptions to consider, and `at` is the
    moment at which they must be valid (a datetime, or text in ISO format), by default now.
    """

    def __init__(
        self,
        *parts: Contents | IndexPart,
        rejects: Sequence[ExpressionError] = (),
        registry: Registry | None = REGISTRY,
        n_groups: int | None = None,
    ) -> None:
        """`n_groups` is the number of groups of 512 events in a block, by default chosen by
        size.
        """
        if not parts:
            raise InputError("an index has at least one part", hint="build it: tamis.build({})")
        given = [part if isinstance(part, IndexPart) else IndexPart(part) for part in parts]
        self.rejects = list(rejects)  # rejected by `build`; empty for an index that was opened
        self.place: Place | None = None  # where it is saved
        # Each method reads it once: in an index that changes, it may be replaced at any time.
        self.view = View(given, registry, n_groups=n_groups)

    @classmethod
    def showing(cls, view: View) -> Index:
        """An index that answers as a view does."""
        index = cls.__new__(cls)
        index.rejects, index.place, index.view = [], None, view
        return index

    @property
    def contents(self) -> Contents:
        """The arrays of an index of one part; raises an `InputError` if there are several."""
        parts = self.view.shown
        if len(parts) != 1:
            raise InputError(
                f"the index has {len(parts)} parts; this needs an index of one part",
                hint="build one index of all subscriptions: tamis build FILE -o INDEX",
            )
        return parts[0]

    @property
    def parts(self) -> tuple[Contents, ...]:
        """The arrays of each part; subscriptions that later parts replace match nothing."""
        return self.view.shown

    @property
    def operators(self) -> Operators | JoinedOperators:
        """The operators that subscriptions call: their limits, faults and statistics."""
        return self.view.operators

    def __len__(self) -> int:
        return len(self.view.catalogue)

    def __repr__(self) -> str:
        name = type(self).__name__
        if not self.__dict__:
            return f"{name}(closed)"
        view = self.view
        n_nodes = sum(engine.contents.n_nodes for engine in view.engines)
        parts = f" in {len(view.engines)} parts" if len(view.engines) != 1 else ""
        return f"{name}({len(view.catalogue):,} subscriptions, {n_nodes:,} nodes{parts})"

    def __iter__(self) -> Iterator[str]:
        """The ids of all subscriptions, in the order of the index."""
        return iter(self.ids.to_pylist())

    def __contains__(self, subscription_id: object) -> bool:
        return subscription_id in self.view.catalogue

    @property
    def ids(self) -> pa.StringArray:
        """The ids of all subscriptions, by ordinal."""
        return self.view.catalogue.ids

    def ordinal(self, subscription_id: Any) -> int:
        """The number of a subscription in the index."""
        return self.view.catalogue.ordinal(subscription_id)

    def expression(self, subscription_id: str) -> str:
        """The expression of a subscription, as it was written."""
        catalogue = self.view.catalogue
        return catalogue.text(catalogue.ordinal(subscription_id))

    def attributes(self, subscription_id: str) -> dict[str, Any]:
        """The details of a subscription besides its expression: tags, valid_from, valid_until, and
        the other columns of its row.
        """
        view = self.view
        return view.details.of(view.catalogue.ordinal(subscription_id))

    def tagged(self, *tags: str) -> list[str]:
        """The ids of the subscriptions that have one of the tags.

        Warns about a tag that no subscription has.
        """
        catalogue = self.view.catalogue
        return catalogue.names(np.flatnonzero(catalogue.find_tagged(tags)))

    def list_tagged(self, tags: Sequence[str]) -> list[str]:
        """The same, where it is no mistake that no subscription has a tag."""
        catalogue = self.view.catalogue
        is_tagged = catalogue.find_tagged(tags, is_reported=False)
        return catalogue.names(np.flatnonzero(is_tagged))

    def list_valid(self, at: Any = None) -> np.ndarray:
        """The ordinals of the subscriptions that are valid at a moment."""
        view, at = self._take_view(at)
        return view.list_valid(view.clock() if at is None else read_at(at))

    @property
    def version(self) -> str | None:
        """The name of the version that answers, such as v00000012; None without versions."""
        return None if self.place is None else self.place.version

    @property
    def unused_attributes(self) -> list[str]:
        """The attributes of the schema that no subscription uses."""
        return unused_attributes(self.parts)

    def expect_columns(self, columns: Sequence[str]) -> None:
        """Raise an `InputError` for columns that no subscription has."""
        self.view.details.expect(columns)

    # ── keeping, sending and closing ───────────────────────────────────────────────────────

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, operators: Any = (), **options: Any) -> Index:
        """The index saved at `path`; see `artefact.open_contents` for the options."""
        return open_saved(cls, path, operators, options)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        key: str | bytes | None = None,
    ) -> None:
        """Write the index to a directory, from which `tamis.open` opens it.

        With a `key` of 16 bytes or more it is signed, and the signature can be checked when it is
        opened.
        """
        expect_path(path)
        learned = self.operators.statistics
        statistics = self.contents.statistics | ({"operators": learned} if learned else {})
        contents = replace(self.contents, statistics=statistics)
        artefact.save(contents, path, overwrite=overwrite, key=key)
        self.place = SavedPlace.at(path, self.view.registry)

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the files and the memory of the index, which cannot be used afterwards."""
        self.__dict__.clear()

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes: an open index has all of its attributes.
        if name.startswith("__") or self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise InputError("the index is closed", hint="open it again: tamis.open(path)")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the path of the saved index, not its contents."""
        if self.place is None:
            raise InputError(
                "an index that is not saved cannot be pickled",
                hint="save it first: index.save(path)",
            )
        return reopen, (type(self), self.place)

    # ── matching ───────────────────────────────────────────────────────────────────────────

    def match(
        self,
        event: Mapping[str, Any] | str | bytes,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        at: Any = None,
    ) -> list[str]:
        """The ids of the subscriptions that the event satisfies, in the order they are found.

        The event is a mapping of attributes, or the JSON text of one (`str` or `bytes`).
        """
        view, at = self._take_view(at)
        return view.ask(subset, tagged, at).match_names(event)

    def match_many(
        self,
        events: Iterable[Mapping[str, Any] | str | bytes],
        *,
        subset: Subset = None,
        tagged: Tags = None,
        at: Any = None,
    ) -> list[list[str]]:
        """The lists of `match` for some events: for up to a few hundred of them, faster than
        `match_lists`.

        Each is a mapping or JSON text. What is not an event raises an `InputError` with its row.
        Attributes that no event of the first call has, or of the first one with 100 events or more,
        are reported.
        """
        view, at = self._take_view(at)
        given = iter(expect_events(events))
        first = view.first_events.take(given)
        found = view.ask(subset, tagged, at).match_each(chain(first, given))
        if view.first_events.is_due(first):
            report_missing(view.encoder, first, view.asked)
        return found

    def match_bindings(
        self,
        event: Mapping[str, Any] | str | bytes,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        at: Any = None,
    ) -> dict[str, dict[str, Any]]:
        """The ids of the subscriptions that the event satisfies, each with its substitution.

        The substitution has a value for each variable that needs one; it is empty if a subscription
        has no variables.
        """
        view, at = self._take_view(at)
        return view.ask(subset, tagged, at).match_bindings(event)

    def match_batch(  # noqa: PLR0913 - what to match, and which columns to return
        self,
        events: Any,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        bindings: bool = False,
        event_id: str | None = None,
        columns: Sequence[str] = (),
        event_columns: Sequence[str] = (),
        at: Any = None,
    ) -> pa.Table:
        """One row (event_row, subscription_id) for each match, by event.

        With `event_id`, the name of an attribute of events, the first column is event_id instead:
        that attribute's value. With `bindings` there is an additional column: the values of the
        subscription's variables as JSON, NULL if there are none. `columns` names further columns of
        the subscription: expression, tags, valid_from, valid_until, its attributes. `event_columns`
        names attributes of the event; "*" is the whole event, as JSON in a column named attributes.
        """
        view, at = self._take_view(at)
        question = view.ask(subset, tagged, at, threads, with_bindings=bindings)
        result = Result(
            view.listing, view.listed_details, event_id, columns, event_columns, bindings
        )
        chunks = list(_put(view, question, events, ResultRows(result), bool(result.readers)))
        return pa.Table.from_batches(chunks, schema=None if chunks else result.schema())

    def match_chunks(  # noqa: PLR0913
        self,
        events: Any,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        bindings: bool = False,
        event_id: str | None = None,
        columns: Sequence[str] = (),
        event_columns: Sequence[str] = (),
        at: Any = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of `match_batch`, one block of events at a time, so that memory stays
        bounded.
        """
        view, at = self._take_view(at)
        question = view.ask(subset, tagged, at, threads, with_bindings=bindings)
        result = Result(
            view.listing, view.listed_details, event_id, columns, event_columns, bindings
        )
        yield from _put(view, question, events, ResultRows(result), bool(result.readers))

    def match_lists(
        self,
        events: Any,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        at: Any = None,
    ) -> pa.ChunkedArray:
        """The list of matching subscription ids of each event."""
        view, at = self._take_view(at)
        return _put(view, view.ask(subset, tagged, at, threads), events, Lists(view.listing.ids))

    def match_top(  # noqa: PLR0913
        self,
        events: Any,
        k: int,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        event_id: str | None = None,
        columns: Sequence[str] = (),
        event_columns: Sequence[str] = (),
        at: Any = None,
    ) -> Any:
        """The `k` matches of highest weight of each event, or all if it has fewer: one row
        (event_row, subscription_id, weight) for each, the highest weight first, equal ones by id.

        Of one event, given as a mapping, the list of ids. Other keywords are as for `match_batch`.
        """
        n_best = expect_best(k, "k")
        columns = (WEIGHT, *expect_names(columns, "columns"))
        view, at = self._take_view(at)
        catalogue = view.listing
        question, ranking = view.ask(subset, tagged, at, threads), catalogue.ranking
        if len(catalogue) and not catalogue.has_weights:
            report_weightless()
        if is_event(events):
            refuse_columns(event_id=event_id, columns=columns[1:], event_columns=event_columns)
            best = best_of_one(question.match_ordinals(events), ranking, n_best)
            return catalogue.names(best)
        result = Result(catalogue, view.listed_details, event_id, columns, event_columns)
        readout = TopRows(result, ranking, n_best)
        chunks = list(_put(view, question, events, readout, bool(result.readers)))
        return pa.Table.from_batches(chunks, schema=None if chunks else result.schema())

    def count_by_subscription(
        self,
        events: Any,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        at: Any = None,
    ) -> np.ndarray:
        """How many events each subscription matches, by ordinal; no pairs are produced."""
        view, at = self._take_view(at)
        question = view.ask(subset, tagged, at, threads)
        return _put(view, question, events, SubscriptionCounts(view.catalogue))

    def count_by_event(
        self,
        events: Any,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        at: Any = None,
    ) -> np.ndarray:
        """How many subscriptions each event satisfies; no pairs are produced."""
        view, at = self._take_view(at)
        return _put(view, view.ask(subset, tagged, at, threads), events, EventCounts())

    def summarise_by_subscription(
        self,
        events: Any,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        at: Any = None,
    ) -> Counted:
        """How many events each subscription matches, by ordinal, and the row of the first one.

        It is -1 for a subscription without a match. No pairs are produced, except by operators.
        """
        view, at = self._take_view(at)
        question = view.ask(subset, tagged, at, threads)
        return _put(view, question, events, SubscriptionSummary(question.parts))

    def summarise_by_event(
        self,
        events: Any,
        *,
        subset: Subset = None,
        tagged: Tags = None,
        threads: int = 1,
        at: Any = None,
    ) -> Counted:
        """How many subscriptions each event satisfies, and the ordinal of the first one.

        It is -1 for an event without a match. No pairs are produced, except by operators.
        """
        view, at = self._take_view(at)
        return _put(view, view.ask(subset, tagged, at, threads), events, EventSummary())

    def explain(
        self, subscription_id: str, event: Mapping[str, Any] | str | bytes, *, at: Any = None
    ) -> Explanation:
        """Why the subscription matches the event at a moment, or why not."""
        from tamis.match.explain import explain_match

        view, at = self._take_view(at)
        return explain_match(view, subscription_id, read_event(event), at)

    def _take_view(self, at: Any) -> tuple[View, Any]:
        """The view that answers, and the moment of the question: `at`, or now."""
        view = self.view
        return (view, at) if at is not None or not view.is_timed else self.view_now()

    def view_now(self) -> tuple[View, datetime]:
        """The view, and a moment at which it was the current one: a lease that was renewed in time
        has not ended in it.
        """
        while True:
            view = self.view
            moment = view.clock()
            if self.view is view:
                return view, moment

    # ── events ─────────────────────────────────────────────────────────────────────────────

    def encode(
        self, events: Any, *, column: str | None = None, strict: bool = False
    ) -> EncodedEvents:
        """Events as codes, ready to be matched any number of times.

        Events are a list of dicts or of JSON texts, a frame (Arrow, pandas, Polars) of typed
        columns, or one whose `column` holds them as structs, maps or JSON, an iterator of record
        batches, or the path of a file: all of its events are held in memory. A value of the wrong
        type is treated as missing and counted in `rejects`; with `strict` it is an error. Encoded
        events are returned unchanged.
        """
        view = self.view
        return encode_whole(
            view.encoder, events, column=column, strict=strict, keep=view.has_operators
        )

    def term_frequencies(self, events: Any) -> dict[str, dict[str, float]]:
        """The share of events that have each word or phrase of the index, by attribute.

        Pass it to `build` to optimise an index of the same or other subscriptions for such events.
        """
        view = self.view
        encoded = encode_whole(view.encoder, events, column=None, strict=False, keep=False)
        return share_terms(view.shown, encoded)


def _put(
    view: View,
    question: Question,
    events: Any,
    readout: Readout[Any, Answer],
    keeps_source: bool = False,
) -> Answer:
    """The result of a read-out for a question."""
    keep = keeps_source or view.has_operators
    return question.put(encode_parts(view.encoder, events, view.asked, keep=keep), readout)
