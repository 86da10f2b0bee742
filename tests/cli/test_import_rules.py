"""`tamis import`, and `tamis build --format sigma`."""

from __future__ import annotations

import json

import pytest

from tests.cli.shell import run

RULE = """title: Whoami {n}
id: e28a5a99-da44-436d-b7a0-2afc20a5f41{n}
logsource: {{product: windows, category: process_creation}}
detection:
  selection: {{Image|endswith: '\\whoami.exe'}}
  condition: selection
level: low
"""
EVENT = {"Channel": "Microsoft-Windows-Sysmon/Operational", "EventID": 1, "Image": "C:\\Whoami.exe"}


def write_rules(folder):
    rules = folder / "rules"
    rules.mkdir()
    for number in (1, 2):
        (rules / f"{number}.yml").write_text(RULE.format(n=number))
    (rules / "bad.yaml").write_text("title: [x\n")
    return rules


def test_import_writes_subscriptions_schema_and_rejects(tmp_path):
    rules = write_rules(tmp_path)
    target, schema, rejects = (tmp_path / name for name in ("r.jsonl", "s.json", "bad.jsonl"))
    done = run(
        *("import", "sigma", rules, "-o", target, "--schema-file", schema, "--rejects", rejects),
        *("--output", "json"),
    )
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["rules"], summary["imported"], summary["refused"]) == (3, 2, 1)
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [row["title"] for row in rows] == ["Whoami 1", "Whoami 2"]
    assert rows[0]["level"] == "low"
    (bad,) = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert (bad["code"], bad["place"].endswith("bad.yaml:1")) == ("bad-yaml", True)
    built = run("build", target, "-o", tmp_path / "r.tamis", "--schema", schema)
    assert built.exit_code == 0, built.output


@pytest.mark.parametrize("option", ["-o", "--schema-file"])
def test_import_never_replaces_the_rules(tmp_path, option):
    rules = write_rules(tmp_path)
    first = rules / "1.yml"
    for read in (first, rules):
        refused = run("import", "sigma", read, option, first)
        assert refused.exit_code == 1
        assert f"{option} {first} would replace the file that is read" in refused.stderr
        assert first.read_text() == RULE.format(n=1)
    for _ in range(2):  # a file that is not read may be in the same folder
        assert run("import", "sigma", rules, option, rules / "made.jsonl").exit_code == 0


@pytest.mark.parametrize("option", ["-o", "--html"])
def test_tune_replaces_neither_rules_nor_events(tmp_path, option):
    rules, events = tmp_path / "rules.jsonl", tmp_path / "events"
    text = '{"id": "a", "expression": "x = 1"}\n'
    rules.write_text(text)
    events.mkdir()
    event = events / "e.jsonl"
    event.write_text('{"x": 1}\n')
    for target in (rules, event):
        refused = run("tune", rules, events, option, target)
        assert refused.exit_code == 1
        assert f"{option} {target} would replace the file that is read" in refused.stderr
    assert (rules.read_text(), event.read_text()) == (text, '{"x": 1}\n')


def test_import_reports_refused_rules_and_can_be_strict(tmp_path):
    rules = write_rules(tmp_path)
    done = run("import", "sigma", rules)
    assert done.exit_code == 0
    assert "1 rule refused [bad-yaml], such as" in done.stderr
    assert "--rejects FILE lists the refused rules" in done.stderr
    listed = run("import", "sigma", rules, "--rejects", tmp_path / "bad.jsonl")
    assert "1 rule refused [bad-yaml], such as" in listed.stderr
    assert "--rejects FILE" not in listed.stderr
    assert run("import", "sigma", rules, "--strict").exit_code == 1
    nothing = run("import", "sigma", rules / "bad.yaml")
    assert nothing.exit_code == 1
    assert "no rule can be imported" in nothing.stderr


def test_show_prints_the_expression_next_to_the_rule(tmp_path):
    done = run("import", "sigma", write_rules(tmp_path), "--show")
    assert "  │   selection: {Image|endswith: '\\whoami.exe'}" in done.stdout
    assert "Image ILIKE r'%\\\\whoami.exe'" in done.stdout
    assert "refused: not YAML" in done.stdout


def test_build_of_a_folder_of_rules(tmp_path):
    rules, index = write_rules(tmp_path), tmp_path / "rules.tamis"
    events = tmp_path / "events.jsonl"
    events.write_text(json.dumps(EVENT) + "\n")
    done = run("build", rules, "--format", "sigma", "-o", index, "--learn", events)
    assert done.exit_code == 0, done.output
    assert "not YAML" in done.stderr
    found = run("match", index, events, "--output", "tsv")
    assert len(found.stdout.splitlines()) == 2
    swapped = run("build", events, "-o", tmp_path / "x.tamis", "--layout", "evtx")
    assert swapped.exit_code == 2


def test_demo_of_detections(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("demo", "detections")
    assert done.exit_code == 0, done.output
    assert "refused: the keyword" in done.stdout or "Commands to Clear" in done.stdout
    assert "15     noisy   low       Scheduled Task Creation Via Schtasks.EXE" in done.stdout
    assert "the noisy rule fires on 1 of these 15 events." in done.stdout
    assert "Scheduled Task Creation" in (tmp_path / "detections.html").read_text()


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    rules = write_rules(tmp_path)
    (rules / "gone.yml").symlink_to("elsewhere.yml")
    done = run("import", "sigma", rules)
    assert done.exit_code == 0, done.output
    assert (
        f"1 rule refused [cannot-read], such as {rules / 'gone.yml'}: the file, a link to "
        "elsewhere.yml, cannot be read: No such file or directory" in done.stderr
    )


def test_layouts_are_for_sigma_only(tmp_path):
    pattern = tmp_path / "p.json"
    pattern.write_text('{"source": ["aws.ec2"]}')
    events = tmp_path / "e.jsonl"
    events.write_text('{"source": "aws.ec2"}\n')
    for arguments in (
        ("import", "eventbridge", pattern),
        ("build", pattern, "--format", "eventbridge", "-o", tmp_path / "i.tamis"),
        ("tune", pattern, events, "--format", "eventbridge"),
    ):
        done = run(*arguments, "--layout", "evtx")
        assert done.exit_code == 2, done.output
        assert "--layout evtx is for Sigma rules; eventbridge has no layouts" in done.stderr


def test_a_file_that_does_not_exist_is_named(tmp_path):
    rules = write_rules(tmp_path)
    for arguments in (
        ("import", "sigma", rules, "--learn", "nosuch"),
        ("tune", rules, "nosuch", "--format", "sigma"),
    ):
        done = run(*arguments)
        assert done.exit_code == 1
        assert "cannot read nosuch: No such file or directory" in done.stderr


def test_build_and_tune_name_refused_rules_by_their_files(tmp_path):
    rules = write_rules(tmp_path)
    (rules / "look.yml").write_text(
        RULE.format(n=3).replace("Image|endswith: '\\whoami.exe'", "Image|re: 'x(?=y)'")
    )
    events = tmp_path / "events.jsonl"
    events.write_text(json.dumps(EVENT) + "\n")
    rejects = tmp_path / "bad.jsonl"
    for arguments in (
        ("build", rules, "--format", "sigma", "-o", tmp_path / "r.tamis", "--overwrite"),
        ("tune", rules, events, "--format", "sigma"),
    ):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
        assert f'{rules / "look.yml"}:1: rule "Whoami 3": error: Image: the regular' in done.stderr
        assert f"{rules / 'bad.yaml'}:1: error: not YAML" in done.stderr
        assert run(*arguments, "--rejects", rejects).exit_code == 0
        bad = [json.loads(line) for line in rejects.read_text().splitlines()]
        assert [own["place"] for own in bad] == [
            f"{rules / 'bad.yaml'}:1",
            f"{rules / 'look.yml'}:1",
        ]
        assert (bad[1]["title"], bad[1]["subscription_id"][-1]) == ("Whoami 3", "3")


def test_tune_tries_the_few_rules_that_can_be_expressed(tmp_path):
    rules = write_rules(tmp_path)
    (rules / "1.yml").unlink()
    events = tmp_path / "events.jsonl"
    events.write_text(json.dumps(EVENT) + "\n")
    for name in ("c", "d"):
        (rules / f"{name}.yml").write_text("title: [x\n")
    done = run("tune", rules, events, "--format", "sigma")
    assert done.exit_code == 0, done.output
    assert "3 rules are left out" in done.stderr
    (rules / "2.yml").unlink()
    done = run("tune", rules, events, "--format", "sigma")
    assert done.exit_code == 1
    assert "the rules cannot be tried: every rule was refused" in done.stderr


def test_import_says_what_to_write_instead(tmp_path):
    rules = tmp_path / "rule.yml"
    rules.write_text(
        RULE.format(n=3).replace("Image|endswith: '\\whoami.exe'", "Image|re: 'x(?=y)'")
    )
    done = run("import", "sigma", rules)
    assert "RE2 has no lookahead: (?=y) at character 2 (hint: test the other part" in done.stderr


def test_events_that_teach_nothing_are_reported(tmp_path):
    rule = tmp_path / "rule.yml"
    rule.write_text("title: t\nlogsource: {category: x}\ndetection: {a: {n: 5}, condition: a}\n")
    events = tmp_path / "events.jsonl"
    events.write_text("nonsense\n")
    done = run("import", "sigma", rule, "--learn", events)
    assert done.exit_code == 1
    assert "contains no events, first" in " ".join(done.stderr.split())
    events.write_text('{"n": 5}\nnonsense\n')
    done = run("import", "sigma", rule, "--learn", events, "--show")
    assert done.exit_code == 0
    assert "1 of 2 rows" in done.stderr
    assert "n = 5" in done.stdout
