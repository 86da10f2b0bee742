"""Import and export: a result for each row, and what comes out goes in again."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer
from tamis.server import create_app, importing
from tamis.server.routes import bulk
from tamis.server.settings import LimitSettings
from tests.server.conftest import OWN_URL
from tests.server.places import EVERY_STORE, closed_client, key_of, subscribe

LINES = "application/x-ndjson"
CSV = "text/csv"
TSV = "text/tab-separated-values"
PARQUET = "application/vnd.apache.parquet"
ROWS = [
    {"id": "a", "expression": "age >= 18", "tags": ["t", "u"], "valid_until": "2100-01-01"},
    {"id": "b", "expression": "country = 'FR, or so'", "note": "text"},
    {"id": "wrong", "expression": "age >= = 18"},
    {"id": "type", "expression": "age = 'text'"},
    {"id": "a", "expression": "age < 18"},
    {"id": "", "expression": "age < 18"},
    {"id": "late", "expression": "age < 18", "valid_until": "2000-01-01"},
    {"id": "c", "expression": "age < 3"},
]
STATUSES = ["made", "made", "refused", "refused", "refused", "refused", "refused", "made"]


def spell_lines(rows) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def spell_tsv(rows) -> bytes:
    return spell_csv(rows, delimiter="\t")


def spell_csv(rows, delimiter=",") -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    sink = io.StringIO()
    writer = csv.DictWriter(sink, names, lineterminator="\n", delimiter=delimiter)
    writer.writeheader()
    for row in rows:
        tags = {"tags": ",".join(row["tags"])} if "tags" in row else {}
        writer.writerow(row | tags)
    return sink.getvalue().encode()


def spell_parquet(rows) -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


FORMS = {LINES: spell_lines, CSV: spell_csv, TSV: spell_tsv, PARQUET: spell_parquet}


def load(client, body: bytes, kind: str = LINES, headers=None, **params):
    answer = client.post(
        "/v1/subscriptions/import",
        content=body,
        headers={"content-type": kind} | (headers or {}),
        params=params,
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith(LINES)
    *results, summary = [json.loads(line) for line in answer.text.splitlines()]
    assert summary["is_complete"]
    assert summary["summary"]["rows"] == len(results)
    for status in ("made", "replaced", "refused"):
        assert summary["summary"][status] == sum(own["status"] == status for own in results)
    return results


def export(client, headers=None, **params) -> list[dict]:
    answer = client.get("/v1/subscriptions/export", headers=headers, params=params)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def without_numbers(result: dict) -> dict:
    """What a dry run knows too: all but the revision, the ticket and the time of the day."""
    error = result.get("error")
    if error is not None:
        message = error["message"].partition("; the store's clock")[0]
        result = result | {"error": error | {"message": message}}
    return {name: own for name, own in result.items() if name not in ("revision", "ticket")}


@EVERY_STORE
@pytest.mark.parametrize(("kind", "chunk"), [(LINES, 1_000), (LINES, 2), (CSV, 3), (PARQUET, 4)])
def test_one_bad_row_never_fails_the_rest(client, kind, chunk, monkeypatch):
    monkeypatch.setattr(importing, "CHUNK_ROWS", chunk)
    body = FORMS[kind](ROWS)
    before = client.app.state.context.match_server.live.change
    rehearsed = load(client, body, kind, dry_run=True)
    assert client.app.state.context.match_server.live.change == before
    results = load(client, body, kind)
    assert [own["status"] for own in results] == STATUSES
    assert [own["row"] for own in results] == list(range(1, 9))
    assert list(map(without_numbers, rehearsed)) == list(map(without_numbers, results))
    assert results[2]["error"]["span"] == [7, 8]
    assert results[4]["error"]["code"] == "refused-exists"
    assert results[5]["error"]["code"] in ("bad-id", "missing-key")
    shown = client.get("/v1/subscriptions/a").json()
    assert (shown["tags"], shown["valid_until"]) == (["t", "u"], "2100-01-01T00:00:00Z")
    assert client.get("/v1/subscriptions/b").json()["attributes"] == {"note": "text"}
    ticket = {"tamis-ticket": results[0]["ticket"]}
    client.app.state.context.is_open = False
    assert client.delete("/v1/subscriptions/a", headers=ticket).status_code == 204


def test_what_is_exported_can_be_imported(tmp_path, settings, client, monkeypatch):
    monkeypatch.setattr(bulk, "_PAGE", 3)
    rows = [
        {"id": f"s{at}", "expression": f"x = {at}", "tags": [f"t{at % 2}"], "owner": f"o{at % 3}"}
        for at in range(10)
    ]
    rows[4]["attributes"] = {"id": 5, "deep": {"n": None}}
    rows[5]["weight"] = 2.5
    assert {own["status"] for own in load(client, spell_lines(rows))} == {"made"}
    exported = export(client, hashes=True)
    assert [own["subscription_id"] for own in exported] == [f"s{at}" for at in range(10)]
    assert [own["subscription_id"] for own in export(client, tag="t1", owner="o1")] == ["s1", "s7"]
    assert all("ticket_hash" not in own for own in export(client))
    with (
        MatchServer.open(tmp_path / "other") as other,
        TestClient(create_app(other, settings, is_open=True), base_url=OWN_URL) as copy,
    ):
        results = load(copy, spell_lines(exported))
        assert all("ticket" not in own for own in results)  # they have those that they had
        assert export(copy, hashes=True) == exported


def test_replacing_needs_a_right(match_server, settings):
    client = closed_client(match_server, settings)
    ann, bob = (key_of(match_server, name, "subscribe", "read") for name in ("ann", "bob"))
    admin = key_of(match_server, "root", "admin")
    made = subscribe(client, ann, id="a", expression="x = 1", tags=["t"], lease=1e6)
    row = {"id": "a", "expression": "x = 2"}

    def load_one(headers, **more):
        (result,) = load(client, spell_lines([row | more]), headers=headers, existing="replace")
        return result

    for headers in (ann, bob):
        assert load_one(headers)["error"]["code"] == "wrong-ticket"
    assert load_one(bob, ticket="tkt_wrong")["error"]["code"] == "wrong-ticket"
    assert load_one(bob, owner="ann")["error"]["code"] == "not-yours"
    assert load_one(bob, ticket_hash="00" * 32)["error"]["code"] == "not-allowed"
    result = load_one(ann, ticket=made["ticket"])
    assert (result["status"], "ticket" in result) == ("replaced", False)
    shown = client.get("/v1/subscriptions/a", headers=ann).json()
    assert (shown["expression"], shown["tags"], shown["attributes"]) == ("x = 2", [], {})
    assert (shown["valid_until"], shown["owner"]) == (made["valid_until"], "ann")
    assert load_one(admin, expression="x = 3")["status"] == "replaced"
    assert client.get("/v1/subscriptions/a", headers=ann).json()["owner"] == "ann"
    assert load_one(admin, owner="bob")["status"] == "replaced"
    assert [own["subscription_id"] for own in export(client, bob)] == ["a"]
    assert export(client, ann) == []
    hidden = client.get("/v1/subscriptions/export?owner=bob", headers=ann)
    assert hidden.json()["code"] == "not-yours"
    assert client.get("/v1/subscriptions/export?hashes=1", headers=ann).status_code == 403


def test_limits(match_server, settings):
    limits = LimitSettings(subscriptions=3, expression_size=20, import_size=4_000)
    client = closed_client(match_server, replace(settings, limits=limits))
    ann = key_of(match_server, "ann", "subscribe", "read")
    rows = [{"id": f"s{at}", "expression": "x = 1"} for at in range(5)]
    rows[1]["expression"] = "x = 1 OR x = 2 OR x = 3"
    rows.insert(0, {"id": "wrong", "expression": "x = "})  # it takes no room
    results = load(client, spell_lines(rows), headers=ann)
    codes = [own.get("error", {}).get("code") for own in results]
    assert codes[0] == "unexpected-token"
    assert codes[1:] == [None, "too-large", None, None, "too-many-subscriptions"]
    large = client.post(
        "/v1/subscriptions/import",
        content=spell_lines(rows * 40),
        headers=ann | {"content-type": LINES},
    )
    assert (large.status_code, large.json()["limit"]) == (413, 4_000)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", LINES, 200),
        (b"[]", "application/json", 200),
        (b"PAR1 but not", PARQUET, 422),
        (b"nothing", PARQUET, 422),
        (b"name,text\na,b\n", CSV, 422),
        (b"\x1f\x8b\x08\x00", LINES, 415),
        (b"", "text/html", 415),
    ],
)
def test_files_that_cannot_be_read(client, body, kind, status):
    answer = client.post("/v1/subscriptions/import", content=body, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    if status == 200:
        assert json.loads(answer.text)["summary"]["rows"] == 0


def test_a_file_that_breaks_off_is_not_complete(client):
    body = b'[{"id": "a", "expression": "x = 1"}, {"id": "b", "expre'
    answer = client.post(
        "/v1/subscriptions/import", content=body, headers={"content-type": "application/json"}
    )
    first, *_, last = [json.loads(line) for line in answer.text.splitlines()]
    assert (first["id"], first["status"]) == ("a", "made")
    assert last["summary"]["refused"] == 1


def test_names_that_are_paths_can_be_used(client):
    for name in ("export", "import"):
        answer = client.post("/v1/subscriptions", json={"id": name, "expression": "x = 1"})
        assert client.get(answer.headers["location"]).json()["id"] == name
        assert client.delete(answer.headers["location"]).status_code == 204
