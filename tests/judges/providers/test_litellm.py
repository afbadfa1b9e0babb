"""The litellm provider, against a real server that misbehaves on purpose. What the OpenAI provider makes of it is right."""

import asyncio
import base64
import contextlib
import gc
import importlib
import importlib.util
import json
import logging
import os
import socket
import sys
import threading
import time
import traceback
from dataclasses import replace
from typing import Literal

import pytest
from pydantic import BaseModel

from judgekit.errors import (
    AuthenticationError,
    ConfigError,
    ContextError,
    FormatError,
    JudgeError,
    LostError,
    ModelError,
    OverloadError,
    RateLimitError,
    RejectedError,
    ReplyError,
    UnreachableError,
)
from judgekit.judges.judge import Judge
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.litellm import _QUIET, LitellmClient
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.secrets import NO_EXTRAS, RequestExtras
from judgekit.judges.request import ChatMessage, Reply
from judgekit.traces.images import Image, ImageSettings
from judgekit.traces.message import MediaPart, Usage

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier"),  # so litellm itself says when it is imported
]
PRICE = Price(input=2, output=8, cached=0.5)
PRIVATE = "sk-very-private"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """No test sees the keys of whoever runs it, and none leaves anything in the environment."""
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in _QUIET.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def warm(question):
    """litellm loads much of itself for its first request, which would take a deadline's time."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    async def ask():
        client = await asyncio.to_thread(LitellmClient, Connection(base_url=url, api_key="k", timeout=60))
        with pytest.raises(UnreachableError):
            await client.complete(question(model="openai/m"))
        await client.aclose()

    with pytest.MonkeyPatch.context() as environment:
        for name, value in _QUIET.items():
            environment.setenv(name, value)
        asyncio.run(ask())


@pytest.fixture
def complete(question, warm):
    """Asks a server, once or several times over one client, and closes the client."""

    def run(
        base_url,
        model="openai/judge-1",
        *,
        times=1,
        timeout=5.0,
        price=None,
        api_key="sk-local",
        extras=NO_EXTRAS,
        max_reply_bytes=10**7,
        **changes,
    ):
        limits = {"timeout": timeout, "max_reply_bytes": max_reply_bytes}

        async def ask():
            client = LitellmClient(Connection(base_url=base_url, api_key=api_key, price=price, extras=extras, **limits))
            asked = question(provider="litellm", base_url=base_url, model=model, **changes)
            try:
                return [await client.complete(asked) for _ in range(times)]
            finally:
                await client.aclose()

        return asyncio.run(ask())[-1]

    return run


# What is sent, and a good reply.


def test_the_request_holds_model_messages_strict_schema_and_parameters_and_nothing_else(server, complete):
    server.script = [server.says('{"good": true}')]
    complete(
        server.url, params={"temperature": 0, "reasoning_effort": "low", "allowed_openai_params": ["reasoning_effort"]}
    )
    [received] = server.requests
    assert received.line == "POST /v1/chat/completions HTTP/1.1"
    assert received.headers["authorization"] == "Bearer sk-local"
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
    }


@pytest.mark.parametrize(("model", "name"), [("openai/judge-1", "max_tokens"), ("openai/o3", "max_completion_tokens")])
def test_judgekit_s_own_output_limit_goes_by_the_name_that_the_model_knows(server, complete, model, name):
    server.script = [server.says("{}")]
    complete(server.url, model, params={}, max_output_tokens=300)
    body = server.requests[0].body
    assert {one: body[one] for one in ("max_tokens", "max_completion_tokens") if one in body} == {name: 300}


def test_a_good_reply_comes_with_its_model_usage_and_cost(server, complete):
    server.script = [server.says('{"good": true}')]
    assert complete(server.url, price=PRICE) == Reply(
        text='{"good": true}',
        model="judge-1-2026-11-20",
        system_fingerprint="fp_1",
        usage=Usage(input_tokens=1000, output_tokens=50, cached_tokens=400, reasoning_tokens=30),
        cost_usd=(600 * 2 + 400 * 0.5 + 50 * 8) / 1e6,
        saved_usd=(1000 * 2 + 50 * 8) / 1e6 - (600 * 2 + 400 * 0.5 + 50 * 8) / 1e6,
    )


def test_a_cost_is_never_taken_from_the_table_of_litellm(server, complete):
    prices = importlib.import_module("litellm").model_cost
    known = next(
        name
        for name, one in prices.items()
        if (one.get("litellm_provider"), one.get("mode")) == ("openai", "chat") and "/" not in name
    )
    server.script = [server.says("x", model=known)]
    assert complete(server.url, f"openai/{known}").cost_usd is None


@pytest.mark.parametrize(
    ("found", "usage"),
    [
        pytest.param(None, None, id="null"),
        pytest.param({}, None, id="empty"),
        pytest.param({"prompt_tokens": 7}, Usage(input_tokens=7), id="input alone"),
        pytest.param({"completion_tokens": 2}, Usage(output_tokens=2), id="output alone"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0}, None, id="zeros"),
        pytest.param({"prompt_tokens": 7, "completion_tokens": 2}, Usage(input_tokens=7, output_tokens=2), id="both"),
    ],
)
def test_usage_that_is_not_said_is_none_and_not_the_zero_that_litellm_makes_of_it(server, complete, found, usage):
    server.script = [server.says("x", usage=found)]
    reply = complete(server.url, price=Price(1e6, 1e6))
    assert reply.usage == usage
    assert reply.cost_usd == (9 if usage == Usage(input_tokens=7, output_tokens=2) else None)


# A server that misbehaves: in whatever way, it comes to the same as with the OpenAI provider.


def said(message="Nope.", **fields):
    return {"error": {"message": message, "type": "some_error", "param": None, "code": None} | fields}


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"


def replied(message, finish_reason="stop", **fields):
    return 200, {}, {"model": "m", "choices": [{"message": message, "finish_reason": finish_reason}]} | fields


LINES = {
    **{f"{status}": (status, {"retry-after": "7"}, said()) for status in (400, 401, 402, 403, 404, 413, 422, 429)},
    **{f"{status}": (status, {"retry-after": "7"}, said()) for status in (408, 409, 425, 500, 501, 502, 503, 504)},
    **{f"{status}": (status, {"retry-after": "7"}, said()) for status in (520, 529)},
    "400 context": (400, {}, said(code="context_length_exceeded")),
    "400 filter": (400, {}, said(code="content_filter")),
    "400 schema": (400, {}, said("response_format json_schema is not supported")),
    "400 model": (400, {}, said(code="model_not_found")),
    "429 quota": (429, {}, said(code="insufficient_quota")),
    "429 wait a day": (429, {"retry-after": "86400"}, said()),
    "502 html": (502, {"content-type": "text/html"}, b"<html>Nope.</html>"),
    "200 empty": (200, {}, b""),
    "200 html": (200, {}, b"<html>It works!</html>"),
    "200 error": (200, {}, said()),
    "200 error 429": (200, {}, said(code=429)),
    "200 lone surrogate": (200, {}, b'{"choices": [{"message": {"content": "\\ud800"}}]}'),
    "200 events": (200, {}, b'data: {"choices": []}\n\ndata: [DONE]\n\n'),
    "content null": replied({"content": None}),
    "tool calls": replied({"tool_calls": []}, "tool_calls"),
    "refusal": replied({"content": None, "refusal": "I won't."}),
    "broken off": replied({"content": "so f"}, "error"),
    "closed before headers": (b"", "close"),
    "reset before headers": (b"", "reset"),
    "short body": (HEAD + b'{"choices"', "close"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n", "close"),
    "no gzip": (200, {"content-encoding": "gzip"}, b"{}"),
}


@pytest.fixture
def outcome(question):
    """What a client makes of a server: its reply, or the class of its error with what it tells of status and wait."""

    def run(client_class, model, base_url):
        async def ask():
            client = client_class(Connection(base_url=base_url, api_key="sk-local", timeout=5, price=PRICE))
            try:
                return await client.complete(question(base_url=base_url, model=model))
            except JudgeError as error:
                return type(error), vars(error)
            finally:
                await client.aclose()

        return asyncio.run(ask())

    return run


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_each_fault_comes_to_the_same_as_with_the_openai_provider_in_one_request(server, outcome, warm, line):
    server.script = [line]
    expected = outcome(OpenAIClient, "judge-1", server.url)
    assert len(server.requests) == 1
    assert outcome(LitellmClient, "openai/judge-1", server.url) == expected
    assert len(server.requests) == 2
    assert server.all_closed()


@pytest.mark.parametrize("without_aiohttp", [False, True])
@pytest.mark.parametrize("model", ["openai/judge-1", "anthropic/judge-1"])
def test_a_refused_connection_was_not_sent_and_says_why(complete, free_port, monkeypatch, model, without_aiohttp):
    monkeypatch.setattr("litellm.disable_aiohttp_transport", without_aiohttp)
    url = f"http://127.0.0.1:{free_port}/v1"
    with pytest.raises(UnreachableError, match=f"^litellm/{model} at {url}: ConnectionRefusedError: "):
        complete(url, model, params={})


@pytest.mark.parametrize(
    "line",
    [
        pytest.param((b"", "hang"), id="hangs before headers"),
        pytest.param((HEAD, "hang"), id="hangs before the body"),
        pytest.param((HEAD, "drip"), id="drips for ever"),
    ],
)
def test_the_deadline_holds_for_an_attempt_as_a_whole(server, complete, line):
    server.script = [line]
    started = time.perf_counter()
    with pytest.raises(LostError, match=f"^litellm/openai/judge-1 at {server.url}: no reply within 0.5 s$"):
        complete(server.url, timeout=0.5)
    assert 0.5 <= time.perf_counter() - started < 10
    assert len(server.requests) == 1
    assert server.all_closed()


def test_an_error_that_the_caller_is_handling_is_not_taken_for_the_cause(server, question, warm):
    server.script = [(401, {}, said())]

    async def ask():
        client = LitellmClient(Connection(base_url=server.url, api_key="k", timeout=5))
        try:
            await client.complete(question(model="openai/judge-1"))
        except AuthenticationError:
            await client.complete(question(model="nobody/judge-1"))
        finally:
            await client.aclose()

    with pytest.raises(ModelError):
        asyncio.run(ask())


@pytest.mark.parametrize("model", ["openai/m", "deepinfra/m", "nvidia_nim/m", "groq/m", "mistral/m", "anthropic/m"])
@pytest.mark.parametrize("status", [429, 503])
def test_no_provider_of_litellm_is_asked_again(server, complete, monkeypatch, model, status):
    monkeypatch.setattr("litellm.num_retries", 2)
    server.script = [(status, {"retry-after": "0"}, said())]
    with pytest.raises(OverloadError):
        complete(server.url, model, params={})
    assert len(server.requests) == 1


# What litellm itself refuses.


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        pytest.param("openai/m", AuthenticationError, "OPENAI_API_KEY", id="openai without a key"),
        pytest.param("anthropic/m", AuthenticationError, "Anthropic API Key", id="anthropic without a key"),
        pytest.param(
            "fireworks_ai/m", AuthenticationError, "FIREWORKS_API_KEY is not set", id="fireworks without a key"
        ),
        pytest.param("nobody/m", ModelError, "LLM Provider NOT provided", id="no such provider"),
        pytest.param("vllm/m", ModelError, "No module named 'vllm'.*install it", id="a package is missing"),
    ],
)
def test_what_was_not_sent_is_an_error_that_stops_the_run_and_says_what_to_do(complete, model, kind, words):
    with pytest.raises(kind, match=f"^litellm/{model}: .*{words}") as info:
        complete("", model, api_key=None, params={}, output_mode="text")
    assert type(info.value) is kind


def test_a_parameter_that_the_model_does_not_know_is_a_rejected_request(server, complete):
    with pytest.raises(RejectedError, match=r"does not support parameters.*logit_bias") as info:
        complete(server.url, "anthropic/m", params={"logit_bias": {"1": 1}})
    assert type(info.value) is RejectedError
    assert server.requests == []


@pytest.mark.parametrize("drop_params", [False, True])
def test_a_schema_that_the_model_cannot_be_held_to_is_never_dropped_unseen(monkeypatch, server, complete, drop_params):
    monkeypatch.setattr("litellm.drop_params", drop_params)
    server.script = [server.says("x")]
    with pytest.raises(FormatError, match=r"^litellm/featherless_ai/m at .*response_format"):
        complete(server.url, "featherless_ai/m")
    assert server.requests == []


def test_a_schema_is_sent_to_a_model_of_which_the_user_says_that_it_knows_them(server, complete):
    server.script = [(503, {}, said())]
    with pytest.raises(OverloadError):
        complete(server.url, "featherless_ai/m", params={"allowed_openai_params": ["response_format"]})
    [received] = server.requests
    assert received.body["response_format"]["type"] == "json_schema"


# Judges from end to end.


class Opinion(BaseModel):
    """What a judge says in these tests."""

    reason: str
    verdict: Literal["yes", "no"]


YES = {"reason": "It is so.", "verdict": "yes"}


@pytest.fixture
def asked(sample, warm):
    """The judgment of a judge on the sample, in a loop of its own."""
    prompt = load_prompt("agent_goal_without_reference")
    return lambda judge: asyncio.run(judge.ask(prompt, sample, Opinion))


def test_the_ladder_goes_down_to_the_step_that_a_server_knows(server, asked):
    refused = (400, {}, said("response_format is not supported"))
    server.script = [refused, refused, server.says(YES)]
    judge = Judge("litellm/openai/judge-1", base_url=server.url, cache_mode="off")
    assert asked(judge).answer.verdict == "yes"
    assert [one.body.get("response_format", {}).get("type") for one in server.requests] == [
        "json_schema",
        "json_object",
        None,
    ]
    assert '"verdict"' in server.requests[-1].body["messages"][-1]["content"]


def message(content, stop_reason):
    """A reply of Anthropic's Messages API."""
    usage = {"input_tokens": 12, "output_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0}
    return (
        200,
        {},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x-1",
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        },
    )


def test_a_judge_that_speaks_another_api_answers_all_the_same(server, asked, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-local")
    tool = {"type": "tool_use", "id": "t", "name": "json_tool_call", "input": YES}
    server.script = [message([tool], "tool_use")]
    url = server.url.removesuffix("/v1")
    judge = Judge("litellm/anthropic/claude-x", base_url=url, api_key_env="MY_KEY", cache_mode="off", price=PRICE)
    judgment = asked(judge)
    assert judgment.answer.verdict == "yes"
    [received] = server.requests
    assert received.line == "POST /v1/messages HTTP/1.1"
    assert received.headers["x-api-key"] == "sk-local"
    assert received.body["model"] == "claude-x"
    [call] = judgment.calls
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cached_tokens) == (16, 3, 4)
    assert call.cost_usd == pytest.approx((12 * 2 + 4 * 0.5 + 3 * 8) / 1e6, rel=1e-12)


ANTHROPIC = {
    "refusal": (message([{"type": "text", "text": "so f"}], "refusal"), "filter"),
    "401": (
        (401, {}, {"type": "error", "error": {"type": "authentication_error", "message": "No."}}),
        AuthenticationError,
    ),
    "429": ((429, {"retry-after": "7"}, {"type": "error", "error": {"type": "rate_limit_error"}}), RateLimitError),
    "529": ((529, {}, {"type": "error", "error": {"type": "overloaded_error"}}), RateLimitError),
    "too long": (
        (
            400,
            {},
            {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}},
        ),
        ContextError,
    ),
    "short body": ((HEAD + b"{", "close"), LostError),
}


@pytest.mark.parametrize(("line", "expected"), ANTHROPIC.values(), ids=ANTHROPIC)
def test_faults_of_another_api_are_told_apart_as_well(server, complete, line, expected):
    server.script = [line]
    url = server.url.removesuffix("/v1")
    if isinstance(expected, str):
        assert complete(url, "anthropic/claude-x", output_mode="text", params={}).finish_reason == expected
    else:
        with pytest.raises(expected) as info:
            complete(url, "anthropic/claude-x", output_mode="text", params={})
        assert type(info.value) is expected
        assert getattr(info.value, "retry_after", None) == (7.0 if line[1:2] == ({"retry-after": "7"},) else None)
    assert len(server.requests) == 1


# Loops and threads


# over the SDK, and over litellm's own client
@pytest.mark.parametrize("model", ["openai/judge-1", "hosted_vllm/judge-1"])
def test_threads_with_loops_of_their_own_ask_at_once(server, question, warm, model):
    server.script = [server.says("x")]
    ready, found = threading.Barrier(4), []

    async def ask():
        client = LitellmClient(Connection(base_url=server.url, api_key="k", timeout=5))
        ready.wait(5)
        try:
            replies = await asyncio.gather(*(client.complete(question(model=model)) for _ in range(5)))
        finally:
            await client.aclose()
        return [reply.text for reply in replies]

    threads = [threading.Thread(target=lambda: found.extend(asyncio.run(ask()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["x"] * 20
    assert len(server.requests) == 20
    assert server.all_closed()
    gc.collect()


def test_a_client_that_is_closed_leaves_the_others_of_its_loop_their_connections(server, question, warm):
    server.script = [server.says("x")]

    async def ask():
        first, second = (LitellmClient(Connection(base_url=server.url, api_key="k", timeout=5)) for _ in range(2))
        for client in (first, second):
            await client.complete(question(model="openai/judge-1"))
        await first.aclose()
        await second.complete(question(model="openai/judge-1"))
        await second.aclose()
        assert await asyncio.to_thread(server.all_closed)

    asyncio.run(ask())
    assert server.opened == 1


# What nobody asked for


@pytest.mark.parametrize(
    "line",
    [
        *(pytest.param((status, {}, said(f"No key {PRIVATE}.")), id=f"{status}") for status in (200, 401, 500)),
        pytest.param(replied({"content": f"\ud800 {PRIVATE}."}), id="no completion"),
    ],
)
def test_a_key_that_a_server_repeats_is_not_in_the_error(server, complete, line):
    server.script = [line]
    with pytest.raises(JudgeError, match=r" \*\*\*\.") as info:
        complete(server.url, api_key=PRIVATE)
    assert PRIVATE not in "".join(traceback.format_exception(info.value))


@pytest.mark.parametrize("model", ["openai/judge-1", "hosted_vllm/judge-1"])
def test_a_key_is_not_in_the_logs(server, complete, caplog, model):
    caplog.set_level(logging.DEBUG)
    server.script = [server.says("x"), (500, {}, said())]
    with pytest.raises(OverloadError):
        complete(server.url, model, times=2, api_key=PRIVATE)
    assert "Was it good?" in caplog.text  # everything is logged, and yet
    assert PRIVATE not in caplog.text


def test_the_environment_has_no_say_in_where_a_key_goes(server, complete, monkeypatch, free_port):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free_port}/v1")
    server.script = [server.says("x")]
    complete(server.url, api_key="no-key")
    assert server.requests[0].headers["authorization"] == "Bearer no-key"


def test_the_cache_of_litellm_is_left_out(server, complete, monkeypatch):
    litellm = importlib.import_module("litellm")
    for callbacks in ("input_callback", "success_callback", "_async_success_callback"):
        monkeypatch.setattr(litellm, callbacks, [])  # to which a cache adds itself
    looked = []

    class Cache(litellm.Cache):
        async def async_get_cache(self, *arguments, **options):
            looked.append("here")
            return await super().async_get_cache(*arguments, **options)

    monkeypatch.setattr(litellm, "cache", Cache())
    server.script = [server.says("x")]
    complete(server.url)
    assert looked == []


def test_what_litellm_calls_after_a_request_is_not_called_after_these_and_still_serves_the_user(
    server, question, monkeypatch, warm
):
    litellm = importlib.import_module("litellm")
    logged = []
    monkeypatch.setattr(litellm, "success_callback", [lambda *_: logged.append("success")])
    monkeypatch.setattr(litellm, "failure_callback", [lambda *_: logged.append("failure")])
    server.script = [server.says("x"), (400, {}, said())]

    async def ask():
        client = LitellmClient(Connection(base_url=server.url, api_key="k", timeout=5))
        await client.complete(question(model="openai/judge-1"))
        with pytest.raises(RejectedError):
            await client.complete(question(model="openai/judge-1"))
        await client.aclose()
        assert logged == []
        with pytest.raises(litellm.BadRequestError):
            await litellm.acompletion(model="nobody/judge-1", messages=[])

    asyncio.run(ask())
    assert logged == ["failure"]


def test_litellm_is_imported_when_it_is_used_and_prints_fetches_and_reads_nothing(run_python, server, tmp_path):
    (tmp_path / ".env").write_text("OUT_OF_DOTENV=1")
    hello = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": "end_turn"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    server.script = [server.says("x"), (401, {}, said()), (200, {}, hello | {"usage": usage}), (503, {}, said())] * 2
    found = run_python("-c", QUIET, server.url)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    assert len(server.requests) == 8
    assert server.all_closed()


QUIET = """
import asyncio, os, sys, threading
import judgekit.judges.providers.provider

assert "litellm" not in sys.modules
hosts = set()
events = {"socket.connect": lambda _, address: address[0], "socket.getaddrinfo": lambda host, *_: host}
sys.addaudithook(lambda event, arguments: event in events and hosts.add(events[event](*arguments)))

from judgekit.errors import JudgeError
from judgekit.judges.request import Request, ChatMessage
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.litellm import _QUIET, LitellmClient

async def ask(url, model):
    client = LitellmClient(Connection(base_url=url, api_key="k", timeout=30))
    schema = {"type": "object", "properties": {"good": {"type": "boolean"}}}
    request = Request("litellm", url, model, {}, (ChatMessage("user", "?"),), "s", schema, "p", print)
    await client.complete(request)
    try:
        await client.complete(request)
    except JudgeError:
        pass
    else:
        raise AssertionError
    finally:
        await client.aclose()

def judge():
    asyncio.run(ask(sys.argv[1], "openai/m"))
    asyncio.run(ask(sys.argv[1].removesuffix("/v1"), "anthropic/claude-sonnet-4-5"))

judge()
thread = threading.Thread(target=judge)
thread.start()
thread.join()
sys.modules["litellm"].token_counter("llama-2", text="x")  # as it does where a provider counts nothing
assert hosts == {"127.0.0.1"}, hosts
assert "OUT_OF_DOTENV" not in os.environ
"""


def test_without_litellm_the_error_says_how_to_install_it(monkeypatch, sample):
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ConfigError, match=r"litellm cannot be imported.*pip install 'litellm"):
        asyncio.run(
            Judge("litellm/openai/m", cache_mode="off").ask(
                load_prompt("agent_goal_without_reference"), sample, Opinion
            )
        )


def test_what_the_user_set_for_litellm_stays(monkeypatch):
    monkeypatch.setenv("LITELLM_MODE", "DEV")
    LitellmClient(Connection(base_url="", api_key=None, timeout=1))
    assert os.environ["LITELLM_MODE"] == "DEV"


# Headers, sizes, and the keys that litellm finds by itself.


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
def test_headers_are_sent_and_a_query_is_refused(server, complete, model):
    server.script = [(500, {}, {"error": {"message": "No."}})]
    extras = RequestExtras(headers={"x-team": "a", "x-own-key": PRIVATE}, secrets=(PRIVATE,))
    with pytest.raises(OverloadError):
        complete(server.url, model, extras=extras, params={})
    sent = server.requests[0].headers
    assert (sent["x-team"], sent["x-own-key"]) == ("a", PRIVATE)
    with pytest.raises(ConfigError, match=r"^litellm does not support query: "):
        complete(server.url, model, extras=RequestExtras(query={"api-version": "1"}))


def test_a_reply_that_is_too_long_is_of_no_use(server, complete):
    server.script = [server.says("x" * 20_000)]
    with pytest.raises(ReplyError, match=rf"^litellm/openai/judge-1 at {server.url}: the reply has more than 10,000"):
        complete(server.url, max_reply_bytes=10_000)


@pytest.mark.parametrize("status", [200, 401, 500])
def test_keys_that_litellm_may_have_found_in_the_environment_are_masked(server, complete, monkeypatch, status):
    monkeypatch.setenv("OTHER_SECRET_ACCESS_KEY", PRIVATE)
    server.script = [server.says(f"It is {PRIVATE}.", model=PRIVATE)]
    if status != 200:
        server.script = [(status, {}, {"error": {"message": f"It is {PRIVATE}."}})]
        with pytest.raises(JudgeError, match=r"It is \*\*\*\.") as info:
            complete(server.url)
        assert PRIVATE not in "".join(traceback.format_exception(info.value))
        return
    reply = complete(server.url)
    assert (reply.text, reply.model) == ("It is ***.", "***")


@pytest.mark.parametrize("model", ["openai/m", "anthropic/claude-sonnet-4-5"])
def test_images_arrive_as_data_and_nothing_is_fetched(server, warm, question, model):
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAADwAAAAoCAIAAAAt2Q6oAAAASUlEQVR4nO3OQQ3AIAAAMUAI/qUgCw97HFnSKug8e4+/Wa8DX0hXpCvSFemKdEW6"
        "Il2RrkhXpCvSFemKdEW6Il2RrkhXpCvSlQtBOQFUzKPJpQAAAABJRU5ErkJggg=="
    )
    data = base64.b64encode(png).decode()
    shown = Image.of(MediaPart(kind="image", data=data), ImageSettings())
    line = "[mark 1] image 1: image/png, 60 x 40"
    messages = (ChatMessage("system", "s"), ChatMessage("user", f"before\n{line}\nafter"))
    request = replace(question(model=model, params={}), messages=messages, images=((line, shown),))
    server.script = [server.says("x")]

    async def ask():
        client = await asyncio.to_thread(
            LitellmClient, Connection(base_url=server.url, api_key="k", timeout=20, max_reply_bytes=10**6)
        )
        with contextlib.suppress(JudgeError):  # only the request counts here
            await client.complete(request)
        await client.aclose()

    asyncio.run(ask())
    sent = json.dumps(server.requests[0].body["messages"])
    assert sent.count(data) == 1
    assert sent.index(f"{line}") < sent.index(data) < sent.index("after")
    assert len(server.requests) == 1
    assert server.lookups == []
