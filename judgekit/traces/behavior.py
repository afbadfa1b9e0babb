"""Measures of how an agent worked: messages, calls, tokens, cost, time, and hand-offs between agents."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeVar

from judgekit.traces.equality import canonical_json
from judgekit.traces.message import ToolCall, Usage
from judgekit.traces.rendering import quoted_name
from judgekit.traces.trace import ActualCall, Trace
from judgekit.traces.tree import MessageNumber, branches, conversation_path

Number = TypeVar("Number", int, float)
_BEYOND_COUNTING = 2**53


class TraceUsage(NamedTuple):
    """The usage of a conversation, including its children; ``None`` for what the recording does not say.

    Numbers that a trace reports are taken to exclude its children, whose numbers are added.

    Attributes:
        messages: Messages of the agent.
        tool_calls: Tool calls of the agent.
        tool_results: Results of the agent's calls that are known to be errors or not.
        tool_errors: The results that are errors.
        input_tokens: The trace's ``usage``, or the sum over its messages if every message of the agent has a usage. A
            greeting without one, before the first message of the user, was not generated and does not matter.
        output_tokens: The same for output tokens.
        cost_usd: The cost in US dollars.
        seconds: See `elapsed`. Children are not added, because they run during it.
    """

    messages: int
    tool_calls: int
    tool_results: int
    tool_errors: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None

    @classmethod
    def of(cls, trace: Trace) -> "TraceUsage":
        """Return the usage of a trace."""
        messages = calls = results = errors = 0
        usages: list[Usage | None] = []
        family = [trace]
        for recording in family:
            family += recording.children
            each: list[Usage | None] = []
            greetings: int | None = None
            for message in recording.messages:
                if message.role == "user":
                    greetings = len(each) if greetings is None else greetings
                elif message.role == "assistant":
                    each.append(message.usage)
                    calls += len(message.tool_calls)
                elif message.role == "tool" and message.is_error is not None and message.requestor == "assistant":
                    results += 1
                    errors += message.is_error
            messages += len(each)
            before = greetings or 0
            reported = [*filter(None, each[:before]), *each[before:]]
            usages += reported if recording.usage is None else [recording.usage]
        seconds = elapsed(trace)
        return cls(
            messages,
            calls,
            results,
            errors,
            _sum([usage.input_tokens if usage else None for usage in usages]),
            _sum([usage.output_tokens if usage else None for usage in usages]),
            _sum([recording.cost_usd for recording in family]),
            None if isinstance(seconds, str) else seconds,
        )

    @property
    def tokens(self) -> int | None:
        """The sum of input and output tokens."""
        return _sum([self.input_tokens, self.output_tokens])


class Agent(NamedTuple):
    """An agent of a tree.

    Attributes:
        path: The path of the sub-agent; empty in the conversation of the agent itself.
        name: The name of the agent; ``None`` if unknown.
    """

    path: str
    name: str | None

    def __str__(self) -> str:
        """Return the agent as text that no name can forge: ``agent billing``, ``sub-agent 2.1 hotels``."""
        kind = f"sub-agent {self.path}" if self.path else "agent"
        return f"{kind} without a name" if self.name is None else f"{kind} {quoted_name(self.name)}"


def agents(trace: Trace) -> list[Agent]:
    """Return the agents of a tree that say something, in the order of `branches`.

    Each conversation of a sub-agent is its own; within one conversation, agents are distinguished by the names of messages.
    """
    return [*dict.fromkeys(_speakers(trace))]


def _speakers(trace: Trace) -> Iterator[Agent]:
    """Yield the agent of each message of an agent."""
    for branch in branches(trace):
        for message in branch.trace.messages:
            if message.role == "assistant":
                yield Agent(branch.path, branch.speaker(message))


class AgentUsage(NamedTuple):
    """The usage of one agent of a tree, without that of its sub-agents; see `Agent` and `TraceUsage`.

    ``repeated_calls`` is the number of its calls that repeat an earlier one; ``None`` if arguments cannot be compared.
    """

    path: str
    agent: str | None
    messages: int
    tool_calls: int
    tool_results: int
    tool_errors: int
    repeated_calls: int | None


def agent_usage(trace: Trace) -> list[AgentUsage]:
    """Return the usage of each of the `agents` of a tree."""
    spoken = Counter(_speakers(trace))
    usages: list[AgentUsage] = []
    for agent, calls in calls_by_agent(trace, zip(trace.tool_calls(), trace.call_errors(), strict=True)).items():
        results = [failed for _, failed in calls if failed is not None]
        counts = spoken[agent], len(calls), len(results), sum(results), count_repeats([call for call, _ in calls])
        usages.append(AgentUsage(agent.path, agent.name, *counts))
    return usages


def calls_by_agent(
    trace: Trace, outcomes: Iterable[tuple[ActualCall, bool | None]]
) -> dict[Agent, list[tuple[ToolCall, bool | None]]]:
    """Return the calls of each of the `agents` of a tree, each with whether it failed."""
    calls: dict[Agent, list[tuple[ToolCall, bool | None]]] = {agent: [] for agent in agents(trace)}
    for actual, failed in outcomes:
        calls[calling_agent(actual)].append((actual.call, failed))
    return calls


def calling_agent(call: ActualCall) -> Agent:
    """Return the agent that made a call."""
    return Agent(conversation_path(call.message), call.agent)


def count_repeats(calls: Sequence[ToolCall]) -> int | None:
    """Return how many of the calls repeat an earlier one; ``None`` if JSON cannot hold all arguments."""
    try:
        return len(calls) - len(set(map(canonical_call, calls)))
    except ValueError:  # such as numbers with thousands of digits
        return None


def elapsed(trace: Trace) -> float | str:
    """Return the seconds from start to end, or a text that says why they are unknown.

    The times are ``started_at`` and ``ended_at``, or those of the first and last message, instructions aside.
    """
    start, end = trace.started_at, trace.ended_at
    if start is None or end is None:
        spoken = [message for message in trace.messages if message.role not in {"system", "developer"}]
        start, end = (spoken[0].timestamp, spoken[-1].timestamp) if len(spoken) > 1 else (None, None)
    if start is None or end is None:
        return "the recording has neither start and end times nor times of its first and last message"
    try:
        seconds = (end - start).total_seconds()
    except TypeError:
        return "only one of the start and end times has a time zone"
    return "the end time is before the start time" if seconds < 0 else seconds


def communication_rounds(trace: Trace) -> int | str:
    """Return the number of messages passed between agents, at least one, or a text that says why it is unknown.

    Within a conversation, a message counts if it follows one of another agent. Each child counts as one message for its
    task, and another for its answer if it gave one.
    """
    passed = 0
    family = [trace]
    for recording in family:
        family += recording.children
        agents = [message.agent for message in recording.messages if message.role == "assistant"]
        if None in agents and len(set(agents)) > 1:
            return "only some agent messages name their agent"
        passed += sum(agent != before for before, agent in pairwise(agents))
        passed += sum(1 if child.response is None else 2 for child in recording.children)
    return passed or "the recording does not distinguish two agents"


class Handoff(NamedTuple):
    """A task that one agent passes to another.

    Attributes:
        giver: The name of the agent that gives it; ``None`` if unknown.
        receiver: The name of the agent that takes it; ``None`` if unknown.
        given: The number of the message that gives it; ``None`` if unknown.
        first: The number of the first message of the receiver.
        last: The number of its last message before it hands over in turn.
    """

    giver: str | None
    receiver: str | None
    given: MessageNumber | None
    first: MessageNumber
    last: MessageNumber

    def __str__(self) -> str:
        """Return the hand-off as text: who passes it to whom, and in which messages."""
        giver, receiver = (("an agent" if name is None else quoted_name(name)) for name in (self.giver, self.receiver))
        given = "in an unknown message" if self.given is None else f"in message {self.given}"
        return f"{giver} to {receiver}, given {given}, taken in {self.first}, until {self.last}"


def handoffs(trace: Trace) -> list[Handoff]:
    """Return the hand-offs of a tree, conversation by conversation.

    A sub-agent with messages is one. In a conversation, it is one if a message of an agent follows one of another,
    where both are named.
    """
    passed: list[Handoff] = []
    for branch in branches(trace):
        named = [
            (index, message.agent)
            for index, message in enumerate(branch.trace.messages)
            if message.role == "assistant" and message.agent is not None
        ]
        turns = [[*group] for _, group in groupby(named, key=itemgetter(1))]
        for (*_, (given, giver)), ((first, receiver), *_), taken in zip(turns, turns[1:], turns[1:], strict=False):
            last = taken[-1][0]
            passed.append(Handoff(giver, receiver, branch.number(given), branch.number(first), branch.number(last)))
        for index, started in branch.started.items():
            given_in = None if index < 0 else branch.number(index)
            message = branch.trace.messages[index] if index >= 0 else None
            caller = message.agent if message is not None and message.role == "assistant" else None
            for child in started:
                if length := len(child.trace.messages):
                    span = child.number(0), child.number(length - 1)
                    passed.append(Handoff(caller or branch.agent, child.agent, given_in, *span))
    return passed


def repeated_calls(trace: Trace) -> int:
    """Return the number of the agent's tool calls that repeat an earlier one with equal arguments (`canonical_call`).

    Retries of failed calls count too. Each child is counted by itself, and its repeats are added.
    """
    calls = trace.own_calls()
    names = {call.name for call in calls}
    repeats = 0 if len(names) == len(calls) else len(calls) - len(set(map(canonical_call, calls)))
    return repeats + sum(map(repeated_calls, trace.children))


def canonical_call(call: ToolCall) -> str:
    """Return a text that is the same for equal calls. Unreadable arguments are equal if their text is."""
    return canonical_json([call.name, call.args_raw if call.args_error else call.args])


def _sum(numbers: Sequence[Number | None]) -> Number | None:
    """Return the sum if there are numbers and all are known; negative or infinite numbers count as unknown."""
    amounts = [number for number in numbers if number is not None and 0 <= number < _BEYOND_COUNTING]
    return sum(amounts[1:], amounts[0]) if amounts and len(amounts) == len(numbers) else None
