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
from tamis.text.finder import TermFinder
from tamis.text.numbering import number_terms
from tamis.text.proximity import has_term
from tamis.text.queries import analyse_query
from tamis.text.terms import NEAR, NEAR_IN_ORDER, read_term, spell_term
from tamis.text.wildcards import find_bad_wildcard, has_wildcard
from tests.effort import examples
from tests.text.texts import random_text, with_wildcards

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
    words = [analyser.read(text) for text in texts]
    return {
        (row, at)
        for row, own in enumerate(words)
        for at, term in enumerate(terms)
        if has_term(own, read_term(term, analyser.name))
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
        terms.update(random_patterns(rng, analyser, text))
        if not analyser.takes_whole:
            terms.update(random_proximities(rng, analyser, text))
    return sorted(terms)


def random_proximities(rng, analyser, text):
    """Terms whose words are near each other, in order or not, some with wildcards."""
    words = analyser.words(text)
    patterns = [term for term in random_patterns(rng, analyser, text) if " " not in term]
    pool = [word for word in (*words, *patterns) if word]
    for _ in range(3 if pool else 0):
        chosen = rng.choices(pool, k=rng.randint(2, 4))
        distance = rng.choice((0, 1, 2, 5, 1_000))
        yield spell_term(chosen, NEAR_IN_ORDER, distance)
        if len(set(chosen)) > 1:
            yield spell_term(sorted(set(chosen)), NEAR, distance)


def random_patterns(rng, analyser, text):
    """Terms in which words have wildcards, alone and in phrases."""
    for written in text.split():
        query = with_wildcards(rng, written)
        if rng.random() < 0.5:
            query += " " + rng.choice(text.split())
        words = analyse_query(analyser.name, query)
        if words and any(map(has_wildcard, words)) and not find_bad_wildcard(analyser.name, query):
            yield spell_term(words)


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


def test_words_near_each_other_in_a_long_text():
    analyser = get_analyser("standard")
    terms = [
        "~0 a b",
        "~2 a b",
        "~1000 a b c",
        ">0 a b",
        ">2 a b",
        ">3 a b a",
        "~7 c d",
        ">1 a* a*",
    ]
    rng = random.Random(3)
    texts = [" ".join(rng.choices("abxxxxxxx", k=300)) for _ in range(20)]
    texts += ["a" + " x" * 1_000 + " b c", "a" + " x" * 1_001 + " b c", "b a", "a x x a b", "a b"]
    assert find(make_finder(analyser, terms), texts) == expect(analyser, terms, texts)


def test_a_word_that_fits_many_patterns():
    analyser = get_analyser("english")
    stem = "pneumonoultramicroscopic"
    patterns = [stem[:at] + "*" for at in range(2, len(stem))]
    patterns += ["*" + stem[at:] for at in range(1, len(stem) - 2)]
    patterns += ["*" + stem[at : at + 3] + "*" for at in range(1, len(stem) - 3)]
    terms = [*patterns, "pn* lung*", "lung pneumono*", "pneumonoultramicroscop"]
    texts = [f"{stem} lungs", "lung " + f"{stem} " * 50, stem, "the", "", f"{stem}-x {stem}"]
    texts += ["pneumonia"] * 300 + [stem] * 300
    assert find(make_finder(analyser, terms), texts) == expect(analyser, terms, texts)
    few = make_finder(analyser, patterns)
    assert find(few, texts) == expect(analyser, patterns, texts)


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
