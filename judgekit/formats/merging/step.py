"""What one span says of a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from judgekit.formats.spans import Span
from judgekit.traces.message import AIMessage, Message, ToolCall, ToolMessage


@dataclass(eq=False)
class Step:
    """What one span says of a conversation.

    Attributes:
        span: The span, whose times, parent and error count.
        kind: A call of a model, of a tool, or the run of an agent, in which other steps happen; or none of these.
        agent: The agent that runs.
        asked: The messages that a model or an agent was given; mostly all that came before.
        answered: What came back.
        call: The call that a tool's span is about.
        result: Its result, if the span has it.
    """

    span: Span
    kind: Literal["model", "tool", "agent"] | None = None
    agent: str | None = None
    asked: Sequence[Message] = ()
    answered: Sequence[Message] = ()
    call: ToolCall | None = None
    result: ToolMessage | None = None

    def result_of(self, call: ToolCall) -> ToolMessage | None:
        """The result that a tool's span knows of, as that of a call; the text of an error if there is no other."""
        error = self.span.error
        if self.result is None and error is None:
            return None
        result = self.result or ToolMessage(error or "")
        known: dict[str, object] = {
            "tool_call_id": call.id,
            "name": result.name or call.name,
            "timestamp": result.timestamp or self.span.ended,
            "is_error": True if error is not None else result.is_error,
        }
        return result.model_copy(update=known)

    def exchange(self) -> list[Message]:
        """The call and the result of a tool as messages."""
        if self.call is None:
            return []
        result = self.result_of(self.call)
        call = AIMessage(tool_calls=[self.call], timestamp=self.span.started)
        return [call] if result is None else [call, result]
