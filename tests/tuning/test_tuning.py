"""What rules do on events: counts, verdicts with reasons, overlaps, exclusions, and the page."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from tamis.errors import InputError, RejectWarning
from tamis.language import check, parse
from tamis.language.schema import Schema
from tamis.logic.evaluate import evaluate
from tamis.tuning import add_exclusion, tune
from tamis.tuning.page import to_html
from tests.cli.shell import run

SCHEMA = Schema.of("kind STRING, user STRING, size BIGINT, host STRING, gone STRING, odd BIGINT")
RULES = [
    {"id": "noisy", "expression": "kind = 'a'", "title": "<b>Noisy</b>", "level": "low"},
    {"id": "rare", "expression": "kind = 'b' AND size > 90"},
    {"id": "same", "expression": "size > 90 AND kind = 'b'"},
    {"id": "narrow", "expression": "kind = 'b' AND size > 90 AND user = 'u1'"},
    {"id": "silent", "expression": "kind = 'zzz'"},
    {"id": "absent", "expression": "kind = 'a' AND gone = 'x'"},
    {"id": "other-type", "expression": "odd = 5 OR odd > 7"},
    {"id": "possible", "expression": "kind = 'zzz' OR gone = 'x'"},
    {"id": "negated", "expression": "kind = 'zzz' AND gone IS NULL"},
    {"id": "wrong", "expression": "kind = "},
]
EVENTS = [
    {"kind": "a" if number % 2 else "b", "size": number, "user": f"u{number % 3}", "odd": "x"}
    for number in range(100)
]


@pytest.fixture(scope="module")
def report():
    return tune(RULES, SCHEMA, EVENTS, exclusions={"noisy": "user = 'u1' OR host = 'h'"})


def test_counts_and_verdicts(report):
    found = {own.rule_id: (own.n_fired, own.verdict) for own in report.rules}
    assert found == {
        "noisy": (50, "noisy"),
        "rare": (4, "noisy"),
        "same": (4, "noisy"),
        "narrow": (1, "fired"),
        "silent": (0, "silent"),
        "absent": (0, "never"),
        "other-type": (0, "never"),
        "possible": (0, "silent"),
        "negated": (0, "silent"),
    }
    assert report.rules[0].rule_id == "noisy"
    assert report.rules[0].examples == EVENTS[1:7:2]
    assert (report.n_events, report.n_firing_events) == (100, 54)
    assert [name for name, _ in report.invalid] == ["wrong"]


def test_reasons_why_a_rule_can_never_fire(report):
    reasons = {own.rule_id: own.reasons for own in report.of_verdict("never")}
    assert reasons["absent"] == ["no event has gone"]
    assert reasons["other-type"] == ["odd has values of another type than integer, such as 'x'"]


@pytest.mark.parametrize(
    ("expression", "reasons"),
    [
        # The tests below NOT may well be TRUE.
        ("gone = 'x' AND NOT (gone2 IS NOT NULL AND gone2 = 1)", ["no event has gone"]),
        ("(gone = 'x' OR gone2 = 1) AND n = 1", ["no event has gone or gone2"]),
        ("gone = 'x' AND gone2 = 1 AND tags IS NOT NULL", ["no event has gone, gone2 or tags"]),
        (
            "gone = 'x' AND f = TRUE",
            ["no event has gone", "f has values of another type than boolean, such as 'yes'"],
        ),
        ("at_least(2, gone = 'x', gone2 = 1, n = 1)", ["no event has gone or gone2"]),
    ],
)
def test_reasons_name_only_what_is_lacking(expression, reasons):
    report = tune(
        [{"id": "r", "expression": expression}], Schema.of(ABSENT), [{"n": 1, "f": "yes"}]
    )
    assert report.rules[0].reasons == reasons


ABSENT = "a STRING, n BIGINT, n2 BIGINT, f BOOLEAN, gone STRING, gone2 BIGINT, tags ARRAY<STRING>"


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        ("lower(a) = lower(gone)", "never"),
        ("concat(a, gone) LIKE 'x%'", "never"),
        ("n > gone2 + 1", "never"),
        ("n <> gone2", "never"),
        ("NOT n = gone2", "never"),
        ("n BETWEEN gone2 AND 5", "never"),
        ("n NOT BETWEEN gone2 AND 500", "silent"),
        ("gone <=> 'x'", "never"),
        ("NOT gone <=> 'x' AND n = 900", "silent"),
        ("lower(gone) IS NULL AND n = 900", "silent"),
        ("lower(gone) IS NOT NULL", "never"),
        ("coalesce(gone, a) = 'zzz'", "silent"),
        ("matches_any((a, gone), 'zzz')", "silent"),
        ("matches(gone, 'zzz')", "never"),
        ("at_least(2, gone = 'x', gone2 = 1, n = 900)", "never"),
        ("at_least(2, gone = 'x', n2 = 900, n = 900)", "silent"),
        ("n = 900 XOR gone2 = 1", "never"),
        ("NOT (n = 1 XOR gone2 = 1)", "never"),
        ("exists(tags, t -> t = 'x')", "never"),
        ("n > 3 AND n < 2", "never"),
        ("a = 'x' AND NOT a = 'x'", "never"),
        ("n2 = 900", "silent"),
        ("any_attribute(v -> v = 'zzz')", "silent"),
    ],
)
def test_a_rule_never_fires_if_it_needs_what_no_event_has(expression, verdict):
    events = [{"a": "b", "n": 1, "n2": 2, "f": False}, {"a": "c"}]
    report = tune([{"id": "r", "expression": expression}], Schema.of(ABSENT), events)
    assert report.rules[0].verdict == verdict
    assert bool(report.rules[0].reasons) == (verdict == "never")


def test_noisy_rules_without_a_log_source_condition_are_marked(tmp_path):
    detail = {"log_source_condition": "none"}
    rules = [{"id": "a", "expression": "x > 0", **detail}, {"id": "b", "expression": "x > 0"}]
    events = [{"x": 1}]
    report = tune(rules, None, events)
    reasons = {own.rule_id: own.reasons for own in report.of_verdict("noisy")}
    assert reasons == {"a": ["no log source condition: it tests every event"], "b": []}
    assert to_html(report).count("no log source condition") == 1
    done = run(
        *("tune", write_lines(tmp_path / "r.jsonl", rules)),
        write_lines(tmp_path / "e.jsonl", events),
    )
    assert "noisy  a: no log source condition: it tests every event" in done.stdout


def test_lists_have_a_remedy():
    (own,) = tune([{"id": "r", "expression": "a = 'x'"}], None, [{"a": ["x"]}]).rules
    (reason,) = own.reasons
    assert reason.startswith("a has values of another type than string, such as ['x'] (imported")
    assert reason.endswith("rules test lists if types are learned from events: --learn)")


def test_a_contradiction_is_a_reason():
    report = tune([{"id": "r", "expression": "n > 3 AND n < 2"}], None, [{"n": 1}])
    assert report.rules[0].reasons == ["its conditions exclude each other: no event can satisfy it"]


def test_silent_rules_that_are_alike():
    tests = [f"a{number} = 'x'" for number in range(9)]
    rules = [
        {"id": "one", "expression": " AND ".join(tests)},
        {"id": "two", "expression": " AND ".join([*tests[:8], "b = 'x'"])},
        {"id": "other", "expression": " AND ".join([*tests[:5], "c = 1", "d = 1", "e = 1"])},
        {"id": "small", "expression": "a1 = 'x' AND f = 1"},
    ]
    (overlap,) = tune(rules, None, [{"q": 1}]).overlaps
    assert overlap == ("alike", "two", "one", 0.8)
    assert "has nearly the same tests as" in to_html(tune(rules, None, [{"q": 1}]))


def test_equal_and_contained_rules(report):
    found = {(own.kind, own.rule_id, own.other_id) for own in report.overlaps}
    assert ("equal", "same", "rare") in found
    assert ("contained", "narrow", "rare") in found
    assert ("contained", "rare", "narrow") not in found


def test_rules_that_fire_together():
    rules = [{"id": "x", "expression": "size < 50"}, {"id": "y", "expression": "size <= 50"}]
    (overlap,) = tune(rules, SCHEMA, EVENTS).overlaps
    assert (overlap.kind, overlap.rule_id, overlap.other_id) == ("together", "x", "y")
    assert overlap.share == pytest.approx(50 / 51)


def test_exclusion_is_tried_before_it_is_published(report):
    (backtest,) = report.backtests
    assert (backtest.n_before, backtest.n_after) == (50, 50 - len(expected_removed()))
    assert backtest.removed == expected_removed()[:3]


def expected_removed():
    return [event for event in EVENTS if event["kind"] == "a" and event["user"] == "u1"]


@pytest.mark.parametrize(
    ("exclusion", "event", "fires"),
    [
        ("user = 'u'", {"kind": "a", "user": "u"}, False),
        ("user = 'u'", {"kind": "a", "user": "v"}, True),
        ("user = 'u'", {"kind": "a"}, True),
        ("user <> 'u'", {"kind": "a"}, True),
        ("NOT user = 'u'", {"kind": "a"}, True),
        ("NOT user = 'u'", {"kind": "a", "user": "v"}, False),
        ("NOT (user = 'u' OR host = 'h')", {"kind": "a", "user": "v"}, True),
        ("NOT (user = 'u' OR host = 'h')", {"kind": "a", "user": "v", "host": "i"}, False),
        ("NOT (user = 'u' AND host = 'h')", {"kind": "a", "user": "v"}, False),
        ("user = 'u' XOR host = 'h'", {"kind": "a", "user": "u"}, True),
        ("user IS NULL", {"kind": "a"}, False),
        ("lower(user) = 'u' AND size > 5", {"kind": "a", "user": "U", "size": 6}, False),
    ],
)
def test_exclusions_exclude_only_what_they_describe(exclusion, event, fires):
    text = add_exclusion("kind = 'a'", exclusion, SCHEMA)
    assert (evaluate(check(parse(text), SCHEMA), event) is True) == fires


def test_bad_exclusions_are_errors():
    with pytest.raises(InputError, match='no valid rule "none"'):
        tune(RULES, SCHEMA, EVENTS, exclusions={"none": "user = 'u'"})
    with pytest.raises(InputError, match='the exclusion of "noisy": unknown attribute "usr"'):
        tune(RULES, SCHEMA, EVENTS, exclusions={"noisy": "usr = 'u'"})


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.addresses += [own for name, own in attributes if name in ("src", "href")]


def test_page_is_complete_and_escaped():
    evil = "</pre><script>alert(1)</script>"
    rules = [{"id": evil, "expression": "kind = 'a'", "title": evil, "level": evil}]
    page = to_html(tune(rules, SCHEMA, [{"kind": "a", "user": evil}]), evil)
    tags = _Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert not tags.addresses
    assert page.count("&lt;script&gt;") >= 4


def test_shell(tmp_path):
    subs, events = tmp_path / "s.jsonl", tmp_path / "events"
    events.mkdir()
    subs.write_text("".join(json.dumps(own) + "\n" for own in RULES[:3]))
    (events / "e.jsonl").write_text("".join(json.dumps(own) + "\n" for own in EVENTS))
    (tmp_path / "x.toml").write_text("noisy = \"user = 'u1'\"\n")
    done = run(
        *("tune", subs, events, "--schema", SCHEMA.to_ddl(), "--exclude", tmp_path / "x.toml"),
        *("--html", tmp_path / "r.html", "--tables", tmp_path / "t", "-o", tmp_path / "new.jsonl"),
        *("--output", "json"),
    )
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["events"], summary["noisy"]) == (100, 3)
    assert "Rules on events" in (tmp_path / "r.html").read_text()
    assert (tmp_path / "t" / "rules.csv").read_text().startswith("id,title,level,verdict,fired")
    (changed,) = [json.loads(line) for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    assert changed["expression"].startswith("(kind = 'a') AND NOT (")


def test_a_rule_for_any_attribute_may_fire():
    report = tune([{"id": "any", "expression": "any_attribute(v -> v = 'q')"}], None, [{"x": "a"}])
    assert report.rules[0].verdict == "silent"


def write_lines(path, rows):
    path.write_text("".join(json.dumps(own) + "\n" for own in rows))
    return path


MIXED = [
    {"id": "a", "expression": "x = 1"},
    {"id": "a", "expression": "x = 2"},
    {"id": "b", "expression": "x = "},
    {"id": "c", "expression": "@d AND x = 1"},
    {"id": "d", "expression": "subscription('a')"},
]


def test_rules_that_are_left_out_are_reported(tmp_path):
    rules, events = (
        write_lines(tmp_path / "r.jsonl", MIXED),
        write_lines(tmp_path / "e.jsonl", [{"x": 1}, {"x": 2}]),
    )
    done = run("tune", rules, events, "--output", "json", "--tables", tmp_path / "t")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["rules"], summary["invalid"]) == (2, 3)
    assert "r.jsonl:2: error: the id was already given in line 1 [duplicate-id]" in done.stderr
    assert 'r.jsonl:3: error: subscription "b", 1:4: expected a condition' in done.stderr
    assert "3 rules are left out; --rejects FILE lists them" in done.stderr
    invalid = (tmp_path / "t" / "invalid.csv").read_text().splitlines()
    assert invalid[1:] == [
        "a,the id was already given in line 1",
        'b,"expected a condition or a value, found the end"',
        "c,unknown definition @d",
    ]


def test_definitions_and_rejects_are_as_for_build(tmp_path):
    rules, events = (
        write_lines(tmp_path / "r.jsonl", MIXED),
        write_lines(tmp_path / "e.jsonl", [{"x": 1}, {"x": 2}]),
    )
    (tmp_path / "d.toml").write_text('d = "x < 5"\n')
    done = run(
        *("tune", rules, events, "--definitions", tmp_path / "d.toml", "--output", "json"),
        *("--rejects", tmp_path / "bad.jsonl"),
    )
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    fired = {own["id"]: own["fired"] for own in found if own["kind"] == "rules"}
    assert fired == {"a": 1, "c": 1, "d": 1}
    bad = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [own["code"] for own in bad] == ["duplicate-id", "unexpected-token"]


def test_duplicates_are_counted_in_python():
    report = tune(MIXED, None, [{"x": 1}, {"x": 2}], definitions={"d": "x < 5"})
    assert {own.rule_id: own.n_fired for own in report.rules} == {"a": 1, "c": 1, "d": 1}
    assert report.invalid[0] == ("a", "an earlier rule has the same id")
    assert [own.code for own in report.rejects] == ["duplicate-id", "unexpected-token"]


def write_both(folder, rules=None, events=None):
    return (
        write_lines(folder / "r.jsonl", MIXED if rules is None else rules),
        write_lines(folder / "e.jsonl", [{"x": 1}, {"x": 2}] if events is None else events),
    )


def test_swapped_arguments_are_an_error(tmp_path):
    rules, events = write_both(tmp_path)
    done = run("tune", events, rules)
    assert done.exit_code == 1
    assert f"{events} holds no rules, but {rules} does" in done.stderr
    assert "the arguments are swapped: the rules come first" in done.stderr


def test_only_invalid_rules_are_an_error(tmp_path):
    rules, events = write_both(tmp_path, [{"id": "a", "expression": "x ="}])
    done = run("tune", rules, events)
    assert done.exit_code == 1
    assert not done.stdout
    assert "the rules cannot be tried: every row was rejected" in done.stderr
    empty = run("tune", write_lines(tmp_path / "n.jsonl", []), events)
    assert (empty.exit_code, "the file is empty" in empty.stderr) == (1, True)


def test_events_that_cannot_be_read_are_reported_as_by_match(tmp_path):
    rules, events = write_both(tmp_path, events=[])
    done = run("tune", rules, events)
    assert done.exit_code == 0
    assert f"note: there are no events in {events}" in done.stderr
    write_lines(events, [{"x": 1}, 5])
    done = run("tune", rules, events)
    assert done.exit_code == 0
    assert f"1 row without an event is left out, first {events}, line 2: " in done.stderr
    write_lines(events, [{"x": 1}, 5, 6])
    done = run("tune", rules, events)
    assert done.exit_code == 1
    assert f"error: 2 of 3 rows contain no event, first {events}, line 2: " in done.stderr


def test_wrong_exclusions_and_folders_are_named(tmp_path):
    rules, events = write_both(tmp_path)
    wrong = tmp_path / "x.toml"
    wrong.write_text("kw = 5\n")
    done = run("tune", rules, events, "--exclude", wrong)
    assert done.exit_code == 1
    assert f'{wrong}: the exclusion of "kw" is 5; an expression is expected' in done.stderr
    done = run("tune", rules, events, "--tables", wrong)
    assert done.exit_code == 1
    assert f"cannot make the folder {wrong} of --tables: File exists" in done.stderr


def test_exclusions_of_rules_with_any_id(tmp_path):
    rules, events = write_both(tmp_path, [{"id": "7f-a b", "expression": "x > 0"}])
    (tmp_path / "x.toml").write_text('"7f-a b" = "x = 2"\n')
    done = run("tune", rules, events, "--exclude", tmp_path / "x.toml")
    assert done.exit_code == 0, done.output
    assert "exclusion  7f-a b: 2 → 1 events" in done.stdout


X_EVENTS = [{"x": 1}, {"x": 2}, {"x": 1}]
LINES = "".join(json.dumps(own) + "\n" for own in X_EVENTS)
GIVEN = {
    "dicts": lambda: X_EVENTS,
    "a generator": lambda: iter(X_EVENTS),
    "JSON texts": lambda: [json.dumps(own) for own in X_EVENTS],
    "one JSON text": lambda: LINES,
    "bytes": LINES.encode,
    "an array of JSON": lambda: json.dumps(X_EVENTS),
    "a table": lambda: pa.Table.from_pylist(X_EVENTS),
    "batches": lambda: iter(pa.Table.from_pylist(X_EVENTS).to_batches()),
    "a reader": lambda: pa.Table.from_pylist(X_EVENTS).to_reader(),
    "an array": lambda: pa.array(X_EVENTS),
    "an array of texts": lambda: pa.array([json.dumps(own) for own in X_EVENTS]),
    "a file": lambda: io.BytesIO(LINES.encode()),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_events_are_given_as_to_match_batch(kind):
    report = tune(MIXED[:1], None, GIVEN[kind]())
    assert (report.n_events, report.rules[0].n_fired) == (3, 2)
    assert report.rules[0].examples == [{"x": 1}, {"x": 1}]


def test_paths_of_events(tmp_path):
    path = write_lines(tmp_path / "e.jsonl", X_EVENTS)
    for given in (path, str(path)):
        assert tune(MIXED[:1], None, given).n_events == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nosuch.jsonl", "cannot read nosuch.jsonl"),
        ("no file", "'no file' is neither the path of a file nor JSON"),
        ({"x": 6}, "a dict is one event, not a list of events"),
        (5, "no events can be read from int"),
        (["nosuch.jsonl"], "no event can be read, first event 1: not JSON"),
        ([5], "event 1: an event is a mapping of attributes, not int"),
    ],
)
def test_wrong_events_are_errors(given, message):
    with pytest.raises(InputError, match=message):
        tune(MIXED[:1], None, given)


def test_some_wrong_events_are_a_warning():
    with pytest.warns(RejectWarning, match="1 event was not read and left out, first event 2: "):
        report = tune(MIXED[:1], None, ['{"x": 1}', "{"])
    assert report.n_events == 1


@pytest.mark.parametrize(
    "given",
    [
        {"a": "x = 1"},
        [("a", "x = 1")],
        iter([{"subscription_id": "a", "expression": "x = 1"}]),
        pa.table({"id": ["a"], "expression": ["x = 1"]}),
    ],
)
def test_rules_are_given_as_to_build(given):
    assert [(own.rule_id, own.n_fired) for own in tune(given, None, X_EVENTS).rules] == [("a", 2)]


def test_rules_in_a_file(tmp_path):
    path = write_lines(tmp_path / "r.jsonl", [*MIXED[:1], {"id": "b"}])
    report = tune(path, None, X_EVENTS)
    assert [own.rule_id for own in report.rules] == ["a"]
    assert [(own.code, own.subscription_id) for own in report.rejects] == [("missing-key", "b")]


@pytest.mark.parametrize("given", [None, "x = 1", ["x = 1"], [{"id": "a"}], 5])
def test_wrong_rules_are_errors(given):
    with pytest.raises(InputError, match=r"expression|is not a pair"):
        tune(given, None, X_EVENTS)


def test_a_share_is_between_0_and_1():
    with pytest.raises(InputError, match="noisy_share is 7; allowed: 0 to 1"):
        tune(MIXED[:1], None, X_EVENTS, noisy_share=7)


def test_values_of_another_type_are_reported(tmp_path):
    given = [{"x": 1}, {"x": "1"}, {"x": "<b>"}]
    report = tune(MIXED[:1], None, given)
    assert (report.rules[0].n_fired, report.ignored_values) == (1, [("x", "number", 2, "'1'")])
    page = to_html(tune(MIXED[:1], None, given[::-1]))
    assert "<td>x</td><td>number</td><td>2</td><td>&#x27;&lt;b&gt;&#x27;</td>" in page
    rules, events = write_both(tmp_path, MIXED[:1], given)
    done = run("tune", rules, events)
    assert done.exit_code == 0
    assert "note: 2 values are treated as missing: x: '1' is not of type number" in done.stderr


def test_tables_without_rows_have_a_header(tmp_path):
    rules, events = write_both(tmp_path, MIXED[:1])
    assert run("tune", rules, events, "--tables", tmp_path / "t").exit_code == 0
    heads = {own.stem: own.read_text() for own in (tmp_path / "t").iterdir()}
    assert heads["exclusions"] == "id,exclusion,before,after\n"
    assert heads["invalid"] == "id,reason\n"
    assert heads["overlaps"] == "kind,rule_id,other_id,share\n"
    assert heads["rules"].startswith("id,title,level,verdict,fired,share,reasons\na,")


def test_page_counts_one_rule_in_the_singular():
    page = to_html(tune([{"id": "a", "expression": "x = 5"}], None, [{"x": 1}]))
    assert "<summary>1 rule</summary>" in page
    assert "<b>1</b>rule</div>" in page
    assert "<b>1</b>event</div>" in page
    assert "1 rules" not in page


def test_page_gives_expressions_of_exclusions_their_own_row(report):
    page = to_html(report)
    section = page[page.index("Exclusions, tried") :]
    assert '<td class="n">50</td><td class="n">33</td></tr><tr><td colspan="3">' in section
    assert "<pre>user = &#x27;u1&#x27; OR host = &#x27;h&#x27;</pre>" in section


def test_page_shows_what_exclusions_remove(report):
    page = to_html(report)
    section = page[page.index("Exclusions, tried") :]
    assert "Excluded events, such as" in section
    none = tune(RULES[:1], SCHEMA, EVENTS, exclusions={"noisy": "host = 'h'"})
    assert "No event is excluded." in to_html(none)


def test_page_shows_small_shares_and_what_noisy_means():
    events = [{"x": 1}] + [{"x": 0}] * 20_000
    page = to_html(tune([{"id": "a", "expression": "x = 1"}], None, events, noisy_share=0.00001))
    assert "&lt; 0.01 %" in page
    assert "more than 0.001 % of the events" in page


def test_page_folds_long_sections():
    rules = [{"id": f"r{n}", "expression": f"a{n} = 1 AND b = 1"} for n in range(30)]
    page = to_html(tune(rules, None, [{"b": 1}]))
    assert "can never fire on these events</h2>" in page
    assert "<summary>30 rules</summary>" in page
    assert "<summary>" not in to_html(tune(rules[:5], None, [{"b": 1}]))
