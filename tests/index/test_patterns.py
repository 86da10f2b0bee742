"""Many patterns at once find what each finds alone."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numba
import numpy as np
import pytest

from tamis.index import patterns as patterns_module
from tamis.index.patterns import PatternMatcher
from tamis.index.patterns.arrays import build_arrays
from tamis.index.patterns.kernels import automaton, skipping
from tamis.index.patterns.kernels.matching import ANY_TEXT, ONE_CHARACTER, TextBytes, is_like
from tamis.index.patterns.required import LONG_S, require
from tamis.language.ast import Attribute, Like, Rlike, StringTest
from tamis.language.patterns import Wild, compile_regex, parse_like
from tamis.language.patterns import is_like as is_like_plainly
from tamis.language.types import STRING
from tamis.logic.evaluate import test_text as has_pattern
from tests.effort import SEED, examples
from tests.language.test_java_regex import draw_patterns as draw_regexes
from tests.language.test_java_regex import draw_text as draw_regex_text

TEXT = Attribute(("text",), STRING)
IS_COMPILED = not numba.config.DISABLE_JIT

# Few characters, so that much is found. Lower case makes two characters of İ, depends on what is
# around Σ, and makes the Kelvin sign K; ſ is lower case already.
ALPHABETS = ["ab", "aAbB", "abcdefgh /\\", "aAİiıſsSßẞΣσςKkKéÉ\u0307", "ab\n\0%_\\.", "aé漢😀"]


def find_naively(patterns, leaves, texts):
    """The naive twin: every pattern on every text."""
    return [
        sorted(leaf for each, leaf in zip(patterns, leaves, strict=True) if has_pattern(each, text))
        for text in texts
    ]


def find(matcher, texts):
    starts, leaves = matcher.match_texts(texts)
    assert (starts.dtype, leaves.dtype) == (np.int64, np.int32)
    assert (len(starts), starts[0], starts[-1]) == (len(texts) + 1, 0, len(leaves))
    return [sorted(leaves[begin:end].tolist()) for begin, end in pairwise(starts)]


def check(patterns, texts, leaves=None):
    leaves = range(len(patterns)) if leaves is None else leaves
    found = find(make_matcher(patterns, leaves), texts)
    expected = find_naively(patterns, leaves, texts)
    for text, here, there in zip(texts, found, expected, strict=True):
        assert [patterns[leaf] for leaf in here] == [patterns[leaf] for leaf in there], text


def make_matcher(patterns, leaves):
    return PatternMatcher(patterns, build_arrays(patterns, leaves))


def contains(text):
    return StringTest("contains", TEXT, text)


def like(pattern):
    return Like(TEXT, pattern)


def ilike(pattern):
    return Like(TEXT, pattern.lower(), ignores_case=True)


def draw_text(rng, alphabet, longest):
    return "".join(rng.choices(alphabet, k=rng.randint(0, longest)))


def escape(text):
    return "".join("\\" + each if each in "%_\\" else each for each in text)


def draw_like(rng, alphabet):
    n_parts = rng.choice((1, 1, 1, 2, 2, 3, 4))
    wildcards = ("%", "%", "_", "%_", "__", "")
    parts = [rng.choice(wildcards) + escape(draw_text(rng, alphabet, 4)) for _ in range(n_parts)]
    return "".join(parts) + rng.choice(("%", "%", "_", ""))


def draw_pattern(rng, alphabet):
    kind = rng.choice(("string", "like", "ilike", "ilike"))
    if kind == "string":
        function = rng.choice(("startswith", "endswith", "contains"))
        return StringTest(function, TEXT, draw_text(rng, alphabet, 5))
    pattern = draw_like(rng, alphabet)
    return ilike(pattern) if kind == "ilike" else like(pattern)


@pytest.fixture(params=[1, automaton.DENSE_ENTRIES], ids=["one dense row", "dense rows"])
def dense_entries(request, monkeypatch):
    monkeypatch.setattr(automaton, "DENSE_ENTRIES", request.param)


# ── LIKE, ILIKE and string tests ────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("dense_entries")
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_patterns_find_what_each_finds(alphabet, seed):
    rng = random.Random(f"{seed} {alphabet}")
    for _ in range(examples(20)):
        patterns = [draw_pattern(rng, alphabet) for _ in range(rng.randint(1, 60))]
        check(patterns, [draw_text(rng, alphabet, 12) for _ in range(30)] + [""])


@pytest.mark.usefixtures("dense_entries")
@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("shortest", [2, 3, 4, 9, 150])
def test_long_literals_are_found_between_other_text(alphabet, shortest, seed):
    rng = random.Random(f"{seed} {alphabet} {shortest}")
    for _ in range(examples(4)):
        literals = [
            "".join(rng.choices(alphabet, k=shortest + rng.choice((0, 0, 1, 5))))
            for _ in range(rng.randint(1, 8))
        ]
        escaped = list(map(escape, literals))
        patterns = [contains(literal) for literal in literals]
        patterns += [ilike(f"%{literal}%") for literal in escaped]
        patterns += [like(f"{literal}%") for literal in escaped]
        patterns += [ilike(f"%{literal}") for literal in escaped]
        patterns += [ilike(f"%{rng.choice(escaped)}%{literal}_%") for literal in escaped]
        check(patterns, [draw_mixed(rng, alphabet, literals) for _ in range(30)])


def draw_mixed(rng, alphabet, literals):
    """Literals, their beginnings and ends, and other text."""
    pieces = []
    for _ in range(rng.randint(0, 6)):
        literal = rng.choice(literals)
        cut = rng.randint(0, len(literal))
        other = draw_text(rng, alphabet, 9)
        pieces.append(rng.choice((literal, literal[:cut], literal[cut:], other)))
    return "".join(pieces)


@pytest.mark.parametrize(
    ("texts", "window"), [(["abcd", "xabcdef"], 4), (["abc", "a"], 0), (["x" * 500], 128)]
)
def test_the_window_is_as_long_as_the_shortest_literal(texts, window):
    skips = make_matcher(list(map(contains, texts)), range(len(texts))).search.plain_skips
    assert skips.sizes[skipping.WINDOW] == window


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_like_on_bytes_is_like_on_characters(alphabet, seed):
    rng = random.Random(f"{seed} {alphabet}")
    codes = {Wild.ANY_TEXT: [ANY_TEXT], Wild.ONE_CHARACTER: [ONE_CHARACTER]}
    for _ in range(examples(500)):
        tokens = parse_like(draw_like(rng, alphabet), "\\")
        text = draw_text(rng, alphabet, 8)
        flat = [code for each in tokens for code in codes.get(each) or each.encode()]
        encoded = np.frombuffer(text.encode(), dtype=np.uint8)
        assert is_like(encoded, np.array(flat, dtype=np.int16)) == is_like_plainly(text, tokens)


@pytest.mark.parametrize(
    "patterns",
    [
        [contains(text) for text in ("a", "aa", "aaa", "ba", "ab", "aba", "bab", "b")],
        [StringTest(function, TEXT, "aba") for function in ("startswith", "endswith", "contains")],
        [ilike("abab"), ilike("%abab"), ilike("abab%"), ilike("%abab%"), ilike("ab%ab")],
        [like("a_"), like("_a"), like("%a_%"), like("_"), like("__"), like("_%"), like("%_b")],
        [like(""), ilike(""), like("%"), ilike("%"), contains(""), ilike("%%a"), ilike("_%_")],
        [ilike("%a%"), contains("A"), Rlike(TEXT, "A"), Rlike(TEXT, "(?i)A"), ilike("%A%")],
        [ilike(f"%{each}%") for each in "İiıſsßẞΣσςKkK\u0307"],
        [ilike(f"{each}%") for each in "İiıſsßẞΣσςKkK"],
        [like("a\\%b"), like("a\\_b"), like("%\\\\%"), like("a\nb"), like("a%b")],
    ],
)
def test_special_cases(patterns):
    words = ["a", "b", "ab", "ba", "aba", "abab", "ababab", "A", "aB", "%", "_", "\\", "a%b", "a_b"]
    traps = ["İ", "i", "ı", "ſ", "s", "ß", "ẞ", "ΑΣ", "ΑΣΑ", "σς", "K", "K", "k", "é", "😀", "a\nb"]
    check(patterns, ["", *words, *traps, *(word + trap for word in words for trap in traps)])


def test_duplicates_have_leaves_of_their_own():
    patterns = [contains("a"), contains("a"), ilike("%a%b%"), ilike("%a%b%"), Rlike(TEXT, "a.b")]
    patterns += patterns
    leaves = [7, 5, 3, 9, 11, 2, 0, 4, 6, 1_000_000]
    texts = ["axb", "ab", "", "ba"]
    assert find(make_matcher(patterns, leaves), texts) == find_naively(patterns, leaves, texts)


def test_nothing_to_find():
    assert find(make_matcher([], []), ["", "a"]) == [[], []]
    assert find(make_matcher([contains("a"), Rlike(TEXT, "b")], [0, 1]), []) == []


def test_ten_thousand_patterns(seed):
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(1, 6))) for _ in range(300)]
    frames = ["%{}%", "{}%", "%{}", "%{}%{}%", "{}%{}", "%{}_{}%", "{}", "%{}{}{}%"]
    patterns = [
        ilike(rng.choice(frames).format(*rng.choices(words, k=3)))
        if rng.random() < 0.8
        else contains("".join(rng.choices(words, k=2)))
        for _ in range(10_000)
    ]
    texts = ["".join(rng.choices(words, k=rng.randint(0, 40))) for _ in range(examples(5))]
    check(patterns, [*texts, *(text.upper() for text in texts)])


@pytest.mark.usefixtures("dense_entries")
def test_long_texts():
    n_repeats = 100_000 if IS_COMPILED else 1_000
    runs = [contains("a" * length) for length in range(1, 200)]
    others = [like("%a_a%b"), ilike("%x%b"), like("a%ab"), Rlike(TEXT, "a{200}b$"), contains("ba")]
    text = "a" * 10 * n_repeats + "b"
    check([*runs, *others], [text, "x" + text[-1000:], text[-1000:] + "c"])


def test_results_larger_than_the_room(monkeypatch, seed):
    monkeypatch.setattr(patterns_module, "ROOM_PER_TEXT", 1)
    rng = random.Random(seed)
    patterns = [draw_pattern(rng, "ab") for _ in range(40)]
    patterns += [Rlike(TEXT, each) for each in ("a", "b+", "a.b", "^.$", "ba|ab", "^$")]
    for max_room in (0, 1, 50):
        monkeypatch.setattr(patterns_module, "MAX_ROOM", max_room)
        check(patterns, [draw_text(rng, "ab", 9) for _ in range(50)])


def test_threads_share_a_matcher(seed):
    rng = random.Random(seed)
    patterns = [draw_pattern(rng, "aAbB") for _ in range(200)]
    patterns += [Rlike(TEXT, each) for each in ("(?i)a.b", "aa+", "[ab]{3}$")]
    matcher = make_matcher(patterns, range(len(patterns)))
    batches = [[draw_text(rng, "aAbB", 20) for _ in range(100)] for _ in range(4)]
    alone = [find(matcher, texts) for texts in batches]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda texts: find(matcher, texts), batches * 4)) == alone * 4


# ── regular expressions ─────────────────────────────────────────────────────────────────────


def test_regexes_find_what_each_finds(seed):
    rng = random.Random(seed)
    for _ in range(examples(10)):
        patterns = [Rlike(TEXT, each) for each in draw_regexes(rng, 30)]
        # With ILIKE in the same index, their literals are looked for in lower case.
        others = [draw_pattern(rng, ALPHABETS[3]) for _ in range(rng.choice((0, 5)))]
        check(patterns + others, [draw_regex_text(rng) for _ in range(60)])


def test_what_is_found_has_what_is_required(seed):
    rng = random.Random(seed)
    n_found = n_required = 0
    for pattern in draw_regexes(rng, examples(300)):
        required = require(pattern)
        n_required += bool(required.clauses)
        for text in (draw_regex_text(rng) + draw_regex_text(rng) for _ in range(30)):
            if compile_regex(pattern).search(text):
                n_found += 1
                assert len(text) >= required.min_length, (pattern, text)
                for clause in required.clauses:
                    read = text.lower() if clause.is_folded else text
                    assert any(each in read for each in clause.texts), (pattern, text, clause)
    print(f"{n_required} patterns require something; {n_found} pairs found")
    assert n_found > 300
    assert n_required > 60


@pytest.mark.parametrize(
    ("pattern", "clauses"),
    [
        ("abc", [{"abc"}]),
        ("a|b", [{"a", "b"}]),
        ("ab*c", [{"a"}, {"c"}]),
        ("ab+c", [{"ab"}, {"bc"}]),
        ("ab{2}c", [{"abbc"}]),
        ("ab?c", [{"abc", "ac"}]),
        ("(?:foo|bar)+baz", [{"foobaz", "barbaz"}, {"foo", "bar"}]),
        (r"foo\d\.exe$", [{f"foo{digit}.exe" for digit in range(10)}]),
        (r"net\s+user", [{f"{s}user" for s in "\t\n\f\r "}, {f"net{s}" for s in "\t\n\f\r "}]),
        ("[Pp][Oo][Ww][Ee][Rr]", [{"power"}]),
        (r"\Qa.b\E|\x{41}", []),
        ("x.*y|z", [{"x", "z"}, {"y", "z"}]),
        ("x.*|.", []),
        (".{1000,}", []),
        ("[^a]", []),
        ("(?i)shell", [{"shell", LONG_S}]),
        ("(?i)kelvin", [{"kelvin"}]),
        ("(?i)naïve", [{"na"}, {"ve"}]),
        ("é.ü", [{"é"}, {"ü"}]),
        (r"\bword\B|^$", []),
        (r"^\Aword\z$", [{"word"}]),
        (r"-(?U)*k", [{"k"}]),
        # Where RE2 ends a set, not where it seems to end.
        (r"[!-\x{2f}-[:space:][-^]k", []),
    ],
)
def test_required_texts(pattern, clauses):
    assert [set(clause.texts) for clause in require(pattern).clauses] == clauses


@pytest.mark.parametrize(
    ("pattern", "min_length"),
    [
        ("", 0),
        ("abc", 3),
        ("a|bc", 1),
        ("a{3,}b?", 3),
        (".{200,}", 200),
        ("(?:ab|c){2}", 2),
        (r"\C{3}", 0),
    ],
)
def test_required_length(pattern, min_length):
    assert require(pattern).min_length == min_length


def test_lower_case_knows_all_but_one_that_re2_folds_to_ascii():
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    for letter in "abcdefghijklmnopqrstuvwxyz":
        found = set(compile_regex(f"(?i){letter}").findall(everything))
        assert {each.lower() for each in found - {LONG_S}} == {letter}
        assert LONG_S not in found or letter == "s"


def test_what_is_always_evaluated_is_named():
    patterns = [contains("a"), ilike("%a_"), Rlike(TEXT, "a+"), ilike("_%"), Rlike(TEXT, "^.{9}$")]
    matcher = make_matcher(patterns, range(5))
    assert list(matcher.always_evaluated) == [
        ("_%", "it has wildcards only"),
        ("^.{9}$", "no text that every match must contain could be found in it"),
    ]


def test_texts_are_folded_as_python_folds_them():
    texts = ["", "ABC", "Ünï", "İSTANBUL", "x" * 9, "ΣΑΣ", "", "K", "z\x7f", "É", "@[`{AZ", "日本"]
    rng = random.Random(SEED)
    for _ in range(examples(100)):
        drawn = [rng.choice(texts) for _ in range(rng.randrange(8))]
        given = patterns_module._encode(["Skipped", *drawn])
        found = patterns_module._fold(TextBytes(given.text, given.begins[1:], given.ends[1:]))
        seen = [patterns_module._text_at(found, at).decode() for at in range(len(drawn))]
        assert seen == [text.lower() for text in drawn]
