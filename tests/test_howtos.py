"""The how-to pages work from the first line to the last, in one folder, as a reader would do it."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import pytest

from tests.test_docs import (
    Block,
    blocks_of,
    files_shown,
    mask_speed,
    tamis_on_path,  # noqa: F401 - a fixture
)
from tests.waiting import HANG_SECONDS

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("howto-*.md"))
SECONDS = re.compile(r"(?<=seconds\n)(.*?)\s+[\d.]+$", re.MULTILINE)
MADE_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
SIZE = re.compile(r"\b\d\d,\d{3}\b")


def mask(text: str) -> str:
    """The text without what differs from run to run: seconds, moments, sizes of files, progress."""
    text = re.sub(r"^progress: .*\n", "", mask_speed(text), flags=re.MULTILINE)
    return SIZE.sub("N", MADE_AT.sub("T", SECONDS.sub(r"\1  S", text))).rstrip()


def run_shell(block: Block, folder: Path) -> None:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        done = subprocess.run(
            ["bash", "-c", f"exec 2>&1; {command}"],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=HANG_SECONDS,
            check=False,
        )
        assert mask(done.stdout) == mask(shown), f"{block.place}: {command}"


def run_python(block: Block, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text + "\n", names, block.place, None, None)
    assert test.examples, "a Python block shows a session, with >>>"
    collected: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=collected.append, clear_globs=False)
    names |= test.globs
    assert not runner.failures, "".join(collected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("tamis_on_path")
def test_page_works_as_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name, text in files_shown(page).items():
        Path(name).write_text(text, encoding="utf-8")
    names: dict[str, object] = {}
    blocks = blocks_of(page, "console", "python")
    assert blocks
    for block in blocks:
        if block.language == "console":
            run_shell(block, tmp_path)
        else:
            run_python(block, names)


def test_there_are_pages():
    assert {page.stem for page in PAGES} >= {"howto-log", "howto-nightly", "howto-searches"}
