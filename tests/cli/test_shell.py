"""Real processes: pipes, signals of the terminal, encodings, the commands as a whole."""

from __future__ import annotations

import os
import pty
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
