"""The OpenAI provider, against a real server that misbehaves on purpose, and against a router in its place."""

import asyncio
import base64
import errno
import json
import logging
import socket
import traceback
from contextlib import ExitStack

import httpx
import openai  # noqa: F401 - takes half a second, which a deadline may not have
import pytest

from judgekit.errors import (
    ConfigError,
    JudgeError,
    LostError,
    RateLimitError,
    UnreachableError,
)
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.secrets import RequestExtras
from judgekit.judges.request import Reply
from judgekit.traces.message import Usage

USAGE = Usage(input_tokens=1000, output_tokens=50, cached_tokens=400, reasoning_tokens=30)

KEY = "sk-very-private-key"


@pytest.fixture
def complete(question):
    """Asks a server, once or several times over one client, and closes the client."""

    def run(base_url, *, times=1, timeout=5.0, price=None, api_key="sk-local", **changes):
        async def ask():
            client = OpenAIClient(Connection(base_url=base_url, api_key=api_key, timeout=timeout, price=price))
            try:
                return [await client.complete(question(base_url=base_url, **changes)) for _ in range(times)]
            finally:
                await client.aclose()

        return asyncio.run(ask())[-1]

    return run


# What is sent, and a good reply.


def test_the_request_holds_model_messages_strict_schema_and_parameters(server, complete):
    server.script = [server.says('{"good": true}')]
    complete(server.url, params={"temperature": 0, "reasoning_effort": "low", "own": {"top_k": [1]}})
    [received] = server.requests
    assert received.line == "POST /v1/chat/completions HTTP/1.1"
    assert received.headers["authorization"] == "Bearer sk-local"
    assert received.headers["content-type"] == "application/json"
    assert received.body == {
        "model": "judge-1",
        "messages": [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Was it good?"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "schema": {"type": "object", "properties": {"good": {"type": "boolean"}}},
                "strict": True,
            },
        },
        "temperature": 0,
        "reasoning_effort": "low",
        "own": {"top_k": [1]},
    }


def test_judgekit_s_own_output_limit_goes_by_the_name_that_most_servers_know(server, complete):
    server.script = [server.says("x")]
    complete(server.url, params={"max_completion_tokens": None}, max_output_tokens=300)
    body = server.requests[0].body
    assert {name: body.get(name) for name in ("max_tokens", "max_completion_tokens")} == {
        "max_tokens": 300,
        "max_completion_tokens": None,
    }
    assert "max_completion_tokens" not in body


@pytest.mark.parametrize(
    ("step", "form"), [("json_object", {"response_format": {"type": "json_object"}}), ("text", {})]
)
def test_on_lower_steps_less_is_asked_of_the_form(server, complete, step, form):
    server.script = [server.says("x")]
    complete(server.url, params={}, output_mode=step)
    [received] = server.requests
    assert {name: value for name, value in received.body.items() if name not in ("model", "messages")} == form


def test_questions_about_one_recording_begin_alike_so_that_the_provider_s_cache_serves_them(server, complete):
    """OpenAI counts the schema as the beginning of the prompt, with its name."""
    server.script = [server.says("x")]
    for name in ("goodness", "own prompt.v2"):
        complete(server.url, schema_name=name, prefix_key="abc")
    first, second = (received.body for received in server.requests)
    assert first == second
    assert "prompt_cache_key" not in first  # which servers of others may reject


def test_a_good_reply_comes_with_its_model_usage_and_cost(server, complete):
    server.script = [server.says('{"good": true}')]
    assert complete(server.url, price=Price(input=2, output=8, cached=0.5)) == Reply(
        text='{"good": true}',
        model="judge-1-2026-11-20",
        system_fingerprint="fp_1",
        usage=USAGE,
        cost_usd=(600 * 2 + 400 * 0.5 + 50 * 8) / 1e6,
        saved_usd=(1000 * 2 + 50 * 8) / 1e6 - (600 * 2 + 400 * 0.5 + 50 * 8) / 1e6,
    )


def test_one_connection_serves_many_requests_and_is_closed_with_the_client(server, complete):
    server.script = [server.says("x")]
    complete(server.url, times=3)
    assert len(server.requests) == 3
    assert server.opened == 1
    assert server.all_closed()


# What the environment holds.

ENVIRONMENT = {
    "OPENAI_BASE_URL": "https://elsewhere.test/v1",
    "OPENAI_API_KEY": "sk-of-another",
    "OPENAI_ADMIN_KEY": "sk-admin",
    "OPENAI_ORG_ID": "org-1",
    "OPENAI_PROJECT_ID": "proj-1",
    "OPENAI_CUSTOM_HEADERS": "X-Team: secrets\nAuthorization: Bearer sk-custom",
}


@pytest.fixture
def environment(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("api_key", ["sk-local", None])
def test_a_server_of_ones_own_is_told_nothing_of_the_environment_and_little_of_the_machine(
    server, complete, environment, api_key
):
    server.script = [server.says("x")]
    complete(server.url, api_key=api_key)
    [received] = server.requests
    assert received.headers.keys() - {"connection"} == {
        *("accept", "accept-encoding", "authorization", "content-length", "content-type", "host", "user-agent")
    }
    assert received.headers["authorization"] == f"Bearer {api_key or 'no-key'}"


@pytest.mark.parametrize("host", ["api.openai.com", "eu.api.openai.com"])
def test_openai_itself_is_told_the_organization_and_the_project_and_nothing_else(mocked, complete, environment, host):
    route = mocked.post(f"https://{host}/v1/chat/completions").respond(
        json={"choices": [{"message": {"content": "x"}}]}
    )
    complete(f"https://{host}/v1", prefix_key="abc")
    assert json.loads(route.calls[0].request.content)["prompt_cache_key"] == "abc"
    sent = route.calls[0].request.headers
    assert route.call_count == 1
    assert (sent["authorization"], sent["openai-organization"], sent["openai-project"]) == (
        *("Bearer sk-local", "org-1", "proj-1"),
    )
    assert "x-team" not in sent


@pytest.mark.parametrize("url", ["http://openai.com.judge.test/v1", "http://notopenai.com/v1"])
def test_who_is_called_much_like_openai_is_somebody_else(mocked, complete, environment, url):
    route = mocked.post(f"{url}/chat/completions").respond(json={"choices": [{"message": {"content": "x"}}]})
    complete(url)
    assert not {"openai-organization", "openai-project"} & route.calls[0].request.headers.keys()


@pytest.mark.parametrize(
    ("name", "value"), [("SSL_CERT_FILE", "no/such/file.pem"), ("HTTPS_PROXY", "gopher://proxy.test")]
)
def test_an_environment_that_lets_no_connection_be_made_is_an_error_that_names_the_server(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=r"^https://judge.test/v1: cannot set up a connection: ."):
        OpenAIClient(Connection(base_url="https://judge.test/v1", api_key="k", timeout=5))


def test_a_password_in_a_proxy_s_address_is_in_no_error(monkeypatch):
    """A slash ends the host, so that the password stands where the port is looked for."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{KEY}/and%20more@proxy.test:8080")
    with pytest.raises(ConfigError, match=r"cannot set up a connection: .*\*\*\*") as info:
        OpenAIClient(Connection(base_url="https://judge.test/v1", api_key="k", timeout=5))
    assert "sk-very" not in "".join(traceback.format_exception(info.value))


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # of what transports do with aiohttp
@pytest.mark.parametrize("header", ["", "Basic "])
def test_a_password_that_a_proxy_repeats_is_in_no_error(server, complete, monkeypatch, recovered, header):
    said = base64.b64encode(f"me:{KEY}!".encode()).decode() if header else f"{KEY}!"
    monkeypatch.setenv("HTTP_PROXY", f"{server.url.removesuffix('/v1').replace('//', f'//me:{KEY}%21@')}")
    server.script = [(407, {}, {"error": {"message": f"I do not know {header}{said}."}})]
    with pytest.raises(JudgeError, match=r"407: .*I do not know .*\*\*\*") as info:
        complete("http://judge.test/v1")
    assert server.requests[0].headers["proxy-authorization"].startswith("Basic ")
    assert not recovered("".join(traceback.format_exception(info.value)), KEY)


# Who may read the key.

REPEATS = json.dumps({"error": {"message": f"The key {KEY} is not known. None of them is."}})
LONG = "x" * 240 + KEY + "x" * 400


@pytest.mark.parametrize("status", [200, 302, 401, 500])
@pytest.mark.parametrize("said", [REPEATS, LONG, REPEATS * 20], ids=["short", "cut in the key", "long"])
def test_a_key_that_a_server_repeats_is_in_no_error_and_no_traceback(server, complete, status, said):
    server.script = [(status, {}, said.encode())]
    with pytest.raises(JudgeError) as info:
        complete(server.url, api_key=KEY)
    printed = "".join(traceback.format_exception(info.value)) + repr(info.value)
    assert "***" in str(info.value)
    assert "sk-very" not in printed
    assert "private" not in printed


def test_the_key_is_not_logged_and_not_shown(server, complete, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx", "httpcore", "httpx2", "httpcore2", "aiohttp", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    server.script = [(429, {}, {}), server.says("x")]
    with pytest.raises(RateLimitError):
        complete(server.url, api_key=KEY)
    complete(server.url, api_key=KEY)
    assert any(record.name.startswith(("httpx", "aiohttp")) for record in caplog.records)
    assert KEY not in caplog.text
    client = OpenAIClient(Connection(base_url=server.url, api_key=KEY, timeout=5))
    assert KEY not in f"{client!r} {Connection(server.url, KEY, 5, extras=RequestExtras(secrets=(KEY,)))!r}"
    asyncio.run(client.aclose())


def test_a_reply_that_holds_what_serves_as_a_key_comes_as_it_is(server, complete):
    server.script = [server.says("The ollama was fed.")]
    assert complete(server.url, api_key="ollama").text == "The ollama was fed."


# A server that misbehaves. Each request is sent exactly once: asking again is the business of a layer.


def unreached(complete, url, **settings):
    """Why there was no connection: nothing was sent, and nothing can have been charged."""
    where = f"openai/judge-1 at {url}: "
    with pytest.raises(UnreachableError, match=f"^{where}") as info:
        complete(url, **settings)
    return str(info.value).removeprefix(where)


def test_a_refused_connection_says_why_and_costs_nothing(complete, free_port):
    found = unreached(complete, f"http://127.0.0.1:{free_port}/v1")
    assert (
        found == f"ConnectionRefusedError: [Errno {errno.ECONNREFUSED}] Connect call failed ('127.0.0.1', {free_port})"
    )


def test_a_host_that_does_not_exist_says_so_and_costs_nothing(complete, monkeypatch):
    """As the resolver says it; no test asks a real one."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = unreached(complete, "http://no-such-host.invalid/v1")
    assert found == f"gaierror: [Errno {socket.EAI_NONAME}] Name or service not known"


def test_a_host_that_does_not_answer_costs_nothing(complete):
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # its queue is full: whoever comes now is kept waiting
            waiting = held.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        found = unreached(complete, f"http://127.0.0.1:{listener.getsockname()[1]}/v1", timeout=0.4)
    assert found.startswith(("ConnectTimeout", "ConnectionTimeoutError: "))


def test_who_cancels_a_request_gets_a_cancellation_and_no_error(server, question):
    server.script = [(b"", "hang")]

    async def cancel():
        client = OpenAIClient(Connection(base_url=server.url, api_key="k", timeout=5))
        asked = asyncio.create_task(client.complete(question(base_url=server.url)))
        assert await asyncio.to_thread(server.was_asked)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await client.aclose()

    asyncio.run(cancel())
    assert server.all_closed()


# The same provider with a router in the place of the network: for hosts that are not here.


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectTimeout, UnreachableError),
        (httpx.ConnectError, UnreachableError),
        (httpx.PoolTimeout, UnreachableError),
        (httpx.ReadTimeout, LostError),
        (httpx.ReadError, LostError),
        (httpx.WriteError, LostError),
        (httpx.RemoteProtocolError, LostError),
    ],
)
def test_a_failing_transport_is_an_unreached_server_and_lost_if_it_had_begun(mocked, complete, error, kind):
    route = mocked.post("http://judge.test/v1/chat/completions").mock(side_effect=error("too far"))
    with pytest.raises(kind, match=r"^openai/judge-1 at http://judge.test/v1: ") as info:
        complete("http://judge.test/v1")
    assert type(info.value) is kind
    assert route.call_count == 1


def test_what_no_transport_should_raise_is_a_lost_reply_all_the_same(mocked, complete):
    route = mocked.post("http://judge.test/v1/chat/completions").mock(side_effect=EOFError)
    with pytest.raises(LostError, match=r"^openai/judge-1 at http://judge.test/v1: ."):
        complete("http://judge.test/v1")
    assert route.call_count == 1
