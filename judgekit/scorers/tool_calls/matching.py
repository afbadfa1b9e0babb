"""Pairing of actual tool calls with expected ones."""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise, product
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from judgekit.errors import join_limited
from judgekit.scorers.tool_calls.argument_table import ArgumentTable
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.assignment import (
    best_in_long_order,
    best_in_order,
    best_in_place,
    best_pairs,
    longest_in_order,
)
from judgekit.scorers.tool_calls.calls import Calls, Selection
from judgekit.scorers.tool_calls.comparers import TextComparison, TextFunction, text_similarities
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import NO_CONVERSATION, Scorer
from judgekit.threads import run_in_thread
from judgekit.traces.equality import canonical_json
from judgekit.traces.rendering import quoted_name
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import ActualCall
from judgekit.traces.tree import conversation_path

if TYPE_CHECKING:
    from judgekit.scorers.tool_calls.assignment import Indices, Weights

_FEW_PAIRS = 500
"""The number of pairs of expected and actual calls that are compared within 5 ms."""
_MANY_PAIRS = 20_000
"""The number of pairs from which arguments are compared as a table."""


_UNORDERED = "the order of calls by sub-agents that worked in parallel is not compared: the recording does not tell it"


class CallPair(NamedTuple):
    """The positions of an expected call and the call made for it, and the credit for the pair, in [0, 1]."""

    expected: int
    actual: int
    credit: float


@dataclass
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
        questions: dict[TextComparison, Scorer] = {}

        def noting(scorer: Scorer) -> TextFunction:
            def note(expected: str, actual: str) -> float:
                questions[id(scorer), expected, actual] = scorer
                return 0.0

            return note

        trial = self._with_texts(noting)

        def compare() -> None:
            if not trial.is_exact:
                for expected, actual in self._by_tool(range(len(self.expected)), range(len(self.actual))):
                    for pair in product(expected, actual):
                        trial.calls.compare(*pair)

        await run_in_thread(compare)
        similarity, warnings = await text_similarities(questions)
        compared = self._with_texts(lambda scorer: lambda expected, actual: similarity[id(scorer), expected, actual])
        return replace(compared, warnings=[*self.warnings, *warnings])

    def _with_texts(self, function: Callable[[Scorer], TextFunction]) -> "Match":
        """Return the match with functions in place of the scorers that compare texts."""
        by_tool = {
            tool: rule.model_copy(update={"text": function(scorer)})
            for tool, rule in self.calls.rules_by_tool.items()
            if isinstance(rule, ArgMatch) and (scorer := rule.text_scorer) is not None
        }
        rules = self.rules.model_copy(update={"tools": {**self.rules.tools, **by_tool}})
        return Match(rules, Calls(rules, self.calls.sample, self.calls.selection))

    @property
    def is_large(self) -> bool:
        """Whether pairing may take more than 5 ms: there are many pairs, or functions compare arguments."""
        return self.rules.calls_functions or (len(self.expected) * len(self.actual) > _FEW_PAIRS and not self.is_exact)

    @cached_property
    def tp(self) -> float:
        """The total credit of all pairs."""
        return fsum([pair.credit for pair in self.pairs])

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
            return [CallPair(index, index, 1.0) for index in range(len(self.actual))]
        credit = self.credit
        is_graded = self.rules.args_credit == "fraction"
        pairs: list[CallPair] = []
        for expected, actual in self._parts():
            if self.rules.order == "any":
                best: Iterable[tuple[int, int]] = self.unordered_pairs(expected, actual, is_graded=is_graded)
            else:
                best = self._ordered_pairs(expected, actual)
            pairs += [CallPair(row, column, earned) for row, column in best if (earned := credit(row, column))]
        return sorted(pairs)

    @property
    def is_exact(self) -> bool:
        """Whether each actual call is the expected one at its position."""
        if self.rules.within == "conversation":
            return self.calls.are_equal
        return (
            len(self.expected) == len(self.actual)
            and all(self.same_turn(index, index) for index in range(len(self.actual)))
            and self.calls.are_equal
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
            return [(range(len(self.expected)), range(len(self.actual)))]
        return (
            (
                [index for index, call in enumerate(self.expected) if call.turn == turn],
                [index for index, call in enumerate(self.actual) if call.turn == turn],
            )
            for turn in dict.fromkeys(call.turn for call in self.actual)
        )

    def unordered_pairs(
        self, expected: Iterable[int], actual: Iterable[int], *, is_graded: bool
    ) -> Iterator[tuple[int, int]]:
        """Yield as many pairs of calls of the same tool as possible, in any order, with the greatest total value.

        Args:
            expected: The positions of expected calls.
            actual: The positions of actual calls.
            is_graded: Whether arguments that do not fully agree have their score, instead of no value.
        """
        for rows, columns in self._by_tool(expected, actual):
            if len(rows) == len(columns) == 1:
                yield rows[0], columns[0]
                continue
            equal: dict[int, int] = {}
            are_plain = all(self.calls.is_plain[row] for row in rows)
            if are_plain:
                # The scores of plain arguments form a metric, so some best assignment pairs all equal ones.
                waiting = defaultdict[str | None, deque[int]](deque)
                for column in columns:
                    waiting[self.calls.key(column)].append(column)
                keys = {row: canonical_json(self.expected[row].args) for row in rows}
                equal = {row: waiting[key].popleft() for row, key in keys.items() if waiting[key]}
            rest, others = [row for row in rows if row not in equal], sorted({*columns}.difference(equal.values()))
            yield from equal.items()
            if are_plain and not is_graded:  # no other pair has a value
                yield from zip(rest, others, strict=False)
            else:
                yield from self._best_pairs(rest, others, is_graded=is_graded)

    def _best_pairs(self, rows: Sequence[int], columns: Sequence[int], *, is_graded: bool) -> Iterable[tuple[int, int]]:
        table = self.calls.table(rows, columns) if len(rows) * len(columns) > _MANY_PAIRS else None
        weights: Sequence[Sequence[float]] | Weights
        if table is not None:
            weights = table.all_scores()
            has_weight = bool(weights.any())
        else:
            weight = self.calls.score if is_graded else self.calls.agree
            weights = [[weight(row, column) for column in columns] for row in rows]
            has_weight = any(map(any, weights))
        if not has_weight:
            return zip(rows, columns, strict=False)
        return ((rows[row], columns[column]) for row, column in best_pairs(weights))

    def _ordered_pairs(self, expected: Sequence[int], actual: Sequence[int]) -> Iterable[tuple[int, int]]:
        how = self.rules
        # If no call may be left over, in place and in order are the same, and the latter shows the extra calls better.
        none_left = how.credit == "all_or_nothing" and how.extra == how.missing == "forbid"
        is_in_place = how.order == "sequence" and not none_left
        if is_in_place and how.parallel == "ordered" and self.calls.blocks is None:
            pairs = zip(expected, actual, strict=False)
            return [(row, column) for row, column in pairs if self.expected[row].name == self.actual[column].call.name]
        ends = [0, *accumulate(len([*block]) for _, block in groupby(actual, self.block))]
        blocks = [*pairwise(ends)]
        if not is_in_place and len(blocks) == len(actual):
            in_order = self._pairs_in_order(expected, actual)
            if in_order is not None:
                return ((expected[row], actual[column]) for row, column in in_order)
        weights = [[0.0] * len(actual) for _ in expected]
        row_of, column_of = ({index: at for at, index in enumerate(side)} for side in (expected, actual))
        for wanted, received in self._by_tool(expected, actual):
            for row, column in product(wanted, received):
                weights[row_of[row]][column_of[column]] = self.credit(row, column)
        best = best_in_place(weights, blocks) if is_in_place else best_in_order(weights, blocks)
        return ((expected[row], actual[column]) for row, column in best)

    def _pairs_in_order(self, expected: Sequence[int], actual: Sequence[int]) -> Iterable[tuple[int, int]] | None:
        """Return the best pairs that do not cross, if all calls have an order and there is a fast way; else ``None``."""
        row_of, column_of = ({index: at for at, index in enumerate(side)} for side in (expected, actual))
        if self.rules.args_credit == "all":
            equal_rows = [0] * len(actual)
            for wanted, received in self._by_tool(expected, actual):
                for index, rows in zip(received, self._equal_rows(wanted, received, row_of), strict=True):
                    equal_rows[column_of[index]] = rows
            return longest_in_order(equal_rows, len(expected))
        if len(expected) * len(actual) < _MANY_PAIRS:
            return None
        import numpy as np  # noqa: PLC0415 - slow to import, and rarely needed

        tables: dict[int, tuple[ArgumentTable, int, Indices]] = {}
        for wanted, received in self._by_tool(expected, actual):
            table = self.calls.table(wanted, received)
            if table is None:
                return None
            tool_rows = np.array([row_of[index] for index in wanted])
            tables.update({column_of[index]: (table, at, tool_rows) for at, index in enumerate(received)})

        def weights(column: int) -> "tuple[Indices, Weights] | None":
            if column not in tables:
                return None
            table, at, rows = tables[column]
            return rows, table.scores(at)

        return best_in_long_order(weights, len(expected), len(actual))

    def _equal_rows(self, expected: Sequence[int], actual: Sequence[int], row_of: Mapping[int, int]) -> Iterator[int]:
        """Yield, for each actual call of one tool, the expected calls that agree with it, as the bits of a number."""
        plain_rows = defaultdict[str | None, int](int)
        others: list[int] = []
        for index in expected:
            if self.calls.is_plain[index]:
                plain_rows[canonical_json(self.expected[index].args)] |= 1 << row_of[index]
            else:
                others.append(index)
        for column in actual:
            agreeing = sum(1 << row_of[index] for index in others if self.calls.agree(index, column))
            yield plain_rows.get(self.calls.key(column), 0) | agreeing

    def block(self, actual: int) -> int:
        """Return the number of a call's block; calls in one block have no order among themselves."""
        if self.calls.blocks is not None:
            return self.calls.blocks[actual]
        number = self.actual[actual].message
        return number if self.rules.parallel == "unordered" and isinstance(number, int) else actual

    def _by_tool(self, expected: Iterable[int], actual: Iterable[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Return the calls of each tool that was both expected and called."""
        wanted: dict[str, list[int]] = {}
        received: dict[str, list[int]] = {}
        for index in expected:
            wanted.setdefault(self.expected[index].name, []).append(index)
        for index in actual:
            received.setdefault(self.actual[index].call.name, []).append(index)
        return ((calls, received[tool]) for tool, calls in wanted.items() if tool in received)


def _unordered_warning(calls: Calls, rules: ToolMatch) -> Collection[str]:
    blocks = calls.blocks
    if blocks is None or rules.order == "any":
        return ()
    agents = {(block, conversation_path(call.message)) for block, call in zip(blocks, calls.actual, strict=True)}
    if len(agents) == len({block for block, _ in agents}):
        return ()
    return (_UNORDERED,)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
