"""Messages of tau2-bench.

{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "name": "f", "arguments": {"a": 1},
    "requestor": "assistant"}], "turn_idx": 2, "timestamp": "2025-08-01T16:20:46.714768", "cost": 0.002,
    "usage": {"completion_tokens": 57, "prompt_tokens": 3346}, "raw_data": {"finish_reason": "tool_calls", ...}}
{"role": "tool", "id": "c", "content": "ok", "requestor": "assistant", "error": false, "turn_idx": 3}
"""

from typing import get_args

from judgekit.formats.blocks.openai_chat import read_message, read_usage
from judgekit.formats.field_tracker import FieldTracker
from judgekit.traces.message import Message, Requestor

_REQUESTORS = get_args(Requestor)


def read_messages(simulation: FieldTracker, *, solo: bool) -> list[Message]:
    """Read the messages of a simulation; ``solo`` means that the agent works without a user.

    Raises:
        TraceError: A message has an unknown role, content or requestor, or a tool call has no name.
    """
    return [_message(message, solo=solo) for message in simulation.objects("messages")]


def _message(message: FieldTracker, *, solo: bool) -> Message:
    about: dict[str, object] = {"timestamp": message.time("timestamp")}
    role = message.peek("role")
    if role == "tool":  # its id is the id of the call that it answers
        if "requestor" in message and message.peek("requestor") not in _REQUESTORS:
            raise message.type_error("requestor", "'assistant' or 'user'")
        requestor = "assistant" if solo else message.take("requestor") or "assistant"
        about |= {"tool_call_id": message.id("id"), "is_error": message.boolean("error"), "requestor": requestor}
    elif role == "assistant":
        reply = message.object("raw_data") or FieldTracker({})
        about |= {"usage": read_usage(message.object("usage")), "finish_reason": reply.text("finish_reason")}
        about["model"] = reply.text("model")
    return read_message(message, **about)
