"""The contribution of one span to a conversation, and its level: the top level, or within a tool call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
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


@dataclass(eq=False)
class Level:
    """The top level, or the inside of a tool call; ``tool`` is unknown if several ran at that time."""

    owner: "Level | None" = None
    tool: SpanStep | None = None
    depth: int = 0

    def below(self, tool: SpanStep | None = None) -> "Level":
        """Return the level below this one."""
        return Level(self, tool, self.depth + 1) if self.depth < 20 else self


class Levels:
    """The levels of all steps, and the agents that run there.

    The steps are ordered by start time. Some tracers attach all agents to the root. Such an agent belongs to the tool call
    that lasted as long as it ran.
    """

    def __init__(self, steps: Sequence[SpanStep]) -> None:
        self.top = Level()
        self._levels: dict[Span, Level] = {}
        self._agents: dict[Span | None, SpanStep | None] = {}
        acting = {step.span: step for step in steps if step.kind in ("agent", "tool")}
        order = {span: number for number, span in enumerate(dict.fromkeys(step.span for step in steps))}
        outermost: dict[Span | None, Span | None] = {}
        downwards = sorted(order, key=lambda span: span.depth)
        for span in downwards:
            above = acting.get(span.parent) if span.parent is not None else None
            self._agents[span] = above if above and above.kind == "agent" else self._agents.get(span.parent)
            outermost[span] = outermost.get(span.parent) or (span if span in acting else None)
        outer = [step for step in acting.values() if step.kind == "tool" or outermost[step.span] is step.span]
        around = _tool_calls_by_agent(outer)
        downwards.sort(key=lambda span: -1 if (root := outermost[span]) is None else order[root])
        inside: dict[Span | None, Level] = {}
        for span in downwards:
            level = inside.get(span.parent, self.top)
            calls = [call for call in around.get(span, ()) if call in inside]
            if calls:
                level = inside[calls[0]] if len(calls) == 1 else self._levels[calls[-1]].below()
            self._levels[span] = level
            step = acting.get(span)
            inside[span] = level.below(step) if step is not None and step.kind == "tool" else level

    def __iter__(self) -> Iterator[Level]:
        """Yield every level, the deepest first."""
        return iter(sorted(dict.fromkeys((*self._levels.values(), self.top)), key=lambda level: -level.depth))

    def level(self, step: SpanStep) -> Level:
        """Return the level of a step."""
        return self._levels[step.span]

    def agent(self, step: SpanStep) -> SpanStep | None:
        """Return the agent run that contains a step."""
        return self._agents[step.span]

    def name(self, step: SpanStep) -> str | None:
        """Return the name of the agent that performs a step."""
        return step.agent or (within.agent if (within := self.agent(step)) else None)


def _tool_calls_by_agent(steps: Sequence[SpanStep]) -> dict[Span, list[Span]]:
    """Return the tool calls that lasted while each agent ran."""
    calls: list[Span] = []
    around: dict[Span, list[Span]] = {}
    for step in steps:
        span = step.span
        if step.kind == "tool":
            calls.append(span)
        else:
            calls = [call for call in calls[-50:] if _lasts(call, span.started_at)]
            around[span] = [call for call in calls if _lasts(call, span.ended_at) and call.trace_id == span.trace_id]
    return around


def _lasts(span: Span, moment: datetime | None) -> bool:
    return span.ended_at is not None and moment is not None and span.ended_at >= moment
