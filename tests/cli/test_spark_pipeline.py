"""Pipelines that run night after night, and twice in one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

import tamis.versions as tv
from tamis.cli.spark_io import write_frame
from tests.cli.shell import run
from tests.cli.tables import rows_of, write

SUBSCRIPTIONS = [
    {"subscription_id": "adult", "expression": "age >= 18"},
    {"subscription_id": "oslo", "expression": "city = 'Oslo'"},
]
EVENTS = [{"id": "e1", "age": 20, "city": "Oslo"}, {"id": "e2", "age": 3, "city": "Rome"}]
MATCHES = [("e1", "adult"), ("e1", "oslo")]
PIPELINE = """
[all]
index = "{place}/index"
events = "{place}/events.jsonl"
event_id = "id"
[build]
subscriptions = "{place}/subscriptions.jsonl"
[match]
output = "{place}/{output}"
"""


@pytest.fixture
def place(shell_session, tmp_path) -> Path:
    """Input files; commands use the session of the test run."""
    write(tmp_path / "subscriptions.jsonl", SUBSCRIPTIONS)
    write(tmp_path / "events.jsonl", EVENTS)
    return tmp_path


def run_night(place: Path, date: str, output: str = "out", more: str = ""):
    text = PIPELINE.replace("{place}", str(place)).replace("{output}", output) + more
    (place / "pipeline.toml").write_text(text)
    return run("spark", "--config", place / "pipeline.toml", "--date", date, "run")


def versions_of(place: Path) -> list[int]:
    return tv.IndexStore(place / "index").numbers()


def test_a_second_night_is_refused_before_anything_is_published(place):
    assert run_night(place, "2026-01-30").exit_code == 0
    write(place / "subscriptions.jsonl", SUBSCRIPTIONS[:1])
    second = run_night(place, "2026-01-31")
    assert second.exit_code == 1
    assert f"{place}/out exists" in second.stderr
    assert "write {date} or {version} in its name, or set overwrite = true" in second.stderr
    assert "build:" not in second.stdout
    assert versions_of(place) == [1]
    assert rows_of(place / "out") == MATCHES
    allowed = run_night(place, "2026-01-31", more="overwrite = true\n")
    assert (allowed.exit_code, rows_of(place / "out")) == (0, MATCHES[:1])


@pytest.mark.parametrize("output", ["out", "{date}", "{version}", "{date}/{version}"])
def test_a_second_run_of_a_night_gives_the_same(place, output):
    at = place / output.replace("{date}", "2026-01-31").replace("{version}", "v00000001")
    for notes in ("", "nothing has changed: v00000001 stays the newest version"):
        done = run_night(place, "2026-01-31", output, f"rejects = '{place}/bad'")
        assert done.exit_code == 0, done.stderr
        assert notes in done.stderr
        assert rows_of(at) == MATCHES
        assert versions_of(place) == [1]
    assert len(list(place.rglob("part-*.parquet"))) == len(list(at.glob("part-*.parquet"))) + len(
        list((place / "bad").glob("part-*.parquet"))
    )


def test_a_night_has_its_own_tables(place):
    for number, date in enumerate(["2026-01-30", "2026-01-31"], start=1):
        write(place / f"events-{date}.jsonl", EVENTS[:number])
        write(place / "subscriptions.jsonl", SUBSCRIPTIONS[:number])
        more = f"""
        events = '{place}/events-{{date}}.jsonl'
        [backtest]
        output = '{place}/b-{{date}}'
        change = [['adult', 'age > 90']]
        """
        assert run_night(place, date, "{date}/{version}", more).exit_code == 0
    assert rows_of(place / "2026-01-30" / "v00000001") == MATCHES[:1]
    assert rows_of(place / "2026-01-31" / "v00000002") == MATCHES
    assert rows_of(place / "b-2026-01-31") == [("adult", "rewritten", 1, 0, 0, 1)]


def test_what_a_version_has_answered_stays(place):
    """Other events, the same version: the place is taken, and nothing is published."""
    assert run_night(place, "2026-01-30", "{version}").exit_code == 0
    second = run_night(place, "2026-01-31", "{version}")
    assert (second.exit_code, "v00000001 exists" in second.stderr) == (1, True)
    assert (versions_of(place), rows_of(place / "v00000001")) == ([1], MATCHES)
    write(place / "subscriptions.jsonl", SUBSCRIPTIONS[:1])
    assert run_night(place, "2026-01-31", "{version}").exit_code == 0
    assert rows_of(place / "v00000002") == MATCHES[:1]
    alone = run(
        "spark", "--config", place / "pipeline.toml", "--date", "2026-02-01", "run", "match"
    )
    assert (alone.exit_code, "v00000002 exists" in alone.stderr, alone.stdout) == (1, True, "")


def test_a_table_that_a_killed_run_left_is_replaced(place):
    assert run_night(place, "2026-01-31").exit_code == 0
    for file in [*(place / "out").glob("*.parquet"), place / "out" / "_SUCCESS"]:
        file.unlink()
    (place / "out" / "_temporary").mkdir()
    assert run_night(place, "2026-01-30").exit_code == 1
    assert run_night(place, "2026-01-31").exit_code == 0
    assert rows_of(place / "out") == MATCHES


def test_only_the_own_table_is_replaced(place):
    assert run_night(place, "2026-01-31").exit_code == 0
    shutil.copy(place / "events.jsonl", place / "others.jsonl")
    other = run_night(place, "2026-01-31", more=f"events = '{place}/others.jsonl'\n")
    assert (other.exit_code, "out exists" in other.stderr) == (1, True)
    common = ["--index", place / "index", "--events", place / "events.jsonl", "--event-id", "id"]
    by_hand = run("spark", "--date", "2026-01-31", "match", *common, "--output", place / "out")
    assert (by_hand.exit_code, "say --overwrite" in by_hand.stderr) == (1, True)
    (place / "out" / "notes.txt").write_text("precious")
    foreign = run_night(place, "2026-01-31")
    assert (foreign.exit_code, "is not a table" in foreign.stderr) == (1, True)


def test_a_failure_leaves_no_table_of_its_own(spark, tmp_path):
    wrong = spark.range(1).selectExpr("raise_error('broken') AS a")
    mark = "_tamis-2026-01-31-match-0123456789abcdef"
    with pytest.raises(PySparkException, match="broken"):
        write_frame(wrong, str(tmp_path / "out"), None, overwrite=False, mark=mark)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"events.jsonl": "event.jsonl"}, "[match] events: {}/event.jsonl does not exist"),
        ({"events.jsonl": "events/{date}"}, "events/2026-01-31 does not exist"),
        (
            {"events.jsonl": "mixed"},
            "mixed contains files of several formats: 1 of csv and 1 of jsonl",
        ),
        ({"events.jsonl": "strange"}, "cannot tell the format of {}/strange"),
        ({"subscriptions.jsonl": "subs"}, "[build] subscriptions: {}/subs does not exist"),
        ({"[match]": "[match]\nwith = 'title,titel'"}, "no subscription has 'titel'"),
        ({"[match]": "[match]\nwith = 'subscription_id'"}, "no subscription has 'subscription_id'"),
        ({"[build]": "[stats]\n[build]"}, "holds no version of an index"),
        ({"[match]": "[match]\nwith = 'titel'\n[diff]\nbefore = 'v00000009'"}, "'titel'"),
    ],
)
def test_a_mistake_in_a_later_step_is_found_before_the_first_one(place, wrong, said):
    write(place / "subscriptions.jsonl", [own | {"title": "T"} for own in SUBSCRIPTIONS])
    (place / "mixed").mkdir()
    (place / "mixed" / "a.csv").write_text("age\n1\n")
    write(place / "mixed" / "b.jsonl", [{"age": 1}])
    (place / "strange").write_text("age\n1\n")
    text = PIPELINE.replace("{place}", str(place)).replace("{output}", "out")
    for old, new in wrong.items():
        text = text.replace(old, new)
    (place / "pipeline.toml").write_text(text)
    refused = run("spark", "--config", place / "pipeline.toml", "--date", "2026-01-31", "run")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert said.replace("{}", str(place)) in refused.stderr
    assert not (place / "index").exists()


def test_columns_of_a_version_that_is_there(place):
    write(place / "subscriptions.jsonl", [own | {"title": "T"} for own in SUBSCRIPTIONS])
    assert run_night(place, "2026-01-30", "{date}", "with = 'title'").exit_code == 0
    assert rows_of(place / "2026-01-30") == [(*own, "T") for own in MATCHES]
    (place / "pipeline.toml").write_text(
        (place / "pipeline.toml").read_text().replace("'title'", "'titel'")
    )
    config = ["spark", "--config", place / "pipeline.toml", "--date", "2026-01-31", "run"]
    refused = run(*config, "match")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert 'did you mean "title"?' in refused.stderr
    write(place / "more.jsonl", [{"id": "new", "expression": "age > 1", "titel": "N"}])
    text = (place / "pipeline.toml").read_text().replace("subscriptions.jsonl", "more.jsonl")
    (place / "pipeline.toml").write_text(text.replace("[build]", "[build]\nupdate = true"))
    assert run(*config).exit_code == 0
    assert ("e1", "new", "N") in rows_of(place / "2026-01-31")


def test_two_steps_with_one_place(place):
    both = run_night(place, "2026-01-31", more=f"[backtest]\noutput = '{place}/out'\n")
    assert (both.exit_code, "match and backtest write to the same place" in both.stderr) == (
        1,
        True,
    )
    assert not (place / "index").exists()


def test_statistics_that_are_the_same_publish_nothing(place):
    more = "[stats]\n"
    for _ in range(2):
        assert run_night(place, "2026-01-31", "{date}", more).exit_code == 0
        assert versions_of(place) == [1, 2]
    write(place / "events.jsonl", EVENTS[:1])
    assert run_night(place, "2026-01-31", "{date}", more).exit_code == 0
    assert versions_of(place) == [1, 2, 3]


def test_an_update_that_is_run_again_publishes_nothing(place):
    run(
        "spark",
        "build",
        "--subscriptions",
        place / "subscriptions.jsonl",
        "--index",
        place / "index",
    )
    write(place / "more.jsonl", [{"subscription_id": "adult", "expression": "age > 60"}])
    update = ["spark", "build", "--index", place / "index", "--update"]
    change = ["--subscriptions", place / "more.jsonl", "--remove", "oslo"]
    for notes in ("", "nothing has changed: v00000002"):
        assert notes in run(*update, *change).stderr
        assert versions_of(place) == [1, 2]
    assert run(*update, *change[:2]).exit_code == 0  # other removals, another change
    assert versions_of(place) == [1, 2, 3]


@pytest.mark.parametrize(
    ("output", "more", "said"),
    [
        ("{day}", "", "--output has {day}; allowed: {date}, {version}"),
        ("out", "[stream]\ncheckpoint='c'\noutput='s/{date}'", "a stream has one place"),
        ("out", "[stream]\noutput='s'\ncheckpoint='{version}'", "--checkpoint is {version}"),
    ],
)
def test_names_that_cannot_be_filled_in(place, output, more, said):
    refused = run_night(place, "2026-01-31", output, more)
    assert (refused.exit_code, said in refused.stderr) == (1, True)
    assert not (place / "index").exists()


def test_a_date_is_a_date(place):
    refused = run_night(place, "31.1.2026")
    assert (refused.exit_code, "write YYYY-MM-DD" in refused.stderr) == (1, True)
