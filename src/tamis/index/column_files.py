"""Stores columns in an index and reads them back: their manifest entries and their arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.index.columns import PAIR, PATTERN, TEXT, Column
from tamis.index.constants import split_constants
from tamis.index.content_file import array_section
from tamis.index.layout import freeze
from tamis.index.patterns.arrays import PatternArrays, build_arrays
from tamis.index.patterns.kernels.automaton import Automaton
from tamis.index.patterns.kernels.matching import Candidates, Literals
from tamis.index.patterns.stored import PatternTexts, StoredPatterns, store_patterns
from tamis.language.ast import EVENT, Attribute, Derived
from tamis.language.derived import read_derived
from tamis.language.names import parse_path, print_path
from tamis.language.types import parse_declared
from tamis.text import get_analyser
from tamis.text.kernels.find import Terms
from tamis.text.kernels.wildcards import Literals as WildcardLiterals
from tamis.text.kernels.wildcards import Patterns
from tamis.text.numbering import TermArrays, WordTable, number_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tamis.index.constants import ConstantArrays
    from tamis.index.content_file import Content, Section
    from tamis.kernels.arrays import Int32
    from tamis.language.schema import Schema


class _PatternLeaves(NamedTuple):
    leaves: Int32


_PATTERN_GROUPS = {"plain": Automaton, "folded": Automaton, "literals": Literals}
_PATTERN_GROUPS |= {"candidates": Candidates}
_TERM_GROUPS = {"words": WordTable, "terms": Terms, "patterns": Patterns}
_TERM_GROUPS |= {"prefixes": WildcardLiterals, "suffixes": WildcardLiterals}
_TERM_GROUPS |= {"insides": WildcardLiterals}


def prepare_columns(columns: Iterable[Column]) -> None:
    """Build the searchers for patterns and terms, once leaves have their final numbers."""
    for column in columns:
        if column.kind == PATTERN:
            (column.pattern_leaves,) = freeze(_PatternLeaves(column.pattern_leaves))
            column.pattern_arrays = build_arrays(column.patterns, column.pattern_leaves)
            column.patterns = store_patterns(column.patterns, column.attributes[0])
        elif column.kind == TEXT:
            analyser = get_analyser(column.type.analyser)
            column.term_arrays = number_terms(analyser, list(column.constants or ()))


def describe_columns(columns: Iterable[Column]) -> list[dict[str, Any]]:
    """The manifest entry of each column."""
    return [
        {
            "kind": column.kind,
            "attributes": [_describe_attribute(attribute) for attribute in column.attributes],
            "constants": column.n_constants,
        }
        for column in columns
    ]


def _describe_attribute(attribute: Attribute) -> dict[str, str]:
    kind = "value" if isinstance(attribute, Derived) else "name"
    name = print_path(attribute.path) if attribute.path != EVENT else ""
    return {kind: name, "type": str(attribute.type)}


def column_sections(columns: Sequence[Column]) -> Iterator[Section]:
    """The arrays of a column in addition to its constants."""
    for at, column in enumerate(columns):
        for name, group in _groups_of(column).items():
            for field, array in group._asdict().items():
                yield array_section(f"column {at}.{name}.{field}", array)


def _groups_of(column: Column) -> dict[str, Any]:
    if column.kind == PATTERN:
        assert isinstance(column.patterns, StoredPatterns)
        assert column.pattern_arrays is not None
        leaves = _PatternLeaves(column.pattern_leaves)
        arrays = column.pattern_arrays._asdict()
        return {"patterns": column.patterns.texts, "pattern": leaves, **arrays}
    if column.kind == TEXT:
        assert column.term_arrays is not None
        return column.term_arrays._asdict()
    return {}


def read_columns(
    described: list[dict[str, Any]], constants: ConstantArrays, content: Content, schema: Schema
) -> tuple[Column, ...]:
    """The columns from their manifest entries and arrays."""
    columns = [_read_column(at, entry, content, schema) for at, entry in enumerate(described)]
    counts = [entry["constants"] for entry in described]
    runs = split_constants(constants, [column.type for column in columns], counts)
    for column, own in zip(columns, runs, strict=True):
        column.constants = None if column.kind in (PATTERN, PAIR) else own
    return tuple(columns)


def _read_attribute(entry: dict[str, str], schema: Schema) -> Attribute:
    if "value" not in entry:
        path = parse_path(entry["name"]) if entry["name"] else EVENT
        return Attribute(path, parse_declared(entry["type"]))
    return read_derived(entry["value"], schema)


def _read_column(at: int, entry: dict[str, Any], content: Content, schema: Schema) -> Column:
    attributes = tuple(_read_attribute(own, schema) for own in entry["attributes"])
    column = Column(entry["kind"], attributes)
    name = f"column {at}"
    if column.kind == PATTERN:
        texts = content.group(f"{name}.patterns", PatternTexts)
        column.patterns = StoredPatterns(texts, attributes[0])
        column.pattern_leaves = content.group(f"{name}.pattern", _PatternLeaves).leaves
        column.pattern_arrays = PatternArrays(*_read_groups(content, name, _PATTERN_GROUPS))
    elif column.kind == TEXT:
        column.term_arrays = TermArrays(*_read_groups(content, name, _TERM_GROUPS))
    return column


def _read_groups(content: Content, name: str, groups: dict[str, Any]) -> Iterator[Any]:
    return (content.group(f"{name}.{group}", kind) for group, kind in groups.items())
