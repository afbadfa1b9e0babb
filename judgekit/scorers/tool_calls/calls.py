"""The expected and the actual calls of a sample, and how the arguments of each pair compare."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar

from judgekit.scorers.agents import agent_rows
from judgekit.scorers.tool_calls.arguments import (
    ABSENT,
    ArgComparison,
    ArgDifference,
    ArgRules,
    are_plain,
    compare_arguments,
)
from judgekit.scorers.tool_calls.matchers import KEY_BYTES, contains_matcher
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.behavior import Agent, agents
from judgekit.traces.equality import canonical_json, json_bytes, same_json
from judgekit.traces.message import JsonObject, Requestor
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample
from judgekit.traces.trace import ActualCall, Trace
from judgekit.traces.tree import Chronology, MessageNumber, branches, conversation_path

_Value = TypeVar("_Value")
_MANY_PAIRS = 100
"""The number of pairs of calls from which it is faster to compare their arguments as sets."""


class ArgItems(NamedTuple):
    """Arguments as sets for fast comparison: equal sets mean equal arguments."""

    values: frozenset[tuple[str, str]]
    names: frozenset[str]

    @classmethod
    def of(cls, args: JsonObject) -> "ArgItems":
        """Return a call's arguments as sets."""
        return cls(frozenset((name, canonical_json(value)) for name, value in args.items()), frozenset(args))


class _Memo(dict[int, _Value]):
    """Values by position, computed on first access."""

    def __init__(self, compute: Callable[[int], _Value]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, at: int) -> _Value:
        value = self[at] = self.compute(at)
        return value


class Selection(NamedTuple):
    """The options that select the calls to compare.

    Attributes:
        requestor: The side that made them.
        include_failed: Whether calls that resulted in an error count.
        include_delegations: Whether calls that started a sub-agent count.
    """

    requestor: Requestor = "assistant"
    include_failed: bool = True
    include_delegations: bool = True

    @property
    def is_everything(self) -> bool:
        """Whether all calls of the side are selected."""
        return self.include_failed and self.include_delegations

    def calls(self, trace: Trace) -> Sequence[ActualCall]:
        """Return the selected calls of a trace."""
        if self.is_everything:
            return trace.tool_calls(self.requestor)
        return [call for call, _ in self.outcomes(trace)]

    def outcomes(self, trace: Trace) -> list[tuple[ActualCall, bool | None]]:
        """Return the selected calls of a trace, each with whether it failed."""
        return [
            (call, failed)
            for call, failed in zip(trace.tool_calls(self.requestor), trace.call_errors(self.requestor), strict=True)
            if (self.include_failed or not failed) and (self.include_delegations or not call.delegates)
        ]


class Calls:
    """Expected and actual calls, identified by their positions from 0.

    Comparisons are made on first access and kept. They raise a ``ValueError`` as `compare_arguments` does.

    Attributes:
        expected: The expected calls of the selected side.
        made: The selected actual calls.
        blocks: The number of each actual call's block, if there are sub-agents: the order of the calls in a block is
            unknown.

    Args:
        rules: The rules for arguments, ``args`` and ``tools``, and whether parallel calls have an order.
        sample: The sample.
        selection: Which calls are compared.
    """

    def __init__(self, rules: ToolMatch, sample: Sample, selection: Selection) -> None:
        side, trace = selection.requestor, sample.trace
        self.rules = rules
        self.sample = sample
        self.selection = selection
        self.expected = [call for call in sample.reference_tool_calls or () if call.requestor == side]
        self.blocks: Sequence[int] | None = None
        if trace.children or not selection.is_everything:
            self.made = [one.call for one in self.actual]
            self.blocks = (
                _blocks(trace, self.actual, parallel=rules.parallel == "unordered") if trace.children else None
            )
        else:
            self.made = trace.own_calls(side)
        self._are_few = len(self.expected) * len(self.made) < _MANY_PAIRS
        self._are_named_alike = [call.name for call in self.expected] == [call.name for call in self.made]
        self._compared: dict[tuple[int, int], ArgComparison] = {}

    @cached_property
    def actual(self) -> Sequence[ActualCall]:
        """The actual calls with their places."""
        return self.selection.calls(self.sample.trace)

    @cached_property
    def agents(self) -> Mapping[Agent, JsonObject]:
        """A row with the number of calls of each agent, if there are several; see `agent_rows`."""
        trace = self.sample.trace
        is_alone = self.selection.requestor == "user" or len(agents(trace)) < 2
        return {} if is_alone else agent_rows(trace, self.selection.outcomes(trace))

    @property
    def have_same_names(self) -> bool:
        """Whether each actual call has the name of the expected one at its position, or at one in the same block."""
        if self._are_named_alike or self.blocks is None or len(self.expected) != len(self.made):
            return self._are_named_alike
        wanted = sorted((block, call.name) for block, call in zip(self.blocks, self.expected, strict=True))
        return wanted == sorted((block, made.name) for block, made in zip(self.blocks, self.made, strict=True))

    @property
    def have_same_tools(self) -> bool:
        """Whether each tool was called as often as expected."""
        return sorted(call.name for call in self.expected) == sorted(made.name for made in self.made)

    @cached_property
    def are_equal(self) -> bool:
        """Whether each actual call is the expected one at its position."""
        positions = range(len(self.made))
        return self._are_named_alike and all(map(self.agree, positions, positions))

    def is_equal(self, index: int) -> bool:
        """Return whether the actual call at a position agrees with the expected one there."""
        return self.expected[index].name == self.made[index].name and self.agree(index, index)

    def agree(self, expected: int, actual: int) -> bool:
        """Return whether the arguments of two calls of the same tool fully agree."""
        wanted, found = self._bytes[0][expected], self._bytes[1][actual]
        if wanted is None:
            return self.compare(expected, actual).score == 1
        return wanted == found or (
            found is not None and same_json(self.expected[expected].args, self.made[actual].args)
        )

    def compare(self, expected: int, actual: int) -> ArgComparison:
        """Return the comparison of the arguments of two calls of the same tool."""
        known = self._compared.get((expected, actual))
        if known is None:
            wanted = self.expected[expected]
            rules = self.rules_by_tool[wanted.name]
            made = self.actual[actual]
            if wanted.agent not in (None, made.agent):
                difference = ArgDifference("agent", wanted.agent, ABSENT if made.agent is None else made.agent)
                known = ArgComparison(0.0, (difference,))
            else:
                defined = self._tools.get(conversation_path(made.message), ())
                known = compare_arguments(rules, wanted, made.call, defined)
            self._compared[expected, actual] = known
        return known

    def score(self, expected: int, actual: int) -> float:
        """Return the score of the arguments of two calls of the same tool."""
        written, made = self._bytes
        one, other = written[expected], made[actual]
        if one is None:
            return self.compare(expected, actual).score
        if one == other:
            return 1.0
        if self._are_few:
            return 0.0 if other is None else _equal_share(self.expected[expected].args, self.made[actual].args)
        wanted, found = self.expected_items[expected], self.actual_items[actual]
        if wanted is None or found is None:
            return 0.0
        return len(wanted.values & found.values) / len(wanted.names | found.names)

    @cached_property
    def _bytes(self) -> tuple[list[bytes | None], list[bytes | None]]:
        """The arguments of each expected and actual call as bytes.

        ``None`` unless the expected ones are simply compared as typed JSON, and if the actual ones could not be read.
        """
        are_all_plain = self.rules.is_plain
        return (
            [
                written
                if call.compare_args is None
                and call.agent is None
                and (are_all_plain or are_plain(self.rules_by_tool[call.name]))
                and (KEY_BYTES not in (written := json_bytes(call.args)) or not contains_matcher(call.args))
                else None
                for call in self.expected
            ],
            [json_bytes(made.args) if made.args_error is None else None for made in self.made],
        )

    # The functions do not refer to self, so no cycle keeps a sample's calls in memory.

    @cached_property
    def expected_items(self) -> Mapping[int, ArgItems | None]:
        """The arguments of each expected call; ``None`` unless they are simply compared as typed JSON."""
        expected, (written, _) = self.expected, self._bytes
        return _Memo(lambda at: None if written[at] is None else ArgItems.of(expected[at].args))

    @cached_property
    def actual_items(self) -> Mapping[int, ArgItems | None]:
        """The arguments of each actual call; ``None`` if they could not be read."""
        made, (_, written) = self.made, self._bytes
        return _Memo(lambda at: None if written[at] is None else ArgItems.of(made[at].args))

    @cached_property
    def _tools(self) -> Mapping[str, Sequence[ToolDefinition]]:
        """The tool definitions of each agent, by the path of its conversation."""
        return {branch.path: branch.trace.tools for branch in branches(self.sample.trace)}

    @cached_property
    def rules_by_tool(self) -> dict[str, ArgRules]:
        """The rules for the arguments of each expected tool."""
        return {call.name: self.rules.arg_rules_for(call.name) for call in self.expected}


def _blocks(trace: Trace, calls: Sequence[ActualCall], *, parallel: bool) -> Sequence[int]:
    """Return the number of each call's block: calls between which there are some of unknown order share a block.

    These are the calls of sub-agents that one message started, or an unknown one, unless their times order them; with
    ``parallel``, also the calls of one message.
    """
    spans: dict[MessageNumber, tuple[int, int]] = {}
    for at, made in enumerate(calls):
        within = [made.message] if parallel else []
        path = conversation_path(made.message)
        while path:
            within.append(path)
            path = path.rpartition(".")[0].rpartition(".")[0]
        for number in (*within, ""):
            spans[number] = spans.get(number, (at, at))[0], at
    unordered = [
        span for number, span in spans.items() if isinstance(number, int) or (number.count(".") % 2 == 0 and number)
    ]
    chronology = Chronology(trace)
    for branch in branches(trace):
        for index, started in branch.started.items():
            of_each = [spans[child.path] for child in started if child.path in spans]
            firsts = [calls[first].message for first, _ in of_each]
            if firsts and index < 0:
                unordered.append(spans[branch.path])
            elif not all(chronology.precedes(one, other) for one, other in pairwise(firsts)):
                unordered.append((of_each[0][0], of_each[-1][1]))
    blocks = list(range(len(calls)))
    for first, last in sorted(unordered, key=lambda span: (span[0], -span[1])):
        blocks[first : last + 1] = [blocks[first]] * (last + 1 - first)
    return blocks


def _equal_share(wanted: JsonObject, found: JsonObject) -> float:
    """Return the share of arguments with equal values among those that either side has."""
    equal = sum([same_json(value, found[name]) for name, value in wanted.items() if name in found])
    return equal / len(wanted.keys() | found.keys())
