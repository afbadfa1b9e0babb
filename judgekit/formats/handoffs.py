"""Handoffs to agents whose work a conversation may leave out."""

from collections.abc import Sequence

from judgekit.traces.message import Message
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
    calls = [
        (message.agent, call.name.startswith(_BACK))
        for message in messages
        if message.role == "assistant"
        for call in message.tool_calls
    ]
    agents = {agent for agent, hands_back in calls if hands_back}
    if not agents or None in agents or any(agent in agents and not hands_back for agent, hands_back in calls):
        return []
    return [TraceWarning(HIDDEN_WORK)]
