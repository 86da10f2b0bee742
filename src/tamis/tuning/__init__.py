"""How do rules do on real events? What fires how often, what never can, what says the same.

>>> from tamis.tuning import tune
>>> rules = [{"id": "a", "expression": "x > 1"}, {"id": "b", "expression": "y = 'k'"}]
>>> report = tune(rules, None, [{"x": 2}, {"x": 5}, {"x": 0}])
>>> [(own.rule_id, own.n_fired, own.verdict) for own in report.rules]
[('a', 2, 'noisy'), ('b', 0, 'never')]
"""

from __future__ import annotations

from tamis.tuning.exclusions import ExclusionReport, add_exclusion
from tamis.tuning.report import RuleReport, TuningReport, tune

__all__ = ["ExclusionReport", "RuleReport", "TuningReport", "add_exclusion", "tune"]
