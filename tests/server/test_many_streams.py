"""Ten thousand streams, held by a server in its own process."""

from __future__ import annotations

import asyncio
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from httpx2 import Client

from tests.server.asking import publish, subscribe
from tests.waiting import HANG_SECONDS

N_STREAMS = 10_000
N_SUBSCRIPTIONS = 1_000
MOST_BYTES = 100_000  # of a stream; 30,000 were measured


@pytest.fixture
def files():
    """As many open files as are needed, in this process and its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < N_STREAMS + 500:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def server(tmp_path, files):
    """The process of a server, and its address."""
    command = [sys.executable, "-m", "tamis", "serve", str(tmp_path / "server"), "--port", "0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    lines = iter(process.stdout.readline, "")
    try:
        yield process, next(m[0] for own in lines if (m := re.search(r"http://[\d.:]+", own)))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def read_memory(process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


async def open_stream(port: int, number: int):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = f"/v1/subscriptions/s{number % N_SUBSCRIPTIONS}/stream"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    await reader.readuntil(b"retry: 2000\n\n")
    return reader, writer


@pytest.mark.slow
def test_ten_thousand_streams_are_held(server):
    process, url = server
    with Client(base_url=url, timeout=HANG_SECONDS, trust_env=False) as client:
        for number in range(N_SUBSCRIPTIONS):
            subscribe(client, id=f"s{number}", expression="x = 1")
        publish(client, {"x": 2})
        before = read_memory(process)

        async def main() -> None:
            port = int(url.rpartition(":")[2])
            streams = []
            for start in range(0, N_STREAMS, 100):
                opening = (open_stream(port, number) for number in range(start, start + 100))
                streams += await asyncio.gather(*opening)
            print(f"{(read_memory(process) - before) // N_STREAMS:,} bytes for each stream")
            assert (read_memory(process) - before) / N_STREAMS < MOST_BYTES
            await asyncio.to_thread(publish, client, {"x": 1})
            await asyncio.gather(*(reader.readuntil(b'"event":2') for reader, _ in streams))
            process.terminate()
            ends = await asyncio.gather(*(reader.read() for reader, _ in streams))
            assert all(end.endswith(b"0\r\n\r\n") for end in ends)  # complete answers
            for _, writer in streams:
                writer.close()

        asyncio.run(asyncio.wait_for(main(), HANG_SECONDS))
        process.wait(HANG_SECONDS)
