"""Recordings: the fields of a recorded conversation, apart from the ways to read it that a `Trace` adds."""

from datetime import datetime
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, FiniteFloat, JsonValue

from judgekit.traces.fast_models import CheckedInC
from judgekit.traces.message import CALLER_MESSAGES, FrozenModel, JsonObject, Many, Message, Requestor, ToolCall, Usage

LabelSource: TypeAlias = Literal["human", "benchmark", "judge", "unknown"]
"""The origin of a label: a person, the code of a benchmark, a model used as judge, or unknown."""
UNREAD_SUB_AGENTS = "children"
"""The path of warnings about sub-agents whose conversations, or parts of them, were not read. Scores repeat them."""


class TraceSource(FrozenModel):
    """The origin of a trace.

    Attributes:
        format: The name of the format, such as ``openai-chat``.
        path: The path of the file; ``None`` if there is no file.
        index: The position of the record in the file, from 0; ``None`` if unknown.
    """

    format: str
    path: str | None = None
    index: int | None = None


class ToolDefinition(FrozenModel):
    """A tool that the agent could call.

    Attributes:
        name: The name of the tool.
        description: The description for the model; ``None`` if there is none.
        parameters: The JSON Schema of the arguments; ``None`` if there is none.
        extra: Fields of the recording without a matching attribute, verbatim.
    """

    name: str = Field(kw_only=False)
    description: str | None = None
    parameters: Annotated[JsonValue, CheckedInC] = None
    extra: JsonObject = Field(default_factory=dict)


class Label(FrozenModel):
    """A verdict on the trace that came with the recording.

    Attributes:
        name: What was judged, such as the name of a scorer.
        value: The verdict: a truth value, a number or a string.
        source: Who gave the label: a person, the code of a benchmark, a judge, or unknown.
        annotator: The name of the person or judge; ``None`` if unknown.
        reason: The explanation; ``None`` if there is none.
        message: The number of the message that decides it; ``None`` if none is named.
    """

    name: str = Field(kw_only=False)
    value: bool | int | FiniteFloat | str = Field(kw_only=False)
    source: LabelSource = "unknown"
    annotator: str | None = None
    reason: str | None = None
    message: int | None = Field(default=None, ge=1)


class TraceWarning(FrozenModel):
    """Something in a recording that could not be converted exactly.

    Attributes:
        message: What was found, and what was done with it.
        path: The path in the source, such as ``messages[2].content``; ``None`` for the whole record.
    """

    message: str = Field(kw_only=False)
    path: str | None = None


class Recording(FrozenModel):
    """The fields of a `Trace`, which describes them."""

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
    error: str | None = None
    labels: Many[Label] = ()
    children: Many[Self] = ()
    metadata: JsonObject = Field(default_factory=dict)
    extra: JsonObject = Field(default_factory=dict)
    warnings: Many[TraceWarning] = ()

    @property
    def response(self) -> str | None:
        """The text of the agent's last message, empty if that only calls tools; ``None`` without a message."""
        return next((message.text for message in reversed(self.messages) if message.role == "assistant"), None)

    def own_calls(self, requestor: Requestor = "assistant") -> list[ToolCall]:
        """Return the calls of one side, by default the agent's, in order and without those of sub-agents."""
        kind = CALLER_MESSAGES[requestor]
        calls: list[ToolCall] = []
        for message in self.messages:
            if isinstance(message, kind):
                calls += message.tool_calls
        return calls
