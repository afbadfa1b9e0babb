"""Traces: recorded conversations with their metadata."""

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import Field, FiniteFloat, JsonValue

from judgekit.traces.images import ImageSettings
from judgekit.traces.message import (
    CALLER_MESSAGES,
    CheckedInC,
    FrozenModel,
    JsonObject,
    Many,
    Message,
    OtherPart,
    Requestor,
    ToolCall,
    Usage,
)
from judgekit.traces.pairing import call_errors
from judgekit.traces.rendering import (
    Passage,
    Rendering,
    count_hidden_media,
    limit_images,
    message_passages,
    render_passages,
    render_plain_messages,
)
from judgekit.traces.shortening import shorten_passages
from judgekit.traces.tree import Branch, MessageNumber, branches, walk_calls

LabelSource: TypeAlias = Literal["human", "benchmark", "judge", "unknown"]
"""The origin of a label: a person, the code of a benchmark, a model used as judge, or unknown."""


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
    """

    name: str = Field(kw_only=False)
    value: bool | int | FiniteFloat | str = Field(kw_only=False)
    source: LabelSource = "unknown"
    annotator: str | None = None
    reason: str | None = None


class TraceWarning(FrozenModel):
    """Something in a recording that could not be converted exactly.

    Attributes:
        message: What was found, and what was done with it.
        path: The path in the source, such as ``messages[2].content``; ``None`` for the whole record.
    """

    message: str = Field(kw_only=False)
    path: str | None = None


class ActualCall(NamedTuple):
    """A tool call and its place in the conversation.

    Attributes:
        message: The number of its message.
        turn: The number of user messages so far, in the conversation of the agent itself.
        call: The call.
        agent: The name of the agent that made it; ``None`` if unknown.
        delegates: Whether it started a sub-agent.
    """

    message: MessageNumber
    turn: int
    call: ToolCall
    agent: str | None = None
    delegates: bool = False


class Trace(FrozenModel):
    """A recorded conversation.

    Attributes:
        schema_version: The version of this schema.
        id: The id in the recording; ``None`` if there is none.
        messages: The messages, in order.
        source: The file and format that it was read from; ``None`` if it was not read from a file.
        tools: The tools that the agent could call.
        started_at: The start; ``None`` if unknown.
        ended_at: The end; ``None`` if unknown.
        usage: The token counts of the whole conversation as reported, never computed; ``None`` if not reported.
        cost_usd: The cost in US dollars as reported, never computed; ``None`` if not reported.
        termination: The reason why the conversation ended, as recorded; ``None`` if unknown.
        labels: The verdicts that came with the recording.
        children: The traces of sub-agents, and of other conversations in the same record.
        metadata: Facts about the trace that have no attribute of their own.
        extra: Data of the source without a matching attribute, verbatim.
        warnings: Data that could not be converted exactly.
    """

    __slots__ = (
        "_calls",
    )  # the agent's calls, which all its scorers list; it is not copied, and copies may have others

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
        """Return the calls of one side, in order; each of the agent's calls is followed by those of its sub-agents."""
        if requestor == "user":
            return tuple(self._own_calls(requestor))
        try:
            known: tuple[ActualCall, ...] = object.__getattribute__(self, "_calls")
        except AttributeError:
            known = tuple(self._tree_calls() if self.children else self._own_calls(requestor))
            object.__setattr__(self, "_calls", known)
        return known

    def own_calls(self, requestor: Requestor = "assistant") -> list[ToolCall]:
        """Return the calls of one side without those of sub-agents, in order."""
        kind = CALLER_MESSAGES[requestor]
        calls: list[ToolCall] = []
        for message in self.messages:
            if isinstance(message, kind):
                calls += message.tool_calls
        return calls

    def _tree_calls(self) -> Iterator[ActualCall]:
        for one in walk_calls(Branch(self)):
            yield ActualCall(one.branch.number(one.at), one.turn, one.call, one.agent, one.delegates)

    def _own_calls(self, requestor: Requestor) -> list[ActualCall]:
        calls: list[ActualCall] = []
        turn = 0
        message: Any  # a role that is read once tells type checkers nothing about the message
        for number, message in enumerate(self.messages, 1):
            role = message.role
            if role == "user":
                turn += 1
            if role == requestor:
                agent = message.agent if role == "assistant" else None
                for call in message.tool_calls:
                    calls.append(ActualCall(number, turn, call, agent))  # noqa: PERF401 - a list for each message takes longer
        return calls

    def call_errors(self, requestor: Requestor = "assistant") -> tuple[bool | None, ...]:
        """Return whether each call of one side failed, in the order of `tool_calls`.

        It is ``None`` for a call without a result, or if the format cannot say.
        """
        if not self.children or requestor == "user":
            return call_errors(self.messages, requestor)
        errors = {one.path: iter(call_errors(one.trace.messages, requestor)) for one in branches(self)}
        return tuple(next(errors[one.branch.path]) for one in walk_calls(Branch(self)))

    def mutable_content(self) -> list[JsonValue]:
        """Return the content that can be changed in place.

        This is the arguments of calls, the data of unknown parts, and the names of sub-agents with the ids of their
        calls.
        """
        found: list[JsonValue] = []
        for message in self.messages:
            fields = vars(message)  # this runs for every judged scorer, and asking for the role takes twice as long
            if not isinstance(fields["content"], str):
                found += [part.data for part in message.content if isinstance(part, OtherPart)]
            for call in fields.get("tool_calls", ()):
                found.append(call.args)
        for child in self.children:
            found += [*map(repr, map(child.metadata.get, ("agent", "call_id"))), *child.mutable_content()]
        return found

    def render(
        self,
        *,
        tool_result_limit: int = 8_000,
        budget_tokens: int | None = None,
        images: ImageSettings | None = None,
    ) -> Rendering:
        """Return the conversation as text for a judge, with those of sub-agents; this is the only way it becomes text.

        Messages are numbered from 1. A sub-agent stands behind the call that started it, between two lines with its
        path, and its messages are numbered by paths (`MessageNumber`). A tool result that repeats the last message of
        the sub-agent refers to that.

        The text stands between two lines with a mark that is the hash of what they
        enclose; each header carries the mark and each line of content starts with ``| ``, so no content can end the
        conversation or start a message.

        Within a budget, the first and last message and those of the user stay complete as long as possible. In between,
        tool results are cut first, longest first, then other text and calls, and then whole messages are dropped,
        starting in the middle. Sub-agents give way before that, the deepest first. Each cut is marked with the number of missing characters; message numbers do not change.

        Images take up at most half of the budget, or what the text leaves. Each has a line of its own behind the text of
        its message, ``[MARK 4] image 1: image/png, 640 x 480``, behind which a request has the image itself.

        Args:
            tool_result_limit: The characters of a tool result to keep; a note replaces the middle of a longer one.
            budget_tokens: The maximum number of tokens, at four bytes each; no limit if not given.
            images: The images to show; none if not given.

        Raises:
            ValueError: The budget is too small even for the headers.
        """
        if budget_tokens is None and images is None and not self.children:
            plain = render_plain_messages(self.messages, tool_result_limit)
            if plain is not None:
                return plain
        shown: Sequence[Passage] = message_passages(Branch(self), tool_result_limit, images)
        if images is not None:
            most = images.max_images
            shown = limit_images(shown, most, sys.maxsize, f"more than max_images = {most:,}")
        if budget_tokens is not None:
            shown = shorten_passages(shown, self, budget_tokens)
        return render_passages(shown, count_hidden_media(self, shown, images))
