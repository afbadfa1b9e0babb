"""The base class of scorers that wrap another scorer."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from judgekit.score import Grade
from judgekit.scoring import Blocking, Question, Scorer, has_confidence, label_values_of, must_be_scorer, questions_of


class _HasScorer(Protocol):
    @property
    def scorer(self) -> Scorer | None: ...


class WrapperScorer(Blocking):
    """The base of a dataclass with a field ``scorer``, whose prompts, labels and confidence it takes over.

    Raises:
        ConfigError: ``scorer`` is neither a scorer nor ``None``.
    """

    def __post_init__(self: _HasScorer) -> None:
        """Check the scorer."""
        if self.scorer is not None:
            must_be_scorer(self.scorer, "scorer")

    @property
    def prompts(self: _HasScorer) -> Sequence[Question]:
        """The prompts of the wrapped scorer."""
        return questions_of(self.scorer)

    @property
    def label_values(self: _HasScorer) -> Mapping[str, Grade]:
        """The values of its labels, if the prompts do not define them."""
        return label_values_of(self.scorer)

    @property
    def has_confidence(self: _HasScorer) -> bool:
        """Whether its scores may have a confidence."""
        return has_confidence(self.scorer)
