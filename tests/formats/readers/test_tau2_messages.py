"""Messages of tau2-bench."""

import json

import pytest

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.tau2 import read_messages
from judgekit.traces.message import AIMessage, Message, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import TraceWarning

CALL = {"id": "c", "name": "f", "arguments": {"a": 1}, "requestor": "assistant"}
REPLY = {
    "finish_reason": "tool_calls",
    "index": 0,
    "message": {"content": None, "role": "assistant", "tool_calls": [], "function_call": None},
    "model": None,
}
ASSISTANT = {
    "role": "assistant",
    "content": None,
    "tool_calls": [CALL],
    "reasoning": None,
    "turn_idx": 2,
    "timestamp": "2025-08-01T16:20:44.335657",
    "cost": 0.5,
    "usage": {"completion_tokens": 7, "prompt_tokens": 5},
    "raw_data": REPLY,
    "errors": ["e"],
}
TOOL = {"id": "c", "role": "tool", "content": "ok", "requestor": "user", "error": False, "turn_idx": 3}


def read(message: dict[str, object], *, solo: bool = False) -> tuple[Message, list[TraceWarning]]:
    """Return a message, and the warnings."""
    simulation = FieldTracker({"messages": [message]})  # type: ignore[dict-item]
    [read_message] = read_messages(simulation, solo=solo)
    return read_message, simulation.warnings


def test_usual_messages_keep_all_that_has_no_attribute():
    message, warnings = read(ASSISTANT)
    assert isinstance(message, AIMessage)
    assert warnings == []
    assert message.tool_calls == (ToolCall("f", {"a": 1}, id="c", extra={"requestor": "assistant"}),)
    assert (message.usage, message.finish_reason) == (Usage(input_tokens=5, output_tokens=7), "tool_calls")
    rest = {"index": 0, "message": REPLY["message"]}
    assert message.extra == {"turn_idx": 2, "cost": 0.5, "errors": ["e"], "raw_data": rest}
    assert AIMessage.model_validate_json(message.model_dump_json()) == message
    assert json.loads(message.model_dump_json())["content"] == ""


def test_an_agent_without_a_user_makes_all_calls():
    message, _ = read(TOOL, solo=True)
    assert message == ToolMessage("ok", tool_call_id="c", is_error=False, extra={"requestor": "user", "turn_idx": 3})


def test_an_item_that_is_no_message_is_refused_before_any_is_read():
    simulation = FieldTracker({"messages": [{"role": "nobody"}, 7]})
    with pytest.raises(TraceError, match=r"messages\[1\]: expected an object, found 7"):
        read_messages(simulation, solo=False)
