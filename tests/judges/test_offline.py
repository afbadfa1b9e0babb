"""What stays on this machine, and what is refused because it does not."""

import asyncio
import socket

import pytest

from judgekit.errors import OfflineError
from judgekit.judges.offline import OfflineClient, is_local_address
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.openai import OpenAIClient

LOCAL = "http://localhost:8000/v1"


@pytest.fixture(autouse=True)
def no_names_are_looked_up(monkeypatch):
    def refuse(*_, **__):
        pytest.fail("looks a name up")

    for name in ("getaddrinfo", "gethostbyname", "gethostbyaddr"):
        monkeypatch.setattr(socket, name, refuse)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_loopback_stays_here():
    cases = [
        LOCAL,
        "https://localhost/v1",
        "HTTP://LocalHost:8000/v1",
        "http://127.0.0.1:8000/v1",
        "http://127.8.9.10/v1",
        "http://[::1]:8000/v1",
        "http://[0:0:0:0:0:0:0:1]/v1",
    ]
    for url in cases:
        assert is_local_address(url)


def test_anything_else_leaves():
    cases = [
        "https://api.openai.com/v1",
        "http://192.168.0.7:8000/v1",
        "http://10.0.0.1/v1",
        "http://0.0.0.0:8000/v1",
        "http://128.0.0.1/v1",
        "http://[::2]/v1",
        "http://[::]/v1",
        "http://[fe80::1]/v1",
        "http://localhost.evil.test/v1",
        "http://evil.test/localhost",
        "http://evil.test?localhost",
        "http://evil.test#@localhost",
        "http://localhost@evil.test/v1",
        "http://127.0.0.1@evil.test/v1",
        "http://localhost:80@evil.test/v1",
        "http://127.0.0.1.evil.test/v1",
        "localhost:8000/v1",
        *("http://[::1/v1", "http://[evil]/v1", ""),  # no addresses
    ]
    for url in cases:
        assert not is_local_address(url)


def test_what_only_some_take_for_loopback_leaves():
    cases = [
        *("127.1", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1", "localhost.", "my.localhost"),
        "\uff11\uff12\uff17.0.0.1",
    ]
    for host in cases:
        assert not is_local_address(f"http://{host}/v1")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("proxy", ["http://proxy.corp:3128", "proxy.corp:3128", "socks5://localhost:1080"])
@pytest.mark.parametrize("url", [LOCAL, "http://127.0.0.1/v1", "http://[::1]/v1"])
def test_a_proxy_may_take_even_loopback_elsewhere(monkeypatch, name, proxy, url):
    monkeypatch.setenv(name, proxy)
    assert not is_local_address(url)


def test_a_proxy_on_this_machine_takes_requests_elsewhere_all_the_same(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://localhost:3128")
    assert not is_local_address("https://api.openai.com/v1")
    assert not is_local_address("https://localhost/v1")


def test_a_proxy_for_another_scheme_is_no_matter(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.corp:3128")
    monkeypatch.setenv("FTP_PROXY", "http://proxy.corp:3128")
    assert is_local_address(LOCAL)


@pytest.mark.parametrize(
    ("no_proxy", "url", "stays"),
    [
        ("localhost", LOCAL, True),
        ("evil.test, localhost ,127.0.0.1", LOCAL, True),
        ("evil.test,localhost,127.0.0.1", "http://127.0.0.1/v1", True),
        ("::1", "http://[::1]:8000/v1", True),
        ("*", LOCAL, True),
        ("*", "https://api.openai.com/v1", False),
        ("api.openai.com", "https://api.openai.com/v1", False),
        ("127.0.0.1", LOCAL, False),
        ("localhost", "http://127.0.0.1/v1", False),
        (".localhost", LOCAL, False),
        ("host", LOCAL, False),
        ("localhost:8000", LOCAL, False),
        ("127.0.0.0/8", "http://127.0.0.1/v1", False),
        ("", LOCAL, False),
    ],
)
def test_no_proxy_has_to_name_the_host_as_it_is(monkeypatch, no_proxy, url, stays):
    monkeypatch.setenv("ALL_PROXY", "http://proxy.corp:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert is_local_address(url) == stays


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "evil.test, 127.0.0.1", "*"])
def test_what_is_said_to_stay_here_does(monkeypatch, server, free_port, question, no_proxy):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port}")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    server.script = [server.says("{}")]
    assert is_local_address(server.url)

    async def ask():
        client = OpenAIClient(Connection(base_url=server.url, api_key=None, timeout=5))
        try:
            return await client.complete(question(base_url=server.url))
        finally:
            await client.aclose()

    assert asyncio.run(ask()).text == "{}"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("base_url", "where"), [("https://judge.test/v1", "https://judge.test/v1"), ("", "its own address")]
)
def test_the_refusal_says_what_may_be_asked(question, base_url, where):
    with pytest.raises(OfflineError) as info:
        asyncio.run(OfflineClient().complete(question(base_url=base_url)))
    assert str(info.value) == (
        f"openai/judge-1 at {where}: offline mode only allows this machine "
        "(localhost, 127.0.0.1, ::1), without a proxy; cached replies are still used"
    )
