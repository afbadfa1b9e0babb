"""Scorers that run after the other scorers of a sample, and look at their scores."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scoring import Scorer
from judgekit.traces.sample import Sample


class SampleScores(NamedTuple):
    """The scores that a sample has so far: those of scorers, and those that human labels on their questions stand for."""

    of_scorers: Sequence[Score] = ()
    of_people: Sequence[Score] = ()


@runtime_checkable
class FollowUpScorer(Scorer, Protocol):
    """A scorer that a run asks after the other scorers of a sample. Outside of runs, ``ascore`` has no other scores."""

    @property
    def of(self) -> Sequence[str] | str:
        """The names of the scorers that it follows, all others if empty; ``"all"`` if it needs none."""
        ...

    async def ascore_after(self, sample: Sample, /, scores: SampleScores) -> Score:
        """Return the score of a sample with these other scores; scorers that stopped have none."""
        ...


def check_follow_ups(scorers: Iterable[Scorer], names: Iterable[str]) -> None:
    """Raise a `ConfigError` if a run with scorers of these names lacks one that its follow-up scorers need."""
    following = [scorer for scorer in scorers if isinstance(scorer, FollowUpScorer)]
    others = [name for name in names if name not in {scorer.name for scorer in following}]
    for scorer in following:
        if not others and scorer.of != "all":
            raise ConfigError(f"{scorer.name} looks at what other scorers call failed: add one, or set of='all'")
        for missing in () if scorer.of == "all" else {*scorer.of} - {*others}:
            raise ConfigError.unknown(f"scorer for {scorer.name} to follow", missing, others)
