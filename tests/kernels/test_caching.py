"""Compiled kernels are used again only if nothing that was compiled into them has changed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from tamis.kernels.caching import CONSTANTS
from tests.waiting import HANG_SECONDS

PACKAGE = Path(tamis.__file__).parent

# The digest is not in the text: the file of the kernel itself stays as it is.
PROGRAM = """
import os
import numpy as np
from tamis.kernels import caching
caching.digest_sources = lambda: os.environ["DIGEST"]
from tamis.kernels.compiled import kernel
import records

@kernel
def first(record):
    return record.left[0]

made = records.RECORD(**{"left": np.zeros(1), "right": np.ones(1)})
print(first(made), sum(first.stats.cache_hits.values()))
"""
RECORDS = """
from collections import namedtuple
{name} = namedtuple("{name}", "{fields}")
RECORD = {name}
"""


def run(folder: Path, digest: str = "one", name: str = "Record", fields: str = "left right") -> str:
    """What the kernel returns, and how often its compiled code was found on disk."""
    (folder / "program.py").write_text(PROGRAM)
    (folder / "records.py").write_text(RECORDS.format(name=name, fields=fields))
    finished = subprocess.run(
        [sys.executable, "-B", "-c", "import program"],
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "DIGEST": digest},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert not finished.returncode, finished.stderr
    return finished.stdout.strip()


@pytest.fixture
def folder(tmp_path):
    """A folder in which the kernel is compiled already."""
    assert run(tmp_path) == "0.0 0"
    assert run(tmp_path) == "0.0 1"
    return tmp_path


def test_other_sources_compile_again(folder):
    assert run(folder, digest="two") == "0.0 0"


def test_fields_that_change_places_compile_again(folder):
    assert run(folder, fields="right left") == "0.0 0"


def test_a_class_that_is_gone_compiles_again(folder):
    assert run(folder, name="Renamed") == "0.0 0"


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_compile_again(folder, ending):
    (damaged,) = folder.glob(f"cache/**/*.{ending}")
    damaged.write_bytes(damaged.read_bytes()[:40])
    assert run(folder) == "0.0 0"
    assert run(folder) == "0.0 1"


def test_every_module_that_kernels_import_is_in_the_digest():
    imported: set[str] = set()
    for path in PACKAGE.glob("**/kernels/*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tamis."):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                imported.update(name.replace(".", "/")[6:] + ".py" for name in names if name)
    modules = {name for name in imported if (PACKAGE / name).is_file()}
    assert {name for name in modules if "kernels/" not in name} - {"errors.py"} == set(CONSTANTS)
