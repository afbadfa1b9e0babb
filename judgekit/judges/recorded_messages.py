"""Recordings as messages and calls of the Decisions API, without the fence that tells them from instructions."""

from typing import TYPE_CHECKING

from judgekit.errors import RejectedError
from judgekit.traces.message import Message, SystemMessage, ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.rendering import compact_json, escape_surrogates
from judgekit.traces.trace import Trace

if TYPE_CHECKING:
    from openai.types.decision_create_params import InputUnionMember1


def recorded_messages(trace: Trace) -> "list[InputUnionMember1]":
    """Return a recording as messages and calls. Each call has an id of its own, which its result names.

    Raises:
        RejectedError: The API has no form for a part of it: a sub-agent, or a result without a call.
    """
    if trace.children:
        raise RejectedError("recording = 'messages' cannot show sub-agents: use recording = 'text'")
    pairing = pair_results(trace.messages)
    recorded: list[InputUnionMember1] = []
    for index, message in enumerate(trace.messages):
        text = escape_surrogates(message.text)
        if isinstance(message, ToolMessage):
            if (call := pairing.calls.get(index)) is None:
                raise RejectedError(
                    f"message {index + 1} is the result of no call, which recording = 'messages' cannot show: use 'text'"
                )
            shown = f"error: {text}" if message.is_error else text
            called = _call_id(call.message, call.position)
            recorded.append({"type": "function_call_output", "call_id": called, "output": shown})
            continue
        if text:
            recorded.append(_message(message, text))
        if isinstance(message, SystemMessage):
            continue
        for position, call_made in enumerate(message.tool_calls):
            arguments = compact_json(call_made.args) if call_made.args_raw is None else call_made.args_raw
            recorded.append(
                {
                    "type": "function_call",
                    "call_id": _call_id(index, position),
                    "name": escape_surrogates(call_made.name),
                    "arguments": escape_surrogates(arguments),
                }
            )
    return recorded


def _call_id(message: int, position: int) -> str:
    return f"call_{message + 1}_{position + 1}"


def _message(message: Message, text: str) -> "InputUnionMember1":
    if message.role == "system":
        return {"role": "system", "content": text}
    if message.role == "developer":
        return {"role": "developer", "content": text}
    return {"role": "assistant", "content": text} if message.role == "assistant" else {"role": "user", "content": text}
