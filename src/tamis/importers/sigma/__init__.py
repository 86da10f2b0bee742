"""Sigma rules: read by pySigma, and written as expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.importers.checking import finish
from tamis.importers.sigma.reading import read_rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.importers.model import Imported
    from tamis.importers.settings import Settings
    from tamis.importers.sources import File


def import_files(files: Iterable[File], settings: Settings) -> Imported:
    """The rules of files, given by name and content."""
    from tamis.importers.sigma.converter import Converter

    converter = Converter(settings)
    found = read_rules(files)
    converter.prepare(found)
    used = [converter.convert(own) for own in found]
    return finish([own.rule for own in found], used, settings.limits)
