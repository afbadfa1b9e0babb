"""The OpenAI provider, against a real server that misbehaves on purpose, and against a router in its place."""

import asyncio
import gzip
import json
import time

import httpx
import openai.resources.chat.completions  # noqa: F401 - loaded when first used, which takes a deadline's time
import pytest

from judgekit.errors import (
    AuthenticationError,
    ContextError,
    FilterError,
    OverloadError,
    RateLimitError,
    RefusalError,
    RejectedError,
    ReplyError,
    TruncatedError,
)
from judgekit.judges.client import Reply
from judgekit.judges.openai import OpenAIClient, Price
from judgekit.traces.message import Usage

USAGE = Usage(input_tokens=1000, output_tokens=50, cached_tokens=400, reasoning_tokens=30)


@pytest.fixture
def complete(question):
    """Asks a server, once or several times over one client, and closes the client."""

    def run(base_url, *, times=1, timeout=5.0, price=None, api_key="sk-local", **changes):
        async def ask():
            client = OpenAIClient(base_url=base_url, api_key=api_key, timeout=timeout, price=price)
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
                "name": "goodness",
                "schema": {"type": "object", "properties": {"good": {"type": "boolean"}}},
                "strict": True,
            },
        },
        "temperature": 0,
        "reasoning_effort": "low",
        "own": {"top_k": [1]},
    }


def test_a_good_reply_comes_with_its_model_usage_and_cost(server, complete):
    server.script = [server.says('{"good": true}')]
    assert complete(server.url, price=Price(input=2, output=8, cached=0.5)) == Reply(
        text='{"good": true}', model="judge-1-2026-11-20", usage=USAGE, cost_usd=(600 * 2 + 400 * 0.5 + 50 * 8) / 1e6
    )


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        pytest.param(Price(2, 8), USAGE, (1000 * 2 + 50 * 8) / 1e6, id="cached tokens cost the same if not said"),
        pytest.param(Price(2, 8, 0), USAGE, (600 * 2 + 50 * 8) / 1e6, id="cached tokens may be free"),
        pytest.param(Price(2, 8), Usage(input_tokens=10, output_tokens=0), 20 / 1e6, id="nothing cached"),
        pytest.param(Price(0, 0), USAGE, 0.0, id="a model of one's own"),
        pytest.param(Price(2, 8), None, None, id="no usage"),
        pytest.param(Price(2, 8), Usage(input_tokens=10), None, id="no output tokens"),
        pytest.param(Price(2, 8), Usage(output_tokens=10), None, id="no input tokens"),
    ],
)
def test_cost_is_tokens_by_price_and_unknown_where_tokens_are(price, usage, cost):
    assert price.of(usage) == (cost if cost is None else pytest.approx(cost, rel=1e-12))


@pytest.mark.parametrize(
    ("found", "usage"),
    [
        pytest.param(None, None, id="null"),
        pytest.param({}, Usage(), id="empty"),
        pytest.param({"prompt_tokens": 7}, Usage(input_tokens=7), id="input alone"),
        pytest.param({"prompt_tokens": 7, "prompt_tokens_details": None}, Usage(input_tokens=7), id="null details"),
        pytest.param(
            {"completion_tokens": 2, "completion_tokens_details": {}}, Usage(output_tokens=2), id="empty details"
        ),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0}, Usage(input_tokens=0, output_tokens=0), id="zeros"),
    ],
)
def test_usage_that_is_not_said_is_none_and_never_zero(server, complete, found, usage):
    server.script = [server.says("x", usage=found)]
    reply = complete(server.url, price=Price(1, 1))
    assert reply.usage == usage
    assert reply.cost_usd == (None if usage is None or None in (usage.input_tokens, usage.output_tokens) else 0.0)


@pytest.mark.parametrize("missing", ["usage", "model", "id", "object"])
def test_a_server_may_leave_out_what_is_not_the_reply(server, complete, missing):
    status, headers, body = server.says("x")
    del body[missing]
    server.script = [(status, headers, body)]
    expected = {"text": "x", "model": "judge-1-2026-11-20", "usage": USAGE} | {missing: None}
    assert complete(server.url) == Reply(**{name: expected[name] for name in ("text", "model", "usage")})


def test_a_server_may_name_another_content_type_and_leave_out_the_finish_reason(server, complete):
    body = {"choices": [{"message": {"content": "x"}}]}
    server.script = [(200, {"content-type": "text/plain"}, body)]
    assert complete(server.url) == Reply(text="x")


def test_one_connection_serves_many_requests_and_is_closed_with_the_client(server, complete):
    server.script = [server.says("x")]
    complete(server.url, times=3)
    assert len(server.requests) == 3
    assert server.opened == 1
    assert server.all_closed()


def test_a_server_may_close_the_connection_after_each_reply(server, complete):
    content = json.dumps(server.says("x")[2])
    head = f"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {len(content)}\r\n\r\n"
    server.script = [((head + content).encode(), "close")]
    assert complete(server.url, times=3).text == "x"
    assert server.opened == 3


# A server that misbehaves. Each request is sent exactly once: asking again is the business of a layer.


def said(message="Nope.", code=None):
    return {"error": {"message": message, "type": "some_error", "param": None, "code": code}}


STATUS = [
    pytest.param(400, {}, said(), RejectedError, id="400"),
    pytest.param(400, {}, said(code="context_length_exceeded"), ContextError, id="400 context_length_exceeded"),
    pytest.param(400, {}, said(code="content_filter"), FilterError, id="400 content_filter"),
    pytest.param(400, {}, said(code=400), RejectedError, id="400 whose code is a number"),
    pytest.param(400, {}, {"error": "Nope."}, RejectedError, id="400 whose error is text"),
    pytest.param(400, {}, {"object": "error", "message": "Nope."}, RejectedError, id="400 without an error"),
    pytest.param(400, {}, ["Nope."], RejectedError, id="400 with a list"),
    pytest.param(400, {}, b"Nope.", RejectedError, id="400 with text"),
    pytest.param(401, {}, said(code="invalid_api_key"), AuthenticationError, id="401"),
    pytest.param(403, {}, said(), AuthenticationError, id="403"),
    pytest.param(404, {}, said(code="model_not_found"), RejectedError, id="404"),
    pytest.param(413, {}, said(), RejectedError, id="413"),
    pytest.param(422, {}, said(), RejectedError, id="422"),
    pytest.param(429, {}, said(code="insufficient_quota"), RejectedError, id="429 insufficient_quota"),
    pytest.param(501, {}, said(), RejectedError, id="501"),
    *(
        pytest.param(status, {}, said(), OverloadError, id=f"{status}")
        for status in (408, 409, 425, 500, 502, 503, 504)
    ),
    pytest.param(520, {}, b"Nope.", OverloadError, id="520 of a proxy"),
    pytest.param(502, {"content-type": "text/html"}, b"<html>Nope.</html>", OverloadError, id="502 html"),
    pytest.param(503, {"content-type": "text/html"}, b"<p>\xff Nope.", OverloadError, id="503 that is not UTF-8"),
    pytest.param(429, {}, said(code="rate_limit_exceeded"), RateLimitError, id="429"),
    pytest.param(529, {}, said(), RateLimitError, id="529"),
]


@pytest.mark.parametrize(("status", "headers", "body", "kind"), STATUS)
def test_a_refused_request_is_one_typed_error_that_says_where_and_what(server, complete, status, headers, body, kind):
    server.script = [(status, headers, body)]
    with pytest.raises(kind, match=f"openai/judge-1 at {server.url}: HTTP {status}: .*Nope") as info:
        complete(server.url)
    assert type(info.value) is kind
    assert len(server.requests) == 1
    assert server.all_closed()


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="not said"),
        pytest.param({"retry-after": "20"}, 20.0, id="seconds"),
        pytest.param({"Retry-After": "0.25"}, 0.25, id="a part of a second"),
        pytest.param({"retry-after": "0"}, 0.0, id="at once"),
        pytest.param({"retry-after": "-3"}, 0.0, id="in the past"),
        pytest.param({"retry-after-ms": "1500"}, 1.5, id="milliseconds"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, id="both"),
        pytest.param({"retry-after-ms": "soon", "retry-after": "2"}, 2.0, id="one of them readable"),
        pytest.param({"retry-after": "Fri, 20 Nov 2026 14:00:00 GMT"}, None, id="date"),
        pytest.param({"retry-after": "soon"}, None, id="words"),
        pytest.param({"retry-after": "86400"}, 86400.0, id="a day"),
    ],
)
def test_an_overloaded_server_says_how_long_to_wait(server, complete, status, headers, seconds):
    server.script = [(status, headers, said())]
    with pytest.raises(OverloadError) as info:
        complete(server.url)
    assert info.value.retry_after == seconds


NO_COMPLETION = [
    pytest.param(b"", id="empty body"),
    pytest.param(b'{"choices": [{"message": {"cont', id="truncated JSON"),
    pytest.param(b"<html>It works!</html>", id="HTML"),
    pytest.param(b"null", id="null"),
    pytest.param(b'"fine"', id="text"),
    pytest.param(b"[]", id="list"),
    pytest.param(json.dumps(said()).encode(), id="error object"),
    pytest.param(b'{"choices": null}', id="choices null"),
    pytest.param(b'{"choices": []}', id="choices empty"),
    pytest.param(b'{"choices": [null]}', id="choice null"),
    pytest.param(b'{"choices": [{"message": null, "finish_reason": "stop"}]}', id="message null"),
    pytest.param(b'{"choices": [{"text": "x"}]}', id="no message"),
    pytest.param(b'{"choices": [{"message": {"content": ["x"]}}]}', id="content a list"),
    pytest.param(b'{"choices": [{"message": {"content": "\\ud800"}}]}', id="lone surrogate"),
    pytest.param(b'{"choices": [{"message": {"content": "gr\xfc\xdfe"}}]}', id="invalid UTF-8"),
    pytest.param(b"[" * 100_000, id="nested too deep"),
    pytest.param(b'data: {"choices": []}\n\ndata: [DONE]\n\n', id="stream of events"),
]


@pytest.mark.parametrize("body", NO_COMPLETION)
def test_a_reply_that_is_no_completion_is_an_overload_error(server, complete, body):
    server.script = [(200, {}, body)]
    with pytest.raises(OverloadError, match=f"^openai/judge-1 at {server.url}: the reply (is no|holds no)") as info:
        complete(server.url)
    assert type(info.value) is OverloadError
    assert info.value.retry_after is None
    assert len(str(info.value)) < 700
    assert len(server.requests) == 1


WITHHELD = [
    pytest.param({"content": None}, "stop", ReplyError, "the reply is empty", id="content null"),
    pytest.param({"content": ""}, "stop", ReplyError, "the reply is empty", id="content empty"),
    pytest.param({}, "stop", ReplyError, "the reply is empty", id="no content"),
    pytest.param({"tool_calls": []}, "tool_calls", ReplyError, "the reply is empty", id="tool calls"),
    pytest.param({"content": None, "refusal": "I won't."}, "stop", RefusalError, "declined: I won't.", id="refusal"),
    pytest.param({"content": '{"go'}, "length", TruncatedError, "cut off at the token limit", id="length"),
    pytest.param({"content": ""}, "length", TruncatedError, "cut off at the token limit", id="length while thinking"),
    pytest.param({"content": "so f"}, "content_filter", FilterError, "content filter", id="content_filter"),
]


@pytest.mark.parametrize(("message", "finish_reason", "kind", "found"), WITHHELD)
def test_a_completion_without_a_whole_answer_is_one_typed_error(server, complete, message, finish_reason, kind, found):
    server.script = [server.says("x", choices=[{"message": message, "finish_reason": finish_reason}])]
    with pytest.raises(kind, match=f"^openai/judge-1 at {server.url}: .*{found}") as info:
        complete(server.url)
    assert type(info.value) is kind
    assert len(server.requests) == 1


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
BROKEN = [
    pytest.param((b"", "close"), id="closed before headers"),
    pytest.param((b"", "reset"), id="reset before headers"),
    pytest.param((b"HTTP/1.1 200 OK\r\ncontent-le", "reset"), id="reset within headers"),
    pytest.param((HEAD + b'{"choices"', "reset"), id="reset mid-body"),
    pytest.param((HEAD + b'{"choices"', "close"), id="body shorter than it says"),
    pytest.param((b"HTTP/1.1 500 Oops\r\ncontent-length: 1000\r\n\r\n{", "reset"), id="reset within an error's body"),
    pytest.param((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "close"), id="no chunk"),
    pytest.param((b"SSH-2.0-OpenSSH_9.6\r\n", "close"), id="no HTTP"),
    pytest.param((200, {"content-encoding": "gzip"}, b"{}"), id="no gzip"),
    pytest.param((200, {"content-encoding": "gzip"}, gzip.compress(b'{"a": 1}' * 99)[:30]), id="half a gzip"),
]


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_transport_is_an_overload_error(server, complete, line):
    server.script = [line]
    with pytest.raises(OverloadError, match=f"^openai/judge-1 at {server.url}: ") as info:
        complete(server.url)
    assert type(info.value) is OverloadError
    assert len(server.requests) == 1
    assert server.all_closed()


def test_a_refused_connection_is_an_overload_error_that_says_why(complete, free_port):
    url = f"http://127.0.0.1:{free_port}/v1"
    with pytest.raises(OverloadError, match=f"^openai/judge-1 at {url}: Connection error. .*(refused|attempts failed)"):
        complete(url)


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
    with pytest.raises(OverloadError, match=f"^openai/judge-1 at {server.url}: no reply within 0.5 s$"):
        complete(server.url, timeout=0.5)
    assert 0.5 <= time.perf_counter() - started < 10
    assert len(server.requests) == 1
    assert server.all_closed()


def test_who_cancels_a_request_gets_a_cancellation_and_no_error(server, question):
    server.script = [(b"", "hang")]

    async def cancel():
        client = OpenAIClient(base_url=server.url, api_key="k", timeout=5, price=None)
        asked = asyncio.create_task(client.complete(question(base_url=server.url)))
        assert await asyncio.to_thread(server.was_asked)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await client.aclose()

    asyncio.run(cancel())
    assert server.all_closed()


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_key_that_a_server_repeats_is_not_in_the_error(server, complete, status):
    server.script = [(status, {}, said("The key sk-very-private is not known. None of them is."))]
    with pytest.raises((AuthenticationError, OverloadError), match=r"The key \*\*\* is not") as info:
        complete(server.url, api_key="sk-very-private")
    assert "sk-very-private" not in str(info.value)


def test_a_long_error_page_is_cut_visibly(server, complete):
    server.script = [(502, {"content-type": "text/html"}, b"<html>" + b"x" * 5000 + b"Bad gateway")]
    with pytest.raises(OverloadError, match=r"\[\.\.\. 4,\d\d\d characters omitted \.\.\.\]") as info:
        complete(server.url)
    assert len(str(info.value)) < 1000
    assert str(info.value).endswith("Bad gateway")


# The same provider with a router in the place of the network: for hosts that are not here.


def test_the_environment_of_the_sdk_is_not_read(mocked, complete, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.test/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    body = {"choices": [{"message": {"content": "x"}}]}
    route = mocked.post("https://api.openai.com/v1/chat/completions").respond(json=body)
    complete("https://api.openai.com/v1")
    assert route.call_count == 1
    assert route.calls[0].request.headers["authorization"] == "Bearer sk-local"


def test_replies_follow_each_other_over_one_client(mocked, complete):
    route = mocked.post("http://judge.test/v1/chat/completions")
    route.side_effect = [
        httpx.Response(200, json={"choices": [{"message": {"content": text}}]}) for text in ("one", "two")
    ]
    assert complete("http://judge.test/v1", times=2).text == "two"
    assert route.call_count == 2


@pytest.mark.parametrize("error", [httpx.ConnectTimeout, httpx.ReadTimeout, httpx.PoolTimeout, httpx.ConnectError])
def test_a_failing_transport_is_an_overload_error(mocked, complete, error):
    route = mocked.post("http://judge.test/v1/chat/completions").mock(side_effect=error("too far"))
    with pytest.raises(OverloadError, match=r"^openai/judge-1 at http://judge.test/v1: "):
        complete("http://judge.test/v1")
    assert route.call_count == 1
