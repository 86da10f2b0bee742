"""Log lines: no secrets, one record a line, nothing that a terminal acts on; and spans."""

from __future__ import annotations

import io
import json
import logging
from contextlib import contextmanager
from dataclasses import replace

import httpx2
import pytest
from starlette.testclient import TestClient

from tamis.broker.secrets import new_api_key, new_feed_token, new_signing_secret, new_ticket
from tamis.server import Settings, create_app, tracing
from tamis.server.logs import REQUEST_ID, make_handler
from tamis.server.settings import DeliverySettings, OperationSettings, SubscriptionSettings
from tests.server.conftest import OWN_URL
from tests.server.processes import serving

FORMATS = ("text", "json")
FORGED = "a\nERROR forged\r\x1b[31m\x9b31m\u2028x\u202ey\x00\ud800"


@contextmanager
def logging_to(form: str, secrets=()):
    """A logger, and the lines that were written."""
    stream = io.StringIO()
    logger = logging.Logger("tamis.test")
    logger.addHandler(make_handler(OperationSettings(log_format=form), secrets, stream))
    yield logger, lambda: stream.getvalue().splitlines()


@pytest.mark.parametrize("form", FORMATS)
def test_secrets_are_removed(form):
    handed_out = [
        new_ticket().reveal(),
        new_api_key()[1].reveal(),
        new_feed_token().reveal(),
        new_signing_secret().reveal(),
    ]
    with logging_to(form, ["my password"]) as (logger, lines):
        for secret in (*handed_out, "my password"):
            logger.info("in the message: %s", secret)
            logger.info(f"in the format: {secret}")
            logger.info("in a field", extra={"key_id": secret})
            logger.info("in an argument %r", {"header": [secret]})
            try:
                raise RuntimeError(secret)
            except RuntimeError:
                logger.exception("in a traceback")
        text = "\n".join(lines())
    assert text.count("in a traceback") == 5
    for secret in (*handed_out, "my password"):
        assert secret not in text
        assert secret[-10:] not in text


@pytest.mark.parametrize("form", FORMATS)
def test_values_cannot_break_a_line(form):
    with logging_to(form) as (logger, lines):
        logger.warning("value %s", FORGED, extra={"request_id": FORGED, "key_id": FORGED})
        (line,) = lines()
    assert line.isprintable()
    assert "forged" in line


def test_json_lines():
    with logging_to("json") as (logger, lines):
        token = REQUEST_ID.set("r-1")
        logger.info("done: %d", 5, extra={"status": 200, "seconds": 0.5, "key_id": "k"})
        REQUEST_ID.reset(token)
        try:
            raise RuntimeError(FORGED)
        except RuntimeError:
            logger.exception("failed")
        first, second = map(json.loads, lines())
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "info",
        "logger": "tamis.test",
        "message": "done: 5",
        "request_id": "r-1",
        "key_id": "k",
        "status": 200,
        "seconds": 0.5,
    }
    assert "RuntimeError" in second["exception"]


def test_lines_of_a_traceback_are_indented():
    with logging_to("text") as (logger, lines):
        try:
            raise RuntimeError("a\n2026-01-01 ERROR tamis: forged")
        except RuntimeError:
            logger.exception("failed")
        first, *more = lines()
    assert "ERROR tamis.test: failed" in first
    assert all(line.startswith("    ") for line in more)


def test_secrets_of_settings_are_known():
    settings = Settings(
        subscriptions=SubscriptionSettings(store="postgresql://u:hidden-1@h/d"),
        delivery=DeliverySettings(smtp_password="hidden-2"),
    )
    assert {"hidden-1", "hidden-2"} < set(settings.list_secrets())
    assert Settings().list_secrets() == []


def test_the_log_of_a_server(tmp_path):
    with serving(tmp_path / "server", TAMIS_OPERATIONS_LOG_FORMAT="json") as server:
        made = httpx2.post(f"{server.url}/v1/subscriptions", json={"expression": "a = 1"}).json()
        key = httpx2.post(f"{server.url}/v1/keys", json={"owner": "r", "roles": ["admin"]}).json()
        headers = {"authorization": f"Bearer {key['key']}", "x-request-id": "my-id"}
        httpx2.get(f"{server.url}/v1/keys?key={key['key']}", headers=headers)
        httpx2.get(f"{server.url}/v1/{made['ticket']}", headers={"tamis-ticket": made["ticket"]})
    text = server.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    (own,) = [line for line in lines if line.get("request_id") == "my-id"]
    assert (own["key_id"], own["status"], own["level"]) == (key["id"], 200, "info")
    for secret in (key["key"], made["ticket"]):
        assert secret not in text
        assert secret[-10:] not in text
    assert lines[-1]["message"] == "stopped"


# ── traces ──────────────────────────────────────────────────────────────────────────────────


class FakeTracer:
    """Keeps the attributes of spans."""

    def __init__(self) -> None:
        self.spans: list[dict] = []

    @contextmanager
    def start_as_current_span(self, name, **options):
        span = FakeSpan(name)
        yield span
        self.spans.append(span.found)


class FakeSpan:
    def __init__(self, name: str) -> None:
        self.found = {"name": name}

    def update_name(self, name: str) -> None:
        self.found["name"] = name

    def set_attributes(self, attributes) -> None:
        self.found |= attributes

    def set_status(self, status) -> None:
        self.found["status"] = status


def test_traces(match_server, settings, monkeypatch):
    pytest.importorskip("opentelemetry.trace")
    tracer = FakeTracer()
    monkeypatch.setattr("tamis.server.app.find_tracer", lambda: tracer)
    traced = replace(settings, operations=OperationSettings(traces=True))
    client = TestClient(create_app(match_server, traced, is_open=True), base_url=OWN_URL)
    client.get("/v1/subscriptions/a", headers={"x-request-id": "r"})
    client.get(f"/{new_ticket().reveal()}")
    first, second = tracer.spans
    assert first["name"] == "GET /v1/subscriptions/{subscription_id}"
    assert (first["http.response.status_code"], first["tamis.request_id"]) == (404, "r")
    assert (second["http.route"], second["url.path"]) == ("unknown", "/tkt_…")
    plain = TestClient(create_app(match_server, settings, is_open=True), base_url=OWN_URL)
    assert plain.get("/healthz").status_code == 200
    assert len(tracer.spans) == 2


def test_traces_without_the_package(monkeypatch, caplog):
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry", None)
    assert tracing.find_tracer() is None
    assert "opentelemetry-api is not installed" in caplog.text
