"""The shell: arguments in, text out. The library does the work.

Exit codes: 0 all is good, 1 something in the input is wrong, 2 wrong usage.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

import tamis
from tamis.cli import (  # noqa: F401 - add their commands to the group
    spark_commands,
    spark_jobs,
    spark_versions,
)
from tamis.cli.build import build_command
from tamis.cli.check import check_command
from tamis.cli.console import noting_warnings
from tamis.cli.demo import demo_command
from tamis.cli.dot import dot_command
from tamis.cli.evaluate import eval_command
from tamis.cli.explain import explain_command
from tamis.cli.lab import lab_group
from tamis.cli.match import match_command
from tamis.cli.spark import spark_group
from tamis.cli.stats import stats_command
from tamis.cli.verify import verify_command
from tamis.errors import MissingOperatorError, TamisError


class _Commands(click.Group):
    """A group that turns our errors into a message and exit code 1."""

    def invoke(self, context: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character shows a question mark.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            with noting_warnings():
                result = super().invoke(context)
            # Here, so that a full disk or a closed pipe is noticed while it can still be said.
            sys.stdout.flush()
        except MissingOperatorError as error:
            hint = "name the module that registers them: --operators MODULE"
            _fail(str(MissingOperatorError(error.message, hint=hint)))
        except TamisError as error:
            _fail(str(error))
        except OSError as error:
            if error.errno == errno.EPIPE:
                _end_quietly()
            _fail(f"cannot go on: {error.strerror or error}")
        else:
            return result


def _end_quietly() -> None:
    """The reader of a pipe has seen enough (`| head`): that is no failure."""
    # What is still in the buffer must go somewhere when the interpreter flushes it.
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    raise click.exceptions.Exit(0)


def _fail(message: str) -> None:
    from tamis.cli.console import print_error

    print_error(message)
    raise click.exceptions.Exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tamis.__version__, prog_name="tamis", message="%(prog)s %(version)s")
def main() -> None:
    """Tamis, a standing-query engine: which Boolean expressions does an event satisfy?

    Exit codes: 0 all is good, 1 something in the input is wrong, 2 wrong usage.
    """


for command in (
    build_command,
    check_command,
    demo_command,
    dot_command,
    eval_command,
    explain_command,
    lab_group,
    match_command,
    spark_group,
    stats_command,
    verify_command,
):
    main.add_command(command)
