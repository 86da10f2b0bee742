"""Versions are listed, opened and rolled back where PySpark is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tamis.versions import IndexStore
from tests.cli.shell import environment
from tests.versions.test_store import version_of, write
from tests.waiting import HANG_SECONDS

WITHOUT_SPARK = "import sys; sys.modules.update(pyspark=None, py4j=None); "
SHELL = WITHOUT_SPARK + "from tamis.cli import main; main(sys.argv[1:])"


@pytest.fixture
def store(tmp_path) -> IndexStore:
    made = IndexStore(tmp_path / "index")
    for number in (1, 2):
        part = write(made, {"x": f"a = {number}"})
        made.publish(lambda newest, part=part: version_of(part))
    return made


def run_python(code: str, *arguments: str) -> str:
    """What a process without PySpark and without Java prints."""
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment(JAVA_HOME="", PATH=""),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_in_the_library(store):
    code = f"""{WITHOUT_SPARK}
from tamis.versions import open_version, roll_back, versions
print([version.name for version in versions({store.uri!r})])
print(roll_back({store.uri!r}, "v00000001").name)
print(open_version({store.uri!r}).open().match({{"a": 1}}))
"""
    assert run_python(code).splitlines() == [
        "['v00000001', 'v00000002']",
        "v00000003",
        "['x']",
    ]


def test_in_the_shell(store):
    listed = run_python(SHELL, "spark", "versions", "--index", store.uri).splitlines()
    assert [line.split()[0] for line in listed] == ["version", "v00000001", "v00000002"]
    back = run_python(SHELL, "spark", "roll-back", "--index", store.uri, "--to", "v00000001")
    assert back.splitlines()[1].split()[0] == "v00000003"
    assert store.current().number == 3
