"""A command loads what it needs and nothing else: that is most of its time for one event."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.indexes import build_index
from tests.cli.shell import environment, run
from tests.waiting import HANG_SECONDS

LOADED = """
import json, sys
sys.argv = ["tamis", *sys.argv[1:]]
from tamis.__main__ import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = {
    *("pandas", "pyarrow.compute", "rich.console", "numpy.typing", "pyspark"),
    *("tamis.index.build", "tamis.index.kernels.nodes", "tamis.index.kernels.scan"),
    "tamis.operators.schedule",
    *("tamis.cli.build", "tamis.cli.spark", "tamis.cli.lab", "tamis.validate"),
}


def modules_of(folder, *arguments) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, arguments)],
        input=b'{"age": 20}\n',
        capture_output=True,
        env=environment(),
        cwd=folder,
        timeout=HANG_SECONDS,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("start"), [("adult", "age >= 18 AND name = 'x'")])


def test_match_loads_what_it_needs(tmp_path, index):
    assert HEAVY & modules_of(tmp_path, "match", index) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["eval", "--help"]])
def test_help_loads_no_engine(tmp_path, arguments):
    assert {"numba", "numpy", "pyarrow"} & modules_of(tmp_path, *arguments) == set()


def test_operators_may_use_pandas(tmp_path, index):
    pytest.importorskip("pandas")
    (tmp_path / "own.py").write_text("import pandas\n")
    assert "pandas" in modules_of(tmp_path, "match", index, "--operators", "own")


def test_every_command_is_found():
    result = run("--help").stdout
    for name in ("build", "match", "spark", "lab", "verify"):
        assert f"\n  {name} " in result
    assert run("spark", "--help").stdout.count("\n  backtest ") == 1
    assert "No such command 'buid'" in run("buid").stderr
