"""The ways to ask an index. Each is one function, and each answers what the reference answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.match.build import build
from tamis.match.index import Index
from tests.match.examples import Event
from tests.match.forms import Formed, to_columns, to_texts

if TYPE_CHECKING:
    from tests.test_cases import Case


class Engine(NamedTuple):
    """One way to ask."""

    name: str
    ask: Callable[[Index, Sequence[Event]], np.ndarray]
    # What the answer is, given the truth: bool[n_events, n_subscriptions].
    expected: Callable[[np.ndarray], np.ndarray]


# ── answers as a matrix ─────────────────────────────────────────────────────────────────────


def _matrix(index: Index, n_events: int, rows: Any, ids: Any) -> np.ndarray:
    """How often each (event, subscription) was found: no pair may be found twice."""
    found = np.zeros((n_events, len(index)), dtype=np.int64)
    ordinals = pc.index_in(ids.cast(pa.string()), index.ids).to_numpy(zero_copy_only=False)
    np.add.at(found, (np.asarray(rows, dtype=np.int64), ordinals.astype(np.int64)), 1)
    return found


def _table(index: Index, n_events: int, table: Any) -> np.ndarray:
    rows = table["event_row"].to_numpy()
    assert (np.diff(rows) >= 0).all(), "not in the order of events"
    return _matrix(index, n_events, rows, table["subscription_id"])


def _single(index: Index, events: Sequence[Event]) -> np.ndarray:
    return _from_lists(index, [index.match(event) for event in events])


def _many(index: Index, events: Sequence[Event]) -> np.ndarray:
    return _from_lists(index, index.match_many(events))


def _texts(index: Index, events: Sequence[Event]) -> np.ndarray:
    """One event at a time, from the JSON text of each that has one: as bytes and as a string."""
    given: list[Any] = list(events)
    rows, texts = to_texts(index, events)
    for row, text in zip(rows.tolist(), texts, strict=True):
        given[row] = text.encode() if row % 2 else text
    return _from_lists(index, [index.match(event) for event in given])


def _json_buffer(index: Index, events: Sequence[Event]) -> np.ndarray:
    """A buffer of JSON lines; events that JSON cannot carry come as mappings."""
    rows, texts = to_texts(index, events)
    return _in_two_forms(index, events, Formed(rows, "\n".join(texts).encode()))


def _arrow(index: Index, events: Sequence[Event]) -> np.ndarray:
    """Typed Arrow columns; events that these cannot carry come as mappings."""
    return _in_two_forms(index, events, to_columns(index, events))


def _in_two_forms(index: Index, events: Sequence[Event], formed: Formed) -> np.ndarray:
    found = np.zeros((len(events), len(index)), dtype=np.int64)
    others = np.delete(np.arange(len(events)), formed.rows)
    halves = ((formed.rows, formed.source), (others, [events[row] for row in others]))
    for rows, source in halves:
        # Encoding does not warn of attributes that half of the events do not have.
        if len(rows):
            found[rows] = _table(index, len(rows), index.match_batch(index.encode(source)))
    return found


def _from_lists(index: Index, lists: list[list[str]]) -> np.ndarray:
    rows = [row for row, found in enumerate(lists) for _ in found]
    ids = pa.array([one for found in lists for one in found], pa.string())
    return _matrix(index, len(lists), rows, ids)


def _batch(index: Index, events: Sequence[Event], **options: Any) -> np.ndarray:
    return _table(index, len(events), index.match_batch(events, **options))


def _lists(index: Index, events: Sequence[Event], **options: Any) -> np.ndarray:
    lists = index.match_lists(events, **options)
    assert len(lists) == len(events)
    rows = np.repeat(np.arange(len(events)), pc.list_value_length(lists).to_numpy())
    return _matrix(index, len(events), rows, pc.list_flatten(lists))


def _chunks(index: Index, events: Sequence[Event], **options: Any) -> np.ndarray:
    chunks = list(index.match_chunks(events, **options))
    none = np.zeros((len(events), len(index)), dtype=np.int64)
    return sum((_table(index, len(events), chunk) for chunk in chunks), none)


def _encoded(index: Index, events: Sequence[Event]) -> np.ndarray:
    """A batch encoded once serves any number of questions."""
    batch = index.encode(iter(events))
    assert batch.n_rows == len(events)
    found = _table(index, len(events), index.match_batch(batch))
    assert np.array_equal(index.count_by_event(batch), found.sum(axis=1))
    return found


def _top(index: Index, events: Sequence[Event], **options: Any) -> np.ndarray:
    """All matches, the best first; the first two are the same whatever is requested."""
    everyone = max(1, len(index))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no subscription has a weight")
        table = index.match_top(events, everyone, **options)
        lists: list[list[str]] = [[] for _ in events]
        for row in table.to_pylist():
            lists[row["event_row"]].append(row["subscription_id"])
        assert [index.match_top(event, everyone) for event in events] == lists
        best = index.match_top(events, 2, **options)["subscription_id"].to_pylist()
        assert best == [one for found in lists for one in found[:2]]
    return _table(index, len(events), table)


def _subsets(index: Index, events: Sequence[Event], **options: Any) -> np.ndarray:
    """Every third subscription, then the others, then none: together all, and nothing twice."""
    ids = index.ids.to_pylist()
    wanted = ids[::3]
    others = [subscription_id for at, subscription_id in enumerate(ids) if at % 3]
    batch = index.encode(events)

    def ask(subset: Iterable[str]) -> np.ndarray:
        return _table(index, len(events), index.match_batch(batch, subset=subset, **options))

    found = ask(wanted)
    assert not found[:, [index.ordinal(other) for other in others]].any()
    lists = index.match_lists(batch, subset=iter(wanted), **options)
    assert np.array_equal(pc.list_value_length(lists), found.sum(axis=1))
    assert not ask([]).any()
    return found + ask(set(others))


def _wide(index: Index, events: Sequence[Event]) -> np.ndarray:
    """Blocks of several groups of 512 events, as a large index has them."""
    found = []
    for n_groups in (2, 8):
        parts, registry = index.view.catalogue.parts, index.view.registry
        wide = Index(*parts, registry=registry, n_groups=n_groups)
        found.append(_batch(wide, events))
        assert np.array_equal(wide.count_by_event(events), found[0].sum(axis=1))
        assert np.array_equal(wide.count_by_subscription(events), found[0].sum(axis=0))
    assert np.array_equal(*found)
    return found[0]


def _summary_by_subscription(index: Index, events: Sequence[Event], **options: Any) -> np.ndarray:
    counted = index.summarise_by_subscription(events, **options)
    return np.concatenate((counted.counts, counted.firsts))


def _summary_by_event(index: Index, events: Sequence[Event], **options: Any) -> np.ndarray:
    batch = index.encode(events)
    counted = index.summarise_by_event(batch, **options)
    lists = index.match_lists(batch).to_pylist()
    ids = index.ids.to_pylist()
    firsts = [ids[at] if at >= 0 else None for at in counted.firsts.tolist()]
    assert firsts == [found[0] if found else None for found in lists]
    return counted.counts


# These match one event after the other: there are no blocks.
ONE_BY_ONE = ("single", "texts")
# The same events in another form: each takes time to write.
FORMS = ("texts", "json-buffer", "arrow")


def _is_true(truth: np.ndarray) -> np.ndarray:
    return truth.astype(np.int64)


def _per_subscription(truth: np.ndarray) -> np.ndarray:
    return truth.sum(axis=0)


def _per_subscription_with_first(truth: np.ndarray) -> np.ndarray:
    numbered = np.where(truth, np.arange(len(truth))[:, None], len(truth))
    firsts = numbered.min(axis=0, initial=len(truth))
    return np.concatenate((truth.sum(axis=0), np.where(firsts < len(truth), firsts, -1)))


def _per_event(truth: np.ndarray) -> np.ndarray:
    return truth.sum(axis=1)


ENGINES = (
    Engine("single", _single, _is_true),
    Engine("many", _many, _is_true),
    Engine("batch", _batch, _is_true),
    Engine("texts", _texts, _is_true),
    Engine("json-buffer", _json_buffer, _is_true),
    Engine("arrow", _arrow, _is_true),
    Engine("lists", _lists, _is_true),
    Engine("chunks", _chunks, _is_true),
    Engine("encoded", _encoded, _is_true),
    Engine("wide", _wide, _is_true),
    Engine("threads", lambda index, events: _batch(index, events, threads=2), _is_true),
    Engine("lists-threads", lambda index, events: _lists(index, events, threads=3), _is_true),
    Engine("top", _top, _is_true),
    Engine("top-threads", lambda index, events: _top(index, events, threads=2), _is_true),
    Engine("subset", _subsets, _is_true),
    Engine("subset-threads", lambda index, events: _subsets(index, events, threads=2), _is_true),
    Engine(
        "count-by-subscription",
        lambda index, events: index.count_by_subscription(events),
        _per_subscription,
    ),
    Engine(
        "count-by-subscription-threads",
        lambda index, events: index.count_by_subscription(events, threads=2),
        _per_subscription,
    ),
    Engine("count-by-event", lambda index, events: index.count_by_event(events), _per_event),
    Engine(
        "count-by-event-threads",
        lambda index, events: index.count_by_event(events, threads=2),
        _per_event,
    ),
    Engine("summary-by-subscription", _summary_by_subscription, _per_subscription_with_first),
    Engine(
        "summary-by-subscription-threads",
        lambda index, events: _summary_by_subscription(index, events, threads=2),
        _per_subscription_with_first,
    ),
    Engine("summary-by-event", _summary_by_event, _per_event),
    Engine(
        "summary-by-event-threads",
        lambda index, events: _summary_by_event(index, events, threads=2),
        _per_event,
    ),
)


# ── cases ───────────────────────────────────────────────────────────────────────────────────


def _answer_singly(case: Case, events: Sequence[Event]) -> list[bool]:
    index = build({"case": case.query}, case.schema, missing=case.missing)
    return [index.match(event) == ["case"] for event in events]


def _answer_in_a_batch(case: Case, events: Sequence[Event]) -> list[bool]:
    index = build({"case": case.query}, case.schema, missing=case.missing)
    return [found == ["case"] for found in index.match_lists(events).to_pylist()]


def _answer_when_opened(case: Case, events: Sequence[Event]) -> list[bool]:
    with reopened(build({"case": case.query}, case.schema, missing=case.missing)) as index:
        return [n_found == 1 for n_found in index.count_by_event(events).tolist()]


# For `tests.test_cases`; all engines on all cases are in `tests.match.test_contract`.
CASE_ENGINES = (
    ("index, one event at a time", _answer_singly),
    ("index, batch", _answer_in_a_batch),
    ("index, opened", _answer_when_opened),
)


# ── as built, and as opened ─────────────────────────────────────────────────────────────────


def save_quickly(index: Index, path: Path) -> Path:
    """Save without waiting for the disk."""
    with patch("os.fsync"):
        index.save(path)
    return path


@contextmanager
def reopened(index: Index) -> Iterator[Index]:
    """The index as it is after saving and opening."""
    with TemporaryDirectory() as directory:
        yield Index.open(save_quickly(index, Path(directory) / "index"))
