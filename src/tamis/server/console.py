"""The console: a page, its scripts and its styles. All it shows comes from the interface."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Header
from starlette.responses import Response

from tamis.server.problems import Problem

router = APIRouter(include_in_schema=False)

STATIC: Final = Path(__file__).with_name("static")
PAGE: Final = "index.html"
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# Scripts, styles and data come from this server and nowhere else; no script is in the page itself,
# and no text becomes a script.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]
AcceptEncoding = Annotated[str, Header(alias="Accept-Encoding")]


class Asset(NamedTuple):
    """A file of the console."""

    body: bytes
    packed: bytes
    tag: str
    kind: str


@cache
def read_assets() -> dict[str, Asset]:
    """The files of the console, by name."""
    found: dict[str, Asset] = {}
    for path in sorted(STATIC.iterdir()):
        if path.suffix in _KINDS:
            body = path.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found[path.name] = Asset(body, gzip.compress(body, mtime=0), tag, _KINDS[path.suffix])
    return found


@router.get("/")
def show_console(
    if_none_match: IfNoneMatch = None, accept_encoding: AcceptEncoding = ""
) -> Response:
    """The page."""
    return _answer(read_assets()[PAGE], if_none_match, accept_encoding)


@router.get("/console/{name}")
def read_asset(
    name: str, if_none_match: IfNoneMatch = None, accept_encoding: AcceptEncoding = ""
) -> Response:
    """A file of the page."""
    asset = read_assets().get(name)
    if asset is None:
        raise Problem(404, "unknown-path", f"the console has no file {name[:100]!r}")
    return _answer(asset, if_none_match, accept_encoding)


def _answer(asset: Asset, known: str | None, accepted: str) -> Response:
    is_packed = "gzip" in accepted
    tag = f'{asset.tag[:-1]}-gzip"' if is_packed else asset.tag
    headers = {
        "etag": tag,
        "cache-control": "no-cache",
        "vary": "accept-encoding",
        "content-security-policy": _POLICY,
    }
    if known is not None and tag in known:
        return Response(status_code=304, headers=headers)
    if is_packed:
        headers["content-encoding"] = "gzip"
    body = asset.packed if is_packed else asset.body
    return Response(body, headers=headers, media_type=asset.kind)
