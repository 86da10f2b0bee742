"""`tamis remote` against a server in another process."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.broker.match_server import MatchServer
from tamis.broker.rights import LOCAL
from tamis.cli import remote_events
from tamis.client import LostHistory, Match, Matches, Missed
from tests.cli.shell import json_lines, run
from tests.server.processes import ServerProcess, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("remote") / "server"


@pytest.fixture(scope="module")
def secrets(folder) -> dict[str, str]:
    """Keys by owner, made before the server starts."""
    with MatchServer.open(folder) as server:
        keys = server.broker.keys
        roles = ["publish", "subscribe", "read"]
        return {
            "ann": keys.create(LOCAL, "ann", roles).secret.reveal(),
            "bob": keys.create(LOCAL, "bob", roles).secret.reveal(),
        }


@pytest.fixture(scope="module")
def server(folder, secrets):
    with serving(folder) as running:
        yield running


@pytest.fixture(autouse=True)
def access(server: ServerProcess, secrets, monkeypatch, tmp_path) -> None:
    """What the shell of ann has in its environment."""
    monkeypatch.setenv("TAMIS_REMOTE", server.url)
    monkeypatch.setenv("TAMIS_KEY", secrets["ann"])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("TAMIS_TICKET", raising=False)


def remote(*arguments: str, stdin: str | None = None, code: int = 0) -> str:
    """The standard output of a command."""
    done = run("remote", *arguments, stdin=stdin)
    assert done.exit_code == code, done.output
    return done.stdout


def private(path: Path, text: str) -> str:
    path.touch(mode=0o600)
    path.write_text(f"{text}\n")
    return str(path)


def test_a_life(tmp_path, monkeypatch):
    ticket = remote("subscribe", "age >= 18", "--id", "life", "--tag", "t", "--lease", "600")
    assert ticket.startswith("tkt_")
    shown = ("--ticket-file", private(tmp_path / "ticket", ticket.strip()))
    (row,) = json_lines(remote("get", "life", "--output", "json"))
    assert (row["owner"], row["tags"], row["expression"]) == ("ann", ["t"], "age >= 18")
    assert "ticket" not in row
    refused = run("remote", "replace", "life", "age >= 21")
    assert refused.exit_code == 1
    assert "ticket" in refused.stderr
    assert "revision" in remote("replace", "life", "age >= 21", *shown)
    stale = run("remote", "replace", "life", "--tag", "", "--if-revision", "1", *shown)
    assert stale.exit_code == 1
    monkeypatch.setenv("TAMIS_TICKET", ticket.strip())
    assert remote("renew", "life", "--lease", "6000").startswith("renewed life")
    assert "life" in remote("list", "--tag", "t")
    assert remote("unsubscribe", "life") == "ended life\n"
    gone = run("remote", "get", "life")
    assert gone.exit_code == 1
    assert 'there is no subscription "life"' in gone.stderr


def test_errors_have_their_place():
    wrong = run("remote", "subscribe", "age >= = 18")
    assert wrong.exit_code == 1
    assert "age >= = 18\n" in wrong.stderr
    assert "^" in wrong.stderr
    assert run("remote", "replace", "x").exit_code == 2


def test_publish_and_read(tmp_path):
    remote("subscribe", "p >= 18", "--id", "read")
    events = tmp_path / "events.jsonl"
    events.write_text('{"p": 20}\n\nnothing\n{"p": 3}\n{"p": 30}\n')
    done = run("remote", "publish", str(events), "--run", "one")
    assert done.exit_code == 0
    assert "error: line 3: not JSON" in done.stderr
    assert done.stdout.split("\n")[1].split() == ["3", "2", "2", "1"]
    again = json_lines(remote("publish", str(events), "--run", "one", "--output", "json"))
    first = again[0]["first_event"]
    found = json_lines(remote("read", "read", "--limit", "1"))
    assert [own["content"] for own in found] == [{"p": 20}]  # published once
    assert found[0]["event"] == first
    reached = remote("ack", "read", found[0]["cursor"])
    assert reached.strip() == found[0]["cursor"]
    rest = json_lines(remote("read", "read", "--ack"))
    assert [own["content"] for own in rest] == [{"p": 30}]
    assert remote("read", "read") == ""
    assert len(json_lines(remote("read", "read", "--consumer", "other"))) == 2
    ids = remote("publish", "--ids", stdin='{"p": 40}\n{"p": 1}\n')
    assert [line.split("\t")[1:] for line in ids.splitlines()] == [["read"], []]
    assert run("remote", "publish", "--strict", stdin="nothing\n{}").exit_code == 1
    assert run("remote", "publish", stdin="nothing").exit_code == 1
    assert run("remote", "publish", str(tmp_path / "none")).exit_code == 1


ARRAY = """[
  {"name": "Ødegård", "n": 1},
  {
    "n": 12345678901234567890123,
    "name": "a \\n b"
  },
  17,
  {"n": 3}
]
"""


@pytest.mark.parametrize("ending", ["json", "json.gz", "json.zst", "txt"])
def test_an_array_over_several_lines_is_published_whole(tmp_path, ending):
    file = tmp_path / f"events.{ending}"
    text = ARRAY.encode()
    codec = {"gz": "gzip", "zst": "zstd"}.get(ending.rpartition(".")[2])
    if codec is None:
        file.write_bytes(text)
    else:
        with pa.CompressedOutputStream(str(file), codec) as sink:
            sink.write(text)
    (done,) = json_lines(remote("publish", str(file), "--output", "json"))
    assert done["accepted"] == 3
    assert [own["line"] for own in done["rejected"]] == [7]
    (done,) = json_lines(remote("publish", "--output", "json", stdin=ARRAY))
    assert done["accepted"] == 3


@pytest.mark.parametrize("ending", ["csv.gz", "tsv", "pq", "json", "jsonl.zst"])
def test_files_of_every_format_are_imported(tmp_path, ending):
    file, name = tmp_path / f"rows.{ending}", f"import-{ending}"
    kind, _, packing = ending.partition(".")
    row = {"id": name, "expression": "imported_n > 3"}
    if kind == "pq":
        pq.write_table(pa.table({key: [value] for key, value in row.items()}), file)
    else:
        delimiter = "\t" if kind == "tsv" else ","
        lines = [delimiter.join(row), delimiter.join(row.values())]
        texts = {"json": json.dumps([row], indent=1), "jsonl": json.dumps(row)}
        text = texts.get(kind, "\n".join(lines)).encode()
        codec = {"gz": "gzip", "zst": "zstd"}.get(packing)
        with pa.output_stream(str(file), compression=codec) as sink:
            sink.write(text)
    done = run("remote", "import", str(file), "--results", str(tmp_path / "results"))
    assert done.exit_code == 0, done.output
    assert name in remote("list")


@pytest.mark.parametrize("ending", ["arrow", "avro", "feather.gz"])
def test_formats_that_servers_do_not_take_are_an_error(tmp_path, ending):
    file = tmp_path / f"rows.{ending}"
    file.write_bytes(b"Obj\x01")
    done = run("remote", "import", str(file))
    assert done.exit_code == 1
    assert "a server does not read A" in done.stderr
    assert "JSON, CSV, Parquet, TSV are read" in done.stderr


def test_a_broken_array_says_where_and_what_was_published(monkeypatch):
    done = run("remote", "publish", stdin='[{"n": 1},\n{"n": 2},\n{"n"')
    assert done.exit_code == 1
    assert "standard input is not a JSON array: line 3" in done.stderr
    assert "nothing was published" in done.stderr
    monkeypatch.setattr(remote_events, "BATCH_LINES", 2)
    done = run("remote", "publish", stdin='[{"n": 1},\n{"n": 2},\n{"n"')
    assert done.exit_code == 1
    assert "2 events before it were published" in done.stderr


def test_a_file_of_other_things_is_an_error(tmp_path):
    file = tmp_path / "events.csv"
    file.write_text("name,age\nann,3\nbob,4\n")
    done = run("remote", "publish", str(file))
    assert done.exit_code == 1
    assert "it seems to be comma-separated text (CSV): convert it to JSON lines" in done.stderr
    mostly = run("remote", "publish", stdin='x\ny\n{"n": 1}\n')
    assert mostly.exit_code == 1
    assert "most lines of standard input are not events: one JSON object per line" in mostly.stderr
    assert run("remote", "publish", stdin='x\n{"n": 1}\n').exit_code == 0
    file.write_bytes(b"PAR1....")
    done = run("remote", "publish", str(file))
    assert done.exit_code == 1
    assert "is a Parquet file, not JSON lines" in done.stderr
    assert "--format" not in done.stderr


@pytest.mark.parametrize("text", ["", "\n \n", "[]"])
def test_a_file_without_events_is_noted(text):
    done = run("remote", "publish", stdin=text)
    assert done.exit_code == 0
    assert "standard input has no events: nothing was published" in done.stderr


def test_ignored_values_are_in_every_output():
    remote("subscribe", "ignored_n > 3", "--id", "ignoring")
    text = '{"ignored_n": "x"}\n{"ignored_n": 4}\n'
    done = run("remote", "publish", stdin=text)
    assert "note: 1 value of ignored_n was not read" in done.stderr
    (done,) = json_lines(remote("publish", "--output", "json", stdin=text))
    (own,) = done["ignored_values"]
    assert (own["attribute"], own["count"], own["example"]) == ("ignored_n", 1, "'x'")


def test_values_that_were_not_read_are_noted_for_questions():
    remote("subscribe", "asked_n > 3 AND asked_m = 1", "--id", "noting")
    done = run("remote", "match", '{"asked_n": "x", "asked_m": 1}')
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "note: 1 value of asked_n was not read and treated as missing" in done.stderr
    twice = run("remote", "match", '{"asked_n": 4, "asked_n": 5, "asked_m": 1}')
    assert twice.stdout == "noting\n"
    assert 'the event has the key "asked_n" twice' in twice.stderr
    shown = remote("explain", "noting", "--event", '{"asked_n": "x"}')
    assert "undefined: asked_n > 3  (asked_n is missing; asked_n is 'x', not of type" in shown
    assert "it would match if:\n  asked_n > 3\n  asked_m = 1\n" in shown


def test_read_follows_the_cursor_over_short_pages(monkeypatch):
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    matches = [Match(n, moment, 1, ("long",), {"n": n}, f"e:{n}") for n in (7, 8)]
    lost = (LostHistory("other", "its types have changed"),)
    pages = {
        None: Matches((), "e:3", Missed(1, 2), False, lost),
        "e:3": Matches((), "e:6", None, False, lost),
        "e:6": Matches((matches[0],), "e:7", None, False),
        "e:7": Matches((matches[1],), "e:9", None, True),
    }
    asked = []

    def read(*_: object, after: str | None, limit: int, wait: float, **__: object) -> Matches:
        asked.append((after, limit, wait > 0))
        return pages[after]

    monkeypatch.setattr("tamis.client.Client.matches", read)
    done = run("remote", "read", "long", "--wait", "60", "--limit", "9")
    assert [own["event"] for own in json_lines(done.stdout)] == [7, 8]
    assert asked == [(None, 9, True), ("e:3", 9, True), ("e:6", 9, True), ("e:7", 8, False)]
    assert done.stderr.splitlines() == [
        "note: events 1 to 2 were removed by retention before they were read",
        "note: the history of other cannot be read: its types have changed",
    ]
    asked.clear()
    assert len(json_lines(remote("read", "long", "--limit", "1"))) == 1
    assert len(asked) == 3


def test_every_accepted_event_can_be_printed():
    remote("subscribe", "odd = 1", "--id", "odd")
    large, surrogate = f'{{"odd": 1, "x": {10**400}}}', r'{"odd": 1, "x": "\ud800"}'
    texts = ['{"odd": 1, "x": 1E+400}', large, surrogate, '{"odd": 1, "x": "\u2028"}']
    remote("publish", stdin="\n".join(texts))
    printed = remote("read", "odd").splitlines()
    contents = [line.partition('"content": ')[2][:-1] for line in printed]
    assert contents == [*texts[:3], r'{"odd": 1, "x": "\u2028"}']


def test_large_files_go_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.cli.remote_events.BATCH_LINES", 2)
    done = json_lines(remote("publish", "--output", "json", stdin="{}\n{}\nx\n{}\n{}\n"))
    assert [own["accepted"] for own in done] == [2, 1, 1]
    assert [own["line"] for batch in done for own in batch["rejected"]] == [3]


def test_follow_ends_after_a_count_or_with_ctrl_c(monkeypatch):
    remote("subscribe", "f = 1", "--id", "followed")
    remote("publish", stdin='{"f": 1}\n{"f": 1}')
    found = json_lines(remote("follow", "followed", "--after", "0", "--count", "2", "--ack"))
    assert [own["content"] for own in found] == [{"f": 1}, {"f": 1}]
    assert remote("read", "followed") == ""
    first = found[0]["cursor"]

    def interrupt(self, *_: object, **__: object):
        yield self.matches("followed", after="0").matches[0]
        raise KeyboardInterrupt

    monkeypatch.setattr("tamis.client.Client.stream", interrupt)
    (shown,) = json_lines(remote("follow", "followed"))  # Ctrl-C is no error
    assert shown["cursor"] == first


def test_questions():
    remote("subscribe", "q >= 18", "--id", "asked", "--tag", "q")
    assert remote("match", '{"q": 20}', "--tag", "q") == "asked\n"
    assert remote("match", "-", stdin='{"q": 2}') == ""
    assert "it would match if q >= 18" in remote("explain", "asked", "--event", '{"q": 2}')
    assert remote("explain", "q < 3", "--event", '{"q": 2}', "--draft").startswith("matches: q < 3")
    assert "equal: asked" in remote("check", "q >= 18")
    assert "error" in remote("check", "q >= = 18", code=1)
    assert run("remote", "match", "[]").exit_code == 1
    closed = run("remote", "forecast", "q >= 18")  # ann may not read all events
    assert closed.exit_code == 1
    assert "archive" in closed.stderr


def test_import_and_export(tmp_path):
    rows = [{"id": f"i{n}", "expression": f"i = {n}", "tags": ["imported"]} for n in range(3)]
    rows.append({"id": "bad", "expression": "i ="})
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    results = tmp_path / "results.jsonl"
    done = run("remote", "import", str(file), "--results", str(results))
    assert done.exit_code == 0, done.output
    assert "row 3" in done.stderr or "row 4" in done.stderr
    assert results.stat().st_mode & 0o077 == 0
    kept = json_lines(results.read_text())
    assert [own["status"] for own in kept] == ["made"] * 3 + ["refused"]
    assert all(own["ticket"].startswith("tkt_") for own in kept[:3])
    assert "tkt_" not in done.output
    exported = json_lines(remote("export", "--tag", "imported"))
    assert [own["expression"] for own in exported] == ["i = 0", "i = 1", "i = 2"]
    assert run("remote", "import", str(file), "--results", str(results)).exit_code == 1
    assert run("remote", "import", "-", "--strict", stdin='{"id": "bad"}').exit_code == 1


def test_channels(tmp_path):
    for name in ("c1", "c2"):
        remote("subscribe", "c = 1", "--id", name)
    remote("channel", "create", "both", "c1")
    assert remote("channel", "add", "both", "c2") == "added 1 to both\n"
    assert "both" in remote("channel", "list")
    remote("publish", stdin='{"c": 1}')
    (found,) = json_lines(remote("read", "both", "--channel", "--ack"))
    assert found["subscriptions"] == ["c1", "c2"]
    assert remote("channel", "remove", "both", "c2") == "removed 1 from both\n"
    assert remote("channel", "delete", "both") == "deleted both\n"
    assert run("remote", "read", "both", "--channel").exit_code == 1


# ── keys ────────────────────────────────────────────────────────────────────────────────────


def test_the_key_comes_from_a_file_or_the_configuration(tmp_path, monkeypatch, secrets, server):
    remote("subscribe", "k = 1", "--id", "of-ann")
    key = private(tmp_path / "key", secrets["bob"])
    hidden = run("remote", "get", "of-ann", "--key-file", key)
    assert hidden.exit_code == 1
    monkeypatch.delenv("TAMIS_KEY")
    monkeypatch.delenv("TAMIS_REMOTE")
    config = tmp_path / "config" / "tamis"
    config.mkdir(parents=True)
    own = private(tmp_path / "own", secrets["ann"])
    (config / "remote.toml").write_text(f'server = "{server.url}"\nkey_file = "{own}"\n')
    assert "of-ann" in remote("get", "of-ann")
    (config / "remote.toml").write_text('key = "secret"\n')
    wrong = run("remote", "list")
    assert wrong.exit_code == 1
    assert "known are: server, key_file" in wrong.stderr
    assert "secret" not in wrong.output


def test_a_folder_needs_no_key(folder, monkeypatch, tmp_path):
    monkeypatch.delenv("TAMIS_KEY")
    remote("list", "--server", str(folder))
    nothing = run("remote", "list", "--server", str(tmp_path))
    assert nothing.exit_code == 1
    assert "tamis serve" in nothing.stderr


def test_files_of_secrets_must_be_private(tmp_path, secrets):
    key = tmp_path / "key"
    key.write_text(secrets["ann"])
    key.chmod(0o644)
    refused = run("remote", "list", "--key-file", str(key))
    assert refused.exit_code == 1
    assert "chmod 600" in refused.stderr
    key.chmod(0o600)
    key.write_text("two\nlines")
    assert "has no key" in run("remote", "list", "--key-file", str(key)).stderr


def test_secrets_are_never_shown(monkeypatch, secrets):
    wrong = secrets["ann"][:-4] + "AAAA"
    monkeypatch.setenv("TAMIS_KEY", wrong)
    monkeypatch.setenv("TAMIS_TICKET", "tkt_secret")
    for arguments in (("list",), ("get", "x"), ("replace", "x", "a = 1")):
        done = run("remote", *arguments)
        assert done.exit_code == 1
        assert "secret" not in done.output
        assert wrong[-20:] not in done.output
    monkeypatch.setenv("TAMIS_REMOTE", "http://127.0.0.1:9")
    done = run("remote", "get", "x")
    assert (done.exit_code, wrong in done.output) == (1, False)


def test_no_option_takes_a_secret():
    import click

    from tamis.cli import main
    from tests.test_docs import commands_of

    own = [command for name, command in commands_of(main) if name.startswith("tamis remote")]
    names = {option for each in own for one in each.params for option in one.opts}
    assert not names & {"--key", "--ticket", "--password"}
    assert all(isinstance(each, click.Command) for each in own)
