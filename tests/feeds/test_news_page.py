"""docs/news.md: what it shows is what a server with feeds answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tamis.feeds.documents import NOTES
from tests.feeds.places import item, rss
from tests.feeds.site import run_site
from tests.server.processes import serving
from tests.test_docs import Block, blocks_of, tamis_on_path  # noqa: F401 - a fixture
from tests.test_howtos import run_python, run_shell

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "news.md"
SAMPLES = ROOT / "src" / "tamis" / "cli" / "samples" / "news"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?")


def mask(text: str) -> str:
    return MOMENT.sub("2030-01-01T10:00", text).rstrip()


@pytest.mark.usefixtures("tamis_on_path")
def test_page_works_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.test_howtos.mask", mask)
    settings = {"TAMIS_FEEDS_ALLOW_PRIVATE_ADDRESSES": "true", "TAMIS_FEEDS_HOST_PAUSE": "0 s"}
    with run_site() as site, serving(tmp_path / "tamis.server", **settings) as server:
        for path in SAMPLES.iterdir():
            site.put(f"/{path.name}", path.read_bytes())
        broken = rss(item("Rain &amp; wind &nbsp; <b>today", guid="1", date="yesterday"))
        site.put("/broken.xml", broken)
        names: dict[str, object] = {}
        for block in blocks_of(PAGE, "console", "python"):
            text = block.text.replace("https://news.example", site.url)
            text = text.replace("http://127.0.0.1:8080", server.url)
            shown = Block(block.language, text, block.place)
            if block.language == "console":
                run_shell(shown, tmp_path)
            else:
                run_python(shown, names)


def test_every_note_is_described():
    text = PAGE.read_text(encoding="utf-8")
    assert not [kind for kind in NOTES if f"`{kind}`" not in text]
