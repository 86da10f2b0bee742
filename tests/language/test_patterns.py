"""LIKE against a naive twin, and regular expressions that are refused early."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.patterns import BadPatternError, Wild, compile_regex, is_like, parse_like


def naive_like(text, pattern, escape="\\"):
    """LIKE by translation into a regular expression."""
    pieces = re.findall(rf"{re.escape(escape)}.|.", pattern, re.DOTALL)
    translated = {"%": ".*", "_": "."}
    regex = "".join(translated.get(piece) or re.escape(piece[-1]) for piece in pieces)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def like(text, pattern, escape="\\"):
    return is_like(text, parse_like(pattern, escape))


def test_every_short_pattern_on_every_short_text():
    patterns = ["".join(letters) for n in range(6) for letters in product("ab%_", repeat=n)]
    texts = ["".join(letters) for n in range(5) for letters in product("ab", repeat=n)]
    for pattern in patterns:
        tokens = parse_like(pattern, "\\")
        regex = re.compile(pattern.replace("%", ".*").replace("_", "."), re.DOTALL)
        for text in texts:
            assert is_like(text, tokens) == bool(regex.fullmatch(text)), (text, pattern)


pattern_pieces = st.sampled_from(
    ["a", "b", "%", "_", "!%", "!_", "!!", "\n", "\\", "\U0001f600", "é"]
)
text_pieces = st.sampled_from(["a", "b", "%", "_", "!", "\n", "\\", "\U0001f600", "é"])


@given(st.lists(pattern_pieces, max_size=8), st.lists(text_pieces, max_size=8))
def test_like_is_its_naive_twin(pattern, text):
    pattern, text = "".join(pattern), "".join(text)
    assert like(text, pattern, "!") == naive_like(text, pattern, "!")


@pytest.mark.parametrize(
    ("text", "pattern", "truth"),
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("a", "", False),
        ("abc", "%b%", True),
        ("abc", "a%c", True),
        ("abc", "abc%", True),
        ("abc", "%abc", True),
        ("abc", "_b_", True),
        ("abc", "__", False),
        ("a\nb", "a_b", True),
        ("a\nb", "a%b", True),
        ("\U0001f600", "_", True),
        ("e\u0301", "_", False),
        ("CA ", "CA", False),
        ("aab", "%ab", True),
        ("abab", "%ab", True),
        ("mississippi", "%iss%ip%", True),
        ("mississippi", "%iss%iss%iss%", False),
        ("100%", "100\\%", True),
        ("1000", "100\\%", False),
        ("a\\b", "a\\\\b", True),
    ],
)
def test_like(text, pattern, truth):
    assert like(text, pattern) is truth


def test_runs_of_percent_are_one():
    assert parse_like("a%%%b_", "\\") == ("a", Wild.ANY_TEXT, "b", Wild.ONE_CHARACTER)


@pytest.mark.parametrize("pattern", ["a\\", "a\\b", "\\a", "%\\", "\\\\\\"])
def test_bad_escape_is_refused(pattern):
    with pytest.raises(BadPatternError):
        parse_like(pattern, "\\")


@pytest.mark.parametrize(
    "pattern", ["(", "[a-", "a{2,1}", "(?=a)", "(?<=a)", "(a)\\1", "a{1001}", "\\Z", "(?P<n>a", "*"]
)
def test_what_re2_refuses(pattern):
    with pytest.raises(BadPatternError, match=r"not an RE2 regular expression: \w"):
        compile_regex(pattern)


@pytest.mark.parametrize(
    ("text", "pattern", "is_found"),
    [
        ("abc", "b", True),
        ("abc", "^b", False),
        ("abc", "", True),
        ("a\n", "a$", False),
        ("a\nb", "(?m)^b", True),
        ("a\nb", "a.b", False),
        ("a\rb", "a.b", True),
        ("É", "(?i)é", True),
        ("é", r"\w", False),
        ("\U0001f600", "^.$", True),
        ("٣", r"\d", False),
        ("a\x00b", "a\x00b", True),
    ],
)
def test_regex_is_found_anywhere(text, pattern, is_found):
    assert (compile_regex(pattern).search(text) is not None) is is_found


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("foo(?!bar)", "RE2 has no lookahead: (?!bar) at character 4", "AND NOT name RLIKE"),
        ("x(?=a(b))", "RE2 has no lookahead: (?=a at character 2", "AND name RLIKE"),
        ("(?<=x)y", "RE2 has no lookbehind: (?<=x) at character 1", "AND name RLIKE"),
        ("(?<!x)y", "RE2 has no lookbehind: (?<!x) at character 1", "AND NOT name RLIKE"),
        (r"(a)[\1]\1", r"RE2 has no backreferences: \1 at character 8", "list them"),
        (r"(?P<n>a)(?P=n)", "RE2 has no backreferences: (?P=n) at character 9", "list them"),
        ("(?>ab)+", "RE2 has no atomic groups: (?>ab) at character 1", "write (?:…)"),
        ("a++", "RE2 has no possessive quantifiers: ++ at character 2", "without the last +"),
        (r"\(?=[(?!](?!x)", "RE2 has no lookahead: (?!x) at character 10", "AND NOT"),
        (r"\Q(?=\E(?=x)", "RE2 has no lookahead: (?=x) at character 8", "AND name"),
        (r"a\Z", r"RE2 has no \Z: \Z at character 2", r"write \z"),
        ("(?x)a b", "RE2 has no flag x: (?x) at character 1", "remove it"),
        ("ab[a-z", "missing ]: [a-z at character 3", r"\["),
        ("a{2000}", "invalid repetition size: {2000} at character 2", "at most 1,000"),
        ("a(", "missing ): a(", r"\("),
        (r"a\p{IsGreek}", r"invalid character class range: \p{IsGreek} at character 2", "p{Greek}"),
        ("a[z-b]", "invalid character class range: z-b at character 3", "lower character first"),
        ("[[:foo:]]", "invalid character class range: [:foo:] at character 2", "alpha, digit"),
        ("a**", "bad repetition operator: ** at character 2", "(?:a*)*"),
        ("(?u)a", "invalid perl operator: (?u at character 1", "flags i, m, s and U"),
        (r"a\G", r"invalid escape sequence: \G at character 2", "the character itself"),
    ],
)
def test_what_re2_does_not_have_is_named_with_its_place(pattern, message, hint):
    with pytest.raises(BadPatternError) as raised:
        compile_regex(pattern)
    assert str(raised.value) == f"not an RE2 regular expression: {message}"
    assert hint in raised.value.hint


def test_the_error_of_a_pattern_has_the_hint():
    (problem,) = tamis.check(r"name RLIKE r'a(?!b)' AND x = 1")
    assert problem.reason.span == (0, 20)
    assert "AND NOT name RLIKE" in problem.reason.hint
