"""`tamis verify`: checks whether an index is complete, valid, and signed."""

from __future__ import annotations

import click

import tamis
from tamis.cli.console import make_console
from tamis.cli.options import key_option, operators_option, output_option, version_option
from tamis.cli.output import print_json


@click.command("verify")
@click.argument("index_path", metavar="INDEX")
@operators_option
@key_option
@version_option
@output_option
def verify_command(index_path: str, key: bytes | None, version: str | None, output: str) -> None:
    """Check INDEX: its checksums, its structure and, with --key, its signature.

    An index that passes cannot crash the process that opens it, whoever wrote it. Only a signature
    shows that its answers are those of its author. Of a live index, the newest saved version and
    the changes since are checked; it is not signed.

    Exit codes: 0 it is valid, 1 it is damaged, not an index or not signed with the key, 2 wrong
    usage.
    """
    index = tamis.open(index_path, version=version, trusted=False, key=key, operators=None)
    n_nodes = sum(part.n_nodes for part in index.parts)
    if output == "json":
        numbers = {"subscriptions": len(index), "nodes": n_nodes}
        result = {"index": index_path, "valid": True, "signature_checked": key is not None}
        print_json(result | numbers)
        return
    signed = ", signed with this key" if key is not None else ""
    counted = "1 subscription" if len(index) == 1 else f"{len(index):,} subscriptions"
    make_console().print(
        f"{index_path} is valid{signed}: {counted}, {n_nodes:,} nodes",
        markup=False,
        highlight=False,
    )
