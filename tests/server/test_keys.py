"""Keys over HTTP and in the shell; a server without keys is open until the first one is made."""

from __future__ import annotations

import json
import stat

import httpx2
import pytest

from tamis.broker.keys import Keys
from tamis.broker.rights import LOCAL
from tamis.broker.secrets import Secret, ServerSecret
from tamis.server.server_file import FILE, read_presence
from tests.cli.shell import json_lines, run, run_process
from tests.server.asking import make_key, subscribe
from tests.server.processes import serving


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_the_first_key_ends_the_openness_at_once(client):
    assert client.get("/v1/keys").json() == {"keys": [], "cursor": None}
    asked = {"owner": "root", "roles": ["admin"], "limits": {"streams": 3}}
    made = client.post("/v1/keys", json=asked)
    assert made.status_code == 201
    assert client.get("/v1/keys").status_code == 401
    assert client.post("/v1/events", json={}).status_code == 401
    key = made.json()["key"]
    (listed,) = client.get("/v1/keys", headers=bearer(key)).json()["keys"]
    assert listed == {name: value for name, value in made.json().items() if name != "key"}
    assert listed["limits"] == {"streams": 3}


def test_a_key_of_another_process_ends_the_openness(client, match_server, settings):
    timer = match_server.broker.keys._existence._timer
    assert client.get("/v1/keys").status_code == 200
    match_server.broker.keys._existence._timer = lambda: timer() + 1
    other = Keys(match_server.live.store, ServerSecret.load(settings.server.folder))
    other.create(LOCAL, "ann", ["read"])
    assert client.get("/v1/keys").status_code == 401


def test_revoked_keys_do_not_open_the_server_again(client):
    made = client.post("/v1/keys", json={"owner": "root", "roles": ["admin"]}).json()
    path = f"/v1/keys/{made['id']}"
    revoked = client.delete(path, headers=bearer(made["key"]))
    assert revoked.json()["revoked"] is not None
    assert client.get("/v1/keys", headers=bearer(made["key"])).status_code == 401
    assert client.get("/v1/keys").status_code == 401


@pytest.mark.parametrize(
    "asked",
    [
        {"owner": "", "roles": ["read"]},
        {"owner": "a\nb", "roles": ["read"]},
        {"owner": "ann", "roles": []},
        {"owner": "ann", "roles": ["root"]},
        {"owner": "ann", "roles": ["read"], "limits": {"streams": -1}},
        {"owner": "ann", "roles": ["read"], "limits": {"streams": 2**70}},
        {"owner": "ann", "roles": ["read"], "limits": {"strings": 1}},
        {"owner": "ann", "roles": ["read"], "expires": "2001-01-01T00:00:00Z"},
    ],
)
def test_wrong_keys_are_not_made(client, asked):
    assert client.post("/v1/keys", json=asked).status_code == 422
    assert client.get("/v1/keys").json()["keys"] == []


def test_the_log_of_administrators(client):
    key = client.post("/v1/keys", json={"owner": "root", "roles": ["admin"]}).json()
    headers = bearer(key["key"])
    client.post("/v1/keys", json={"owner": "ann", "roles": ["read"]}, headers=headers)
    page = client.get("/v1/audit", params={"limit": 1}, headers=headers).json()
    (newest,) = page["entries"]
    assert (newest["action"], newest["key_id"]) == ("key.create", key["id"])
    older = client.get("/v1/audit", params={"cursor": page["cursor"]}, headers=headers).json()
    assert [entry["key_id"] for entry in older["entries"]] == ["local"]
    assert key["key"] not in json.dumps([page, older])
    assert client.delete("/v1/keys/0000", headers=headers).status_code == 404


def test_what_an_admin_does_to_others_is_in_the_log(client, match_server):
    keys = match_server.broker.keys
    root = keys.create(LOCAL, "root", ["admin"])
    admin, ann = bearer(root.secret.reveal()), make_key(match_server, "ann", "subscribe", "read")
    made = {
        name: subscribe(client, headers=ann, id=name, expression="a = 1") for name in ("s", "t")
    }
    subscribe(client, headers=admin, id="own", expression="a = 1")
    paths = {name: f"/v1/subscriptions/{name}" for name in ("s", "t", "own")}

    def done() -> list[tuple]:
        page = client.get("/v1/audit", headers=admin).json()
        found = [one for one in page["entries"] if one["action"].startswith("subscription.")]
        assert {one["key_id"] for one in found} <= {root.key.id}
        return [(one["action"], one["target"], one["detail"]) for one in reversed(found)]

    # Owners, and admins with what is theirs, leave no entry; nor does what is refused or dry.
    ticket = {"tamis-ticket": made["t"]["ticket"]}
    assert client.patch(paths["t"], json={"tags": ["x"]}, headers=ann | ticket).is_success
    assert client.patch(paths["own"], json={"tags": ["x"]}, headers=admin).is_success
    stale = admin | {"if-match": '"0"'}
    assert client.delete(paths["s"], headers=stale).status_code == 412
    assert client.get("/v1/subscriptions/export", headers=admin).is_success
    lines = {"content-type": "application/x-ndjson"}
    row = b'{"id": "s", "expression": "a = 2"}\n'
    dry = "/v1/subscriptions/import?existing=replace&dry_run=true"
    assert client.post(dry, content=row, headers=admin | lines).is_success
    assert done() == []

    expected = []
    for method, path, verb in (("PATCH", "", "replace"), ("POST", "/renew", "renew")):
        revision = client.get(paths["s"], headers=admin).json()["revision"]
        body = {"tags": ["y"]} if verb == "replace" else {"lease": 1e6}
        assert client.request(method, paths["s"] + path, json=body, headers=admin).is_success
        expected.append((f"subscription.{verb}", "s", {"owner": "ann", "revision": revision}))
    assert client.get("/v1/subscriptions/export?hashes=true&owner=ann", headers=admin).is_success
    expected.append(("subscription.export", "ann", {"hashes": True}))
    real = "/v1/subscriptions/import?existing=replace"
    assert client.post(real, content=row, headers=admin | lines).is_success
    expected.append(("subscription.import", "", {"existing": "replace"}))
    revision = client.get(paths["s"], headers=admin).json()["revision"]
    assert client.delete(paths["s"], headers=admin).is_success
    expected.append(("subscription.end", "s", {"owner": "ann", "revision": revision}))
    assert done() == expected


def test_keys_in_the_shell_without_a_server(tmp_path):
    folder = tmp_path / "server"
    assert run("keys", "list", folder).exit_code == 1
    made = run("keys", "create", folder, "ann", "--role", "read", "--limit", "streams=2")
    assert made.exit_code == 0, made.output
    text = made.stdout.strip()
    (listed,) = json_lines(run("keys", "list", folder, "--output", "json").stdout)
    assert (listed["owner"], listed["roles"], listed["limits"]) == ("ann", ["read"], {"streams": 2})
    assert text not in run("keys", "list", folder).output
    assert "revoked" in run("keys", "revoke", folder, listed["id"]).stdout
    (listed,) = json_lines(run("keys", "list", folder, "--output", "json").stdout)
    assert listed["revoked"] is not None
    wrong = run("keys", "create", folder, "ann", "--role", "read", "--limit", "stream=2")
    assert 'did you mean "streams"?' in wrong.stderr
    assert run("keys", "revoke", folder, "nobody").exit_code == 1


def test_keys_in_the_shell_of_a_running_server(tmp_path):
    with serving(tmp_path / "server") as server:
        assert httpx2.get(f"{server.url}/v1/keys").status_code == 200
        presence = server.folder / FILE
        assert stat.S_IMODE(presence.stat().st_mode) == 0o600
        local = read_presence(server.folder).key.reveal()
        made = run_process("keys", "create", server.folder, "root", "--role", "admin")
        assert made.returncode == 0, made.stderr
        key = made.stdout.decode().strip()
        assert httpx2.get(f"{server.url}/v1/keys").status_code == 401
        assert httpx2.get(f"{server.url}/v1/keys", headers=bearer(key)).status_code == 200
        by_address = run_process("keys", "list", server.url, "--output", "json", TAMIS_KEY=key)
        (listed,) = json_lines(by_address.stdout.decode())
        assert listed["owner"] == "root"
        refused = run_process("keys", "list", server.url)
        assert refused.returncode == 1
        assert b"this needs a key" in refused.stderr
        assert run_process("keys", "revoke", server.folder, listed["id"]).returncode == 0
        assert httpx2.get(f"{server.url}/v1/keys", headers=bearer(key)).status_code == 401
        assert httpx2.get(f"{server.url}/v1/keys", headers=bearer(local)).status_code == 200
    assert not presence.exists()
    assert local not in server.log.read_text()


def test_a_local_key_of_an_ended_server_is_worth_nothing(client, match_server):
    context = client.app.state.context
    context.is_open = False
    context.local_key = Secret("tamis_000000000000_" + "a" * 43)
    right, wrong = context.local_key.reveal(), "tamis_000000000000_" + "b" * 43
    assert client.get("/v1/keys", headers=bearer(right)).status_code == 200
    assert client.get("/v1/keys", headers=bearer(wrong)).status_code == 401
    context.local_key = None
    assert client.get("/v1/keys", headers=bearer(right)).status_code == 401
