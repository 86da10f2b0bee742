"""Builds an index from subscriptions: reads, types, shares and lays them out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import ExpressionError, InputError
from tamis.index.attributes import make_attributes
from tamis.index.column_files import prepare_columns
from tamis.index.columns import ELEMENTS
from tamis.index.contents import NO_NUMBERS, Contents
from tamis.index.dag_builder import DagBuilder
from tamis.index.deciders import name_deciders
from tamis.index.elements import conditions_of, element_schema
from tamis.index.finish import finish
from tamis.index.frequencies import check_frequencies, estimate_term_rates
from tamis.index.keyword_reader import KeywordReader
from tamis.index.layout import LeafArrays, freeze
from tamis.index.node_order import order_nodes
from tamis.index.pattern_tests import PatternTests
from tamis.index.programs import write_programs
from tamis.index.reader import Reader
from tamis.index.reorganise import reorganise
from tamis.index.text_columns import Columns, TextColumn
from tamis.index.triggers import build_triggers
from tamis.index.validity import make_validity
from tamis.index.weights import add_weights, make_weights
from tamis.language.bulk import parse_chunks
from tamis.language.definitions import find_subscriptions
from tamis.language.infer import SchemaVotes
from tamis.language.limits import DEFAULT_LIMITS, NO_LIMITS, Limits
from tamis.language.parser import parse
from tamis.language.weights import WEIGHT, read_weight
from tamis.logic.bindings import calls_of
from tamis.logic.evaluate import Missing
from tamis.operators.plan import PlanWriter
from tamis.operators.residual import is_costly, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tamis.index.columns import Column
    from tamis.index.frequencies import Frequencies
    from tamis.index.validity import Limits as ValidityLimits
    from tamis.kernels.arrays import Int64
    from tamis.language.ast import Condition
    from tamis.language.bulk import Parsed
    from tamis.language.schema import Schema
    from tamis.language.signatures import Signature
    from tamis.operators.plan import StoredResiduals

    Progress = Callable[[int, int | None], None]  # number done, and total number
    # An error stands for a row without a valid subscription, and is reported as a reject.
    Pairs = Mapping[str, str] | Iterable[tuple[str, str] | ExpressionError]
    Subscriptions = Pairs | Columns

CHUNK = 4000  # expressions read at a time, so that their data stays in the cache
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Built:
    """An index's contents, and the rejected subscriptions."""

    contents: Contents
    rejects: list[ExpressionError]


def build_contents(  # noqa: PLR0913 - all that decides what the index is
    subscriptions: Subscriptions,
    schema: Schema | None = None,
    missing: Missing = Missing.UNDEFINED,
    limits: Limits = DEFAULT_LIMITS,
    *,
    tags: Mapping[str, Sequence[str]] | None = None,
    validity: Mapping[str, ValidityLimits] | None = None,
    attributes: Mapping[str, Mapping[str, Any]] | None = None,
    weights: Mapping[str, Any] | None = None,
    numbers: Int64 = NO_NUMBERS,
    processes: int = 1,
    frequencies: Frequencies | None = None,
    operators: Iterable[Signature] = (),
    provenance: Mapping[str, Any] | None = None,
    statistics: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Built:
    """The index of all valid subscriptions; the others are rejects, each with its error.

    Of several subscriptions with the same id, the first is used and the others are rejects. Rejects
    are in the order of the subscriptions. Expressions may call `operators` in addition to those of
    the schema; the index stores the ones they call. `tags`, `validity` and `attributes` are by id
    and are read after all subscriptions: an iterator of subscriptions may fill them meanwhile.
    `weights` are by id too; other subscriptions have the weight of their attribute `weight`.
    `numbers` are those that a store gave all subscriptions, in their order.
    `frequencies` gives the frequency of words in texts, and affects only the speed of matching.
    `statistics` is stored with the index unchanged. `progress` is called with the number of
    subscriptions done and the total.
    """
    frequencies = {} if frequencies is None else frequencies
    check_frequencies(frequencies)
    taken = _take(subscriptions)
    attributes = add_weights(attributes or {}, weights or {})
    taken = _refuse_weights(taken, attributes)
    is_inferred = schema is None or schema.is_open
    definitions = {} if schema is None else schema.definitions
    if schema is None or is_inferred:
        schema = collect_votes([*taken.texts, *definitions.values()], limits).elect()
    definitions |= find_subscriptions(taken.ids, taken.texts, limits)
    schema = schema.with_definitions(definitions)
    more = [own for own in operators if schema.operator(own.name) is None]
    schema = schema.with_operators((*schema.operators, *more))
    read = _Intake(schema, missing, limits)
    for n_done in read.add(taken, processes):
        if progress is not None:
            progress(n_done, len(taken.texts))
    plan, called, rejects = read.finish_plan(), read.called, read.rejects
    texts = _without(pa.chunked_array(read.texts, pa.string()), list(rejects))
    finished = finish(read.builder, np.delete(read.roots, list(rejects)))
    del read  # it takes as much memory as what was made of it
    term_rates = estimate_term_rates(finished, frequencies)
    finished = reorganise(finished, ~np.isnan(term_rates))
    finished = order_nodes(finished, term_rates)
    term_rates = estimate_term_rates(finished, frequencies)
    rates = estimate_leaf_rates(finished.leaves, finished.n_leaves, term_rates)
    triggers = build_triggers(finished.nodes, rates)
    prepare_columns(finished.columns)
    _build_elements(finished.columns, missing, processes)
    finished.never.flags.writeable = False
    ids = _without(_to_arrow(taken.ids), list(rejects))
    names = ids.to_pylist() if validity or attributes else []
    details, attribute_names = make_attributes(names, attributes)
    contents = Contents(
        schema.with_operators(
            replace(own, check=None) for own in schema.operators if own.name in called
        ),
        missing,
        finished.columns,
        finished.constants,
        finished.n_leaves,
        freeze(finished.leaves),
        freeze(finished.nodes),
        freeze(finished.roots),
        freeze(triggers),
        finished.never,
        ids,
        texts,
        _tag_array(ids, tags or {}),
        plan,
        make_validity(names, validity or {}),
        make_weights(names, attributes),
        details,
        attribute_names,
        _keep_numbers(numbers, taken, rejects),
        provenance=dict(provenance or {}),
        statistics=dict(statistics or {}),
    )
    if is_inferred:
        name_deciders(rejects.values(), contents, limits)
    return Built(contents, _in_input_order(taken.rejects, rejects))


def _build_elements(columns: Iterable[Column], missing: Missing, processes: int) -> None:
    """Build the index of each elements column, whose events are the elements of arrays."""
    for column in columns:
        if column.kind == ELEMENTS:
            schema = element_schema(column.attributes[0].type)
            own = build_contents(
                conditions_of(column), schema, missing, NO_LIMITS, processes=processes
            )
            assert not own.rejects, "the conditions have been checked"
            column.inner = own.contents


class _Intake:
    """Subscriptions being added to a `DagBuilder`.

    Their numbers there, and so the order of the index, depend only on the subscriptions: first come
    those that are read without the parser, then the others, in chunks that are the same for any
    number of processes.
    """

    def __init__(self, schema: Schema, missing: Missing, limits: Limits) -> None:
        self.builder = DagBuilder(is_signed=missing is Missing.SATISFIES_NEGATION)
        self.roots = np.empty(0, np.int32)  # references, by ordinal; undefined for a reject
        self.texts: list[pa.StringArray] = []  # by chunk
        self.rejects: dict[int, ExpressionError] = {}  # by ordinal
        self.called: set[str] = set()  # names of operators
        self._schema, self._missing, self._limits = schema, missing, limits
        self._reader = Reader(limits)
        self._patterns = PatternTests(schema, self.builder, limits)
        self._keywords = KeywordReader(schema, self.builder, limits)
        self._plan = PlanWriter()

    def add(self, taken: _Taken, processes: int) -> Iterator[int]:
        """Add all subscriptions; yields the number done after each chunk."""
        self.roots = np.empty(len(taken.texts), np.int32)
        left: list[int] = []  # ordinals
        for start in range(0, len(taken.texts), CHUNK):
            left += self._read(start, taken.texts[start : start + CHUNK])
            yield min(start + CHUNK, len(taken.texts)) - len(left)
        rows = [(taken.ids[ordinal], taken.texts[ordinal]) for ordinal in left]
        n_parsed = 0
        for parsed in parse_chunks(rows, self._schema, self._limits, processes):
            self._write(left[n_parsed : n_parsed + len(parsed)], parsed)
            n_parsed += len(parsed)
            yield len(taken.texts) - len(left) + n_parsed

    def _read(self, start: int, texts: list[str] | pa.StringArray) -> list[int]:
        """Add the subscriptions that can be read without the parser; returns the ordinals of the
        others.
        """
        chunk = self._reader.read(texts)
        programs = self._reader.programs(chunk, self._schema, self.builder, self._patterns)
        roots = self.builder.add(programs)
        left = np.flatnonzero(programs.is_left)
        plain = self._keywords.read(_some(texts, left))
        roots[left] = self.builder.add(plain)
        self.roots[start : start + len(texts)] = roots
        self.texts.append(chunk.texts)
        ordinals: list[int] = (start + left[plain.is_left.astype(np.bool_)]).tolist()
        return ordinals

    def _write(self, ordinals: list[int], parsed: list[Parsed]) -> None:
        """Add the parsed subscriptions."""
        right, conditions = [], []
        for ordinal, row in zip(ordinals, parsed, strict=True):
            if row.condition is not None:
                right.append(ordinal)
                conditions.append(self._split(ordinal, row.condition))
            elif row.error is not None:
                self.rejects[ordinal] = row.error
        programs = write_programs(conditions, self.builder, self._missing)
        self.roots[right] = self.builder.add(programs)

    def _split(self, ordinal: int, condition: Condition) -> Condition:
        """The indexed part of a condition; the part that operators decide is added to the plan."""
        if not self._schema.operators or not is_costly(condition):
            return condition
        self.called.update(call.name for call in calls_of(condition))
        residual = split(condition, self._missing)
        self._plan.add(ordinal, residual)
        return residual.relaxed

    def finish_plan(self) -> StoredResiduals:
        """The plan, by the ordinals of valid subscriptions."""
        is_right = np.ones(len(self.roots), dtype=np.int64)
        is_right[list(self.rejects)] = 0
        return self._plan.finish(np.cumsum(is_right) - 1)


def estimate_leaf_rates(
    leaves: LeafArrays, n_leaves: int, term_rates: np.ndarray | None = None
) -> np.ndarray:
    """Estimates how often each leaf is true, from its kind only: sets by their size relative to the
    column's constants, bounds half of the time, complements the rest; words by `term_rates`.
    """
    rates = np.full(n_leaves, 0.1, dtype=np.float32)
    n_constants = np.maximum(1, np.diff(leaves.column_codes) // 2)
    code_columns = np.repeat(np.arange(len(n_constants)), np.diff(leaves.column_codes))
    shares = (1 / (1 + n_constants[code_columns])).astype(np.float32)
    posting_codes = np.repeat(np.arange(len(leaves.code_slots)), np.diff(leaves.posting_starts))
    sums = np.zeros(n_leaves, dtype=np.float32)
    np.add.at(sums, leaves.posting_leaves, shares[posting_codes])
    rates[sums > 0] = sums[sums > 0]
    rates[leaves.threshold_leaves] = 0.5
    if term_rates is not None:
        rates = np.where(np.isnan(term_rates), rates, term_rates)
    rates[leaves.complement_leaves] = 1 - rates[leaves.complement_bases]
    return np.clip(rates, 0, 1)


class _Taken(NamedTuple):
    """The subscriptions with valid ids, and the errors of the others by row of the input."""

    ids: list[str] | TextColumn
    texts: list[str] | TextColumn
    rejects: dict[int, ExpressionError]


def _take(subscriptions: Subscriptions) -> _Taken:
    if isinstance(subscriptions, Columns):
        return _Taken(TextColumn(subscriptions.ids), TextColumn(subscriptions.texts), {})
    first = _plain_dict(subscriptions)
    if first is not None:
        # The keys of a dict are distinct: nothing has to be checked.
        return _Taken(list(first), list(first.values()), {})
    pairs = subscriptions.items() if hasattr(subscriptions, "items") else subscriptions
    taken = _split_duplicates(pairs)
    wrong = list(taken.rejects.values())
    is_bad = [reject.code == "bad-id" and reject.subscription_id != "" for reject in wrong]
    if wrong and not taken.ids and all(is_bad):
        reject = wrong[0]
        is_row = reject.subscription_id is None
        shown = "" if is_row else f" is {reject.subscription_id}"
        raise InputError(
            f"none of the {len(wrong):,} subscriptions has a valid id; the first{shown}: "
            f"{reject.message}",
            hint="convert the ids to strings or integers"
            if is_row
            else "convert the ids to strings: {str(id): expression}",
        )
    return taken


def _refuse_weights(taken: _Taken, attributes: Mapping[str, Mapping[str, Any]]) -> _Taken:
    """The subscriptions without those whose weight is invalid, which become rejects."""
    wrong: dict[str, str] = {}
    for subscription_id, own in attributes.items():
        try:
            read_weight(own.get(WEIGHT))
        except ValueError as error:
            wrong[subscription_id] = str(error)
    if not wrong:
        return taken
    ids: list[str] = []
    texts: list[str] = []
    found = _Taken(ids, texts, dict(taken.rejects))
    rows = (row for row in range(len(taken.ids) + len(taken.rejects)) if row not in taken.rejects)
    for row, name, text in zip(rows, taken.ids, taken.texts, strict=True):
        if name in wrong:
            found.rejects[row] = ExpressionError(
                "bad-weight", wrong[name], span=(0, 0), text=text, subscription_id=name
            )
        else:
            ids.append(name)
            texts.append(text)
    return found


def _plain_dict(subscriptions: Any) -> dict[str, str] | None:
    """The subscriptions, if all ids are distinct non-empty ASCII strings; checked without a Python
    step for each.
    """
    try:
        if type(subscriptions) is list and set(map(type, subscriptions)) == {tuple}:
            first = dict(subscriptions)
        elif type(subscriptions) is dict:
            first = subscriptions
        else:
            return None
        is_plain = len(first) == len(subscriptions) and "".join(first).isascii()
        is_plain = is_plain and "" not in first
    except (TypeError, ValueError):
        return None  # errors are found one by one
    return first if is_plain else None


def _split_duplicates(pairs: Iterable[tuple[Any, str] | ExpressionError]) -> _Taken:
    first: dict[str, str] = {}
    rejects: dict[int, ExpressionError] = {}
    n_read = 0
    try:
        for pair in pairs:
            if isinstance(pair, ExpressionError):
                rejects[n_read] = pair
            elif isinstance(pair, str | bytes | Mapping):
                # Strings can be unpacked, and would be: "ab" into "a" and "b".
                raise TypeError(f"it is {type(pair).__name__}, {str(pair)[:60]!r}")
            else:
                subscription_id, text = pair
                problem = _id_problem(subscription_id, first)
                if problem is None:
                    first[subscription_id] = text
                else:
                    rejects[n_read] = _reject(*problem, text)
            n_read += 1
    except (TypeError, ValueError) as error:
        raise InputError(
            f"subscription {n_read + 1} is not a pair: {error}",
            hint="subscriptions are {id: expression} or pairs (id, expression)",
        ) from error
    return _Taken(list(first), list(first.values()), rejects)


def _in_input_order(
    by_row: dict[int, ExpressionError], by_ordinal: dict[int, ExpressionError]
) -> list[ExpressionError]:
    """All rejects: those of rows that were never added, and of ordinals of those added."""
    found = dict(by_row)
    untaken = sorted(by_row)
    n_before = 0  # rows not added, before the one of each ordinal
    for ordinal in sorted(by_ordinal):
        while n_before < len(untaken) and untaken[n_before] <= ordinal + n_before:
            n_before += 1
        found[ordinal + n_before] = by_ordinal[ordinal]
    return [found[row] for row in sorted(found)]


def _without(array: pa.Array, rows: Sequence[int]) -> pa.Array:
    """The array without some of its rows."""
    if not len(rows):
        return array
    is_kept = np.ones(len(array), dtype=np.bool_)
    is_kept[rows] = False
    return array.filter(pa.array(is_kept))


def _id_problem(subscription_id: Any, first: Mapping[str, str]) -> tuple[str, str, str] | None:
    """The error of an id: code, message, and its printed form."""
    if not isinstance(subscription_id, str):
        what = f"a subscription's id must be a string, not {type(subscription_id).__name__}"
        return "bad-id", what, _shown(subscription_id)
    if not subscription_id:
        return "bad-id", "a subscription's id must be a non-empty string", ""
    if not subscription_id.isascii() and _LONE_SURROGATE.search(subscription_id):
        what = "a subscription's id must be a valid string: it contains a lone surrogate"
        return "bad-id", what, ascii(subscription_id)
    if subscription_id in first:
        return "duplicate-id", "an earlier subscription has the same id", subscription_id
    return None


def _shown(subscription_id: Any) -> str:
    try:
        return str(subscription_id)
    except Exception:  # printing fails for integers of more than 4,300 digits and for some objects
        return f"a value of class {type(subscription_id).__name__}"


def _reject(code: str, message: str, subscription_id: str, text: Any) -> ExpressionError:
    return ExpressionError(
        code,
        message,
        span=(0, 0),
        text=text if isinstance(text, str) else None,
        subscription_id=subscription_id,
    )


def collect_votes(texts: list[str], limits: Limits = DEFAULT_LIMITS) -> SchemaVotes:
    """How the expressions use their attributes; expressions that cannot be parsed are ignored."""
    votes = SchemaVotes()
    reader = Reader(limits)
    for start in range(0, len(texts), CHUNK):
        own = texts[start : start + CHUNK]
        chunk = reader.read(own)
        reader.vote(chunk, votes)
        for at in np.flatnonzero(chunk.scanned.is_left).tolist():
            try:
                votes.add(parse(own[at], limits))
            except ExpressionError:
                continue  # reported when it is parsed again
    return votes


def _keep_numbers(numbers: Int64, taken: _Taken, rejects: Mapping[int, ExpressionError]) -> Int64:
    """The numbers of the subscriptions that were not rejected."""
    if not len(numbers):
        return NO_NUMBERS
    found: Int64 = np.delete(np.delete(numbers, list(taken.rejects)), list(rejects))
    found.flags.writeable = False
    return found


def _to_arrow(ids: list[str] | TextColumn) -> pa.StringArray:
    if isinstance(ids, TextColumn):
        return pa.concat_arrays(ids.column.chunks) if len(ids) else pa.array([], pa.string())
    return pa.array(ids, pa.string())


def _some(texts: list[str] | pa.StringArray, rows: np.ndarray) -> list[str]:
    if isinstance(texts, list):
        return [texts[row] for row in rows.tolist()]
    found: list[str] = texts.take(pa.array(rows)).to_pylist()
    return found


def _tag_array(ids: pa.StringArray, tags: Mapping[str, Sequence[str]]) -> pa.ListArray:
    if not tags:
        offsets = pa.array(np.zeros(len(ids) + 1, dtype=np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()))
    own = [list(tags.get(subscription_id, ())) for subscription_id in ids.to_pylist()]
    return pa.array(own, pa.list_(pa.string()))
