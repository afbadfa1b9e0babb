"""Handoffs to agents whose work a conversation may leave out."""

from collections.abc import Sequence

from judgekit.traces.message import AIMessage, Message
from judgekit.traces.recording import TraceWarning

_BACK = "transfer_back_to_"
HIDDEN_WORK = (
    "no agent that hands back to its supervisor shows a tool call, and none is recorded with"
    ' output_mode="last_message"; use output_mode="full_history"'
)


def hidden_work_warnings(messages: Sequence[Message]) -> list[TraceWarning]:
    """Return a warning if no agent that hands back to a supervisor of LangGraph shows a call of a tool.

    By default, supervisors keep only the last message of their agents.
    """
    said = [message for message in messages if isinstance(message, AIMessage)]
    backs = [message for message in said if any(call.name.startswith(_BACK) for call in message.tool_calls)]
    agents = {message.agent for message in backs}
    shown = (call for message in said if message.agent in agents for call in message.tool_calls)
    if not backs or None in agents or any(not call.name.startswith(_BACK) for call in shown):
        return []
    return [TraceWarning(HIDDEN_WORK)]
