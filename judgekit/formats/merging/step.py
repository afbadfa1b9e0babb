"""The contribution of one span to a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from judgekit.formats.spans import Span
from judgekit.traces.message import AIMessage, Message, ToolCall, ToolMessage


@dataclass(eq=False)
class SpanStep:
    """The contribution of one span to a conversation.

    Attributes:
        span: The span, with its times, parent and error.
        kind: A model call, a tool call, an agent run that contains other steps, or none of these.
        agent: The name of the agent.
        input_messages: The input messages of a model or agent, usually with the whole history.
        output_messages: The messages that came back.
        call: The call of a tool span.
        has_arguments: Whether a tool span records the arguments of the call, even if there are none.
        result: The result of the call, if the span has it.
        call_id: The id of the call of a tool span that has neither arguments nor a result.
    """

    span: Span
    kind: Literal["model", "tool", "agent"] | None = None
    agent: str | None = None
    input_messages: Sequence[Message] = ()
    output_messages: Sequence[Message] = ()
    call: ToolCall | None = None
    has_arguments: bool = True
    result: ToolMessage | None = None
    call_id: str | None = None

    def result_of(self, call: ToolCall) -> ToolMessage | None:
        """Return a tool span's result as the result of a call. An error message is used if there is no other result."""
        error = self.span.error
        if self.result is None and error is None:
            return None
        result = self.result or ToolMessage(error or "")
        fields: dict[str, object] = {
            "tool_call_id": call.id,
            "name": call.name,
            "timestamp": result.timestamp or self.span.ended_at,
            "is_error": True if error is not None else result.is_error,
        }
        return result.model_copy(update=fields)

    def as_messages(self) -> list[Message]:
        """Return the tool call and its result as messages."""
        if self.call is None:
            return []
        result = self.result_of(self.call)
        call = AIMessage(tool_calls=[self.call], timestamp=self.span.started_at)
        return [call] if result is None else [call, result]
