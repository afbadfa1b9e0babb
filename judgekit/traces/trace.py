"""One recorded conversation with its envelope."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from pydantic import Field, FiniteFloat, JsonValue

from judgekit.traces.message import JsonObject, Many, Message, Record, Requestor, ToolCall, Usage
from judgekit.traces.rendering import Passage, Rendering, conversation, passages
from judgekit.traces.shortening import shortened

LabelSource: TypeAlias = Literal["human", "benchmark", "judge", "unknown"]
"""Who gave a label: a person, the code of a benchmark, a model that grades, or nobody knows who."""


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
    """A verdict on the trace that came with the recording; ``source`` says who gave it."""

    name: str = Field(kw_only=False)
    value: bool | int | FiniteFloat | str = Field(kw_only=False)
    source: LabelSource = "unknown"
    annotator: str | None = None
    reason: str | None = None


class TraceWarning(Record):
    """Something in a recording that could not be taken over as it stood. ``where`` is a path in the source."""

    found: str = Field(kw_only=False)
    where: str | None = None


class MadeCall(NamedTuple):
    """A tool call in its place. Messages are numbered from 1; a turn's number is that of the user's messages so far."""

    message: int
    turn: int
    call: ToolCall


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
    def response(self) -> str | None:
        """What the agent said last: the text of its last message, empty where that only calls tools; ``None`` if there is none."""
        return next((message.text for message in reversed(self.messages) if message.role == "assistant"), None)

    def tool_calls(self, requestor: Requestor = "assistant") -> tuple[MadeCall, ...]:
        """The calls of one side, in order."""
        calls: list[MadeCall] = []
        turn = 0
        for number, message in enumerate(self.messages, 1):
            if message.role == "user":
                turn += 1
            elif message.role != "assistant":
                continue
            if message.role == requestor:
                calls += [MadeCall(number, turn, call) for call in message.tool_calls]
        return tuple(calls)

    def render(self, *, tool_result_limit: int = 8_000, budget_tokens: int | None = None) -> Rendering:
        """The conversation as text for a judge: the one way it becomes text.

        Every message has its number, from 1. The text stands between two lines with a mark that is the hash of what is
        between them; each header carries the mark and each line of content starts with ``| ``, so that no content can
        end the conversation or start a message.

        Within a budget, messages of the user, the first and the last stay whole as long as there is room for them. In
        between, tool results are cut first, the longest most, then what else was said and called, and then whole
        messages are left out, from the middle on. Each cut is marked with how many characters are missing, and numbers
        stay what they are.

        Args:
            tool_result_limit: Characters of a tool result to keep; the middle of a longer one is left out, visibly.
            budget_tokens: The most tokens that the text may have, at four bytes each; no limit if not given.

        Raises:
            ValueError: The budget has no room even for the headers.
        """
        shown: Sequence[Passage] = passages(self.messages, tool_result_limit)
        if budget_tokens is not None:
            shown = shortened(shown, self.messages, budget_tokens)
        return conversation(shown)
