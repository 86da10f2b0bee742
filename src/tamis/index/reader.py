"""The Python side of the fast reader: buffers, attribute names, and their types in a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import ParseError
from tamis.index.columns import SCALAR
from tamis.index.kernels import bases as form
from tamis.index.kernels import lexer
from tamis.index.kernels.bases import count_uses, place_tests, put_leaves, read_tests
from tamis.index.kernels.lexer import NameTable
from tamis.index.kernels.scan import ScanLimits, Scanned, scan_texts
from tamis.index.programs import Programs
from tamis.language.ast import Attribute
from tamis.language.literals import read_string
from tamis.language.names import parse_path
from tamis.language.types import ANY, DOUBLE, INTEGER, NUMBER, STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.index.dag_builder import DagBuilder
    from tamis.index.pattern_tests import PatternTests
    from tamis.language.infer import SchemaVotes
    from tamis.language.limits import Limits
    from tamis.language.schema import Path, Schema

MAX_NAMES = 1 << 16  # distinct attribute names; expressions with more are parsed
_WORDS = {
    INTEGER: form.WORD_OF_INTEGER,
    DOUBLE: form.WORD_OF_DOUBLE,
    NUMBER: form.WORD_OF_NUMBER,
    STRING: form.WORD_OF_TEXT,
}
_KINDS = {
    lexer.CONSTANT_INTEGER: NUMBER,
    lexer.CONSTANT_DECIMAL: NUMBER,
    lexer.CONSTANT_TEXT: STRING,
    3: ANY,
}


class Chunk(NamedTuple):
    """Expressions that were read; those with `is_left` are left to the parser."""

    texts: pa.StringArray  # empty for a row that is not a string
    data: np.ndarray  # uint8[:], their bytes, followed by the decoded strings
    scanned: Scanned
    n_tests: int


class Reader:
    """Reads chunks of expressions, and collects their attribute names."""

    def __init__(self, limits: Limits) -> None:
        self._names = NameTable(
            np.full(4 * MAX_NAMES, -1, dtype=np.int32),
            np.zeros(MAX_NAMES + 1, dtype=np.int64),
            np.empty(64 * MAX_NAMES, dtype=np.uint8),
            np.zeros(1, dtype=np.int64),
        )
        self._limits = ScanLimits(
            limits.text_length,
            limits.depth,
            limits.predicates // 2,
            limits.in_list,
            limits.xor_operands,
        )
        # Expressions beyond this are left to the parser, which counts levels differently; half of
        # the limit is safe by either count.
        self._stack = np.empty((limits.depth // 2 + 2, 4), dtype=np.int64)
        self._paths: list[Path] = []
        self._name_columns = np.empty(0, dtype=np.int32)
        self._name_words = np.empty(0, dtype=np.uint8)

    def read(self, texts: Sequence[str] | pa.StringArray) -> Chunk:
        """The expressions of one chunk; a row that is not a string is left to the parser."""
        column = texts if isinstance(texts, pa.StringArray) else _to_arrow(texts)
        data, offsets = _buffers(column)
        # An instruction takes at least two bytes of text; a BETWEEN makes three from many bytes.
        n_most = len(data) // 2 + 4 * len(texts) + 8
        scanned = Scanned(
            np.empty(n_most, dtype=np.uint8),
            np.empty(n_most, dtype=np.int32),
            np.empty(n_most, dtype=np.int32),
            np.empty(n_most, dtype=np.int32),
            np.empty(n_most, dtype=np.uint8),
            np.zeros(n_most + 1, dtype=np.int32),
            np.empty(n_most, dtype=np.uint8),
            np.empty(n_most, dtype=np.int64),
            np.empty(n_most, dtype=np.int32),
            np.zeros(len(texts) + 1, dtype=np.int64),
            np.zeros(len(texts) + 1, dtype=np.int64),
            np.zeros(len(texts), dtype=np.uint8),
        )
        counts = np.zeros(3, dtype=np.int64)
        state = np.zeros(4, dtype=np.int64)
        scan_texts(data, offsets, scanned, self._names, self._limits, self._stack, state, counts)
        n_tests = int(counts[1])
        return Chunk(column, _decode_texts(data, scanned, n_tests), scanned, n_tests)

    def vote(self, chunk: Chunk, votes: SchemaVotes) -> None:
        """Count how the expressions of a chunk use their attributes."""
        counts = np.zeros((len(self.paths()), len(_KINDS) + 1), dtype=np.int64)
        count_uses(chunk.data, chunk.scanned, counts)
        n_texts = counts[:, -1].tolist()
        for name, kind in zip(*map(np.ndarray.tolist, np.nonzero(counts[:, :-1])), strict=True):
            votes.add_uses(
                self._paths[name],
                _KINDS[kind],
                int(counts[name, kind]),
                n_only_texts=n_texts[name] if kind == lexer.CONSTANT_TEXT else 0,
            )

    def programs(
        self, chunk: Chunk, schema: Schema, builder: DagBuilder, patterns: PatternTests
    ) -> Programs:
        """The programs of the expressions of a chunk whose types are right; others are left to the
        parser.
        """
        scanned = chunk.scanned
        n_constants = int(scanned.test_starts[chunk.n_tests])
        builder.reserve_bases(2 * chunk.n_tests, n_constants + 2 * chunk.n_tests)
        builder.reserve_texts(n_constants, len(chunk.data))
        name_columns, name_words = self._columns(schema, builder)
        leaves = np.empty(chunk.n_tests, dtype=np.int32)
        searching = np.flatnonzero(scanned.test_kinds[: chunk.n_tests] >= lexer.LIKE)
        if len(searching):
            leaves[searching] = patterns.place(scanned, searching, chunk.data, self._paths)
            # Pattern tests may be replaced by other tests, which need room.
            builder.reserve_bases(2 * chunk.n_tests, n_constants + 2 * chunk.n_tests)
        words = np.empty(n_constants + 1, dtype=np.int64)
        heads = np.empty(chunk.n_tests, dtype=np.int64)
        hashes = np.empty(chunk.n_tests, dtype=np.int64)
        named = (chunk.data, name_columns, name_words, builder.texts)
        double, known = np.zeros(1, dtype=np.float64), np.zeros(1, dtype=np.int64)
        read_tests(scanned, chunk.n_tests, *named, words, heads, hashes, double)
        held = (builder.is_signed, builder.bases)
        place_tests(scanned, chunk.n_tests, *held, words, heads, hashes, known, leaves)
        put_leaves(scanned, leaves)
        return Programs(
            scanned.program_starts,
            scanned.operators,
            scanned.operands,
            scanned.required,
            scanned.is_left,
        )

    def paths(self) -> list[Path]:
        """The attribute paths found so far, by number of the name."""
        names = self._names
        for name in range(len(self._paths), int(names.n_names[0])):
            start, end = names.starts[name : name + 2].tolist()
            spelled = names.arena[start:end].tobytes().decode()
            self._paths.append(parse_path(spelled))
        return self._paths

    def _columns(self, schema: Schema, builder: DagBuilder) -> tuple[np.ndarray, np.ndarray]:
        """The column of each name, and how its values become words; the schema must not change."""
        paths = self.paths()
        n_known = len(self._name_columns)
        columns = np.full(len(paths), -1, dtype=np.int32)
        words = np.zeros(len(paths), dtype=np.uint8)
        columns[:n_known], words[:n_known] = self._name_columns, self._name_words
        for name in range(n_known, len(paths)):
            type_ = schema.get(paths[name])
            if type_ is not None and type_.element is None:
                columns[name] = builder.column(SCALAR, Attribute(paths[name], type_))
                words[name] = _WORDS.get(type_, form.NO_WORDS)
        self._name_columns, self._name_words = columns, words
        return columns, words


def _decode_texts(data: np.ndarray, scanned: Scanned, n_tests: int) -> np.ndarray:
    """The bytes with all decoded strings appended; expressions with an invalid escape are left to
    the parser.

    The constants then refer to the decoded strings.
    """
    n_constants = int(scanned.test_starts[n_tests])
    escaped = np.flatnonzero(scanned.constant_kinds[:n_constants] == lexer.CONSTANT_ESCAPED)
    if not len(escaped):
        return data
    known: dict[bytes, bytes | None] = {}
    decoded = [data]
    n_bytes = len(data)
    starts = scanned.constant_values[escaped].tolist()
    sizes = scanned.constant_sizes[escaped].tolist()
    whole = data.tobytes()
    for constant, start, size in zip(escaped.tolist(), starts, sizes, strict=True):
        token = whole[start : start + size]
        text = known[token] if token in known else known.setdefault(token, _decode(token))
        if text is None:
            test = np.searchsorted(scanned.test_starts[: n_tests + 1], constant, "right") - 1
            program = np.searchsorted(scanned.program_tests, test, "right") - 1
            scanned.is_left[program] = 1
            continue
        scanned.constant_kinds[constant] = lexer.CONSTANT_TEXT
        scanned.constant_values[constant] = n_bytes
        scanned.constant_sizes[constant] = len(text)
        decoded.append(np.frombuffer(text, dtype=np.uint8))
        n_bytes += len(text)
    longer = np.concatenate(decoded)
    longer.flags.writeable = False
    return longer


def _decode(token: bytes) -> bytes | None:
    try:
        return read_string(token.decode(), 0).encode()
    except ParseError:
        return None


def _to_arrow(texts: Sequence[str]) -> pa.StringArray:
    """The texts as an array; rows that are not strings are empty."""
    # Arrow accepts bytes as strings; we do not.
    if set(map(type, texts)) <= {str}:
        try:
            return pa.array(texts, pa.string())
        except (pa.ArrowInvalid, UnicodeEncodeError):
            pass  # a lone surrogate
    return pa.array(list(map(_or_empty, texts)), pa.string())


def _buffers(column: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 bytes of the texts and the start of each, read-only."""
    _, offsets, data = column.buffers()
    first = column.offset  # of a slice of a longer column
    starts = np.frombuffer(offsets, dtype=np.int32)[first : first + len(column) + 1]
    found = np.frombuffer(data or b"", dtype=np.uint8)[starts[0] : starts[-1]]
    if starts[0]:
        starts = starts - starts[0]
    # Some buffers are writeable and some are not; kernels are compiled for one kind.
    found.flags.writeable = starts.flags.writeable = False
    return found, starts


def _or_empty(text: object) -> str:
    if not isinstance(text, str):
        return ""
    try:
        text.encode()
    except UnicodeEncodeError:
        return ""
    return text
