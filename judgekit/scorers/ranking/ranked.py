"""The base of ranking scorers, and rankings with the grades of their documents."""

import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pydantic import JsonValue

from judgekit.errors import ConfigError, join_limited, short_repr, short_reprs
from judgekit.score import Score
from judgekit.scorers.ranking.retrieval import check_jmespath, find_ranking
from judgekit.scorers.scope import ScopedScorer
from judgekit.scorers.text.normalization import normalize_text
from judgekit.scoring import compute_score
from judgekit.traces.equality import is_number
from judgekit.traces.message import JsonObject
from judgekit.traces.sample import Ranking, Sample

_FEW_DOCUMENTS = 500
"""The number of retrieved and judged documents that are scored within 5 ms."""


class GradedRanking(NamedTuple):
    """A ranking with the grades of its documents."""

    ids: Sequence[str]
    """The ids of the documents, best first."""
    grades: Sequence[float]
    """The grade at each rank; 0 for an unjudged document."""
    judged_grades: Sequence[float]
    """The grades of all judged documents, retrieved or not."""
    scores: Sequence[float] | None
    normalized_ids: Mapping[str, str]
    """The judged id of each retrieved id that equals it only after normalization."""

    @classmethod
    def of(cls, ranking: Ranking, *, normalize: bool = False) -> "GradedRanking":
        """Return a ranking with the grades of its documents.

        Raises:
            ValueError: Two ids are equal after normalization.
        """
        ids, relevance = ranking.retrieved, ranking.relevance
        judged_as: dict[str, str] = {}
        if normalize:
            normalized = dict(zip(_normalized(relevance, "relevance"), relevance, strict=True))
            pairs = zip(ids, map(normalized.get, _normalized(ids, "retrieved")), strict=True)
            judged_as = {identity: judged for identity, judged in pairs if judged not in (None, identity)}
        grades = [relevance.get(judged_as.get(identity, identity), 0.0) for identity in ids]
        return cls(ids, grades, list(relevance.values()), ranking.scores, judged_as)

    def explained(self, reason: str, details: JsonObject) -> tuple[str, JsonObject]:
        """Return an explanation, with a note on ids that are equal only after normalization."""
        if not self.normalized_ids:
            return reason, details
        return reason + self.normalized, {**details, "normalized": {**self.normalized_ids}}

    @property
    def normalized(self) -> str:
        """A note on ids that are equal only after normalization."""
        pairs = [" matches ".join(short_reprs([identity, judged])) for identity, judged in self.normalized_ids.items()]
        return f"; after normalization, {join_limited(pairs, limit=10)}" if pairs else ""

    def found(self, ranks: Iterable[int]) -> list[JsonValue]:
        """Return the documents at these ranks, for details."""
        return [{"rank": rank, "id": self.ids[rank - 1], "grade": self.grades[rank - 1]} for rank in ranks]


def _normalized(ids: Iterable[str], field: str) -> Sequence[str]:
    meant = defaultdict[str, list[str]](list)
    for identity in ids:
        meant[normalize_text(identity)].append(identity)
    if same := next((those for those in meant.values() if len(those) > 1), None):
        raise ValueError(f"{field} has ids that are equal after normalization: {join_limited(map(short_repr, same))}")
    return list(meant)


@dataclass(frozen=True, kw_only=True)
class RankingScorer(ScopedScorer):
    """The common options of ranking scorers.

    Unjudged documents count as not relevant, as does a grade below 0. Skipped without ``sample.ranking``, and if no
    judged document is relevant.

    Attributes:
        normalize: Whether ids are texts that are compared after normalization (`judgekit.scorers.text.normalization`). Ids
            that are equal only then are listed in the reason, and in details as ``normalized``.
        tool: A tool whose last result without an error, as JSON, contains the ids; ``sample.ranking`` then only
            provides the relevance, and its ``retrieved`` is ignored. With ``scope="tree"``, results of sub-agents
            count, in the order in which `Trace.render` shows them.
        path: A JMESPath to ids or [id, score] pairs in that result; by default, the result itself is such a list.
            JMESPath drops nulls: a document without the field has no rank.

    Raises:
        ConfigError: The path is invalid, or given without a tool.
    """

    normalize: bool = False
    tool: str | None = None
    path: str | None = None
    name: str = ""
    _default_name: ClassVar[str]
    """The default name of the scores; with a ``k``, ``_at_k`` is appended."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.path is not None:
            if self.tool is None:
                raise ConfigError(f"path={self.path!r} selects from a tool result; set tool= as well")
            check_jmespath(self.path)
        if not self.name:
            k: int | None = getattr(self, "k", None)
            object.__setattr__(self, "name", self._default_name if k is None else f"{self._default_name}_at_{k}")

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        if self.tool is None:  # no message matters
            return await self._score(sample)
        return await super().ascore(sample)

    async def _score(self, sample: Sample) -> Score:
        ranking = find_ranking(sample, self.tool, self.path)
        if isinstance(ranking, str):
            return Score.skipped(self.name, ranking)
        large = len(ranking.retrieved) + len(ranking.relevance) > _FEW_DOCUMENTS
        return await compute_score(
            lambda: self._measured(GradedRanking.of(ranking, normalize=self.normalize)), large=large
        )

    @abstractmethod
    def _measured(self, graded: GradedRanking) -> Score: ...


def check_cutoff(k: int) -> None:
    """Check that a number of documents is a positive integer."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - a config file may say anything
        raise ConfigError(f"k must be an integer of at least 1, found {k!r}")


def check_grade(option: str, grade: float) -> None:
    """Check that the grade of a relevant document is above 0, the grade of unjudged documents."""
    if not is_number(grade) or not 0 < grade < math.inf:
        raise ConfigError(f"{option} must be a number above 0, found {grade!r}")


def format_ranks(ranks: Sequence[int]) -> str:
    """Return ranks as text."""
    return f"rank{'s' if len(ranks) > 1 else ''} {join_limited(map(str, ranks), limit=10, separator=', ')}"
