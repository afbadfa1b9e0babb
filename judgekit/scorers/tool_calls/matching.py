"""Which call that was made answers which call that was expected."""

from collections import deque
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

from pydantic import JsonValue

from judgekit.errors import listed
from judgekit.scorers.tool_calls.arguments import Comparison, compare_arguments
from judgekit.traces.message import JsonObject, ToolCall
from judgekit.traces.rendering import call_text, compact_json
from judgekit.traces.sample import ExpectedCall

Made: TypeAlias = tuple[int, ToolCall]
"""The number of a message, and a call in it."""


class Pair(NamedTuple):
    """Positions of an expected call and of the call made for it, and how their arguments compare."""

    expected: int
    made: int
    arguments: Comparison


class Match(NamedTuple):
    """Calls expected and made, the pairs among them, and the positions of those that are in no pair."""

    expected: Sequence[ExpectedCall]
    made: Sequence[Made]
    pairs: tuple[Pair, ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]

    @classmethod
    def of(cls, expected: Sequence[ExpectedCall], made: Sequence[Made], pairs: Sequence[Pair]) -> "Match":
        """Finds what is in no pair."""
        lefts, rights = {pair.expected for pair in pairs}, {pair.made for pair in pairs}
        missing = tuple(index for index in range(len(expected)) if index not in lefts)
        extra = tuple(index for index in range(len(made)) if index not in rights)
        return cls(expected, made, tuple(pairs), missing, extra)

    def details(self) -> dict[str, JsonValue]:
        """All of it as JSON: ``matched``, ``missing`` and ``extra``; messages are numbered from 1, calls from 0."""
        return {
            "matched": [self._pair_as_json(pair) for pair in self.pairs],
            "missing": [{"expected": index, **_call_as_json(self.expected[index])} for index in self.missing],
            "extra": [
                {"message": message, **_call_as_json(call)}
                for message, call in (self.made[index] for index in self.extra)
            ],
        }

    def _pair_as_json(self, pair: Pair) -> JsonObject:
        message, call = self.made[pair.made]
        shown: JsonObject = {"expected": pair.expected, "message": message, "name": call.name}
        if pair.arguments.different:
            shown["different"] = list(pair.arguments.different)
        if call.args_error is not None:
            shown["args_error"] = call.args_error
        return shown

    def in_words(self) -> str:
        """What did not match, call by call; empty if all did."""
        wrong = [self._pair_in_words(pair) for pair in self.pairs if pair.arguments.different]
        missing: list[str] = []
        extra = list(self.extra)
        for index in self.missing:
            expected = self.expected[index]
            near = next((made for made in extra if self.made[made][1].name == expected.name), None)
            if near is None:
                missing.append(f"{_short(expected)} was expected and not made")
            else:
                extra.remove(near)
                wrong.append(self._pair_in_words(Pair(index, near, compare_arguments(expected, self.made[near][1]))))
        surplus = [
            f"{_short(call)} in message {number} was not expected" for number, call in map(self.made.__getitem__, extra)
        ]
        return listed(wrong + missing + surplus, 10)

    def _pair_in_words(self, pair: Pair) -> str:
        expected = self.expected[pair.expected]
        message, call = self.made[pair.made]
        where = f"{call.name} in message {message}"
        if call.args_error is not None:
            return f"{where} has arguments that cannot be read ({call.args_error})"
        differences = ", ".join(
            f"{name}: expected {_value(expected.args, name)}, found {_value(call.args, name)}"
            for name in pair.arguments.different
        )
        return f"{where} differs in {differences}"


def pair_in_sequence(expected: Sequence[ExpectedCall], made: Sequence[Made]) -> Match:
    """Pairs calls of one name that stand in the same order, as many as a longest run of matches allows."""
    names, found = [call.name for call in expected], [call.name for _, call in made]
    if names == found:
        aligned = [(index, index) for index in range(len(names))]
    else:
        blocks = SequenceMatcher(None, names, found, autojunk=False).get_matching_blocks()
        aligned = [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]
    pairs = [Pair(left, right, compare_arguments(expected[left], made[right][1])) for left, right in aligned]
    return Match.of(expected, made, pairs)


def pair_equal(expected: Sequence[ExpectedCall], made: Sequence[Made]) -> Match:
    """Pairs calls with equal names and arguments, in any order: as many pairs as there can be.

    ``compare_args`` lets one call match several expected ones, so that taking the first match may cost a later one. The
    pairs are therefore moved along augmenting paths (a maximum matching; Kuhn 1955, Berge 1957).
    """
    matches = [
        [index for index, (_, call) in enumerate(made) if call.name == one.name and _equal(one, call)]
        for one in expected
    ]
    pairs = [Pair(left, right, Comparison((), ())) for left, right in sorted(_maximum_matching(matches).items())]
    return Match.of(expected, made, pairs)


def _equal(expected: ExpectedCall, made: ToolCall) -> bool:
    return not compare_arguments(expected, made).different


def _maximum_matching(matches: Sequence[Sequence[int]]) -> dict[int, int]:
    """Gives as many of the left as possible a right of their own, from those that match it."""
    right_of: dict[int, int] = {}
    left_of: dict[int, int] = {}
    for start in range(len(matches)):
        reached_from: dict[int, int] = {}
        waiting = deque([start])
        while waiting:
            left = waiting.popleft()
            for right in matches[left]:
                if right not in reached_from:
                    reached_from[right] = left
                    if right in left_of:
                        waiting.append(left_of[right])
                    else:
                        waiting.clear()
                        _shift(right, reached_from, right_of, left_of)
                        break
    return right_of


def _shift(free: int, reached_from: dict[int, int], right_of: dict[int, int], left_of: dict[int, int]) -> None:
    """Moves every left on the path to the free right one step along."""
    right: int | None = free
    while right is not None:
        left = reached_from[right]
        left_of[right] = left
        right_of[left], right = right, right_of.get(left)


def _call_as_json(call: ToolCall) -> JsonObject:
    if call.args_error is None:
        return {"name": call.name, "args": call.args}
    return {"name": call.name, "args_raw": call.args_raw, "args_error": call.args_error}


def _value(args: JsonObject, name: str) -> str:
    return _cut(compact_json(args[name])) if name in args else "nothing"


def _short(call: ToolCall) -> str:
    return _cut(call_text(call))


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."
