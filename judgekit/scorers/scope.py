"""The part of a recording that a scorer looks at."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from judgekit.errors import check_choice, count_text
from judgekit.score import Score
from judgekit.scoring import SyncScore, scorer_prompts
from judgekit.traces.recording import UNREAD_SUB_AGENTS
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Scope, branches


@dataclass(frozen=True)
class ScopedScorer(SyncScore, ABC):
    """The base of scorers that look at the agent's own conversation, or also at those of its sub-agents.

    Where sub-agents are outside of the scope, the score has a warning, and as ``outside_scope`` in its details their
    number and that of their tool calls. Where they were not read, it has a warning with either scope.

    Attributes:
        scope: ``own`` or ``tree``.
    """

    scope: Scope = field(default="own", kw_only=True)

    def __post_init__(self) -> None:
        check_choice("scope", self.scope, get_args(Scope))

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        if self.scope == "own" and sample.has_sub_agents:
            score = await self._score_own(sample)
        else:
            score = await self._score(sample)
        if not any(trace.warnings or trace.children for trace in (sample.trace, sample.baseline) if trace is not None):
            return score
        unread = dict.fromkeys(
            f"not looked at: {warning.message.partition(', found ')[0]}"
            for trace in self._traces(sample)
            for child in branches(trace)
            for warning in child.trace.warnings
            if warning.path == UNREAD_SUB_AGENTS
        )
        return score.model_copy(update={"warnings": (*score.warnings, *unread)}) if unread else score

    async def _score_own(self, sample: Sample) -> Score:
        score = await self._score(sample.without_sub_agents())
        others = [child for trace in self._traces(sample) for child in branches(trace) if child.depth]
        if not others:
            return score
        calls = sum(len(child.trace.own_calls()) for child in others)
        outside = f"{count_text(len(others), 'sub-agent')} with {count_text(calls, 'tool call')}"
        return score.model_copy(
            update={
                "details": {**score.details, "outside_scope": {"sub_agents": len(others), "tool_calls": calls}},
                "warnings": (*score.warnings, f'scope = "own": {outside} not looked at'),
            }
        )

    @abstractmethod
    async def _score(self, sample: Sample) -> Score:
        """Return the score of a sample whose traces have no children outside of the scope."""

    def _traces(self, sample: Sample) -> Sequence[Trace]:
        """Return the recordings that the scorer looks at: few prompts have a baseline as input."""
        reads_baseline = any("baseline" in (*prompt.inputs, *prompt.optional) for prompt in scorer_prompts(self))
        return [sample.trace, sample.baseline] if reads_baseline and sample.baseline is not None else [sample.trace]
