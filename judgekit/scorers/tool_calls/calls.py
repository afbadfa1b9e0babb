"""The expected and the actual calls of a sample, and how the arguments of each pair compare."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from judgekit.scorers.tool_calls.arguments import ArgComparison, ArgRules, are_plain, compare_arguments
from judgekit.scorers.tool_calls.matchers import KEY_BYTES, contains_matcher
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.traces.equality import canonical_json, json_bytes, same_json
from judgekit.traces.message import JsonObject, Requestor
from judgekit.traces.pairing import call_errors
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import ActualCall, ToolDefinition

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


class Calls:
    """Expected and actual calls, identified by their positions from 0.

    Comparisons are made on first access and kept. They raise a ``ValueError`` as `compare_arguments` does.

    Args:
        rules: The rules for arguments, ``args`` and ``tools``; the others are not used.
        expected: The expected calls.
        actual: The actual calls.
        definitions: The tool definitions of the trace.
    """

    def __init__(
        self,
        rules: ToolMatch,
        expected: Sequence[ExpectedCall],
        actual: Sequence[ActualCall],
        definitions: Sequence[ToolDefinition] = (),
    ) -> None:
        self.rules = rules
        self.expected = expected
        self.actual = actual
        self.definitions = definitions
        self.have_same_names = [call.name for call in expected] == [call.name for _, _, call in actual]
        """Whether each actual call has the name of the expected one at its position."""
        self._compared: dict[tuple[int, int], ArgComparison] = {}

    @classmethod
    def of(cls, rules: ToolMatch, sample: Sample, requestor: Requestor, *, include_failed: bool) -> "Calls":
        """Return one side's calls in a sample with ``reference_tool_calls``.

        ``include_failed=False`` leaves out calls that resulted in an error.
        """
        expected = [call for call in sample.reference_tool_calls or () if call.requestor == requestor]
        made: Sequence[ActualCall] = sample.trace.tool_calls(requestor)
        if not include_failed:
            errors = call_errors(sample.trace.messages, requestor)
            made = [call for call, error in zip(made, errors, strict=True) if not error]
        return cls(rules, expected, made, sample.trace.tools)

    @property
    def have_same_tools(self) -> bool:
        """Whether each tool was called as often as expected."""
        return sorted(call.name for call in self.expected) == sorted(call.name for _, _, call in self.actual)

    @cached_property
    def are_equal(self) -> bool:
        """Whether each actual call agrees with the expected one at its position."""
        if not self.have_same_names:
            return False
        if self.rules.is_plain:  # most calls are equal, byte by byte, and neither compare_args nor args_error is set
            wanted = json_bytes([(call.args, call.compare_args) for call in self.expected])
            found = json_bytes([(call.args, call.args_error) for _, _, call in self.actual])
            if wanted == found and KEY_BYTES not in wanted:
                return True
        positions = range(len(self.actual))
        return all(map(self.agree, positions, positions))

    def is_equal(self, index: int) -> bool:
        """Return whether the actual call at a position agrees with the expected one there."""
        return self.expected[index].name == self.actual[index].call.name and self.agree(index, index)

    def agree(self, expected: int, actual: int) -> bool:
        """Return whether the arguments of two calls of the same tool fully agree."""
        wanted, found = self._bytes[0][expected], self._bytes[1][actual]
        if wanted is None:
            return self.compare(expected, actual).score == 1
        return wanted == found or (
            found is not None and same_json(self.expected[expected].args, self.actual[actual].call.args)
        )

    def compare(self, expected: int, actual: int) -> ArgComparison:
        """Return the comparison of the arguments of two calls of the same tool."""
        known = self._compared.get((expected, actual))
        if known is None:
            wanted = self.expected[expected]
            rules = self.rules_by_tool[wanted.name]
            known = compare_arguments(rules, wanted, self.actual[actual].call, self.definitions)
            self._compared[expected, actual] = known
        return known

    def score(self, expected: int, actual: int) -> float:
        """Return the score of the arguments of two calls of the same tool."""
        written, made = self._bytes[0][expected], self._bytes[1][actual]
        if written is None:
            return self.compare(expected, actual).score
        if written == made:
            return 1.0
        if made is None:
            return 0.0
        if len(self.expected) * len(self.actual) < _MANY_PAIRS:
            return _equal_share(self.expected[expected].args, self.actual[actual].call.args)
        wanted, found = self.expected_items[expected], self.actual_items[actual]
        if wanted is None or found is None:
            return 0.0
        return 1.0 if wanted == found else len(wanted.values & found.values) / len(wanted.names | found.names)

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
                and (are_all_plain or are_plain(self.rules_by_tool[call.name]))
                and (KEY_BYTES not in (written := json_bytes(call.args)) or not contains_matcher(call.args))
                else None
                for call in self.expected
            ],
            [json_bytes(call.args) if call.args_error is None else None for _, _, call in self.actual],
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
        actual, (_, written) = self.actual, self._bytes
        return _Memo(lambda at: None if written[at] is None else ArgItems.of(actual[at].call.args))

    @cached_property
    def rules_by_tool(self) -> dict[str, ArgRules]:
        """The rules for the arguments of each expected tool."""
        return {call.name: self.rules.arg_rules_for(call.name) for call in self.expected}


def _equal_share(wanted: JsonObject, found: JsonObject) -> float:
    """Return the share of arguments with equal values among those that either side has."""
    equal = sum([same_json(value, found[name]) for name, value in wanted.items() if name in found])
    return equal / len(wanted.keys() | found.keys())
