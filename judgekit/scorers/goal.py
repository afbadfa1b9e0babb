"""Agent goal accuracy: did the user get what they came for?"""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt, load_prompt
from judgekit.score import Score
from judgekit.scorers.evidence import must_exist
from judgekit.scoring import Blocking
from judgekit.traces.message import HumanMessage
from judgekit.traces.sample import Sample


class GoalAnswer(BaseModel):
    """What the judge replies; it reasons before it decides."""

    user_goal: str
    end_state: str
    reason: str
    evidence: list[int]
    verdict: Literal["achieved", "not_achieved"]


@dataclass(frozen=True)
class AgentGoalAccuracyWithReference(Blocking):
    """1 if the desired outcome, ``sample.reference``, was reached by the end of the conversation, else 0.

    Skipped without a reference. One judge request a sample. Details: ``user_goal``, ``end_state``, and as ``evidence``
    the numbers of the messages that show it. Source: agent goal accuracy of ragas
    (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/).
    """

    judge: Judge
    name: str = "agent_goal_accuracy_with_reference"

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The question that is asked."""
        return (load_prompt("agent_goal_with_reference"),)

    async def ascore(self, sample: Sample, /) -> Score:
        """Compares the end of the conversation with the reference."""
        return await _ask(self.name, self.judge, self.prompts[0], sample)


@dataclass(frozen=True)
class AgentGoalAccuracyWithoutReference(Blocking):
    """1 if the agent did what the user's own messages ask for, by the end of the conversation, else 0.

    Skipped where the user says nothing. One judge request a sample. Details: ``user_goal``, ``end_state``, and as
    ``evidence`` the numbers of the messages that show it. Source: agent goal accuracy of ragas
    (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/).
    """

    judge: Judge
    name: str = "agent_goal_accuracy_without_reference"

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The question that is asked."""
        return (load_prompt("agent_goal_without_reference"),)

    async def ascore(self, sample: Sample, /) -> Score:
        """Compares the end of the conversation with what the user asked for."""
        if not any(isinstance(message, HumanMessage) for message in sample.trace.messages):
            return Score.skipped(self.name, "the conversation has no message of the user")
        return await _ask(self.name, self.judge, self.prompts[0], sample)


async def _ask(name: str, judge: Judge, prompt: Prompt, sample: Sample) -> Score:
    if missing := prompt.missing(sample):
        return Score.skipped(name, f"the sample has no {' and no '.join(missing)}")

    def check(answer: GoalAnswer) -> None:
        must_exist(answer.evidence, sample)
        if answer.verdict == "achieved" and not answer.evidence:
            raise ValueError("says achieved without the number of a message that shows it")

    judgment = await judge.ask(prompt, sample, GoalAnswer, check)
    answer = judgment.answer
    return Score.scored(
        name,
        1.0 if answer.verdict == "achieved" else 0.0,
        label=answer.verdict,
        reason=answer.reason,
        details={"user_goal": answer.user_goal, "end_state": answer.end_state, "evidence": list(answer.evidence)},
        calls=judgment.calls,
    )
