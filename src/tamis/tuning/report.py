"""Tries rules on events, and reports what fired, what did not, and why."""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import ExpressionError, InputError, TamisWarning
from tamis.input.schemas import add_definitions, check_definitions, open_schema
from tamis.input.subscriptions import list_rows, to_reject
from tamis.language.bulk import parse_many
from tamis.language.definitions import find_subscriptions, parse_good
from tamis.language.infer import infer_schema
from tamis.language.limits import DEFAULT_LIMITS
from tamis.logic.canonical import canonicalize
from tamis.match.build import build
from tamis.tuning.events import iterate_events
from tamis.tuning.exclusions import ExclusionReport, add_exclusion
from tamis.tuning.overlaps import Overlap, find_overlaps
from tamis.tuning.presence import IgnoredValues, Presence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.language.schema import Schema
    from tamis.match.index import Index

# The tables of a report and their columns.
TABLES: Final = {
    "rules": ("id", "title", "level", "verdict", "fired", "share", "reasons"),
    "overlaps": Overlap._fields,
    "exclusions": ("id", "exclusion", "before", "after"),
    "invalid": ("id", "reason"),
    "ignored_values": IgnoredValues._fields,
}
BATCH: Final = 5_000  # events matched together
NOISY_SHARE: Final = 0.01  # of all events
MOST_ROWS: Final = 20_000  # events of a rule that are compared with those of others
SHOWN_EXAMPLES: Final = 3


@dataclass(slots=True)
class RuleReport:
    """What a rule did."""

    rule_id: str
    title: str
    level: str
    expression: str
    n_fired: int = 0
    verdict: str = "fired"  # fired, noisy, silent or never
    # Why it never can fire, or why it may fire so often.
    reasons: list[str] = field(default_factory=list)
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class TuningReport:
    """What rules did on events: the rules that fired most often first."""

    n_events: int
    n_firing_events: int
    rules: list[RuleReport]
    overlaps: list[Overlap]
    backtests: list[ExclusionReport]
    invalid: list[tuple[str, str]]  # ids and reasons of rules that were left out
    rejects: list[ExpressionError] = field(default_factory=list)  # their errors
    noisy_share: float = NOISY_SHARE  # of the events, above which a rule is noisy
    ignored_values: list[IgnoredValues] = field(default_factory=list)

    def of_verdict(self, verdict: str) -> list[RuleReport]:
        """The rules with a verdict."""
        return [own for own in self.rules if own.verdict == verdict]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The report as rows by the name of a table."""
        return {
            "rules": [
                {
                    "id": own.rule_id,
                    "title": own.title,
                    "level": own.level,
                    "verdict": own.verdict,
                    "fired": own.n_fired,
                    "share": own.n_fired / self.n_events if self.n_events else 0.0,
                    "reasons": "; ".join(own.reasons),
                }
                for own in self.rules
            ],
            "overlaps": [own._asdict() for own in self.overlaps],
            "exclusions": [
                {
                    "id": own.rule_id,
                    "exclusion": own.exclusion,
                    "before": own.n_before,
                    "after": own.n_after,
                }
                for own in self.backtests
            ],
            "invalid": [{"id": name, "reason": reason} for name, reason in self.invalid],
            "ignored_values": [own._asdict() for own in self.ignored_values],
        }


def tune(  # noqa: PLR0913 - what is tried, and how
    rules: Any,
    schema: Any,
    events: Any,
    *,
    exclusions: Mapping[str, str] | None = None,
    definitions: Mapping[str, str] | None = None,
    noisy_share: float = NOISY_SHARE,
) -> TuningReport:
    """What the rules do on the events, which are given as to `Index.match_batch`.

    Rules are given as subscriptions to `tamis.build`, perhaps with a `title` and a `level`. An
    invalid rule, and one whose id an earlier one has, is left out: `rejects` of the report lists
    them. Values of another type than their attribute are `ignored_values`. `exclusions`
    are expressions by the id of a rule: the rule is tried with and without it. `definitions` are
    conditions by name, which expressions refer to as `@name`. A rule that fires on more than the
    share `noisy_share` of the events is noisy.
    """
    if not 0 <= noisy_share <= 1:
        raise InputError(f"noisy_share is {noisy_share}; allowed: 0 to 1")
    run = _Trial(rules, schema, dict(exclusions or {}), definitions)
    stream = iterate_events(events)
    while batch := list(islice(stream, BATCH)):
        run.add(batch)
    return run.finish(noisy_share)


class _Trial:
    def __init__(
        self,
        rules: Any,
        schema: Any,
        exclusions: dict[str, str],
        definitions: Mapping[str, str] | None,
    ) -> None:
        self._details: dict[str, Mapping[str, Any]] = {}
        self._rejects: list[ExpressionError] = []
        texts: dict[str, str] = {}
        for row in list_rows(rules):
            if row.error is not None:
                self._rejects.append(to_reject(row))
                continue
            name = str(row.subscription_id)
            if name in texts:
                self._rejects.append(_refuse_duplicate(row))
                continue
            texts[name] = str(row.text)
            self._details[name] = row.details.attributes
        self._schema = _read_schema(schema, definitions, texts)
        parsed = parse_many(list(texts.items()), self._schema)
        self._rejects += [own.error for own in parsed if own.error is not None]
        self._canonical = {
            own.subscription_id: canonicalize(own.condition)
            for own in parsed
            if own.condition is not None
        }
        self._texts = {name: texts[name] for name in self._canonical}
        self._changed = self._add_exclusions(exclusions)
        self._exclusions = exclusions
        self._index = self._build()
        self._presence = Presence(self._schema)
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._rows: defaultdict[str, set[int]] = defaultdict(set)
        self._examples: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._n_firing = 0

    def _add_exclusions(self, exclusions: dict[str, str]) -> dict[str, str]:
        changed = {}
        for name, exclusion in exclusions.items():
            if name not in self._texts:
                raise InputError(f'there is no valid rule "{name}" to exclude something from')
            try:
                changed[name] = add_exclusion(self._texts[name], exclusion, self._schema)
            except ExpressionError as error:
                raise InputError(f'the exclusion of "{name}": {error.message}') from None
        return changed

    def _build(self) -> Index:
        """Rules and, under a second name, those with exclusions."""
        own = [(f"r:{name}", text) for name, text in self._texts.items()]
        own += [(f"x:{name}", text) for name, text in self._changed.items()]
        return build(own, self._schema)

    def add(self, batch: list[Mapping[str, Any]]) -> None:
        """Match some events."""
        start = self._presence.n_events
        for event in batch:
            self._presence.add(event)
        with warnings.catch_warnings():
            # The report has a section for each: fields that no event has, and values.
            warnings.simplefilter("ignore", TamisWarning)
            found = self._index.match_lists(batch).to_pylist()
        for number, (event, names) in enumerate(zip(batch, found, strict=True), start):
            fired = {name[2:] for name in names if name.startswith("r:")}
            kept = {name[2:] for name in names if name.startswith("x:")}
            self._n_firing += bool(fired)
            for name in fired:
                self._count(name, number, event)
            for name in (fired - kept) & self._changed.keys():
                self._count(f"\0{name}", number, event)

    def _count(self, name: str, number: int, event: Mapping[str, Any]) -> None:
        self._counts[name] += 1
        if len(self._rows[name]) < MOST_ROWS:
            self._rows[name].add(number)
        if len(self._examples[name]) < SHOWN_EXAMPLES:
            self._examples[name].append(dict(event))

    def finish(self, noisy_share: float) -> TuningReport:
        """The report of all events."""
        n_events = self._presence.n_events
        reports = [self._report(name, noisy_share * n_events) for name in self._texts]
        reports.sort(key=lambda own: (-own.n_fired, own.rule_id))
        fired = {name: rows for name, rows in self._rows.items() if not name.startswith("\0")}
        return TuningReport(
            n_events,
            self._n_firing,
            reports,
            find_overlaps(self._canonical, fired),
            list(self._backtests()),
            [(own.subscription_id or "", own.message) for own in self._rejects],
            self._rejects,
            noisy_share,
            self._presence.list_ignored(),
        )

    def _report(self, name: str, most: float) -> RuleReport:
        details = self._details[name]
        report = RuleReport(
            name,
            str(details.get("title") or ""),
            str(details.get("level") or ""),
            self._texts[name],
            self._counts[name],
            examples=self._examples[name],
        )
        if report.n_fired:
            report.verdict = "noisy" if report.n_fired > most else "fired"
            # An importer sets this attribute of a Sigma rule.
            if report.verdict == "noisy" and details.get("log_source_condition") == "none":
                report.reasons = ["no log source condition: it tests every event"]
            return report
        report.reasons = self._presence.why_never(self._canonical[name])
        report.verdict = "never" if report.reasons else "silent"
        return report

    def _backtests(self) -> Iterator[ExclusionReport]:
        for name, text in self._changed.items():
            removed = self._counts[f"\0{name}"]
            yield ExclusionReport(
                name,
                self._exclusions[name],
                text,
                self._counts[name],
                self._counts[name] - removed,
                self._examples[f"\0{name}"],
            )


def _refuse_duplicate(row: SubscriptionRow) -> ExpressionError:
    return ExpressionError(
        "duplicate-id",
        "an earlier rule has the same id",
        span=(0, 0),
        text=row.text,
        subscription_id=row.subscription_id,
    )


def _read_schema(
    schema: Any, definitions: Mapping[str, str] | None, texts: Mapping[str, str]
) -> Schema:
    """The schema with all that expressions refer to; without declared types, with those that the
    expressions indicate.
    """
    known = None if schema is None else open_schema(schema)
    if definitions is not None:
        known = add_definitions(known, definitions)
    named = {} if known is None else known.definitions
    if known is None or known.is_open:
        known = infer_schema(parse_good([*texts.values(), *named.values()], DEFAULT_LIMITS))
    referred = find_subscriptions(list(texts), list(texts.values()), DEFAULT_LIMITS)
    known = known.with_definitions(named | referred)
    if definitions is not None:
        check_definitions(known, DEFAULT_LIMITS)
    return known
