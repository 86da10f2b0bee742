"""Damaged and missing files of a server: an error that names the file, or the right answers.

What an attempt to open a damaged folder leaves must be no worse: with the right file in its place,
everything is there again.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer
from tamis.errors import StoreFormatError, TamisError
from tests.broker.test_publishing import ask
from tests.server.load.worlds import draw_event, draw_expression

N_TURNS = 3
N_EACH = 10
# Locks are empty; the others are caches that SQLite makes again, or only help other programs.
UNUSED = (".lock", "-shm", "rejects.parquet")


def make_folder(folder: Path, seed: int) -> None:
    """A server with closed segments, an open one, and several parts."""
    draw = random.Random(seed)
    with MatchServer.open(folder) as server:
        for turn in range(N_TURNS):
            for at in range(N_EACH):
                server.live.add(f"s{turn}-{at}", draw_expression(draw))
            texts = [orjson.dumps(draw_event(draw, f"{turn}-{at}")) for at in range(40)]
            server.publisher.publish(ask(texts, key=bytes([turn]) * 32, request=bytes(32))).result()
            if turn < N_TURNS - 1:
                server.archive.seal()
                server.live.compact()


def read_everything(folder: Path) -> dict[str, Any]:
    """All that a server answers."""
    with MatchServer.open(folder) as server:
        found: dict[str, Any] = {}
        for own in server.live.list(limit=100).subscriptions:
            box = Mailbox.of_subscription(own.created)
            page = server.mailboxes.read(box, after=0, limit=1_000)
            found[own.id] = own.expression, page.matches
        found["events"] = server.archive.read_events(after=0, limit=1_000).events
        found["answers"] = [server.archive.find_answer(bytes([n]) * 32) for n in range(N_TURNS)]
        found["now"] = sorted(server.live.match({"a": 3, "b": 3, "c": "red"}))
    return found


def test_an_older_store_is_refused(tmp_path, seed):
    """Numbers of subscriptions would be used again, and new ones would get the mail of others."""
    folder, older = tmp_path / "server", tmp_path / "older"
    with MatchServer.open(folder) as server:
        server.live.add("a", "x = 1")
    shutil.copytree(folder / "index", older)
    with MatchServer.open(folder) as server:
        server.live.add("b", "x = 2")
        server.publisher.publish(ask([b'{"x": 2}'])).result()
    shutil.move(folder / "index", tmp_path / "newer")
    shutil.move(older, folder / "index")
    with pytest.raises(
        StoreFormatError, match=r"event 1 .* change 2, but the last .* is 1"
    ) as raised:
        MatchServer.open(folder)
    assert "restore both from the same backup" in raised.value.hint
    shutil.rmtree(folder / "index")
    with pytest.raises(StoreFormatError, match="is 0: it was lost"):
        MatchServer.open(folder)
    shutil.rmtree(folder / "index")
    shutil.move(tmp_path / "newer", folder / "index")
    with MatchServer.open(folder) as server:
        assert server.live.match({"x": 2}) == ["b"]


def damage(path: Path, how: str, draw: random.Random) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif content:
        at = draw.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])


def list_files(folder: Path, how: str) -> list[Path]:
    # SQLite has no checksums: a bit of a text that flips is another text.
    unused = (*UNUSED, ".sqlite", "-wal", "secret") if how == "flipped" else UNUSED
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in found if not path.name.endswith(unused)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tamis.TamisWarning")  # a part that is built again is reported
@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
def test_every_file(tmp_path, seed, how):
    whole, place = tmp_path / "whole", tmp_path / "place"
    make_folder(whole, seed)
    shutil.copytree(whole, place)
    expected = read_everything(place)
    draw = random.Random(seed)
    for path in list_files(whole, how):
        shutil.rmtree(place)
        shutil.copytree(whole, place)
        damage(place / path, how, draw)
        try:
            found = read_everything(place)
        except TamisError as error:
            print(f"{path}: {error}")
            shutil.copy2(whole / path, place / path)
            found = read_everything(place)
        assert found == expected, path
