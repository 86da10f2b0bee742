"""The shell: arguments in, text out. The library does the work.

Exit codes: 0 success, 1 something in the input is wrong, 2 wrong usage.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

import tamis
from tamis.cli.console import noting_warnings
from tamis.errors import MissingOperatorError, TamisError

# The module of each command, and modules that add commands to it: loaded on first use.
COMMANDS: Final = {
    "backup": ("tamis.cli.maintenance:backup_command",),
    "build": ("tamis.cli.build:build_command",),
    "check": ("tamis.cli.check:check_command",),
    "compact": ("tamis.cli.live:compact_command",),
    "demo": ("tamis.cli.demo:demo_command",),
    "dot": ("tamis.cli.dot:dot_command",),
    "eval": ("tamis.cli.evaluate:eval_command",),
    "explain": ("tamis.cli.explain:explain_command",),
    "feeds": ("tamis.cli.feeds:feeds_group",),
    "import": ("tamis.cli.import_rules:import_command",),
    "import-version": ("tamis.cli.maintenance:import_version_command",),
    "keys": ("tamis.cli.keys:keys_group",),
    "lab": ("tamis.cli.lab:lab_group",),
    "match": ("tamis.cli.match:match_command",),
    "publish": ("tamis.cli.live:publish_command",),
    "remote": (
        "tamis.cli.remote:remote_group",
        "tamis.cli.remote_subscriptions",
        "tamis.cli.remote_bulk",
        "tamis.cli.remote_events",
        "tamis.cli.remote_questions",
        "tamis.cli.remote_mail",
        "tamis.cli.remote_channels",
    ),
    "restore": ("tamis.cli.maintenance:restore_command",),
    "search": ("tamis.cli.search:search_command",),
    "serve": ("tamis.cli.serve:serve_command",),
    "spark": (
        "tamis.cli.spark:spark_group",
        "tamis.cli.spark_commands",
        "tamis.cli.spark_reports",
        "tamis.cli.spark_versions",
    ),
    "stats": ("tamis.cli.stats:stats_command",),
    "sub": ("tamis.cli.sub:sub_group", "tamis.cli.sub_reading", "tamis.cli.sub_import"),
    "tune": ("tamis.cli.tune:tune_command",),
    "verify": ("tamis.cli.verify:verify_command",),
}


class _Commands(click.Group):
    """A group that loads its commands, and converts our errors to a message and exit code 1."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        place, *more = COMMANDS[name]
        for module in more:
            import_module(module)
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def invoke(self, context: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character shows a question mark.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            with noting_warnings():
                result = super().invoke(context)
            # Here, so that a full disk or a closed pipe is noticed while it can still be reported.
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
    """The reader of a pipe has closed it (`| head`): that is not a failure."""
    # The rest of the buffer must go somewhere when the interpreter flushes it.
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

    Exit codes: 0 success, 1 something in the input is wrong, 2 wrong usage.
    """
