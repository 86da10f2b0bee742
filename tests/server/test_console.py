"""How the console is served: its files, its size, and what its page may do."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from tamis.server.console import PAGE, STATIC, read_assets

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "console"
MOST_PACKED = 300_000  # bytes of everything that the page may load


def test_the_page_is_served(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


def test_the_policy_allows_nothing_but_own_files(client):
    policy = client.get("/").headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in "".join(policy)


def test_the_page_has_no_script_or_style_of_its_own():
    page = (STATIC / PAGE).read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>", page) == [
        '<script type="module" src="/console/console.js">'
    ]
    assert "<style" not in page
    assert not re.search(r"\son\w+=|style=|javascript:", page)
    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert address.removeprefix("/console/") in read_assets()


def test_no_file_names_another_host():
    for name in read_assets():
        if name.endswith((".js", ".css", ".html")):
            text = (STATIC / name).read_text(encoding="utf-8")
            hosts = set(re.findall(r"https?://([\w.-]+)", text))
            assert hosts <= {"www.w3.org"}, name  # the name of a namespace


@pytest.mark.parametrize("name", sorted(read_assets()))
def test_files_are_served_packed_or_not(client, name):
    plain = client.get(f"/console/{name}", headers={"accept-encoding": "identity"})
    packed = client.get(f"/console/{name}", headers={"accept-encoding": "gzip"})
    body = (STATIC / name).read_bytes()
    assert plain.content == packed.content == body
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert plain.headers["etag"] != packed.headers["etag"]


def test_a_known_file_is_not_sent_again(client):
    tag = client.get("/console/console.js").headers["etag"]
    again = client.get("/console/console.js", headers={"if-none-match": tag})
    assert again.status_code == 304
    assert again.content == b""


@pytest.mark.parametrize(
    "path", ["/console/nothing.js", "/console/..%2Fapp.py", "/console/%2e%2e", "/console/"]
)
def test_other_files_are_not_served(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "unknown-path"


def test_everything_together_is_small():
    size = sum(len(gzip.compress((STATIC / name).read_bytes())) for name in read_assets())
    assert size <= MOST_PACKED


def test_licences_are_included():
    text = (STATIC / "licences.txt").read_text(encoding="utf-8")
    assert "preact" in text
    assert "Permission is hereby granted" in text


@pytest.mark.skipif(not SOURCES.exists(), reason="the sources of the console are not here")
def test_the_build_is_that_of_the_sources():
    digest = hashlib.sha256()
    own = sorted(path.name for path in (SOURCES / "src").iterdir())
    for name in ["package.json", "build.mjs", *(f"src/{name}" for name in own)]:
        digest.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    built = (STATIC / "sources.sha256").read_text(encoding="ascii").strip()
    assert digest.hexdigest() == built, "run console/build.sh and commit the result"
