"""`tamis compact` and `tamis publish`: maintain a live index, and give it to others."""

from __future__ import annotations

from typing import Any

import click

from tamis.cli.console import StatusLine, make_console, print_columns
from tamis.cli.live_folder import changing, changing_options, folder_argument
from tamis.cli.output import print_json


@click.command("compact")
@folder_argument
@changing_options
def compact_command(folder: str, output: str, **opening: Any) -> None:
    """Merge all parts of the live index in FOLDER into one.

    The new part has neither subscriptions that were replaced nor those that were removed. Parts
    are merged in the background as well: this is for a set that stays as it is for some time.

    Exit codes: 0 merged; 1 FOLDER cannot be used; 2 wrong usage.
    """
    with changing(folder, opening) as live:
        n_before = len(live.view.engines)
        with StatusLine().ticking(lambda seconds: f"merging parts, {seconds:.0f} s"):
            live.compact()
        numbers = {
            "subscriptions": len(live),
            "parts_before": n_before,
            "parts": len(live.view.engines),
            "change": live.change,
        }
    _print(numbers, output)


@click.command("publish")
@folder_argument
@click.argument("target", metavar="INDEX")
@changing_options
def publish_command(folder: str, target: str, output: str, **opening: Any) -> None:
    """Publish the live index in FOLDER as the next version of INDEX, a folder or URI.

    tamis match, tamis.open and Spark open INDEX, on other machines too; the version does not
    change. If its newest version is the same already, nothing is published.

    Exit codes: 0 published, or the same already; 1 FOLDER or INDEX cannot be used; 2 wrong usage.
    """
    with changing(folder, opening) as live:
        with StatusLine().ticking(lambda seconds: f"copying parts, {seconds:.0f} s"):
            version = live.publish(target)
        numbers = {"version": version.name, "subscriptions": len(live), "change": live.change}
    _print(numbers, output)


def _print(numbers: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(numbers)
        return
    headings = [name.replace("_", " ") for name in numbers]
    shown = [own if isinstance(own, str) else f"{own:,}" for own in numbers.values()]
    print_columns(make_console(), [headings, shown])
