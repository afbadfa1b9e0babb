"""Pairing of actual tool calls with expected ones."""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise, product
from math import fsum
from typing import NamedTuple

from judgekit.errors import join_limited
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.assignment import best_in_order, best_in_place, best_pairs
from judgekit.scorers.tool_calls.calls import ArgItems, Calls, Selection
from judgekit.scorers.tool_calls.comparers import TextComparison, TextFunction, text_similarities
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import NO_CONVERSATION, Scorer
from judgekit.threads import run_in_thread
from judgekit.traces.rendering import quoted_name
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import ActualCall
from judgekit.traces.tree import conversation_path

_FEW_PAIRS = 500
"""The number of pairs of expected and actual calls that are compared within 5 ms."""


_UNORDERED = "the order of calls by sub-agents that worked in parallel is not compared: the recording does not tell it"


class CallPair(NamedTuple):
    """The positions of an expected call and the call made for it, and the credit for the pair, in [0, 1]."""

    expected: int
    actual: int
    credit: float


@dataclass  # not frozen, which takes three times as long to create
class Match:
    """The best pairing of expected and actual calls.

    Properties are computed on first access, and raise a ``ValueError`` as `compare_arguments` does.
    """

    rules: ToolMatch
    calls: Calls
    warnings: Collection[str] = ()
    """The warnings of the scorers that compare texts, and on calls of unknown order."""

    @classmethod
    def of(cls, rules: ToolMatch, sample: Sample, selection: Selection) -> "Match | str":
        """Return the match of the selected calls of a sample, or the reason why they cannot be matched."""
        if sample.reference_tool_calls is None:
            return "the sample has no reference_tool_calls"
        if not sample.trace.messages:
            return NO_CONVERSATION
        calls = Calls(rules, sample, selection)
        if rules.within == "turn" and (
            lost := [quoted_name(call.name) for call in calls.expected if call.turn is None]
        ):
            return f"calls are compared by turn, but expected calls have no turn: {join_limited(lost, 5, ', ')}"
        return cls(rules, calls, _unordered_warning(calls, rules))

    @property
    def expected(self) -> Sequence[ExpectedCall]:
        """The expected calls, identified by their positions from 0."""
        return self.calls.expected

    @property
    def actual(self) -> Sequence[ActualCall]:
        """The actual calls, identified by their positions from 0."""
        return self.calls.actual

    async def with_texts_compared(self) -> "Match":
        """Return the match with the results of text scorers in place of these, because pairing is synchronous."""
        asked: dict[TextComparison, Scorer] = {}

        def noting(scorer: Scorer) -> TextFunction:
            def note(expected: str, actual: str) -> float:
                asked[id(scorer), expected, actual] = scorer
                return 0.0

            return note

        trial = self._with_texts(noting)

        def compare() -> None:
            if not trial.is_exact:
                for wanted, found in self._by_tool(range(len(self.expected)), range(len(self.calls.made))):
                    for one, other in product(wanted, found):
                        trial.calls.compare(one, other)

        await run_in_thread(compare)
        similarity, warnings = await text_similarities(asked)
        known = self._with_texts(lambda scorer: lambda expected, made: similarity[id(scorer), expected, made])
        return replace(known, warnings=[*self.warnings, *warnings])

    def _with_texts(self, function: Callable[[Scorer], TextFunction]) -> "Match":
        """Return the match with functions in place of the scorers that compare texts."""
        rules = {
            tool: rule.model_copy(update={"text": function(scorer)})
            for tool, rule in self.calls.rules_by_tool.items()
            if isinstance(rule, ArgMatch) and (scorer := rule.text_scorer) is not None
        }
        known = self.rules.model_copy(update={"tools": {**self.rules.tools, **rules}})
        return Match(known, Calls(known, self.calls.sample, self.calls.selection))

    @property
    def is_large(self) -> bool:
        """Whether pairing may take more than 5 ms: there are many pairs, or functions compare arguments."""
        return self.rules.calls_functions or len(self.calls.expected) * len(self.calls.made) > _FEW_PAIRS

    @cached_property
    def tp(self) -> float:
        """The total credit of all pairs."""
        return fsum([pair.credit for pair in self.pairs])

    @property
    def fp(self) -> float:
        """The number of calls made beyond TP, if extra calls are forbidden."""
        return len(self.calls.made) - self.tp if self.rules.extra == "forbid" else 0.0

    @property
    def fn(self) -> float:
        """The number of calls expected beyond TP, if missing calls are forbidden."""
        return len(self.expected) - self.tp if self.rules.missing == "forbid" else 0.0

    @property
    def precision(self) -> float | None:
        """TP / (TP + FP); ``None`` for 0 / 0."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """TP / (TP + FN); ``None`` for 0 / 0."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float | None:
        """2 TP / (2 TP + FP + FN); ``None`` for 0 / 0."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def value(self) -> float:
        """The value according to ``how.credit``, in [0, 1]."""
        if self.is_exact:
            return 1.0
        credit = self.rules.credit
        ratio = None if credit == "all_or_nothing" else getattr(self, credit)
        return float(not self.fp + self.fn) if ratio is None else ratio

    @cached_property
    def pairs(self) -> Sequence[CallPair]:
        """The pairs with the greatest total credit among those that the order allows; each has some credit."""
        if self.is_exact:
            return [CallPair(index, index, 1.0) for index in range(len(self.calls.made))]
        pairs: list[CallPair] = []
        credit = self.credit
        for expected, actual in self._parts():
            is_free = self.rules.order == "any"
            found = self.unordered_pairs(expected, actual, credit) if is_free else self._ordered_pairs(expected, actual)
            for one, other in found:
                if earned := credit(one, other):
                    pairs.append(CallPair(one, other, earned))
        return sorted(pairs)

    @property
    def is_exact(self) -> bool:
        """Whether each actual call is the expected one at its position."""
        if self.rules.within == "conversation":
            return self.calls.are_equal
        return len(self.expected) == len(self.calls.made) and all(
            self.same_turn(index, index) and self.calls.is_equal(index) for index in range(len(self.calls.made))
        )

    def same_turn(self, expected: int, actual: int) -> bool:
        """Return whether two calls belong to the same turn, if turns matter."""
        return self.rules.within != "turn" or self.expected[expected].turn == self.actual[actual].turn

    @property
    def credit(self) -> Callable[[int, int], float]:
        """The function that returns the credit for a pair of calls of the same tool, in [0, 1]."""
        return self.calls.score if self.rules.args_credit == "fraction" else self.calls.agree

    def _parts(self) -> Iterable[tuple[Sequence[int], Sequence[int]]]:
        """Return the positions of calls that may be paired: all, or turn by turn."""
        if self.rules.within == "conversation":
            return [(range(len(self.expected)), range(len(self.calls.made)))]
        return (
            (
                [index for index, call in enumerate(self.expected) if call.turn == turn],
                [index for index, call in enumerate(self.actual) if call.turn == turn],
            )
            for turn in dict.fromkeys(call.turn for call in self.actual)
        )

    def unordered_pairs(
        self, expected: Iterable[int], actual: Iterable[int], weight: Callable[[int, int], float]
    ) -> Iterator[tuple[int, int]]:
        """Yield as many pairs of calls of the same tool as possible, in any order, with the greatest total value."""
        for wanted, found in self._by_tool(expected, actual):
            if len(wanted) == len(found) == 1:
                yield wanted[0], found[0]
                continue
            pairs: dict[int, int] = {}
            if all(self.calls.expected_items[one] for one in wanted):
                # The scores of plain arguments form a metric, so some best assignment pairs all equal ones.
                waiting = defaultdict[ArgItems | None, deque[int]](deque)
                for other in found:
                    waiting[self.calls.actual_items[other]].append(other)
                pairs = {
                    one: waiting[key].popleft() for one in wanted if waiting[key := self.calls.expected_items[one]]
                }
            rest, others = [one for one in wanted if one not in pairs], sorted({*found}.difference(pairs.values()))
            weights = [[weight(one, other) for other in others] for one in rest]
            best = best_pairs(weights) if any(map(any, weights)) else [*enumerate(range(min(len(rest), len(others))))]
            yield from (*pairs.items(), *((rest[row], others[column]) for row, column in best))

    def _ordered_pairs(self, expected: Sequence[int], actual: Sequence[int]) -> Iterable[tuple[int, int]]:
        how = self.rules
        # If no call may be left over, in place and in order are the same, and the latter shows the extra calls better.
        none_left = how.credit == "all_or_nothing" and how.extra == how.missing == "forbid"
        is_in_place = how.order == "sequence" and not none_left
        if is_in_place and how.parallel == "ordered" and self.calls.blocks is None:
            expected_calls, made = self.expected, self.calls.made
            return [
                (one, other)
                for one, other in zip(expected, actual, strict=False)
                if expected_calls[one].name == made[other].name
            ]
        credit = self.credit
        weights = [[0.0] * len(actual) for _ in expected]
        rows, columns = ({index: at for at, index in enumerate(side)} for side in (expected, actual))
        for wanted, found in self._by_tool(expected, actual):
            for one in wanted:
                row = weights[rows[one]]
                for other in found:
                    row[columns[other]] = credit(one, other)
        ends = [0, *accumulate(len([*block]) for _, block in groupby(actual, self.block))]
        best = best_in_place if is_in_place else best_in_order
        return ((expected[row], actual[column]) for row, column in best(weights, [*pairwise(ends)]))

    def block(self, actual: int) -> int:
        """Return the number of a call's block; calls in one block have no order among themselves."""
        if self.calls.blocks is not None:
            return self.calls.blocks[actual]
        number = self.actual[actual].message
        return number if self.rules.parallel == "unordered" and isinstance(number, int) else actual

    def _by_tool(self, expected: Iterable[int], actual: Iterable[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Return the calls of each tool that was both expected and called."""
        wanted: dict[str, list[int]] = {}
        found: dict[str, list[int]] = {}
        expected_calls, made = self.expected, self.calls.made
        for index in expected:
            wanted.setdefault(expected_calls[index].name, []).append(index)
        for index in actual:
            found.setdefault(made[index].name, []).append(index)
        return ((calls, found[tool]) for tool, calls in wanted.items() if tool in found)


def _unordered_warning(calls: Calls, rules: ToolMatch) -> Collection[str]:
    blocks = calls.blocks
    if blocks is None or rules.order == "any":
        return ()
    agents = {(block, conversation_path(made.message)) for block, made in zip(blocks, calls.actual, strict=True)}
    if len(agents) == len({block for block, _ in agents}):
        return ()
    return (_UNORDERED,)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
