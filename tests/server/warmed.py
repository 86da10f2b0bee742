"""Uses a server after kernels were warmed up, and prints those that it needed besides."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import orjson
import pyarrow as pa
from numba.core.dispatcher import Dispatcher
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.match.warmup import warm_up
from tamis.server import Settings, create_app
from tamis.server.settings import ServerSettings

LINES = {"content-type": "application/x-ndjson"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
EVENT = {"age": 20, "text": "iron ore", "price": 2.5}


def count_compiled() -> dict[str, int]:
    """How many forms of each kernel are compiled or loaded in this process."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("tamis.") and "kernels" in name.split("."):
            for own in vars(module).values():
                if isinstance(own, Dispatcher) and own.py_func.__module__ == name:
                    found[f"{name}.{own.py_func.__name__}"] = len(own.overloads)
    return found


def use(client: TestClient) -> None:
    """Ask for everything that needs kernels."""
    subscribe(client, "a", "age >= 18 AND text LIKE '%x%'")
    subscribe(client, "b", "matches(text, 'iron') AND price < 3.5")
    post(client, "/v1/events", EVENT)
    post(client, "/v1/events", [EVENT] * 40)
    subscribe(client, "c", "age IN (20, 30) OR text = 'tin'", history="7d")
    subscribe(client, "d", "age >= 19", group_similar="3d")
    post(client, "/v1/events?matches=ids", b"\n".join([orjson.dumps(EVENT)] * 600), LINES)
    post(client, "/v1/events", make_arrow(), ARROW)
    for choice in ({}, {"tagged": ["t"]}, {"subset": ["a"]}):
        post(client, "/v1/match", {"event": EVENT, **choice})
    post(client, "/v1/explain", {"subscription_id": "a", "event": EVENT})
    post(client, "/v1/check", {"expression": "age >= 18"})
    post(client, "/v1/forecast", {"expression": "age >= 18 AND matches(text, 'ore')"})
    post(client, "/v1/search", {"query": "iron", "attributes": ["text"]})
    post(client, "/v1/search", {"expression": "matches(text, 'ore')", "order": "relevance"})
    for name in "acd":
        assert client.get(f"/v1/subscriptions/{name}/matches").status_code == 200
    assert client.delete("/v1/subscriptions/a").status_code == 204
    rows = [{"id": f"i{at}", "expression": f"x = {at} OR y = 'a{at}'"} for at in range(3_000)]
    post(client, "/v1/subscriptions/import", b"\n".join(map(orjson.dumps, rows)), LINES)
    post(client, "/v1/events", [{"x": 7, "y": "a8"}] * 40)


def subscribe(client: TestClient, name: str, expression: str, **more: str) -> None:
    post(client, "/v1/subscriptions", {"id": name, "expression": expression, "tags": ["t"], **more})


def post(client: TestClient, path: str, body: object, headers: dict[str, str] | None = None):
    given = {"json": body} if headers is None else {"content": body}
    answer = client.post(path, **given, headers=headers)
    assert answer.is_success, answer.text


def make_arrow() -> bytes:
    table = pa.table({"age": [20, None], "text": ["iron", "x"], "price": [1.5, 2.5]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with MatchServer.open(folder, MatchServerSettings(audit_share=1.0)) as match_server:
            settings = Settings(server=ServerSettings(folder=folder))
            app = create_app(match_server, settings, is_open=True)
            with TestClient(app, base_url="http://127.0.0.1:8080") as client:
                warm_up()
                before = count_compiled()
                use(client)
                after = count_compiled()
    for kernel, n_forms in after.items():
        if n_forms != before.get(kernel, 0):
            print(kernel)


if __name__ == "__main__":
    main()
