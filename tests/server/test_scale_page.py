"""docs/scale.md: what it shows is what servers and Spark do, and its arithmetic is right."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx2
import pytest

from tests.server.processes import ServerProcess, serving
from tests.server.test_server_page import mask
from tests.test_docs import Block, blocks_of, files_shown, tamis_on_path  # noqa: F401 - a fixture
from tests.test_howtos import mask as mask_output
from tests.test_howtos import run_python, run_shell
from tests.waiting import HANG_SECONDS, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
WRITER, FOLLOWER = "http://127.0.0.1:8080", "http://127.0.0.1:8081"


def test_arithmetic():
    names: dict[str, object] = {}
    for block in blocks_of(PAGE, "python"):
        run_python(block, names)


def stats(server: ServerProcess) -> dict:
    url = f"{server.url}/v1/stats"
    return httpx2.get(url, timeout=HANG_SECONDS, trust_env=False).json()


def has_published(server: ServerProcess) -> bool:
    found = stats(server)
    return found["versions"]["change"] == 1 and found["intake"]["closed_segments"] == 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl: install it")
@pytest.mark.usefixtures("tamis_on_path")
def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.test_howtos.mask", lambda text: mask_output(mask(text)))
    for name, text in files_shown(PAGE).items():
        Path(name).write_text(text, encoding="utf-8")
    starts = [block.text for block in blocks_of(PAGE, "sh")]
    assert starts == [
        "tamis serve people.server --config server.toml",
        f"tamis serve people.server --port 8081 --follow {WRITER}",
    ]
    folder = tmp_path / "people.server"
    with (
        serving(folder, "--config", "server.toml") as writer,
        serving(folder, "--follow", WRITER) as follower,
    ):
        ask, match, read, *rest = [
            Block(own.language, own.text.replace(WRITER, writer.url), own.place)
            for own in blocks_of(PAGE, "console")
        ]
        run_shell(ask, tmp_path)
        wait_until(lambda: has_published(writer), "the set is published and a segment is closed")
        run_shell(match, tmp_path)
        wait_until(lambda: stats(writer)["taken"]["batch"] == 0, "the batch is taken")
        run_shell(read, tmp_path)
        wait_until(lambda: stats(follower)["set"]["change"] == 1, "the follower has caught up")
        for block in rest:
            text = block.text.replace(FOLLOWER, follower.url).replace(writer.url, WRITER)
            run_shell(Block(block.language, text, block.place), tmp_path)
