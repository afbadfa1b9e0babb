"""Traces: recorded conversations with their metadata."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from pydantic import Field, FiniteFloat, JsonValue

from judgekit.traces.message import FrozenModel, JsonObject, Many, Message, Requestor, ToolCall, Usage
from judgekit.traces.rendering import Passage, Rendering, message_passages, render_passages
from judgekit.traces.shortening import shorten_passages

LabelSource: TypeAlias = Literal["human", "benchmark", "judge", "unknown"]
"""The origin of a label: a person, the code of a benchmark, a model used as judge, or unknown."""


class TraceSource(FrozenModel):
    """The origin of a trace. ``index`` is its position in the file, from 0."""

    format: str
    path: str | None = None
    index: int | None = None


class ToolDefinition(FrozenModel):
    """A tool that the agent could call; ``parameters`` is its JSON Schema."""

    name: str = Field(kw_only=False)
    description: str | None = None
    parameters: JsonValue = None
    extra: JsonObject = Field(default_factory=dict)


class Label(FrozenModel):
    """A verdict on the trace that came with the recording; ``source`` says who gave it."""

    name: str = Field(kw_only=False)
    value: bool | int | FiniteFloat | str = Field(kw_only=False)
    source: LabelSource = "unknown"
    annotator: str | None = None
    reason: str | None = None


class TraceWarning(FrozenModel):
    """Something in a recording that could not be converted exactly. ``where`` is a path in the source."""

    found: str = Field(kw_only=False)
    where: str | None = None


class ActualCall(NamedTuple):
    """A tool call, the number of its message, from 1, and its turn: the number of user messages so far."""

    message: int
    turn: int
    call: ToolCall


class Trace(FrozenModel):
    """A recorded conversation.

    ``cost_usd`` and ``usage`` are as reported, never computed. Source data without a matching field is kept verbatim in
    ``extra``; data that could not be converted exactly is listed in ``warnings``.
    """

    schema_version: Literal[1] = 1
    id: str | None = None
    messages: Many[Message] = ()
    source: TraceSource | None = None
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
    def response(self) -> str | None:
        """The text of the agent's last message, empty if that only calls tools; ``None`` without a message."""
        return next((message.text for message in reversed(self.messages) if message.role == "assistant"), None)

    def tool_calls(self, requestor: Requestor = "assistant") -> tuple[ActualCall, ...]:
        """Return the calls of one side, in order."""
        calls: list[ActualCall] = []
        turn = 0
        for number, message in enumerate(self.messages, 1):
            if message.role == "user":
                turn += 1
            elif message.role != "assistant":
                continue
            if message.role == requestor:
                calls += [ActualCall(number, turn, call) for call in message.tool_calls]
        return tuple(calls)

    def render(self, *, tool_result_limit: int = 8_000, budget_tokens: int | None = None) -> Rendering:
        """Return the conversation as text for a judge; this is the only way it becomes text.

        Messages are numbered from 1. The text stands between two lines with a mark that is the hash of what they
        enclose; each header carries the mark and each line of content starts with ``| ``, so no content can end the
        conversation or start a message.

        Within a budget, the first and last message and those of the user stay complete as long as possible. In between,
        tool results are cut first, longest first, then other text and calls, and then whole messages are dropped,
        starting in the middle. Each cut is marked with the number of missing characters; message numbers do not change.

        Args:
            tool_result_limit: The characters of a tool result to keep; a note replaces the middle of a longer one.
            budget_tokens: The maximum number of tokens, at four bytes each; no limit if not given.

        Raises:
            ValueError: The budget is too small even for the headers.
        """
        shown: Sequence[Passage] = message_passages(self.messages, tool_result_limit)
        if budget_tokens is not None:
            shown = shorten_passages(shown, self.messages, budget_tokens)
        return render_passages(shown)
