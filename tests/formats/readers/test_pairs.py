"""Pairs of a request and its response: their API, and warnings about missing answers."""

import itertools
from collections.abc import Iterator

import pytest
from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers import FALLBACKS, READERS

HI = {"role": "user", "content": "Hi"}
BLOCK = {"role": "user", "content": [{"text": "Hi"}]}
CONTENT = {"role": "user", "parts": [{"text": "Hi"}]}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Yes"}}]}
THINKING = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Yes"}]
CLAUDE = {
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "text", "text": "Yes"}],
    "stop_reason": "end_turn",
}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes"}]}
RESPONSE = {"id": "r", "object": "response", "status": "completed", "output": [SAID]}
EVENTS = [
    {"type": "message_start", "message": {**CLAUDE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
]
CONVERSE = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"delta": {"text": "Yes"}, "contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "end_turn"}},
]
CANDIDATES = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Yes"}]}, "finishReason": "STOP"}]}

REQUESTS: dict[str, list[dict]] = {
    "openai-chat": [
        {"model": "m", "messages": [HI]},
        {"model": "m", "messages": [HI, CALLED, {"role": "tool", "tool_call_id": "1", "content": "2"}]},
        {"model": "claude-x", "max_tokens": 9, "messages": [HI], "tools": [{"type": "function", "function": {}}]},
        {"model": "magistral", "messages": [HI, {"role": "assistant", "content": THINKING}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]},
    ],
    "openai-responses": [
        {"model": "m", "input": "Hi"},
        {"model": "m", "input": [HI, {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}]},
        {"model": "m", "instructions": "Be brief", "input": [HI], "tools": []},
    ],
    "anthropic": [
        {"model": "claude-x", "max_tokens": 9, "messages": [HI]},
        {"anthropic_version": "bedrock-2023-05-31", "messages": [HI]},
        {"messages": [HI, {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]}]},
        {"messages": [HI, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}]},
        {"system": [{"type": "text", "text": "Be brief"}], "messages": [HI]},
    ],
    "gemini": [
        {"contents": [CONTENT]},
        {"model": "gemini-3-flash", "contents": "Hi"},
        {"contents": [{"parts": [{"functionCall": {"name": "f"}}]}], "generationConfig": {}},
    ],
    "bedrock": [
        {"modelId": "m", "messages": [BLOCK], "system": [{"text": "Be brief"}]},
        {"messages": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}]}]},
    ],
}
RESPONSES: dict[str, list[dict]] = {
    "openai-chat": [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes"}}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": THINKING}}]},
        {"choices": [{"index": 0, "message": CALLED}], "usage": {"prompt_tokens": 1}},
    ],
    "openai-responses": [RESPONSE],
    "anthropic": [CLAUDE, {**CLAUDE, "content": [], "stop_reason": "refusal"}],
    "gemini": [
        CANDIDATES,
        {"candidates": [{"finishReason": "SAFETY"}]},
        {"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 1}},
        {"usageMetadata": {"promptTokenCount": 1}, "modelVersion": "gemini-3"},
    ],
    "bedrock": [
        {"output": {"message": {"role": "assistant", "content": [{"text": "Yes"}]}}, "stopReason": "end_turn"},
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "No"}]}},
            "stopReason": "guardrail_intervened",
            "trace": {"guardrail": {"inputAssessment": {}}},
        },
    ],
}
STREAMS: dict[str, list[dict]] = {
    "openai-chat": [CHUNK, CHUNK],
    "openai-responses": [
        {"type": "response.created", "response": {}},
        {"type": "response.completed", "response": RESPONSE},
    ],
    "anthropic": EVENTS,
    "gemini": [CANDIDATES, CANDIDATES],
    "bedrock": CONVERSE,
}
STREAM_READERS = {
    "openai-chat": "openai-chat-chunks",
    "openai-responses": "openai-responses-stream",
    "anthropic": "anthropic-stream",
    "gemini": "gemini",
}
ERRORS: dict[str, JsonValue] = {
    "text": "502 Bad Gateway",
    "html": "<html>Service Unavailable</html>",
    "of OpenAI": {"error": {"message": "x", "type": "invalid_request_error", "param": None, "code": None}},
    "of Anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "x"}, "request_id": "r"},
    "of Gemini": {"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}},
    "of Gemini's stream": [{"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}],
    "of Anthropic's stream": [{"type": "error", "error": {"type": "overloaded_error"}}],
    "of AWS over HTTP": {"message": "Too many requests"},
    "of AWS's gateway": {"Message": "User is not authorized"},
    "of AWS with its type": {"__type": "ThrottlingException", "message": "x"},
    "of boto3": {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 429}},
    "of FastAPI": {"detail": [{"loc": ["body"], "msg": "x"}]},
    "of FastAPI, a text": {"detail": "Not Found"},
    "of vLLM": {"object": "error", "message": "x", "type": "BadRequestError", "code": 400},
    "error as text": {"error": "model not found"},
    "error with a code": {"error": "x", "status_code": 500},
    "null": None,
    "an empty object": {},
    "an empty list": [],
    "an empty text": "",
    "a number": 503,
}


def recognizing(value: JsonValue) -> list[str]:
    return [name for name, reader in READERS.items() if name not in FALLBACKS and reader.recognizes(value)]


def records(api: str) -> Iterator[tuple[str, JsonValue, str]]:
    """Yield records of an API, with their descriptions and the readers that recognize them."""
    for number, request in enumerate(REQUESTS[api]):
        yield f"request {number}", request, api
        messages = request.get("messages") or request.get("contents") or request["input"]
        if isinstance(messages, list):
            yield f"messages {number}", messages, "openai-chat" if messages == [HI] else api
        responses = {**ERRORS, "streamed": STREAMS[api], **dict(enumerate(RESPONSES[api]))}
        for kind, response in responses.items():
            yield f"request {number} and response {kind}", {"request": request, "response": response}, api
    for number, response in enumerate(RESPONSES[api]):
        yield f"response {number}", response, api
    yield "error alone", {"error": {"message": "x"}}, ""
    if api in STREAM_READERS:
        yield "stream", STREAMS[api], STREAM_READERS[api]


@pytest.mark.parametrize("api", REQUESTS)
def test_a_record_is_recognized_by_the_reader_of_its_api_alone(api):
    for description, record, reader in records(api):
        assert recognizing(record) == ([reader] if reader not in ("openai-chat", "") else []), description
        assert READERS["openai-chat"].recognizes(record) or reader != "openai-chat", description


def test_the_wrapped_messages_of_a_strands_session_are_no_messages_of_converse():
    assert recognizing([{"message": BLOCK, "message_id": 0, "created_at": "2026-01-02T03:04:05Z"}]) == []


def test_streamed_events_of_converse_are_told():
    trace = READERS["bedrock"].sample({"request": REQUESTS["bedrock"][0], "response": CONVERSE}, 0).trace
    assert [(one.message, one.path) for one in trace.warnings] == [
        ("contains an answer in another format; kept as is", "response")
    ]
    assert trace.extra["response"] == CONVERSE


def test_reasoning_of_mistral_is_read():
    request = REQUESTS["openai-chat"][3]
    pair = {"request": {**request, "messages": [*request["messages"], HI]}, "response": RESPONSES["openai-chat"][1]}
    trace = READERS["openai-chat"].sample(pair, 0).trace
    assert [(one.text, one.content[0].text) for one in trace.messages[1::2]] == [("Yes", "hm"), ("Yes", "hm")]
    assert trace.warnings == ()


def test_a_guardrail_is_kept_and_why_the_response_ended():
    trace = READERS["bedrock"].sample(RESPONSES["bedrock"][1], 0).trace
    assert (trace.response, trace.messages[0].finish_reason) == ("No", "guardrail_intervened")
    assert trace.extra == {"trace": {"guardrail": {"inputAssessment": {}}}}


@pytest.mark.parametrize("api", REQUESTS)
def test_a_pair_of_two_apis_is_not_read_as_if_it_were_of_one(api):
    """At most the reader of the response recognizes it, and it warns about what it does not read, or refuses it."""
    others = RESPONSES.keys() - {api}
    for request, other in itertools.product(REQUESTS[api], others):
        pair = {"request": request, "response": RESPONSES[other][0]}
        assert set(recognizing(pair)) <= {other}
        try:
            reader = detect(pair)
            [record] = reader.records(pair)
            trace = reader.sample(record, 0).trace
        except TraceError:
            continue
        texts = [message.text for message in trace.messages]
        assert trace.warnings or (texts[-1] == "Yes" and "Hi" in texts)


@pytest.mark.parametrize("api", REQUESTS)
def test_an_error_in_place_of_the_answer_is_told_and_the_request_is_read(api):
    reader = READERS[api]
    for request, error in itertools.product(REQUESTS[api], ERRORS.values()):
        [alone] = reader.records(request)
        [record] = reader.records({"request": request, "response": error})
        request_trace, trace = reader.sample(alone, 0).trace, reader.sample(record, 0).trace
        assert trace.messages == request_trace.messages
        [warning] = [warning for warning in trace.warnings if warning not in request_trace.warnings]
        assert warning.path == "response"
        assert warning.message.startswith("contains no answer")
        if error is not None:
            assert trace.extra["response"] == error


@pytest.mark.parametrize("api", REQUESTS)
def test_an_error_beside_the_request_is_told(api):
    reader = READERS[api]
    [record] = reader.records({"request": REQUESTS[api][0], "error": "timeout"})
    trace = reader.sample(record, 0).trace
    assert [(one.message, one.path) for one in trace.warnings] == [("contains no answer: 'timeout'", "error")]
    assert trace.extra["error"] == "timeout"
