"""What only a real socket shows: slow and huge headers, TLS, the end of connections."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from contextlib import closing, suppress
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.cli.shell import run, run_process
from tests.server.processes import serving
from tests.waiting import HANG_SECONDS


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("sockets") / "server") as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A server that gives up soon. It may do so before a slow test has sent anything."""
    soon = {"TAMIS_LIMITS_HEADER_TIMEOUT": "1 s", "TAMIS_LIMITS_REQUEST_TIMEOUT": "1 s"}
    with serving(tmp_path_factory.mktemp("hasty") / "server", **soon) as server:
        yield server


def connect(server) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=HANG_SECONDS)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    found = b""
    try:
        while piece := connection.recv(65_536):
            found += piece
    except ConnectionResetError:
        pass
    return found


POST = b"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\n"
GET = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET ", GET + b"x: ", GET + b"\r\n" + b"GET /he", b"\r\n"])
def test_headers_that_do_not_arrive(hasty, sent):
    with closing(connect(hasty)) as connection:
        connection.sendall(sent)
        found = read_all(connection)
    assert b"408 Request Timeout" in found
    assert read_problem(found)["code"] == "slow-request"


def read_problem(found: bytes) -> dict:
    """The last answer on a connection, which has the form of all errors."""
    head, _, body = found.rpartition(b"\r\n\r\n")
    assert (
        b"content-type: application/problem+json\r\n" in head.rpartition(b"HTTP/1.1 ")[2] + b"\r\n"
    )
    return json.loads(body)


def test_blank_lines_do_not_keep_a_connection(hasty):
    with closing(connect(hasty)) as connection:
        connection.sendall(GET + b"\r\n")
        connection.recv(65_536)
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b"\r\n")
        read_all(connection)  # ends when the server gives up
    assert httpx2.get(f"{hasty.url}/healthz", trust_env=False).status_code in (200, 408)


@pytest.mark.parametrize(
    "sent",
    [
        GET + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
        GET + b"x: " + b"y" * 200_000,
        GET + b"x: y\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"y" * 200_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_huge_headers(server, sent):
    with closing(connect(server)) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(sent)
        found = read_all(connection)
    # The answer may be lost, since the server does not read what it refuses.
    assert found == b"" or b"431 Request Header Fields Too Large" in found
    assert found == b"" or read_problem(found)["code"] == "headers-too-large"
    assert httpx2.get(f"{server.url}/healthz").status_code == 200


def test_large_headers_are_answered(server):
    answer = httpx2.get(f"{server.url}/healthz", headers={"x": "y" * 20_000})
    assert answer.status_code == 200


def test_a_body_that_does_not_arrive(hasty):
    with closing(connect(hasty)) as connection:
        connection.sendall(POST + b'content-length: 100\r\n\r\n{"a"')
        assert b" 408 " in read_all(connection)


def test_the_rest_of_a_refused_body_is_not_read_for_ever(hasty):
    head = b"POST /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n"
    with closing(connect(hasty)) as connection:
        connection.sendall(head)
        answer = connection.recv(65_536)
        assert b" 404 " in answer or b" 408 " in answer
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b"x")
        read_all(connection)  # ends when the server gives up


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        POST + b"content-length: -5\r\n\r\n",
        POST + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
    ],
)
def test_requests_that_are_none(server, sent):
    with closing(connect(server)) as connection:
        connection.sendall(sent)
        found = read_all(connection)
    assert found.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert found.count(b"HTTP/1.") == 1 or b"408" in found
    assert read_problem(found)["detail"]
    assert httpx2.get(f"{server.url}/readyz").json()["last_event"] == 0


# ── TLS ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tamis.example"
    name = "-addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(
        [*command.split(), *name.split(), *files],
        check=True,
        capture_output=True,
        timeout=HANG_SECONDS,
    )
    return folder


def test_tls(tmp_path, certificate):
    files = {
        "TAMIS_SERVER_TLS_CERTIFICATE": str(certificate / "cert.pem"),
        "TAMIS_SERVER_TLS_KEY": str(certificate / "key.pem"),
    }
    with serving(tmp_path / "server", **files) as server:
        assert server.url.startswith("https://")
        trust = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
        assert httpx2.get(f"{server.url}/healthz", verify=trust).status_code == 200
        plain = httpx2.Client(trust_env=False)
        with pytest.raises(httpx2.HTTPError):
            plain.get(server.url.replace("https", "http") + "/healthz")
        with pytest.raises(httpx2.ConnectError):
            plain.get(f"{server.url}/healthz")  # nobody has signed the certificate
        made = run_process("keys", "create", server.folder, "root", "--role", "admin")
        assert made.returncode == 0, made.stderr
        listed = run_process("keys", "list", server.folder)
        assert b"root" in listed.stdout


def test_a_certificate_that_cannot_be_used(tmp_path, certificate, monkeypatch):
    monkeypatch.setenv("TAMIS_SERVER_TLS_CERTIFICATE", str(certificate / "cert.pem"))
    monkeypatch.setenv("TAMIS_SERVER_TLS_KEY", str(certificate / "cert.pem"))
    failed = run("serve", tmp_path / "server", "--port", "0")
    assert failed.exit_code == 1
    assert "server.tls_key" in failed.stderr
