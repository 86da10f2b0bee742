"""`tamis sub`, `tamis compact` and `tamis publish`: a live index in the shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

import tamis
from tamis.live import LiveIndex, maintenance
from tamis.subscriptions import Subscribe, SubscriptionStore
from tests.cli.indexes import build_index, write_rows
from tests.cli.shell import environment, json_lines, run
from tests.live.places import by_hand
from tests.subscriptions.places import Postgres
from tests.waiting import HANG_SECONDS


@pytest.fixture
def folder(tmp_path):
    with by_hand():
        yield tmp_path / "people.live"


def change(*arguments):
    """The output of a command that succeeds, as JSON."""
    result = run("sub", *arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    return json_lines(result.stdout)


# ── one change ──────────────────────────────────────────────────────────────────────────────


def test_add_replace_renew_remove(folder):
    created = run("sub", "add", folder, "adult", "age >= 18", "--owner", "ann", "--tag", "people")
    assert created.stdout == "added adult: change 1\n"
    assert f"a new live index was created in {folder}" in created.stderr.replace("\n", "")
    lease = ("--valid-until", "2090-01-01", "--attribute", "title=Oslo", "--attribute", "level=5")
    assert change("add", folder, "oslo", "city = 'Oslo'", *lease) == [
        {"kind": "subscribe", "subscription_id": "oslo", "change": 2}
    ]
    assert change("replace", folder, "adult", "age >= 21", "--tag", "x", "--if-revision", 1)
    assert change("renew", folder, "oslo", "2091-01-01")[0]["change"] == 4
    assert change("renew", folder, "oslo", "none")[0]["kind"] == "renew"
    with SubscriptionStore.open(folder, read_only=True) as store:
        adult, oslo = store.get("adult"), store.get("oslo")
    assert (adult.expression, adult.owner, adult.tags) == ("age >= 21", "ann", ("x",))
    assert (oslo.attributes, oslo.valid_until) == ({"title": "Oslo", "level": 5}, None)
    assert change("replace", folder, "adult", "--tag", "")
    assert run("sub", "remove", folder, "adult").stdout == "removed adult: change 7\n"
    both = run("sub", "remove", folder, "oslo", "nobody")
    assert both.exit_code == 1
    assert both.stdout == "removed oslo: change 8\n"
    assert 'there is no subscription "nobody"' in both.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("add", "s", "a = 2"), 'subscription "s" exists already', "tamis sub replace"),
        (("replace", "t", "a = 2"), 'there is no subscription "t"', "tamis sub list"),
        (("remove", "t"), 'there is no subscription "t"', "tamis sub list"),
        (
            ("replace", "s", "a = 2", "--if-revision", "7"),
            "has revision 1, not 7",
            "tamis sub show",
        ),
        (("renew", "s", "2050-01-01"), "does not shorten it", "tamis sub replace --valid-until"),
        (("renew", "s", "2050-01-01"), 'subscription "s" has no end; ', "tamis sub replace"),
        (("renew", "s", "soon"), "valid_until is 'soon'", ""),
        (("add", "t", "a = 'x'"), "a = 'x'\n      ^^^", 'since subscription "s" was added'),
        (("add", "t", "a = = 1"), "a = = 1\n      ^", "1:5"),
    ],
)
def test_refusals_name_the_next_step(folder, arguments, message, hint):
    run("sub", "add", folder, "s", "a = 1")
    command, *rest = arguments
    result = run("sub", command, folder, *rest)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert hint in result.stderr
    with SubscriptionStore.open(folder, read_only=True) as store:
        assert store.last_change == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("replace", "s"),
        ("remove",),
        ("remove", "s", "t", "--if-revision", "1"),
        ("add", "s", "a = 1", "--attribute", "title"),
        ("add", "s", "a = 1", "--missing", "maybe"),
    ],
)
def test_wrong_usage(folder, arguments):
    run("sub", "add", folder, "s", "a = 1")
    command, *rest = arguments
    assert run("sub", command, folder, *rest).exit_code == 2


def test_folders_that_are_no_live_index(tmp_path, folder):
    for command in (("list",), ("show", "s"), ("export",), ("log",), ("remove", "s")):
        result = run("sub", command[0], folder, *command[1:])
        assert result.exit_code == 1
        assert "there is no live index" in result.stderr
        assert "tamis sub add" in result.stderr
    assert run("compact", folder).exit_code == run("publish", folder, "x").exit_code == 1
    assert not folder.exists()
    (tmp_path / "file").write_text("x")
    assert "is a file" in run("sub", "add", tmp_path / "file", "s", "a = 1").stderr
    saved = build_index(tmp_path)
    assert "holds a saved index" in run("sub", "add", saved, "s", "a = 1").stderr


def test_settings_of_a_new_index_stay(folder):
    created = ("--schema", "a INT", "--missing", "satisfies_negation")
    assert run("sub", "add", folder, "s", "NOT a = 1", *created).exit_code == 0
    assert 'unknown attribute "b"' in run("sub", "add", folder, "t", "b = 1").stderr
    assert (
        "was created with"
        in run("sub", "add", folder, "t", "a = 1", *created[:3], "undefined").stderr
    )
    with LiveIndex.open(folder) as live:
        assert live.match({}) == ["s"]


def test_operators(folder):
    module = ("--operators", "tests.cli.crowds")
    result = run("sub", "add", folder, "mob", "mobs(?people) AND ?people > 3", *module)
    assert result.exit_code == 0, result.output
    assert run("compact", folder, *module).exit_code == 0


def test_another_process_has_it_open(folder):
    with LiveIndex.open(folder) as live:
        live.add("s", "a = 1")
        for command in (("add", "t", "a = 2"), ("remove", "s"), ("import", "-")):
            result = run("sub", command[0], folder, *command[1:])
            assert result.exit_code == 1
            assert f"process {os.getpid()}" in result.stderr
            assert "end that process" in result.stderr
        assert [own["subscription_id"] for own in change("list", folder)] == ["s"]
        assert change("log", folder)[0]["change"] == 1


# ── reading ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def people(folder):
    soon = datetime.now(UTC) + timedelta(days=1)
    with SubscriptionStore.open(folder) as store:
        store.apply(
            [
                Subscribe("a", "x = 1", "ann", ("red",)),
                Subscribe("b", "x = 2", "bob", ("red", "blue")),
                Subscribe("c", "y = 'Oslo'", "ann", (), {}, soon),
            ]
        )
    return folder


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ((), "abc"),
        (("--tag", "red"), "ab"),
        (("--owner", "ann"), "ac"),
        (("--text", "OSLO"), "c"),
        (("--state", "waiting"), "c"),
        (("--limit", "2"), "ab"),
        (("--limit", "2", "--after", "b"), "c"),
        (("--owner", "nobody"), ""),
    ],
)
def test_list(people, filters, ids):
    result = run("sub", "list", people, *filters, "--output", "json")
    assert result.exit_code == 0
    assert "".join(own["subscription_id"] for own in json_lines(result.stdout)) == ids
    assert ("--after b" in result.stderr) == (filters == ("--limit", "2"))


def test_list_for_people(people):
    lines = run("sub", "list", people, "--tag", "blue").stdout.splitlines()
    assert lines[0].split() == ["id", "expression", "owner", "tags", "valid", "until", "revision"]
    assert lines[1].split() == ["b", "x", "=", "2", "bob", "red,", "blue", "2"]
    assert "no subscription is listed" in run("sub", "list", people, "--tag", "none").stderr


def test_show_has_the_history(people):
    change("replace", people, "a", "x = 3")
    change("remove", people, "a")
    change("add", people, "a", "x = 4")
    shown = change("show", people, "a")[0]
    assert shown["subscription"]["expression"] == "x = 4"
    assert [(own["change"], own["kind"]) for own in shown["changes"]] == [
        (6, "subscribe"),
        (5, "unsubscribe"),
        (4, "replace"),
        (1, "subscribe"),
    ]
    change("remove", people, "a")
    assert "a (ended)" in run("sub", "show", people, "a").stdout
    assert run("sub", "show", people, "nobody").exit_code == 1


def test_log(people):
    entries = change("log", people, "--after", 1)
    assert [own["change"] for own in entries] == [2, 3]
    assert entries[0]["subscription"]["tags"] == ["red", "blue"]
    lines = run("sub", "log", people).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["change", "1", "2", "3"]
    assert "no changes" in run("sub", "log", people, "--after", 3).stderr
    ahead = run("sub", "log", people, "--after", 9)
    assert ahead.exit_code == 1
    assert "ends at change 3" in ahead.stderr


def test_log_follows_until_it_is_interrupted(people):
    command = [sys.executable, "-m", "tamis", "sub", "log", people, "--output", "json", "--follow"]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True)
    try:
        assert [json.loads(reader.stdout.readline())["change"] for _ in range(3)] == [1, 2, 3]
        with SubscriptionStore.open(people) as store:
            store.apply([Subscribe("d", "x = 5")])
        assert json.loads(reader.stdout.readline())["subscription_id"] == "d"
        reader.send_signal(signal.SIGINT)
        assert reader.wait(HANG_SECONDS) == 0
    finally:
        reader.kill()
        reader.stdout.close()
        reader.wait(HANG_SECONDS)


# ── import and export ───────────────────────────────────────────────────────────────────────


def strip(subscriptions):
    """What import and export preserve."""
    return sorted(own._replace(revision=0, created=0, changed=None) for own in subscriptions)


def test_export_is_read_back_exactly(folder, tmp_path):
    end = datetime(2090, 1, 1, 12, 30, 0, 5, tzinfo=UTC)
    given = [
        Subscribe("plain", "x = 1"),
        Subscribe(
            "all", "x = 2", "ann", ("a b", "c,d"), {"title": "T", "n": [1, {"b": None}]}, None, end
        ),
    ]
    with SubscriptionStore.open(folder) as store:
        store.apply(given)
        before = strip(store.state_at(2))
    assert run("sub", "export", folder, "--to", tmp_path / "all.jsonl").exit_code == 0
    change("import", tmp_path / "other", tmp_path / "all.jsonl")
    with SubscriptionStore.open(tmp_path / "other", read_only=True) as store:
        assert strip(store.state_at(2)) == before


def test_odd_attributes_are_read_back(folder, tmp_path):
    odd = {"id": 1, "owner": "x", "tags": None, "empty": "", "attributes": {"a": 1.5}}
    with SubscriptionStore.open(folder) as store:
        store.apply([Subscribe("odd\n\u2028id", "x = 'é\"'", "", (), odd, ticket_hash=b"\x00\xff")])
        before = strip(store.state_at(1))
    exported = run("sub", "export", folder)
    assert len(exported.stdout.splitlines()) == 1
    run("sub", "import", tmp_path / "other", "-", stdin=exported.stdout)
    with SubscriptionStore.open(tmp_path / "other", read_only=True) as store:
        assert strip(store.state_at(1)) == before


def test_export_leaves_out_ended_leases(folder):
    past = datetime(2000, 1, 1, tzinfo=UTC)
    with SubscriptionStore.open(folder, clock=lambda: past) as store:
        store.apply(
            [Subscribe("old", "a = 1", valid_until="2001-01-01"), Subscribe("new", "a = 1")]
        )
    assert [own["subscription_id"] for own in json_lines(run("sub", "export", folder).stdout)] == [
        "new"
    ]
    assert run("sub", "export", folder, "--as-of", 0).stdout == ""
    assert run("sub", "export", folder, "--as-of", 9).exit_code == 1


@pytest.mark.parametrize("name", ["subs.jsonl", "subs.csv", "subs.parquet"])
def test_import_reads_every_format(folder, tmp_path, name):
    rows = [{"id": f"s{n}", "expression": f"a = {n}", "tags": "x", "title": "T"} for n in range(20)]
    path = write_rows(tmp_path / name, rows)
    result = run("sub", "import", folder, path)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split() == ["20", "20", "0", "0", "0", "20"]
    with SubscriptionStore.open(folder, read_only=True) as store:
        assert store.get("s7").tags == ("x",)
        assert store.get("s7").attributes == {"title": "T"}


ROWS = [
    {"id": "a", "expression": "x = 1"},
    {"id": "b", "expression": "x = = 1"},
    {"id": "a", "expression": "x = 2"},
    {"expression": "x = 3"},
]


def test_import_refuses_rows_and_goes_on(folder, tmp_path):
    path, rejects = write_rows(tmp_path / "subs.jsonl", ROWS), tmp_path / "rejects.jsonl"
    shown = run("sub", "import", folder, path)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[1].split() == ["4", "1", "0", "0", "3", "1"]
    assert "subs.jsonl:2: error:" in shown.stderr
    assert "x = = 1\n      ^" in shown.stderr
    assert "the id was already given in line 1" in shown.stderr
    again = run("sub", "import", folder, path, "--rejects", rejects, "--output", "json")
    assert again.exit_code == 1  # nothing was added
    summary = json_lines(again.stdout)[0]
    assert (summary["kind"], summary["added"], summary["refused"]) == ("summary", 0, 4)
    codes = [own["code"] for own in json_lines(rejects.read_text())]
    assert sorted(codes) == ["duplicate-id", "exists", "missing-key", "unexpected-token"]
    assert run("sub", "import", folder, path, "--strict", "--replace").exit_code == 1


def test_import_replaces(folder, tmp_path):
    run("sub", "import", folder, write_rows(tmp_path / "one.jsonl", ROWS[:1]))
    rows = [{"id": "a", "expression": "x = 1"}, {"id": "b", "expression": "x = 2", "owner": "ann"}]
    path = write_rows(tmp_path / "two.jsonl", rows)
    assert change("import", folder, path, "--replace")[0]["unchanged"] == 1
    rows[0]["tags"], rows[1]["expression"] = ["t"], "x = 5"
    del rows[1]["owner"]
    summary = change("import", folder, write_rows(tmp_path / "three.jsonl", rows), "--replace")[0]
    assert (summary["added"], summary["replaced"], summary["change"]) == (0, 2, 4)
    with SubscriptionStore.open(folder, read_only=True) as store:
        assert store.get("a").tags == ("t",)
        assert (store.get("b").expression, store.get("b").owner) == ("x = 5", "")


def test_import_of_nothing(folder, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    result = run("sub", "import", folder, tmp_path / "empty.jsonl")
    assert result.exit_code == 0
    assert "contains no rows" in result.stderr


# ── the whole set ───────────────────────────────────────────────────────────────────────────


def test_compact_and_publish(folder, tmp_path):
    rows = [{"id": f"s{n}", "expression": f"a = {n % 5}"} for n in range(50)]
    run("sub", "import", folder, write_rows(tmp_path / "subs.jsonl", rows))
    change("remove", folder, "s1")
    compacted = json_lines(run("compact", folder, "--output", "json").stdout)[0]
    assert (compacted["subscriptions"], compacted["parts"], compacted["change"]) == (49, 1, 51)
    published = json_lines(run("publish", folder, tmp_path / "pub", "--output", "json").stdout)[0]
    assert published == {"version": "v00000001", "subscriptions": 49, "change": 51}
    assert "v00000001" in run("publish", folder, tmp_path / "pub").stdout
    with tamis.open(tmp_path / "pub") as index:
        assert len(index.match({"a": 1})) == 9


def test_short_commands_write_no_versions(folder, monkeypatch):
    for n in range(3):
        change("add", folder, f"s{n}", "a = 1")
    assert not (folder / "CURRENT").exists()
    monkeypatch.setattr(maintenance, "FEW", 3)
    change("add", folder, "s3", "a = 1")
    assert (folder / "CURRENT").exists()
    with LiveIndex.open(folder) as live:
        assert len(live.match({"a": 1})) == 4


@pytest.fixture(scope="module")
def server():
    postgres = Postgres()
    yield postgres
    postgres.close()


def test_a_folder_remembers_its_database(folder, server, tmp_path):
    place = server.new_place()
    assert run("sub", "add", folder, "s", "a = 1", "--store", place).exit_code == 0
    assert change("add", folder, "t", "a = 2")[0]["change"] == 2
    assert [own["subscription_id"] for own in change("list", folder)] == ["s", "t"]
    assert not (folder / "subscriptions.sqlite").exists()
    other = tmp_path / "other.live"
    run("sub", "add", other, "s", "a = 1")
    refused = run("sub", "add", other, "t", "a = 1", "--store", place)
    assert refused.exit_code == 1
    assert "are in that folder, not in a database" in refused.stderr


def test_prune(people):
    change("remove", people, "a")
    assert [own["horizon"] for own in change("prune", people, "--days", 30)] == [0]
    shown = run("sub", "prune", people, "--days", 0).stdout
    assert "deleted 2 entries; states from change 4 on can be rebuilt" in " ".join(shown.split())
    assert change("prune", people, "--days", 0) == [{"deleted": 0, "horizon": 4}]
    assert run("sub", "prune", people).exit_code == 2
