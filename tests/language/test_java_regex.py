"""RE2 and Java find the same texts, once the pattern is rewritten."""

from __future__ import annotations

import random
import re
from itertools import compress

import pytest

from tamis.language.java_regex import to_java_regex
from tamis.language.patterns import BadPatternError, compile_regex
from tests.effort import examples

# pattern, texts that are found, texts that are not
CASES = [
    ("", ["", "a"], []),
    ("|a", ["", "b"], []),
    ("a||b", ["", "c"], []),
    ("(|)", [""], []),
    ("a", ["bab"], ["", "A"]),
    # anchors
    ("^a", ["ab"], ["ba", "b\na"]),
    ("a$", ["ba"], ["ab", "a\n", "a\r", "a\u2028"]),
    (r"a\z", ["ba"], ["a\n"]),
    (r"\Aa", ["ab"], ["b\na"]),
    ("(?m)^a", ["a", "b\na"], ["b\ra", "b\u0085a", "b\u2028a"]),
    ("(?m)a$", ["a", "a\nb"], ["a\rb", "a\r\nb", "a\u2028b"]),
    ("(?m)b\n^$", ["b\n", "b\n\nc"], ["b\nc", "b"]),
    (r"(?m)a\z", ["b\na"], ["a\nb"]),
    ("(?m)(?-m:^)a", ["a"], ["b\na"]),
    ("^*a", ["ba"], ["b"]),
    ("^+a", ["a"], ["ba"]),
    ("(?:$)+", [""], []),
    ("a$?b", ["ab"], ["a"]),
    # the dot
    ("a.b", ["a\rb", "a\u0085b", "a\u2028b", "a\0b", "a😀b"], ["a\nb", "ab"]),
    ("(?s)a.b", ["a\nb", "a\rb"], ["ab"]),
    ("(?s)a(?-s:.)b", ["a\rb"], ["a\nb"]),
    ("^.$", ["😀", "é"], ["e\u0301", "\n"]),
    # classes by name
    (r"\s", ["\t", "\n", "\f", "\r", " "], ["\v", "\u0085", "\u00a0", "\u2028"]),
    (r"\S", ["\v", "\u00a0", "x"], [" ", ""]),
    (r"[^\S]", [" "], ["\v"]),
    (r"\d", ["7"], ["٣", "x"]),
    (r"\w", ["_", "K"], ["é", "ſ", "-"]),
    (r"(?i)\w", ["ſ", "\u212a"], ["é"]),
    (r"(?i)\W", ["é"], ["ſ", "\u212a", "k"]),
    (r"[\d-z]", ["-", "z", "4"], ["y"]),
    ("[[:space:]]", ["\v", "\t"], ["\u00a0"]),
    ("[[:^space:]]", ["\u00a0"], ["\v", "\t"]),
    ("[^[:^alpha:]1]", ["a"], ["1", "é"]),
    ("[[:word:]-]", ["-", "_"], ["é"]),
    ("[:word:]", ["w", ":"], ["a"]),
    (r"\pN", ["7", "٣", "½"], ["a"]),
    (r"\pLu", ["éu", "au"], ["É", "1u"]),
    (r"\p{Lu}", ["É"], ["é"]),
    (r"\PL", ["1"], ["é"]),
    (r"\p{Greek}", ["Ω"], ["a"]),
    (r"\p{^Greek}", ["a"], ["Ω"]),
    (r"[^\P{Greek}a]", ["Ω"], ["a", "b"]),
    (r"\p{Any}", ["a", "\n", "😀"], [""]),
    # letters in either case
    ("(?i)k", ["k", "K", "\u212a"], ["x"]),
    ("(?i)s", ["S", "ſ"], ["ß"]),
    ("(?i)i", ["i", "I"], ["ı", "İ"]),
    ("(?i)İ", ["İ"], ["i", "ı", "I"]),
    ("(?i)ı", ["ı"], ["i", "I"]),
    ("(?i)[^k]", ["x"], ["k", "K", "\u212a"]),
    ("(?i)[j-l]", ["K", "\u212a"], ["i"]),
    ("(?i)σ", ["Σ", "ς"], ["s"]),
    ("(?i)ß", ["ẞ"], ["ss"]),
    (r"(?i)\x6b\Qs\E", ["Kſ"], ["k"]),
    ("(?i)a(?-i)b", ["Ab"], ["AB"]),
    ("(?i:a)b", ["Ab"], ["AB"]),
    ("(a(?i)b)c", ["aBc"], ["aBC", "Abc"]),
    ("a|(?i)b|c", ["B", "C"], ["A"]),
    ("(?i-s:a.)", ["Ab"], ["a\n"]),
    ("(?is)a.", ["A\n"], ["A"]),
    # words
    (r"\ba\b", ["a", "-a-", "éaé", "ſa"], ["ab", "a_", "1a"]),
    (r"(?i)\bk", ["ſk"], ["ak"]),
    (r"a\Bb", ["ab"], ["a"]),
    (r"a\B", ["ab"], ["a", "aé"]),
    (r"^\B", ["", "-", "é"], ["a"]),
    (r"\B", ["", "aéa", "a😀a", "ab"], ["a", "a-a"]),
    (r"x|\B\B", ["aéa", "x"], ["a"]),
    (r"\B\b", [], ["", "a", "aéa"]),
    (r"\B$|\Qx", ["é", "x"], ["a"]),
    # escapes
    (r"\a\f\t\n\r\v", ["\a\f\t\n\r\v"], ["\a\f\t\n\r\n"]),
    (r"\v", ["\v"], ["\n", "\u0085"]),
    (r"\012\0123\08\377", ["\n\n3\x008ÿ"], ["\n"]),
    (r"\x41\x{1F600}\x{0}", ["A😀\0"], ["A😀"]),
    (r"\.\_\-\ \"\<\{", ['._- "<{'], ["x"]),
    (r"\x{d83d}", [], ["😀", "", "\ud7ff\ue000"]),
    (r"^[^\x{d83d}]$", ["😀"], [""]),
    (r"\Qa.b\E+", ["a.bbb"], ["axb"]),
    (r"\Qa\\E", ["a\\"], ["a"]),
    (r"a\Q\E*b", ["aab", "b"], ["a"]),
    (r"\Q(?i)[", ["(?i)["], ["(?I)["]),
    # what only one of the two takes for a sign
    ("a{,2}", ["a{,2}"], ["aa"]),
    ("a{2", ["a{2"], ["aa"]),
    ("^a{01}$", ["a{01}"], ["a"]),
    ("^a{1234567890}$", ["a{1234567890}"], ["a"]),
    ("{}]", ["{}]"], ["{"]),
    ("[a&&b]", ["&", "a", "b"], ["c"]),
    ("[a-z&&[b]", ["[", "&"], ["]"]),
    ("[[a]", ["[", "a"], ["b"]),
    ("[]a]", ["]", "a"], ["["]),
    ("[^]a]", ["["], ["]", "a"]),
    ("[a^]", ["^"], ["b"]),
    ("[^^]", ["a"], ["^"]),
    ("[+--]", [",", "-"], ["."]),
    (r"[\]\\\-]", ["]", "\\", "-"], ["a"]),
    ("[é-ü😀]", ["ê", "😀"], ["e", "😁"]),
    ("^[--[:a]$", ["-", "[", ":"], ["b"]),
    ("^[+-[:alpha:]]$", ["A]", ":]"], ["b", "A"]),
    (r"^[\d-[:alpha:]]$", ["b", "-", "1"], ["[", "]"]),
    (r"^[\pN-[:alpha:]]$", ["b", "-", "1"], ["[", "]"]),
    ("^[]-a-]$", ["^", "-"], ["b"]),
    ("[a#b] #", ["# #"], ["c #", "##"]),
    (r"[^\x{0}-\x{10ffff}]", [], ["", "a", "😀"]),
    (r"a[^\x00-\x{10FFFF}]*b", ["ab"], ["a", "axb"]),
    # groups and quantifiers
    ("(?P<x_1>a)(?<é>b)", ["ab"], ["a"]),
    ("(?P<n>a)()(?:)*", ["a"], ["b"]),
    ("^(?:a?){3}$", ["", "aaa"], ["aaaa"]),
    ("^(?:|a){2,3}b", ["b", "aaab"], ["aaaab"]),
    ("^(?:a*?b??)+?$", ["", "aabab"], ["c"]),
    ("(?U)^a*b{2}?$", ["aabb"], ["ab"]),
    ("^((a)*)+((b+)?)*((c?)+)?$", ["", "aabbcc"], ["ca"]),
    ("^(a{2})*$", ["", "aaaa"], ["aaa"]),
    ("^(a*){2}$", ["", "aaa"], ["b"]),
    ("^a(?i)*b$", ["aaab", "b", "aaB"], ["Ab"]),
    ("^a*(?i)*b$", ["aab"], ["Ab"]),
    ("^a{2}(?i){2}$", ["aaaa"], ["aa", "aaa"]),
    ("^(^|a){2}$", ["a", "aa", ""], ["aaa"]),
    (r"^a(?:\b|-){3,}$", ["a", "a-", "a----"], ["aa", "-"]),
    ("^(?:(?:^|a){2,3}b)+$", ["ab", "aaab", "abaab"], ["abb", "aaaab"]),
    ("a{0}b", ["b"], ["a"]),
    ("(?:a{1000})", ["a" * 1000], ["a" * 999]),
]

# Expressions for one character, whose members are compared one by one.
SETS = [
    *("(?s).", ".", r"\d", r"\s", r"\w", r"\W", r"(?i)\w", r"(?i)\W", r"[[:punct:]]"),
    *("[[:^graph:]]", r"\pL", r"\P{L}", r"\pC", r"\p{Zs}", r"\p{Greek}", r"(?i)\p{Greek}"),
    *(r"\p{Lu}", r"(?i)\p{Lu}", r"(?i)[^\p{Lu}]", "(?i)k", "(?i)[i-s]", "(?i)[^i-s]", "(?i)[à-þµ]"),
    r"[^\x{d800}-\x{1f600}]",
]
# Blocks with cased letters, line ends and spaces, and the ends of the planes.
BLOCKS = [(0, 0x2400), (0xA640, 0xA800), (0xD700, 0xD800), (0xFB00, 0x10050), (0x10400, 0x10450)]
BLOCKS += [(0x1E900, 0x1E950), (0x1F5F0, 0x1F610), (0x10FFF0, 0x110000)]

# Characters that one of the two engines treats in a special way, and a few that neither does.
CHARACTERS = [
    *"aAbkKsSiI1_-^&,{}[]\\# \n\r\t\v\0\u0085\u2028",
    *("ſ", "\u212a", "İ", "ı", "é", "e", "\u0301", "ß", "ẞ", "Σ", "ς", "٣"),
    *("😀", "\U00010400", "\U00010428"),
]
LITERALS = [*"abksiéſ{}]&-,1# \n😀"]
ESCAPES = [
    *(r"\a", r"\f", r"\n", r"\r", r"\t", r"\v", r"\^", r"\-", r"\[", r"\]", r"\\", r"\&", r"\{"),
    *(r"\_", r"\012", r"\0", r"\113", r"\x4b", r"\x{212a}", r"\x{1F600}", r"\x{d83d}"),
    *(r"\x{17f}", r"\x{10400}"),
]
NAMED_CLASSES = [
    *(r"\d", r"\D", r"\s", r"\S", r"\w", r"\W"),
    *(r"\pL", r"\PL", r"\pN", r"\p{Lu}", r"\P{Ll}", r"\p{Greek}", r"\p{^Latin}", r"\p{Any}"),
]
CLASS_MEMBERS = [
    LITERALS,
    ESCAPES,
    NAMED_CLASSES,
    ["^", "[", "&&", "-", "."],
    ["[:alpha:]", "[:^alpha:]", "[:lower:]", "[:space:]", "[:^space:]", "[:word:]", "[:punct:]"],
    ["a-k", "I-S", "ß-ſ", "[-^", r"\x00-\x20", r"\x{80}-\x{10ffff}", "a-\U00010428"],
]
ASSERTIONS = ["^", "$", r"\A", r"\z", r"\b", r"\B"]
QUANTIFIERS = [
    *("*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}?", "{0}"),
    *("{,2}", "{2", "{01}"),  # these are plain text
]
OPENINGS = [
    *("(", "(?:", "(?P<x>", "(?<y>"),
    *("(?i:", "(?s:", "(?m:", "(?U:", "(?-i:", "(?i-s:", "(?ms-i:"),
]
FLAGS = ["(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?-m)", "(?im-s)", "(?)"]


def draw_patterns(rng, n_patterns):
    """Patterns that RE2 accepts."""
    # A few classes used often: RE2 is asked for the members of each, which takes milliseconds.
    classes = [draw_class(rng) for _ in range(20 + n_patterns // 8)]
    patterns = []
    while len(patterns) < n_patterns:
        # Anchored ones reveal more: they fail when one character is judged wrongly.
        frame = rng.choice(("{}", "^(?:{})$", "(?i){}", "(?i)^(?:{})$"))
        pattern = frame.format(draw_pattern(rng, classes))
        try:
            compile_regex(pattern)
        except BadPatternError:
            continue
        patterns.append(pattern)
    return patterns


def draw_pattern(rng, classes, depth=3):
    lengths = rng.choices((0, 1, 2, 3, 4), (1, 4, 4, 3, 1), k=rng.choice((1, 1, 1, 2, 3)))
    return "|".join("".join(draw_term(rng, classes, depth) for _ in range(n)) for n in lengths)


def draw_term(rng, classes, depth):
    kinds = {
        lambda: rng.choice(LITERALS): 6,
        lambda: rng.choice(ESCAPES): 2,
        lambda: rng.choice(NAMED_CLASSES): 2,
        lambda: rng.choice(classes): 3,
        lambda: ".": 2,
        lambda: rng.choice(ASSERTIONS): 3,
        lambda: rng.choice(FLAGS): 1,
        lambda: rf"\Q{''.join(rng.choices(CHARACTERS, k=rng.randrange(3)))}\E": 1,
        lambda: f"{rng.choice(OPENINGS)}{draw_pattern(rng, classes, depth - 1)})": 6
        if depth
        else 0,
    }
    (kind,) = rng.choices(list(kinds), list(kinds.values()))
    return kind() + (rng.choice(QUANTIFIERS) if rng.random() < 0.3 else "")


def draw_class(rng):
    inside = "".join(rng.choice(rng.choice(CLASS_MEMBERS)) for _ in range(rng.randint(1, 4)))
    return f"[{rng.choice(('', '', '^'))}{inside}]"


def draw_text(rng):
    return "".join(rng.choices(CHARACTERS, k=rng.choice((0, 1, 1, 2, 2, 3, 4, 6))))


@pytest.fixture(scope="module")
def differences(spark):
    """Finds the pairs (pattern, text) that RE2 and Java judge differently, in one Spark job."""

    def find_differences(pairs):
        java_patterns = {pattern: to_java_regex(pattern) for pattern, _ in pairs}
        rows = [(java_patterns[pattern], text) for pattern, text in pairs]
        judged = spark.createDataFrame(rows, "pattern string, text string")
        java = [row.found for row in judged.selectExpr("text RLIKE pattern AS found").collect()]
        re2 = [compile_regex(pattern).search(text) is not None for pattern, text in pairs]
        print(f"{len(java_patterns)} patterns, {len(pairs)} pairs, {sum(re2)} found")
        return [
            f"{pattern!r} as {java_patterns[pattern]!r} in {text!r}: RE2 {by_re2}, Java {by_java}"
            for (pattern, text), by_re2, by_java in zip(pairs, re2, java, strict=True)
            if by_re2 != by_java
        ]

    return find_differences


@pytest.mark.parametrize(("pattern", "hits", "misses"), CASES)
def test_re2_finds_what_the_table_says(pattern, hits, misses):
    regex = compile_regex(pattern)
    assert [text for text in hits + misses if regex.search(text)] == hits


def test_java_finds_what_the_table_says(differences):
    cases = [(pattern, text) for pattern, hits, misses in CASES for text in hits + misses]
    assert differences(cases) == []


def test_random_patterns_find_the_same_texts(differences, seed):
    rng = random.Random(seed)
    drawn = draw_patterns(rng, examples(200))
    patterns = [pattern for pattern in drawn if has_java_form(pattern)]
    assert len(patterns) >= 0.99 * len(drawn)
    assert differences([(each, draw_text(rng)) for each in patterns for _ in range(20)]) == []


def has_java_form(pattern):
    """Whether the pattern can be said in Java; the one reason why not is documented."""
    try:
        to_java_regex(pattern)
    except BadPatternError as error:
        if "too many copies for Java" not in str(error):
            raise
        return False
    return True


def test_sets_have_the_same_members(spark):
    characters = [chr(code_point) for block in BLOCKS for code_point in range(*block)]
    frame = spark.createDataFrame([(each,) for each in characters], "text string")
    java = frame.select(*(frame.text.rlike(to_java_regex(each)) for each in SETS)).toArrow()
    for pattern, is_member in zip(SETS, java.columns, strict=True):
        members = list(compress(characters, is_member.to_pylist()))
        assert members == compile_regex(pattern).findall("".join(characters)), pattern


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"\C", r"\C at position 1: Java cannot match a single byte; allowed are . and (?s:.)"),
        (r"\Q\C\E|(\C)+", r"\C at position 9: Java cannot"),
        (r"(\b|x){999}", "{999} at position 7: too many copies for Java of an expression that"),
        (r"((?:^|x){31}){32}?", "{32}? at position 14: too many copies"),
    ],
)
def test_refusals_name_construct_and_place(pattern, message):
    compile_regex(pattern)
    with pytest.raises(BadPatternError, match="^" + re.escape(message)):
        to_java_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "java_pattern"),
    [
        (r"^(?P<year>\d{4})-(0\d|1[0-2])$", r"\A[0-9]{4}\-(?:0[0-9]|1[0-2])\z"),
        ("(?i)größe.*?", r"[Gg][Rr][Öö][ßẞ][Ee][^\n]*"),
        (r"(?i)[^k]", r"[^Kk\x{212a}]"),
        (r"\Q$1.50\E\x{0}", r"\$1\.50\x{0}"),
        ("((a*)+)?", "a*"),
    ],
)
def test_output_is_short_and_legible(pattern, java_pattern):
    assert to_java_regex(pattern) == java_pattern
