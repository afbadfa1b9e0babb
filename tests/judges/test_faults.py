"""What becomes of a score when a provider misbehaves: every fault that is known of, against a real server.

A row says what the server does, which error each request of the judge ends with, and what comes out: a value, an error
that fails the score, or one that stops the run.
"""

import asyncio
import gzip
import json
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import openai  # noqa: F401 - takes half a second, which a deadline may not have
import pytest

from judgekit import errors
from judgekit.judges.judge import Judge
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scoring import attempt

pytestmark = pytest.mark.usefixtures("no_waits")

GOAL = {
    "goal": "To know the weather.",
    "end_state": "Knows it.",
    "reason": "The tool says dry.",
    "evidence": [3, 4],
    "verdict": "achieved",
}
ACHIEVED = {"goals": [GOAL]}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 50}
TEXT = json.dumps(ACHIEVED)


def achieved(**changes: object) -> dict[str, Any]:
    """A good answer, or one that is changed."""
    return {"goals": [GOAL | changes]}


def says(content: object, *, finish_reason: str = "stop", **changes: object) -> tuple:
    """A completion; text as it is, anything else as JSON."""
    text = content if content is None or isinstance(content, str) else json.dumps(content)
    message = {"role": "assistant", "content": text} | changes.pop("message", {})
    body = {"choices": [{"message": message, "finish_reason": finish_reason}], "usage": USAGE} | changes
    return 200, {}, body


def refuses(status: int, message: str = "Nope.", code: object = None, **headers: str) -> tuple:
    return status, headers, {"error": {"message": message, "type": "some_error", "code": code}}


@dataclass
class Fault:
    """What the server does before it behaves, what each request ends with, and what comes out."""

    what: str
    script: list[Any]
    calls: list[str | None]
    end: str | float = 1.0
    stops: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


GOOD = says(ACHIEVED)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
WHOLE = json.dumps(GOOD[2]).encode()


def passes(what: str, line: tuple, error: str = "LostError", **settings: Any) -> Fault:
    """It is asked again, and then answers."""
    return Fault(what, [line, GOOD], [error, None], settings=settings)


def lasts(what: str, line: tuple, error: str, **settings: Any) -> Fault:
    """It is asked as often as is allowed, and the score fails."""
    return Fault(what, [line], [error] * settings.setdefault("attempts", 3), error, settings=settings)


def fails(what: str, line: tuple, error: str) -> Fault:
    """It is asked once, and the score fails: asking again cannot help."""
    return Fault(what, [line, GOOD], [error], error)


def stops(what: str, line: tuple, error: str) -> Fault:
    """It is asked once, and the run stops: the next question would meet the same."""
    return Fault(what, [line, GOOD], [error], error, stops=True)


def is_read(what: str, line: tuple) -> Fault:
    """It is no fault at all."""
    return Fault(what, [line], [None])


def is_mended(what: str, content: object) -> Fault:
    """The judge is shown its reply, and answers again."""
    return Fault(what, [says(content), GOOD], ["ReplyError", None])


FORM = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
LIMITED = {"params": {"max_tokens": 64}}
HTTP = [
    passes("429", refuses(429), "RateLimitError"),
    passes(
        "429 of a flex tier without capacity",
        (429, {}, {"error": {"code": "resource_unavailable"}}),
        "FlexUnavailableError",
        tier="flex",
        attempts=1,
    ),
    passes("429 with seconds", refuses(429, **{"retry-after": "0.02"}), "RateLimitError"),
    Fault("429 for ever", [refuses(429)], ["RateLimitError"] * 10, "RateLimitError"),
    stops("429 until tomorrow", refuses(429, **{"retry-after": "86400"}), "QuotaError"),
    stops("429 insufficient_quota", refuses(429, code="insufficient_quota"), "QuotaError"),
    stops("402", refuses(402), "QuotaError"),
    fails(
        "429 for a request that is too large",
        refuses(429, "Request too large for gpt on tokens per min"),
        "ContextError",
    ),
    *(passes(f"{status}", refuses(status), "OverloadError") for status in (408, 409, 425, 500, 502, 503, 520)),
    *(passes(f"{status}", refuses(status), "LostError") for status in (504, 524)),
    fails("503 until tomorrow", refuses(503, **{"retry-after": "86400"}), "OverloadError"),
    lasts("500 for ever", refuses(500), "OverloadError"),
    stops("401", refuses(401, code="invalid_api_key"), "AuthenticationError"),
    stops("403", refuses(403), "AuthenticationError"),
    fails("403 flagged", refuses(403, "Your input was flagged by moderation."), "FilterError"),
    stops("404 of the model", refuses(404, code="model_not_found"), "ModelError"),
    stops("a redirection to itself", (308, {"location": "/v1/chat/completions"}, b""), "ModelError"),
    fails("400", refuses(400), "RejectedError"),
    fails("400 context", refuses(400, code="context_length_exceeded"), "ContextError"),
    Fault("400 schema", [refuses(400, FORM), GOOD], ["FormatError", None]),
    Fault("400 schema, then JSON mode", [refuses(400, FORM), refuses(400, FORM), GOOD], ["FormatError"] * 2 + [None]),
    Fault("400 form, whichever", [refuses(400, FORM)], ["FormatError"] * 3, "FormatError"),
    Fault("500 schema", [refuses(500, "json_schema is not supported"), GOOD], ["FormatError", None]),
]

ENDINGS = [
    fails("content_filter", says("so f", finish_reason="content_filter"), "FilterError"),
    fails("refusal", says(None, message={"refusal": "I won't."}), "RefusalError"),
    fails("length", says('{"user_go', finish_reason="length"), "TruncatedError"),
    Fault("length with a limit", [says("{", finish_reason="length"), GOOD], ["TruncatedError", None], settings=LIMITED),
    Fault(
        "length with any limit",
        [says("{", finish_reason="length")],
        ["TruncatedError"] * 2,
        "TruncatedError",
        settings=LIMITED,
    ),
    passes("an error in the middle", says("so f", finish_reason="error")),
]

TRANSPORT = [
    passes("closed before headers", (b"", "close")),
    passes("reset mid-body", (HEAD + b'{"choices"', "reset")),
    lasts("reset for ever", (b"", "reset"), "LostError"),
    passes("reset within an error's body", (b"HTTP/1.1 500 Oops\r\ncontent-length: 1000\r\n\r\n{", "reset")),
    passes("a header without end", (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 200_000 + b"\r\n\r\n", "close")),
    passes("no gzip", (200, {"content-encoding": "gzip"}, b"{}")),
    passes("hangs before headers", (b"", "hang"), timeout=0.5),
    passes("drips", (HEAD, "drip"), timeout=0.5),
    lasts("hangs for ever", (b"", "hang"), "LostError", timeout=0.3, attempts=2),
    passes("truncated JSON", (200, {}, WHOLE[:-9])),
    passes("an empty body", (200, {}, b"")),
    passes("invalid UTF-8", (200, {}, WHOLE.replace(b"Knows", b"Kn\xf6ws"))),
    passes("10 MB of nothing", (200, {}, b" " * 10_000_000)),
    passes("an error as a success", (200, {}, {"error": {"message": "Nope."}})),
    passes("an error as a success, with a status", (200, {}, {"error": {"code": 502}}), "OverloadError"),
    stops("a refused key as a success", (200, {}, {"error": {"code": 401}}), "AuthenticationError"),
    passes("choices []", (200, {}, {"choices": []})),
    is_read("gzip", (200, {"content-encoding": "gzip"}, gzip.compress(WHOLE))),
    is_read(
        "chunks",
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(WHOLE), WHOLE), "close"),
    ),
]

CONTENT = [
    is_mended("content null", None),
    is_mended("content empty", ""),
    is_mended("prose", "Yes, I think so."),
    is_mended("half a JSON", TEXT[:-9]),
    is_mended("two different objects", f"{TEXT} or {TEXT.replace('achieved', 'not_achieved')}"),
    is_mended("no verdict", {"goals": [{name: GOAL[name] for name in GOAL if name != "verdict"}]}),
    is_mended("another verdict", achieved(verdict="partly")),
    is_mended("messages that are not there", achieved(evidence=[3, 99])),
    is_mended("NaN", achieved(evidence=[float("nan")])),
    is_mended("a lone surrogate", TEXT.replace("Knows", "\\ud800")),
    is_mended("10 MB", "x" * 10_000_000),
    Fault("half a JSON, twice", [says("{")], ["ReplyError"] * 2, "ReplyError"),
    Fault("empty, then out of order", [says(""), refuses(503), GOOD], ["ReplyError", "OverloadError", None]),
    Fault(
        "another verdict, then refused",
        [says("{"), says(None, message={"refusal": "No."})],
        ["ReplyError", "RefusalError"],
        "RefusalError",
    ),
    Fault("not achieved", [says(achieved(verdict="not_achieved"))], [None], 0.0),
]


@pytest.fixture
def scored(sample):
    """The score of the sample by a judge, and how many seconds it took."""

    def run(base_url, **settings):
        judge = Judge("openai/judge-1", base_url=base_url, cache_mode="off", **settings)
        started = time.perf_counter()
        score = asyncio.run(attempt(AgentGoalAccuracyWithoutReference(judge), sample))
        return score, time.perf_counter() - started

    return run


@pytest.mark.parametrize("fault", [*HTTP, *ENDINGS, *TRANSPORT, *CONTENT], ids=lambda fault: fault.what)
def test_a_fault_ends_in_the_right_value_or_one_typed_error_and_no_request_too_many(server, scored, fault):
    server.script = fault.script
    if fault.stops:
        with pytest.raises(getattr(errors, fault.end)) as info:
            scored(server.url, **fault.settings)
        assert type(info.value).__name__ == fault.end
        assert isinstance(info.value, errors.STOPS)
    else:
        score, seconds = scored(server.url, **fault.settings)
        assert [call.error for call in score.calls] == fault.calls
        assert (score.value, score.error) == ((fault.end, None) if isinstance(fault.end, float) else (None, fault.end))
        assert len(score.reason) < 1_000
        assert seconds < 10
    assert len(server.requests) == len(fault.calls)
    assert server.all_closed()


def test_the_matrix_knows_every_error_that_a_provider_can_lead_to():
    known = {error for fault in (*HTTP, *ENDINGS, *TRANSPORT, *CONTENT) for error in fault.calls if error}
    own = {
        "BudgetError",
        "JudgeRejectedError",
        "ReplayError",
        "OfflineError",
        "PlannedError",
    }  # of judgekit's own, not of a provider
    nobody = {"UnreachableError", "JudgeDownError"}  # of servers that are not there
    of_judges = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.JudgeError)
    }
    assert known == of_judges - own - nobody - {"JudgeError"}


# What a request costs that came to nothing.


# How it is asked again.


@pytest.mark.parametrize("headers", [{"retry-after": "0.2"}, {"retry-after-ms": "200", "retry-after": "0"}], ids=str)
def test_the_server_is_left_alone_for_as_long_as_it_says(server, scored, headers):
    server.script = [refuses(429, **headers), refuses(503, **headers), GOOD]
    score, _ = scored(server.url)
    assert score.value == 1.0
    times = [received.at for received in server.requests]
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(times))
