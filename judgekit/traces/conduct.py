"""How an agent went about it, in plain numbers: messages, calls, tokens, money, time, words between agents."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

from judgekit.traces.equality import canonical_json
from judgekit.traces.message import ToolCall, Usage
from judgekit.traces.trace import Trace

Number = TypeVar("Number", int, float)
_BEYOND_COUNTING = 2**53


class Effort(NamedTuple):
    """What a conversation took, and its children with it; ``None`` where the recording does not say.

    What a trace reports of itself is taken for its own: its children's is added.

    Attributes:
        messages: Messages of the agent.
        tool_calls: Tool calls of the agent.
        tool_results: Results of the agent's calls of which it is known whether they are errors.
        tool_errors: Those that are.
        input_tokens: The trace's ``usage``, or else the sum of its messages', if each message of the agent has one. A
            greeting without one, before the user said anything, was not generated.
        output_tokens: Likewise.
        cost_usd: US dollars.
        seconds: See `elapsed`. Children are not added: they run while it runs.
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
    def of(cls, trace: Trace) -> "Effort":
        """Counts, and adds up."""
        messages = calls = results = errors = 0
        usages: list[Usage | None] = []
        family = [trace]
        for one in family:
            family += one.children
            each: list[Usage | None] = []
            greetings: int | None = None
            for message in one.messages:
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
            said = [*filter(None, each[:before]), *each[before:]]
            usages += said if one.usage is None else [one.usage]
        seconds = elapsed(trace)
        return cls(
            messages,
            calls,
            results,
            errors,
            _sum([usage.input_tokens if usage else None for usage in usages]),
            _sum([usage.output_tokens if usage else None for usage in usages]),
            _sum([one.cost_usd for one in family]),
            None if isinstance(seconds, str) else seconds,
        )

    @property
    def tokens(self) -> int | None:
        """Input and output together."""
        return _sum([self.input_tokens, self.output_tokens])

    @property
    def tool_error_rate(self) -> float | None:
        """The share of errors among the results of which it is known."""
        return self.tool_errors / self.tool_results if self.tool_results else None


def elapsed(trace: Trace) -> float | str:
    """Seconds from start to end; a text says why they are unknown.

    From ``started_at`` to ``ended_at``, or else from the first message to the last, instructions to the agent aside.
    """
    start, end = trace.started_at, trace.ended_at
    if start is None or end is None:
        spoken = [message for message in trace.messages if message.role not in {"system", "developer"}]
        start, end = (spoken[0].timestamp, spoken[-1].timestamp) if len(spoken) > 1 else (None, None)
    if start is None or end is None:
        return "the recording does not say when it started and ended, nor when its first and last message were sent"
    try:
        seconds = (end - start).total_seconds()
    except TypeError:
        return "of the times when it started and ended, one has a time zone and the other has none"
    return "it ended before it started, by its own times" if seconds < 0 else seconds


def handovers(trace: Trace) -> int | str:
    """Messages that pass between agents, at least one; a text says why their number is unknown.

    In a conversation, those of an agent that follow on another agent's. Between a conversation and each of its children,
    the task, and the answer if the child gave one.
    """
    passed = 0
    family = [trace]
    for one in family:
        family += one.children
        agents = [message.agent for message in one.messages if message.role == "assistant"]
        if None in agents and len(set(agents)) > 1:
            return "some messages of agents say which agent they are of, and others do not"
        passed += sum(agent != before for before, agent in pairwise(agents))
        passed += sum(1 if child.response is None else 2 for child in one.children)
    return passed or "the recording does not tell two agents apart"


def repeated_calls(trace: Trace) -> int:
    """Tool calls of the agent that an earlier one had made already, with equal arguments (`call_key`).

    Retries of failed calls included. Each child is looked at by itself, and its repeats are added.

    Raises:
        ValueError: An argument is nothing that JSON can hold.
    """
    calls = [made.call for made in trace.tool_calls()]
    names = {call.name for call in calls}
    repeats = 0 if len(names) == len(calls) else len(calls) - len(set(map(call_key, calls)))
    return repeats + sum(map(repeated_calls, trace.children))


def call_key(call: ToolCall) -> str:
    """A text that is the same for equal calls. Arguments that cannot be read are equal if their text is."""
    return canonical_json([call.name, call.args_raw if call.args_error else call.args])


def _sum(numbers: Sequence[Number | None]) -> Number | None:
    """The sum, if there is a number and each is known; one that cannot be, below 0 or without end, says nothing."""
    known = [number for number in numbers if number is not None and 0 <= number < _BEYOND_COUNTING]
    return sum(known[1:], known[0]) if known and len(known) == len(numbers) else None
