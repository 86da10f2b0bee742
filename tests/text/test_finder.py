"""Many texts at once give what one text at a time gives."""

from __future__ import annotations

import random
import threading
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from tamis.text import finder as finder_module
from tamis.text import get_analyser
from tamis.text.analysers import has_words
from tamis.text.finder import TermFinder
from tamis.text.numbering import number_terms
from tamis.text.terms import read_term, spell_term
from tests.effort import examples
from tests.text.texts import random_text

NAMES = ("keyword", "simple", "standard", "standard_english", "english", "german", "turkish")


def buffers(texts):
    array = pa.array(texts, pa.large_string())
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(texts) + 1)
    return offsets, np.frombuffer(array.buffers()[2] or b"", np.uint8)


def make_finder(analyser, terms):
    return TermFinder(analyser, number_terms(analyser, terms), len(terms))


def find(finder, texts):
    rows, terms = finder.find(*buffers(texts))
    found = list(zip(rows.tolist(), terms.tolist(), strict=True))
    assert len(set(found)) == len(found), "a term is found once in a text"
    assert rows.dtype == terms.dtype == np.int32
    return set(found)


def expect(analyser, terms, texts):
    words = [analyser.words(text) for text in texts]
    return {
        (row, at)
        for row, own in enumerate(words)
        for at, term in enumerate(terms)
        if has_words(own, read_term(term, analyser.name))
    }


def random_terms(rng, analyser, texts):
    """Words and runs of words of the texts, and of texts that are not among them."""
    terms = set()
    for text in (*texts, *(random_text(rng) for _ in range(3))):
        words = analyser.words(text)
        terms.update(word for word in words if word and rng.random() < 0.5)
        for at, first in enumerate(words):
            phrase = words[at : at + rng.randint(2, 4)]
            if not analyser.takes_whole and first and len(phrase) > 1 and phrase[-1]:
                terms.add(spell_term(phrase))
    return sorted(terms)


@pytest.mark.parametrize("name", NAMES)
def test_many_texts_are_as_one(name):
    analyser = get_analyser(name)
    for seed in range(examples(25)):
        rng = random.Random(f"{name} {seed}")
        texts = [random_text(rng) for _ in range(rng.randint(0, 12))]
        terms = random_terms(rng, analyser, texts)
        finder = make_finder(analyser, terms)
        assert find(finder, texts) == expect(analyser, terms, texts), (seed, texts, terms)
        assert find(finder, texts[::-1]) == expect(analyser, terms, texts[::-1]), seed


def test_memory_grows_and_is_forgotten():
    first_words = range(0, 30_000, 150)
    texts = [" ".join(f"w{at}" for at in range(first, first + 300)) for first in first_words]
    terms = [*(f"w{at}" for at in range(0, 30_000, 7)), "w14 w15"]
    expected = {
        (row, at // 7)
        for row, first in enumerate(first_words)
        for at in range(first, min(first + 300, 30_000))
        if at % 7 == 0
    }
    with patch.object(finder_module, "MAX_PIECES", 5_000):
        finder = make_finder(get_analyser("standard"), terms)
        for _ in range(3):
            assert find(finder, texts) == expected | {(0, len(terms) - 1)}


def test_phrases_without_end():
    analyser = get_analyser("standard")
    terms = ["a a", "a  a", "a a a a", "a b"]
    texts = ["a" + " a" * 5_000, "a", "a x a", "b a", ""]
    assert find(make_finder(analyser, terms), texts) == expect(analyser, terms, texts)


def test_no_terms_and_no_texts():
    finder = make_finder(get_analyser("standard"), [])
    assert find(finder, ["a b", ""]) == set()
    assert find(finder, []) == set()


def test_threads_share_a_finder():
    analyser = get_analyser("english")
    rng = random.Random(5)
    batches = [[random_text(rng) for _ in range(20)] for _ in range(8)]
    terms = random_terms(rng, analyser, batches[0])
    finder = make_finder(analyser, terms)
    found = [set()] * len(batches)

    def work(at):
        found[at] = find(finder, batches[at])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expect(analyser, terms, texts) for texts in batches]
