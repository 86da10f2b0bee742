"""Addresses that the server must not connect to."""

from __future__ import annotations

import asyncio
import socket
import threading
from datetime import timedelta

import pytest

from tamis.broker.secrets import Secret, new_signing_secret
from tamis.broker.webhook_messages import WebhookMessage
from tamis.outgoing import RefusedAddressError, find_addresses, is_public, resolve
from tamis.server.settings import DeliverySettings
from tamis.server.webhook_sender import WebhookSender
from tests.server.receiver import run_receiver
from tests.waiting import HANG_SECONDS

PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "2002:808:808::1"]
PUBLIC += ["64:ff9b::808:808"]
PRIVATE = """
    127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1
    169.254.0.1 169.254.169.254 100.64.0.1 100.100.100.200 192.0.0.1 192.0.0.192 192.0.2.1
    192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
    255.255.255.255 168.63.129.16
    :: ::1 fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2001::1 100::1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:7f00:1 ::127.0.0.1
    64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe::
    5f00::1 4000::1 nothing
""".split()


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address):
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


def fake(*answers: list[str]):
    """A resolver that gives these answers one after the other, then the last one again."""
    left = list(answers)
    asked: list[str] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    resolver.asked = asked
    return resolver


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:10.0.0.1", "8.8.8.8"]]
)
def test_one_wrong_address_of_a_name_is_enough(addresses):
    with pytest.raises(RefusedAddressError, match=r"hook\.example"):
        asyncio.run(
            find_addresses("hook.example", 80, allow_private=False, resolver=fake(addresses))
        )


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "::1"]
)
def test_spellings_of_this_machine_are_refused(host):
    with pytest.raises((RefusedAddressError, OSError)):
        asyncio.run(find_addresses(host, 80, allow_private=False))


def test_names_that_get_no_answer_hold_up_nothing(monkeypatch):
    """Neither other names, nor other work of the event loop, nor its end."""
    answers, look_up = threading.Event(), socket.getaddrinfo

    def slow(host, *arguments, **options):
        if host == "tarpit.example":
            answers.wait(HANG_SECONDS)
        return look_up(host, *arguments, **options)

    async def main() -> None:
        stuck = [asyncio.ensure_future(resolve("tarpit.example", 80)) for _ in range(60)]
        assert await resolve("127.0.0.1", 80) == ["127.0.0.1"]
        assert await asyncio.to_thread(lambda: 7) == 7
        for one in stuck:
            one.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        patience = DeliverySettings(webhook_timeout=timedelta(milliseconds=1))
        with pytest.raises(TimeoutError):
            await WebhookSender(patience).expect_allowed("http://tarpit.example")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    asyncio.run(main())
    answers.set()
    for thread in threading.enumerate():
        if thread.name == "tamis-resolve":
            thread.join(HANG_SECONDS)


def test_names_that_are_looked_up_have_a_limit(monkeypatch):
    monkeypatch.setattr("tamis.outgoing._lookups", threading.BoundedSemaphore(1))
    answers, look_up = threading.Event(), socket.getaddrinfo

    def slow(*arguments, **options):
        answers.wait(HANG_SECONDS)
        return look_up(*arguments, **options)

    async def main() -> None:
        first = asyncio.ensure_future(resolve("127.0.0.1", 80))
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="too many names"):
            await resolve("127.0.0.1", 80)
        answers.set()
        assert await first == ["127.0.0.1"]
        assert await resolve("127.0.0.1", 80) == ["127.0.0.1"]
        with pytest.raises((OSError, UnicodeError)):
            await resolve("x" * 300, 80)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    asyncio.run(main())


def send(url: str, resolver, **settings):
    sender = WebhookSender(
        DeliverySettings(webhook_timeout=timedelta(seconds=HANG_SECONDS), **settings), resolver
    )

    async def main(n_attempts: int = 1):
        message = WebhookMessage(url, "msg_1", b"{}", [new_signing_secret()])
        result = await sender.send(message)
        await sender.close()
        return result

    return asyncio.run(main())


def test_a_name_that_leads_to_this_machine_gets_nothing():
    with run_receiver() as receiver:
        port = receiver.url.rpartition(":")[2]
        result = send(f"http://hook.example:{port}", fake(["127.0.0.1"]))
        assert result.is_final
        assert (result.status, result.is_success()) == (None, False)
        assert receiver.received == []


def test_a_name_is_resolved_once_for_each_attempt():
    """A name that leads elsewhere after the check is not looked up again."""
    resolver = fake(["127.0.0.1"], ["192.0.2.1"])
    with run_receiver() as receiver:
        port = receiver.url.rpartition(":")[2].partition("/")[0]
        url = f"http://hook.example:{port}/path?q=1"
        result = send(url, resolver, allow_private_addresses=True)
        assert result.status == 204
        assert resolver.asked == ["hook.example"]
        (own,) = receiver.received
        assert (own.path, own.headers["host"]) == ("/path?q=1", f"hook.example:{port}")
        again = send(url, fake(["127.0.0.1"]))
        assert again.is_final


def test_a_redirect_is_a_failure_and_not_followed():
    with run_receiver() as receiver, run_receiver() as inner:
        receiver.answer, receiver.headers = 307, {"location": inner.url}
        result = send(receiver.url, fake(["127.0.0.1"]), allow_private_addresses=True)
        assert (result.status, result.is_success()) == (307, False)
        assert "redirect" in result.error
        assert inner.received == []


def test_the_body_of_an_answer_is_not_shown():
    with run_receiver() as receiver:
        receiver.answer, receiver.headers = 500, {"retry-after": "7"}
        result = send(receiver.url, fake(["127.0.0.1"]), allow_private_addresses=True)
    assert (result.status, result.retry_after) == (500, 7.0)
    assert "secret" not in repr(result)


def test_the_next_address_is_tried_if_one_does_not_answer():
    with run_receiver() as receiver:
        result = send(receiver.url, fake(["127.77.0.1", "127.0.0.1"]), allow_private_addresses=True)
        assert result.status == 204


def test_tls_names_the_host_and_not_the_address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        hello: list[bytes] = []

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                hello.append(connection.recv(4096))

        thread = threading.Thread(target=accept)
        thread.start()
        resolver = fake(["127.0.0.1"])
        result = send(f"https://hook.example:{port}/", resolver, allow_private_addresses=True)
        thread.join(HANG_SECONDS)
    assert result.status is None
    assert b"hook.example" in hello[0]


def test_secrets_do_not_appear_in_errors():
    secret = Secret("whsec_" + "A" * 32)
    message = WebhookMessage("http://[::1", "msg_1", b"{}", [secret])
    result = asyncio.run(WebhookSender(DeliverySettings()).send(message))
    assert result.error
    assert "A" * 32 not in repr((message, result))
