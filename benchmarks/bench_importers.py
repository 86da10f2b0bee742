"""How long do an import of all Sigma rules and a build of them take?"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.sigma_rules import DATA, find_data

TITLE = "An import of Sigma rules and a build"


def run() -> list[dict[str, Any]]:
    """One row per step."""
    if not find_data():
        return [{"step": "the rules are not next to the repository"}]
    import tamis
    from tamis.importers import import_rules

    tamis.build({"warm": "lower(a) = 'x' AND b ILIKE '%y%'"}).match({"a": "x"})
    started = time.perf_counter()
    imported = import_rules("sigma", [DATA / "sigma-rules"])
    read = time.perf_counter()
    index = tamis.build([rule.to_dict() for rule in imported.accepted], imported.schema)
    built = time.perf_counter()
    n_rules = len(imported.rules)
    return [
        {"step": "import", "rules": n_rules, "seconds": read - started},
        {"step": "build", "rules": len(index), "seconds": built - read},
        {"step": "both (at most 15 s)", "rules": n_rules, "seconds": built - started},
    ]
