"""`tamis spark`: one session per command, so few of them, each doing much."""

from __future__ import annotations

import json
import re
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis.cli.spark as cli_spark
from tamis.cli.spark_places import expect_free
from tamis.errors import InputError
from tamis.subscriptions import Subscribe, SubscriptionStore, Unsubscribe
from tests.cli.shell import run, run_process
from tests.cli.tables import rows_of, write
from tests.waiting import wait_until

SUBSCRIPTIONS = [
    {"subscription_id": "adult", "expression": "age >= 18"},
    {"subscription_id": "oslo", "expression": "city = 'Oslo' AND age < 30"},
    {"subscription_id": "bad", "expression": "age >="},
]
EVENTS = [{"id": "e1", "age": 20, "city": "Oslo"}, {"id": "e2", "age": 3}, {"id": "e3", "age": "x"}]


@pytest.fixture
def place(shell_session, tmp_path) -> Path:
    """Input files; commands use the session of the test run."""
    write(tmp_path / "subscriptions.jsonl", SUBSCRIPTIONS)
    write(tmp_path / "events.jsonl", EVENTS)
    return tmp_path


def build(place: Path, *more: str, file: str = "subscriptions.jsonl"):
    return run(
        *("spark", "build", "--subscriptions", place / file, "--index", place / "index", *more)
    )


def test_build_match_and_rejects(place):
    built = build(place, "--rejects", str(place / "rejects"))
    assert built.exit_code == 0
    assert built.stdout.split()[7:11] == ["v00000001", "2", "1", "1"]
    assert rows_of(place / "rejects")[0][:3] == ("bad", "age >=", "unexpected-token")
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    matched = run(
        *("spark", "match", *common, "--output", place / "out", "--rejects", place / "bad")
    )
    assert matched.exit_code == 0
    assert matched.stdout.split()[3:5] == ["v00000001", "2"]
    assert rows_of(place / "out") == [("e1", "adult"), ("e1", "oslo")]
    assert rows_of(place / "bad")[0][:2] == ("e3", "age")
    assert f"note: 1 value or event cannot be read; {place / 'bad'} lists them" in matched.stderr
    again = run("spark", "match", *common, "--output", place / "out")
    assert (again.exit_code, "exists" in again.stderr) == (1, True)
    misnamed = run("spark", "match", *common[:-1], "idd", "--output", place / "none")
    assert misnamed.exit_code == 1
    assert 'none of the first 3 events has an attribute "idd"' in misnamed.stderr
    shown = run("spark", "match", *common, "--kind", "by-subscription")
    assert sorted(shown.stdout.splitlines()[1:3]) == ["adult            1", "oslo             1"]
    message = (
        "note: 1 value or event of the first 1,000 events cannot be read; --rejects PATH lists all"
    )
    assert message in shown.stderr


class Tracker:
    """As Spark's: one stage, of which all tasks but one are done."""

    def __init__(self):
        self.n_asked = 0

    def getActiveStageIds(self):  # noqa: N802 - Spark's name
        self.n_asked += 1
        return [7]

    def getStageInfo(self, stage):  # noqa: N802
        return SimpleNamespace(numCompletedTasks=7, numTasks=8)


@pytest.mark.parametrize(
    ("describe", "expected"), [(None, "7/8 tasks"), (lambda: "3 batches", "3 batches")]
)
def test_long_jobs_report_progress_to_a_log(monkeypatch, capsys, describe, expected):
    monkeypatch.setattr(cli_spark, "LOG_EVERY_SECONDS", 0.001)
    tracker = Tracker()
    session = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    lines = []

    def has_line():
        lines.extend(capsys.readouterr().err.splitlines())
        return bool(lines)

    with cli_spark._progress(SimpleNamespace(info_name="build"), session, describe):
        wait_until(has_line, "a line is in the log")
    assert re.fullmatch(rf"progress: build, \d+ s: {expected}", lines[0])


DETAILED = [
    {"id": "a", "expression": "age > 10", "tags": ["u", "v"], "title": "A", "link": "http://a"},
    {"id": "b", "expression": "age > 10", "title": "B", "valid_from": "2090-01-01"},
    {"id": "c", "expression": "age > 1", "tags": ["w"], "valid_until": "2095-01-01T12:00:00"},
    {"id": "d", "expression": "age > 1", "valid_until": "2020-01-01"},
    {"id": "e", "expression": "age > 1", "valid_from": "2021", "valid_until": "2020"},
]


def test_both_commands_answer_the_same_with_the_same_columns(place):
    write(place / "details.jsonl", DETAILED)
    names = "title,link,tags,valid_from,valid_until,expression"
    assert run("build", place / "details.jsonl", "-o", place / "local.tamis").exit_code == 0
    assert build(place, file="details.jsonl").exit_code == 0
    shared = ["--with", names, "--with-event", "city", "--event-id", "id"]
    for at, hit in ((None, "ac"), ("2092-01-01", "abc"), ("2096-01-01", "ab")):
        own = [*shared, *(() if at is None else ("--at", at))]
        result = run(
            "match", place / "local.tamis", place / "events.jsonl", *own, "--output", "pairs"
        )
        local = [json.loads(line) for line in result.stdout.splitlines()]
        assert {row["subscription_id"] for row in local} == set(hit)
        matched = run(
            *("spark", "match", "--index", place / "index", "--events", place / "events.jsonl"),
            *(*own, "--output", place / "out", "--overwrite"),
        )
        assert matched.exit_code == 0, matched.stderr
        rows = pq.read_table(place / "out").to_pylist()
        for row in rows:
            row["event"] = row.pop("event_id")
            for name in ("valid_from", "valid_until"):
                # Spark's Parquet has no zone; the session's is UTC.
                row[name] = row[name] and row[name].replace(tzinfo=UTC).isoformat()
        key = lambda row: (row["event"], row["subscription_id"])  # noqa: E731
        assert sorted(rows, key=key) == sorted(local, key=key)


def test_what_is_no_table_is_not_overwritten(place):
    build(place)
    before = sorted((place / "index").rglob("*"))
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    refused = [
        run("spark", "match", *common, "--output", place / "index", "--overwrite"),
        build(place, "--rejects", str(place)),
        build(place, "--rejects", str(place / "index")),
    ]
    for result in refused:
        assert result.exit_code == 1
        assert "exists and is not a table: it is not overwritten" in result.stderr
    assert sorted((place / "index").rglob("*")) == before
    a_file = run("spark", "match", *common, "--output", place / "events.jsonl", "--overwrite")
    assert (a_file.exit_code, "events.jsonl is a file" in a_file.stderr) == (1, True)


@pytest.mark.parametrize("name", ["_index.html", ".git", "part-1.html", ".env", "_SUCCESS.txt"])
def test_a_folder_that_looks_a_little_like_a_table(tmp_path, name):
    (tmp_path / "_SUCCESS").write_text("")
    expect_free(str(tmp_path), overwrite=True)
    (tmp_path / name).write_text("precious")
    with pytest.raises(InputError, match="is not a table: it is not overwritten"):
        expect_free(str(tmp_path), overwrite=True)


def test_a_table_can_be_overwritten(place):
    build(place)
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    for kind in ("parquet", "jsonl", "csv"):
        own = ("--output", place / "out", "--output-format", kind, "--overwrite")
        assert run("spark", "match", *common, *own).exit_code == 0


def test_a_place_that_is_taken_is_said_before_anything_is_written(place):
    build(place, "--rejects", str(place / "taken"))
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    matched = run(
        *("spark", "match", *common, "--output", place / "out", "--rejects", place / "taken")
    )
    assert (matched.exit_code, "taken exists" in matched.stderr) == (1, True)
    same = run("spark", "match", *common, "--output", place / "out", "--rejects", place / "out")
    assert (same.exit_code, "name the same place" in same.stderr) == (2, True)
    assert not (place / "out").exists()


def test_rows_of_csv_with_other_fields_than_the_header_are_rejected(place):
    rows = ["big,price >= 10,000,x", "ok,price >= 1,t", "short", 'q,"a = 1\nOR b = 2",z']
    (place / "rules.csv").write_text("\n".join(["id,expression,title", *rows]))
    built = build(place, "--rejects", str(place / "rejects"), file="rules.csv")
    assert built.stdout.split()[7:10] == ["v00000001", "2", "2"]
    shown = {row["subscription_id"]: row for row in pq.read_table(place / "rejects").to_pylist()}
    assert {name: row["code"] for name, row in shown.items()} == {
        "big": "bad-csv",
        "short": "bad-csv",
    }
    assert "the 3 fields of the header: big,price >= 10,000,x" in shown["big"]["message"]
    own = run("build", place / "rules.csv", "-o", place / "own")
    assert own.stdout.split()[6:8] == ["2", "2"], own.stdout


@pytest.mark.parametrize("name", ["tamis_uneven", "tamis_attributes", "problem"])
def test_a_column_may_have_any_name(place, name):
    (place / "rules.csv").write_text(f"id,expression,{name}\na,age > 1,mine\nb,age > 2\n")
    built = build(place, file="rules.csv")
    assert built.stdout.split()[7:10] == ["v00000001", "1", "1"]
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    assert run("spark", "match", *common, "--with", name, "--output", place / "out").exit_code == 0
    assert rows_of(place / "out") == [("e1", "a", "mine"), ("e2", "a", "mine")]


REPEATED = [
    '{"id": "a", "expression": "age > 1", "title": "A", "title": "B"}',
    '{"id": "b", "expression": "age > 1", "title": "B"}',
    '{"id": "c", "expression": "age > 1", "more": {"x": 1, "x": 2}}',
]


@pytest.mark.parametrize("between", ["\n", ",\n"])
def test_rows_of_json_with_a_key_twice_are_rejected(place, between):
    text = between.join(REPEATED)
    (place / "rules.json").write_text(f"[{text}]" if "," in between else text)
    built = build(place, "--rejects", str(place / "rejects"), file="rules.json")
    assert built.stdout.split()[7:10] == ["v00000001", "1", "2"], built.stderr
    shown = [(row[0], row[2], *row[5:]) for row in rows_of(place / "rejects")]
    hint = "keep one of the two values"
    assert shown == [
        ("a", "repeated-key", 'the row has the key "title" twice', hint),
        ("c", "repeated-key", 'the row has the key "x" twice', hint),
    ]


AGE = 'age (2 subscriptions, such as "adult")'
MISSING = [
    ("match", "e.jsonl", [{"Age": 3}], f"in the first 1 event: {AGE}, but they have Age"),
    ("match", "e.jsonl", [{"age": None}] * 100, f"in the first 100 events: {AGE}; city (sub"),
    ("match", "e.jsonl", [{"city": "Oslo"}], None),
    ("match", "e.csv", ["age,city,", ",,"], None),
    ("backtest", "e.csv", ["aeg,city", "3,Oslo"], f"in the header: {AGE}, but they have aeg"),
    ("stream", "e.jsonl", [{"Age": 3}], f"in the first 1 event: {AGE}, but they have Age"),
]


@pytest.mark.parametrize(("command", "name", "rows", "said"), MISSING)
def test_attributes_that_no_event_has_are_noted(place, command, name, rows, said):
    own = [{"id": "none", "expression": "deleted IS NULL"}, *SUBSCRIPTIONS[:2]]
    write(place / "subscriptions.jsonl", own)
    assert build(place).exit_code == 0
    (place / "e").mkdir()
    path = place / "e" / name
    if name.endswith("csv"):
        path.write_text("\n".join(rows))
    else:
        write(path, rows)
    more = ["--output", place / "o", "--checkpoint", place / "c", "--once"]
    done = run(
        *("spark", command, "--index", place / "index", "--events", place / "e"),
        *(more if command == "stream" else ()),
    )
    assert done.exit_code == 0, done.stderr
    assert (said or "") in done.stderr
    assert ("missing in" in done.stderr) == (said is not None)
    assert "deleted" not in done.stderr


def test_rows_of_json_may_call_their_ids_by_either_name(place):
    rows = [{"id": 1, "expression": "a = 1"}, {"subscription_id": "two", "expression": "a = 2"}]
    write(place / "rules.jsonl", [*rows, {"subscription_id": "x", "id": 7, "expression": "a = 3"}])
    assert build(place, file="rules.jsonl").stdout.split()[7:10] == ["v00000001", "3", "0"]


def test_csv_means_what_it_means_to_match(place):
    build(place)
    (place / "events.csv").write_text("id,age,city\ne1,20,Oslo\ne2,,Oslo\n")
    run(
        *("spark", "match", "--index", place / "index", "--events", place / "events.csv"),
        *("--event-id", "id", "--output", place / "out"),
    )
    assert rows_of(place / "out") == [("e1", "adult"), ("e1", "oslo")]


def test_a_pipeline_in_one_file(place):
    config = place / "pipeline.toml"
    config.write_text(
        f"""
        [all]
        index = "{place}/index"
        events = "{place}/events.jsonl"
        event_id = "id"

        [build]
        subscriptions = "{place}/subscriptions.jsonl"
        parts = 2

        [stream]
        output = "{place}/stream"
        checkpoint = "{place}/checkpoint"
        once = true
        metrics = "{place}/metrics.jsonl"
        """
    )
    (place / "folder").mkdir()
    (place / "events.jsonl").rename(place / "folder" / "events.jsonl")
    config.write_text(config.read_text().replace("/events.jsonl", "/folder"))
    config.write_text(config.read_text() + '\nevents_format = "jsonl"\n')
    done = run("spark", "--config", config, "run")
    assert done.exit_code == 0
    assert done.stdout.split()[:3] == ["build:", "version", "subscriptions"]
    shown = done.stdout.partition("stream:")[2]
    assert shown.split() == ["batches", "matches", "rejects", "1", "2", "0"]
    again = run("spark", "--config", config, "stream")
    assert again.stdout.split() == ["batches", "matches", "rejects", "0", "0", "0"]
    assert [row[:2] for row in rows_of(place / "stream")] == [("e1", "adult"), ("e1", "oslo")]


def test_a_pipeline_stops_where_it_fails(place):
    config = place / "pipeline.toml"
    config.write_text(
        f"""
        [all]
        index = "{place}/index"
        events = "{place}/events.jsonl"
        [build]
        subscriptions = "{place}/nowhere.jsonl"
        [match]
        output = "{place}/out"
        """
    )
    result = run("spark", "--config", config, "run")
    assert (result.exit_code, "nowhere.jsonl" in result.stderr) == (1, True)
    assert not (place / "out").exists()
    unknown = run("spark", "--config", config, "run", "stream")
    assert (unknown.exit_code, "the file has: build, match" in unknown.stderr) == (2, True)
    assert "a pipeline is a file" in run("spark", "run").stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[biuld]\n", 'unknown table "biuld"'),
        ("[build]\npart = 3\n", 'did you mean "parts"?'),
        ("[all]\nindx = 'x'\n", 'did you mean "index"?'),
        ("build = 3\n", "is not a table"),
        ("[", "is not TOML"),
    ],
)
def test_a_wrong_pipeline_is_explained(place, text, said):
    (place / "pipeline.toml").write_text(text)
    result = run("spark", "--config", place / "pipeline.toml", "build")
    assert result.exit_code == 1
    assert said in result.stderr


def test_files_that_spark_does_not_read_are_reported(place):
    build(place)
    folder = place / "lake"
    (folder / "sub").mkdir(parents=True)
    write(folder / "a.jsonl", EVENTS[:1])
    write(folder / "sub" / "b.jsonl", EVENTS[1:2])
    common = ("spark", "match", "--index", place / "index", "--event-id", "id", "--events")
    matched = run(*common, folder, "--output", place / "out")
    assert matched.exit_code == 0
    assert rows_of(place / "out") == [("e1", "adult"), ("e1", "oslo")]
    said = f"1 of 2 files of {folder} are not read, such as sub/b.jsonl"
    assert said in " ".join(matched.stderr.split())
    (folder / "sub").rename(folder / "day=1")
    matched = run(*common, folder, "--output", place / "other")
    said = "are not read, such as a.jsonl: they are not in partitions"
    assert said in " ".join(matched.stderr.split())


def test_an_audit_that_compares_nothing_says_so(place):
    build(place)
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    audit = run("spark", "audit", *common, "--share", "0.0000001")
    assert (audit.exit_code, audit.stdout.split()[-2:]) == (0, ["0", "0"])
    assert "note: nothing was compared" in audit.stderr


def test_stats_backtest_diff_and_audit(place):
    build(place)
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    stats = run("spark", "stats", *common)
    assert stats.exit_code == 0, stats.stderr
    assert "age        66.7%" in stats.stdout
    backtest = run("spark", "backtest", *common)
    assert "adult            1  1.0       1.0  1.0" in backtest.stdout
    audit = run("spark", "audit", *common, "--share", "1", "--by", "spark", "--at", "2030-01-01")
    assert audit.exit_code == 0
    assert audit.stdout.split()[-1] == "0"
    write(place / "more.jsonl", [{"subscription_id": "adult", "expression": "age >= 3"}])
    updated = build(place, "--update", "--remove", "oslo", file="more.jsonl")
    assert updated.exit_code == 0
    diff = run("spark", "diff", *common, "--before", "v00000002")
    assert diff.exit_code == 1
    assert diff.stdout.splitlines()[1:3] == [
        "adult            1         2        rewritten",
        "oslo             1         0        removed",
    ]
    allowed = run("spark", "diff", *common, "--before", "v00000002", "--allow", "2", "--pairs")
    assert allowed.exit_code == 0
    assert "gained" in allowed.stdout


def test_build_and_update_from_a_store_of_subscriptions(place):
    with SubscriptionStore.open(place / "store") as store:
        store.apply([Subscribe("adult", "age >= 18"), Subscribe("oslo", "city = 'Oslo'")])
        built = build(place, file="store")
        assert (built.exit_code, built.stdout.split()[8:11]) == (0, ["v00000001", "2", "2"])
        store.apply([Unsubscribe("oslo")])
        updated = build(place, "--update", file="store")
        assert (updated.exit_code, updated.stdout.split()[8:11]) == (0, ["v00000002", "3", "1"])
        again = build(place, "--as-of", "2", file="store")
        assert again.stdout.split()[8:11] == ["v00000003", "2", "2"]
    pruned = build(place, "--as-of", "7", file="store")
    assert (pruned.exit_code, "states of changes 0 to 3" in pruned.stderr) == (1, True)
    with_remove = build(place, "--update", "--remove", "adult", file="store")
    assert (with_remove.exit_code, "Unsubscribe" in with_remove.stderr) == (1, True)
    elsewhere = build(place, "--as-of", "2")
    assert (elsewhere.exit_code, "as_of is 2" in elsewhere.stderr) == (1, True)
    settings = {"subscriptions": str(place / "store"), "index": str(place / "piped")}
    lines = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    (place / "pipeline.toml").write_text(f"[build]\n{lines}")
    piped = run("spark", "--config", place / "pipeline.toml", "run")
    assert (piped.exit_code, "v00000001" in piped.stdout) == (0, True), piped.stderr


def test_versions_and_roll_back(place):
    build(place)
    build(place, "--update", "--remove", "oslo")
    index = ["--index", place / "index"]
    listed = run("spark", "versions", *index).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["version", "v00000001", "v00000002"]
    assert [line.split()[-1] for line in listed] == ["bytes", listed[1].split()[-1], "current"]
    back = run("spark", "roll-back", *index, "--to", "v00000001")
    assert (back.exit_code, back.stdout.splitlines()[1].split()[0]) == (0, "v00000003")
    missing = run("spark", "roll-back", *index, "--to", "v00000009")
    assert (missing.exit_code, 'has no version "v00000009"' in missing.stderr) == (1, True)
    nowhere = run("spark", "versions", "--index", place / "nowhere")
    assert (nowhere.exit_code, "holds no version" in nowhere.stderr) == (1, True)


def test_a_rule_on_trial(place):
    build(place)
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    change = ["--change", "adult", "age < 18", "--change", "new", "city = 'Oslo'"]
    tried = run("spark", "backtest", *common, *change)
    assert tried.exit_code == 0, tried.stderr
    assert tried.stdout.splitlines()[:7] == [
        "subscription_id  change     n_before  n_after  n_gained  n_lost",
        "adult            rewritten  1         1        1         1",
        "new              added      0         1        1         0",
        "",
        "subscription_id  change  event_id",
        "adult            gained  e2",
        "adult            lost    e1",
    ]
    written = run("spark", "backtest", *common, *change, "--output", place / "out")
    assert written.exit_code == 0
    assert rows_of(place / "out")[1] == ("new", "added", 0, 1, 1, 0)
    assert "v00000002" not in run("spark", "versions", "--index", place / "index").stdout
    wrong = run("spark", "backtest", *common, "--change", "adult", "age <")
    assert (wrong.exit_code, 'subscription "adult"' in wrong.stderr) == (1, True)
    both = run("spark", "backtest", *common, *change, "--day", "id")
    assert (both.exit_code, "cannot be combined" in both.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["match", "--index", "nowhere", "--events", "events.jsonl"], "holds no version"),
        (["build", "--subscriptions", "no.jsonl", "--index", "i"], "cannot be read"),
    ],
)
def test_what_is_not_there_is_named(place, monkeypatch, arguments, said):
    monkeypatch.chdir(place)
    result = run("spark", *arguments)
    assert result.exit_code == 1
    assert said in result.stderr


def test_usage(place):
    assert run("spark", "build", "--index", "i").exit_code == 2
    assert run("spark", "--conf", "novalue", "build").exit_code == 2


def test_as_a_process_of_its_own(tmp_path):
    write(tmp_path / "subscriptions.jsonl", SUBSCRIPTIONS)
    done = run_process(
        *("spark", "--cores", "2", "build", "--subscriptions", tmp_path / "subscriptions.jsonl"),
        *("--index", tmp_path / "index"),
    )
    assert done.returncode == 0
    assert b"1 subscription was rejected" in done.stderr
    assert done.stdout.split()[7] == b"v00000001"


# ── formats ─────────────────────────────────────────────────────────────────────────────────


def match_rows(place: Path, events: Path, *more: str) -> list[tuple]:
    """The pairs that the events of a path give."""
    output = place / f"found-{len(list(place.glob('found-*')))}"
    common = ("--index", place / "index", "--event-id", "id", "--output", output)
    result = run("spark", "match", *common, "--events", events, *more)
    assert result.exit_code == 0, result.output
    return rows_of(output)


def test_the_format_is_found_out_from_the_files_of_a_folder(place):
    build(place)
    found = [("e1", "adult"), ("e1", "oslo")]
    for name in ("a.json", "a", "date=2026-01-01/a.ndjson"):
        folder = place / f"folder-{len(name)}"
        file = folder / name
        file.parent.mkdir(parents=True)
        write(file, EVENTS)
        (folder / "_SUCCESS").touch()
        assert match_rows(place, folder) == found
    columns = place / "columns"
    columns.mkdir()
    (columns / "b.csv").write_text("id,age,city\ne1,20,Oslo\ne2,3,\n")
    assert match_rows(place, columns) == found
    tabs = place / "tabs"
    tabs.mkdir()
    (tabs / "b.tsv").write_text("id\tage\tcity\ne1\t20\tOslo\ne2\t3\t\n")
    assert match_rows(place, tabs) == found
    (place / "e.avro").touch()
    avro = run("spark", "match", "--index", place / "index", "--events", place / "e.avro")
    assert avro.exit_code == 1
    assert "tamis spark does not read Avro files" in avro.stderr
    (columns / "c.json").touch()
    for kind in ("match", "stream"):
        more = ("--output", place / "o", "--checkpoint", place / "c")[
            : 4 if kind == "stream" else 2
        ]
        mixed = run("spark", kind, "--index", place / "index", "--events", columns, *more)
        assert mixed.exit_code == 1
        assert "contains files of several formats: 1 of csv and 1 of jsonl" in mixed.stderr
        nothing = run("spark", kind, "--index", place / "index", "--events", place / "no", *more)
        assert nothing.exit_code == 1
        assert "--events-format jsonl|csv|parquet|tsv" in nothing.stderr


def test_a_folder_of_json_is_streamed(place):
    build(place)
    folder = place / "folder"
    folder.mkdir()
    write(folder / "a.json", EVENTS)
    result = run(
        *("spark", "stream", "--index", place / "index", "--events", folder, "--event-id", "id"),
        *("--output", place / "out", "--checkpoint", place / "memory", "--once"),
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.split()[3:5] == ["1", "2"]


def test_arrays_of_json(place):
    (place / "subscriptions.json").write_text(json.dumps(SUBSCRIPTIONS, indent=1))
    assert build(place, file="subscriptions.json").stdout.split()[8:10] == ["2", "1"]
    folder = place / "folder"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps([*EVENTS[:1], {"id": "e9"}], indent=1))
    write(folder / "b.json", EVENTS[1:])
    assert match_rows(place, folder) == [("e1", "adult"), ("e1", "oslo")]
    (folder / "a.json").write_text('[{"id": "e1"}\n{"id": "e2"}]')
    broken = run("spark", "match", "--index", place / "index", "--events", folder)
    assert broken.exit_code == 1
    assert "begins as a JSON array and cannot be read from line 2 on" in broken.stderr


def test_files_of_another_kind_are_recognised(place):
    build(place)
    text = place / "text.jsonl"
    text.write_text("id,age\ne1,20\ne2,30\n")
    common = ("--index", place / "index", "--events")
    for result in (run("spark", "match", *common, text), build(place, file="text.jsonl")):
        assert result.exit_code == 1
        assert "it seems to be comma-separated text (CSV)" in result.stderr
    swapped = run("spark", "match", "--index", text, "--events", place / "index")
    assert swapped.exit_code == 1
    (place / "empty.jsonl").touch()
    assert "contains no subscriptions" in build(place, file="empty.jsonl").stderr


def test_a_build_of_which_every_row_is_rejected_publishes_nothing(place):
    write(place / "bad.jsonl", SUBSCRIPTIONS[2:])
    result = build(place, file="bad.jsonl")
    assert result.exit_code == 1
    assert "no version was published: the only subscription was rejected" in result.stderr
    assert 'such as subscription "bad": ' in result.stderr
    assert build(place).stdout.split()[7] == "v00000001"


def test_what_fails_in_spark_is_said_without_java(place):
    build(place)
    (place / "no.parquet").write_text("this is not Parquet")
    broken = ("--index", place / "index", "--events", place / "no.parquet")
    result = run("spark", "match", *broken)
    assert result.exit_code == 1
    assert "\n\tat " not in result.output
    assert len(result.stderr.splitlines()) <= 2
    with pytest.raises(Exception, match=r"(?i)parquet"):
        run("spark", "--debug", "match", *broken)


def test_what_is_unused_misspelt_missing_or_unknown_is_noted(place):
    built = build(place, "--schema", "age INT, city STRING, town STRING")
    unused = "note: no subscription in the index uses town, which the schema declares. Correct"
    assert unused in built.stderr
    more = {"two": "city = 'Bergen'", "typo": "City = 'Oslo'"}
    rows = [{"subscription_id": name, "expression": text} for name, text in more.items()]
    write(place / "more.jsonl", rows)
    updated = build(place, "--update", "--remove", "Oslo", file="more.jsonl")
    removed, misspelt = updated.stderr.splitlines()
    assert removed.startswith(
        'note: an id to remove belongs to no subscription: "Oslo"; nothing was'
    )
    assert 'City (subscription "typo") looks like city (2 subscriptions)' in misspelt
    pq.write_table(pa.table({"age": ["20"], "town": ["Oslo"]}), place / "few.parquet")
    common = ["--index", place / "index", "--events", place / "few.parquet"]
    missing, unfit, unread = run("spark", "match", *common).stderr.splitlines()
    assert "2 attributes that subscriptions use are missing in the columns of the events" in missing
    assert "of another type than the index reads: age is string, not integer" in unfit
    assert unread.startswith("note: 1 value or event of the first 1,000 events cannot be read")
