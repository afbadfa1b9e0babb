"""The ending of a conversation: whether the agent answered, and why not."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from judgekit.errors import short_repr
from judgekit.traces.message import AIMessage, Message
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

NoAnswer: TypeAlias = Literal["failed", "zero"]
"""The score of a recording that stops after the user's message: a failed one, or 0 as if the agent had failed."""

_OTHER_STATES = frozenset({"ok", "success", "completed", "unset", "state_unspecified", "in_progress", "pending"})
"""Terminations that are states of a tracer, which do not say that an agent without an answer gave up."""

_ENDS_TASK = re.compile(
    r"finish|final|submit|complet|done\b|terminate|answer|respond|reply|escalate|hand_?off|transfer_?to|exit\b"
    r"|end_?(call|chat|conversation|session|task)",
    re.IGNORECASE,
)
"""Names of tools by which an agent ends its task, hands it over or gives its answer."""


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
    message of the user, or an error follows it. A message that calls tools is no answer, unless it calls one that ends
    the task, such as ``finish``, or it says something and the recording has no results of tools at all.
    """
    spoken = [message for message in trace.messages if message.role not in {"system", "developer"}]
    end = len(spoken)
    while end and _is_of_user(spoken[end - 1]):
        end -= 1
    user_is_last, was_asked = end < len(spoken), any(message.role == "user" for message in spoken[:end])
    ending = _unfinished(spoken[:end], trace.error) if was_asked or not user_is_last else ""
    if trace.error is not None and (ending is not None or user_is_last):
        return MissingAnswer(f"it failed with {short_repr(trace.error)}", gave_up=True)
    if ending is None or not spoken:
        return None
    if not user_is_last:
        return MissingAnswer(f"the conversation ends with {ending}", gave_up=True)
    if trace.termination and trace.termination.casefold() not in _OTHER_STATES:
        return MissingAnswer(f"the conversation ended with {short_repr(trace.termination)}", gave_up=True)
    return MissingAnswer("the conversation stops after the user's message", gave_up=False)


def assume_failure(sample: Sample) -> Sample:
    """Return a sample whose recording stops after the user's message with an error, so that the agent counts as failed."""
    missing = missing_answer(sample.trace)
    if missing is None or missing.gave_up:
        return sample
    return sample.model_copy(update={"trace": sample.trace.model_copy(update={"error": "no answer recorded"})})


def _unfinished(messages: Sequence[Message], error: str | None) -> str | None:
    """Return what messages end with in place of an answer; ``None`` if they end with one."""
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    if last is None:
        return "a tool result" if messages else ""
    calls = [call for call in last.tool_calls if call.metadata.get("executor") != "provider"]
    if not calls:
        return "an error" if error is not None and last.text.strip() in {"", error} else None
    name = calls[-1].name
    if messages[-1].role == "tool":
        return None if _ENDS_TASK.search(name) else f"the result of {short_repr(name)}"
    has_results = any(message.role == "tool" for message in messages)
    has_media = not isinstance(last.content, str) and any(part.type == "media" for part in last.content)
    is_answer = (last.text.strip() or has_media) and error is None and not has_results
    return None if is_answer or _ENDS_TASK.search(name) else f"a call without a result, of {short_repr(name)}"


def _is_of_user(message: Message) -> bool:
    return message.role == "user" or (message.role == "tool" and message.requestor == "user")
