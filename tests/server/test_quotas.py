"""How many webhooks, feeds and channels an owner may have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tamis.server.settings import DeliverySettings, LimitSettings
from tests.server.asking import make_key, needs_keys, subscribe


@pytest.fixture
def settings(settings):
    limits = LimitSettings(webhooks=2, feeds=2, channels=2)
    delivery = DeliverySettings(allow_private_addresses=True)
    return replace(settings, limits=limits, delivery=delivery)


@pytest.fixture
def ann(client, match_server) -> dict[str, str]:
    headers = make_key(match_server, "ann", "subscribe", "read")
    needs_keys(client)
    subscribe(client, headers=headers, id="a", expression="x = 1")
    return headers


def ask_for(client, kind: str, headers: dict[str, str], name: str):
    """Make something of a kind for ann."""
    bodies = {
        "webhooks": {"subscription": "a", "url": "http://127.0.0.1:9/"},
        "feeds": {"subscription": "a"},
        "channels": {"name": name, "owner": "ann"},
    }
    return client.post(f"/v1/{kind}", json=bodies[kind], headers=headers)


@pytest.mark.parametrize("kind", ["webhooks", "feeds", "channels"])
def test_an_owner_has_so_many(client, match_server, ann, kind):
    made = [ask_for(client, kind, ann, f"c{at}") for at in range(3)]
    assert [own.status_code for own in made] == [201, 201, 403]
    problem = made[2].json()
    assert (problem["code"], problem["limit"]) == (f"too-many-{kind}", 2)
    assert problem["detail"] == f'"ann" has 2 {kind}, which is the limit'
    assert len(client.get(f"/v1/{kind}", headers=ann).json()[kind]) == 2
    # An admin may go beyond the limit; what is removed makes room once the owner is below it.
    admin = make_key(match_server, "root", "admin")
    beyond = ask_for(client, kind, admin, "beyond")
    assert beyond.status_code == 201
    for own in (made[0].json(), made[1].json()):
        thing = own["name"] if kind == "channels" else own["number"]
        assert client.delete(f"/v1/{kind}/{thing}", headers=ann).status_code == 204
    assert ask_for(client, kind, ann, "again").status_code == 201
    assert ask_for(client, kind, ann, "more").status_code == 403


def test_another_owner_has_their_own(client, match_server, ann):
    bob = make_key(match_server, "bob", "subscribe")
    for owner, headers in (("ann", ann), ("bob", bob)):
        for at in range(2):
            body = {"name": f"{owner} {at}"}
            assert client.post("/v1/channels", json=body, headers=headers).status_code == 201
    refused = client.post("/v1/channels", json={"name": "bob 3"}, headers=bob)
    assert refused.json()["detail"] == '"bob" has 2 channels, which is the limit'
