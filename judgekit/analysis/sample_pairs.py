"""The samples of two runs, paired by id, with their scores as arrays."""

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judgekit.aggregates.total import reduced_for_aggregate
from judgekit.runs.answers import AnswerCounts
from judgekit.runs.hashes import SampleHashes
from judgekit.runs.results import Run
from judgekit.runs.rows import DAMAGED_ROW
from judgekit.runs.units import joined
from judgekit.score import STATUSES, Score, ScoreStatus

Outcome: TypeAlias = ScoreStatus | Literal["missing"]
"""The status of a sample's score; ``missing`` if the run has no score for it."""
Numbers: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.float64]

_OUTCOMES: tuple[Outcome, ...] = ("missing", *STATUSES)
_EXAMPLES = 3
_UNKNOWN = 0  # stands for a missing hash
Companies: TypeAlias = Mapping[str, AbstractSet[tuple[str, ...]]]
"""By scorer, the prompts of each set of questions that its own was asked together with."""
_Key: TypeAlias = tuple[str, int]
"""An id, and the position of the sample among those with this id."""


class UnpairedSamples(NamedTuple):
    """Samples of one run that have no counterpart in the other.

    ``unmatched`` counts those whose id the other run does not have, or has less often; ``examples`` are some of their ids.
    ``duplicates`` counts those that share their id and name no group, so that they cannot be told apart.
    """

    unmatched: int
    duplicates: int
    examples: tuple[str, ...]


class ChangedPairs(NamedTuple):
    """The sample numbers in A of pairs whose content differs, as far as it is known on both sides."""

    references: Numbers
    fields: Numbers
    first_messages: Numbers


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of samples that one scorer gave a value in both runs. ``groups`` holds their units; see `Row`."""

    numbers_a: Numbers
    numbers_b: Numbers
    a: Values
    b: Values
    groups: Numbers
    scores_a: Sequence[Score | None]
    scores_b: Sequence[Score | None]
    excluded: Mapping[tuple[Outcome, Outcome], int]


@dataclass(frozen=True, eq=False)
class SamplePairs:
    """The samples of two runs, paired by id.

    Samples that share their id are paired in order if each names its group, as trials of one task do.

    Attributes:
        unpaired_a: The remaining samples of A.
        unpaired_b: The remaining samples of B.
        group_changes: The number of pairs whose group differs in A and B; the group in A counts.
        domain_changes: The number of pairs whose domain differs.
        paired_in_order: The number of pairs that share their id with others.
        changed: The pairs whose references, material or first message differ; see `judgekit.runs.hashes.SampleHashes`.
        unknown_references: The number of pairs whose references may or may not have changed.
        ids_are_numbers: Whether all ids are the samples' numbers in their run.
        side_a: A, with its answers, and the questions that were asked together.
        side_b: The same of B.
        units: The unit of each pair; pairs of one unit are not independent.
    """

    unpaired_a: UnpairedSamples
    unpaired_b: UnpairedSamples
    group_changes: int
    domain_changes: int
    paired_in_order: int
    changed: ChangedPairs
    unknown_references: int
    ids_are_numbers: bool
    side_a: "ComparedSide"
    side_b: "ComparedSide"
    _positions_a: Numbers
    _positions_b: Numbers
    units: Numbers

    @property
    def damaged_scores(self) -> Mapping[str, int]:
        """The number of scores of each scorer that are damaged in either run and therefore left out."""
        return self.side_a.damaged + self.side_b.damaged

    @classmethod
    def of(cls, a: Run, b: Run, scorers: Collection[str]) -> Self:
        """Return the pairs of two runs. Each is read once for numbers, groups and the values of these scorers."""
        repeated = {*a.duplicate_ids, *b.duplicate_ids}
        codes: dict[str, int] = {}
        before, after = ComparedSide(scorers, codes), ComparedSide(scorers, codes)
        positions = {key: position for position, key in enumerate(before.read(a, repeated)) if key is not None}
        counterparts = array("q")
        strangers: list[str] = []
        in_order = 0
        for key in after.read(b, repeated):
            counterparts.append(-1 if key is None else positions.pop(key, -1))
            in_order += key is not None and counterparts[-1] >= 0 and key[0] in repeated
            if key is not None and counterparts[-1] < 0 and len(strangers) < _EXAMPLES:
                strangers.append(key[0])
        paired = np.asarray(counterparts, np.int64)
        at_b = np.flatnonzero(paired >= 0)
        at_a = paired[at_b]
        hashes_a, hashes_b = before.hashes[:, at_a], after.hashes[:, at_b]
        are_known = (hashes_a != _UNKNOWN) & (hashes_b != _UNKNOWN)
        differ = are_known & (hashes_a != hashes_b)
        groups_a, groups_b = np.asarray(before.groups)[at_a], np.asarray(after.groups)[at_b]
        units_a, units_b = np.asarray(before.units)[at_a], np.asarray(after.units)[at_b]
        linked = (units_a >= 0) & (units_b >= 0) & ((groups_a < 0) | (groups_b < 0))
        roots, codes_joined = (
            np.arange(len(codes)),
            joined(zip(units_a[linked].tolist(), units_b[linked].tolist(), strict=True)),
        )
        roots[[*codes_joined]] = [*codes_joined.values()]
        units = np.where(units_a >= 0, units_a, units_b)
        alone = units < 0
        units[~alone] = roots[units[~alone]]
        units[alone] = len(codes) + np.arange(alone.sum())
        left = len(counterparts) - len(at_b) - after.repeated
        return cls(
            UnpairedSamples(
                len(positions), before.repeated, tuple(identifier for identifier, _ in islice(positions, _EXAMPLES))
            ),
            UnpairedSamples(left, after.repeated, tuple(strangers)),
            _different(groups_a, groups_b),
            _different(np.asarray(before.domains)[at_a], np.asarray(after.domains)[at_b]),
            in_order,
            ChangedPairs(*(np.asarray(before.numbers)[at_a[changed]] for changed in differ)),
            int((~are_known[0]).sum()),
            before.ids_are_numbers and after.ids_are_numbers,
            before,
            after,
            at_a,
            at_b,
            units,
        )

    def __len__(self) -> int:
        return len(self._positions_a)

    @property
    def sample_numbers(self) -> tuple[Numbers, Numbers]:
        """The numbers of the paired samples in A, and in B."""
        return np.asarray(self.side_a.numbers)[self._positions_a], np.asarray(self.side_b.numbers)[self._positions_b]

    def scored(self, scorer: str) -> ScoredPairs:
        """Return the pairs that a scorer gave a value in both runs."""
        first, second = self.side_a.columns[scorer], self.side_b.columns[scorer]
        outcomes_a = np.frombuffer(first.outcomes, np.uint8)[self._positions_a]
        outcomes_b = np.frombuffer(second.outcomes, np.uint8)[self._positions_b]
        scored = _OUTCOMES.index("scored")
        both = (outcomes_a == scored) & (outcomes_b == scored)
        at_a, at_b = self._positions_a[both], self._positions_b[both]
        left_out = Counter(zip(outcomes_a[~both].tolist(), outcomes_b[~both].tolist(), strict=True))
        return ScoredPairs(
            np.asarray(self.side_a.numbers)[at_a],
            np.asarray(self.side_b.numbers)[at_b],
            np.asarray(first.values)[at_a],
            np.asarray(second.values)[at_b],
            self.units[both],
            first.scores_at(at_a),
            second.scores_at(at_b),
            {(_OUTCOMES[a], _OUTCOMES[b]): times for (a, b), times in left_out.most_common()},
        )


def _different(a: Numbers, b: Numbers) -> int:
    """Return the number of pairs that differ where both sides name a code."""
    return int(((a != b) & (a >= 0) & (b >= 0)).sum())


class _Column:
    """The scores of one scorer: the outcome and value of each sample, and what aggregates other than the mean need."""

    def __init__(self) -> None:
        self.outcomes = bytearray()
        self.values = array("d")
        self._scores: dict[int, Score] = {}

    def add(self, score: Score | None) -> None:
        value = None if score is None else score.value
        if score is not None and value is not None and score.aggregate != "mean":
            self._scores[len(self.values)] = reduced_for_aggregate(score)
        self.outcomes.append(_OUTCOMES.index("missing" if score is None else score.status))
        self.values.append(0.0 if value is None else value)

    def scores_at(self, positions: Numbers) -> Sequence[Score | None]:
        return [self._scores.get(position) for position in positions.tolist()]


class ComparedSide:
    """A side of the comparison as columns: sample numbers, codes of groups, units and domains (-1 for none), and scores."""

    def __init__(self, scorers: Iterable[str], codes: dict[str, int]) -> None:
        self._codes = codes
        self.numbers = array("q")
        self.groups = array("q")
        self.units = array("q")
        self.domains = array("q")
        self._hashes = array("q")
        self.columns = {name: _Column() for name in scorers}
        self.answers = AnswerCounts()
        self.companies: dict[str, set[tuple[str, ...]]] = {name: set() for name in scorers}
        self.damaged = Counter[str]()
        self.repeated = 0
        self.ids_are_numbers = True

    def read(self, run: Run, repeated: Collection[str]) -> Iterator[_Key | None]:
        """Yield the key by which each sample is paired; ``None`` if samples with its id cannot be told apart."""
        times = Counter[str]()
        for sample in run.scored_samples():
            first, scores = sample.rows[0], {row.scorer: row.score for row in sample.rows}
            for name, column in self.columns.items():
                score = scores.get(name)
                column.add(score)
                self.damaged[name] += score is not None and score.error == DAMAGED_ROW
                for call in score.calls if score else ():
                    self.answers.add(call)
                    if call.together and call.error is None:
                        self.companies[name].add(tuple(call.together))
            self.numbers.append(sample.number)
            self.groups.append(self._coded(first.group))
            self.units.append(self._coded(first.unit))
            self.domains.append(self._coded(first.domain))
            self._hashes.extend([digest or _UNKNOWN for digest in sample.hashes])
            self.ids_are_numbers = self.ids_are_numbers and first.sample_id == str(sample.number)
            if first.sample_id not in repeated:
                yield first.sample_id, 0
            elif first.group is None:
                self.repeated += 1
                yield None
            else:
                yield first.sample_id, times[first.sample_id]
                times[first.sample_id] += 1

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def hashes(self) -> Numbers:
        """The hashes of the samples, in an array of shape (kinds, samples)."""
        return np.asarray(self._hashes).reshape(-1, len(SampleHashes._fields)).T

    def _coded(self, name: str | None) -> int:
        return -1 if name is None else self._codes.setdefault(name, len(self._codes))
