"""One recorded conversation with its envelope."""

from datetime import datetime
from typing import Literal

from pydantic import Field, FiniteFloat, JsonValue

from judgekit.traces.message import AIMessage, JsonObject, Many, Message, Record, ToolCall, Usage
from judgekit.traces.rendering import content_mark, encodable, render_messages


class Source(Record):
    """Where a trace was read from. ``index`` is its position in the file, from 0."""

    format: str
    path: str | None = None
    index: int | None = None


class ToolDefinition(Record):
    """A tool that the agent could call; ``parameters`` is its JSON Schema."""

    name: str = Field(kw_only=False)
    description: str | None = None
    parameters: JsonValue = None
    extra: JsonObject = Field(default_factory=dict)


class Label(Record):
    """A verdict on the trace that came with the recording, of a human or of a benchmark."""

    name: str = Field(kw_only=False)
    value: bool | int | FiniteFloat | str = Field(kw_only=False)
    source: Literal["human", "benchmark", "judge"] = "human"
    annotator: str | None = None
    reason: str | None = None


class TraceWarning(Record):
    """Something in a recording that could not be taken over as it stood. ``where`` is a path in the source."""

    found: str = Field(kw_only=False)
    where: str | None = None


class Trace(Record):
    """One recorded conversation.

    ``cost_usd`` and ``usage`` are as reported, never computed. What the source carries that has no field here stands
    verbatim in ``extra``; what could not be taken over as it stood is listed in ``warnings``.
    """

    schema_version: Literal[1] = 1
    id: str | None = None
    messages: Many[Message] = ()
    source: Source | None = None
    tools: Many[ToolDefinition] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    usage: Usage | None = None
    cost_usd: FiniteFloat | None = None
    termination: str | None = None
    labels: Many[Label] = ()
    children: Many["Trace"] = ()
    metadata: JsonObject = Field(default_factory=dict)
    extra: JsonObject = Field(default_factory=dict)
    warnings: Many[TraceWarning] = ()

    @property
    def tool_calls(self) -> tuple[tuple[int, ToolCall], ...]:
        """The agent's calls in order, each with the number of its message, from 1. Calls of the user are not among them."""
        return tuple(
            (number, call)
            for number, message in enumerate(self.messages, 1)
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        )

    def render(self, *, tool_result_limit: int = 8_000) -> str:
        """The conversation as text for a judge: the one way it becomes text.

        Every message has its number, from 1. The text stands between two lines with a mark that is the hash of what is
        between them; each header carries the mark and each line of content starts with ``| ``, so that no content can
        end the conversation or start a message.

        Args:
            tool_result_limit: Characters of a tool result to keep; the middle of a longer one is left out, visibly.
        """
        unmarked = encodable(render_messages(self.messages, "", tool_result_limit))
        mark = content_mark(unmarked)
        body = f"\n{unmarked}".replace("\n[ ", f"\n[{mark} ")  # only headers start so: content starts with a bar
        return f"[{mark} conversation begins]{body}\n[{mark} conversation ends]"
