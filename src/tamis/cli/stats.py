"""`tamis stats`: the contents of an index, and their costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

import tamis
from tamis.cli.console import make_console, print_columns, printable
from tamis.cli.options import opening_options, operators_option, output_option
from tamis.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from tamis.index.stats import Always, Constant, NodeUse, Selectivity, Stats
    from tamis.match.catalogue import IndexPart

NAMED: Final = 5  # ids and patterns that are listed


@click.command("stats")
@click.argument("index_path", metavar="INDEX")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Show this number of the largest nodes and columns.",
)
@operators_option
@opening_options
@output_option
def stats_command(  # noqa: PLR0913 - one parameter per option
    index_path: str,
    top: int,
    trusted: bool,
    key: bytes | None,
    version: str | None,
    output: str,
) -> None:
    """Show the contents of INDEX: counts, sharing, sizes, widest nodes, nodes that are always
    evaluated.

    A version of an index, and a live index, are shown part by part.

    Exit codes: 0 shown, 1 no such index or a damaged one, 2 wrong usage.
    """
    from tamis.index.stats import compute_stats

    index = tamis.open(index_path, version=version, trusted=trusted, key=key, operators=None)
    report = _Report(make_console())
    change = getattr(index, "change", None)  # of a live index
    if index.version is None and change is None:
        stats = compute_stats(index.contents, index_path, top=top)
        print_json(stats.to_dict()) if output == "json" else report.show(stats)
        return
    # Of the files of a part, not of what later parts leave of it.
    found = [(part, compute_stats(part.contents, top=top)) for part in index.view.catalogue.parts]
    if output == "json":
        parts = [{"hidden": part.n_hidden, **stats.to_dict()} for part, stats in found]
        name = {"version": index.version} if change is None else {"change": change}
        print_json({**name, "subscriptions": len(index), "parts": parts})
        return
    report.show_version(index, found, change)


class _Report:
    def __init__(self, console: Console) -> None:
        self.console = console

    def show_version(
        self, index: tamis.Index, found: list[tuple[IndexPart, Stats]], change: int | None
    ) -> None:
        """The version or the change, then each of its parts."""
        name = str(index.version) if change is None else f"{change:,}"
        self._table(
            ["version" if change is None else "change", "subscriptions", "parts"],
            [[name, f"{len(index):,}", f"{len(found):,}"]],
        )
        for number, (part, stats) in enumerate(found, start=1):
            self._title(f"part {number}: {part.n_hidden:,} subscriptions hidden by later parts")
            self.show(stats)

    def show(self, stats: Stats) -> None:
        counts = stats.counts
        self._table(
            "subscriptions  distinct  always true  never true  missing is".split("  "),
            [
                [
                    f"{counts.subscriptions:,}",
                    f"{counts.distinct_expressions:,}",
                    f"{stats.always_true.count:,}",
                    f"{stats.never_true.count:,}",
                    stats.missing,
                ]
            ],
        )
        if stats.with_operators:
            self.console.print(f"{stats.with_operators:,} of them are decided by operators")
        self._show_constant("always true", stats.always_true)
        self._show_constant("never true", stats.never_true)
        self._show_sharing(stats)
        self._show_columns(stats)
        self._show_nodes("most children", stats.most_children)
        self._show_nodes("most used", stats.most_used)
        self._show_always(stats.always_evaluated)
        if stats.selectivity is not None:
            self._show_selectivity(stats.selectivity)
        self._show_bytes(stats)

    def _show_constant(self, what: str, constant: Constant) -> None:
        if constant.count:
            self.console.print(f"{what}: {_listed(constant.ids, constant.count)}")

    def _show_sharing(self, stats: Stats) -> None:
        self._title(f"sharing: {stats.sharing:.2f} uses of each node")
        rows = [
            [
                "leaves" if level.level == 0 else str(level.level),
                f"{level.nodes:,}",
                f"{level.uses:,}",
                f"{level.uses_per_node:.2f}",
                f"{level.links:,}",
                f"{level.link_uses:,}",
            ]
            for level in stats.levels
        ]
        self._table(["level", "nodes", "unshared", "uses/node", "links", "unshared"], rows)

    def _show_columns(self, stats: Stats) -> None:
        self._title("columns")
        rows = [
            [kind.kind, f"{kind.columns:,}", f"{kind.constants:,}", f"{kind.patterns:,}", ""]
            for kind in stats.column_kinds
        ]
        rows += [
            [f"  {column.kind}", "", f"{column.constants:,}", f"{column.patterns:,}", shown]
            for column in stats.columns
            if (shown := f"{printable(column.attributes)} {column.type}")
        ]
        self._table(["kind", "columns", "constants", "patterns", "largest"], rows)

    def _show_nodes(self, title: str, nodes: list[NodeUse]) -> None:
        if not nodes:
            return
        self._title(title)
        rows = [
            [
                f"{use.children:,}",
                f"{use.parents:,}",
                f"{use.subscriptions:,}",
                f"{use.uses:,}",
                printable(use.text),
            ]
            for use in nodes
        ]
        self._table(["children", "parents", "subscriptions", "uses", "node"], rows)

    def _show_always(self, found: list[Always]) -> None:
        self._title("always evaluated")
        if not found:
            self.console.print("nothing")
        for always in found:
            self.console.print(f"{always.count:,} {always.what}: {printable(always.reason)}")
            self.console.print(f"  {_listed(always.examples, always.count)}")

    def _show_selectivity(self, selectivity: Selectivity) -> None:
        self._title("access children: how often true if the attribute is present, by estimate")
        rates = (selectivity.lowest, selectivity.median, selectivity.mean, selectivity.highest)
        looks = f"{selectivity.looks_per_event:,.1f}"
        self._table(
            ["conjunctions", "lowest", "median", "mean", "highest", "looks per full event"],
            [[f"{selectivity.ands:,}", *(f"{rate:.3g}" for rate in rates), looks]],
        )
        self.console.print()
        rows = [
            [f"{trigger.rate:.3g}", f"{trigger.looks:,}", printable(trigger.text)]
            for trigger in selectivity.busiest
        ]
        self._table(["rate", "looks", "busiest"], rows)

    def _show_bytes(self, stats: Stats) -> None:
        each = stats.bytes_per_subscription
        share = "" if each is None else f", {each:,.0f} for each subscription"
        self._title(f"bytes: {stats.bytes:,}{share}")
        self._table(["bytes", "file"], [[f"{part.bytes:,}", part.name] for part in stats.parts])

    def _title(self, title: str) -> None:
        self.console.print()
        self.console.print(title, style="bold")

    def _table(self, headings: list[str], rows: Iterable[list[str]]) -> None:
        print_columns(self.console, [headings, *rows])


def _listed(names: list[str], count: int) -> str:
    shown = [printable(name) for name in names[:NAMED]]
    more = f" and {count - len(shown):,} more" if count > len(shown) else ""
    return ", ".join(shown) + more
