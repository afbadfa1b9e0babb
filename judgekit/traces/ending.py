"""The ending of a conversation: whether the agent answered, and why not."""

from typing import NamedTuple

from judgekit.errors import short_repr
from judgekit.traces.message import AIMessage, Message, ToolMessage
from judgekit.traces.trace import Trace

_OTHER_STATES = frozenset({"ok", "success", "completed", "unset", "state_unspecified", "in_progress", "pending"})
"""Terminations that are states of a tracer, which do not say that an agent without an answer gave up."""


class MissingAnswer(NamedTuple):
    """Why a conversation has no answer.

    Attributes:
        reason: What the recording shows in place of an answer.
        gave_up: Whether it shows that the agent was asked and gave no answer. Otherwise, the agent may have answered,
            and its reply was not recorded.
    """

    reason: str
    gave_up: bool


def missing_answer(trace: Trace) -> MissingAnswer | None:
    """Return why a conversation has no answer; ``None`` if it has one, or if there is no conversation.

    The answer is the agent's last message, whatever the user says afterwards, unless it is a greeting before the first
    message of the user, or an error follows it. A message that calls tools is no answer if none of its calls has a
    result and it says nothing, or other calls have results. Providers may run tools without recording results.
    """
    spoken = [message for message in trace.messages if message.role not in {"system", "developer"}]
    end = len(spoken)
    while end and _is_of_user(spoken[end - 1]):
        end -= 1
    was_asked = any(message.role == "user" for message in spoken[:end])
    last = spoken[end - 1] if end and (was_asked or end == len(spoken)) else None
    failed = None if trace.error is None else MissingAnswer(f"it failed with {short_repr(trace.error)}", gave_up=True)
    if isinstance(last, AIMessage):
        is_followed = end < len(spoken) or last.text.strip() in {"", trace.error}
        if failed and is_followed:
            return failed
        pending = any(call.metadata.get("executor") != "provider" for call in last.tool_calls)
        if not pending or (_says_something(last) and not failed and not any(map(_is_result, spoken))):
            return None
        return failed or MissingAnswer("the conversation ends with a tool call without a result", gave_up=True)
    if isinstance(last, ToolMessage):
        return failed or MissingAnswer("the conversation ends with a tool result", gave_up=True)
    if failed or not spoken:
        return failed
    ended = trace.termination
    if ended and ended.casefold() not in _OTHER_STATES:
        return MissingAnswer(f"the conversation ended with {short_repr(ended)}", gave_up=True)
    return MissingAnswer("the conversation stops after the user's message", gave_up=False)


def _is_of_user(message: Message) -> bool:
    return message.role == "user" or (message.role == "tool" and message.requestor == "user")


def _is_result(message: Message) -> bool:
    return message.role == "tool" and message.requestor == "assistant"


def _says_something(message: AIMessage) -> bool:
    if isinstance(message.content, str):
        return bool(message.content.strip())
    return bool(message.text.strip()) or any(part.type == "media" for part in message.content)
