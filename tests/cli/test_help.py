"""`--help` says what each option does, in a full sentence."""

from __future__ import annotations

import click
import pytest

from tamis.cli import main
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
    told = option.help or ""
    assert len(told.split()) >= 4, told
    assert told[0].isupper(), told
    assert told.endswith("."), told


def test_options_of_all_groups_are_looked_at():
    assert {"tamis", "tamis match", "tamis spark", "tamis spark match", "tamis lab run"} <= {
        name for name, _ in OPTIONS
    }


def test_help_shows_the_sentences():
    told = " ".join(run("match", "--help").stdout.split())
    assert "--threads INTEGER RANGE Share the work among this number of threads." in told
