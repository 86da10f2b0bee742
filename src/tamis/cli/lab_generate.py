"""`tamis lab generate`: writes workloads to files."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli.console import print_note


@click.command("generate")
@click.argument("workload")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--expressions",
    "n_expressions",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    help="Generate this number of expressions.",
)
@click.option(
    "--events",
    "n_events",
    type=click.IntRange(min=0),
    default=1_000,
    show_default=True,
    help="Generate this number of events.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter of the workload, such as depth=4 or seed=7. The option can be repeated.",
)
@click.option(
    "--spark",
    "on_spark",
    is_flag=True,
    help="Generate on Spark, if the workload is larger than memory.",
)
def generate_command(  # noqa: PLR0913 - one for each option
    workload: str,
    folder: Path,
    n_expressions: int,
    n_events: int,
    settings: tuple[str, ...],
    on_spark: bool,
) -> None:
    """Write a paper's workload into a folder, as JSON lines and as Parquet.

    Exit codes: 0 written, 1 unknown workload or parameter, too large, files exist already, 2 usage.
    """
    from tamis.lab.workloads.generate import (
        Request,
        describe_sharing,
        generate,
        generate_on_spark,
        read_settings,
    )

    request = Request(workload, n_expressions, n_events, read_settings(settings))
    if on_spark:
        from tamis.spark.session import local_session

        paths = generate_on_spark(local_session("tamis lab generate"), request, folder)
    else:
        paths = generate(request, folder)
    for path in paths:
        click.echo(path)
    for line in () if on_spark else describe_sharing(request):
        print_note(line)
