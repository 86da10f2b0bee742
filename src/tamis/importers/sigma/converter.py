"""Turns Sigma rules into expressions: detections, log sources, filters and details."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigma.exceptions import SigmaError

from tamis.errors import InputError, RowError
from tamis.importers.conditions import All, spell
from tamis.importers.conditions import Any as AnyOf
from tamis.importers.fields import AS_IT_COMES, Fields
from tamis.importers.sigma.layouts import find_layout
from tamis.importers.sigma.log_sources import LogSources
from tamis.importers.sigma.reading import Read, describe_error
from tamis.importers.sigma.trees import TreeReader, parse_condition

if TYPE_CHECKING:
    from sigma.filters import SigmaFilter
    from sigma.rule import SigmaRule

    from tamis.importers.conditions import Wish
    from tamis.importers.settings import Settings
    from tamis.importers.sigma.reading import ReadFilter, ReadRules
    from tamis.language.schema import Path as AttributePath
    from tamis.language.types import Type


class Converter:
    """Converts rules, with the same settings for all."""

    def __init__(self, settings: Settings) -> None:
        layout = find_layout(settings.layout)
        types = dict(layout.types)
        if settings.schema is not None:
            types |= {path: settings.schema[path] for path in settings.schema}
        self.fields = Fields(
            types,
            mapping={**layout.fields, **settings.fields},
            prefix=layout.prefix,
            is_nested=settings.nested,
            default=AS_IT_COMES,
        )
        self.trees = TreeReader(self.fields, settings.values)
        self.log_sources = LogSources(settings.log_sources, self.trees)
        self.fields.take_used()
        self._pipelines = [_read_pipeline(Path(path)) for path in settings.pipelines]

    def prepare(self, found: ReadRules) -> None:
        """Apply the filters to the rules that they name. One that is wrong, or applies to none, is
        refused, and stops no rule.
        """
        for given in found.filters:
            error = _check_filter(given.sigma)
            if error is None:
                if sum(_apply(given, own) for own in found.rules):
                    continue
                error = _refuse_filter(given.sigma)
            given.rule.refuse(error)
            found.rules.append(Read(given.rule))

    def convert(self, read: Read) -> dict[AttributePath, Type]:
        """Give a rule its expression or its error; returns the attributes that it tests."""
        rule, sigma = read.rule, read.sigma
        if sigma is None or rule.error is not None:
            return {}
        self.fields.take_misfits()  # of a rule before that was refused
        try:
            for pipeline in self._pipelines:
                sigma = pipeline.apply(sigma)
            detection = self._convert_detection(sigma)
            source, notes = self.log_sources.find(sigma.logsource)
            rule.expression = spell(All((source, detection)))
            rule.tags = tuple(str(tag) for tag in sigma.tags)
            rule.attributes = _read_details(sigma)
            if notes:
                rule.attributes["log_source_condition"] = "none"
            rule.notes = (*rule.notes, *notes, *self.fields.take_misfits())
        except RowError as error:
            rule.refuse(error)
        except Exception as error:  # whatever a rule makes pySigma raise is its error
            rule.refuse(describe_error(error))
        return self.fields.take_used()

    def _convert_detection(self, sigma: SigmaRule) -> Wish:
        """Several conditions of a rule are alternatives."""
        trees = [parse_condition(own) for own in sigma.detection.parsed_condition]
        return AnyOf(tuple(map(self.trees.read, trees)))


def _apply(given: ReadFilter, own: Read) -> bool:
    """Apply a filter to a rule, if it is for it."""
    if own.sigma is None or own.rule.error is not None:
        return False
    detection = own.sigma.detection  # which a filter that applies changes
    before = list(detection.condition)
    try:
        given.sigma.apply_on_rule(own.sigma)
    except Exception as error:  # the error of this rule alone
        own.rule.refuse(describe_error(error))
        return True
    return before != detection.condition


def _check_filter(given: SigmaFilter) -> RowError | None:
    """What is wrong with the condition of a filter, which each of its rules would get."""
    try:
        for own in deepcopy(given.filter).parsed_condition:
            parse_condition(own)
    except Exception as error:  # whatever a filter makes pySigma raise is its error
        return describe_error(error)
    return None


def _refuse_filter(given: SigmaFilter) -> RowError:
    source = given.logsource
    names = [source.product, source.category, source.service]
    wanted = given.filter.rules
    listed = "any" if isinstance(wanted, str) else ", ".join(own.reference for own in wanted)
    return RowError(
        "unused-filter",
        f"the filter applies to no rule: none of those imported with it is one of its rules "
        f"({listed}) and has its log source ({'/'.join(own or '*' for own in names)})",
        hint="import it together with its rules",
    )


def _read_pipeline(path: Path) -> Any:
    from sigma.processing.pipeline import ProcessingPipeline

    try:
        text = path.read_text(encoding="utf-8")
        pipeline = ProcessingPipeline.from_yaml(text, source_path=str(path))
    except OSError as error:
        raise InputError(f"cannot read the pipeline {path}: {error.strerror}") from None
    except (SigmaError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a pipeline of pySigma: {error}") from None
    if pipeline.postprocessing_items or pipeline.finalizers:
        raise InputError(
            f"{path} has postprocessing or finalizers, which change queries of other systems; "
            "Tamis has none",
            hint="remove these sections; transformations of rules are applied",
        )
    return pipeline


def _read_details(sigma: SigmaRule) -> dict[str, Any]:
    """The details that become attributes of the subscription, except for missing ones."""
    source = sigma.logsource
    details = {
        "title": sigma.title,
        "level": str(sigma.level) if sigma.level else None,
        "status": str(sigma.status) if sigma.status else None,
        "author": sigma.author,
        "description": sigma.description,
        "references": [str(own) for own in sigma.references],
        "log_source": "/".join(filter(None, (source.product, source.category, source.service))),
    }
    return {name: own for name, own in details.items() if own}
