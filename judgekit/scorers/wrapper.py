"""The base class of scorers that wrap another scorer."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from judgekit.errors import ConfigError
from judgekit.follow_ups import FollowUpScorer
from judgekit.score import ScaleValue
from judgekit.scoring import (
    JudgePrompt,
    Scorer,
    SyncScore,
    check_scorer,
    has_confidence,
    scorer_label_values,
    scorer_prompts,
    scorer_scope,
)
from judgekit.traces.tree import Scope


class _HasScorer(Protocol):
    @property
    def scorer(self) -> Scorer | None: ...


class WrapperScorer(SyncScore):
    """The base of a dataclass with a field ``scorer``, whose prompts, labels, confidence and scope it takes over.

    Raises:
        ConfigError: ``scorer`` is neither a scorer nor ``None``, or one that runs after others.
    """

    def __post_init__(self: _HasScorer) -> None:
        if self.scorer is not None:
            check_scorer(self.scorer, "scorer")
        if isinstance(self.scorer, FollowUpScorer):
            raise ConfigError(f"{self.scorer.name} runs after other scorers, so it cannot be part of another one")

    @property
    def prompts(self: _HasScorer) -> Sequence[JudgePrompt]:
        """The prompts of the wrapped scorer."""
        return scorer_prompts(self.scorer)

    @property
    def scope(self: _HasScorer) -> Scope:
        """The part of a recording that the wrapped scorer looks at."""
        return scorer_scope(self.scorer)

    @property
    def label_values(self: _HasScorer) -> Mapping[str, ScaleValue]:
        """The values of its labels, if the prompts do not define them."""
        return scorer_label_values(self.scorer)

    @property
    def has_confidence(self: _HasScorer) -> bool:
        """Whether its scores may have a confidence."""
        return has_confidence(self.scorer)
