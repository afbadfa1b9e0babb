"""The base class of scorers that ask a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, cast

from pydantic import BaseModel, JsonValue, create_model

from judgekit.errors import ConfigError, short_repr
from judgekit.judges.answer import Answer
from judgekit.judges.decisions import Decided, Decisions, choice_question, decisions_model, no_text_message
from judgekit.judges.evidence import StrictNumber
from judgekit.judges.judge import AnswerCheck, Judge, Judgment
from judgekit.judges.prompt import Prompt
from judgekit.score import ScaleValue, Score
from judgekit.scorers.agents import agent_rows
from judgekit.scorers.scope import ScopedScorer
from judgekit.scoring import JudgePrompt, Scorer, SyncScore
from judgekit.traces.behavior import agents
from judgekit.traces.message import JsonObject
from judgekit.traces.sample import Sample


class _HasJudge(Protocol):
    @property
    def judge(self) -> Judge | str | None: ...


def convert_judge(scorer: _HasJudge) -> None:
    """Replace the name of a model in a new scorer's field ``judge`` with a judge.

    Raises:
        ConfigError: ``judge`` is neither a judge nor the name of a model.
    """
    judge = scorer.judge
    if isinstance(judge, str):
        object.__setattr__(scorer, "judge", Judge(judge))
    elif not isinstance(judge, Judge):
        raise ConfigError(f'judge must be a Judge or a "provider/model", found {short_repr(judge)}')
    judge = cast("Judge", scorer.judge)
    if judge.decides and not getattr(scorer, "can_decide", False):
        name: str = getattr(scorer, "name", "") or type(scorer).__name__
        raise ConfigError(f"{name}: {no_text_message(judge.model)}")


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
    def can_decide(self) -> bool:
        """Whether a decision model can be asked, since no text is needed."""
        return False

    @property
    def _judge(self) -> Judge:
        return cast("Judge", cast("_HasJudge", self).judge)


class ScopedJudgedScorer(JudgedScorer, ScopedScorer):
    """The base of judged scorers that look at the agent's own conversation, or also at those of its sub-agents."""

    def __post_init__(self) -> None:
        convert_judge(cast("_HasJudge", self))
        ScopedScorer.__post_init__(self)


@dataclass(frozen=True)
class AgentJudgedScorer(ScopedJudgedScorer):
    """The base of judged scorers that can ask about each agent too, in the same request.

    Attributes:
        by_agent: Whether to ask about each agent too, if the scorer looks at several: sub-agents within its scope, or
            agents that work in one conversation. The value does not depend on these verdicts.
    """

    by_agent: bool = field(default=False, kw_only=True)

    def _prompts(self, question: Prompt) -> tuple[Prompt, ...]:
        """Return the question, and if agents are asked about, the one for recordings with several."""
        return (question, question.by_agent()) if self.by_agent else (question,)

    async def _decided_score(
        self, prompt: Prompt, sample: Sample, grades: Mapping[str, ScaleValue], definitions: Mapping[str, str]
    ) -> Score:
        """Return the score for the label that a decision model chooses, each with its definition, which may be empty."""
        judgment = await self._judge.ask(prompt, sample, _choice_model(prompt, tuple(definitions.items())))
        (decided,) = judgment.answer.decided
        return judgment.score(
            cast("Scorer", self).name,
            grades[decided.label],
            label=decided.label,
            reason=f"{decided.label}, {no_reason(self._judge, decided)}",
            details={"probabilities": dict(decided.probabilities)},
            confidence=decided.probability,
        )

    async def _ask(
        self, sample: Sample, answer: type[Answer], labels: Sequence[str], check: AnswerCheck[Answer]
    ) -> tuple[Judgment[Answer], JsonObject]:
        """Ask the judge, and return its judgment with the details on each agent."""
        prompt, *by_agent = cast("Sequence[Prompt]", self.prompts)
        if not by_agent or len(agents(sample.trace)) < 2:
            return await self._judge.ask(prompt, sample, answer, check), {}

        def check_all(answer: Answer, sample: Sample) -> None:
            check(answer, sample)
            expected = list(range(1, len(agents(sample.trace)) + 1))
            if (numbers := sorted(verdict.agent for verdict in cast("Any", answer).agents)) != expected:
                raise ValueError(f"must judge each of the agents 1 to {expected[-1]} once, found {numbers}")

        judgment = await self._judge.ask(by_agent[0], sample, _with_agents(answer, tuple(labels)), check_all)
        trace = judgment.sample.trace
        rows = agent_rows(trace, zip(trace.tool_calls(), trace.call_errors(), strict=True)).values()
        verdicts: list[Any] = sorted(judgment.answer.agents, key=lambda verdict: verdict.agent)
        judged_rows: list[JsonValue] = [
            {**row, "verdict": verdict.agent_verdict, "reason": verdict.reason}
            for row, verdict in zip(rows, verdicts, strict=True)
        ]
        return judgment, {"by_agent": judged_rows}


def no_reason(judge: Judge, decided: Decided) -> str:
    """Return the probability of the label that a decision model chose, in place of a reason."""
    return f"with a probability of {decided.probability:.2f}; {judge.model} gives no reasons"


@cache
def _choice_model(prompt: Prompt, definitions: tuple[tuple[str, str], ...]) -> type[Decisions]:
    return decisions_model(choice_question(prompt, dict(definitions)))


@cache
def _with_agents(answer: type[Answer], labels: tuple[str, ...]) -> type[Answer]:
    """Return the model of an answer with a verdict on each agent, which follows the rest and so does not affect it.

    The field is not called ``verdict``, since the confidence is that of the last field with this name.
    """
    fields: dict[str, Any] = {"agent": StrictNumber, "reason": str}
    fields["agent_verdict"] = Literal[tuple(dict.fromkeys((*labels, "not_applicable")))]
    verdict: Any = create_model("AgentVerdict", **fields)
    named: dict[str, Any] = {"agents": list[verdict]}
    return cast("type[Answer]", create_model(answer.__name__, __base__=cast("type[BaseModel]", answer), **named))
