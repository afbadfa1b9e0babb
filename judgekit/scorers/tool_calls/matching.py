"""Pairing of actual tool calls with expected ones."""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise, product
from math import fsum
from typing import NamedTuple

from judgekit.errors import join_limited
from judgekit.scorers.tool_calls.arguments import ArgComparison, ArgMatch, ArgRules, compare_arguments
from judgekit.scorers.tool_calls.assignment import best_in_order, best_in_place, best_pairs
from judgekit.scorers.tool_calls.comparers import TextComparison, TextFunction, text_similarities
from judgekit.scorers.tool_calls.matchers import contains_matcher
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import NO_CONVERSATION, Scorer
from judgekit.threads import run_in_thread
from judgekit.traces.equality import canonical_json, same_json
from judgekit.traces.message import JsonObject, Requestor
from judgekit.traces.pairing import call_errors
from judgekit.traces.rendering import quoted_name
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import ActualCall, ToolDefinition

_FEW_PAIRS = 500
"""The number of pairs of expected and actual calls that are compared within 5 ms."""


class CallPair(NamedTuple):
    """The positions of an expected call and the call made for it, and the credit for the pair, in [0, 1]."""

    expected: int
    actual: int
    credit: float


class _Items(NamedTuple):
    """Arguments as sets for fast comparison: equal sets mean equal arguments."""

    values: frozenset[tuple[str, str]]
    names: frozenset[str]

    @classmethod
    def of(cls, args: JsonObject) -> "_Items":
        return cls(frozenset((name, canonical_json(value)) for name, value in args.items()), frozenset(args))


@dataclass(frozen=True)
class Match:
    """Expected and actual calls, identified by their positions from 0, and their best pairing.

    Properties are computed on first access, and raise a ``ValueError`` as `compare_arguments` does.
    """

    rules: ToolMatch
    expected: Sequence[ExpectedCall]
    actual: Sequence[ActualCall]
    tools: Sequence[ToolDefinition] = ()
    warnings: Collection[str] = ()
    """The warnings of the scorers that compare texts."""

    @classmethod
    async def of(cls, rules: ToolMatch, sample: Sample, requestor: Requestor, *, include_failed: bool) -> "Match | str":
        """Return the match of one side's calls in a sample, or the reason why they cannot be matched.

        ``include_failed=False`` leaves out calls that resulted in an error. Scorers that compare texts run here.
        """
        if sample.reference_tool_calls is None:
            return "the sample has no reference_tool_calls"
        if not sample.trace.messages:
            return NO_CONVERSATION
        expected = [call for call in sample.reference_tool_calls if call.requestor == requestor]
        if rules.scope == "turn" and (lost := [quoted_name(call.name) for call in expected if call.turn is None]):
            return f"calls are compared by turn, but expected calls have no turn: {join_limited(lost, 5, ', ')}"
        made: Sequence[ActualCall] = sample.trace.tool_calls(requestor)
        if not include_failed:
            errors = call_errors(sample.trace.messages, requestor)
            made = [call for call, error in zip(made, errors, strict=True) if not error]
        return await cls(rules, expected, made, sample.trace.tools).with_texts_compared()

    async def with_texts_compared(self) -> "Match":
        """Return the match with the results of text scorers in place of these, because pairing is synchronous."""
        if not self.rules.has_text_scorers:
            return self
        asked: dict[TextComparison, Scorer] = {}

        def noting(scorer: Scorer) -> TextFunction:
            def note(expected: str, actual: str) -> float:
                asked[id(scorer), expected, actual] = scorer
                return 0.0

            return note

        trial = self._with_texts(noting)

        def compare() -> None:
            if not trial.is_exact:
                for wanted, found in self._by_tool(range(len(self.expected)), range(len(self.actual))):
                    for one, other in product(wanted, found):
                        trial.compare(one, other)

        await run_in_thread(compare)
        similarity, warnings = await text_similarities(asked)
        known = self._with_texts(lambda scorer: lambda expected, made: similarity[id(scorer), expected, made])
        return replace(known, warnings=warnings)

    def _with_texts(self, function: Callable[[Scorer], TextFunction]) -> "Match":
        """Return the match with functions in place of the scorers that compare texts."""
        rules = {
            tool: rule.model_copy(update={"text": function(scorer)})
            for tool, rule in self._rules.items()
            if isinstance(rule, ArgMatch) and (scorer := rule.text_scorer) is not None
        }
        return replace(self, rules=self.rules.model_copy(update={"tools": {**self.rules.tools, **rules}}))

    @property
    def is_large(self) -> bool:
        """Whether pairing may take more than 5 ms: there are many pairs, or functions compare arguments."""
        calls_functions = self.rules.compares_texts or any(map(callable, (self.rules.args, *self.rules.tools.values())))
        return calls_functions or len(self.expected) * len(self.actual) > _FEW_PAIRS

    @cached_property
    def tp(self) -> float:
        """The total credit of all pairs."""
        return fsum(pair.credit for pair in self.pairs)

    @property
    def fp(self) -> float:
        """The number of calls made beyond TP, if extra calls are forbidden."""
        return len(self.actual) - self.tp if self.rules.extra == "forbid" else 0.0

    @property
    def fn(self) -> float:
        """The number of calls expected beyond TP, if missing calls are forbidden."""
        return len(self.expected) - self.tp if self.rules.missing == "forbid" else 0.0

    @property
    def precision(self) -> float | None:
        """TP / (TP + FP); ``None`` for 0 / 0."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else None

    @property
    def recall(self) -> float | None:
        """TP / (TP + FN); ``None`` for 0 / 0."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def f1(self) -> float | None:
        """2 TP / (2 TP + FP + FN); ``None`` for 0 / 0."""
        whole = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / whole if whole else None

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
            return [CallPair(index, index, 1.0) for index in range(len(self.actual))]
        return sorted(self._best())

    @cached_property
    def is_exact(self) -> bool:
        """Whether each actual call is the expected one at its position."""
        if len(self.expected) != len(self.actual):
            return False
        for index, (wanted, (_, turn, call)) in enumerate(zip(self.expected, self.actual, strict=True)):
            if wanted.name != call.name or (self.rules.scope == "turn" and wanted.turn != turn):
                return False
            if self._is_plain(wanted):
                if call.args_error is not None or not same_json(wanted.args, call.args):
                    return False
            elif self.compare(index, index).score < 1:
                return False
        return True

    def same_turn(self, expected: int, actual: int) -> bool:
        """Return whether two calls belong to the same turn, if turns matter."""
        return self.rules.scope != "turn" or self.expected[expected].turn == self.actual[actual].turn

    def compare(self, expected: int, actual: int) -> ArgComparison:
        """Return the comparison of the arguments of two calls of the same tool."""
        wanted = self.expected[expected]
        return compare_arguments(self._rules[wanted.name], wanted, self.actual[actual].call, self.tools)

    def score(self, expected: int, actual: int) -> float:
        """Return the score of the arguments of two calls of the same tool."""
        wanted, found = self._expected_items[expected], self._actual_items[actual]
        if wanted is None:
            return self.compare(expected, actual).score
        if found is None:
            return 0.0
        return 1.0 if wanted == found else len(wanted.values & found.values) / len(wanted.names | found.names)

    def credit(self, expected: int, actual: int) -> float:
        """Return the credit for a pair of calls of the same tool."""
        score = self.score(expected, actual)
        return score if self.rules.args_credit == "fraction" else float(score == 1)

    def _best(self) -> Iterator[CallPair]:
        for expected, made in self._parts():
            is_free = self.rules.order == "any"
            pairs = (
                self.unordered_pairs(expected, made, self.credit) if is_free else self._ordered_pairs(expected, made)
            )
            for one, other in pairs:
                if credit := self.credit(one, other):
                    yield CallPair(one, other, credit)

    def _parts(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Yield the positions of calls that may be paired: all, or turn by turn."""
        if self.rules.scope == "conversation":
            yield range(len(self.expected)), range(len(self.actual))
            return
        for turn in dict.fromkeys(call.turn for call in self.actual):
            expected = [index for index, call in enumerate(self.expected) if call.turn == turn]
            yield expected, [index for index, call in enumerate(self.actual) if call.turn == turn]

    def unordered_pairs(
        self, expected: Iterable[int], actual: Iterable[int], weight: Callable[[int, int], float]
    ) -> Iterator[tuple[int, int]]:
        """Yield as many pairs of calls of the same tool as possible, in any order, with the greatest total value."""
        for wanted, found in self._by_tool(expected, actual):
            pairs: dict[int, int] = {}
            if all(self._expected_items[one] for one in wanted):
                # The scores of plain arguments form a metric, so some best assignment pairs all equal ones.
                waiting = defaultdict[_Items | None, deque[int]](deque)
                for other in found:
                    waiting[self._actual_items[other]].append(other)
                pairs = {one: waiting[key].popleft() for one in wanted if waiting[key := self._expected_items[one]]}
            rest, others = [one for one in wanted if one not in pairs], sorted({*found}.difference(pairs.values()))
            weights = [[weight(one, other) for other in others] for one in rest]
            best = best_pairs(weights) if any(map(any, weights)) else [*enumerate(range(min(len(rest), len(others))))]
            yield from (*pairs.items(), *((rest[row], others[column]) for row, column in best))

    def _ordered_pairs(self, expected: Sequence[int], actual: Sequence[int]) -> Iterator[tuple[int, int]]:
        import numpy as np  # noqa: PLC0415 - slow to import, and only needed if calls do not agree in place

        how = self.rules
        weights = np.zeros((len(expected), len(actual)))
        rows, columns = ({index: at for at, index in enumerate(side)} for side in (expected, actual))
        for wanted, found in self._by_tool(expected, actual):
            for one in wanted:
                weights[rows[one], [columns[other] for other in found]] = [self.credit(one, other) for other in found]
        ends = [0, *accumulate(len([*block]) for _, block in groupby(actual, self.block))]
        # If no call may be left over, in place and in order are the same, and the latter shows the extra calls better.
        none_left = how.credit == "all_or_nothing" and how.extra == how.missing == "forbid"
        best = best_in_order if how.order == "in_order" or none_left else best_in_place
        return ((expected[row], actual[column]) for row, column in best(weights, [*pairwise(ends)]))

    def block(self, actual: int) -> int:
        """Return the number of a call's block; calls in one block have no order among themselves."""
        return self.actual[actual].message if self.rules.parallel == "unordered" else actual

    def _by_tool(self, expected: Iterable[int], actual: Iterable[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Return the calls of each tool that was both expected and called."""
        calls = defaultdict[str, tuple[list[int], list[int]]](lambda: ([], []))
        for index in expected:
            calls[self.expected[index].name][0].append(index)
        for index in actual:
            calls[self.actual[index].call.name][1].append(index)
        return (both for both in calls.values() if all(both))

    @cached_property
    def _rules(self) -> dict[str, ArgRules]:
        """The rules for the arguments of each expected tool."""
        return {call.name: self.rules.arg_rules_for(call.name) for call in self.expected}

    @cached_property
    def _expected_items(self) -> Sequence[_Items | None]:
        """The arguments of each expected call; ``None`` unless they are simply compared as typed JSON."""
        return [_Items.of(call.args) if self._is_plain(call) else None for call in self.expected]

    @cached_property
    def _actual_items(self) -> Sequence[_Items | None]:
        """The arguments of each actual call; ``None`` if they could not be read."""
        return [_Items.of(call.args) if call.args_error is None else None for _, _, call in self.actual]

    def _is_plain(self, expected: ExpectedCall) -> bool:
        rule = self._rules[expected.name] if self.rules.tools else self.rules.args
        is_plain = isinstance(rule, ArgMatch) and rule.is_plain and expected.compare_args is None
        return is_plain and not contains_matcher(expected.args)
