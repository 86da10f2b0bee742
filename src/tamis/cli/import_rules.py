"""`tamis import`: turns rules of other formats into subscriptions."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.arguments import expect_other_file, expect_rejects_place
from tamis.cli.console import make_console, print_columns, print_error, printable
from tamis.cli.import_options import (
    RULE_FORMATS,
    import_options,
    import_or_refuse,
    read_settings_of,
)
from tamis.cli.import_report import report_import
from tamis.cli.options import (
    limit_options,
    open_source,
    output_option,
    read_limits,
    schema_option,
)
from tamis.cli.output import open_sink, print_json, write_lines
from tamis.importers import IMPORTERS

if TYPE_CHECKING:
    from tamis.importers.model import Imported, Rule
    from tamis.importers.settings import Settings
    from tamis.language.schema import Schema


@click.command("import")
@click.argument("rule_format", metavar="FORMAT", type=click.Choice(RULE_FORMATS))
@click.argument("rules", nargs=-1, required=True)
@click.option(
    "-o",
    "--subscriptions",
    "target",
    metavar="FILE.jsonl",
    help="Write the subscriptions to this file, as JSON lines; '-' is standard output.",
)
@click.option("--schema-file", metavar="FILE.json", help="Write the schema that they need.")
@click.option(
    "--rejects",
    "rejects_file",
    metavar="FILE",
    help="Write the rules that cannot be expressed to this file, with the reasons, as JSON lines.",
)
@click.option("--show", is_flag=True, help="Print each rule and its expression.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a rule cannot be expressed.")
@import_options
@schema_option
@output_option
@limit_options
def import_command(  # noqa: PLR0913 - one parameter per option
    rule_format: str,
    rules: tuple[str, ...],
    target: str | None,
    schema_file: str | None,
    rejects_file: str | None,
    show: bool,
    strict: bool,
    settings: Settings | None,
    layout: str | None,
    samples: tuple[str, ...],
    schema: Schema | None,
    output: str,
    **limits: Any,
) -> None:
    """Turn RULES of another system into subscriptions.

    FORMAT is sigma, elasticsearch or eventbridge. RULES are files and folders of them; '-' is
    standard input. A rule that cannot be expressed is reported, and the others are imported.

    Exit codes: 0 imported, with or without refused rules; 1 no rule can be imported or, with
    --strict, one was refused; 2 wrong usage.
    """
    started = time.monotonic()
    expect_rejects_place(rejects_file, *rules)
    for option, place in (("-o", target), ("--schema-file", schema_file)):
        expect_other_file(option, place, (*rules, *samples), IMPORTERS[rule_format].endings)
    known = read_settings_of(rule_format, settings, layout, samples, schema, read_limits(limits))
    imported = import_or_refuse(rule_format, map(open_source, rules), known)
    if show:
        _show(imported.rules, output)
    if target is not None:
        write_lines(target, (rule.to_dict() for rule in imported.accepted))
    if schema_file is not None:
        with open_sink(schema_file) as sink:
            json.dump(imported.schema.to_json(), sink, indent=1, ensure_ascii=False)
            sink.write("\n")
    if rejects_file is not None:
        write_lines(rejects_file, (rule.to_dict() for rule in imported.refused))
    report_import(imported, is_listed=rejects_file is not None)
    if not show and target != "-":
        _print_summary(imported, time.monotonic() - started, output)
    if not imported.accepted:
        print_error("no rule can be imported")
        raise click.exceptions.Exit(1)
    if strict and imported.refused:
        raise click.exceptions.Exit(1)


def _show(rules: list[Rule], output: str) -> None:
    console = make_console()
    for rule in rules:
        if output == "json":
            print_json(rule.to_dict() | {"place": rule.place, "source": rule.source})
            continue
        console.print(
            f"{rule.rule_id or '-'}  {printable(rule.title)}  ({rule.place})", style="bold"
        )
        for line in rule.source.split("\n"):
            console.print(f"  │ {printable(line)}", style="dim")
        if rule.error is None:
            console.print(f"  {rule.expression}\n")
        else:
            console.print(f"  refused: {printable(rule.error.message)} [{rule.error.code}]\n")


def _print_summary(imported: Imported, seconds: float, output: str) -> None:
    numbers = {
        "rules": len(imported.rules),
        "imported": len(imported.accepted),
        "refused": len(imported.refused),
        "attributes": len(imported.schema),
    }
    if output == "json":
        print_json({"kind": "summary", **numbers, "seconds": round(seconds, 3)})
        return
    print_columns(
        make_console(),
        [[*numbers, "seconds"], [*(f"{n:,}" for n in numbers.values()), f"{seconds:.2f}"]],
    )
