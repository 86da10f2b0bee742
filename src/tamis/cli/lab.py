"""`tamis lab`: runs the papers' experiments and writes reports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli.console import make_console, print_columns
from tamis.cli.lab_generate import generate_command
from tamis.errors import InputError

INTERRUPTED = 130  # the exit code of shells for Ctrl-C

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.lab.experiments.run import Step
    from tamis.lab.experiments.store import Store

    _Command = TypeVar("_Command", bound=Callable[..., Any])


def _store_options(command: _Command) -> _Command:
    """The directory of results, with scale and seed."""
    options = (
        click.option(
            "--scale",
            type=click.Choice(["tiny", "small", "full"]),
            default="small",
            show_default=True,
            help="Choose the size: tiny shows that everything runs, small takes minutes, "
            "and full, the size of the papers, takes hours.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**63 - 1),
            default=1,
            show_default=True,
            help="Draw the workloads from this seed.",
        ),
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("lab-results"),
            show_default=True,
            help="Keep the results in this directory.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _open_store(out: Path, scale: str, seed: int) -> Store:
    from tamis.lab.experiments.experiment import Scale
    from tamis.lab.experiments.store import Store

    return Store(out, Scale(scale), seed)


@click.group("lab")
def lab_group() -> None:
    """The four papers' algorithms, compared with Tamis on the papers' workloads."""


lab_group.add_command(generate_command)


@lab_group.command("list")
def list_command() -> None:
    """List the experiments: one for each table and figure.

    Exit codes: 0 listed; 2 wrong usage.
    """
    from tamis.lab.experiments.catalogue import EXPERIMENTS

    rows = [[one.name, one.paper, one.title] for one in EXPERIMENTS.values()]
    print_columns(make_console(), [["experiment", "paper", "title"], *rows])


@lab_group.command("run")
@click.argument("names", metavar="EXPERIMENT…", nargs=-1, required=True)
@_store_options
@click.option("--again", is_flag=True, help="Repeat measurements that are finished.")
def run_command(names: tuple[str, ...], scale: str, seed: int, out: Path, again: bool) -> None:
    """Run experiments by name, or all of them.

    Each finished setting is a file: an interrupted run continues where it stopped. A setting that
    does not fit in memory is an error before anything runs.

    Exit codes: 0 everything is measured, 1 unknown name, too large, unequal answers or a damaged
    file, 2 wrong usage, 130 interrupted.
    """
    from tamis.lab.experiments.catalogue import find_experiments
    from tamis.lab.experiments.run import plan

    store = _open_store(out, scale, seed)
    experiments = find_experiments(names)
    steps = plan(experiments, store, again=again)
    n_before = sum(len(sweep.settings(store.scale)) for sweep in {e.sweep for e in experiments})
    n_before -= len(steps)
    try:
        _measure(steps, store)
    except KeyboardInterrupt:
        click.echo(f"interrupted; finished settings are in {store.directory}", err=True)
        click.echo("the same command continues from there", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    summary = f"{len(steps)} settings measured"
    summary += f", {n_before} were measured before" if n_before else ""
    click.echo(f"{summary}; results in {store.directory}")


def _measure(steps: list[Step], store: Store) -> None:
    """Measure, and show the progress."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    from tamis.lab.experiments.run import measure

    console = make_console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    is_shown = sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=not is_shown) as progress:
        task = progress.add_task(str(steps[0]) if steps else "", total=len(steps))
        for number, step in enumerate(measure(steps, store), start=1):
            following = str(steps[number]) if number < len(steps) else ""
            progress.update(task, completed=number, description=following)
            if not is_shown:
                console.print(f"{number} of {len(steps)}: {step}")


@lab_group.command("report")
@_store_options
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page to this file, by default to report.html next to the results.",
)
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the summary to this file, by default to report.md next to the results.",
)
def report_command(
    scale: str, seed: int, out: Path, html: Path | None, markdown: Path | None
) -> None:
    """Write the results as one HTML page with plots, and as Markdown.

    Exit codes: 0 written, 1 no results or a damaged file, 2 wrong usage.
    """
    from tamis.lab.experiments.catalogue import EXPERIMENTS
    from tamis.lab.experiments.markdown import write_markdown
    from tamis.lab.experiments.page import write_page
    from tamis.lab.experiments.report import collect

    store = _open_store(out, scale, seed)
    report = collect(EXPERIMENTS.values(), store)
    pages = {
        html or store.directory / "report.html": write_page(report),
        markdown or store.directory / "report.md": write_markdown(report),
    }
    for path, text in pages.items():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None
        click.echo(f"{path}: {len(report.sections)} of {len(EXPERIMENTS)} experiments")
