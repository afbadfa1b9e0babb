"""The usage of the conversations of a run, whatever is scored."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from judgekit.errors import count_text
from judgekit.runs.hashes import text_hash
from judgekit.traces.behavior import TraceUsage, repeated_calls
from judgekit.traces.sample import Sample

_NAME_KEPT = 200
_USERS = ("user_id", "userId", "user")
_SESSIONS = ("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId")


class UsageStatistic(NamedTuple):
    """A number taken over many conversations; ``conversation_count`` is how many of them it is known for."""

    name: str
    mean: float
    median: float
    conversation_count: int


class ConversationUsage(NamedTuple):
    """The usage of one conversation; a number is ``None`` if the recording does not give it.

    ``repeats_calls`` says whether a call is repeated with equal arguments, ``has_warnings`` whether reading the conversation gave
    warnings, and ``agent`` which agent made the recording, see `agent_of`. ``origin`` is a hash of the session or user that
    an ungrouped sample names.
    """

    messages: int
    tool_calls: int
    tool_results: int
    tool_errors: int
    tokens: int | None
    cost_usd: float | None
    seconds: float | None
    repeats_calls: bool
    has_warnings: bool
    agent: str | None = None
    origin: int | None = None

    @classmethod
    def of(cls, sample: Sample) -> "ConversationUsage | None":
        """Return the usage of a conversation; ``None`` for a trace without messages."""
        trace = sample.trace
        if not trace.messages:
            return None
        usage = TraceUsage.of(trace)
        repeating = False
        with suppress(ValueError):  # JSON cannot hold all arguments, such as numbers with thousands of digits
            repeating = repeated_calls(trace) > 0
        counts = usage.messages, usage.tool_calls, usage.tool_results, usage.tool_errors
        took = usage.tokens, usage.cost_usd, usage.seconds
        return cls(*counts, *took, repeating, bool(trace.warnings), agent_of(sample), _origin(sample))


def _origin(sample: Sample) -> int | None:
    """Return a hash of the user or session that an ungrouped sample names in its metadata or in that of its trace."""
    named = (
        (name, metadata[name])
        for name in (*_USERS, *_SESSIONS)
        for metadata in (sample.metadata, sample.trace.metadata)
        if isinstance(metadata.get(name), str | int) and metadata[name] != ""
    )
    first = next(named, None) if sample.group is None else None
    return None if first is None else text_hash(repr(first))


def agent_of(sample: Sample) -> str | None:
    """Return the name of the agent that made a recording; ``None`` if the recording does not give it.

    This is ``agent`` in the metadata of the sample or of its trace, or else the agents and models that the agent's
    messages name.
    """
    for metadata in (sample.metadata, sample.trace.metadata):
        match metadata.get("agent"):
            case str(name) if name:
                return name[:_NAME_KEPT]
            case dict(parts) if named := [
                str(part) for part in parts.values() if part != "" and isinstance(part, str | float | int)
            ]:
                return " ".join(named)[:_NAME_KEPT]
            case _:
                pass
    agents = {(message.agent, message.model) for message in sample.trace.messages if message.role == "assistant"}
    names = sorted({" ".join(filter(None, agent)) for agent in agents} - {""})
    return ", ".join(names)[:_NAME_KEPT] or None


@dataclass
class UsageTotals:
    """The usage of many conversations, added one by one; only numbers are kept.

    ``print`` shows a line, if there are any conversations.

    Attributes:
        conversations: The number of conversations.
        tool_results: The number of tool results that are known to be errors or not.
        tool_errors: The number of these that are errors.
        with_repeated_calls: The number of conversations that repeat a call with equal arguments.
        with_warnings: The number of conversations that gave warnings when they were read.
        origins: The number of ungrouped conversations by the hash of their session or user.
        agents: The number of conversations by agent, see `agent_of`; empty text stands for those that name none.
    """

    conversations: int = 0
    tool_results: int = 0
    tool_errors: int = 0
    with_repeated_calls: int = 0
    with_warnings: int = 0
    origins: Counter[int] = field(default_factory=Counter[int], repr=False)
    agents: Counter[str] = field(default_factory=Counter[str], repr=False)
    _numbers: dict[str, "array[float]"] = field(default_factory=dict[str, "array[float]"], repr=False)

    def add(self, usage: ConversationUsage) -> None:
        """Count a conversation together with its children."""
        self.conversations += 1
        self.with_repeated_calls += usage.repeats_calls
        self.with_warnings += usage.has_warnings
        self.agents[usage.agent or ""] += 1
        if usage.origin is not None:
            self.origins[usage.origin] += 1
        self.tool_results += usage.tool_results
        self.tool_errors += usage.tool_errors
        for name, number in (
            ("agent messages", usage.messages),
            ("tool calls", usage.tool_calls),
            ("tokens", usage.tokens),
            ("US dollars", usage.cost_usd),
            ("seconds", usage.seconds),
        ):
            if number is not None:
                self._numbers.setdefault(name, array("d")).append(number)

    @property
    def statistics(self) -> Sequence[UsageStatistic]:
        """Each number that is known for at least one conversation."""
        return [
            UsageStatistic(name, sum(numbers) / len(numbers), median(numbers), len(numbers))
            for name, numbers in self._numbers.items()
        ]

    def __str__(self) -> str:
        if not self.conversations:
            return ""
        figures = ", ".join(
            f"{_shown(figure.mean)} ({_shown(figure.median)}) {figure.name.removesuffix('s' if figure.mean == 1 else '')}"
            + ("" if (n := figure.conversation_count) == self.conversations else f" (known for {n:,})")
            for figure in self.statistics
        )
        conduct = "; ".join(self._conduct())
        return (
            f"{count_text(self.conversations, 'conversation')}. Per conversation, mean (median): {figures}."
            f"{conduct and f' {conduct}.'}{self._dependence()}"
        )

    def _dependence(self) -> str:
        if not (shared := sum(times for times in self.origins.values() if times > 1)):
            return ""
        return (
            f" {shared:,} of {self.conversations:,} conversations have the session or user of another and no group, so "
            "intervals count them as independent: set group."
        )

    def _conduct(self) -> Iterator[str]:
        if self.tool_results:
            yield f"{count_text(self.tool_results, 'tool result')} ({self.tool_errors / self.tool_results:.0%} errors)"
        if self.with_repeated_calls:
            yield f"{count_text(self.with_repeated_calls, 'conversation')} {'repeats' if self.with_repeated_calls == 1 else 'repeat'} a call"
        elif self.tool_results:
            yield "no conversation repeats a call"
        if self.with_warnings:
            yield f"{count_text(self.with_warnings, 'conversation')} read with warnings (see judgekit inspect)"


def _shown(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"
