"""The base class of scorers that ask a judge."""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from judgekit.errors import ConfigError, short_repr
from judgekit.judges.judge import Judge
from judgekit.score import ScaleValue
from judgekit.scorers.scope import ScopedScorer
from judgekit.scoring import JudgePrompt, SyncScore


class _HasJudge(Protocol):
    @property
    def judge(self) -> Judge | str | None: ...


def convert_judge(scorer: _HasJudge) -> None:
    """Replace the name of a model in a new scorer's field ``judge`` with a judge.

    Raises:
        ConfigError: ``judge`` is neither a judge nor the name of a model.
    """
    found = scorer.judge
    if isinstance(found, str):
        object.__setattr__(scorer, "judge", Judge(found))
    elif not isinstance(found, Judge):
        raise ConfigError(f'judge must be a Judge or a "provider/model", found {short_repr(found)}')


class JudgedScorer(SyncScore):
    """The base of a dataclass with a field ``judge``, which may also be given as the name of a model.

    Its declarations are used by runs, audits and reports: see `judgekit.scoring.JudgedScorerProtocol`.

    Raises:
        ConfigError: ``judge`` is neither a judge nor the name of a model.

    Example:
        >>> @dataclass(frozen=True)
        ... class Tone(JudgedScorer):
        ...     judge: Judge
        ...     name: str = "tone"
        ...
        ...     @property
        ...     def prompts(self) -> tuple[Prompt]:
        ...         return (load_prompt("tone"),)
        ...
        ...     async def ascore(self, sample: Sample, /) -> Score: ...
    """

    def __post_init__(self: _HasJudge) -> None:
        """Convert the name of a model to a judge."""
        convert_judge(self)

    @property
    def prompts(self) -> Sequence[JudgePrompt]:
        """All prompts that the scorer may use."""
        return ()

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of its labels; empty if they are those of the first prompt's scale."""
        return {}

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence."""
        return False

    @property
    def _judge(self: _HasJudge) -> Judge:
        return cast("Judge", self.judge)


class ScopedJudgedScorer(JudgedScorer, ScopedScorer):
    """The base of judged scorers that look at the agent's own conversation, or also at those of its sub-agents."""

    def __post_init__(self) -> None:
        convert_judge(cast("_HasJudge", self))
        ScopedScorer.__post_init__(self)
