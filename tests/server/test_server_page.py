"""docs/server.md: what it shows is what a server answers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.server.processes import serving
from tests.test_docs import Block, blocks_of, tamis_on_path  # noqa: F401 - a fixture
from tests.test_howtos import run_python, run_shell

PAGE = Path(__file__).parents[2] / "docs" / "server.md"
ADDRESS = "http://127.0.0.1:8080"
CHANGING = (
    (re.compile(r"\b[0-9a-f]{32}\b"), "…"),
    (re.compile(r"tkt_[\w-]{43}"), "tkt_…"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "2030-01-01T10:00:00Z"),
    (re.compile(r'"[0-9a-f]{16}"'), '"…"'),
    (re.compile(r"2030-01-0\d"), "2030-01-01"),
)


def mask(text: str) -> str:
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    return text.rstrip()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl: install it")
@pytest.mark.usefixtures("tamis_on_path")
def test_page_works_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.test_howtos.mask", mask)
    with serving(tmp_path / "tamis.server") as server:
        names: dict[str, object] = {}
        for block in blocks_of(PAGE, "console", "python"):
            shown = Block(block.language, block.text.replace(ADDRESS, server.url), block.place)
            if block.language == "console":
                run_shell(shown, tmp_path)
            else:
                run_python(shown, names)
