"""Words are those of UAX #29, with the differences that the documentation lists."""

from __future__ import annotations

import random
import re
from itertools import pairwise, product
from pathlib import Path

import pytest

from tamis.text.segment import _WORD, segment, segment_spans
from tamis.text.stop_words import STOP_WORDS
from tests.effort import SEED, examples

PAGE = (Path(__file__).parents[2] / "docs" / "keywords.md").read_text(encoding="utf-8")
CLASSES = "ANKUBLMEZPRIO"  # as in `segment`; a single quote is as B
CORES = set("ANKPRI")
# A joiner before an emoji that is not after an emoji.
JOINED = re.compile(r"(?:^|[^PEZ])[EZ]*ZP")


def is_joined(classes, at):
    """Whether the rules of UAX #29 put no boundary before a character; Hebrew letters are as
    others.
    """
    if classes[at] in "EZ" or (classes[at - 1] == "Z" and classes[at] == "P"):
        return True
    before = [own for own in classes[:at] if own not in "EZ"]
    after = [own for own in classes[at + 1 :] if own not in "EZ"]
    last, next_ = "".join(before[-1:]), classes[at]
    if last + next_ in ("AA", "NN", "AN", "NA", "KK", "AU", "NU", "KU", "UU"):
        return True
    if last == "U" and next_ in "ANK":
        return True
    inside = {"A": "LB", "N": "MB"}
    for letter, middle in inside.items():
        if last == letter and next_ in middle and after[:1] == [letter]:
            return True
        if next_ == letter and last and last in middle and before[-2:-1] == [letter]:
            return True
    run = re.search(r"R*$", "".join(before))[0]
    return next_ == "R" and len(run) % 2 == 1


def split(classes):
    """The stretches between boundaries that have a letter, a number or an emoji."""
    cuts = [0, *(at for at in range(1, len(classes)) if not is_joined(classes, at)), len(classes)]
    spans = pairwise(cuts)
    return [(begin, end) for begin, end in spans if CORES & {*classes[begin:end]}]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_boundaries(length):
    for classes in map("".join, product(CLASSES, repeat=length)):
        if not JOINED.search(classes):
            assert [found.span() for found in _WORD.finditer(classes)] == split(classes), classes


def test_the_differences():
    assert list(segment("key:value a：b ___ —")) == ["key", "value", "a", "b"]
    assert list(segment("ג' צה\"ל")) == ["ג", "צה", "ל"]
    assert list(segment("a\u200d😀 😀\u200d😀")) == ["a\u200d", "😀", "😀\u200d😀"]
    assert list(segment("© ® ™ ⌚")) == ["⌚"]


def test_the_documentation_lists_all_stop_words():
    listed = re.search(r"### Stop words\n(.*)", PAGE, re.DOTALL)[1]
    rows = dict(re.findall(r"^\| (\w+) \| (.+) \|$", listed, re.MULTILINE))
    del rows["language"]
    assert {name: set(words.split()) for name, words in rows.items()} == {
        name: set(words.split()) for name, words in STOP_WORDS.items()
    }


def test_ascii_texts_are_split_as_all_others():
    draw = random.Random(SEED)
    joining = "aZ09_.,;:'\"- "
    for _ in range(examples(20_000)):
        letters = draw.choices([joining, "".join(map(chr, range(128)))], [9, 1])[0]
        text = "".join(draw.choices(letters, k=draw.randint(0, 14)))
        other = f"{text} é"  # not ASCII
        assert segment(text) == segment(other)[:-1], text
        assert list(segment_spans(text)) == list(segment_spans(other))[:-1], text
