"""`tamis match` of a live index, and `--follow`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

import tamis
from tamis.live import Follower, LiveIndex
from tests.cli.indexes import EVENTS, MATCHES, build_index, in_order, write_rows
from tests.cli.shell import environment, json_lines, run
from tests.live.places import by_hand
from tests.waiting import HANG_SECONDS, wait_until


@pytest.fixture
def live(tmp_path):
    with by_hand(), LiveIndex.open(tmp_path / "people.live") as index:
        index.add("s", "a = 1", tags=["x"], attributes={"title": "S"})
        yield index


@pytest.fixture
def folder(live, tmp_path):
    return tmp_path / "people.live"


@contextmanager
def following(*arguments, stdin=subprocess.PIPE):
    """A process of `tamis match --follow`; it is ended by the caller, or killed."""
    command = [sys.executable, "-m", "tamis", "match", *map(str, arguments), "--follow"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=HANG_SECONDS)


def say(process, event):
    process.stdin.write(json.dumps(event).encode() + b"\n")
    process.stdin.flush()


def hear(process):
    return json.loads(process.stdout.readline())["matches"]


# ── without --follow ────────────────────────────────────────────────────────────────────────


def test_answers_are_as_of_the_last_change(live, folder):
    live.compact()  # saves a version
    live.add("t", "a = 1")
    live.remove("s")
    assert json_lines(run("match", folder, stdin='{"a": 1}').stdout)[0]["matches"] == ["t"]
    with tamis.open(folder) as index:
        assert isinstance(index, Follower)
        assert index.match({"a": 1}) == ["t"]
    with tamis.open(folder, version=1) as index:
        assert index.match({"a": 1}) == ["s"]
    shown = json_lines(
        run("explain", folder, "t", "--event", '{"a": 1}', "--output", "json").stdout
    )
    assert shown[0]["matches"] is True
    assert run("explain", folder, "s", "--event", "{}").exit_code == 1


def test_stats_and_verify(live, folder):
    live.compact()
    live.add("t", "a = 2")
    stats = json_lines(run("stats", folder, "--output", "json").stdout)[0]
    assert (stats["change"], stats["subscriptions"], len(stats["parts"])) == (2, 2, 2)
    assert run("stats", folder).stdout.split()[:3] == ["change", "subscriptions", "parts"]
    verified = run("verify", folder)
    assert verified.exit_code == 0
    assert "2 subscriptions" in verified.stdout
    (folder / "key").write_text("0123456789abcdef")
    assert "not signed" in run("verify", folder, "--key", folder / "key").stderr
    part = max((folder / "parts").rglob("*.*"), key=lambda file: file.stat().st_size)
    part.write_bytes(part.read_bytes()[:-9] + b"damaged!!")
    assert run("verify", folder).exit_code == 1


def test_counts_and_columns_of_a_live_index(live, folder):
    counted = run("match", folder, "--counts", "subscription", stdin='{"a": 1}\n{"a": 2}\n')
    assert json_lines(counted.stdout)[0]["matches"] == 1
    titled = json_lines(run("match", folder, "--with", "title", stdin='{"a": 1}').stdout)[0]
    assert titled["with"] == {"s": {"title": "S"}}


# ── with --follow ───────────────────────────────────────────────────────────────────────────


def test_each_event_sees_the_changes_before_it(live, folder):
    with following(folder) as process:
        say(process, {"a": 1})
        assert hear(process) == ["s"]
        live.add("t", "a = 1 AND b = 2", attributes={"link": "t"})
        say(process, {"a": 1, "b": 2})
        assert sorted(hear(process)) == ["s", "t"]
        live.remove("s")
        live.compact()
        say(process, {"a": 1, "b": 2})
        assert hear(process) == ["t"]
        output, errors = process.communicate(b'{"a": 2}', timeout=HANG_SECONDS)  # and the end
        assert json.loads(output)["matches"] == []
        assert process.returncode == 0, errors


def test_options_outlive_what_they_name(live, folder):
    options = (
        "--subset",
        "s",
        "--with",
        "title",
        "--output",
        "tsv",
        "--event-id",
        "id",
        "--top",
        "3",
    )
    with following(folder, *options) as process:
        say(process, {"id": "e1", "a": 1})
        assert process.stdout.readline() == b"e1\ts\tS\n"
        live.replace("s", attributes={})
        say(process, {"id": "e2", "a": 1})
        assert process.stdout.readline() == b"e2\ts\t\n"
        live.remove("s")
        say(process, {"id": "e3", "a": 1})
        live.add("s", "a = 1", attributes={"title": "again"})
        say(process, {"id": "e4", "a": 1})
        assert process.stdout.readline() == b"e4\ts\tagain\n"


def test_an_interrupt_ends_it_well(live, folder):
    with following(folder, "--output", "pairs") as process:
        say(process, {"a": 1})
        assert json.loads(process.stdout.readline()) == {"event": 1, "subscription_id": "s"}
        say(process, [])
        process.stdin.write(b'{"a": 1')  # half an event
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 0
        errors = process.stderr.read().decode()
        assert "1 line without an event was skipped" in errors
        assert "Traceback" not in errors


def test_a_growing_file(live, folder, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n')
    with following(folder, path, stdin=subprocess.DEVNULL) as process:
        assert hear(process) == ["s"]
        with path.open("a") as file:
            file.write('{"a": ')
            file.flush()
            live.add("t", "a = 2")
            file.write("2}\n")
        assert hear(process) == ["t"]
        path.rename(tmp_path / "events.1")
        path.write_text('{"a": 1}\n{"a": 2}\n')
        assert [hear(process), hear(process)] == [["s"], ["t"]]
        path.write_text('{"a": 3}\n')
        assert hear(process) == []
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 0
        errors = process.stderr.read().decode()
        assert errors.count("was replaced by another file") == 1
        assert errors.count("was truncated") == 1


def test_a_growing_file_of_csv_has_one_header(live, folder, tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("a,b\n1,2\n")
    with following(folder, path, stdin=subprocess.DEVNULL) as process:
        assert hear(process) == ["s"]
        path.unlink()
        (tmp_path / "next").write_text("a,b\n1,3\n2,3\n")
        os.replace(tmp_path / "next", path)
        assert [hear(process), hear(process)] == [["s"], []]
        (tmp_path / "next").write_text("b,a\n1,3\n")
        os.replace(tmp_path / "next", path)
        assert process.wait(HANG_SECONDS) == 1
        assert b"has another header" in process.stderr.read()


def test_rejects_are_written_as_they_come(live, folder, tmp_path):
    rejects = tmp_path / "rejects.jsonl"
    with following(folder, "--rejects", rejects) as process:
        say(process, {"a": "x"})
        assert hear(process) == []
        wait_until(lambda: rejects.read_text().endswith("\n"), "a reject is written")
        assert json_lines(rejects.read_text())[0]["attribute"] == "a"


def test_follow_of_an_index_that_does_not_change(tmp_path):
    index = build_index(tmp_path)
    events = write_rows(tmp_path / "events.jsonl", EVENTS)
    with events.open("rb") as stdin, following(index, stdin=stdin) as process:
        output, errors = process.communicate(timeout=HANG_SECONDS)
        assert in_order(json_lines(output.decode())) == MATCHES
        assert process.returncode == 0, errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-", "--counts", "event"), "--counts cannot be combined with --follow"),
        (("events.parquet",), "--follow reads lines"),
        (("events.jsonl.gz",), "compressed"),
    ],
)
def test_what_follow_refuses(folder, arguments, message):
    result = run("match", folder, *arguments, "--follow")
    assert result.exit_code == 2
    assert message in result.stderr
