"""The OpenAPI document is complete, and every answer is as it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import Phase, given
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.server import create_app
from tamis.server.app import make_routes
from tamis.server.routes.opml import OPML
from tamis.server.settings import (
    DeliverySettings,
    FeedSettings,
    LimitSettings,
    OperationSettings,
    ServerSettings,
    Settings,
)
from tests.effort import examples
from tests.server.conftest import OWN_URL, STORES, choose_store
from tests.server.known import BODIES, FOR_ADMINS, OWNER, Known, fill

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
JSON = "application/json"
STREAM = "text/event-stream"
# Moments are spelled in one way: in UTC, with a Z.
OTHER_MOMENTS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(?![\d.Z])")
HTTP = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module", params=STORES)
def server(request, tmp_path_factory):
    """A server with some events, that can do all it offers."""
    folder = tmp_path_factory.mktemp("contract")
    delivery = DeliverySettings(
        allow_private_addresses=True, smtp_host="127.0.0.1", smtp_port=9, smtp_sender="t@t.example"
    )
    # All sources here are of one host; a pause for each fetch would take minutes.
    feeds = FeedSettings(host_pause=timedelta(0))
    settings = Settings(server=ServerSettings(folder=folder), delivery=delivery, feeds=feeds)
    own = MatchServerSettings(store=choose_store(request))
    with MatchServer.open(folder, own) as match_server:
        app = create_app(match_server, settings)
        with TestClient(app, base_url=OWN_URL, raise_server_exceptions=False) as client:
            yield client


@pytest.fixture(scope="module")
def schema(server):
    return schemathesis.openapi.from_dict(server.app.openapi())


@pytest.fixture(scope="module")
def known(server):
    own = Known(server.app)
    events = [{"age": 20}, {"age": 3}]
    assert server.post("/v1/events", json=events, headers=own.show("admin")).status_code == 200
    return own


def list_operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Each operation of the document: path, method, description."""
    paths = describe()["paths"]
    return [
        (path, method, operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


def describe() -> dict[str, Any]:
    """The document of all servers."""
    return make_routes().openapi()


OPERATIONS = list_operations()
ANSWERED = [
    operation
    for operation in OPERATIONS
    if STREAM not in operation[2]["responses"].get("200", {}).get("content", {})
]


def name(operation: Any) -> str:
    return " ".join(operation[:2]) if isinstance(operation, tuple) else ""


# ── the document ────────────────────────────────────────────────────────────────────────────


def test_operations_have_distinct_names():
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(one.isidentifier() for one in names)


def test_schemas_have_names_of_one_word():
    """Two models of one name are distinguished by the paths of their modules."""
    assert not [one for one in describe()["components"]["schemas"] if not one.isalnum()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=name)
def test_an_operation_is_described(operation):
    path, method, described = operation
    assert method in HTTP
    assert described["summary"]
    assert described["description"]
    assert described["tags"]
    for own in described.get("parameters", ()):
        assert own["schema"]
    body = described.get("requestBody")
    if body is not None:
        assert body["content"]
        shown = [kind for kind, own in body["content"].items() if has_example(own)]
        assert shown, f"{method} {path} has no example of a body"
    statuses = set(described["responses"])
    assert statuses & {"200", "201", "202", "204"}
    assert {"500", "503"} <= statuses
    for status, response in described["responses"].items():
        assert response["description"]
        if status >= "400":
            assert list(response["content"]) == ["application/problem+json"]


def test_every_reference_leads_to_something():
    document = describe()
    found = list(list_references(document))
    assert len(found) > 100
    for reference in found:
        assert reference.startswith("#/"), reference
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        assert place


def list_references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for one in part.values():
            yield from list_references(one)
    elif isinstance(part, list):
        for one in part:
            yield from list_references(one)


def test_the_order_of_a_search_is_described():
    body = describe()["paths"]["/v1/search"]["post"]["requestBody"]["content"]["application/json"]
    order = body["schema"]["properties"]["order"]
    assert (order["enum"], order["default"]) == (["newest", "relevance"], "newest")


def test_cloud_events_in_binary_mode_are_described():
    publish = describe()["paths"]["/v1/events"]["post"]
    headers = [own["name"] for own in publish["parameters"] if own["in"] == "header"]
    assert headers.count("idempotency-key") == 1
    assert {"ce-id", "ce-source", "ce-specversion", "ce-type", "ce-subject"} <= set(headers)
    assert "*/*" in publish["requestBody"]["content"]


def test_what_needs_a_key_is_described():
    for path, _, described in OPERATIONS:
        may_need_key = path.startswith("/v1/") or path == "/metrics"
        assert ("401" in described["responses"]) is may_need_key, path
        assert ({"key": []} in described.get("security", ())) is may_need_key, path
        assert {"400", "403", "421", "429"} <= set(described["responses"]), path


def has_example(content: dict[str, Any]) -> bool:
    if "example" in content or content.get("examples"):
        return True
    reference = content["schema"].get("$ref", "").rpartition("/")[2]
    return bool(SCHEMAS.get(reference, content["schema"]).get("examples"))


SCHEMAS = describe()["components"]["schemas"]


# ── the answers ─────────────────────────────────────────────────────────────────────────────


def kind_of(body: Any) -> str:
    """The media type of a body of `BODIES`."""
    return OPML if isinstance(body, bytes) else JSON


@pytest.mark.parametrize("caller", ["admin", OWNER])
@pytest.mark.parametrize("operation", ANSWERED, ids=name)
def test_each_operation_succeeds_as_documented(server, schema, known, operation, caller):
    path, method, described = operation
    values = known.make(path)
    body = BODIES.get((method.upper(), path))
    case = schema[path][method.upper()].Case(
        path_parameters=choose(values, described),
        headers=known.show(caller) | {"tamis-ticket": values["ticket"]},
        **({} if body is None else {"body": fill(body, values), "media_type": kind_of(body)}),
    )
    answer = call(server, case)
    is_allowed = caller == "admin" or (method.upper(), path) not in FOR_ADMINS
    assert answer.is_success if is_allowed else answer.status_code == 403, answer.text[:1_000]
    assert not OTHER_MOMENTS.search(answer.text), answer.text[:1_000]
    case.validate_response(answer, checks=CHECKS)


def choose(values: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    """The values for the path of an operation."""
    asked = [own["name"] for own in described.get("parameters", ()) if own["in"] == "path"]
    return {own: values[own] for own in asked}


# Hypothesis takes random numbers of the server's threads for those of a strategy.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=str)
@pytest.mark.parametrize("operation", ANSWERED, ids=name)
def test_answers_are_as_documented(server, schema, known, operation, mode):
    path, method, described = operation
    found = schema[path][method.upper()]
    body = BODIES.get((method.upper(), path))

    @hypothesis.settings(
        max_examples=examples(20),
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @given(
        case=found.as_strategy(generation_mode=mode),
        caller=st.sampled_from(["admin", OWNER]),
        is_known=st.booleans(),
        has_body=st.booleans(),
    )
    def check(case, caller, is_known, has_body):
        case.headers = {**(case.headers or {}), **known.show(caller)}
        if is_known:
            values = known.make(path)
            case.path_parameters = {**(case.path_parameters or {}), **choose(values, described)}
            case.headers["tamis-ticket"] = values["ticket"]
            if has_body and body is not None:
                case.body, case.media_type = fill(body, values), kind_of(body)
        if case.query and "wait" in case.query:
            case.query["wait"] = 0  # otherwise the answer comes after so many seconds
        case.validate_response(call(server, case), checks=CHECKS)

    nothing = Unsatisfiable if mode is GenerationMode.NEGATIVE else ()
    with suppress(nothing):  # some operations take every text, and no body: nothing is wrong
        check()


def call(client: TestClient, case: Any) -> Any:
    """The answer of the application to a request that schemathesis made."""
    asked = case.as_transport_kwargs(base_url=OWN_URL)
    asked.pop("cookies")  # those of sessions are in test_session.py
    if "data" in asked:
        asked["content"] = asked.pop("data")
    return client.request(**asked)


def test_answers_of_metrics_that_need_a_key_are_as_documented(tmp_path):
    settings = Settings(
        server=ServerSettings(folder=tmp_path),
        limits=LimitSettings(wrong_secrets_per_second=0.001, requests_per_second=0.001),
        operations=OperationSettings(metrics_need_key=True),
    )
    with MatchServer.open(tmp_path) as match_server:
        app = create_app(match_server, settings)
        document = schemathesis.openapi.from_dict(app.openapi())
        known = Known(app)
        with TestClient(app, base_url=OWN_URL, raise_server_exceptions=False) as client:
            for headers, status in (
                (known.show("admin"), 200),
                (known.show("admin"), 429),
                (known.show(OWNER), 403),
                ({}, 401),
                ({"authorization": "Bearer wrong"}, 401),
                ({"authorization": "Bearer wrong"}, 429),
                ({"host": "other.example"}, 421),
                ({"origin": "https://other.example"}, 403),
                ({"host": "a:b"}, 400),
            ):
                case = document["/metrics"]["GET"].Case(headers=headers)
                answer = call(client, case)
                assert answer.status_code == status, headers
                case.validate_response(answer, checks=CHECKS)


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/nothing", "/v1/subscriptions/a/b/c", "/%00", "/v1/%ff"]
)
def test_unknown_paths_are_problems(server, path):
    answer = server.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unknown-path"


@pytest.mark.parametrize("path", sorted({path for path, _, _ in OPERATIONS}))
def test_other_methods_are_problems(server, path):
    known = {own.upper() for other, own, _ in OPERATIONS if other == path}
    for method in {"PUT", "TRACE"} - known:
        answer = server.request(method, path.replace("{", "").replace("}", ""))
        assert answer.status_code == 405
        assert answer.headers["content-type"] == "application/problem+json"
        assert known <= set(answer.headers["allow"].split(", "))
