"""The expected and the actual calls of a sample, and how the arguments of each pair compare."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, product
from typing import NamedTuple

from judgekit.scorers.agents import agent_rows
from judgekit.scorers.tool_calls.argument_table import ArgumentTable, hashable_argument
from judgekit.scorers.tool_calls.arguments import (
    ABSENT,
    ArgComparison,
    ArgDifference,
    ArgMatch,
    ArgRules,
    are_plain,
    compare_arguments,
)
from judgekit.scorers.tool_calls.comparers import TextComparison, TextFunction, text_similarities
from judgekit.scorers.tool_calls.matchers import KEY_BYTES, contains_matcher
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import Scorer
from judgekit.threads import run_in_thread
from judgekit.traces.behavior import Agent, agents
from judgekit.traces.equality import canonical_json, json_bytes, same_json
from judgekit.traces.message import JsonObject, Requestor
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample
from judgekit.traces.trace import ActualCall, Trace
from judgekit.traces.tree import Chronology, MessageNumber, branches, conversation_path

_MANY_PAIRS = 4_000
"""The number of pairs from which arguments are compared as a table."""
_UNORDERED = "the order of calls by sub-agents that worked in parallel is not compared: the recording does not tell it"


class Selection(NamedTuple):
    """The options that select the calls to compare."""

    requestor: Requestor = "assistant"
    include_failed: bool = True
    include_delegations: bool = True

    def calls(self, trace: Trace) -> Sequence[ActualCall]:
        """Return the selected calls of a trace."""
        if self.include_failed and self.include_delegations:
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

    Comparisons raise a ``ValueError`` as `compare_arguments` does.

    Attributes:
        expected: The expected calls of the selected side.
        actual: The selected actual calls.
        names: The tools of the expected and of the actual calls.
        blocks: The number of each actual call's block, if there are sub-agents: the order of the calls in a block is
            unknown.
    """

    def __init__(self, rules: ToolMatch, sample: Sample, selection: Selection) -> None:
        trace = sample.trace
        self.rules = rules
        self.sample = sample
        self.selection = selection
        self.expected = [call for call in sample.reference_tool_calls or () if call.requestor == selection.requestor]
        self.actual = selection.calls(trace)
        self.names = [call.name for call in self.expected], [actual.call.name for actual in self.actual]
        self.blocks = _blocks(trace, self.actual, rules) if trace.children else None

    def agents(self) -> Mapping[Agent, JsonObject]:
        """A row with the number of calls of each agent, if there are several; see `agent_rows`."""
        trace = self.sample.trace
        is_alone = self.selection.requestor == "user" or len(agents(trace)) < 2
        return {} if is_alone else agent_rows(trace, self.selection.outcomes(trace))

    @property
    def have_same_names(self) -> bool:
        """Whether each actual call has the name of the expected one at its position, or at one in the same block."""
        expected, actual = self.names
        if expected == actual or self.blocks is None or len(expected) != len(actual):
            return expected == actual
        return sorted(zip(self.blocks, expected, strict=True)) == sorted(zip(self.blocks, actual, strict=True))

    @property
    def have_same_tools(self) -> bool:
        """Whether each tool was called as often as expected."""
        expected, actual = self.names
        return sorted(expected) == sorted(actual)

    @cached_property
    def are_equal(self) -> bool:
        """Whether each actual call is the expected one at its position, if turns matter in the same turn."""
        expected, actual = self.names
        if expected != actual:
            return False
        if self.rules.within == "turn":
            turns = zip(self.expected, self.actual, strict=True)
            if any(call.turn != actual.turn for call, actual in turns):
                return False
        is_plain = not self.rules.tools and are_plain(self.rules.args)
        if is_plain and all(call.compare_args is None and call.agent is None for call in self.expected):
            calls = [actual.call for actual in self.actual]
            written = json_bytes([call.args for call in self.expected])  # all at once
            if KEY_BYTES not in written and written == json_bytes([call.args for call in calls]):
                return all(call.args_error is None for call in calls)
        positions = range(len(actual))
        return all(map(self.agree, positions, positions))

    def agree(self, expected: int, actual: int) -> bool:
        """Return whether the arguments of two calls of the same tool fully agree."""
        if not self.is_plain[expected]:
            return self.compare(expected, actual).score == 1
        wanted, call = self.expected[expected].args, self.actual[actual].call
        return call.args_error is None and (json_bytes(wanted) == json_bytes(call.args) or same_json(wanted, call.args))

    def score(self, expected: int, actual: int) -> float:
        """Return the score of the arguments of two calls of the same tool."""
        if not self.is_plain[expected]:
            return self.compare(expected, actual).score
        args, call = self.expected[expected].args, self.actual[actual].call
        if call.args_error is not None:
            return 0.0
        wanted, received = self._arguments
        names = args.keys() | call.args.keys()
        return len(wanted[expected] & received[actual]) / len(names) if names else 1.0

    @cached_property
    def _arguments(self) -> tuple[Sequence[set[Hashable]], Sequence[set[Hashable]]]:
        """The names and values of the arguments of each expected and each actual call."""
        expected, actual = (
            [{hashable_argument(*pair) for pair in call.args.items()} for call in side]
            for side in (self.expected, [actual.call for actual in self.actual])
        )
        return expected, actual

    def compare(self, expected: int, actual: int) -> ArgComparison:
        """Return the comparison of the arguments of two calls of the same tool."""
        wanted, placed = self.expected[expected], self.actual[actual]
        if wanted.agent not in (None, placed.agent):
            difference = ArgDifference("agent", wanted.agent, ABSENT if placed.agent is None else placed.agent)
            return ArgComparison(0.0, (difference,))
        rules = self.rules_by_tool[wanted.name]
        tools: Sequence[ToolDefinition] = ()
        if isinstance(rules, ArgMatch) and rules.mode == "schema":
            tools = self._tools.get(conversation_path(placed.message), ())
        return compare_arguments(rules, wanted, placed.call, tools)

    @cached_property
    def is_plain(self) -> Sequence[bool]:
        """Whether the arguments of each expected call are simply compared as typed JSON."""
        rules = self.rules_by_tool
        return [
            call.compare_args is None
            and call.agent is None
            and are_plain(rules[call.name])
            and (KEY_BYTES not in json_bytes(call.args) or not contains_matcher(call.args))
            for call in self.expected
        ]

    def key(self, actual: int) -> str | None:
        """Return a text that equal arguments share; ``None`` if they could not be read."""
        call = self.actual[actual].call
        return None if call.args_error is not None else canonical_json(call.args)

    def by_tool(self, expected: Iterable[int], actual: Iterable[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Return the calls of each tool that was both expected and called."""
        wanted: dict[str, list[int]] = {}
        received: dict[str, list[int]] = {}
        for index in expected:
            wanted.setdefault(self.expected[index].name, []).append(index)
        for index in actual:
            received.setdefault(self.actual[index].call.name, []).append(index)
        return ((calls, received[tool]) for tool, calls in wanted.items() if tool in received)

    def table(self, expected: Sequence[int], actual: Sequence[int]) -> ArgumentTable | None:
        """Return a table of the arguments of many calls of one tool; ``None`` for few, or if they are not plain."""
        if len(expected) * len(actual) < _MANY_PAIRS or not all(self.is_plain[row] for row in expected):
            return None
        calls = [self.actual[column].call for column in actual]
        rows = [self.expected[row].args for row in expected]
        return ArgumentTable(rows, [call.args if call.args_error is None else None for call in calls])

    @property
    def warnings(self) -> Sequence[str]:
        """A warning if the order of some calls is unknown and matters."""
        blocks = self.blocks
        if blocks is None or self.rules.order == "any":
            return ()
        agents = {(block, conversation_path(call.message)) for block, call in zip(blocks, self.actual, strict=True)}
        return () if len(agents) == len({block for block, _ in agents}) else (_UNORDERED,)

    async def with_texts_compared(self) -> "tuple[Calls, Collection[str]]":
        """Return the calls with the results of text scorers in place of these, because pairing is synchronous.

        The scorers' warnings are returned too.
        """
        questions: dict[TextComparison, Scorer] = {}

        def noting(scorer: Scorer) -> TextFunction:
            def note(expected: str, actual: str) -> float:
                questions[id(scorer), expected, actual] = scorer
                return 0.0

            return note

        trial = self._with_texts(noting)

        def compare() -> None:
            if not trial.are_equal:
                for expected, actual in self.by_tool(range(len(self.expected)), range(len(self.actual))):
                    for pair in product(expected, actual):
                        trial.compare(*pair)

        await run_in_thread(compare)
        similarity, warnings = await text_similarities(questions)
        compared = self._with_texts(lambda scorer: lambda expected, actual: similarity[id(scorer), expected, actual])
        return compared, warnings

    def _with_texts(self, function: Callable[[Scorer], TextFunction]) -> "Calls":
        """Return the calls with functions in place of the scorers that compare texts."""
        by_tool = {
            tool: rule.model_copy(update={"text": function(scorer)})
            for tool, rule in self.rules_by_tool.items()
            if isinstance(rule, ArgMatch) and isinstance(scorer := rule.text, Scorer)
        }
        rules = self.rules.model_copy(update={"tools": {**self.rules.tools, **by_tool}})
        return Calls(rules, self.sample, self.selection)

    @cached_property
    def _tools(self) -> Mapping[str, Sequence[ToolDefinition]]:
        """The tool definitions of each agent, by the path of its conversation."""
        return {branch.path: branch.trace.tools for branch in branches(self.sample.trace)}

    @cached_property
    def rules_by_tool(self) -> dict[str, ArgRules]:
        """The rules for the arguments of each expected tool."""
        return {name: self.rules.arg_rules_for(name) for name in dict.fromkeys(self.names[0])}


def _blocks(trace: Trace, calls: Sequence[ActualCall], rules: ToolMatch) -> Sequence[int]:
    """Return the number of each call's block: calls between which there are some of unknown order share a block.

    These are the calls of sub-agents that one message started, or an unknown one, unless their times order them; and
    the calls of one message, unless parallel calls have an order.
    """
    spans: dict[MessageNumber, tuple[int, int]] = {}
    for at, actual in enumerate(calls):
        within = [actual.message] if rules.parallel == "unordered" else []
        path = conversation_path(actual.message)
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
            elif not all(chronology.precedes(first, second) for first, second in pairwise(firsts)):
                unordered.append((of_each[0][0], of_each[-1][1]))
    blocks = list(range(len(calls)))
    for first, last in sorted(unordered, key=lambda span: (span[0], -span[1])):
        blocks[first : last + 1] = [blocks[first]] * (last + 1 - first)
    return blocks
