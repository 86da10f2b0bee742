"""The growing parts of an index that is being built: columns, base tests, texts, inner nodes."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.errors import TamisError
from tamis.index.columns import ARRAY, ELEMENTS, PAIR, PATTERN, SCALAR, TEXT, Column
from tamis.index.constant_words import least_word, numbered_word, to_word, words_as
from tamis.index.elements import opposite_of, spell_test
from tamis.index.kernels import bases as form
from tamis.index.kernels.bases import (
    Bases,
    TextConstants,
    find_base,
    find_text,
    rehash_bases,
    rehash_texts,
)
from tamis.index.kernels.folding import WORDS, Meeting, Met
from tamis.index.kernels.nodes import Inner, add_programs, new_making, rehash_nodes, room_needed
from tamis.language.ast import (
    ArraysOverlap,
    Attribute,
    Comparison,
    Condition,
    ElementTest,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Rlike,
    StringTest,
    Words,
)
from tamis.language.comparators import IndexTest
from tamis.language.printer import print_expression
from tamis.language.types import BOOLEAN, NUMBER
from tamis.logic.leaves import is_short
from tamis.text.terms import spell_term

if TYPE_CHECKING:
    from tamis.index.columns import Pattern
    from tamis.index.programs import Programs
    from tamis.language.schema import Path

_FIRST_SIZE = 1 << 10
_DOUBLE_MARK: Final = "D"
_FORMS: Final = {
    IndexTest.EQUAL: form.ONE_OF,
    IndexTest.BELOW: form.BELOW,
    IndexTest.AT_MOST: form.AT_MOST,
}
_PAIR_FORMS: Final = {
    IndexTest.EQUAL: form.PAIR_EQUAL,
    IndexTest.BELOW: form.PAIR_BELOW,
    IndexTest.AT_MOST: form.PAIR_AT_MOST,
}


class DagBuilder:
    """Everything that an index consists of, without duplicates."""

    def __init__(self, *, is_signed: bool) -> None:
        # Whether a negated test is true on a missing attribute (`Missing.SATISFIES_NEGATION`).
        self.is_signed = is_signed
        self.columns: list[Column] = []
        self.patterns: dict[int, list[Pattern]] = {}  # by column
        # The base that is true where a base of an elements column is false: an event does not have
        # a code because no element, or because no known element satisfies the condition.
        self.opposites: dict[int, int] = {}
        self._column_ids: dict[tuple[str, tuple[Path, ...]], int] = {}
        self._leaf_ids: dict[Condition, int] = {}
        self.bases = Bases(
            np.full(2 * _FIRST_SIZE, -1, dtype=np.int64),
            np.empty((_FIRST_SIZE, 2), dtype=np.int64),
            np.empty(_FIRST_SIZE, dtype=np.uint8),
            np.empty(_FIRST_SIZE, dtype=np.int32),
            np.zeros(_FIRST_SIZE + 1, dtype=np.int64),
            np.empty(_FIRST_SIZE, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )
        self.texts = TextConstants(
            np.full(2 * _FIRST_SIZE, -1, dtype=np.int32),
            np.zeros(_FIRST_SIZE + 1, dtype=np.int64),
            np.empty(_FIRST_SIZE, dtype=np.uint8),
            np.zeros(1, dtype=np.int64),
        )
        self.inner = Inner(
            np.full(2 * _FIRST_SIZE, -1, dtype=np.int64),
            np.empty(_FIRST_SIZE, dtype=np.uint8),
            np.empty(_FIRST_SIZE, dtype=np.int32),
            np.zeros(_FIRST_SIZE + 1, dtype=np.int64),
            np.empty(4 * _FIRST_SIZE, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
        )
        self._met: tuple[Met, Meeting] | None = None
        self._is_finished = False
        never = self._base(form.NEVER, -1, ())
        assert never == 0, "leaf 0 is FALSE and leaf 1 is TRUE"

    # ── leaves ─────────────────────────────────────────────────────────────────────────────

    def leaf(self, condition: Condition) -> int:
        """The number of a canonical leaf, which is added if it is new."""
        number = self._leaf_ids.get(condition)
        if number is None:
            number = self._leaf_ids[condition] = self._place(condition)
        return number

    def column(self, kind: str, *attributes: Attribute) -> int:
        """The number of a column, which is added if it is new."""
        key = (kind, tuple(attribute.path for attribute in attributes))
        column = self._column_ids.get(key)
        if column is None:
            column = self._column_ids[key] = len(self.columns)
            self.columns.append(Column(kind, attributes))
        return column

    def _place(self, leaf: Condition) -> int:
        match leaf:
            case Literal():
                return int(leaf.value)
            case Not():
                return self.leaf(leaf.operand) ^ 1
            case IsNull():
                assert leaf.operand.type is not None
                kind = ARRAY if leaf.operand.type.element else SCALAR
                base = self._base(form.PRESENT, self.column(kind, leaf.operand), ())
                return 2 * base + (not leaf.negated)
            case In() | ArraysOverlap():
                kind = SCALAR if isinstance(leaf, In) else ARRAY
                column = self.column(kind, leaf.operand)
                words = sorted(self._word(literal, column) for literal in leaf.values)
                base = self._base(form.ONE_OF, column, words)
                return 2 * base + getattr(leaf, "negated", False)
            case Comparison(left=Attribute(), right=Attribute()):
                return self._place_pair(leaf)
            case Comparison(left=Attribute(), right=Literal()):
                return self._place_comparison(leaf)
            case Words():
                column = self.column(TEXT, leaf.operand)
                term = self._text(spell_term(leaf.words, leaf.mode, leaf.distance))
                return 2 * self._base(form.ONE_OF, column, (term,))
            case ElementTest():
                return self._place_elements(leaf)
            case Like() | Rlike() | StringTest():
                column = self.column(PATTERN, leaf.operand)
                patterns = self.patterns.setdefault(column, [])
                patterns.append(leaf)
                return 2 * self._base(form.MEETS_PATTERN, column, (len(patterns) - 1,))
            case _:
                raise TamisError(f"cannot index: {print_expression(leaf)}")

    def _place_elements(self, leaf: ElementTest) -> int:
        column = self.column(ELEMENTS, leaf.operand)
        tests = (leaf,) if self.is_signed else (leaf, opposite_of(leaf))
        base, *others = (
            self._base(form.ONE_OF, column, sorted(map(self._text, spell_test(own))))
            for own in tests
        )
        for other in others:
            self.opposites[base], self.opposites[other] = other, base
        return 2 * base

    def _place_comparison(self, leaf: Comparison) -> int:
        assert isinstance(leaf.left, Attribute)
        assert isinstance(leaf.right, Literal)
        column = self.column(SCALAR, leaf.left)
        word = self._word(leaf.right, column)
        # a < 5 and a >= 5 test whether a is below 5; a <= 5 and a > 5 whether it is at most 5.
        test, is_negated = leaf.operator.signed_test
        if test is IndexTest.EQUAL:
            return self._place_equality(column, word, is_negated=is_negated)
        if test is IndexTest.BELOW and word > least_word(self.columns[column].type):
            test, word = IndexTest.AT_MOST, word - 1
        base = self._base(_FORMS[test], column, (word,))
        return self._opposite(base, column, is_opposite=is_negated)

    def _place_equality(self, column: int, word: int, *, is_negated: bool) -> int:
        if self.columns[column].type == BOOLEAN and not word:
            # `b = FALSE` is the opposite of `b = TRUE`: one base for both.
            is_true = self._base(form.ONE_OF, column, (1,))
            return self._opposite(is_true, column, is_opposite=True) ^ is_negated
        return 2 * self._base(form.ONE_OF, column, (word,)) + is_negated

    def _place_pair(self, leaf: Comparison) -> int:
        assert isinstance(leaf.left, Attribute)
        assert isinstance(leaf.right, Attribute)
        column = self.column(PAIR, leaf.left, leaf.right)
        test, is_negated = leaf.operator.signed_test
        base = self._base(_PAIR_FORMS[test], column, ())
        if test is IndexTest.EQUAL:
            return 2 * base + is_negated
        return self._opposite(base, column, is_opposite=is_negated)

    def _opposite(self, base: int, column: int, *, is_opposite: bool) -> int:
        """The leaf of a base, or of the positive test that is its opposite."""
        if is_opposite and self.is_signed:
            # A positive test, which must not be true on a missing attribute.
            return 2 * self._base(form.COMPLEMENT, column, (base,))
        return 2 * base + is_opposite

    def _base(self, form_: int, column: int, values: Any) -> int:
        words = np.array(values, dtype=np.int64)
        self.reserve_bases(1, len(words))
        return int(find_base(self.bases, form_, column, words, len(words)))

    def _word(self, literal: Literal, column: int) -> int:
        """A constant as a word; texts are numbered."""
        type_ = self.columns[column].type
        if type_ == NUMBER and not is_short(literal):
            return numbered_word(self._text(spell_number(literal.value)))
        if words_as(type_) not in (form.WORD_OF_TEXT, form.WORD_OF_DECIMAL):
            return to_word(literal.value, type_)
        return self._text(_spell(literal.value))

    def _text(self, text: str) -> int:
        """The number of a text, which is added if it is new."""
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        self.reserve_texts(1, len(data))
        return int(find_text(self.texts, data, 0, len(data)))

    def text(self, number: int) -> str:
        """The text of a number."""
        start, end = self.texts.starts[number : number + 2].tolist()
        return self.texts.arena[start:end].tobytes().decode()

    # ── nodes ──────────────────────────────────────────────────────────────────────────────

    def add(self, programs: Programs) -> np.ndarray:
        """The root reference of each program; 0 for a skipped one."""
        roots = np.zeros(len(programs.starts) - 1, dtype=np.int32)
        if not len(roots):
            return roots
        longest = int(np.diff(programs.starts).max(initial=1))
        making = new_making(longest)
        met, meeting = self._meet(longest)
        begin = 0
        while True:
            kept = (self.inner, self.bases, self.texts, met, meeting)
            begin = add_programs(programs, *kept, making, begin, roots)
            if begin == len(roots):
                return roots
            if meeting.n_lacking[0]:
                self.reserve_bases(1, int(meeting.n_lacking[0]))
                meeting.n_lacking[0] = 0
                continue
            first, end = programs.starts[begin : begin + 2].tolist()
            self._reserve_nodes(*room_needed(programs, first, end - first, making.stack))

    def _meet(self, most_children: int) -> tuple[Met, Meeting]:
        """The folding tables of the kernels; rebuilt when there are new columns or longer
        programs.
        """
        met = self._met
        if met is None or len(met[0].columns) < len(self.columns):
            met = self._met = (self._new_met(most_children), self._new_meeting())
        elif len(met[0].earlier) < most_children:
            earlier = np.empty(most_children, dtype=np.int32)
            met = self._met = (met[0]._replace(earlier=earlier), met[1])
        return met

    def _new_met(self, most_children: int) -> Met:
        columns = np.zeros((len(self.columns), 3), dtype=np.int64)
        if not self.is_signed:
            columns[:, WORDS] = [_folded_as(column) for column in self.columns]
        earlier = np.empty(most_children, dtype=np.int32)
        return Met(columns, earlier, np.zeros(4, dtype=np.int64))

    def _new_meeting(self) -> Meeting:
        # An attribute has the number of a column, its own first one where it has one.
        numbers: dict[Path, int] = {}
        for at, column in enumerate(self.columns):
            numbers.setdefault(column.attributes[0].path, at)
        attributes = np.empty((len(self.columns), 2), dtype=np.int32)
        for at, column in enumerate(self.columns):
            attributes[at] = [numbers.get(own.path, -1) for own in (column.attributes * 2)[:2]]
        return Meeting(attributes, self.is_signed, np.zeros(1, dtype=np.int64))

    def forget_tables(self) -> None:
        """Free the memory of the tables that find what is there; nothing more can be added."""
        # Copies: a slice would keep the whole array.
        table, heads = self.bases.table[:0].copy(), self.bases.heads[:0].copy()
        self.bases = self.bases._replace(table=table, heads=heads)
        self.texts = self.texts._replace(table=self.texts.table[:0].copy())
        self.inner = self.inner._replace(table=self.inner.table[:0].copy())
        self._is_finished = True

    # ── room ───────────────────────────────────────────────────────────────────────────────

    def reserve_bases(self, n_bases: int, n_values: int) -> None:
        """Make room for more base tests."""
        assert not self._is_finished
        bases = self.bases
        used = bases.n_bases.item()
        n_used = used + n_bases
        values_used = int(bases.value_starts[used]) + n_values
        has_room = n_used < len(bases.forms) and values_used <= len(bases.values)
        if has_room and 2 * n_used < len(bases.table):
            return
        if 2 * n_used >= len(bases.table):
            bases = bases._replace(table=np.full(_size(4 * n_used), -1, dtype=np.int64))
            rehash_bases(bases)
        forms = _grown(bases.forms, n_used + 1)  # kernels want one more than they use
        self.bases = bases._replace(
            heads=_grown(bases.heads, len(forms)),
            forms=forms,
            columns=_grown(bases.columns, len(forms)),
            # Kernels check the room of the forms only.
            value_starts=_grown(bases.value_starts, len(forms) + 1),
            values=_grown(bases.values, values_used),
        )

    def reserve_texts(self, n_texts: int, n_bytes: int) -> None:
        """Make room for more text constants."""
        assert not self._is_finished
        texts = self.texts
        used = int(texts.n_texts[0])
        n_used = used + n_texts
        if 2 * n_used >= len(texts.table):
            texts = texts._replace(table=np.full(_size(4 * n_used), -1, dtype=np.int32))
            rehash_texts(texts)
        self.texts = texts._replace(
            starts=_grown(texts.starts, n_used + 1),
            arena=_grown(texts.arena, int(texts.starts[used]) + n_bytes),
        )

    def _reserve_nodes(self, n_nodes: int, n_children: int) -> None:
        assert not self._is_finished
        inner = self.inner
        used = int(inner.n_inner[0])
        n_used = used + n_nodes + 1
        if 2 * n_used >= len(inner.table):
            inner = inner._replace(table=np.full(_size(4 * n_used), -1, dtype=np.int64))
            rehash_nodes(inner)
        operators = _grown(inner.operators, n_used)
        self.inner = inner._replace(
            operators=operators,
            required=_grown(inner.required, n_used),
            # Kernels check the room of the operators only.
            child_starts=_grown(inner.child_starts, len(operators) + 1),
            children=_grown(inner.children, int(inner.child_starts[used]) + n_children + 1),
        )


def _folded_as(column: Column) -> int:
    """How kernels compare the constants of tests they may fold; NO_WORDS if they may not.

    Two elements of an array, or two words of a text, may satisfy two tests.
    """
    return words_as(column.type) if column.kind == SCALAR else form.NO_WORDS


def spell_number(value: Any) -> str:
    """An exact number as its digits, a double as the text of a float; see `read_spelled`."""
    return f"{value!r}{_DOUBLE_MARK}" if isinstance(value, float) else _spell(Decimal(value))


def read_spelled(text: str) -> Any:
    """The value of a text that `spell_number` wrote."""
    is_double = text.endswith(_DOUBLE_MARK)
    return float(text[: -len(_DOUBLE_MARK)]) if is_double else Decimal(text)


def _spell(value: str | Decimal) -> str:
    """A text that is the same for equal values: 1.50 is 1.5."""
    if isinstance(value, str):
        return value
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _size(n_least: int) -> int:
    return 1 << n_least.bit_length()


def _grown(array: np.ndarray, n_least: int) -> np.ndarray:
    """The array, or a copy twice as long if it is too short."""
    if n_least <= len(array):
        return array
    shape = (max(n_least, 2 * len(array)), *array.shape[1:])
    longer = np.zeros(shape, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
