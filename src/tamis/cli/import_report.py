"""Notes about an import: refused rules by reason, and what is read differently than expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.cli.console import print_note

if TYPE_CHECKING:
    from tamis.errors import RowError
    from tamis.importers.model import Imported, Rule

SHOWN_NOTES: Final = 5


def report_import(
    imported: Imported, *, counts_refused: bool = True, is_listed: bool = False
) -> None:
    """Print the notes to stderr; `is_listed`: a file lists the refused rules."""
    if counts_refused:
        for line in describe_refusals(imported):
            print_note(line)
        if imported.refused and not is_listed:
            print_note("--rejects FILE lists the refused rules")
    for note in imported.notes[:SHOWN_NOTES]:
        print_note(note)
    if len(imported.notes) > SHOWN_NOTES:
        print_note(f"{len(imported.notes) - SHOWN_NOTES:,} more notes of this kind")


def describe_refusals(imported: Imported) -> list[str]:
    """One line for each reason: how many rules, and an example."""
    reasons: dict[str, list[tuple[Rule, RowError]]] = {}
    for rule in imported.refused:
        if rule.error is not None:
            reasons.setdefault(rule.error.code, []).append((rule, rule.error))
    return [
        f"{len(refused):,} {'rule' if len(refused) == 1 else 'rules'} refused [{code}], such as "
        f"{refused[0][0].place}: {refused[0][1].message}{_hint(refused[0][1])}"
        for code, refused in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]


def _hint(error: RowError) -> str:
    return f" (hint: {error.hint})" if error.hint else ""
