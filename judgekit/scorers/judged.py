"""Scorers with a judge, which may be given as the name of its model."""

from typing import Protocol, cast

from judgekit.errors import ConfigError, shortened
from judgekit.judges.judge import Judge
from judgekit.scoring import Blocking


class _HasJudge(Protocol):
    @property
    def judge(self) -> Judge | str | None: ...


class Judged(Blocking):
    """Gives a dataclass with a field ``judge`` the judge of that name, such as ``"openai/gpt-4.1-mini"``.

    Raises:
        ConfigError: It is neither a judge nor the name of a model.
    """

    def __post_init__(self: _HasJudge) -> None:
        """Makes a judge of a name."""
        found = self.judge
        if isinstance(found, str):
            object.__setattr__(self, "judge", Judge(found))
        elif not isinstance(found, Judge):
            raise ConfigError(f'judge is a Judge or a model such as "openai/gpt-4.1-mini", found {shortened(found)}')

    @property
    def _judge(self: _HasJudge) -> Judge:
        return cast("Judge", self.judge)
