"""Servers with something to look at, and where things are on the screens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.broker.retries import RetryPolicy
from tamis.server import Settings
from tamis.server.settings import DeliverySettings, FeedSettings, ServerSettings
from tamis.subscriptions import Accepted, Subscribe
from tests.console.mail import run_mail_server
from tests.effort import SEED
from tests.feeds.places import item, rss
from tests.feeds.site import run_site
from tests.server.receiver import run_receiver
from tests.server.running import Running, run_server
from tests.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

COUNTRIES = ("FR", "DE", "NO", "PL", "IT")
CHUNK = 5_000


class Clock:
    """That of the system, which can be behind."""

    behind = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) - self.behind


@contextmanager
def run_console(
    folder: Path,
    n_more: int = 300,
    *,
    others: Sequence[Subscribe] = (),
    smtp_port: int | None = None,
    **options,
) -> Iterator[Running]:
    """A server with some subscriptions and events; dead letters come at once. All subscriptions
    were made days ago: those that were valid for less have expired.
    """
    own = MatchServerSettings(retries=RetryPolicy(delays=(0.0,)))
    mail = {} if smtp_port is None else {"smtp_host": "127.0.0.1", "smtp_port": smtp_port}
    settings = Settings(
        server=ServerSettings(folder=folder),
        delivery=DeliverySettings(
            allow_private_addresses=True,
            smtp_sender="tamis@tamis.test",
            smtp_starttls=False,
            trusted_domains=("tamis.test",),
            **mail,
        ),
        feeds=FeedSettings(allow_private_addresses=True),
    )
    clock = Clock()
    with MatchServer.open(folder, own, clock=clock) as match_server:
        clock.behind = timedelta(days=13)  # when the subscriptions were made
        fill(match_server, n_more, others)
        clock.behind = timedelta(0)
        with run_server(match_server, settings, **options) as running:
            publish_some(running)
            yield running


def fill(match_server: MatchServer, n_more: int, others: Sequence[Subscribe]) -> None:
    """Subscriptions in several states, and many like each other."""
    random, now = Random(SEED), datetime.now(UTC)
    later = now + timedelta(days=60)
    wanted = [
        subscription("adults", "age >= 18 AND country = 'FR'", "ann", ("news", "fr"), later),
        subscription(
            "children",
            "age < 12 AND (country IN ('FR', 'DE') OR city LIKE 'Os%')",
            "ann",
            ("news",),
            now + timedelta(hours=20),
        ),
        subscription("alerts/critical", "severity >= 4 AND NOT host LIKE 'test%'", "ops", ("x",)),
        subscription("everything", "TRUE", "ops", ("noise",)),
        subscription("last-week", "age = 9", "ann", ("x", "y"), now - timedelta(days=1)),
        *others,
    ]
    for number in range(n_more):
        text = (
            f"age >= {random.randrange(90)} AND country = '{random.choice(COUNTRIES)}'"
            f" AND score > {random.randrange(1_000) / 10}"
        )
        owner = random.choice(("ann", "ops", "shop"))
        wanted.append(subscription(f"rule-{number:06}", text, owner, ("bulk",), later))
    for at in range(0, len(wanted), CHUNK):
        for result in match_server.live.apply(wanted[at : at + CHUNK]):
            assert isinstance(result, Accepted), result


def subscription(
    name: str, text: str, owner: str, tags: tuple[str, ...], until: datetime | None = None
) -> Subscribe:
    return Subscribe(name, text, owner, tags, {}, None, until, None)


def publish_some(running: Running) -> None:
    random = Random(SEED)
    events = [
        {
            "age": random.randrange(90),
            "country": random.choice(COUNTRIES),
            "score": random.randrange(1_000) / 10,
            "city": random.choice(("Oslo", "Paris")),
        }
        for _ in range(40)
    ]
    key = running.context.local_key
    headers = {} if key is None else {"authorization": f"Bearer {key.reveal()}"}
    with running.client(headers=headers) as client:
        answer = client.post("/v1/events", json=events)
        assert answer.status_code == 200, answer.text


ARTICLES = rss(
    item(
        "Flood in Oslo",
        guid="1",
        link="https://news.example/1",
        body="After the storm, the flood reached the harbour. " * 12,
    ),
    item("Quiet week", guid="2", body="Nothing but rain."),
    item("Storm &lt;warning&gt;", guid="3", body="A storm is near the coast."),
)


@contextmanager
def run_with_everything(folder: Path, n_more: int = 200) -> Iterator[Running]:
    """A server that has something to show on each screen."""
    with (
        run_mail_server() as mail,
        run_console(folder, n_more, smtp_port=mail.port) as running,
        run_receiver() as receiver,
        run_site() as site,
    ):
        with running.client() as client:
            receiver.answer = 500
            wanted = {"id": "floods", "expression": "matches((title, body), 'flood')", "lease": 1e6}
            for path, asked in (
                ("/v1/subscriptions", wanted),
                ("/v1/webhooks", {"subscription": "everything", "url": receiver.url}),
                ("/v1/feeds", {"subscription": "floods", "title": "Floods"}),
                ("/v1/digests", {"subscription": "floods", "address": "ann@tamis.test", "hour": 7}),
                ("/v1/digests", {"subscription": "adults", "address": "bob@example.com"}),
                ("/v1/channels", {"name": "people", "subscriptions": ["adults", "children"]}),
                ("/v1/sources", {"url": site.put("/news.xml", ARTICLES), "tags": ["local"]}),
                ("/v1/sources", {"url": site.put("/broken.xml", status=500), "title": "Broken"}),
            ):
                answer = client.post(path, json=asked)
                assert answer.status_code == 201, answer.text
            letters = "/v1/webhooks/1/dead-letters"
            wait_until(lambda: client.get(letters).json()["letters"], "there is a dead letter")
        yield running


# ── where things are ────────────────────────────────────────────────────────────────────────


def button(place: Page | Locator, name: str) -> Locator:
    return place.get_by_role("button", name=name, exact=True)


def link(place: Page | Locator, name: str) -> Locator:
    return place.get_by_role("link", name=name, exact=True)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def expression_of(page: Page) -> Locator:
    """The editor of expressions."""
    return page.get_by_role("textbox", name="Expression", exact=True)


def wait_for_words(page: Page) -> None:
    """Until the editor completes: it gets its words from the server."""
    page.locator(".expression-field[data-completes=true]").wait_for()


def write_expression(page: Page, text: str) -> None:
    """Replace the text of the editor, as a person does."""
    expression_of(page).click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)
