"""The report as one HTML page that needs nothing else; every text in it is escaped."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.tuning.exclusions import ExclusionReport
    from tamis.tuning.report import RuleReport, TuningReport

SHOWN_RULES: Final = 500
SHOWN_CHARACTERS: Final = 2_000
OPEN_ROWS: Final = 20  # of a section that is shown without a click
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --bar: #3b7dd8; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin: 2.4rem 0 .3rem; font-size: 1.2rem; }
h2 + p { margin: 0 0 .6rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); gap: .8rem; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; }
.tile b { display: block; font-size: 1.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap;
  width: 9rem; }
td.level, th.level { width: 7rem; } td.rule, th.rule { width: 34%; }
td[colspan] { padding-top: 0; } tr:has(+ tr > td[colspan]) > td { border-bottom: 0; }
.bar { background: var(--bar); height: .5rem; border-radius: 4px; margin: .4rem 0 0 auto;
  min-width: 2px; }
code, pre { font: 13px/1.4 ui-monospace, monospace; }
pre { background: var(--soft); border-radius: 6px; padding: .6rem; white-space: pre-wrap;
  overflow-wrap: anywhere; margin: .3rem 0 .6rem; }
summary { cursor: pointer; } small, p { opacity: .8; } td { overflow-wrap: anywhere; }
"""
_KINDS: Final = {
    "equal": "means the same as",
    "contained": "is contained in",
    "together": "fires on the same events as",
    "alike": "has nearly the same tests as",
}


def to_html(report: TuningReport, title: str = "Rules on events") -> str:
    """The page."""
    noisy, fired, never, silent = map(report.of_verdict, ("noisy", "fired", "never", "silent"))
    sections = [
        _tiles(report),
        _section(
            "Noisy rules",
            _rules(report, noisy),
            f"They fired on more than {100 * report.noisy_share:g} % of the events. Exclude what "
            "is harmless, or narrow them.",
        ),
        _section("Rules that fired", _rules(report, fired)),
        _section("Exclusions, tried before they are published", _backtests(report)),
        _section("Rules that fire together, or contain each other", _overlaps(report)),
        _section(
            "Rules that can never fire on these events",
            _never(never),
            "No event like these can satisfy them: map their fields, or try them on other events.",
        ),
        _section(
            "Silent rules",
            _silent(silent),
            "They did not fire, and nothing shows that they never can.",
        ),
        _section("Invalid rules", _table(("id", "reason"), report.invalid)),
        _section("Values of another type, treated as missing", _ignored(report)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{''.join(sections)}</body></html>\n"
    )


def _tiles(report: TuningReport) -> str:
    numbers = {
        "events": report.n_events,
        "matched events": report.n_firing_events,
        "rules": len(report.rules),
        **{verdict: len(report.of_verdict(verdict)) for verdict in ("noisy", "fired", "silent")},
        "can never fire": len(report.of_verdict("never")),
        **({"invalid": len(report.invalid)} if report.invalid else {}),
    }
    one = {
        "events": "event",
        "matched events": "matched event",
        "rules": "rule",
    }
    tiles = (
        f'<div class="tile"><b>{n:,}</b>{escape(one.get(name, name) if n == 1 else name)}</div>'
        for name, n in numbers.items()
    )
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _section(title: str, content: str, explanation: str = "") -> str:
    if not content:
        return ""
    explained = f"<p>{escape(explanation)}</p>" if explanation else ""
    return f"<h2>{escape(title)}</h2>{explained}{content}"


def _share(share: float) -> str:
    """A share of the events; one that is not zero does not look like zero."""
    return "< 0.01 %" if 0 < share < 0.0001 else f"{100 * share:.2f} %"


def _rules(report: TuningReport, rules: list[RuleReport]) -> str:
    if not rules:
        return ""
    most = max(own.n_fired for own in rules)
    rows = []
    for own in rules[:SHOWN_RULES]:
        share = escape(_share(own.n_fired / max(1, report.n_events)))
        bar = f'<div class="bar" style="width:{100 * own.n_fired / most:.1f}%"></div>'
        rows.append(
            f'<tr><td>{_name(own)}</td><td class="level">{escape(own.level)}</td>'
            f'<td class="n">{own.n_fired:,}{bar}</td><td class="n">{share}</td></tr>'
            f'<tr><td colspan="4"><details><summary>expression and examples</summary>'
            f"<pre>{_text(own.expression)}</pre>{_examples(own.examples)}</details></td></tr>"
        )
    head = (
        '<tr><th>rule</th><th class="level">level</th><th class="n">fired</th>'
        '<th class="n">of events</th></tr>'
    )
    return f"<table>{head}{''.join(rows)}</table>{_more(rules)}"


def _examples(events: list[dict[str, Any]]) -> str:
    if not events:
        return ""
    counted = "An event" if len(events) == 1 else f"The first {len(events)} events"
    return f"<small>{counted}:</small>{''.join(map(_pre, events))}"


def _never(rules: list[RuleReport]) -> str:
    cells = [(own.title or own.rule_id, "; ".join(own.reasons)) for own in rules[:SHOWN_RULES]]
    table = _table(("rule", "reason"), cells) + _more(rules)
    return table if len(rules) <= OPEN_ROWS else _folded(len(rules), table)


def _silent(rules: list[RuleReport]) -> str:
    if not rules:
        return ""
    cells = [(own.title or own.rule_id, own.rule_id, own.level) for own in rules[:SHOWN_RULES]]
    return _folded(len(rules), _table(("rule", "id", "level"), cells) + _more(rules))


def _folded(n_rules: int, content: str) -> str:
    counted = "1 rule" if n_rules == 1 else f"{n_rules:,} rules"
    return f"<details><summary>{counted}</summary>{content}</details>"


def _overlaps(report: TuningReport) -> str:
    titles = {own.rule_id: own.title or own.rule_id for own in report.rules}
    cells = [
        (titles[own.rule_id], _KINDS[own.kind], titles[own.other_id], f"{100 * own.share:.0f} %")
        for own in report.overlaps[:SHOWN_RULES]
    ]
    table = _table(("rule", "", "rule", "shared"), cells) + _more(report.overlaps)
    n_pairs = len(report.overlaps)
    if n_pairs <= OPEN_ROWS:
        return table
    return f"<details><summary>{n_pairs:,} pairs</summary>{table}</details>"


def _backtests(report: TuningReport) -> str:
    titles = {own.rule_id: own.title or own.rule_id for own in report.rules}
    rows = [
        f'<tr><td>{_text(titles[own.rule_id])}</td><td class="n">{own.n_before:,}</td>'
        f'<td class="n">{own.n_after:,}</td></tr><tr><td colspan="3"><details><summary>'
        f"exclusion and new expression</summary><pre>{_text(own.exclusion)}</pre>"
        f"<pre>{_text(own.expression)}</pre>{_removed(own)}</details></td></tr>"
        for own in report.backtests
    ]
    head = '<tr><th>rule</th><th class="n">before</th><th class="n">after</th></tr>'
    return f"<table>{head}{''.join(rows)}</table>" if rows else ""


def _removed(own: ExclusionReport) -> str:
    if not own.removed:
        return "<small>No event is excluded.</small>"
    return f"<small>Excluded events, such as</small>{''.join(map(_pre, own.removed))}"


def _ignored(report: TuningReport) -> str:
    names = ("attribute", "type", "values", "such as")
    cells = [
        (own.attribute, own.type, f"{own.values:,}", own.example) for own in report.ignored_values
    ]
    return _table(names, cells)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    head = "".join(
        f"<th{' class=rule' if name == 'rule' else ''}>{escape(name)}</th>" for name in names
    )
    return f"<table><tr>{head}</tr>{body}</table>" if body else ""


def _more(rows: Sequence[Any]) -> str:
    n_more = len(rows) - SHOWN_RULES
    verb = "is" if n_more == 1 else "are"
    return f"<p><small>{n_more:,} more {verb} in the tables.</small></p>" if n_more > 0 else ""


def _name(own: RuleReport) -> str:
    reasons = "".join(f"<br><small>{_text(reason)}</small>" for reason in own.reasons)
    name = _text(own.title or own.rule_id)
    return f"{name}<br><small><code>{_text(own.rule_id)}</code></small>{reasons}"


def _pre(event: dict[str, Any]) -> str:
    shown = json.dumps(event, ensure_ascii=False, default=str, indent=1)
    return f"<pre>{_text(shown)}</pre>"


def _text(text: str) -> str:
    cut = text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + " …"
    return escape(cut)
