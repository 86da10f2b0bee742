"""Rules that people already have, as subscriptions: one package for each format.

    >>> from tamis.importers import import_rules
    >>> imported = import_rules("eventbridge", [b'{"source": ["aws.ec2"]}'])
    >>> imported.accepted[0].expression
    "source = 'aws.ec2'"

A format is a package with the function `import_files`, and a row in `IMPORTERS`. It turns each
rule into a condition (`conditions`) of fields (`fields`), and what it cannot express into an error;
`checking.finish` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import InputError
from tamis.importers.model import Document, Imported, Rule
from tamis.importers.settings import Settings, make_settings, read_settings
from tamis.importers.sources import read_files

if TYPE_CHECKING:
    from tamis.input.sources import Source

__all__ = [
    "IMPORTERS",
    "Document",
    "Imported",
    "Rule",
    "Settings",
    "import_rules",
    "make_settings",
    "read_settings",
]


class Importer(NamedTuple):
    """A format of rules."""

    title: str
    endings: tuple[str, ...]  # of the names of its files
    module: str  # whose function `import_files` reads files: their names and contents
    has_layouts: bool = False  # whether rules name fields, but not where events have them


IMPORTERS: Final = {
    "sigma": Importer("Sigma rules", (".yml", ".yaml"), "tamis.importers.sigma", has_layouts=True),
    "elasticsearch": Importer(
        "Elasticsearch queries", (".json", ".ndjson", ".jsonl"), "tamis.importers.elasticsearch"
    ),
    "eventbridge": Importer(
        "EventBridge patterns", (".json", ".ndjson", ".jsonl"), "tamis.importers.eventbridge"
    ),
}


def import_rules(
    rule_format: str, sources: Source | Iterable[Source], settings: Settings | None = None
) -> Imported:
    """The rules of files and folders as subscriptions; each that cannot be expressed has an error.

    A source is the path of a file or of a folder, an open file, or bytes.
    """
    given: Any = sources
    if isinstance(given, str | Path | bytes) or hasattr(given, "read"):
        given = [given]
    if not isinstance(given, Iterable):
        raise InputError(f"rules are paths, open files or bytes, not {type(given).__name__}")
    if rule_format not in IMPORTERS:
        raise InputError(f'unknown format "{rule_format}"; allowed: {", ".join(IMPORTERS)}')
    importer = IMPORTERS[rule_format]
    module: Any = import_module(importer.module)
    files = read_files(given, importer.endings)
    found: Imported = module.import_files(files, settings or Settings())
    return found
