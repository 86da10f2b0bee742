"""Sigma rules: details, log sources, layouts, settings, filters."""

from __future__ import annotations

import pytest

import tamis
from tamis.errors import InputError
from tamis.importers import Settings, import_rules, make_settings, read_settings
from tamis.importers.learning import learn_types
from tamis.importers.sigma.layouts import LAYOUTS

RULE = """title: Service installed
id: 7c2f0c3a-0000-4000-8000-000000000001
status: test
description: A service.
references: [https://example.org/a]
author: Ann Author
tags: [attack.persistence, attack.t1543.003]
logsource: {logsource}
detection: {detection}
level: high
"""


def make(detection: str, logsource: str = "{category: test}") -> bytes:
    return RULE.format(logsource=logsource, detection=detection).encode()


def expression_of(rule: bytes, settings: Settings | None = None) -> str:
    (imported,) = import_rules("sigma", [rule], settings).rules
    assert imported.error is None, imported.error
    return imported.expression


def test_details_become_attributes_and_tags():
    imported = import_rules("sigma", [make("{a: {B: c}, condition: a}")])
    (rule,) = imported.accepted
    assert rule.rule_id == "7c2f0c3a-0000-4000-8000-000000000001"
    assert rule.tags == ("attack.persistence", "attack.t1543.003")
    assert rule.attributes == {
        "title": "Service installed",
        "level": "high",
        "status": "test",
        "author": "Ann Author",
        "description": "A service.",
        "references": ["https://example.org/a"],
        "log_source": "test",
        "log_source_condition": "none",
    }
    index = tamis.build([rule.to_dict() for rule in imported.accepted], imported.schema)
    assert index.match({"B": "C"}) == [rule.rule_id]
    assert index.tagged("attack.persistence") == [rule.rule_id]


def test_log_sources_are_conditions():
    detection = "{a: {B: c}, condition: a}"
    written = expression_of(make(detection, "{product: windows, category: registry_event}"))
    channel = "lower(Channel) = 'microsoft-windows-sysmon/operational'"
    assert written == f"{channel} AND EventID IN (12, 13, 14) AND lower(B) = 'c'"


def test_log_source_without_a_condition_is_noted():
    other = make("{a: {B: c}, condition: a}", "{category: database}").replace(b"000001", b"000002")
    imported = import_rules(
        "sigma", [make("{a: {B: c}, condition: a}", "{product: jvm, category: x}"), other]
    )
    every, *named = imported.notes
    assert every.startswith("the log source has no condition: the rule tests every event (2 rules")
    assert named[0].startswith("the log source jvm/x/* has no condition in the table (1 rule")
    assert [own.attributes["log_source_condition"] for own in imported.rules] == ["none"] * 2


@pytest.mark.parametrize(
    ("source", "condition"),
    [
        ("{product: linux, service: sshd}", "Channel IS NULL OR lower(Channel) = 'linux-sysmon/op"),
        ("{product: macos, category: process_creation}", "Channel IS NULL AND"),
        ("{product: okta, service: okta}", "eventType IS NOT NULL AND"),
        ("{category: dns}", "query IS NOT NULL OR answer IS NOT NULL OR record_type IS NOT NULL"),
        ("{product: zeek, service: http}", "ts IS NOT NULL OR uid IS NOT NULL OR _path IS NOT"),
        ("{product: windows, category: process_creation}", "lower(Channel) = 'microsoft-windows"),
    ],
)
def test_log_sources_have_conditions(source, condition):
    (rule,) = import_rules("sigma", [make("{a: {B: c}, condition: a}", source)]).rules
    assert rule.expression.removeprefix("(").startswith(condition)
    assert not rule.notes
    assert "log_source_condition" not in rule.attributes


def test_log_sources_can_be_added_and_replaced():
    table = [
        {"product": "zeek", "any": [{"path": "conn"}, {"path": "dns", "version|gte": 2}]},
        {"product": "windows", "service": "security", "any": []},
    ]
    settings = Settings(log_sources=table)
    detection = "{a: {B: c}, condition: a}"
    written = expression_of(make(detection, "{product: zeek, service: dns}"), settings)
    assert written == (
        "(lower(path) = 'conn' OR (lower(path) = 'dns' AND "
        r"version RLIKE r'^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$' "
        "AND cast(version AS DOUBLE) >= 2)) AND lower(B) = 'c'"
    )
    written = expression_of(make(detection, "{product: windows, service: security}"), settings)
    assert written == "lower(B) = 'c'"


def test_security_events_of_new_processes():
    """The settings that docs/importing.md shows for hosts without Sysmon."""
    settings = make_settings(
        {
            "fields": {"Image": ["Image", "NewProcessName"]},
            "log_sources": [
                {
                    "product": "windows",
                    "category": "process_creation",
                    "any": [{"Channel": "Security", "EventID": 4688}],
                }
            ],
        }
    )
    rule = make(
        "{a: {Image|endswith: x.exe}, f: {Image: null}, condition: a and not f}",
        "{product: windows, category: process_creation}",
    )
    imported = import_rules("sigma", [rule], settings)
    index = tamis.build([own.to_dict() for own in imported.accepted], imported.schema)
    event = {"Channel": "Security", "EventID": 4688, "NewProcessName": "C:\\X.EXE"}
    assert index.match(event)
    assert not index.match({**event, "EventID": 1})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    rule = make(
        "{a: {Image|endswith: x.exe, EventID: 1}, condition: a}",
        "{product: windows, category: process_creation}",
    )
    imported = import_rules("sigma", [rule], Settings(layout=layout))
    event = {"Channel": "Microsoft-Windows-Sysmon/Operational", "EventID": 1, "Image": "x.exe"}
    if layout == "evtx":
        system = {name: event[name] for name in ("Channel", "EventID")}
        event = {"Event": {"System": system, "EventData": {"Image": "x.exe"}}}
    elif layout == "winlogbeat":
        inner = {"channel": event["Channel"], "event_id": "1", "event_data": {"Image": "x.exe"}}
        event = {"winlog": inner}
    index = tamis.build([own.to_dict() for own in imported.accepted], imported.schema)
    assert len(index.match(event)) == 1


def test_unknown_layout():
    with pytest.raises(InputError, match='unknown layout "ecs"; allowed: flat, evtx, winlogbeat'):
        import_rules("sigma", [make("{a: {B: c}, condition: a}")], Settings(layout="ecs"))


def test_types_are_learned_from_events():
    events = [
        {"n": 1, "x": 1.5, "b": True, "o": {"s": "a", "l": [1]}},
        {"n": 2, "x": 2},
        {"n": "3"},
    ]
    learned = learn_types(events)
    assert learned.to_json() == {
        "n": "integer",
        "x": "number",
        "b": "boolean",
        "o.s": "string",
        "o.l": "one_or_many<integer>",
    }
    detection = "{a: {n: [3, x], x: 2, b: 'TRUE', o.s: a}, condition: a}"
    written = expression_of(make(detection), Settings(learned))
    assert written == "n = 3 AND x = 2 AND b = TRUE AND lower(o.s) = 'a'"


def test_patterns_of_numbers_with_a_fraction_are_refused():
    settings = Settings(learn_types([{"x": 1.5}]))
    (rule,) = import_rules("sigma", [make("{a: {x|contains: 5}, condition: a}")], settings).rules
    assert rule.error is not None


def test_dots_can_be_a_part_of_names():
    rule = make("{a: {user.name: c}, condition: a}")
    assert expression_of(rule, Settings(nested=False)) == "lower(`user.name`) = 'c'"


def test_placeholders_take_given_values():
    rule = make("{a: {User|expand: '%admins%', B|expand|contains: 'x%y%'}, condition: a}")
    settings = Settings(values={"admins": ["Ann", "b*"], "y": ["1", "2"]})
    assert expression_of(rule, settings) == (
        "(lower(User) = 'ann' OR User ILIKE 'b%') AND B ILIKE ANY ('%x1%', '%x2%')"
    )


def test_filters_apply_to_the_rules_they_name():
    given = """title: Filter
logsource: {category: test}
filter:
  rules: [7c2f0c3a-0000-4000-8000-000000000001]
  known: {User|startswith: adm_}
  condition: not known
"""
    rules = import_rules("sigma", [make("{a: {B: c}, condition: a}"), given.encode()]).rules
    (rule,) = rules
    assert rule.expression == "lower(B) = 'c' AND NOT (User IS NOT NULL AND User ILIKE r'adm\\_%')"


@pytest.mark.parametrize(
    ("source", "rules", "listed"),
    [
        ("{category: test}", "[7c2f0c3a-0000-4000-8000-0000000000ff]", "7c2f0c3a"),
        ("{category: other}", "any", "any"),
    ],
)
def test_a_filter_that_applies_to_no_rule_is_refused(source, rules, listed):
    given = f"""title: Filter
logsource: {source}
filter:
  rules: {rules}
  known: {{User: x}}
  condition: not known
"""
    imported = import_rules("sigma", [make("{a: {B: c}, condition: a}"), given.encode()])
    (refused,) = imported.refused
    assert refused.error.code == "unused-filter"
    assert f"({listed}" in refused.error.message
    assert refused.title == "Filter"
    assert [own.expression for own in imported.accepted] == ["lower(B) = 'c'"]


@pytest.mark.parametrize("condition", ["known and other", "2 of known*", "known AND known"])
def test_a_wrong_filter_stops_no_rule(condition):
    given = f"""title: Filter
logsource: {{category: test}}
filter:
  rules: any
  known: {{User: x}}
  condition: {condition}
"""
    imported = import_rules("sigma", [make("{a: {B: c}, condition: a}"), given.encode()])
    (refused,) = imported.refused
    assert (refused.title, refused.error.code) == ("Filter", "bad-rule")
    assert [own.expression for own in imported.accepted] == ["lower(B) = 'c'"]


@pytest.mark.parametrize(
    ("detection", "note"),
    [
        ("{a: {B: []}, condition: a}", "an empty list of values is read as null"),
        ("{a: {'|startswith': c}, condition: a}", "searched for anywhere in a text"),
        ("{a: {B: c}, timeframe: 5m, condition: a}", "timeframe is not used"),
    ],
)
def test_what_is_read_otherwise_is_noted(detection, note):
    imported = import_rules("sigma", [make(detection)])
    assert not imported.refused
    assert any(note in own for own in imported.notes)


def test_a_value_that_its_field_never_has_is_noted():
    imported = import_rules("sigma", [make("{a: {EventID: [abc, 1]}, condition: a}")])
    assert [own.expression for own in imported.accepted] == ["EventID = 1"]
    (note,) = [own for own in imported.notes if "EventID" in own]
    assert "never has the value 'abc' (1 rule, such as" in note


def test_settings_in_a_file(tmp_path):
    pipeline = tmp_path / "names.yml"
    pipeline.write_text(
        "transformations:\n- {id: m, type: field_name_mapping, mapping: {B: beta}}\n"
    )
    file = tmp_path / "settings.toml"
    file.write_text(
        'pipelines = ["names.yml"]\nlayout = "flat"\nschema = "n BIGINT"\nnested = true\n'
        '[fields]\nbeta = ["b1", "b2"]\n[values]\nadmins = "Ann"\n'
        '[[log_sources]]\ncategory = "test"\nany = [{ kind = "t" }]\n'
    )
    rule = make("{a: {B: c, User|expand: '%admins%', n: 1}, condition: a}")
    assert expression_of(rule, read_settings(file)) == (
        "lower(kind) = 't' AND (lower(b1) = 'c' OR lower(b2) = 'c') "
        "AND lower(User) = 'ann' AND n = 1"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layouts = 'x'", 'unknown setting "layouts"'),
        ("nested = 'yes'", "true or false"),
        ("fields = 5", "fields is a table"),
        ("[fields]\na = 5", r"fields\.a is 5"),
        ("log_sources = 5", "a list of tables"),
        ("[[log_sources]]\nany = []", "not an entry"),
        ("[[log_sources]]\nproduct = 'x'\nany = [{'a|nope' = 1}]", "Unknown modifier"),
        ("pipelines = ['none.yml']", "cannot read the pipeline"),
        ("pipelines = ['post.yml']", "has postprocessing or finalizers"),
        ("a = ", "not TOML"),
    ],
)
def test_bad_settings_are_errors_of_the_caller(text, message, tmp_path):
    (tmp_path / "post.yml").write_text(
        "transformations: []\npostprocessing:\n- {type: embed, prefix: x}\n"
    )
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        import_rules("sigma", [make("{a: {B: c}, condition: a}")], read_settings(file))


def test_unknown_format_and_empty_folder(tmp_path):
    with pytest.raises(InputError, match='unknown format "snort"; allowed: sigma'):
        import_rules("snort", [])
    with pytest.raises(InputError, match=r"has no file that ends in \.yml or \.yaml"):
        import_rules("sigma", [tmp_path])


def test_an_object_is_read_as_text_and_by_its_members():
    one = make("{a: {r|contains: '\"public\"'}, condition: a}")
    two = make("{a: {r.name: c}, condition: a}").replace(b"000001", b"000002")
    imported = import_rules("sigma", [one, two])
    index = tamis.build([rule.to_dict() for rule in imported.accepted], imported.schema)
    assert len(index.match({"r": {"acl": "public", "name": "C"}})) == 2
    assert len(index.match({"r": {"acl": "private", "name": "C"}})) == 1


def test_an_object_is_no_number():
    one = make("{a: {r: 5}, condition: a}")
    two = make("{a: {r.name: c}, condition: a}").replace(b"000001", b"000002")
    settings = make_settings({"schema": {"r": "bigint"}})
    first, second = import_rules("sigma", [one, two], settings).rules
    assert "r is an object here" in first.error.message
    assert second.error is None


def test_numbers_are_read_as_they_come():
    imported = import_rules("sigma", [make("{a: {LogonType: 3, EventID: 4624}, condition: a}")])
    index = tamis.build([rule.to_dict() for rule in imported.accepted], imported.schema)
    assert index.match({"LogonType": 3, "EventID": "4624"})
    assert index.match({"LogonType": "3", "EventID": 4624})
