"""The levels at which steps happen: the top level, or within a tool call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from judgekit.formats.merging.step import SpanStep
from judgekit.formats.spans import Span

_DEEPEST = 20
_MOST_AT_ONCE = 50


@dataclass(eq=False)
class Level:
    """The top level, or the inside of a tool call; ``tool`` is unknown if several ran at that time."""

    owner: "Level | None" = None
    tool: SpanStep | None = None
    depth: int = 0

    def below(self, tool: SpanStep | None = None) -> "Level":
        """Return the level below this one."""
        return Level(self, tool, self.depth + 1) if self.depth < _DEEPEST else self


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
        around = _tool_calls_by_agent(
            [step for step in acting.values() if step.kind == "tool" or outermost[step.span] is step.span]
        )
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
            calls = [call for call in calls[-_MOST_AT_ONCE:] if _lasts(call, span.started_at)]
            around[span] = [call for call in calls if _lasts(call, span.ended_at) and call.trace_id == span.trace_id]
    return around


def _lasts(span: Span, moment: datetime | None) -> bool:
    return span.ended_at is not None and moment is not None and span.ended_at >= moment
