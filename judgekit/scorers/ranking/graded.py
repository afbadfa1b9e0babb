"""Scorers of rankings with graded relevance."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, get_args

from judgekit.errors import check_choice, join_limited
from judgekit.score import Score
from judgekit.scorers.ranking import measures
from judgekit.scorers.ranking.measures import Gains
from judgekit.scorers.ranking.ranked import GradedRanking, RankingScorer, check_cutoff, check_grade, format_ranks
from judgekit.traces.message import JsonObject


@dataclass(frozen=True, kw_only=True)
class GradedScorer(RankingScorer):
    """The base of scorers for which any grade above 0 is relevant, and higher grades are more relevant.

    Details: the documents with such a grade that were ``found`` (rank, id and grade), all such grades (``judged``,
    highest first), the number of ``retrieved`` documents, and the scorer's own options.
    """

    def _measured(self, graded: GradedRanking) -> Score:
        if max(graded.judged_grades, default=0) <= 0:
            return Score.skipped(self.name, "no judged document is relevant, so every order is equally good")
        k = self._options["k"]
        first = graded.grades[: k if isinstance(k, int) else None]
        ranks = [rank for rank, grade in enumerate(first, 1) if grade > 0]
        judged = sorted((grade for grade in graded.judged_grades if grade > 0), reverse=True)
        details: JsonObject = {
            "found": graded.found(ranks),
            "judged": list(judged),
            "retrieved": len(graded.ids),
            **self._options,
        }
        among = f"{len(graded.ids)} retrieved" if k is None else f"the first {k} (retrieved: {len(graded.ids)})"
        found, relevant = _grades(graded.grades[rank - 1] for rank in ranks), _grades(judged)
        reason = f"among {among}: grades {found} at {format_ranks(ranks)}; judged: {relevant}"
        if not ranks:
            reason = f"none of {len(judged)} relevant documents is among {among}"
        reason, details = graded.explained(reason, details)
        return Score.scored(self.name, self._value(graded), reason=reason, details=details)

    @abstractmethod
    def _value(self, graded: GradedRanking) -> float: ...

    @property
    @abstractmethod
    def _options(self) -> JsonObject:
        """The options that the value depends on, including ``k``."""


def _grades(grades: Iterable[float]) -> str:
    return join_limited((f"{grade:g}" for grade in grades), limit=10, separator=", ")


@dataclass(frozen=True)
class NDCG(GradedScorer):
    """1 if the documents are in the best possible order of all judged documents.

    With DCG = the sum over ranks r of gain / log2(r + 1): the DCG of the first ``k`` documents (by default of all),
    over that of the best k judged ones, retrieved or not. The gain of a grade is 2^grade - 1, or the grade itself with
    ``gains="linear"``. For options, skipped samples and details, see `RankingScorer` and `GradedScorer`. No judge.
    Source: Burges et al., Learning to Rank using Gradient Descent (2005); for linear gains, Järvelin and Kekäläinen,
    Cumulated Gain-Based Evaluation of IR Techniques (2002), as in trec_eval's ``ndcg`` and ``ndcg_cut``.

    Raises:
        ConfigError: The gains are unknown, or k is not a positive integer.
    """

    k: int | None = None
    gains: Gains = "exponential"
    _default_name: ClassVar[str] = "ndcg"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            check_cutoff(self.k)
        check_choice("kind of gains", self.gains, get_args(Gains))

    @property
    def _options(self) -> JsonObject:
        return {"k": self.k, "gains": self.gains}

    def _value(self, graded: GradedRanking) -> float:
        return measures.ndcg(graded.grades, graded.judged_grades, self.k, self.gains)


@dataclass(frozen=True)
class ERR(GradedScorer):
    """1 if the first document is certain to satisfy; the highest value reached is (2^max_grade - 1) / 2^max_grade.

    The expected reciprocal rank: a user reads from the top, is satisfied by a document of grade g with the probability
    R(g) = (2^g - 1) / 2^max_grade, and stops there. The sum over ranks r, up to ``k``, of R(g_r) / r times the product
    of 1 - R over the ranks above. For options, skipped samples and details, see `RankingScorer` and `GradedScorer`. A
    grade above ``max_grade`` fails the sample. No judge. Source: Chapelle, Metzler, Zhang and Grinspan, Expected
    Reciprocal Rank for Graded Relevance (2009).

    Raises:
        ConfigError: ``max_grade`` is not a number above 0, or k is not a positive integer.
    """

    max_grade: float
    k: int | None = None
    _default_name: ClassVar[str] = "err"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            check_cutoff(self.k)
        check_grade("max_grade", self.max_grade)

    @property
    def _options(self) -> JsonObject:
        return {"k": self.k, "max_grade": self.max_grade}

    def _value(self, graded: GradedRanking) -> float:
        if (top := max(graded.judged_grades)) > self.max_grade:
            raise ValueError(f"the highest grade {top:g} is above max_grade={self.max_grade:g}")
        return measures.err(graded.grades[: self.k], self.max_grade)
