"""Runs a server: opens the match server, listens, and closes everything when it is stopped."""

from __future__ import annotations

import gc
import logging
import os
import socket
import ssl
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from tamis.archive import ArchiveSettings
from tamis.broker.following_server import FollowingServer
from tamis.broker.match_server import MatchServer, MatchServerSettings, StreamSettings
from tamis.broker.retries import RetryPolicy
from tamis.errors import InputError
from tamis.server.app import create_app
from tamis.server.hosts import is_loopback
from tamis.server.protocol import limited
from tamis.server.server_file import announcing, new_local_key
from tamis.server.signals import StopSignals
from tamis.server.warming import Warming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from fastapi import FastAPI

    from tamis.broker.secrets import Secret
    from tamis.server.settings import ServerSettings, Settings

_LOG: Final = logging.getLogger("tamis.server")
_BACKLOG: Final = 4_096  # connections that wait to be accepted
_VANISHED_SECONDS: Final = 60  # in which a client takes nothing of what is sent to it


def serve(
    settings: Settings,
    on_start: Callable[[str, bool], None] | None = None,
    report: Callable[[str], None] | None = None,
) -> None:
    """Serve until the process is stopped; `on_start` gets the address, and whether no key is
    needed, and `report` a message if the server has to compile kernels first.
    """
    _spare_the_collector()
    with (
        StopSignals() as signals,
        Warming(report) as warming,
        _choose_kind(settings).open(
            settings.server.folder, to_match_server(settings)
        ) as match_server,
    ):
        is_open = decide_openness(match_server, settings)
        app = create_app(match_server, settings, is_open=is_open, warming=warming)
        key = app.state.context.local_key = new_local_key()
        with _announcing(settings, key) as announce:

            def start(url: str) -> None:
                announce(url)
                if on_start is not None:
                    on_start(url, is_open)

            server = _Server(_configure(app, settings), app, start)
            signals.on_stop = server.stop
            server.run()
    _LOG.info("stopped")


def _choose_kind(settings: Settings) -> type[MatchServer]:
    return FollowingServer if settings.server.follow else MatchServer


def _announcing(settings: Settings, key: Secret) -> AbstractContextManager[Callable[[str], None]]:
    """Commands on this machine talk to the server that writes, not to its followers."""
    return (
        nullcontext(lambda _url: None)
        if settings.server.follow
        else announcing(settings.server, key)
    )


def to_match_server(settings: Settings) -> MatchServerSettings:
    """The settings of the match server."""
    own, archive = settings.subscriptions, settings.archive
    return MatchServerSettings(
        schema=own.schema,
        missing=own.missing or None,
        operators=own.operators,
        store=own.store or None,
        archive=ArchiveSettings(
            keep=archive.keep,  # type: ignore[arg-type] # checked
            segment_bytes=archive.segment_size,
            segment_age=archive.segment_age,
            retain_for=archive.retain_for,
            retain_bytes=archive.retain_size,
            answers_for=archive.idempotency,
        ),
        retries=RetryPolicy(disable_after=settings.delivery.disable_webhooks_after),
        audit_share=settings.operations.audit_share,
        stream=StreamSettings(
            settings.stream.matches or None,
            settings.stream.versions or None,
            settings.stream.versions_every.total_seconds(),
        ),
    )


def decide_openness(match_server: MatchServer, settings: Settings) -> bool:
    """Whether requests need no key: there are no keys, and only this machine can connect."""
    if match_server.broker.keys.exist():
        return False
    if is_loopback(settings.server.host):
        return True
    raise InputError(
        f"there are no keys, and {settings.server.host} can be reached from other machines",
        hint=f"make one first: tamis keys create {settings.server.folder} NAME --role admin",
    )


def _configure(app: FastAPI, settings: Settings) -> uvicorn.Config:
    server = settings.server
    _expect_certificate(server)
    return uvicorn.Config(
        app,
        host=server.host,
        port=server.port,
        backlog=_BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=server.tls_certificate,
        ssl_keyfile=server.tls_key,
        timeout_graceful_shutdown=int(server.shutdown_timeout.total_seconds()),
        http=limited(settings.limits),
        ws_max_size=1 << 20,
        ws_per_message_deflate=False,  # it takes 300 kB for each socket
    )


def _give_up_on_vanished(descriptor: int) -> None:
    """Close connections whose client does not take what is sent: without this, the system tries
    for a quarter of an hour, and for ever if the client is alive and never reads.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # accepted connections inherit it
        with socket.socket(fileno=os.dup(descriptor)) as listener:
            milliseconds = _VANISHED_SECONDS * 1_000
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


def _spare_the_collector() -> None:
    """Modules, routes and models live as long as the process. To look for garbage among them, the
    collector would stop everything for a fifth of a second, again and again. Not later: what is
    frozen is never freed if it is part of a cycle, as the views of an index are.
    """
    gc.collect()
    gc.freeze()


def _expect_certificate(server: ServerSettings) -> None:
    if server.tls_certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            server.tls_certificate, server.tls_key
        )
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"server.tls_certificate {server.tls_certificate} and server.tls_key {server.tls_key} "
            f"cannot be used: {error.strerror or error}",
            hint="both are PEM files; the certificate file has the whole chain",
        ) from None


class _Server(uvicorn.Server):
    """A server that says where it listens, and ends its streams when it is stopped."""

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, on_start: Callable[[str], Any]
    ) -> None:
        super().__init__(config)
        self._app = app
        self._on_start = on_start

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            for server in self.servers:
                for listener in server.sockets:
                    _give_up_on_vanished(listener.fileno())
            self._on_start(self._find_address())

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: the process ends when everything is closed, not when the network is."""
        yield

    def stop(self) -> None:
        """Stop in order, soon; called by a signal."""
        self.should_exit = True

    def _find_address(self) -> str:
        scheme = "https" if self.config.is_ssl else "http"
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    async def shutdown(self, sockets: Any = None) -> None:
        _LOG.info("stopping")
        self._app.state.context.begin_closing()
        await super().shutdown(sockets)
