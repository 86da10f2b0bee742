"""How `tamis feeds` reaches the feeds of a server: through it, or through its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.server_access import RemoteServer, find_running, reaching
from tamis.errors import InputError, StoreInUseError, UnknownItemError
from tamis.language.moments import spell_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.broker.sources import NewSource, Source, Sources
    from tamis.feeds.worker import FeedWorker


def add_source(server: str, store: str | None, asked: dict[str, Any]) -> dict[str, Any]:
    """Add a feed; returns it."""
    with reaching(server, store) as reached:
        if isinstance(reached, RemoteServer):
            return dict(reached.ask("POST", "/v1/sources", asked))
        from tamis.broker.rights import LOCAL
        from tamis.broker.sources import NewSource

        return _describe(reached.sources.create(LOCAL, NewSource(**asked)))


def import_sources(server: str, store: str | None, given: Sequence[NewSource]) -> dict[str, Any]:
    """Add many feeds; returns what became of them."""
    with reaching(server, store) as reached:
        if isinstance(reached, RemoteServer):
            asked = [{**own._asdict(), "tags": list(own.tags)} for own in given]
            return dict(reached.ask("POST", "/v1/sources/import", {"sources": asked}))
        from tamis.broker.rights import LOCAL

        return reached.sources.create_many(LOCAL, given)._asdict()


def list_sources(
    server: str, store: str | None, *, is_failing: bool | None = None
) -> list[dict[str, Any]]:
    """All feeds, or those that fail."""
    found: list[dict[str, Any]] = []
    cursor = None
    with reaching(server, store) as reached:
        while True:
            if isinstance(reached, RemoteServer):
                failing = None if is_failing is None else str(is_failing).lower()
                page = reached.ask("GET", "/v1/sources", failing=failing, cursor=cursor)
                found += page["sources"]
                cursor = page["cursor"]
            else:
                own = reached.sources.list(is_failing=is_failing, after=cursor)
                found += [_describe(source) for source in own.items]
                cursor = own.cursor
            if cursor is None:
                return found


def find_source(server: str, store: str | None, feed: str) -> dict[str, Any]:
    """The feed with a number or an address."""
    with reaching(server, store) as reached:
        if isinstance(reached, RemoteServer):
            return _find_remote(reached, feed)
        return _describe(_find_local(reached.sources, feed))


def remove_source(server: str, store: str | None, feed: str) -> dict[str, Any]:
    """Remove a feed; returns it."""
    with reaching(server, store) as reached:
        if isinstance(reached, RemoteServer):
            found = _find_remote(reached, feed)
            reached.ask("DELETE", f"/v1/sources/{found['number']}")
            return found
        from tamis.broker.rights import LOCAL

        number = _find_local(reached.sources, feed).number
        return _describe(reached.sources.delete(LOCAL, number))


def fetch_source(server: str, store: str | None, feed: str) -> dict[str, Any]:
    """Fetch a feed now; returns it afterwards."""
    if (remote := _find_server(server)) is not None:
        found = _find_remote(remote, feed)
        return dict(remote.ask("POST", f"/v1/sources/{found['number']}/fetch"))
    (source,) = _fetch_here(server, store, lambda sources: [_find_local(sources, feed)])
    return source


def fetch_due(server: str, store: str | None) -> list[dict[str, Any]]:
    """Fetch all feeds that are due; returns them afterwards."""
    if _find_server(server) is not None:
        raise InputError(
            "the server is running, and fetches what is due itself",
            hint="name the feeds to fetch now",
        )
    return _fetch_here(server, store, lambda sources: sources.list_due(limit=100_000))


def _find_server(server: str) -> RemoteServer | None:
    if server.startswith(("http://", "https://")):
        with reaching(server) as reached:
            assert isinstance(reached, RemoteServer)
            return reached
    return find_running(Path(server))


def _find_remote(server: RemoteServer, feed: str) -> dict[str, Any]:
    if feed.isascii() and feed.isdigit():
        return dict(server.ask("GET", f"/v1/sources/{feed}"))
    found = server.ask("GET", "/v1/sources", url=feed)["sources"]
    if not found:
        raise _unknown(feed)
    return dict(found[0])


def _find_local(sources: Sources, feed: str) -> Source:
    is_number = feed.isascii() and feed.isdigit() and len(feed) < 19
    found = sources.get(int(feed)) if is_number else sources.find(feed)
    if found is None:
        raise _unknown(feed)
    return found


def _unknown(feed: str) -> UnknownItemError:
    return UnknownItemError(f"there is no feed {feed}", hint="tamis feeds list shows them")


def _fetch_here(
    server: str, store: str | None, choose: Callable[[Sources], Sequence[Source]]
) -> list[dict[str, Any]]:
    """Open the folder, which no server has open, and fetch feeds."""
    import asyncio

    from tamis.broker.match_server import MatchServer
    from tamis.feeds.worker import FeedWorker
    from tamis.server.feed_reading import to_options
    from tamis.server.running import to_match_server
    from tamis.server.settings_reading import environment, read_settings

    flags = {"server.folder": Path(server), "subscriptions.store": store}
    settings = read_settings(None, environment(), flags)

    async def fetch_all(match_server: MatchServer) -> list[dict[str, Any]]:
        worker = FeedWorker(match_server, to_options(settings), polls=False)
        try:
            chosen = choose(match_server.broker.sources)
            return [_describe(own) for own in await _gather(worker, chosen)]
        finally:
            await worker.close()

    try:
        with MatchServer.open(server, to_match_server(settings)) as match_server:
            return asyncio.run(fetch_all(match_server))
    except StoreInUseError as error:
        raise StoreInUseError(error.message, hint="name the address of the server") from None


async def _gather(worker: FeedWorker, chosen: Sequence[Source]) -> list[Source]:
    import asyncio

    return list(await asyncio.gather(*(worker.fetch(source.number) for source in chosen)))


def _describe(source: Source) -> dict[str, Any]:
    """As a server would answer."""
    shown = source.to_json()
    return {name: _spell(value) for name, value in shown.items()}


def _spell(value: Any) -> Any:
    from datetime import datetime

    return spell_moment(value) if isinstance(value, datetime) else value
