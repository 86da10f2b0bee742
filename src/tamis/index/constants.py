"""Columns to and from flat storage: numbers as 64-bit words, texts as strings."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.index.columns import Column, Pattern
from tamis.index.kernels.tests import AS_TEXT
from tamis.index.words import from_words, to_word, words_as
from tamis.language.ast import Attribute, Like, Rlike, StringTest
from tamis.language.names import parse_path, print_path
from tamis.language.types import parse_type

if TYPE_CHECKING:
    from collections.abc import Sequence


def pack_columns(
    columns: Sequence[Column],
) -> tuple[list[dict[str, Any]], np.ndarray, pa.Table, pa.Table]:
    """What the manifest says of each column; all constants that are numbers, all that are texts,
    and all patterns, column after column."""
    described: list[dict[str, Any]] = []
    words: list[np.ndarray] = []
    texts: list[str] = []
    patterns: list[tuple[str, str, int]] = []
    for column in columns:
        attributes = [
            {"name": print_path(attribute.path), "type": str(attribute.type)}
            for attribute in column.attributes
        ]
        described.append(
            {
                "kind": column.kind,
                "attributes": attributes,
                "constants": len(column.constants),
                "patterns": len(column.patterns),
            }
        )
        if words_as(column.type) == AS_TEXT:
            texts.extend(map(str, column.constants))
        else:
            own = [to_word(value, column.type) for value in column.constants]
            words.append(np.array(own, dtype=np.int64))
        patterns.extend(
            (*_spell_pattern(pattern), leaf)
            for pattern, leaf in zip(column.patterns, column.pattern_leaves, strict=True)
        )
    kinds, spelled, leaves = zip(*patterns, strict=True) if patterns else ((), (), ())
    table = {
        "kind": pa.array(kinds, pa.string()),
        "text": pa.array(spelled, pa.string()),
        "leaf": pa.array(leaves, pa.int32()),
    }
    all_words = np.concatenate([*words, np.empty(0, np.int64)])
    all_texts = pa.table({"text": pa.array(texts, pa.string())})
    return described, all_words, all_texts, pa.table(table)


def unpack_columns(
    described: list[dict[str, Any]], words: np.ndarray, texts: pa.Table, patterns: pa.Table
) -> tuple[Column, ...]:
    """The columns that `pack_columns` packed."""
    next_word = next_text = next_pattern = 0
    columns = []
    for entry in described:
        attributes = tuple(
            Attribute(parse_path(attribute["name"]), parse_type(attribute["type"]))
            for attribute in entry["attributes"]
        )
        column = Column(entry["kind"], attributes)
        n_constants, n_patterns = entry["constants"], entry["patterns"]
        if words_as(column.type) == AS_TEXT:
            own_texts = texts["text"].slice(next_text, n_constants).to_pylist()
            next_text += n_constants
            is_decimal = column.type.name == "decimal"
            column.constants = list(map(Decimal, own_texts)) if is_decimal else own_texts
        else:
            column.constants = from_words(words[next_word : next_word + n_constants], column.type)
            next_word += n_constants
        for row in patterns.slice(next_pattern, n_patterns).to_pylist():
            column.patterns.append(_read_pattern(row["kind"], row["text"], attributes[0]))
            column.pattern_leaves.append(row["leaf"])
        next_pattern += n_patterns
        columns.append(column)
    return tuple(columns)


def _spell_pattern(pattern: Pattern) -> tuple[str, str]:
    match pattern:
        case StringTest():
            return pattern.function, pattern.text
        case Rlike():
            return "rlike", pattern.pattern
        case Like():
            return "ilike" if pattern.ignores_case else "like", pattern.pattern


def _read_pattern(kind: str, text: str, attribute: Attribute) -> Pattern:
    match kind:
        case "rlike":
            return Rlike(attribute, text)
        case "like" | "ilike":
            return Like(attribute, text, ignores_case=kind == "ilike")
        case _:
            return StringTest(kind, attribute, text)
