"""What `make` installs is enough for what it is for."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

from tests.cli.shell import environment
from tests.test_docs import ROOT, blocks_of
from tests.waiting import HANG_SECONDS

# Runs the examples of a document where some modules are not installed.
EXAMPLES_WITHOUT = """
import doctest, sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
for number, text in enumerate(sys.stdin.read().split("\\0")):
    test = doctest.DocTestParser().get_doctest(text + "\\n", {}, f"block {number}", None, None)
    doctest.DocTestRunner(verbose=False).run(test)
"""


def extras_of(target: str) -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf"^{target}_EXTRAS := (.*)$", makefile, re.MULTILINE)
    return set(found[1].split(","))


def packages_by_extra() -> dict[str, set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        extra: {re.match(r"[\w-]+", named)[0].lower() for named in packages}
        for extra, packages in project["optional-dependencies"].items()
    }


def modules_of(packages: set[str]) -> set[str]:
    return {
        module
        for module, owners in packages_distributions().items()
        if {owner.lower() for owner in owners} & packages
    }


def test_demo_environment_runs_all_examples_of_keywords():
    by_extra = packages_by_extra()
    installed = extras_of("DEMO")
    assert installed <= by_extra.keys()
    blocks = [block.text for block in blocks_of(ROOT / "docs" / "keywords.md", "python")]
    on_spark = [text for text in blocks if "local_session" in text]
    assert on_spark
    assert "spark" in installed
    has = set().union(*(by_extra[extra] for extra in installed))
    lacks = set().union(*(by_extra[extra] for extra in by_extra.keys() - installed)) - has
    examples = [text for text in blocks if text not in on_spark]
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES_WITHOUT, ",".join(sorted(modules_of(lacks)))],
        input="\0".join(examples),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=HANG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
