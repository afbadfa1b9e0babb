"""How a completion is read, and what a provider's refusal of one means."""

import json
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import (
    AuthenticationError,
    ContextError,
    FilterError,
    FormatError,
    JudgeError,
    LostError,
    ModelError,
    OverloadError,
    QuotaError,
    RateLimitError,
    RejectedError,
)
from judgekit.judges.providers.completion import http_status_error, parse_completion, retry_after
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.secrets import SecretMask
from judgekit.judges.request import Reply
from judgekit.traces.message import Usage

PLAIN = SecretMask(())


def completion(message=None, **changes):
    choice = {"message": message or {"content": "x"}, **changes.pop("choice", {})}
    return json.dumps({"choices": [choice], **changes}).encode()


def read(body, price=None):
    return parse_completion(body, PLAIN, "here", price)


# A completion


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        pytest.param(completion(), Reply(text="x"), id="the least"),
        pytest.param(completion(model="m", id=3, object=None), Reply(text="x", model="m"), id="model"),
        pytest.param(
            completion(model="m", system_fingerprint="fp"),
            Reply(text="x", model="m", system_fingerprint="fp"),
            id="fingerprint",
        ),
        pytest.param(completion({"content": None}), Reply(text=""), id="content null"),
        pytest.param(completion({"content": None, "tool_calls": [{"id": "1"}]}), Reply(text=""), id="a tool call"),
        pytest.param(
            completion(
                {"content": [{"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "text", "text": "b"}]}
            ),
            Reply(text="ab"),
            id="content in parts",
        ),
        pytest.param(
            completion(choice={"finish_reason": "length"}), Reply(text="x", finish_reason="length"), id="length"
        ),
        pytest.param(
            completion(choice={"finish_reason": "content_filter"}),
            Reply(text="x", finish_reason="filter"),
            id="content_filter",
        ),
        pytest.param(
            completion({"content": None, "refusal": "No."}), Reply(text="No.", finish_reason="refusal"), id="refusal"
        ),
    ],
)
def test_a_completion_is_read_for_its_words_and_its_ending(body, reply):
    assert read(body) == reply


@pytest.mark.parametrize(
    ("found", "usage"),
    [
        pytest.param(None, None, id="null"),
        pytest.param([], None, id="a list"),
        pytest.param({}, Usage(), id="empty"),
        pytest.param({"prompt_tokens": 7}, Usage(input_tokens=7), id="input alone"),
        pytest.param({"prompt_tokens": 7, "prompt_tokens_details": 3}, Usage(input_tokens=7), id="odd details"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 5}, Usage(output_tokens=5), id="a prompt of zero"),
        pytest.param({"prompt_tokens": -1, "completion_tokens": 2.5}, Usage(), id="numbers that count nothing"),
        pytest.param(
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input_tokens=9, output_tokens=5, cached_tokens=4, reasoning_tokens=3),
            id="all",
        ),
        pytest.param(
            {"prompt_tokens": 279, "completion_tokens": 6, "total_tokens": 374},  # of grok-4-fast-reasoning
            Usage(input_tokens=279, output_tokens=95),
            id="reasoning in the total alone",
        ),
    ],
)
def test_usage_that_is_not_said_is_none_and_never_zero(found, usage):
    reply = read(completion(usage=found), Price(1, 1))
    assert reply.usage == usage
    counted = None if usage is None else (usage.input_tokens, usage.output_tokens)
    assert reply.cost_usd == (None if counted is None or None in counted else sum(counted) / 1e6)
    assert read(completion(), Price(1, 1)).cost_usd is None


TOKENS = {"prompt_tokens": 1000, "completion_tokens": 7}


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        pytest.param(TOKENS | {"cost": 0.25}, None, 0.25, id="as the provider says"),
        pytest.param(TOKENS | {"cost": 0.25}, Price(2, 0), 0.002, id="as the user says"),
        pytest.param({"cost": 0.25}, Price(2, 0), 0.25, id="as the provider says, where no tokens are counted"),
        pytest.param(TOKENS, None, None, id="nobody says"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0, "cost": 0.1}, None, 0.1, id="a cost without tokens"),
        *(
            pytest.param(TOKENS | {"cost": cost}, None, None, id=f"{cost!r}")
            for cost in (-1, math.nan, math.inf, "", [])
        ),
    ],
)
def test_the_cost_is_what_the_users_price_makes_it_or_else_what_the_provider_says(usage, price, cost):
    assert read(completion(usage=usage), price).cost_usd == cost


def test_logprobs_are_read_where_they_are_there():
    tokens = [{"token": "y", "logprob": -0.5, "bytes": [1], "top_logprobs": [{"token": "n", "logprob": -2.0}]}]
    reply = read(completion(choice={"logprobs": {"content": tokens, "refusal": None}}))
    assert reply.text == "x"
    assert [one.model_dump(exclude_defaults=True) for one in reply.logprobs] == [
        {"token": "y", "logprob": -0.5, "top_logprobs": ({"token": "n", "logprob": -2.0},)}
    ]


def test_logprobs_that_are_not_there_or_of_another_kind_are_none():
    cases = [None, {}, {"content": None}, {"content": []}, {"tokens": ["y"]}, [], {"content": 1}]
    for logprobs in cases:
        assert read(completion(choice={"logprobs": logprobs})) == Reply(text="x")


NO_COMPLETION = {
    "HTML": b"<html>It works!</html>",
    "choices empty": b'{"choices": []}',
    "message null": b'{"choices": [{"message": null, "finish_reason": "stop"}]}',
    "content a list of texts": b'{"choices": [{"message": {"content": ["x"]}}]}',
    "lone surrogate": b'{"choices": [{"message": {"content": "\\ud800"}}]}',
    "invalid UTF-8": b'{"choices": [{"message": {"content": "gr\xfc\xdfe"}}]}',
    "nested too deep": b"[" * 100_000,
    "error": b'{"error": {"message": "Nope.", "code": "oops"}}',
    "error code that is no status": b'{"error": {"code": 42}}',
    "10 MB": b"x" * 10_000_000,
}


def test_a_reply_that_is_no_completion_is_lost_and_shown():
    for body in NO_COMPLETION.values():
        with pytest.raises(LostError, match=r"^here: the reply is not a completion, found .") as info:
            read(body)
        assert len(str(info.value)) < 700
        assert info.value.retry_after is None


def test_an_error_with_a_status_that_comes_as_a_success_is_that_error():
    cases = [
        (429, RateLimitError),
        ("429", RateLimitError),
        (401, AuthenticationError),
        (402, QuotaError),
        (502, OverloadError),
    ]
    for code, kind in cases:
        for choices in [{}, {"choices": []}, {"choices": None}]:
            with pytest.raises(kind, match=f"^here: HTTP {code}: .*Nope") as info:
                read(json.dumps({"error": {"message": "Nope.", "code": code}} | choices).encode())
            assert type(info.value) is kind


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["code", "type", "text"]), inner),
    max_leaves=5,
)


def shaped(**parts):
    return anything | st.fixed_dictionaries({}, optional=parts)


tokens = st.lists(shaped(token=anything, logprob=anything, top_logprobs=anything), max_size=2)
details = shaped(cached_tokens=anything, reasoning_tokens=anything)
bodies = shaped(
    choices=st.lists(
        shaped(
            message=shaped(content=anything, refusal=anything),
            finish_reason=st.sampled_from(["stop", "length", "content_filter", "error"]) | anything,
            logprobs=shaped(content=anything | tokens),
        ),
        max_size=2,
    ),
    model=anything,
    usage=shaped(
        prompt_tokens=anything,
        completion_tokens=anything,
        prompt_tokens_details=details,
        completion_tokens_details=details,
        cost=anything,
    ),
    error=shaped(code=st.integers(400, 599) | anything, message=anything),
)


@given(st.binary(max_size=200) | bodies.map(lambda body: json.dumps(body).encode()))
def test_whatever_arrives_is_a_reply_or_a_judge_error(body):
    try:
        reply = read(body, Price(1, 1))
    except JudgeError as error:
        assert str(error).startswith("here: ")  # noqa: PT017 - a reply is as good
    else:
        assert reply == Reply.model_validate_json(reply.model_dump_json())
        assert reply.cost_usd is None or 0 <= reply.cost_usd < math.inf


# A refusal


def said(message="Nope.", code=None, kind="some_error"):
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def no_header(_):
    return None


TPM = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000."
REFUSED = [
    pytest.param(400, said(), RejectedError, id="400"),
    pytest.param(400, '{"error": "Nope."}', RejectedError, id="400 whose error is text"),
    pytest.param(400, '{"object": "error", "message": "Nope."}', RejectedError, id="400 without an error"),
    pytest.param(400, "", RejectedError, id="400 with nothing"),
    pytest.param(501, said(), RejectedError, id="501"),
    pytest.param(400, said(code="context_length_exceeded"), ContextError, id="400 context_length_exceeded"),
    pytest.param(400, said("prompt is too long: 210000 tokens > 200000 maximum"), ContextError, id="400 of Anthropic"),
    pytest.param(
        400,
        f"[{said('The input token count (9) exceeds the maximum number allowed (8).')}]",
        ContextError,
        id="400 of Gemini",
    ),
    pytest.param(
        400,
        said("the request exceeds the available context size", 400, "exceed_context_size_error"),
        ContextError,
        id="400 of llama.cpp",
    ),
    pytest.param(413, said(), ContextError, id="413"),
    pytest.param(429, said(TPM, "rate_limit_exceeded"), ContextError, id="429 for more tokens than a minute has"),
    pytest.param(400, said(code="content_filter"), FilterError, id="400 content_filter"),
    pytest.param(403, said("The input was flagged by moderation."), FilterError, id="403 flagged"),
    pytest.param(400, said("Invalid schema for response_format 'x': ..."), FormatError, id="400 schema"),
    pytest.param(404, said("No endpoints support: response_format"), FormatError, id="404 of OpenRouter"),
    pytest.param(500, said("json_schema is not supported"), FormatError, id="500 of llama-cpp-python"),
    pytest.param(501, said("unsupported field in response schema"), FormatError, id="501 of Vertex"),
    pytest.param(401, said(code="invalid_api_key"), AuthenticationError, id="401"),
    pytest.param(403, said(), AuthenticationError, id="403"),
    pytest.param(404, said(code="model_not_found"), ModelError, id="404 model_not_found"),
    pytest.param(404, "<html>", ModelError, id="404 of a web site"),
    pytest.param(400, said("Invalid model: x"), ModelError, id="400 of Mistral"),
    pytest.param(400, said("x is not a valid model ID"), ModelError, id="400 of OpenRouter"),
    pytest.param(400, said("The model `x` does not exist"), ModelError, id="400 of xAI"),
    pytest.param(402, said(), QuotaError, id="402"),
    pytest.param(429, said(code="insufficient_quota"), QuotaError, id="429 insufficient_quota"),
    pytest.param(429, said(code="rate_limit_exceeded"), RateLimitError, id="429"),
    pytest.param(529, said(), RateLimitError, id="529"),
    *(pytest.param(status, said(), OverloadError, id=f"{status}") for status in (408, 409, 425, 500, 502, 503, 520)),
    *(pytest.param(status, said(), LostError, id=f"{status}") for status in (504, 524)),
    pytest.param(503, said("json_schema workers are busy"), OverloadError, id="503 that names a form"),
    pytest.param(301, "", ModelError, id="301"),
]


@pytest.mark.parametrize(("status", "body", "kind"), REFUSED)
def test_a_refusal_is_one_typed_error_that_says_where_and_what(status, body, kind):
    error = http_status_error(status, body.encode(), no_header, PLAIN, "here")
    assert type(error) is kind
    assert str(error).startswith("here: ")
    assert f"HTTP {status}: {' '.join(body.split())}" in str(error)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://me:word@there.test:8443/v1?k=word#word", "https://there.test:8443/v1"),
        ("//me@there.test/v1", "//there.test/v1"),
        ("/v2/chat?key=word", "/v2/chat"),
        ("https://there.test/sk-very-private/v1", "https://there.test/***/v1"),
        ("https://[word", "..."),
    ],
)
def test_an_address_is_shown_without_user_password_query_and_key(location, shown):
    error = http_status_error(308, b"", {"location": location}.get, SecretMask(("sk-very-private",)), "here")
    assert f"here: it redirects to {shown!r}, which judgekit does not follow" in str(error)
    assert "word" not in str(error)


def test_tokens_that_may_spell_a_key_are_not_kept():
    tokens = [{"token": one, "logprob": -1.0} for one in ("sk-very", "-private")]
    body = completion({"content": "sk-very-private"}, choice={"logprobs": {"content": tokens}})
    assert parse_completion(body, PLAIN, "here", None).logprobs is not None
    assert parse_completion(body, SecretMask(("sk-very-private",)), "here", None) == Reply(text="***")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, said("The model `gpt-x` has been deprecated", code="model_not_found")),
        (404, said("The model `m` does not exist.")),
        (404, said('model "m" not found, try pulling it first')),
        (400, said("m is not a valid model ID")),
    ],
)
def test_a_model_that_the_provider_does_not_know_may_be_retired(status, body):
    assert str(http_status_error(status, body.encode(), no_header, PLAIN, "here")).startswith(
        "here: the provider does not know this model: it may be retired, or its name misspelled. Choose another."
    )


def test_a_long_refusal_is_cut_visibly_and_stands_on_one_line():
    error = str(http_status_error(500, b"a\n" * 5_000 + b"end", no_header, PLAIN, "here"))
    assert len(error) < 600
    assert error.startswith("here: HTTP 500: a a a ")
    assert error.endswith(" a end")
    assert "characters omitted" in error
    assert "\n" not in error


@pytest.mark.parametrize(
    ("status", "headers", "kind", "seconds"),
    [
        (429, {"retry-after": "60"}, RateLimitError, 60.0),
        (429, {"retry-after-ms": "1500"}, RateLimitError, 1.5),
        (503, {"retry-after": "7"}, OverloadError, 7.0),
        (503, {"retry-after": "86400"}, OverloadError, 86400.0),
        (429, {}, RateLimitError, None),
    ],
)
def test_an_overloaded_server_says_how_long_to_wait(status, headers, kind, seconds):
    error = http_status_error(status, said().encode(), headers.get, PLAIN, "here")
    assert (type(error), error.retry_after) == (kind, seconds)


@pytest.mark.parametrize("wait", ["61", "86400", "inf"])
def test_a_rate_limit_of_more_than_a_minute_is_a_spent_quota(wait):
    error = http_status_error(429, said().encode(), {"retry-after": wait}.get, PLAIN, "here")
    assert type(error) is QuotaError
    assert str(error).startswith(f"here: it asks to wait for {wait} s. HTTP 429: ")


NOW = datetime(2026, 11, 20, 14, 0, 0, tzinfo=UTC)


def at(**later):
    return format_datetime(NOW + timedelta(**later), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="not said"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({"retry-after": "soon"}, None, id="words"),
        pytest.param({"retry-after": "nan"}, None, id="no number"),
        pytest.param({"retry-after": "0.25"}, 0.25, id="a part of a second"),
        pytest.param({"retry-after": "0"}, 0.0, id="at once"),
        pytest.param({"retry-after": "-3"}, 0.0, id="in the past"),
        pytest.param({"retry-after": "1e999"}, math.inf, id="for ever"),
        pytest.param({"retry-after-ms": "1500"}, 1.5, id="milliseconds"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, id="both"),
        pytest.param({"retry-after": at(seconds=30), "date": at()}, 30.0, id="date"),
        pytest.param({"retry-after": at(), "date": at(seconds=30)}, 0.0, id="date in the past"),
        pytest.param({"retry-after": "Fri, 20 Nov 2026 15:00:30 +0100", "date": at()}, 30.0, id="date of another zone"),
        pytest.param({"retry-after": "Fri, 20 Nov 99999999999 14:00:00 GMT"}, None, id="date of no year"),
        pytest.param({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0, id="date long past, of no known clock"),
        pytest.param(
            {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT", "date": "today"},
            pytest.approx(2.5e11, rel=0.1),
            id="date far ahead",
        ),
    ],
)
def test_how_long_to_wait_is_read_from_either_header_in_any_of_its_forms(headers, seconds):
    assert retry_after(headers.get) == seconds


dates = st.builds("{}, {} {} {} {}:{}:{} {}".format, st.sampled_from(["Fri", "x"]), *[st.integers()] * 6, st.integers())
values = st.none() | st.text(max_size=30) | st.floats().map(str) | st.datetimes().map(format_datetime) | dates


@given(st.fixed_dictionaries({"retry-after": values, "retry-after-ms": values, "date": values}))
def test_a_wait_is_never_negative_and_always_a_number(headers):
    wait = retry_after(headers.get)
    assert wait is None or wait >= 0


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_completion_tokens"),
        ("max_tokens is deprecated in favor of max_completion_tokens", "max_completion_tokens"),
        ("Unknown parameter max_tokens, expected max_completion_tokens", "max_completion_tokens"),
        ("Unrecognized request argument supplied: max_completion_tokens", "max_tokens"),
        ("loc: body, max_completion_tokens; Extra inputs are not permitted", "max_tokens"),
        ("'max_tokens' or 'max_completion_tokens' is too large: 8192", None),
        ("max_tokens=8192 is not supported: at most 4096", None),
        ("'top_k' is not supported with this model", None),
    ],
)
def test_the_output_limit_that_a_server_expects_is_known_if_it_refuses_the_other(message, name):
    body = json.dumps({"error": {"message": message}}).encode()
    error = http_status_error(400, body, lambda _: None, SecretMask(()), "a")
    assert (type(error), error.output_limit_name) == (RejectedError, name)


@pytest.mark.parametrize(
    "message",
    [
        "This model is only supported in v1/responses and not in v1/chat/completions.",
        "This is not a chat model and thus not supported in the v1/chat/completions endpoint.",
    ],
)
@pytest.mark.parametrize("status", [400, 404])
def test_a_model_of_another_endpoint_is_called_so(message, status):
    body = json.dumps({"error": {"message": message}}).encode()
    error = http_status_error(status, body, lambda _: None, SecretMask(()), "a")
    assert type(error) is ModelError
    assert str(error).startswith("a: the server does not offer this model at chat/completions. Choose another. HTTP ")
