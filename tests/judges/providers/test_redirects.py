"""No redirect is followed: of two addresses of this machine, only the first one hears from a judge."""

import asyncio
import importlib
import importlib.util
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from judgekit.errors import JudgeError, ModelError, OfflineError
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.litellm import _QUIET, LitellmClient
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.judges.providers.secrets import RequestExtras

CODES = (301, 302, 307, 308)
needs_litellm = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed")
pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1", "localhost"]),
    pytest.mark.filterwarnings(
        "ignore:.*`ReadOnly` qualifier", "ignore:.*Unclosed", "ignore:unclosed", "ignore:A test tried to use"
    ),  # of litellm
]
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIA-environment-key",
    "AWS_SECRET_ACCESS_KEY": "environment-key",
    "AWS_REGION_NAME": "eu-west-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_GCE_CHECK": "true",
    "OPENAI_API_KEY": "environment-key",
    "DATABRICKS_API_KEY": "environment-key",
    "SNOWFLAKE_JWT": "environment-key",
    "SNOWFLAKE_ACCOUNT_ID": "account",
    "WATSONX_TOKEN": "environment-key",
    "WATSONX_PROJECT_ID": "project",
    "WATSONX_API_KEY": "environment-key",
}
KEYS = RequestExtras(headers={"x-own-key": "header-key"}, secrets=("header-key",))


@pytest.fixture
def addresses() -> Iterator[tuple[str, list[str], list[str]]]:
    """A server that sends everyone on to a second address, and what the two of them hear."""
    heard: dict[str, list[str]] = {"127.0.0.1": [], "127.0.0.2": []}

    class Elsewhere(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            here = heard[str(self.server.server_address[0])]
            here.append(f"{self.command} {self.path}\n{self.headers}\n{body.decode(errors='replace')}")
            first = self.server is servers[0]
            self.send_response(CODES[len(here) % len(CODES)] if first else 200)
            if first:
                self.send_header("location", f"http://127.0.0.2:{servers[1].server_address[1]}{self.path}")
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815 - as http.server names them

        def log_message(self, format: str, *args: object) -> None:
            pass

    servers = [ThreadingHTTPServer((host, 0), Elsewhere) for host in heard]
    threads = [threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}) for server in servers]
    for thread in threads:
        thread.start()
    yield f"http://127.0.0.1:{servers[0].server_address[1]}/v1", *heard.values()
    for server, thread in zip(servers, threads, strict=True):
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def environment(monkeypatch) -> None:
    for name, text in {**_QUIET, **ENVIRONMENT}.items():
        monkeypatch.setenv(name, text)


def ask_each(url, client_class, models, question, *, times=1, offline=False) -> dict[str, list[JudgeError]]:
    """Ask each model, and return its errors."""
    problems: dict[str, list[JudgeError]] = {}

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # litellm leaves some connections open
        connection = Connection(base_url=url, api_key="connection-key", timeout=20, extras=KEYS, offline=offline)
        client = await asyncio.to_thread(client_class, connection)
        for model in models:
            for _ in range(times):
                with pytest.raises(JudgeError) as info:
                    await client.complete(question(base_url=url, model=model, params={}, output_mode="text"))
                problems.setdefault(model, []).append(info.value)
        await client.aclose()

    asyncio.run(ask())
    return problems


@needs_litellm
@pytest.mark.processes
def test_no_provider_of_litellm_follows_a_redirect(addresses, environment, question):
    url, first, second = addresses
    providers = [str(getattr(name, "value", name)) for name in importlib.import_module("litellm").provider_list]
    problems = ask_each(url, LitellmClient, [f"{name}/m" for name in providers], question)
    assert second == []
    redirected = {
        model: errors for model, errors in problems.items() if all("does not follow" in str(error) for error in errors)
    }
    assert all(type(error) is ModelError for errors in redirected.values() for error in errors)
    assert len(first) == len(redirected) + 1  # aiohttp_openai asks too, and reads the redirect as a reply
    assert len(redirected) > 100  # the others use no base_url, or answer no questions


@needs_litellm
@pytest.mark.processes
@pytest.mark.parametrize("model", ["openai/m", "anthropic/m", "gemini/m", "ollama/m", "azure/m"])
def test_no_redirect_is_followed_without_aiohttp(addresses, environment, question, monkeypatch, model):
    monkeypatch.setattr("litellm.disable_aiohttp_transport", True)
    url, first, second = addresses
    [problems] = ask_each(url, LitellmClient, [model], question, times=len(CODES)).values()
    assert all("does not follow. Check the base_url" in str(error) for error in problems)
    assert (len(first), second) == (len(CODES), [])


@needs_litellm
@pytest.mark.processes
def test_offline_no_provider_of_litellm_asks_another_address(addresses, environment, question, monkeypatch):
    """Some ignore the address that they are given, or fetch a key from another one first."""
    monkeypatch.delenv("WATSONX_TOKEN")
    monkeypatch.setenv("REPLICATE_API_KEY", "environment-key")
    asked: set[str] = set()
    resolve = socket.getaddrinfo

    def listen(host, *arguments, **options):
        asked.add(host.decode() if isinstance(host, bytes) else str(host))
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", listen)
    models = ["replicate/a/b", "sagemaker/m", "sagemaker_chat/m", "gigachat/m", "bytez/m", "watsonx/m", "huggingface/m"]
    problems = ask_each(addresses[0], LitellmClient, models, question, offline=True)
    assert {type(error) for model in models[:-1] for error in problems[model]} == {OfflineError}
    assert asked <= {"127.0.0.1"}
    assert "would ask https://api.replicate.com/" in str(problems["replicate/a/b"][0])


@pytest.mark.parametrize("kind", ["DefaultAioHttpClient", "DefaultAsyncHttpxClient"])
def test_the_openai_provider_follows_no_redirect(addresses, question, monkeypatch, kind):
    monkeypatch.setattr("openai.DefaultAioHttpClient", getattr(importlib.import_module("openai"), kind))
    url, first, second = addresses
    [problems] = ask_each(url, OpenAIClient, ["m"], question, times=len(CODES)).values()
    assert all("does not follow. Check the base_url" in str(error) for error in problems)
    assert (len(first), second) == (len(CODES), [])


@needs_litellm
@pytest.mark.processes
def test_clients_of_the_program_around_follow_redirects_as_ever(addresses, environment, question):
    url, _, second = addresses
    ask_each(url, LitellmClient, ["anthropic/m"], question)
    with importlib.import_module("httpx").Client(follow_redirects=True) as client:
        assert client.get(url).status_code == 200
    assert len(second) == 1
