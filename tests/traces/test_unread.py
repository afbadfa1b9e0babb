"""No sample silently lacks messages or calls that stand in its record."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.traces.message import AIMessage, HumanMessage, Message
from judgekit.traces.reading import read
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace
from judgekit.traces.unread import foreign_columns, unread_messages

NUMBERS = count(1)


def said() -> str:
    """A text that stands nowhere else."""
    return f"said-{next(NUMBERS)}."


def called() -> str:
    return f"call_{next(NUMBERS)}_"


def openai() -> JsonValue:
    function = {"name": called(), "arguments": '{"id": 7}'}
    call = {"id": f"c{next(NUMBERS)}", "type": "function", "function": function}
    return [
        {"role": "user", "content": said()},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": said()},
        {"role": "assistant", "content": said()},
    ]


def anthropic() -> JsonValue:
    identity = f"c{next(NUMBERS)}"
    return [
        {"role": "user", "content": [{"type": "text", "text": said()}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": identity, "name": called(), "input": {"id": 7}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": identity, "content": said()}]},
        {"role": "assistant", "content": [{"type": "text", "text": said()}]},
    ]


def gemini() -> JsonValue:
    return [
        {"role": "user", "parts": [{"text": said()}]},
        {"role": "model", "parts": [{"functionCall": {"name": called(), "args": {"id": 7}}}]},
        {"role": "model", "parts": [{"text": said()}]},
    ]


def bedrock() -> JsonValue:
    use = {"toolUseId": f"c{next(NUMBERS)}", "name": called(), "input": {"id": 7}}
    return [{"role": "user", "content": [{"text": said()}]}, {"role": "assistant", "content": [{"toolUse": use}]}]


def langchain() -> JsonValue:
    call = {"id": f"c{next(NUMBERS)}", "name": called(), "args": {"id": 7}, "type": "tool_call"}
    return [{"type": "human", "content": said()}, {"type": "ai", "content": said(), "tool_calls": [call]}]


def items() -> JsonValue:
    call = {"type": "function_call", "call_id": f"c{next(NUMBERS)}", "name": called(), "arguments": "{}"}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said()}]}
    return [{"role": "user", "content": said()}, call, answer]


def sharegpt() -> JsonValue:
    return [{"from": "human", "value": said()}, {"from": "gpt", "value": said()}]


def answer() -> JsonValue:
    return {"role": "assistant", "content": said()}


def choices() -> JsonValue:
    return [{"index": 0, "message": answer(), "finish_reason": "stop"}]


SPOKEN = [openai, anthropic, gemini, bedrock, langchain, items, sharegpt, answer, choices]
WRAPPED = [
    lambda: {"messages": openai()},
    lambda: {"messages": anthropic(), "system": [{"type": "text", "text": said()}]},
    lambda: {"choices": choices(), "model": "m"},
    lambda: {"contents": gemini()},
    lambda: {"candidates": [{"content": {"role": "model", "parts": [{"text": said()}]}}]},
    lambda: {"object": "response", "id": "r", "output": items()[1:]},
    lambda: {"output": {"message": {"role": "assistant", "content": [{"text": said()}]}}, "stopReason": "end_turn"},
    lambda: {"type": "message", "role": "assistant", "content": [{"type": "text", "text": said()}]},
    lambda: {"inputs": {"messages": langchain()}, "outputs": {"output": langchain()[1]}},
]
PLAIN = [lambda: "text", lambda: 5, lambda: None, lambda: [], lambda: {}, lambda: {"name": "n"}, lambda: ["a"]]
KEYS = (
    *("messages", "input", "output", "response", "request", "choices", "contents", "candidates", "conversations"),
    *("conversation", "history", "inputs", "outputs", "prompt", "completion", "chosen", "rejected", "turns", "traj"),
    *("steps", "events", "observations", "user_input", "actual_output", "output_message", "expected_output", "log"),
    *("reference", "references", "label", "ranking", "prediction", "results", "fields", "metadata", "extra", "item"),
    *("sample", "data", "trace", "id", "model", "system", "tools", "scores", "tools_called", "tool_calls", "contents"),
    *("trace_id", "parent_run_id", "task_id", "max_tokens", "reward", "task", "info", "state", "values", "generations"),
)


def records() -> st.SearchStrategy[JsonValue]:
    value = st.sampled_from([*SPOKEN, *WRAPPED, *PLAIN]).map(lambda make: make())
    return st.dictionaries(st.sampled_from(KEYS), value, min_size=1, max_size=6)


def tokens(value: JsonValue, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text and name of a call that stands in a record, with the outermost key below which it stands."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from tokens(inner, key or name)
    elif isinstance(value, list):
        for inner in value:
            yield from tokens(inner, key)
    elif isinstance(value, str) and value.startswith(("said-", "call_")):
        yield key, value


def conversation(trace: Trace) -> Iterator[Message]:
    yield from trace.messages
    for child in trace.children:
        yield from conversation(child)


def heard(sample: Sample) -> str:
    """All texts and names of calls of a sample."""
    found = []
    for trace in (sample.trace, *([sample.rival] if sample.rival else [])):
        for message in conversation(trace):
            content = message.content if isinstance(message.content, list | tuple) else [message.content]
            found += [part if isinstance(part, str) else part.model_dump_json() for part in content]
            if isinstance(message, AIMessage | HumanMessage):
                found += [call.name for call in message.tool_calls]
    known = [sample.reference, *(sample.references or ()), sample.label, sample.prediction]
    return "\n".join([*found, *filter(None, known)])


def silently_lost(record: JsonValue, path: Path) -> list[tuple[str, str]]:
    """What stands in a record, and neither in its samples nor below a key that a warning names."""
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    told: list[TraceError] = []
    try:
        samples = list(read(path, on_error=told.append))
    except TraceError:
        return []
    if told or not samples:
        return []
    whole = "\n".join(map(heard, samples))
    warned = " ".join(f"{one.where} {one.found}" for sample in samples for one in sample.trace.warnings)
    return [(key, token) for key, token in tokens(record) if token not in whole and key not in warned]


@given(record=records())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_record_of_any_keys_loses_no_message_and_no_call_without_a_warning(tmp_path, record):
    assert silently_lost(record, tmp_path / "a.jsonl") == []
