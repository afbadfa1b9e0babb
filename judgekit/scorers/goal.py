"""Agent goal accuracy: did the agent achieve the user's goal?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import BaseModel, JsonValue

from judgekit.errors import short_repr
from judgekit.judges.decisions import choice_question
from judgekit.judges.evidence import CitedMessage, check_message_numbers
from judgekit.judges.judge import AnswerCheck, Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import ScaleValue, Score
from judgekit.scorers.judged import AgentJudgedScorer
from judgekit.scorers.turns import TurnJudgedScorer, Verdict
from judgekit.traces.message import HumanMessage
from judgekit.traces.sample import Sample

_VALUES: Mapping[str, ScaleValue] = {"achieved": 1.0, "not_achieved": 0.0}
_DEFINITIONS = {
    "achieved": "every goal holds at the end in every detail, and the recording shows it",
    "not_achieved": "a goal does not hold at the end, or was only promised, claimed without a tool result or undone again",
}
_NO_GOAL = {"no_goal": "the user has no goal"}
_OF_TURNS: Mapping[str, ScaleValue] = {**_VALUES, "no_goal": "skipped"}


class Goal(BaseModel):
    """One thing that was to be reached; the judge reasons before it decides."""

    goal: str
    end_state: str
    reason: str
    evidence: list[CitedMessage]
    verdict: Literal["achieved", "not_achieved"]


class GoalAnswer(BaseModel):
    """What the judge replies; what follows from it is counted in code."""

    goals: list[Goal]


@dataclass(frozen=True)
class _GoalAccuracy(AgentJudgedScorer, TurnJudgedScorer):
    judge: Judge | str
    partial: bool = False
    name: str = ""
    _prompt: ClassVar[str]
    _definitions: ClassVar[Mapping[str, str]] = _DEFINITIONS

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of its labels; none if the score is a share."""
        return {} if self.partial else _OF_TURNS if self.per_turn else _VALUES

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt for the judge, and with ``by_agent`` that for recordings with several agents."""
        prompt = load_prompt(self._prompt)
        return (prompt.by_turn(),) if self.per_turn else self._prompts(prompt)

    @property
    def can_decide(self) -> bool:
        """Whether a decision model can be asked, since no text is needed."""
        return not self.partial and not self.by_agent

    @property
    def has_confidence(self) -> bool:
        """Whether its scores have a confidence, which only decision models give."""
        return self._judge.decides and not self.per_turn

    async def _judged(self, sample: Sample, check: AnswerCheck[GoalAnswer]) -> Score:
        if self.per_turn:
            question = choice_question(load_prompt(self._prompt), {**_DEFINITIONS, **_NO_GOAL})
            return await self._score_turns(sample, _OF_TURNS, question, GoalAnswer, _must_be_shown, self._read_turn)
        if self._judge.decides:
            return await self._decided_score(self.prompts[0], sample, _OF_TURNS, self._definitions)
        judgment, by_agent = await self._ask(sample, GoalAnswer, [*_VALUES], check)
        verdict = self._read(judgment.answer.goals)
        details = {**verdict.details, **by_agent}
        return judgment.score(self.name, verdict.grade, label=verdict.label, reason=verdict.reason, details=details)

    def _read(self, goals: Sequence[Goal]) -> Verdict:
        details: dict[str, JsonValue] = {"goals": [goal.model_dump() for goal in goals]}
        achieved = sum(goal.verdict == "achieved" for goal in goals)
        if not goals:
            return Verdict("skipped", "no_goal", "the user has no goal", details)
        share = achieved / len(goals) if self.partial else float(achieved == len(goals))
        label = {0.0: "not_achieved", 1.0: "achieved"}.get(share, "partly_achieved")
        return Verdict(share, label, _reason(goals), details)

    def _read_turn(self, answer: GoalAnswer, _sample: Sample) -> Verdict:
        verdict = self._read(answer.goals)
        evidence = list[JsonValue](dict.fromkeys(number for goal in answer.goals for number in goal.evidence))
        return verdict._replace(details={"evidence": evidence, **verdict.details})


@dataclass(frozen=True)
class AgentGoalAccuracyWithReference(_GoalAccuracy):
    """1 if the desired outcome, ``sample.reference``, was completely achieved by the end of the conversation, else 0.

    With ``partial``, it is the share of its parts that were achieved. Skipped without a reference. One judge request a
    sample. Details: ``goals``, each with its ``goal``, its ``end_state``, a ``reason``, as ``evidence`` the numbers of
    the messages that show it, and its ``verdict``; with ``by_agent``, also those of `PromptScorer`. A decision model
    answers for all goals at once. With ``per_turn``, see `TurnJudgedScorer`. Source: agent goal accuracy of ragas
    (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/), which assumes one goal per
    conversation.
    """

    name: str = "agent_goal_accuracy_with_reference"
    _prompt: ClassVar[str] = "agent_goal_with_reference"

    async def _score(self, sample: Sample) -> Score:
        if missing := self.prompts[0].missing_inputs(sample):
            return Score.skipped(self.name, f"the sample has no {' and no '.join(missing)}")

        def check(answer: GoalAnswer, sample: Sample) -> None:
            if not answer.goals:
                raise ValueError("lists no goal; the desired outcome is at least one")
            _must_be_shown(answer, sample)

        return await self._judged(sample, check)


@dataclass(frozen=True)
class AgentGoalAccuracyWithoutReference(_GoalAccuracy):
    """1 if the agent did everything that the user's messages ask for by the end of the conversation, else 0.

    With ``partial``, it is the share of the user's goals that were achieved. Skipped if the user says nothing or has no
    goal. One judge request a sample. Details and source as for `AgentGoalAccuracyWithReference`.
    """

    name: str = "agent_goal_accuracy_without_reference"
    _prompt: ClassVar[str] = "agent_goal_without_reference"
    _definitions: ClassVar[Mapping[str, str]] = {**_DEFINITIONS, **_NO_GOAL}

    async def _score(self, sample: Sample) -> Score:
        if not any(isinstance(message, HumanMessage) for message in sample.trace.messages):
            return Score.skipped(self.name, "the conversation has no message of the user")
        return await self._judged(sample, _must_be_shown)


def _must_be_shown(answer: GoalAnswer, sample: Sample) -> None:
    for judged_goal in answer.goals:
        check_message_numbers(judged_goal.evidence, sample)
        if judged_goal.verdict == "achieved" and not judged_goal.evidence:
            raise ValueError(
                f"says that {short_repr(judged_goal.goal)} is achieved, without the number of a message that shows it"
            )


def _reason(goals: Sequence[Goal]) -> str:
    if len(goals) == 1:
        return goals[0].reason
    lost = [goal for goal in goals if goal.verdict == "not_achieved"]
    achieved = f"{len(goals) - len(lost)} of {len(goals)} goals achieved"
    named = "; ".join(f"{missed.goal.rstrip('.')}: {missed.reason.rstrip('.')}" for missed in lost if missed.goal)
    return f"{achieved}; not achieved: {named}" if named else achieved
