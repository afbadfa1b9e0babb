"""Recordings as messages and calls of the Decisions API, without the fence that tells them from instructions."""

from typing import TYPE_CHECKING, cast

from judgekit.errors import RejectedError
from judgekit.traces.message import SystemMessage, ToolMessage
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
    callers = pair_results(trace.messages).calls
    recorded: list[InputUnionMember1] = []
    for index, message in enumerate(trace.messages):
        text = escape_surrogates(message.text)
        if isinstance(message, ToolMessage):
            if (caller := callers.get(index)) is None:
                raise RejectedError(
                    f"message {index + 1} is the result of no call, which recording = 'messages' cannot show: use 'text'"
                )
            output = f"error: {text}" if message.is_error else text
            call_id = _call_id(caller.message, caller.position)
            recorded.append({"type": "function_call_output", "call_id": call_id, "output": output})
            continue
        if text:
            recorded.append(cast("InputUnionMember1", {"role": message.role, "content": text}))
        for position, call in enumerate(() if isinstance(message, SystemMessage) else message.tool_calls):
            arguments = escape_surrogates(compact_json(call.args) if call.args_raw is None else call.args_raw)
            name, call_id = escape_surrogates(call.name), _call_id(index, position)
            recorded.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})
    return recorded


def _call_id(message: int, position: int) -> str:
    return f"call_{message + 1}_{position + 1}"
