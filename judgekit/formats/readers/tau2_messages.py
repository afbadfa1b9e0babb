"""Messages of tau2-bench.

{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "name": "f", "arguments": {"a": 1},
    "requestor": "assistant"}], "turn_idx": 2, "timestamp": "2025-08-01T16:20:46.714768", "cost": 0.002,
    "usage": {"completion_tokens": 57, "prompt_tokens": 3346}, "raw_data": {"finish_reason": "tool_calls", ...}}
{"role": "tool", "id": "c", "content": "ok", "requestor": "assistant", "error": false, "turn_idx": 3}
"""

from functools import partial
from typing import get_args

from pydantic import JsonValue

from judgekit.formats.blocks.openai_chat import read_message, read_usage
from judgekit.formats.field_tracker import FieldTracker, parse_time
from judgekit.formats.values import is_encodable
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    Message,
    Requestor,
    ToolCall,
    ToolMessage,
    Usage,
    construct,
    is_valid_json,
)

_REQUESTORS = get_args(Requestor)
_UNREAD = ("turn_idx", "cost", "errors", "generation_time_seconds", "is_audio", "is_final_chunk", "contains_speech")
"""Fields that stay in a message's ``extra``."""
_SPOKEN = frozenset(("content", "tool_calls", "timestamp", "usage", "raw_data", *_UNREAD))
_RESULT = frozenset(("content", "id", "requestor", "error", "timestamp", *_UNREAD))
_CALL = frozenset(("id", "name", "arguments", "requestor"))
_REPLY = frozenset(("model", "finish_reason"))
_USAGE = frozenset(("prompt_tokens", "completion_tokens"))
_MANY = 1 << 53
"""A number that no count of tokens reaches."""


def read_messages(simulation: FieldTracker, *, solo: bool) -> list[Message]:
    """Read the messages of a simulation; ``solo`` means that the agent works without a user.

    Raises:
        TraceError: A message has an unknown role, content or requestor, or a tool call has no name.
    """
    found = simulation.objects_or("messages", partial(_plain_messages, solo=solo))
    # mypy infers the base class of messages.
    return [_message(one, solo=solo) if isinstance(one, FieldTracker) else one for one in found]  # type: ignore[misc]


def _message(found: FieldTracker, *, solo: bool) -> Message:
    about: dict[str, object] = {"timestamp": found.time("timestamp")}
    role = found.peek("role")
    if role == "tool":  # its id is the id of the call that it answers
        if "requestor" in found and found.peek("requestor") not in _REQUESTORS:
            raise found.type_error("requestor", "'assistant' or 'user'")
        requestor = "assistant" if solo else found.take("requestor") or "assistant"
        about |= {"tool_call_id": found.id("id"), "is_error": found.boolean("error"), "requestor": requestor}
    elif role == "assistant":
        reply = found.object("raw_data") or FieldTracker({})
        about |= {"usage": read_usage(found.object("usage")), "finish_reason": reply.text("finish_reason")}
        about["model"] = reply.text("model")
    return read_message(found, **about)


def _plain_messages(found: list[JsonValue], *, solo: bool) -> list[Message | None]:
    """Return the messages that have nothing unusual, as `_message` reads them, and ``None`` for the others."""
    return [None] * len(found) if solo or not is_encodable(found) else [*map(_plain_message, found)]


def _plain_message(found: JsonValue) -> Message | None:
    if not isinstance(found, dict):
        return None
    left: JsonObject = {name: value for name, value in found.items() if value is not None}
    role = left.pop("role", None)
    if not left.keys() <= (_RESULT if role == "tool" else _SPOKEN):
        return None
    content, timestamp = left.pop("content", ""), None
    if not isinstance(content, str):
        return None
    if "timestamp" in left and (timestamp := parse_time(left.pop("timestamp"))) is None:
        return None
    fields: dict[str, object] = {"content": content, "id": None, "timestamp": timestamp, "metadata": {}, "extra": left}
    fields["role"] = role
    if role == "tool":
        return _plain_result(fields, left)
    calls = _plain_calls(left.pop("tool_calls")) if "tool_calls" in left else []
    if calls is None:
        return None
    fields["tool_calls"] = tuple(calls)
    if role == "assistant":
        return _plain_reply(fields, left)
    fields["name"] = None
    return construct(HumanMessage, fields) if role == "user" else None


def _plain_result(fields: dict[str, object], left: JsonObject) -> ToolMessage | None:
    identity, failed, requestor = left.pop("id", None), left.pop("error", None), left.pop("requestor", "assistant")
    if not isinstance(identity, str) or not isinstance(failed, bool) or requestor not in _REQUESTORS:
        return None
    fields |= {"tool_call_id": identity, "name": None, "is_error": failed, "requestor": requestor}
    return construct(ToolMessage, fields)


def _plain_reply(fields: dict[str, object], left: JsonObject) -> AIMessage | None:
    usage, reply = None, left.pop("raw_data", {})
    if "usage" in left and (usage := _plain_usage(left.pop("usage"))) is None:
        return None
    if not isinstance(reply, dict):
        return None
    rest: JsonObject = {name: value for name, value in reply.items() if value is not None and name not in _REPLY}
    if rest:
        left["raw_data"] = rest
    model, finish_reason = reply.get("model"), reply.get("finish_reason")
    if not (model is None or isinstance(model, str)) or not (finish_reason is None or isinstance(finish_reason, str)):
        return None
    fields |= {"agent": None, "model": model, "finish_reason": finish_reason, "usage": usage}
    return construct(AIMessage, fields)


def _plain_usage(found: JsonValue) -> Usage | None:
    if not isinstance(found, dict) or found.keys() != _USAGE:
        return None
    read, written = found["prompt_tokens"], found["completion_tokens"]
    if type(read) is not int or type(written) is not int or not (0 <= read < _MANY and 0 <= written < _MANY):
        return None
    fields: dict[str, object] = {"input_tokens": read, "output_tokens": written, "cached_tokens": None}
    return construct(Usage, {**fields, "reasoning_tokens": None, "extra": {}})


def _plain_calls(found: JsonValue) -> list[ToolCall] | None:
    calls: list[ToolCall] = []
    for call in found if isinstance(found, list) else (None,):
        if not isinstance(call, dict) or call.keys() != _CALL:
            return None
        name, args, identity, requestor = call["name"], call["arguments"], call["id"], call["requestor"]
        if not (name and isinstance(name, str) and isinstance(identity, str) and isinstance(requestor, str)):
            return None
        if not isinstance(args, dict) or not is_valid_json(args):
            return None
        fields: dict[str, object] = {"name": name, "args": args, "id": identity, "args_raw": None, "args_error": None}
        calls.append(construct(ToolCall, {**fields, "metadata": {}, "extra": {"requestor": requestor}}))
    return calls
