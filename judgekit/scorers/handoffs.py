"""Hand-offs: were tasks passed between agents completely, to the right agent, and were the answers used?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, JsonValue

from judgekit.errors import count_text, join_limited
from judgekit.judges.evidence import CitedMessage, StrictNumber, check_message_numbers
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import ScaleValue, Score
from judgekit.scorers.judged import ScopedJudgedScorer
from judgekit.traces.behavior import handoffs
from judgekit.traces.sample import Sample
from judgekit.traces.tree import Scope

_VALUES: Mapping[str, ScaleValue] = {
    "wrong_agent": 0.0,
    "answer_distorted": 0.0,
    "incomplete_task": 0.5,
    "answer_ignored": 0.5,
    "good": 1.0,
}


class HandoffVerdict(BaseModel):
    """One hand-off; the judge reasons before it decides."""

    handoff: StrictNumber
    task: str
    use: str
    given: CitedMessage
    used: CitedMessage
    verdict: Literal["wrong_agent", "incomplete_task", "answer_distorted", "answer_ignored", "good"]


class HandoffAnswer(BaseModel):
    """The verdicts on all hand-offs."""

    handoffs: list[HandoffVerdict]


@dataclass(frozen=True)
class HandoffQuality(ScopedJudgedScorer):
    """1 if all tasks were handed to the right agent, complete, and all answers were used faithfully.

    A hand-off is a sub-agent that an agent starts, or in one conversation a message of another agent than the one
    before. The value is that of the worst: 0.5 if a task was incomplete or an answer ignored, 0 if an answer was
    distorted or the agent was the wrong one. Unlike other judged scorers, this one looks at sub-agents too, unless
    ``scope="own"``.

    Skipped without a hand-off. One judge request a sample, about all of them. Details: ``handoffs``, each with its
    ``giver`` and ``receiver``, a remark on the ``task`` and on the ``use`` of the answer, the numbers of the messages
    where it was ``given`` and ``used``, and its ``verdict``. Source: judgekit; see the prompt.

    Example:
        ``HandoffQuality("openai/gpt-6-luna")``
    """

    judge: Judge | str
    name: str = "handoff_quality"
    scope: Scope = field(default="tree", kw_only=True)

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of its labels."""
        return _VALUES

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt for the judge."""
        return (load_prompt("handoffs"),)

    async def _score(self, sample: Sample) -> Score:
        (prompt,) = self.prompts
        if not (listed := handoffs(sample.trace)):
            return Score.skipped(self.name, "no agent of the recording hands a task to another")
        judgment = await self._judge.ask(prompt, sample, HandoffAnswer, _check)
        verdicts = sorted(judgment.answer.handoffs, key=lambda verdict: verdict.handoff)
        worst = min((verdict.verdict for verdict in verdicts), key=list(_VALUES).index)
        judged = [*zip(listed, verdicts, strict=True)]
        rows: list[JsonValue] = [
            {"giver": handoff.giver, "receiver": handoff.receiver, **verdict.model_dump()}
            for handoff, verdict in judged
        ]
        bad = [f"{handoff}: {verdict.verdict}" for handoff, verdict in judged if verdict.verdict != "good"]
        good = f"{len(verdicts) - len(bad)} of {count_text(len(verdicts), 'hand-off')} good"
        reason = join_limited([good, *bad])
        return judgment.score(self.name, _VALUES[worst], label=worst, reason=reason, details={"handoffs": rows})


def _check(answer: HandoffAnswer, sample: Sample) -> None:
    expected = list(range(1, len(handoffs(sample.trace)) + 1))
    if (numbers := sorted(handoff.handoff for handoff in answer.handoffs)) != expected:
        raise ValueError(f"must judge each of the hand-offs {_span(expected)} once, found {numbers}")
    check_message_numbers((number for handoff in answer.handoffs for number in (handoff.given, handoff.used)), sample)


def _span(numbers: Sequence[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
