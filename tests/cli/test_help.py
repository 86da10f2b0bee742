"""`--help` says what each option does, in a full sentence."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tamis.cli import main
from tamis.input.compression import READ_ENDINGS
from tamis.input.formats import FORMATS, KNOWN_ENDINGS, Format
from tests.cli.shell import run
from tests.test_docs import commands_of

OPTIONS = [
    (name, option)
    for name, command in [("tamis", main), *commands_of(main)]
    for option in command.params
    if isinstance(option, click.Option)
]


@pytest.mark.parametrize(
    ("name", "option"), OPTIONS, ids=[f"{name} {option.opts[0]}" for name, option in OPTIONS]
)
def test_option_is_explained_in_a_sentence(name, option):
    shown = option.help or ""
    assert len(shown.split()) >= 4, shown
    assert shown[0].isupper(), shown
    assert shown.endswith("."), shown


def test_options_of_all_groups_are_looked_at():
    assert {"tamis", "tamis match", "tamis spark", "tamis spark match", "tamis lab run"} <= {
        name for name, _ in OPTIONS
    }


def test_help_shows_the_sentences():
    message = " ".join(run("match", "--help").stdout.split())
    assert "--threads INTEGER RANGE Share the work among this number of threads." in message


@pytest.mark.parametrize("command", ["check", "build", "match", "eval"])
def test_help_names_every_format(command):
    message = " ".join(run(command, "--help").stdout.split())
    read = [own for own in FORMATS.values() if own.is_typed or command != "eval"]
    assert all(own.title in message for own in read), message
    assert "{" not in message
    if command in ("check", "build"):
        assert f"may be compressed ({', '.join(READ_ENDINGS)})" in message


def test_the_manual_names_every_format():
    manual = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    _, _, section = manual.partition("\n## Formats\n")
    section, _, _ = section.partition("\n## ")
    named = [*Format, *KNOWN_ENDINGS.split(", "), *READ_ENDINGS]
    assert [one for one in named if f"`{one}`" not in section] == []
    rows = [line for line in manual.splitlines() if line.startswith("| `--format jsonl`")]
    assert len(rows) >= 2
    assert all(f"`{one}`" in row for row in rows for one in Format if one is not Format.JSONL)


COMMANDS = [
    (name, command) for name, command in commands_of(main) if not isinstance(command, click.Group)
]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_help_names_the_exit_codes(name, command):
    assert "Exit codes: 0 " in " ".join((command.help or "").split())
