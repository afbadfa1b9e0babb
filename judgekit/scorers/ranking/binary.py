"""Scorers of rankings with binary relevance."""

from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from judgekit.errors import short_repr
from judgekit.score import Score
from judgekit.scorers.ranking import measures
from judgekit.scorers.ranking.ranked import GradedRanking, RankingScorer, check_cutoff, check_grade, format_ranks
from judgekit.traces.message import JsonObject


class RelevantRanks(NamedTuple):
    """A ranking's relevant documents."""

    graded: GradedRanking
    ranks: list[int]
    """The ranks of the relevant documents, from 1."""
    relevant: int
    """The number of judged documents that are relevant, retrieved or not; at least one."""


@dataclass(frozen=True, kw_only=True)
class BinaryScorer(RankingScorer):
    """The common options of scorers with binary relevance.

    Details: the relevant documents that were ``found`` (rank, id and grade), the number of ``relevant`` documents and
    of those ``retrieved``.

    Attributes:
        relevant_from: The lowest relevant grade. There is a warning if all judged documents reach it although their
            grades differ.

    Raises:
        ConfigError: ``relevant_from`` is not a number above 0, the grade of unjudged documents.
    """

    relevant_from: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_grade("relevant_from", self.relevant_from)

    def _measured(self, graded: GradedRanking) -> Score:
        least, judged = self.relevant_from, graded.judged_grades
        if not (relevant := len([grade for grade in judged if grade >= least])):
            why = f"no judged document is relevant (relevant_from={least:g}), so every order is equally good"
            return Score.skipped(self.name, why)
        hits = RelevantRanks(graded, [rank for rank, grade in enumerate(graded.grades, 1) if grade >= least], relevant)
        value = self._value(hits)
        if isinstance(value, str):
            return Score.skipped(self.name, value + graded.normalized)
        warnings: list[str] = []
        if relevant == len(judged) and min(judged) < max(judged):
            warnings.append(f"all judged documents are relevant, though their grades differ (relevant_from={least:g})")
        reason, details = self._explain(hits)
        return Score.scored(self.name, value, reason=reason, details=details, warnings=warnings)

    @abstractmethod
    def _value(self, hits: RelevantRanks) -> float | str:
        """Return the value, or the reason why it is undefined."""

    def _reason(self, hits: RelevantRanks) -> str:
        retrieved = len(hits.graded.ids)
        if not hits.ranks:
            return f"none of {hits.relevant} relevant documents is among {retrieved} retrieved"
        rank = hits.ranks[0]
        return f"first relevant document at rank {rank} of {retrieved}: {short_repr(hits.graded.ids[rank - 1])}"

    def _explain(self, hits: RelevantRanks) -> tuple[str, JsonObject]:
        hit_count = hits.graded.found(hits.ranks)
        details: JsonObject = {"found": hit_count, "relevant": hits.relevant, "retrieved": len(hits.graded.ids)}
        return hits.graded.explained(self._reason(hits), details)


@dataclass(frozen=True, kw_only=True)
class ReciprocalRank(BinaryScorer):
    """1 if the first document is relevant, 1/r if the first relevant one is at rank r, 0 if none was retrieved.

    Its mean over a run is the mean reciprocal rank (MRR). For options, skipped samples and details, see `BinaryScorer`
    and `RankingScorer`. No judge. Source: Voorhees, The TREC-8 Question Answering Track Report (1999); trec_eval's
    ``recip_rank``.
    """

    _default_name: ClassVar[str] = "reciprocal_rank"

    def _value(self, hits: RelevantRanks) -> float:
        return measures.reciprocal_rank(hits.ranks)


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(BinaryScorer):
    """1 if all relevant documents rank above all others: the mean precision at the ranks of the relevant ones.

    The precision of a relevant document that was not retrieved is 0. With ``interpolated``, the precision at each level
    of recall is the highest at this level or above. Over a run, its mean is the mean average precision (MAP). For
    options, skipped samples and details, see `BinaryScorer` and `RankingScorer`. No judge. Source: Manning, Raghavan
    and Schütze, Introduction to Information Retrieval (2008), section 8.4; trec_eval's ``map``.
    """

    interpolated: bool = False
    _default_name: ClassVar[str] = "average_precision"

    def __post_init__(self) -> None:
        if self.interpolated and not self.name:
            object.__setattr__(self, "name", f"interpolated_{self._default_name}")
        super().__post_init__()

    def _value(self, hits: RelevantRanks) -> float:
        return measures.average_precision(hits.ranks, hits.relevant, interpolated=self.interpolated)

    def _reason(self, hits: RelevantRanks) -> str:
        if not hits.ranks:
            return super()._reason(hits)
        at = format_ranks(hits.ranks)
        return f"{len(hits.ranks)} of {hits.relevant} relevant documents retrieved, at {at} of {len(hits.graded.ids)}"


@dataclass(frozen=True, kw_only=True)
class AUC(BinaryScorer):
    """1 if all relevant documents rank above all others that were retrieved: the share of pairs in which one does.

    The area under the ROC curve: the probability that a relevant document ranks above another one. Pairs with equal
    scores count half, if the ranking has scores. Only retrieved documents count; skipped if all or none of them are
    relevant. For options, other skipped samples and details, see `BinaryScorer` and `RankingScorer`. No judge. Source:
    Hanley and McNeil, The Meaning and Use of the Area under a ROC Curve (1982); scikit-learn's ``roc_auc_score``.
    """

    _default_name: ClassVar[str] = "auc"

    def _value(self, hits: RelevantRanks) -> float | str:
        retrieved = len(hits.graded.ids)
        if len(hits.ranks) in (0, retrieved):
            kind = "all" if hits.ranks else "none"
            return f"{kind} of {retrieved} retrieved documents are relevant, so there is no pair to compare"
        return measures.auc(hits.ranks, retrieved, hits.graded.scores)

    def _reason(self, hits: RelevantRanks) -> str:
        retrieved, hit_count = len(hits.graded.ids), len(hits.ranks)
        pairs = hit_count * (retrieved - hit_count)
        above = measures.auc(hits.ranks, retrieved, hits.graded.scores) * pairs
        return f"a relevant document ranks above another in {above:g} of {pairs} pairs (equal scores count half)"

    def _explain(self, hits: RelevantRanks) -> tuple[str, JsonObject]:
        reason, details = super()._explain(hits)
        scores = hits.graded.scores
        return reason, details if scores is None else {**details, "scores": list(scores)}


@dataclass(frozen=True)
class _AtK(BinaryScorer):
    k: int

    def __post_init__(self) -> None:
        check_cutoff(self.k)
        super().__post_init__()

    def _hit_count(self, hits: RelevantRanks) -> int:
        return bisect_right(hits.ranks, self.k)

    def _reason(self, hits: RelevantRanks) -> str:
        among = f"among the first {self.k} (retrieved: {len(hits.graded.ids)})"
        return f"{self._hit_count(hits)} of {hits.relevant} relevant documents {among}"

    def _explain(self, hits: RelevantRanks) -> tuple[str, JsonObject]:
        reason, details = super()._explain(hits)
        return reason, {**details, "k": self.k}


@dataclass(frozen=True)
class PrecisionAtK(_AtK):
    """1 if the first k documents are all relevant: the share of relevant ones, out of k even if fewer were retrieved.

    For options, skipped samples and details, see `BinaryScorer` and `RankingScorer`. No judge. Source: trec_eval's
    ``P``.
    """

    _default_name: ClassVar[str] = "precision"

    def _value(self, hits: RelevantRanks) -> float:
        return self._hit_count(hits) / self.k


@dataclass(frozen=True)
class RecallAtK(_AtK):
    """1 if all relevant documents are among the first k: the share that is, out of all known ones.

    For options, skipped samples and details, see `BinaryScorer` and `RankingScorer`. No judge. Source: trec_eval's
    ``recall``.
    """

    _default_name: ClassVar[str] = "recall"

    def _value(self, hits: RelevantRanks) -> float:
        return self._hit_count(hits) / hits.relevant


@dataclass(frozen=True)
class HitRate(_AtK):
    """1 if there is a relevant document among the first k, else 0.

    For options, skipped samples and details, see `BinaryScorer` and `RankingScorer`. No judge. Source: trec_eval's
    ``success``.
    """

    _default_name: ClassVar[str] = "hit_rate"

    def _value(self, hits: RelevantRanks) -> float:
        return float(self._hit_count(hits) > 0)
