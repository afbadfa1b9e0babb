"""Messages of tau2-bench. Usual ones are read without a tracker, and must come out the same."""

import json

import pytest
from pydantic import ValidationError

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.tau2_messages import read_messages
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
USER = ASSISTANT | {"role": "user", "content": "Hi", "tool_calls": [{**CALL, "requestor": "user"}]}
TOOL = {"id": "c", "role": "tool", "content": "ok", "requestor": "user", "error": False, "turn_idx": 3}
OTHER_VALUES = [None, True, 0, -1, 1.5, 10**400, float("nan"), "", "x", "\ud800", [], [None], [7], ["x"], {}, {"a": {}}]
OTHER_VALUES += ["2025-08-01", "2025-08-01T16:20:44Z", "2025-W31-5T16:20:44.335657", "1754065244", 1754065244, "user"]
OTHER_VALUES += [[CALL, CALL], [{**CALL, "x": 1}], {"prompt_tokens": 5}, {"prompt_tokens": True}, {"model": "m"}]
OTHER_VALUES += [{"completion_tokens": 10**400, "prompt_tokens": 0}, {"completion_tokens": 1.0, "prompt_tokens": 0}]


def read(message: object, *, solo: bool = False) -> tuple[Message | str, list[TraceWarning]]:
    """Return a message, or its error, and the warnings."""
    simulation = FieldTracker({"messages": [message]})  # type: ignore[list-item, dict-item]
    try:
        [made] = read_messages(simulation, solo=solo)
    except (TraceError, ValidationError) as error:
        return str(error), simulation.warnings
    return made, simulation.warnings


def read_by_tracker(message: dict[str, object]) -> tuple[Message | str, list[TraceWarning]]:
    """Return the same for a message with a field that tau2-bench does not have."""
    made, warnings = read({**message, "unknown": 1})
    if not isinstance(made, str):
        del made.extra["unknown"]
    return made, warnings


def as_text(result: tuple[Message | str, list[TraceWarning]]) -> str:
    """Return all of a result: not a number is not equal to itself, and the order of fields counts."""
    return repr(result).replace("'unknown': 1, ", "").replace(", 'unknown': 1", "").replace("'unknown': 1", "")


@pytest.mark.parametrize("message", [ASSISTANT, USER, TOOL], ids=["assistant", "user", "tool"])
def test_whatever_a_field_holds_the_message_is_what_the_tracker_makes_of_it(message):
    assert as_text(read(message)) == as_text(read_by_tracker(message))
    for name in (*message, "requestor", "name", "metadata", "reasoning", "tool_call_id", "is_error", "refusal"):
        for value in OTHER_VALUES:
            other = {**message, name: value}
            assert as_text(read(other)) == as_text(read_by_tracker(other)), (name, value)
        left = {key: value for key, value in message.items() if key != name}
        assert as_text(read(left)) == as_text(read_by_tracker(left)), name


@pytest.mark.parametrize("field", ["id", "name", "arguments", "requestor"])
def test_whatever_a_call_holds_it_is_what_the_tracker_makes_of_it(field):
    for value in OTHER_VALUES:
        message = {**ASSISTANT, "tool_calls": [{**CALL, field: value}]}
        assert as_text(read(message)) == as_text(read_by_tracker(message)), value
    nameless = {**ASSISTANT, "tool_calls": [{"id": "", "name": "", "arguments": {}, "requestor": ""}]}
    assert as_text(read(nameless)) == as_text(read_by_tracker(nameless))
    message = {**ASSISTANT, "tool_calls": [{name: CALL[name] for name in CALL if name != field}]}
    assert as_text(read(message)) == as_text(read_by_tracker(message))


@pytest.mark.parametrize("field", ["finish_reason", "model", "index", "message"])
def test_whatever_a_reply_holds_it_is_what_the_tracker_makes_of_it(field):
    for value in OTHER_VALUES:
        message = {**ASSISTANT, "raw_data": {**REPLY, field: value}}
        assert as_text(read(message)) == as_text(read_by_tracker(message)), value


def test_usual_messages_keep_all_that_has_no_attribute():
    made, warnings = read(ASSISTANT)
    assert isinstance(made, AIMessage)
    assert warnings == []
    assert made.tool_calls == (ToolCall("f", {"a": 1}, id="c", extra={"requestor": "assistant"}),)
    assert (made.usage, made.finish_reason) == (Usage(input_tokens=5, output_tokens=7), "tool_calls")
    rest = {"index": 0, "message": REPLY["message"]}
    assert made.extra == {"turn_idx": 2, "cost": 0.5, "errors": ["e"], "raw_data": rest}
    assert AIMessage.model_validate_json(made.model_dump_json()) == made
    assert json.loads(made.model_dump_json())["content"] == ""


def test_an_agent_without_a_user_makes_all_calls():
    made, _ = read(TOOL, solo=True)
    assert made == ToolMessage("ok", tool_call_id="c", is_error=False, extra={"requestor": "user", "turn_idx": 3})


def test_an_item_that_is_no_message_is_refused_before_any_is_read():
    simulation = FieldTracker({"messages": [{"role": "nobody"}, 7]})
    with pytest.raises(TraceError, match=r"messages\[1\]: expected an object, found 7"):
        read_messages(simulation, solo=False)
