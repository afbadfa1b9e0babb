"""Empty placeholders that servers write in place of calls."""

import re

import pytest

from judgekit.errors import TraceError
from judgekit.formats.readers import READERS
from judgekit.traces.message import ToolCall

BLANK = {"name": "", "arguments": ""}
OK = {"type": "text", "text": "ok"}


def chat(**fields: object) -> list[dict]:
    return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "ok", **fields}]


def chunks(**delta: object) -> list[dict]:
    whole = {"id": "a", "object": "chat.completion.chunk"}
    return [
        {**whole, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "ok", **delta}}]},
        {**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]},
        {**whole, "choices": [{"index": 0, "delta": {"content": "", **delta}}], "usage": {"prompt_tokens": 1}},
    ]


def said(content: list[dict]) -> list[dict]:
    return [{"role": "assistant", "content": content}]


def langchain(**fields: object) -> list[dict]:
    return [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "ok", **fields}]


PLACEHOLDERS = {
    "Snowflake Cortex": ("openai-chat", chat(function_call=BLANK)),
    "nothing at all": ("openai-chat", chat(tool_calls=[None, {}], function_call={})),
    "an empty tool call": ("openai-chat", chat(tool_calls=[{"id": "", "type": "function", "function": BLANK}])),
    "a flat tool call": ("openai-chat", chat(tool_calls=[{"index": 0, "id": None, **BLANK}])),
    "a part": ("openai-chat", chat(content=[OK, {"type": "tool_use", "id": "", "name": "", "input": {}}])),
    "streamed": ("openai-chat-chunks", chunks(function_call=BLANK)),
    "streamed tool calls": ("openai-chat-chunks", chunks(tool_calls=[{"index": 0, "id": "", "function": BLANK}])),
    "Anthropic": ("anthropic", said([OK, {"type": "tool_use", "id": "", "name": "", "input": {}}])),
    "Gemini": (
        "gemini",
        [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "ok", "functionCall": {}}]}],
    ),
    "Gemini, a part of its own": (
        "gemini",
        [{"role": "model", "parts": [{"text": "ok"}, {"functionCall": {"name": "", "args": {}}}]}],
    ),
    "Bedrock": ("bedrock", said([{"text": "ok", "toolUse": {"toolUseId": "", "name": "", "input": {}}}])),
    "Responses": ("openai-responses", [*chat(), {"type": "function_call", "call_id": "", "name": "", "arguments": ""}]),
    "LangChain": ("langchain", langchain(tool_calls=[{"name": "", "args": {}, "id": None, "type": "tool_call"}])),
    "LangChain, broken": ("langchain", langchain(invalid_tool_calls=[{"name": "", "args": "", "id": "", "error": ""}])),
    "LangChain, beside": ("langchain", langchain(additional_kwargs={"function_call": BLANK, "tool_calls": [{}]})),
    "LangChain, a block": (
        "langchain",
        langchain(content=[OK, {"type": "tool_use", "id": "", "name": "", "input": {}}]),
    ),
}


def test_an_empty_placeholder_is_no_call():
    for name, document in PLACEHOLDERS.values():
        reader = READERS[name]
        [record] = reader.records(document)
        trace = reader.sample(record, 0).trace
        assert trace.tool_calls() == ()
        assert trace.response == "ok"


@pytest.mark.parametrize(
    "fields",
    [
        {"function_call": {"name": "", "arguments": '{"a": 1}'}},
        {"tool_calls": [{"id": "", "function": {"name": "", "arguments": '{"a": 1}'}}]},
    ],
)
def test_arguments_without_a_name_are_a_call(fields):
    [made] = READERS["openai-chat"].sample(chat(**fields), 0).trace.tool_calls()
    assert (made.call.name, made.call.args) == ("", {"a": 1})


@pytest.mark.parametrize("call", [{"id": "1"}, {"function": {"arguments": "{}"}}, {"id": "1", "function": {}}])
def test_a_call_of_which_only_the_name_is_missing_is_refused(call):
    with pytest.raises(TraceError, match="expected a tool name, found nothing"):
        READERS["openai-chat"].sample(chat(tool_calls=[call]), 0)


def test_real_calls_beside_placeholders_are_read():
    calls = [{"id": "", "function": BLANK}, {"id": "1", "function": {"name": "f", "arguments": "{}"}}]
    trace = READERS["openai-chat"].sample(chat(tool_calls=calls), 0).trace
    assert [made.call for made in trace.tool_calls()] == [ToolCall("f", id="1")]
    with pytest.raises(TraceError, match=re.escape("messages[1].tool_calls[1]: expected an object, found 7")):
        READERS["openai-chat"].sample(chat(tool_calls=[None, 7]), 0)
