"""Requests that many tests make."""

from __future__ import annotations

from tamis.broker.rights import LOCAL


def subscribe(client, *, headers: dict | None = None, **asked) -> dict:
    """Make a subscription; returns the answer."""
    answer = client.post("/v1/subscriptions", json=asked, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()


def publish(client, *events: dict, headers: dict | None = None) -> dict:
    """Publish events; returns the answer."""
    answer = client.post("/v1/events", json=list(events), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def make_key(match_server, owner: str, *roles: str, **options) -> dict[str, str]:
    """The headers of a new key."""
    made = match_server.broker.keys.create(LOCAL, owner, roles, **options)
    return {"authorization": f"Bearer {made.secret.reveal()}"}


def needs_keys(client) -> None:
    """From now on, requests need a key."""
    client.app.state.context.is_open = False
