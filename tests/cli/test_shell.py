"""Real processes: pipes, signals of the terminal, encodings, the commands as a whole."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from tests.cli.shell import environment, run, run_process
from tests.waiting import HANG_SECONDS


def test_version():
    assert run("--version").output == f"tamis {tamis.__version__}\n"
    assert run_process("--version").stdout.decode() == f"tamis {tamis.__version__}\n"


def test_help_names_every_command():
    shown = run("--help").output
    commands = ("build", "check", "demo", "dot", "eval", "explain", "match", "stats")
    assert all(f"  {name} " in shown for name in commands)


@pytest.mark.parametrize("arguments", [[], ["chekc"], ["--unknown"]])
def test_usage(arguments):
    assert run(*arguments).exit_code == 2


def test_a_pipe_that_closes_early_is_no_failure(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f'{{"id": {n}, "expression": "a = "}}\n' for n in range(5000)))
    for output in ("table", "json"):
        command = (
            f"{sys.executable} -m tamis check {path} --output {output} | head -n 1; "
            'exit "${PIPESTATUS[0]}"'
        )
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            env=environment(),
            timeout=HANG_SECONDS,
            check=True,
        )
        assert len(done.stdout.splitlines()) == 1
        assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_said():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tamis", "eval", "a = 1", "--event", "{}"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=HANG_SECONDS,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode() == "error: cannot go on: No space left on device\n"


def test_ascii_output_does_not_fail():
    event = '{"a": "é"}'
    done = run_process("eval", "a = 'é'", "--event", event, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.startswith(b"true")
    assert run_process("demo", "--no-spark", PYTHONIOENCODING="ascii").returncode == 0


def test_closed_standard_streams():
    for closed in ("<&-", ">&-", "2>&-"):
        command = f"{sys.executable} -m tamis check - {closed}"
        done = subprocess.run(
            ["bash", "-c", command],
            input=b'{"id": 1, "expression": "a = "}\n',
            capture_output=True,
            env=environment(),
            timeout=HANG_SECONDS,
            check=False,
        )
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr


def test_binary_standard_input_in_a_real_pipe():
    done = run_process("check", "-", stdin=b"\x00\x01" * 1000)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: stdin is not text")


def read_terminal(arguments: list[str], **variables: str) -> str:
    """What a command shows on a terminal."""
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tamis", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment(**{"TERM": "xterm", **variables}),
    )
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(screen, 65536):
            shown += part
    except OSError:  # Linux says so when the last writer is gone
        pass
    finally:
        os.close(screen)
        process.wait(HANG_SECONDS)
    return shown.decode()


def test_colours_on_a_terminal_unless_unwanted():
    arguments = ["eval", "a = 1", "--event", '{"a": 1}']
    assert "\x1b[32m" in read_terminal(arguments)
    assert "\x1b[32m" not in read_terminal(arguments, NO_COLOR="1")
    assert "\x1b[32m" not in read_terminal(arguments, TERM="dumb")


ODD_ID = "a\x1b[31mb\x07c\x9bd\x7fe\tf\\g\nh\u2028i"


@pytest.fixture
def odd_index(tmp_path):
    path = tmp_path / "odd.tamis"
    tamis.build({ODD_ID: "a = 1"}, schema="a INT").save(path)
    return path


def test_ids_come_through_a_pipe_as_they_are(odd_index):
    event = json.dumps({"a": 1, "id": ODD_ID}).encode()
    done = run_process("match", odd_index, "--output", "tsv", "--event-id", "id", stdin=event)
    assert not has_unseen(done.stdout.decode())
    spelled = done.stdout.decode().removesuffix("\n").split("\t")
    assert [unescape(name) for name in spelled] == [ODD_ID, ODD_ID]
    assert spelled[0] == r"a\u001b[31mb\u0007c\u009bd\u007fe\tf\\g\nh\u2028i"
    for output in ("json", "pairs"):
        done = run_process("match", odd_index, "--output", output, "--event-id", "id", stdin=event)
        assert not has_unseen(done.stdout.decode())
        shown = json.loads(done.stdout)
        assert shown["event"] == ODD_ID
        assert ODD_ID in (shown.get("subscription_id"), *shown.get("matches", []))
    done = run_process("explain", odd_index, ODD_ID, "--event", '{"a": 2}', "--output", "json")
    assert not has_unseen(done.stdout.decode())
    assert json.loads(done.stdout)["subscription_id"] == ODD_ID


def has_unseen(text: str) -> bool:
    """Whether a line holds what is no character to show, or no tab of ours."""
    return any(not c.isprintable() for c in text.removesuffix("\n").replace("\t", ""))


def unescape(text: str) -> str:
    """As the documentation says that TSV is read."""
    plain = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
    return re.sub(
        r"\\(?:u([0-9a-f]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else plain[m[2]], text
    )


@pytest.mark.parametrize(
    "arguments", [["match"], ["stats"], ["eval", "a = 1", "--event", "{}"], ["--version"]]
)
def test_a_closed_output_is_an_error(odd_index, arguments):
    given = [*arguments, str(odd_index)] if arguments[0] in ("match", "stats") else arguments
    command = [sys.executable, "-m", "tamis", *given]
    for closing, said in ((">&-", "error: standard output is closed"), (">&- 2>&-", "")):
        done = subprocess.run(
            ["bash", "-c", f'"$@" {closing}', "-", *command],
            input=b'{"a": 1}\n',
            capture_output=True,
            env=environment(),
            check=False,
        )
        assert done.returncode == 1
        assert done.stdout == b""
        assert done.stderr.decode().startswith(said)


def test_closed_messages_are_no_error(odd_index):
    done = subprocess.run(
        ["bash", "-c", '"$@" 2>&-', "-", sys.executable, "-m", "tamis", "match", str(odd_index)],
        input=b'{"a": 1}\nnot JSON\n',
        stdout=subprocess.PIPE,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
