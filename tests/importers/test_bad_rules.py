"""A rule that cannot be read is an error of that rule; the others are imported."""

from __future__ import annotations

import io
import json

import pytest

from tamis.errors import InputError
from tamis.importers import import_rules
from tamis.importers.sources import MOST_BYTES

GOOD = b"""title: Good
id: 7c2f0c3a-0000-4000-8000-000000000001
logsource: {product: windows, service: security}
detection:
  selection: {EventID: 4624}
  condition: selection
"""
HEAD = "title: Bad\nlogsource: {product: x}\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MANY = ", ".join(f"v{number}" for number in range(20_000))
CORRELATION = """title: c
name: c
correlation:
  type: event_count
  rules: [a]
  group-by: [u]
  timespan: 5m
  condition: {gte: 5}
"""
BAD = {
    "bad YAML": (b"title: [unclosed\n", "bad-yaml", "line"),
    "a tab": (b"title: x\n\tlogsource: y\n", "bad-yaml", ""),
    "an unknown tag": (b"title: !!python/object/apply:os.getcwd []\n", "bad-yaml", ""),
    "a key twice": (HEAD.encode() + b"title: again\n", "bad-yaml", "Duplicate key 'title'"),
    "an alias bomb": ((BOMB + HEAD).encode(), "bad-yaml", "too many nodes"),
    "a cycle": (f"{HEAD}detection: &d {{a: *d, condition: a}}\n".encode(), "bad-yaml", "Recursive"),
    "deep nesting": (b"a: " + b"[" * 30_000, "bad-yaml", ""),
    "no mapping": (b"- a\n- b\n", "bad-rule", "a list"),
    "a text": (b"just text\n", "bad-rule", "a str"),
    "no detection": (HEAD.encode(), "bad-rule", "detection"),
    "no condition": (f"{HEAD}detection: {{a: {{b: c}}}}\n".encode(), "bad-rule", "condition"),
    "an empty condition": (
        f"{HEAD}detection: {{a: {{b: c}}, condition: ''}}\n".encode(),
        "bad-rule",
        "",
    ),
    "a number as condition": (
        f"{HEAD}detection: {{a: {{b: c}}, condition: 5}}\n".encode(),
        "bad-rule",
        "",
    ),
    "an unknown name": (
        f"{HEAD}detection: {{a: {{b: c}}, condition: a and z}}\n".encode(),
        "bad-rule",
        "'z' not defined",
    ),
    "a bad condition": (
        f"{HEAD}detection: {{a: {{b: c}}, condition: a and and}}\n".encode(),
        "bad-rule",
        "",
    ),
    "an aggregation": (
        f"{HEAD}detection: {{a: {{b: c}}, condition: a | count() > 5}}\n".encode(),
        "bad-rule",
        "pipe",
    ),
    "an unknown modifier": (
        f"{HEAD}detection: {{a: {{b|nope: c}}, condition: a}}\n".encode(),
        "bad-rule",
        "Unknown modifier 'nope'",
    ),
    "a bad expression": (
        f"{HEAD}detection: {{a: {{b|re: '(x'}}, condition: a}}\n".encode(),
        "bad-rule",
        "invalid",
    ),
    "look-ahead": (
        f"{HEAD}detection: {{a: {{b|re: 'x(?!y)'}}, condition: a}}\n".encode(),
        "bad-rule",
        "invalid",
    ),
    "a number as id": (f"{HEAD}id: 7\n".encode(), "bad-rule", "the id is 7; a UUID is expected"),
    "a text as id": (f"{HEAD}id: x\n".encode(), "bad-rule", "the id is 'x'; a UUID is expected"),
    "look-behind": (
        f"{HEAD}detection: {{a: {{b|re|i: 'x(?<=y)'}}, condition: a}}\n".encode(),
        "bad-rule",
        "b: the regular expression 'x(?<=y)' is invalid: RE2 has no lookbehind: (?<=y) at char",
    ),
    "a number as regular expression": (
        f"{HEAD}detection: {{a: {{b|re: [5]}}, condition: a}}\n".encode(),
        "bad-rule",
        "b: the regular expression is a number; a string is expected",
    ),
    "equal keys": (
        f"{HEAD}detection: {{a: {{1: x, true: y}}, condition: a}}\n".encode(),
        "bad-yaml",
        "the key true is given twice: without quotes, 1 and true are the same key",
    ),
    "a number as key": (
        f"{HEAD}detection: {{a: {{1: x}}, condition: a}}\n".encode(),
        "bad-rule",
        "a: the field 1 is a number; a name is expected",
    ),
    "a date": (
        f"{HEAD}detection: {{a: {{b|contains: 2020-01-31}}, condition: a}}\n".encode(),
        "bad-rule",
        "b: 2020-01-31 is a date; a string or a number is expected",
    ),
    "a number": (b"5\n", "bad-rule", "the document is a number; a Sigma rule is a mapping"),
    "no log source": (
        b"title: x\ndetection: {a: {b: c}, condition: a}\n",
        "bad-rule",
        "log source",
    ),
    "UTF-16": (
        (HEAD + "detection: {a: {b: c}, condition: a}\n").encode("utf-16"),
        "bad-encoding",
        "UTF-16",
    ),
    "UTF-16 without a mark": (HEAD.encode("utf-16-le"), "bad-encoding", "NUL"),
    "not UTF-8": (b"title: \xff\xfe\xfd\n", "bad-encoding", "byte 8"),
    "10 MB": (HEAD.encode() + b"x" * 10_000_000, "rule-too-large", f"at most {MOST_BYTES:,}"),
    "a long list": (
        f"{HEAD}detection: {{a: {{b: [{MANY}]}}, condition: a}}\n".encode(),
        "list-too-long",
        "",
    ),
    "an empty file": (b"\n", "bad-rule", "empty"),
    "a long condition": (
        f"{HEAD}detection: {{a: {{b: c}}, condition: {'a and ' * 5_000}a}}\n".encode(),
        "bad-rule",
        "a condition has 30,001 characters; at most 20,000",
    ),
    "a long name": (
        f"{HEAD}detection: {{a: {{b: c}}, condition: {'z' * 15_000}}}\n".encode(),
        "bad-rule",
        "zzz …",
    ),
    "two modifiers of which one is forgotten": (
        f"{HEAD}detection: {{a: {{b|re|startswith: 'x.y'}}, condition: a}}\n".encode(),
        "not-expressible",
        "b|re|startswith: re together with startswith",
    ),
    "a placeholder that is encoded": (
        f"{HEAD}detection: {{a: {{b|expand|base64: '%x%'}}, condition: a}}\n".encode(),
        "not-expressible",
        "expand together with base64",
    ),
    "null for a modifier": (
        f"{HEAD}detection: {{a: {{b|contains: null}}, condition: a}}\n".encode(),
        "bad-rule",
        "the modifier contains does not take null; a text is expected",
    ),
    "a text for a modifier of numbers": (
        f"{HEAD}detection: {{a: {{b|gt: '5'}}, condition: a}}\n".encode(),
        "bad-rule",
        "the modifier gt does not take '5'; a number without quotes is expected",
    ),
    "a flag without a regular expression": (
        f"{HEAD}detection: {{a: {{b|i: x}}, condition: a}}\n".encode(),
        "bad-rule",
        "a regular expression, with re before it, is expected",
    ),
    "a mapping as value": (
        f"{HEAD}detection: {{a: {{b: {{c: d}}}}, condition: a}}\n".encode(),
        "bad-rule",
        "b: the value is a mapping; a string, a number, a Boolean or a list of these is expected",
    ),
    "an empty keyword": (
        f"{HEAD}detection: {{a: [x, null], condition: a}}\n".encode(),
        "not-expressible",
        "a keyword that is empty: only texts are searched for",
    ),
    "a correlation": (CORRELATION.encode(), "not-expressible", "correlation"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rule_is_an_error_and_stops_no_other(name, tmp_path):
    content, code, message = BAD[name]
    (tmp_path / "a.yml").write_bytes(content)
    (tmp_path / "b.yml").write_bytes(GOOD)
    imported = import_rules("sigma", [tmp_path])
    bad, good = imported.rules
    assert bad.error is not None, bad.expression
    assert (bad.error.code, message in bad.error.message) == (code, True), bad.error
    assert bad.place.startswith(str(tmp_path / "a.yml"))
    assert good.expression == "lower(Channel) = 'security' AND EventID = 4624"


def test_one_source_may_be_given_alone(tmp_path):
    text = b'{"source": ["aws.ec2"]}'
    path = tmp_path / "rule.json"
    path.write_bytes(text)
    for given in (text, path, str(path), io.BytesIO(text)):
        assert len(import_rules("eventbridge", given).accepted) == 1
    with pytest.raises(InputError, match="rules are paths, open files or bytes, not NoneType"):
        import_rules("eventbridge", None)


def test_re2_prints_nothing(capfd):
    content, _, message = BAD["look-behind"]
    (rule,) = import_rules("sigma", [content]).rules
    assert message in rule.error.message
    assert rule.error.hint.startswith("test the other part separately")
    text = f"{HEAD}detection: {{a: {{b|re|expand: '%x%('}}, condition: a}}\n"
    (rule,) = import_rules("sigma", [text.encode()]).rules
    assert "b: the regular expression '%x%(' is invalid" in rule.error.message
    assert capfd.readouterr() == ("", "")


def test_operators_in_capitals_have_a_hint():
    text = f"{HEAD}detection: {{a: {{b: c}}, condition: a AND a}}\n"
    (rule,) = import_rules("sigma", [text.encode()]).rules
    assert rule.error.hint == "and, or, not and of are written in lower case"


def test_documents_with_actions_are_checked_too():
    text = b"""action: global
logsource: {product: x}
---
title: One
id: 7
detection: {a: {b: c}, condition: a}
---
title: Two
detection: {a: {b: c}, condition: a}
"""
    one, two = import_rules("sigma", [text]).rules
    assert "the id is 7" in one.error.message
    assert two.expression == "lower(b) = 'c'"


def test_documents_of_one_file_are_separate(tmp_path):
    file = tmp_path / "rules.yml"
    other = GOOD.replace(b"000001", b"000002").replace(b"4624", b"4625")
    file.write_bytes(GOOD + b"---\ntitle: [unclosed\n---\n" + other + b"---\n" + GOOD)
    first, broken, second, again = import_rules("sigma", [file]).rules
    assert (first.error, second.error) == (None, None)
    assert broken.error.code == "bad-yaml"
    assert broken.place == f"{file}:7"
    assert again.error.code == "duplicate-id"
    assert f"{file}:1" in again.error.message


@pytest.mark.parametrize("text", ["# Licence\n", "%YAML 1.1\n", "# one\n\n  # two\n---\n# three\n"])
def test_comments_and_directives_are_no_documents(text):
    after = b"---\n# end\n"
    (rule,) = import_rules("sigma", [text.encode() + b"---\n" + GOOD + after]).rules
    assert rule.error is None
    assert rule.place == f"stdin:{text.count(chr(10)) + 1}"


def test_documents_of_a_file_with_actions_are_all_reported():
    bad = b"action: nope\ntitle: x\n", b"just text\n", b"title: [\n"
    repeated = b"action: repeat\ndetection: {selection: {User: x}}\n"
    text = b"---\n".join([GOOD, *bad, repeated, b"action: repeat\ndetection: 5\n"])
    good, action, other, broken, again, last = import_rules("sigma", [text]).rules
    assert good.error is None
    assert action.error.message == "the action is 'nope'; global, repeat or reset is expected"
    assert action.place == "stdin:7"
    assert "the document is a string" in other.error.message
    assert broken.error.code == "bad-yaml"
    assert again.rule_id == f"{good.rule_id}#5"
    assert again.expression == f"{good.expression} AND lower(User) = 'x'"
    assert again.source.startswith("title: Good")
    assert last.error.message == "Sigma detection must be a valid YAML map"


def test_actions_of_collections():
    text = b"""action: global
logsource: {product: linux, service: auditd}
level: high
---
title: One
detection: {a: {type: EXECVE}, condition: a}
---
title: Two
detection: {a: {type: SYSCALL}, condition: a}
"""
    one, two = import_rules("sigma", [text]).rules
    assert (one.rule_id, two.rule_id) == ("stdin#1", "stdin#2")
    assert one.expression == "type IS NOT NULL AND lower(type) = 'execve'"
    assert two.attributes["level"] == "high"


JSON_BAD = {
    "not JSON": (b"{", "bad-json"),
    "a list of numbers": (b"[1]", "bad-rule"),
    "a text": (b'"x"', "bad-rule"),
    "an empty object": (b"{}", "bad-rule"),
    "deep nesting": (b'{"a":' * 30_000, "bad-json"),
    "deep but closed": (b'{"a":' * 5_000 + b'["x"]' + b"}" * 5_000, None),
    "UTF-16": (json.dumps({"a": ["b"]}).encode("utf-16"), "bad-encoding"),
    "too large": (b'{"a": ["' + b"x" * 2_000_000 + b'"]}', "rule-too-large"),
    "nothing": (b"", "bad-rule"),
}


@pytest.mark.parametrize("name", JSON_BAD)
def test_bad_json_is_an_error(name):
    content, code = JSON_BAD[name]
    (rule,) = import_rules("eventbridge", [content]).rules
    assert rule.error is not None, rule.expression
    assert code in (None, rule.error.code), rule.error
