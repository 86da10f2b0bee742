"""The index as its users see it: match one event, match many, count, explain, save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.arguments import expect_count, expect_path
from tamis.errors import IndexFormatError, InputError, suggest
from tamis.events.encoder import EncodedEvents, EventEncoder
from tamis.events.rows import EventRows
from tamis.index import artefact
from tamis.index.columns import TEXT
from tamis.index.hiding import keep_roots
from tamis.index.saving import read_content_name
from tamis.index.uses import unused_attributes
from tamis.index.validity import NO_VALIDITY
from tamis.input.events import read_event
from tamis.input.schemas import open_schema
from tamis.input.subscriptions import open_subscriptions
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.moments import read_at
from tamis.language.names import print_path
from tamis.logic.evaluate import NOTHING, Missing
from tamis.match.batch import (
    Pairs,
    Scratch,
    choose_groups,
    count_block_by_event,
    count_block_by_subscription,
    make_scratch,
    match_block_pairs,
    match_groups,
)
from tamis.match.details import Details
from tamis.match.examples import (
    Counted,
    add_always,
    add_pairs,
    add_roots,
    count_events,
    count_pairs,
    count_roots,
)
from tamis.match.given import encode_parts, encode_whole
from tamis.match.kernels.event import match_event
from tamis.match.kernels.rows import ROW
from tamis.match.moments import Moments, Shown
from tamis.match.names import Names
from tamis.match.operators import Operators, read_registry
from tamis.match.reports import report_build
from tamis.match.result import SUBSCRIPTION_ID, Found, Result
from tamis.match.single import SingleScratch, make_single_scratch, with_all_tops
from tamis.match.tags import report_tags
from tamis.match.unseen import Asked, SingleRejects
from tamis.operators.registry import REGISTRY, Registry
from tamis.operators.verdict import Verdict

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from tamis.errors import ExpressionError
    from tamis.index.build import Progress
    from tamis.index.contents import Contents
    from tamis.index.frequencies import Frequencies
    from tamis.index.layout import RootArrays
    from tamis.match.batch import Group
    from tamis.match.event_columns import EventColumn
    from tamis.match.explain import Explanation

    Subset = Iterable[str] | None  # ids of the subscriptions to consider; None for all


class Index:
    """Subscriptions, ready to be matched. Safe to use from several threads at once."""

    def __init__(
        self,
        contents: Contents,
        rejects: Sequence[ExpressionError] = (),
        registry: Registry | None = REGISTRY,
        *,
        is_timeless: bool = False,
    ) -> None:
        """`is_timeless`: subscriptions answer at any moment; others are hidden in the contents."""
        self.contents = contents
        self.rejects = list(rejects)  # subscriptions that could not be taken in
        self.operators = Operators(contents, registry)
        self.place: Place | None = None  # where it is saved
        self._details = Details(contents)
        self._moments = Moments(contents, NO_VALIDITY if is_timeless else contents.validity)
        self._registry = registry
        self.encoder = EventEncoder(
            contents.columns, contents.leaves.column_codes, contents.constants
        )
        self.asked = Asked(contents, self.encoder.table)
        self._single_rejects = SingleRejects()
        self._n_groups: int | None = None  # of 512 events in a block; by size unless set
        self._scratches: SimpleQueue[Scratch] = SimpleQueue()
        self._single_scratches: SimpleQueue[SingleScratch] = SimpleQueue()

    def __len__(self) -> int:
        return len(self.contents.ids)

    def __repr__(self) -> str:
        if not self.__dict__:
            return "Index(closed)"
        return f"Index({len(self):,} subscriptions, {self.contents.n_nodes:,} nodes)"

    def __iter__(self) -> Iterator[str]:
        """The ids of all subscriptions, in the order of the index."""
        return iter(self.contents.ids.to_pylist())

    def __contains__(self, subscription_id: object) -> bool:
        return isinstance(subscription_id, str) and subscription_id in self._numbers

    def expression(self, subscription_id: str) -> str:
        """The expression of a subscription, as it was written."""
        return str(self.contents.texts[self.ordinal(subscription_id)].as_py())

    def attributes(self, subscription_id: str) -> dict[str, Any]:
        """What a subscription has besides its expression: tags, valid_from, valid_until, and the
        other columns of its row."""
        return self._details.of(self.ordinal(subscription_id))

    @property
    def unused_attributes(self) -> list[str]:
        """The attributes of the schema that no subscription uses."""
        return unused_attributes(self.contents)

    @property
    def details(self) -> Details:
        """What subscriptions have besides their expressions."""
        return self._details

    def expect_columns(self, columns: Sequence[str]) -> None:
        """Raise an `InputError` for columns that no subscription has."""
        self._details.expect(columns)

    # ── keeping, sending and closing ───────────────────────────────────────────────────────

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files and the memory of the index, which cannot be used any more."""
        self.__dict__.clear()

    def __getattr__(self, name: str) -> Any:
        # Only for what is not there: an open index has all of its attributes.
        if name.startswith("__") or self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise InputError("the index is closed", hint="open it again: tamis.open(path)")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled is where the index is saved, not what it holds."""
        if self.place is None:
            raise InputError(
                "an index that is not saved cannot be pickled",
                hint="save it first: index.save(path)",
            )
        return reopen, (self.place,)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        key: str | bytes | None = None,
    ) -> None:
        """Write the index to a directory, from which `tamis.open` opens it.

        With a `key` of 16 bytes or more it is signed, and who opens it can check that.
        """
        expect_path(path)
        learned = self.operators.statistics
        statistics = self.contents.statistics | ({"operators": learned} if learned else {})
        contents = replace(self.contents, statistics=statistics)
        artefact.save(contents, path, overwrite=overwrite, key=key)
        self.place = Place.at(path, self._registry)

    # ── matching ───────────────────────────────────────────────────────────────────────────

    def match(self, event: Mapping[str, Any] | str | bytes, *, at: Any = None) -> list[str]:
        """The ids of the subscriptions that the event satisfies, in the order they are found.

        The event is a mapping of attributes, or the JSON text of one (`str` or `bytes`). Of
        subscriptions whose validity is limited, those match that are valid at the moment `at` (a
        datetime, or text in ISO's format); now, if none is given. So it is in all that matches.
        """
        event = read_event(event)
        shown = self._moments.shown(at)
        with self._borrow(self._single_scratches, self._make_single_scratch) as scratch:
            places = self._match_event(event, scratch)
            if shown is None and not len(self.operators):
                return self._names.at(places)
            ordinals = self._ordinals_at(places)
        if shown is not None:
            ordinals = ordinals[shown.is_awake[ordinals]]
        verdict = self._decide(event, ordinals, with_bindings=False)
        is_kept = ~self.operators.is_decided_here[ordinals]
        is_kept |= np.isin(ordinals, list(verdict.ordinals))
        return list(self.contents.ids.take(pa.array(ordinals[is_kept])).to_pylist())

    def match_bindings(
        self, event: Mapping[str, Any] | str | bytes, *, at: Any = None
    ) -> dict[str, dict[str, Any]]:
        """The ids of the subscriptions that the event satisfies, each with its substitution.

        The substitution has a value for each variable that needs one; it is empty where a
        subscription has no variables.
        """
        event = read_event(event)
        ordinals = self._match_ordinals(event)
        shown = self._moments.shown(at)
        if shown is not None:
            ordinals = ordinals[shown.is_awake[ordinals]]
        verdict = self._decide(event, ordinals, with_bindings=True)
        return {
            str(self.contents.ids[ordinal].as_py()): verdict.bindings.get(ordinal, {})
            for ordinal in ordinals.tolist()
            if ordinal in verdict.ordinals or not self.operators.is_decided_here[ordinal]
        }

    def match_batch(  # noqa: PLR0913 - what to match, and what to say of it
        self,
        events: Any,
        *,
        subset: Subset = None,
        threads: int = 1,
        bindings: bool = False,
        event_id: str | None = None,
        columns: Sequence[str] = (),
        event_columns: Sequence[str] = (),
        at: Any = None,
    ) -> pa.Table:
        """One row (event_row, subscription_id) for each match, by event.

        With `event_id`, the name of an attribute of events, the first column is event_id instead:
        that attribute's value. With `bindings` there is one more column: the values of the
        subscription's variables as JSON, NULL where there are none. `columns` names what else of
        the subscription is wanted: expression, tags, valid_from, valid_until, its attributes.
        `event_columns` names attributes of the event that are wanted; "*" is the whole event, as
        JSON in a column named attributes.
        """
        result = Result(
            self.contents, self._details, event_id, columns, event_columns, bindings=bindings
        )
        found = self._match_blocks(
            events, subset, threads, at, with_bindings=bindings, readers=result.readers
        )
        chunks = list(result.batches(found))
        return pa.Table.from_batches(chunks, schema=None if chunks else result.schema())

    def match_chunks(  # noqa: PLR0913
        self,
        events: Any,
        *,
        subset: Subset = None,
        threads: int = 1,
        bindings: bool = False,
        event_id: str | None = None,
        columns: Sequence[str] = (),
        event_columns: Sequence[str] = (),
        at: Any = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of `match_batch`, a block of events at a time: no more is held in memory."""
        result = Result(
            self.contents, self._details, event_id, columns, event_columns, bindings=bindings
        )
        found = self._match_blocks(
            events, subset, threads, at, with_bindings=bindings, readers=result.readers
        )
        yield from result.batches(found)

    def match_lists(
        self, events: Any, *, subset: Subset = None, threads: int = 1, at: Any = None
    ) -> pa.ChunkedArray:
        """The list of matching subscription ids of each event."""
        chunks = []
        for pairs, _, _ in self._match_blocks(events, subset, threads, at):
            ids = pa.DictionaryArray.from_arrays(pa.array(pairs.subscriptions), self.contents.ids)
            chunks.append(pa.LargeListArray.from_arrays(pa.array(pairs.starts), ids))
        return pa.chunked_array(chunks, pa.large_list(SUBSCRIPTION_ID.type))

    def count_by_subscription(self, events: Any, *, threads: int = 1, at: Any = None) -> np.ndarray:
        """How many events each subscription matches, by ordinal; no pair is made."""
        threads = expect_count(threads, "threads")
        counts = np.zeros(len(self.contents.ids), dtype=np.int64)
        for batch in self._encode_parts(events):
            counts += self._count_by_subscription(batch, threads)
        shown = self._moments.shown(at)
        if shown is not None:
            counts[~shown.is_awake] = 0
        return counts

    def _count_by_subscription(self, batch: EncodedEvents, threads: int) -> np.ndarray:
        contents = self.contents
        counts = np.zeros(len(contents.ids), dtype=np.int64)

        def count(first_row: int) -> np.ndarray:
            own = np.zeros(len(contents.ids), dtype=np.int64)
            with self._borrow(self._scratches, self._make_scratch) as scratch:
                count_block_by_subscription(first_row, batch.arrays, contents, scratch, own)
            return own

        if threads == 1:
            with self._borrow(self._scratches, self._make_scratch) as scratch:
                for first_row in self._blocks(batch):
                    count_block_by_subscription(first_row, batch.arrays, contents, scratch, counts)
        else:
            for own in _in_order(count, self._blocks(batch), threads):
                counts += own
        counts[contents.roots.always] += batch.n_rows
        if n_bad := len(batch.bad_rows):
            counts[self._match_ordinals({})] -= n_bad  # they were taken for empty events
        if len(self.operators):
            counts[self.operators.is_decided_here] = 0
            for pairs in self._match_decided(batch, self._every_subscription(), threads):
                counts += np.bincount(pairs.subscriptions, minlength=len(counts))
        return counts

    def count_by_event(
        self, events: Any, *, subset: Subset = None, threads: int = 1, at: Any = None
    ) -> np.ndarray:
        """How many subscriptions each event satisfies; no pair is made."""
        threads = expect_count(threads, "threads")
        wanted = self._find_wanted(subset, at)
        parts = [
            self._count_by_event(batch, wanted, threads) for batch in self._encode_parts(events)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])

    def _count_by_event(
        self, batch: EncodedEvents, wanted: Shown | None, threads: int
    ) -> np.ndarray:
        contents = self.contents
        is_wanted = self._every_subscription() if wanted is None else wanted.is_awake
        if len(self.operators):
            is_settled = is_wanted & ~self.operators.is_decided_here
            roots = keep_roots(contents.roots, is_settled)
        else:
            roots = contents.roots if wanted is None else wanted.roots

        def count(first_row: int) -> np.ndarray:
            with self._borrow(self._scratches, self._make_scratch) as scratch:
                return count_block_by_event(first_row, batch.arrays, contents, roots, scratch)

        blocks = _in_order(count, self._blocks(batch), threads)
        counts = np.concatenate([np.empty(0, np.int64), *blocks]) + len(roots.always)
        counts[batch.bad_rows] = 0
        if len(self.operators):
            for pairs in self._match_decided(batch, is_wanted, threads):
                own = np.diff(pairs.starts)
                counts[pairs.first_row : pairs.first_row + len(own)] += own
        return counts

    def summarise_by_subscription(
        self, events: Any, *, subset: Subset = None, threads: int = 1, at: Any = None
    ) -> Counted:
        """How many events each subscription matches, by ordinal, and the row of the first one.

        It is -1 for a subscription without a match. No pair is made, except by operators.
        """
        threads = expect_count(threads, "threads")
        wanted = self._find_wanted(subset, at)
        roots = self.contents.roots if wanted is None else wanted.roots
        counted = Counted.nothing(len(self.contents.ids))
        first_row = 0
        for batch in self._encode_parts(events):
            own = Counted.nothing(len(self.contents.ids))
            if len(self.operators):
                add_pairs(own, self._match_roots(batch, roots, threads))
            else:
                read = partial(count_roots, bad_rows=batch.bad_rows)
                add_roots(own, self._read_groups(batch, roots, threads, read), roots)
                add_always(own, roots, batch)
            counted.add(slice(None), *own.after(first_row))
            first_row += batch.n_rows
        return counted

    def summarise_by_event(
        self, events: Any, *, subset: Subset = None, threads: int = 1, at: Any = None
    ) -> Counted:
        """How many subscriptions each event satisfies, and the ordinal of the first one.

        It is -1 for an event without a match. No pair is made, except by operators.
        """
        threads = expect_count(threads, "threads")
        wanted = self._find_wanted(subset, at)
        roots = self.contents.roots if wanted is None else wanted.roots
        parts = [Counted.nothing(0)]
        for batch in self._encode_parts(events):
            if len(self.operators):
                parts += map(count_pairs, self._match_roots(batch, roots, threads))
            else:
                read = partial(count_events, roots=roots, bad_rows=batch.bad_rows)
                parts += self._read_groups(batch, roots, threads, read)
        return Counted(*map(np.concatenate, zip(*parts, strict=True)))

    def explain(
        self, subscription_id: str, event: Mapping[str, Any] | str | bytes, *, at: Any = None
    ) -> Explanation:
        """Why the subscription matches the event at a moment, or why not."""
        from tamis.match.explain import explain

        contents = self.contents
        event = read_event(event)
        ordinal = self.ordinal(subscription_id)
        text = contents.texts[ordinal].as_py()
        known = self.operators.know(ordinal, text, event) if contents.schema.operators else NOTHING
        found = explain(subscription_id, text, event, contents.schema, contents.missing, known)
        shown = self._moments.shown(at)
        if shown is None or shown.is_awake[ordinal]:
            return found
        return found.asleep(read_at(at), **self._details.limits(ordinal))

    # ── events and subscriptions ───────────────────────────────────────────────────────────

    def encode(
        self, events: Any, *, column: str | None = None, strict: bool = False
    ) -> EncodedEvents:
        """Events as codes, ready to be matched any number of times.

        Events are a list of dicts or of JSON texts, a frame (Arrow, pandas, Polars) of typed
        columns, or one whose `column` holds them as structs, maps or JSON, an iterator of record
        batches, or the path of a file: all of its events are held in memory. A value of the wrong
        type is treated as missing and counted in `rejects`; with `strict` it is an error. What is
        encoded already is returned as it is.
        """
        if isinstance(events, EncodedEvents):
            if events.columns is not self.contents.columns:
                raise InputError(
                    "these events were encoded by another index",
                    hint="encode them with the index that is to match them: index.encode(events)",
                )
            return events
        keep = bool(len(self.operators))
        encoded = encode_whole(self.encoder, events, column=column, strict=strict, keep=keep)
        # Operators are given the events themselves; otherwise nobody needs them any more.
        return encoded if keep else encoded._replace(source=None)

    def _encode_parts(self, events: Any, *, keep: bool = False) -> Iterator[EncodedEvents]:
        """The events in codes; those of files and other streams a part at a time."""
        if isinstance(events, EncodedEvents):
            yield self.encode(events)
            return
        keep = keep or bool(len(self.operators))
        for batch in encode_parts(self.encoder, events, self.asked, keep=keep):
            yield batch if keep else batch._replace(source=None)

    def term_frequencies(self, events: Any) -> dict[str, dict[str, float]]:
        """The share of events that have each word or phrase of the index, by attribute.

        Given to `build`, an index of the same or other subscriptions is laid out by them.
        """
        batch = self.encode(events)
        counts = self.count_codes(batch)
        return {
            attribute: dict(zip(terms, (own / max(1, batch.n_rows)).tolist(), strict=True))
            for attribute, terms, own in self.text_counts(counts)
        }

    def count_codes(self, events: Any) -> np.ndarray:
        """How many events have each code of the index: int64[n_codes]."""
        codes = self.encode(events).arrays.codes
        n_codes = self.contents.n_codes
        return np.bincount(codes[codes < n_codes], minlength=n_codes)

    def text_counts(self, counts: np.ndarray) -> Iterator[tuple[str, list[str], np.ndarray]]:
        """Of what `count_codes` counted, each text attribute's terms, and how many have each."""
        firsts = self.contents.leaves.column_codes.tolist()
        for column, first in zip(self.contents.columns, firsts, strict=False):
            if column.kind == TEXT:
                # A constant c_i has the code 2i + 1.
                own = counts[first + 1 : first + column.n_codes : 2]
                yield print_path(column.attributes[0].path), list(column.constants or ()), own

    def ordinal(self, subscription_id: Any) -> int:
        """The number of a subscription in the index."""
        if not isinstance(subscription_id, str):
            what = type(subscription_id).__name__
            raise InputError(f"a subscription's id is text, not {what}: {subscription_id!r}")
        ordinal = self._numbers.get(subscription_id)
        if ordinal is None:
            likely = suggest(subscription_id, list(self._numbers)[:10_000])
            hint = f'did you mean "{likely}"?' if likely else None
            raise InputError(f'no subscription "{subscription_id}" in the index', hint=hint)
        return ordinal

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {known: at for at, known in enumerate(self.contents.ids.to_pylist())}

    def tagged(self, *tags: str) -> list[str]:
        """The ids of the subscriptions that have one of the tags, for use as a subset.

        Warns of a tag that no subscription has.
        """
        import pyarrow.compute as pc

        for tag in tags:
            if not isinstance(tag, str):
                raise InputError(f"a tag is text, not {type(tag).__name__}: {tag!r}")
        flat = self.contents.tags.flatten()
        report_tags(tags, flat)
        owners = np.repeat(
            np.arange(len(self.contents.ids)), np.diff(self.contents.tags.offsets.to_numpy())
        )
        is_wanted = pc.is_in(flat, pa.array(tags, pa.string())).to_numpy(zero_copy_only=False)
        return list(self.contents.ids.take(pa.array(np.unique(owners[is_wanted]))).to_pylist())

    @cached_property
    def _names(self) -> Names:
        return Names(self.contents.ids, self.contents.roots)

    def _every_subscription(self) -> np.ndarray:
        return np.ones(len(self.contents.ids), dtype=np.bool_)

    def _find_wanted(self, subset: Subset, at: Any) -> Shown | None:
        """The subscriptions of a subset that answer at a moment; None for all that there are."""
        shown = self._moments.shown(at)
        if subset is None:
            return shown
        if isinstance(subset, str) or not isinstance(subset, Iterable):
            raise InputError(
                f"subset is {subset!r}; it is a list of subscription ids",
                hint=f"write [{subset!r}]",
            )
        is_wanted = np.zeros(len(self.contents.ids), dtype=np.bool_)
        is_wanted[[self.ordinal(subscription_id) for subscription_id in subset]] = True
        if shown is not None:
            is_wanted &= shown.is_awake
        return Shown(is_wanted, keep_roots(self.contents.roots, is_wanted))

    # ── blocks and scratch ─────────────────────────────────────────────────────────────────

    def _match_event(self, event: Mapping[str, Any], scratch: SingleScratch) -> np.ndarray:
        """The places among the roots of what matches, of what operators decide all that may."""
        contents = self.contents
        n_found = match_event(
            0,
            self.encoder.encode_event(event, self._single_rejects),
            contents.leaves,
            contents.nodes,
            self._single_roots,
            contents.triggers,
            scratch,
        )
        return scratch.found[:n_found]

    def _match_ordinals(self, event: Mapping[str, Any]) -> np.ndarray:
        """The subscriptions that the event satisfies, of what operators decide all that may."""
        with self._borrow(self._single_scratches, self._make_single_scratch) as scratch:
            return self._ordinals_at(self._match_event(event, scratch))

    def _ordinals_at(self, places: np.ndarray) -> np.ndarray:
        roots = self.contents.roots
        return np.concatenate((roots.always, roots.subscriptions[places]))

    def _decide(
        self, event: Mapping[str, Any], ordinals: np.ndarray, *, with_bindings: bool
    ) -> Verdict:
        """What operators say of one event's candidates."""
        own = ordinals[self.operators.is_decided_here[ordinals]].tolist()
        if not own:
            return Verdict(set(), {})
        return next(self.operators.decide([(event, own)], with_bindings=with_bindings))

    def _match_decided(
        self, batch: EncodedEvents, is_wanted: np.ndarray, threads: int
    ) -> Iterator[Pairs]:
        """The matches of those wanted in which operators have a say."""
        is_decided_here = is_wanted & self.operators.is_decided_here
        roots = keep_roots(self.contents.roots, is_decided_here)
        return self._match_roots(batch, roots, threads)

    def _match_blocks(  # noqa: PLR0913
        self,
        events: Any,
        subset: Subset,
        threads: int,
        at: Any,
        *,
        with_bindings: bool = False,
        readers: Sequence[EventColumn] = (),
    ) -> Iterator[Found]:
        threads = expect_count(threads, "threads")
        wanted = self._find_wanted(subset, at)
        roots = self.contents.roots if wanted is None else wanted.roots
        first_row = 0
        for batch in self._encode_parts(events, keep=bool(readers)):
            if first_row + batch.n_rows > MOST_ROWS:
                raise InputError(
                    f"more than {MOST_ROWS:,} events at once; event_row has 32 bits",
                    hint="match them in several calls",
                )
            read = [reader.read(batch) for reader in readers]
            for pairs in self._match_roots(batch, roots, threads, with_bindings=with_bindings):
                shifted = pairs._replace(first_row=first_row + pairs.first_row)
                yield Found(shifted, first_row, read)
            first_row += batch.n_rows

    def _match_roots(
        self,
        batch: EncodedEvents,
        roots: RootArrays,
        threads: int,
        *,
        with_bindings: bool = False,
    ) -> Iterator[Pairs]:
        verify = self._verifier(batch, with_bindings=with_bindings)
        bad_rows = batch.bad_rows

        def match(first_row: int) -> list[Pairs]:
            with self._borrow(self._scratches, self._make_scratch) as scratch:
                found = list(
                    match_block_pairs(first_row, batch.arrays, self.contents, roots, scratch)
                )
            return [verify(pairs.without(bad_rows)) for pairs in found]

        for groups in _in_order(match, self._blocks(batch), threads):
            yield from groups

    def _read_groups(
        self,
        batch: EncodedEvents,
        roots: RootArrays,
        threads: int,
        read: Callable[[Group, Scratch], Any],
    ) -> Iterator[Any]:
        """What `read` makes of each group of events and the roots found for it."""

        def run(first_row: int) -> list[Any]:
            with self._borrow(self._scratches, self._make_scratch) as scratch:
                groups = match_groups(first_row, batch.arrays, self.contents, roots, scratch)
                return [read(group, scratch) for group in groups]

        for block in _in_order(run, self._blocks(batch), threads):
            yield from block

    def _verifier(self, batch: EncodedEvents, *, with_bindings: bool) -> Callable[[Pairs], Pairs]:
        """What makes matches of candidates: operators, if there are any."""
        if not len(self.operators):
            return lambda pairs: pairs
        names = self.operators.attribute_names
        rows = EventRows(batch.source, batch.column, self.contents.schema, names)
        return lambda pairs: self.operators.verify(pairs, rows, with_bindings=with_bindings)

    def _blocks(self, batch: EncodedEvents) -> range:
        return range(0, batch.n_rows, ROW * self._choose_groups())

    def _choose_groups(self) -> int:
        return self._n_groups or choose_groups(self.contents.n_stored)

    @contextmanager
    def _borrow(self, pool: SimpleQueue[Any], make: Callable[[], Any]) -> Iterator[Any]:
        """Scratch for one thread, given back to be used again."""
        try:
            scratch = pool.get_nowait()
        except Empty:
            scratch = make()
        try:
            yield scratch
        finally:
            pool.put(scratch)

    def _make_scratch(self) -> Scratch:
        return make_scratch(self.contents, self._choose_groups())

    def _make_single_scratch(self) -> SingleScratch:
        return make_single_scratch(self.contents, self._single_roots)

    @cached_property
    def _single_roots(self) -> RootArrays:
        return with_all_tops(self.contents)


MOST_ROWS = 2**31 - 1  # that `event_row` can count


def build(  # noqa: PLR0913 - all that decides what the index is
    subscriptions: Any,
    schema: Any = None,
    *,
    missing: str | Missing = Missing.UNDEFINED,
    limits: Limits = DEFAULT_LIMITS,
    tags: Mapping[str, Sequence[str]] | None = None,
    sample: Any = None,
    frequencies: Frequencies | None = None,
    processes: int = 1,
    operators: Any = (),
    progress: Progress | None = None,
) -> Index:
    """An index of subscriptions, as `tamis.build` takes them.

    What is wrong with those that are left out is in `index.rejects`.

    `tags` gives subscriptions words by which `Index.tagged` finds them. From a `sample` of events
    it is learned which tests seldom hold: single events are matched faster by it. `frequencies` is
    what `Index.term_frequencies` counted, and batches of texts are. `progress` is called with how
    many subscriptions are read, and how many there are.
    """
    from tamis.index.build import build_contents  # a third of all modules, which matching needs not

    if missing not in tuple(Missing):
        raise InputError(f"missing is {missing!r}; allowed: {', '.join(Missing)}")
    processes = expect_count(processes, "processes")
    if not isinstance(tags, Mapping | None):
        raise InputError(
            f"tags are {tags!r}; a list of tags for each id is expected",
            hint='write {"some id": ["news"]}',
        )
    if not isinstance(limits, Limits):
        raise InputError(f"limits are {type(limits).__name__}", hint="write tamis.Limits(depth=20)")
    registry = read_registry(operators)
    given = open_subscriptions(subscriptions, tags)
    declared = None if schema is None else open_schema(schema)
    built = build_contents(
        given.pairs,
        declared,
        Missing(missing),
        limits,
        tags=given.details.tags,
        validity=given.details.validity,
        attributes=given.details.attributes,
        processes=processes,
        frequencies=frequencies,
        operators=() if registry is None else registry.signatures,
        progress=progress,
    )
    if given.details.n_expired:
        built.contents.provenance["expired"] = given.details.n_expired
    index = Index(built.contents, built.rejects, registry)
    report_build(index, is_declared=declared is not None, tags=tags or {})
    if sample is None:
        return index
    from tamis.match.learn import learn

    return Index(learn(built.contents, index.encode(sample)), built.rejects, registry)


def open_index(path: str | os.PathLike[str], *, operators: Any = (), **options: Any) -> Index:
    """The index saved at `path`; see `artefact.open_contents` for the options."""
    expect_path(path)
    registry = read_registry(operators)
    chosen = {name: options[name] for name in ("trusted", "mmap") if name in options}
    place = Place.at(path, registry, **chosen)
    contents = artefact.open_contents(path, **options)
    with artefact.reading(Path(path)):
        index = Index(contents, registry=registry)
    if registry is not None:
        index.operators.expect_all()
    index.place = place
    return index


class Place(NamedTuple):
    """Where an index is saved, and how it is opened there."""

    path: str
    content: str | None  # the name of its content, which tells one index from another
    operators: Any
    options: dict[str, Any]

    @classmethod
    def at(cls, path: str | os.PathLike[str], registry: Registry | None, **options: Any) -> Place:
        """The place of an index that was saved there, or is to be opened."""
        directory = Path(path).absolute()
        operators = () if registry is REGISTRY else registry
        return cls(str(directory), read_content_name(directory), operators, options)


def reopen(place: Place) -> Index:
    """The index that is saved at a place, if it is still the same."""
    found = read_content_name(Path(place.path))
    if found is not None and found != place.content:
        raise IndexFormatError(
            f"{place.path} was overwritten since its index was pickled",
            hint="open the new one: tamis.open(path)",
        )
    return open_index(place.path, operators=place.operators, verify=False, **place.options)


def _in_order(function: Callable[[int], Any], rows: range, threads: int) -> Iterator[Any]:
    """The results for all blocks, in order, by as many threads as asked."""
    if threads == 1:
        yield from map(function, rows)
        return
    with ThreadPoolExecutor(threads) as pool:
        # A window of blocks ahead: results wait in memory only as many as threads work.
        pending = [pool.submit(function, row) for row in rows[: 2 * threads]]
        for row in rows[2 * threads :]:
            yield pending.pop(0).result()
            pending.append(pool.submit(function, row))
        for future in pending:
            yield future.result()
