"""Checks the structure of an untrusted index: every offset, bound, order and count.

Kernels do not check their arrays. A checksum shows that nothing was damaged, not who wrote it.
After this check no kernel can access memory outside its arrays, loop for ever or meet an unknown
value, whoever wrote the index. It cannot show that the answers are right: a signature can
(`index.signing`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import TypeCheckError
from tamis.index.array_checks import (
    expect,
    expect_length,
    expect_starts,
    expect_texts,
    expect_within,
)
from tamis.index.carriers import CARRIAGES, carrier_of, texts_of
from tamis.index.column_structure import check_patterns, check_terms
from tamis.index.columns import ARRAY, ELEMENTS, PAIR, PATTERN, SCALAR, TEXT
from tamis.index.elements import conditions_of, element_schema
from tamis.index.layout import AT_LEAST, XOR
from tamis.index.numbers import ENTRY_LONG, ENTRY_UNDER, N_ENTRY_KINDS
from tamis.index.validity import NO_END, NO_START
from tamis.language.ast import EVENT
from tamis.language.fitting import check_pair
from tamis.language.names import print_path
from tamis.language.types import NUMBER, STRING, STRINGS
from tamis.language.types.moments import FIRST_INSTANT, LAST_INSTANT

if TYPE_CHECKING:
    from tamis.index.columns import Column
    from tamis.index.constants import ConstantArrays, Constants
    from tamis.index.contents import Contents

_CARRIERS = ("integers", "floats", "decimals", "numbers", "texts", "objects", "others")
_DECIMAL = r"^-?[0-9]{1,38}(\.[0-9]{1,38})?$"


def check_structure(contents: Contents) -> None:
    """Raise a `MisfitError` unless the arrays are consistent with each other and the columns."""
    _check_columns(contents)
    _check_constants(contents.constants, contents.columns)
    _check_leaves(contents)
    _check_nodes(contents)
    _check_roots(contents)
    _check_triggers(contents)
    _check_names(contents)
    _check_plan(contents)
    _check_details(contents)
    firsts = contents.leaves.column_leaves.tolist()
    for column, own in zip(contents.columns, pairwise(firsts), strict=True):
        if column.kind == PATTERN:
            check_patterns(column, own)
        elif column.kind == TEXT:
            check_terms(column)
        elif column.kind == ELEMENTS:
            _check_elements(column, contents)


def _check_elements(column: Column, contents: Contents) -> None:
    """The index of an elements column must have the condition of each constant."""
    inner = column.inner
    assert inner is not None
    check_structure(inner)
    wanted = conditions_of(column)
    expect(inner.missing == contents.missing, "an index of elements has another meaning of missing")
    expect(inner.ids.to_pylist() == list(wanted), "an index of elements has other conditions")
    expect(
        inner.schema == element_schema(column.attributes[0].type) and not len(inner.plan),
        "an index of elements has other attributes",
    )


# ── columns and constants ───────────────────────────────────────────────────────────────────


def _check_columns(contents: Contents) -> None:
    seen = set()
    for column in contents.columns:
        paths = tuple(attribute.path for attribute in column.attributes)
        names = ", ".join(map(print_path, paths))
        what = f"the {column.kind} column of {names}"
        expect(len(paths) == (2 if column.kind == PAIR else 1), f"{what} has too many attributes")
        # An attribute has at most one scalar or array column.
        kind = SCALAR if column.kind == ARRAY else column.kind
        expect((kind, paths) not in seen, f"{what} occurs twice")
        seen.add((kind, paths))
        for attribute in column.sources:
            is_event = attribute.path == EVENT
            known = STRINGS if is_event else contents.schema.get(attribute.path)
            expect(str(known) == str(attribute.type), f"{what} has another type than the schema")
        expect(_has_right_type(column), f"{what} has the type {column.attributes[0].type}")


def _has_right_type(column: Column) -> bool:
    type_ = column.attributes[0].type
    assert type_ is not None
    if column.kind in (PATTERN, TEXT):
        return type_ == STRING
    if column.kind == ELEMENTS:
        return type_.element is not None
    if column.kind == PAIR:
        left, right = column.attributes
        try:
            check_pair(left, right, (0, 0))
        except TypeCheckError:
            return False
        return type_.element is None and right.type is not None and right.type.element is None
    return column.kind in (SCALAR, ARRAY) and (type_.element is not None) == (column.kind == ARRAY)


def _check_constants(arrays: ConstantArrays, columns: tuple[Column, ...]) -> None:
    n_decimals = len(arrays.decimals)
    expect(arrays.decimals.shape == (n_decimals, 2), "decimals are not pairs of words")
    expect_length(arrays.decimal_is_whole, n_decimals, "decimal_is_whole")
    expect_within(arrays.decimal_is_whole, 0, 2, "decimal_is_whole")
    spelled = expect_texts(arrays.decimal_offsets, arrays.decimal_data, n_decimals, "decimals")
    is_number = pc.match_substring_regex(spelled, _DECIMAL)
    expect(pc.all(is_number, min_count=0).as_py(), "a decimal is not a number")
    n_texts = len(arrays.text_offsets) - 1
    expect(n_texts >= 0, "text_offsets is empty")
    texts = expect_texts(arrays.text_offsets, arrays.text_data, n_texts, "text_offsets")
    _check_entries(arrays)
    used = dict.fromkeys(_CARRIERS, 0)
    for column in columns:
        if column.constants is not None:
            used[carrier_of(column.type)] += len(column.constants)
    for carrier, n_used in used.items():
        expect(n_used == arrays.count(carrier), f"the columns do not use all {carrier}")
    is_first = {c.constants.begin for c in columns if c.constants and _is_text(c.constants)}
    rises = pc.greater(texts[1:], texts[:-1]).to_numpy(zero_copy_only=False)
    falls = set((np.flatnonzero(~rises) + 1).tolist())
    expect(falls <= is_first, "the texts of a column are not ascending")
    for column in columns:
        if column.constants:
            _check_numbers(arrays, column.constants)


def _check_entries(arrays: ConstantArrays) -> None:
    n_numbers = len(arrays.number_keys)
    for name in ("number_kinds", "number_wholes", "number_is_pivot"):
        expect_length(getattr(arrays, name), n_numbers, name)
    expect_within(arrays.number_kinds, 0, N_ENTRY_KINDS, "number_kinds")
    expect_within(arrays.number_is_pivot, 0, 2, "number_is_pivot")
    expect(np.isfinite(arrays.number_keys).all(), "a number is not finite")
    digits = expect_texts(arrays.number_offsets, arrays.number_data, n_numbers, "numbers")
    has_digits = np.isin(arrays.number_kinds, (ENTRY_LONG, ENTRY_UNDER))
    spelled = digits.filter(pa.array(has_digits))
    is_number = pc.match_substring_regex(spelled, _DECIMAL)
    expect(pc.all(is_number, min_count=0).as_py(), "a number is not written in digits")
    sizes = np.diff(arrays.number_offsets)
    expect(not sizes[~has_digits].any(), "a number that needs no digits has some")


def _is_text(constants: Constants) -> bool:
    return carrier_of(constants.type) == "texts"


def _check_numbers(arrays: ConstantArrays, own: Constants) -> None:
    run = slice(own.begin, own.end)
    name = own.type.name
    match carrier_of(own.type):
        case "integers":
            numbers = arrays.integers[run]
            expect(
                (numbers[1:] > numbers[:-1]).all(), "the constants of a column are not ascending"
            )
            if name != "integer":
                low, high = CARRIAGES[name].limits
                expect_within(numbers, low, high + 1, f"a constant of type {name}")
        case "texts" if CARRIAGES[name].pattern:
            spelled = texts_of(arrays.text_offsets[own.begin : own.end + 1], arrays.text_data)
            are_good = pc.match_substring_regex(spelled, CARRIAGES[name].pattern)
            expect(pc.all(are_good, min_count=0).as_py(), f"a constant is not of type {name}")
        case "floats":
            floats = arrays.floats[run]
            # NaN is above all other values, and there is one NaN.
            rises = (floats[1:] > floats[:-1]) | (np.isnan(floats[1:]) & ~np.isnan(floats[:-1]))
            expect(rises.all(), "the constants of a column are not ascending")
        case "numbers":
            keys = arrays.number_keys[run]
            expect((keys[1:] >= keys[:-1]).all(), "the constants of a column are not ascending")
        case "decimals":
            lows, highs = arrays.decimals[run, 0].astype(np.uint64), arrays.decimals[run, 1]
            # Two constants may be rounded down to the same number.
            is_above = (highs[1:] > highs[:-1]) | (
                (highs[1:] == highs[:-1]) & (lows[1:] >= lows[:-1])
            )
            expect(is_above.all(), "the constants of a column are not ascending")
        case _:
            pass


# ── leaves ──────────────────────────────────────────────────────────────────────────────────


def _check_leaves(contents: Contents) -> None:
    leaves, columns, n_leaves = contents.leaves, contents.columns, contents.n_leaves
    expect(type(n_leaves) is int and n_leaves >= 0, f"{n_leaves!r} is not a valid number of leaves")
    n_columns = len(columns)
    sizes = [column.n_codes for column in columns]
    expect_length(leaves.column_codes, n_columns + 1, "column_codes")
    is_right = np.array_equal(leaves.column_codes, np.cumsum([0, *sizes]))
    expect(is_right, "column_codes does not fit the columns")
    n_codes = int(leaves.column_codes[-1])
    expect_length(leaves.column_leaves, n_columns + 1, "column_leaves")
    n_own = int(leaves.column_leaves[-1])
    expect_starts(leaves.column_leaves, n_columns, n_own, "column_leaves")
    expect(n_own <= n_leaves, "column_leaves exceeds the leaves")
    # Memory is allocated for each leaf: each must be named by some array.
    named = (leaves.posting_leaves, leaves.threshold_leaves, leaves.complement_leaves)
    most = sum(map(len, named)) + 2 * n_columns + len(contents.nodes.children)
    most += len(contents.roots.nodes) + sum(len(c.pattern_leaves) for c in columns)
    expect(n_leaves <= most, f"{n_leaves} leaves, but the arrays can name at most {most}")
    _check_postings(contents, n_codes)
    _check_thresholds(contents, n_codes)
    _check_complements(contents)
    for name in ("present_leaves", "absent_leaves"):
        array = getattr(leaves, name)
        expect_length(array, n_columns, name)
        columns_with = np.flatnonzero(array != -1)
        _expect_own(contents, array[columns_with], columns_with, name)


def _expect_own(contents: Contents, found: np.ndarray, of_columns: np.ndarray, what: str) -> None:
    """Raise an error unless each leaf belongs to its column."""
    firsts = contents.leaves.column_leaves
    is_own = (found >= firsts[of_columns]) & (found < firsts[of_columns + 1])
    expect(is_own.all(), f"{what} names a leaf of another column")


def _check_postings(contents: Contents, n_codes: int) -> None:
    leaves = contents.leaves
    expect_starts(leaves.posting_starts, n_codes, len(leaves.posting_leaves), "posting_starts")
    columns = np.arange(len(contents.columns))
    counts = np.diff(leaves.posting_starts)
    code_columns = np.repeat(columns, np.diff(leaves.column_codes))
    # A constant's code is odd; no leaf tests equality with the values between constants.
    is_between = (np.arange(n_codes) - leaves.column_codes[code_columns]) % 2 == 0
    # But a number that is a double may equal all codes between two of its column's.
    is_number = np.array([column.type == NUMBER for column in contents.columns], dtype=np.bool_)
    is_between &= ~is_number[code_columns]
    expect(not counts[is_between].any(), "a code without a constant has postings")
    own = leaves.posting_starts[leaves.column_codes]
    _expect_own(contents, leaves.posting_leaves, np.repeat(columns, np.diff(own)), "posting_leaves")


def _check_thresholds(contents: Contents, n_codes: int) -> None:
    leaves = contents.leaves
    n_thresholds = len(leaves.threshold_leaves)
    starts, slots = leaves.column_thresholds, leaves.code_slots
    expect_starts(starts, len(contents.columns), n_thresholds, "column_thresholds")
    columns = np.arange(len(contents.columns))
    _expect_own(
        contents, leaves.threshold_leaves, np.repeat(columns, np.diff(starts)), "threshold_leaves"
    )
    expect_length(slots, n_codes, "code_slots")
    code_columns = np.repeat(columns, np.diff(leaves.column_codes))
    is_none = slots == n_thresholds
    is_own = (slots >= starts[code_columns]) & (slots < starts[code_columns + 1])
    expect((is_none | is_own).all(), "code_slots names a threshold of another column")
    if not n_codes:
        return
    goes_on = code_columns[1:] == code_columns[:-1]
    expect((slots[1:] >= slots[:-1])[goes_on].all(), "code_slots is not ascending within a column")
    has_codes = np.flatnonzero(np.diff(leaves.column_codes) > 0)
    first = slots[leaves.column_codes[has_codes]]
    last = slots[leaves.column_codes[has_codes + 1] - 1]
    has_any = starts[has_codes] < starts[has_codes + 1]
    expect((first == starts[has_codes])[has_any].all(), "the lowest code is below no threshold")
    expect((last == n_thresholds).all(), "the highest code is not above all thresholds")
    with_codes = np.zeros(len(contents.columns), dtype=np.bool_)
    with_codes[has_codes] = True
    expect(not (np.diff(starts) > 0)[~with_codes].any(), "thresholds in a column without codes")


def _check_complements(contents: Contents) -> None:
    leaves = contents.leaves
    found, bases = leaves.complement_leaves, leaves.complement_bases
    expect_length(leaves.column_complements, len(contents.columns) + 1, "column_complements")
    n_own = int(leaves.column_complements[-1])
    expect_starts(leaves.column_complements, len(contents.columns), n_own, "column_complements")
    expect(n_own <= len(found), "column_complements exceeds the complements")
    expect_length(bases, len(found), "complement_bases")
    expect_within(found, 0, contents.n_leaves, "complement_leaves")
    expect_within(bases, 0, contents.n_leaves, "complement_bases")
    columns = np.repeat(np.arange(len(contents.columns)), np.diff(leaves.column_complements))
    _expect_own(contents, found[:n_own], columns, "complement_leaves")
    # A leaf that no value makes true is in no column.
    has_column = bases[:n_own] < leaves.column_leaves[-1]
    _expect_own(contents, bases[:n_own][has_column], columns[has_column], "complement_bases")
    places = np.full(contents.n_leaves, -1, dtype=np.int64)
    places[found] = np.arange(len(found))
    expect((places[found] == np.arange(len(found))).all(), "a leaf is a complement twice")
    of_bases = places[bases]
    expect((of_bases < np.arange(len(found))).all(), "a complement comes before its base")
    deep = of_bases[of_bases >= 0]
    expect((of_bases[deep] < 0).all(), "a complement of a complement of a complement")


# ── nodes ───────────────────────────────────────────────────────────────────────────────────


def _check_nodes(contents: Contents) -> None:
    nodes, n_leaves = contents.nodes, contents.n_leaves
    n_inner = len(nodes.operators)
    expect(n_leaves + n_inner < 2**31, "more nodes than 31 bits can count")
    expect_within(nodes.operators, 0, XOR + 1, "operators")
    expect_length(nodes.required, n_inner, "required")
    expect_starts(nodes.child_starts, n_inner, len(nodes.children), "child_starts")
    sizes = np.diff(nodes.child_starts)
    expect((sizes > 0).all(), "an inner node has no children")
    expect((nodes.children >= 0).all(), "a child is negative")
    limits = np.repeat(np.arange(n_leaves, n_leaves + n_inner, dtype=np.int32), sizes)
    expect((nodes.children < limits).all(), "a child comes after its parent")
    is_xor, is_counted = nodes.operators == XOR, nodes.operators == AT_LEAST
    expect((sizes[is_xor] % 2 == 0).all(), "the children of XOR are not pairs")
    expect_within(nodes.required[is_xor], 0, 2, "the parity of XOR")
    required = nodes.required[is_counted]
    is_right = (required >= 1) & (required <= sizes[is_counted])
    expect(is_right.all(), "at_least requires more children than there are, or none")


def _check_roots(contents: Contents) -> None:
    roots, n_nodes, n_stored = contents.roots, contents.n_nodes, contents.n_stored
    n_subscriptions = len(contents.ids)
    expect_within(roots.nodes, 0, n_nodes, "roots.nodes")
    expect((roots.nodes[1:] > roots.nodes[:-1]).all(), "roots.nodes is not ascending")
    tops = roots.nodes[np.searchsorted(roots.nodes, n_stored) :]
    is_right = np.array_equal(tops, np.arange(n_stored, n_nodes))
    expect(is_right, "a node without parents is not a root")
    starts = roots.subscription_starts
    expect_starts(starts, len(roots.nodes), len(roots.subscriptions), "subscription_starts")
    expect((starts[1:] > starts[:-1]).all(), "a root has no subscription")
    everybody = np.concatenate((roots.subscriptions, roots.always, contents.never))
    expect_within(everybody, 0, n_subscriptions, "the subscriptions at roots")
    counts = np.bincount(everybody, minlength=n_subscriptions)
    expect((counts == 1).all(), "a subscription has no root, or two")


def _check_triggers(contents: Contents) -> None:
    starts, parents = contents.triggers
    n_inner = len(contents.nodes.operators)
    expect_starts(starts, contents.n_nodes, len(parents), "triggers.starts")
    expect_within(parents, 0, n_inner, "triggers.parents")
    children = np.repeat(np.arange(contents.n_nodes, dtype=np.int32), np.diff(starts))
    is_above = parents > children - np.int32(contents.n_leaves)
    expect(is_above.all(), "a node triggers one that comes before it")


# ── names and operators ─────────────────────────────────────────────────────────────────────


def _check_names(contents: Contents) -> None:
    ids, tags, n_texts = contents.ids, contents.tags, len(contents.texts)
    expect(ids.type == pa.string() and not ids.null_count, "the ids are not strings")
    ids.validate(full=True)
    expect(pc.count_distinct(ids).as_py() == len(ids), "an id occurs twice")
    expect(tags.type == pa.list_(pa.string()) and not tags.null_count, "the tags are not lists")
    tags.validate(full=True)
    expect(len(tags) == len(ids), f"{len(tags)} lists of tags for {len(ids)} subscriptions")
    expect(n_texts == len(ids), f"{n_texts} expressions for {len(ids)} subscriptions")
    for name in ("statistics", "provenance"):
        expect(isinstance(getattr(contents, name), dict), f"{name} is not an object")


def _check_details(contents: Contents) -> None:
    ordinals, starts, ends = contents.validity
    expect_within(ordinals, 0, len(contents.ids), "validity.ordinals")
    expect((ordinals[1:] > ordinals[:-1]).all(), "validity.ordinals is not ascending")
    expect_length(starts, len(ordinals), "validity.starts")
    expect_length(ends, len(ordinals), "validity.ends")
    expect((starts < ends).all(), "a validity ends before it begins")
    for name, moments in (("starts", starts), ("ends", ends)):
        given = moments[(moments != NO_START) & (moments != NO_END)]
        expect_within(given, FIRST_INSTANT, LAST_INSTANT + 1, f"validity.{name}")
    ordinals, weights = contents.weights
    expect_within(ordinals, 0, len(contents.ids), "weights.ordinals")
    expect((ordinals[1:] > ordinals[:-1]).all(), "weights.ordinals is not ascending")
    expect_length(weights, len(ordinals), "weights.values")
    expect(np.isfinite(weights).all(), "weights.values has a value that is no finite number")
    if len(contents.numbers):
        expect_length(contents.numbers, len(contents.ids), "numbers")


def _check_plan(contents: Contents) -> None:
    arrays, n_subscriptions = contents.plan.arrays, len(contents.ids)
    for path in contents.plan.paths:
        is_path = bool(path) and all(isinstance(step, str) for step in path)
        expect(is_path, f"{path!r} is not a valid attribute")
    n_gates, n_tests = len(arrays.thresholds), len(arrays.test_owners)
    n_literals = 2 * (len(contents.plan.calls) + n_tests)
    expect_within(arrays.subscriptions, 0, n_subscriptions, "plan.subscriptions")
    rises = arrays.subscriptions[1:] > arrays.subscriptions[:-1]
    expect(rises.all(), "plan.subscriptions is not ascending")
    expect_length(arrays.roots, len(arrays.subscriptions), "plan.roots")
    expect_within(arrays.roots, 0, n_literals + n_gates, "plan.roots")
    expect_starts(arrays.child_starts, n_gates, len(arrays.children), "plan.child_starts")
    sizes = np.diff(arrays.child_starts)
    is_right = (arrays.thresholds >= 1) & (arrays.thresholds <= sizes)
    expect(is_right.all(), "a gate requires more children than there are, or none")
    expect((arrays.children >= 0).all(), "the child of a gate is negative")
    limits = np.repeat(np.arange(n_literals, n_literals + n_gates), sizes)
    expect((arrays.children < limits).all(), "the child of a gate comes after it")
    for name in ("is_joined", "join_owners", "join_places"):
        expect_length(getattr(arrays, name), n_gates, f"plan.{name}")
    expect_within(arrays.is_joined, 0, 2, "plan.is_joined")
    expect_length(arrays.test_places, n_tests, "plan.test_places")
    expect_within(arrays.test_owners, 0, n_subscriptions, "plan.test_owners")
    is_joined = arrays.is_joined == 1
    expect_within(arrays.join_owners[is_joined], 0, n_subscriptions, "plan.join_owners")
