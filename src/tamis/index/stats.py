"""Statistics of an index: counts, sharing, bytes, widest nodes, and tests that are always
evaluated.

Rates are estimates (see `estimate_leaf_rates`): an index is built without events.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.index.build import estimate_leaf_rates
from tamis.index.columns import ELEMENTS, PAIR, PATTERN
from tamis.index.describe import NodeDescriber
from tamis.index.graph import Graph
from tamis.index.layout import AND, AT_LEAST, OR
from tamis.index.patterns import PatternMatcher
from tamis.language.array_keys import ARRAY_KEY
from tamis.language.ast import EVENT, Derived
from tamis.language.names import print_path
from tamis.language.printer import print_value

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from tamis.index.columns import Column
    from tamis.index.contents import Contents
    from tamis.language.ast import Attribute

TOP: Final = 5
MAX_LISTED: Final = 100  # ids and patterns that are listed; the counts include all


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of each kind of element."""

    subscriptions: int
    distinct_expressions: int  # without constant ones; equal ones share a node
    attributes: int
    columns: int
    leaves: int  # bases of complements included
    complements: int  # leaves that are true if another is not
    inner_nodes: int
    links: int  # from inner nodes to their children
    depth: int


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of one level, and how many there would be without sharing; leaves are level 0."""

    level: int
    nodes: int
    uses: int  # the nodes that separate trees would have
    uses_per_node: float
    links: int
    link_uses: int


@dataclass(frozen=True, slots=True)
class SizedArray:
    """One array or file and its size."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node with an unusually large count."""

    node: int
    text: str
    children: int
    parents: int  # links from inner nodes
    subscriptions: int  # whose whole expression it is
    uses: int


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """All columns of one kind."""

    kind: str
    columns: int
    constants: int
    patterns: int


@dataclass(frozen=True, slots=True)
class ColumnSize:
    """One column: its attributes, and the number of constants or patterns it is compared with."""

    attributes: str
    kind: str
    type: str
    constants: int
    patterns: int


@dataclass(frozen=True, slots=True)
class Always:
    """Tests that are evaluated for every event or every text, and why."""

    what: str
    reason: str
    count: int
    examples: list[str]


@dataclass(frozen=True, slots=True)
class Constant:
    """Subscriptions that match every event or none."""

    count: int
    ids: list[str]  # the first of them


@dataclass(frozen=True, slots=True)
class Trigger:
    """A node that makes the single-event matcher evaluate others."""

    text: str
    rate: float  # the estimated share of events for which it is true
    looks: int  # inner nodes that are then evaluated


@dataclass(frozen=True, slots=True)
class Selectivity:
    """How often access children are true, by estimate (A-Tree §5.2.2).

    The estimate is for events that have the attribute; the share of those is unknown.
    """

    ands: int  # nodes with one access child
    lowest: float
    median: float
    mean: float
    highest: float
    looks_per_event: float  # inner nodes evaluated for an event that has every attribute
    busiest: list[Trigger]


@dataclass(frozen=True, slots=True)
class Stats:
    """All statistics of an index."""

    counts: Counts
    missing: str
    sharing: float  # ratio of nodes without sharing to nodes with it
    levels: list[Level]
    bytes: int
    bytes_per_subscription: float | None  # None without subscriptions
    parts: list[SizedArray]  # largest first
    most_children: list[NodeUse]
    most_used: list[NodeUse]
    column_kinds: list[ColumnKind]
    columns: list[ColumnSize]  # largest first
    always_evaluated: list[Always]
    always_true: Constant
    with_operators: int  # subscriptions with operators
    never_true: Constant
    selectivity: Selectivity | None  # None if no expression is a conjunction

    def to_dict(self) -> dict[str, Any]:
        """The statistics as a dictionary of JSON values."""
        return asdict(self)


def compute_stats(
    contents: Contents, path: str | os.PathLike[str] | None = None, *, top: int = TOP
) -> Stats:
    """The statistics of an index; if `path` is given, the bytes are those of its files."""
    graph = Graph(contents)
    describer = NodeDescriber(graph)
    levels = list(_levels(graph))
    parts = sorted(_files(path) if path else _arrays(contents), key=lambda part: -part.bytes)
    n_bytes = sum(part.bytes for part in parts)
    used_by = graph.n_parents + graph.n_subscriptions
    return Stats(
        counts=_counts(graph),
        missing=str(contents.missing),
        sharing=_sharing(graph),
        levels=levels,
        bytes=n_bytes,
        bytes_per_subscription=round(n_bytes / len(contents.ids), 1) if len(contents.ids) else None,
        parts=parts,
        most_children=_top_nodes(graph, describer, graph.n_children, top, least=1),
        most_used=_top_nodes(graph, describer, used_by, top, least=2),
        column_kinds=_column_kinds(contents),
        columns=_columns(contents, top),
        always_evaluated=list(_always_evaluated(graph, describer)),
        always_true=_constant(contents, contents.always_true),
        with_operators=len(contents.plan),
        never_true=_constant(contents, contents.never),
        selectivity=_selectivity(graph, describer, top),
    )


def compute_sharing(contents: Contents) -> float:
    """The ratio of nodes without sharing to nodes with it."""
    return _sharing(Graph(contents))


# ── nodes ───────────────────────────────────────────────────────────────────────────────────


def _sharing(graph: Graph) -> float:
    n_used = int(np.count_nonzero(graph.uses))
    return round(int(graph.uses.sum()) / n_used, 3) if n_used else 1.0


def _counts(graph: Graph) -> Counts:
    contents = graph.contents
    paths = {attribute.path for column in contents.columns for attribute in column.sources}
    return Counts(
        subscriptions=len(contents.ids),
        distinct_expressions=len(contents.roots.nodes),
        attributes=len(paths),
        columns=len(contents.columns),
        leaves=graph.n_leaves,
        complements=len(contents.leaves.complement_leaves),
        inner_nodes=graph.n_inner,
        links=len(contents.nodes.children),
        depth=int(graph.levels.max(initial=0)),
    )


def _levels(graph: Graph) -> Iterator[Level]:
    is_used = graph.uses > 0  # the others are leaves of which only the complement is used
    for level in range(int(graph.levels.max(initial=0)) + 1):
        at_level = np.flatnonzero((graph.levels == level) & is_used)
        uses = graph.uses[at_level]
        n_children = graph.n_children[at_level]
        yield Level(
            level=level,
            nodes=len(at_level),
            uses=int(uses.sum()),
            uses_per_node=round(float(uses.mean()), 3) if len(uses) else 0.0,
            links=int(n_children.sum()),
            link_uses=int((uses * n_children).sum()),
        )


def _top_nodes(
    graph: Graph, describer: NodeDescriber, numbers: np.ndarray, top: int, least: int
) -> list[NodeUse]:
    """The nodes with the largest numbers, at least `least`."""
    return [
        NodeUse(
            node,
            describer.label(node),
            int(graph.n_children[node]),
            int(graph.n_parents[node]),
            int(graph.n_subscriptions[node]),
            int(graph.uses[node]),
        )
        for node in _largest(numbers, top)
        if numbers[node] >= least
    ]


def _largest(numbers: np.ndarray, top: int) -> list[int]:
    """The positions of the largest numbers; the first ones among equals."""
    n_kept = min(top, len(numbers))
    if not n_kept:
        return []
    limit = np.partition(numbers, len(numbers) - n_kept)[len(numbers) - n_kept]
    candidates = np.flatnonzero(numbers >= limit)
    order = np.argsort(-numbers[candidates], kind="stable")
    return list(candidates[order][:n_kept].tolist())


# ── bytes ───────────────────────────────────────────────────────────────────────────────────


def _files(path: str | os.PathLike[str]) -> Iterator[SizedArray]:
    for file in Path(path).iterdir():
        if file.is_file():
            yield SizedArray(file.name, file.stat().st_size)


def _arrays(contents: Contents) -> Iterator[SizedArray]:
    """The arrays in memory; patterns and terms are counted on disk only."""
    for field in fields(contents):
        value = getattr(contents, field.name)
        if isinstance(value, np.ndarray | pa.Array):
            yield SizedArray(field.name, value.nbytes)
        elif hasattr(value, "_asdict"):
            for name, array in value._asdict().items():
                if isinstance(array, np.ndarray):
                    yield SizedArray(f"{field.name}.{name}", array.nbytes)


# ── columns ─────────────────────────────────────────────────────────────────────────────────


def _column_kinds(contents: Contents) -> list[ColumnKind]:
    kinds = dict.fromkeys(column.kind for column in contents.columns)
    return [
        ColumnKind(
            kind,
            len(own),
            sum(column.n_constants for column in own),
            sum(len(column.patterns) for column in own),
        )
        for kind in kinds
        if (own := [column for column in contents.columns if column.kind == kind])
    ]


def _columns(contents: Contents, top: int) -> list[ColumnSize]:
    sizes = [
        ColumnSize(
            ", ".join(print_path(attribute.path) for attribute in column.attributes),
            column.kind,
            str(column.attributes[0].type),
            column.n_constants,
            len(column.patterns),
        )
        for column in contents.columns
    ]
    return sorted(sizes, key=lambda size: -(size.constants + size.patterns))[:top]


# ── what is always evaluated ────────────────────────────────────────────────────────────────


def _pattern_columns(contents: Contents, place: str = "") -> Iterator[tuple[str, Column]]:
    """The columns with patterns, those of the elements of arrays included, and their names."""
    for column in contents.columns:
        name = place + print_path(column.attributes[0].path)
        if column.kind == PATTERN:
            yield name, column
        elif column.inner is not None:
            yield from _pattern_columns(column.inner, f"{name}: ")


def _always_evaluated(graph: Graph, describer: NodeDescriber) -> Iterator[Always]:
    contents = graph.contents
    for name, column in _pattern_columns(contents):
        assert column.pattern_arrays is not None
        matcher = PatternMatcher(column.patterns, column.pattern_arrays)
        yield from _always_tested(name, matcher)
    yield from _always_computed(contents)
    leaves = contents.leaves
    n_absent = int(np.count_nonzero(leaves.absent_leaves >= 0))
    if n_absent:
        shown = leaves.absent_leaves[leaves.absent_leaves >= 0]
        yield Always(
            "tests for a missing attribute",
            "an event lists the attributes that it has, not those that it lacks",
            n_absent,
            _labels(describer, shown),
        )
    on_all_events = leaves.complement_leaves[leaves.column_complements[-1] :]
    if len(on_all_events):
        yield Always(
            "negated tests",
            "they are true for events that lack the attribute, so for nearly all",
            len(on_all_events),
            _labels(describer, on_all_events),
        )


def _always_tested(name: str, matcher: PatternMatcher) -> Iterator[Always]:
    """The patterns of one attribute that are tested on every text, by reason."""
    by_reason: dict[str, list[str]] = {}
    for pattern, reason in matcher.always_evaluated:
        by_reason.setdefault(reason, []).append(pattern)
    for reason, patterns in by_reason.items():
        what = f"patterns on {name}"
        yield Always(what, reason, len(patterns), patterns[:MAX_LISTED])


def _always_computed(contents: Contents) -> Iterator[Always]:
    """What is computed for each event, however many subscriptions use it."""
    derived = list(_derived_values(contents))
    if derived:
        reason = "each is computed once for an event, or an element, that has its attributes"
        yield Always("derived values", reason, len(derived), derived[:MAX_LISTED])
    pairs = [column for column in contents.columns if column.kind == PAIR]
    if pairs:
        reason = "each is compared once for an event that has both"
        shown = [" and ".join(map(_name, column.attributes)) for column in pairs]
        yield Always("pairs of attributes", reason, len(pairs), shown[:MAX_LISTED])
    for column in contents.columns:
        if column.kind == ELEMENTS and column.attributes[0].path == EVENT:
            reason = "all strings of an event are read and tested"
            tests = [str(own).partition(" ")[2] for own in column.constants or ()]
            yield Always("conditions on any attribute", reason, len(tests), tests[:MAX_LISTED])


def _derived_values(contents: Contents, place: str = "") -> dict[str, None]:
    """The distinct values that functions compute, those of elements of arrays included."""
    found: dict[str, None] = {}
    for column in contents.columns:
        below: list[Any] = list(column.attributes)
        while below:
            value = below.pop()
            if isinstance(value, Derived):
                if value.function != ARRAY_KEY:
                    found[place + _name(value)] = None
                below += value.arguments
        if column.inner is not None:
            found |= _derived_values(column.inner, f"{place}{_name(column.attributes[0])}: ")
    return found


def _name(attribute: Attribute) -> str:
    if isinstance(attribute, Derived) and attribute.function == ARRAY_KEY:
        return print_value(attribute.arguments[0])
    return print_path(attribute.path)


def _labels(describer: NodeDescriber, nodes: Iterable[int], limit: int = 3) -> list[str]:
    return [describer.label(int(node)) for node, _ in zip(nodes, range(limit), strict=False)]


def _constant(contents: Contents, ordinals: np.ndarray) -> Constant:
    ids = contents.ids.take(pa.array(ordinals[:MAX_LISTED]))
    return Constant(len(ordinals), ids.to_pylist())


# ── selectivity ─────────────────────────────────────────────────────────────────────────────


def _selectivity(graph: Graph, describer: NodeDescriber, top: int) -> Selectivity | None:
    contents = graph.contents
    rates = estimate_rates(graph)
    looks = np.diff(contents.triggers.starts)
    triggering = np.repeat(np.arange(graph.n_nodes), looks)
    is_access = contents.nodes.operators[contents.triggers.parents] == AND
    access = rates[triggering[is_access]]
    if not len(access):
        return None
    costs = rates * looks
    return Selectivity(
        ands=len(access),
        lowest=_rounded(access.min()),
        median=_rounded(np.median(access)),
        mean=_rounded(access.mean()),
        highest=_rounded(access.max()),
        looks_per_event=round(float(costs.sum()), 1),
        busiest=[
            Trigger(describer.label(node), _rounded(rates[node]), int(looks[node]))
            for node in _largest(costs, top)
            if looks[node]
        ],
    )


def _rounded(rate: float) -> float:
    """Rounded to three significant digits, since it is an estimate."""
    return float(f"{rate:.3g}")


def estimate_rates(graph: Graph) -> np.ndarray:
    """float64[n_nodes], how often each node is true, assuming independent children."""
    contents, nodes = graph.contents, graph.contents.nodes
    rates = np.zeros(graph.n_nodes)
    rates[: graph.n_leaves] = estimate_leaf_rates(contents.leaves, graph.n_leaves)
    levels = graph.levels[graph.n_leaves :]
    for level in range(1, int(levels.max(initial=0)) + 1):
        inner = np.flatnonzero(levels == level)
        for operator in np.unique(nodes.operators[inner]).tolist():
            own = inner[nodes.operators[inner] == operator]
            rates[graph.n_leaves + own] = _combine(operator, own, graph, rates)
    return rates


def _combine(operator: int, inner: np.ndarray, graph: Graph, rates: np.ndarray) -> np.ndarray:
    nodes = graph.contents.nodes
    counts = np.diff(nodes.child_starts)[inner]
    starts = np.cumsum(counts) - counts
    places = np.repeat(nodes.child_starts[inner] - starts, counts) + np.arange(counts.sum())
    below = rates[nodes.children[places]]
    if operator == AND:
        return np.multiply.reduceat(below, starts)
    if operator == OR:
        return 1 - np.multiply.reduceat(1 - below, starts)
    if operator == AT_LEAST:
        pieces = zip(np.split(below, starts[1:]), nodes.required[inner], strict=True)
        # One of the n - k + 1 rarest children must be true.
        return np.array([np.sort(own)[len(own) - need] for own, need in pieces])
    # XOR: true half of the time, if every pair has a true side.
    pairs = np.minimum(1, below[::2] + below[1::2])
    return np.multiply.reduceat(pairs, starts // 2) / 2
