"""A real `tamis serve` in a process of its own, and folders for it to serve."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from tamis.broker.match_server import INDEX
from tamis.live import LiveIndex
from tamis.subscriptions import Accepted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

GROUP: Final = 10_000  # subscriptions that are added at once
HOST: Final = "127.0.0.1"


def fill(folder: Path, schema: Mapping[str, str], texts: Sequence[str]) -> None:
    """Make the folder of a server that has these subscriptions."""
    with LiveIndex.open(folder / INDEX, schema=dict(schema)) as live:
        rows = [(f"s{at}", text) for at, text in enumerate(texts)]
        for at in range(0, len(rows), GROUP):
            results = live.add_many(rows[at : at + GROUP])
            assert all(isinstance(result, Accepted) for result in results)
        live.compact()


class Server:
    """The process. Its clients are on this machine."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tamis", "serve", str(folder), "--port", "0"]
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        lines = iter(self.process.stdout.readline, "")
        found = next(m for own in lines if (m := re.search(r"http://[\d.]+:(\d+)", own)))
        self.port = int(found[1])

    def connect(self) -> HTTPConnection:
        """A new connection."""
        return HTTPConnection(HOST, self.port)

    def wait_until_ready(self) -> float:
        """The seconds from the start of the process until it is ready."""
        connection = self.connect()
        while True:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                connection.close()
                return time.perf_counter() - self.began

    def measure_memory(self) -> int:
        """The memory of the process, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        assert found is not None
        return int(found[1]) * 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def ask(
    connection: HTTPConnection, method: str, path: str, body: bytes = b"", kind: str = "json"
) -> Any:
    """The answer to a request, which must succeed."""
    connection.request(method, path, body, {"content-type": f"application/{kind}"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status < 300, content
    return orjson.loads(content) if content else None
