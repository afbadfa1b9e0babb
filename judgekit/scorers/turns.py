"""The base of judged scorers that can judge each turn of a conversation by itself."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from pydantic import BaseModel, JsonValue, create_model

from judgekit.errors import ConfigError, check_choice, count_text
from judgekit.gathering import ask_apart, gather_all
from judgekit.judges.decisions import TypedQuestion, decisions_model
from judgekit.judges.evidence import StrictNumber
from judgekit.judges.judge import AnswerCheck, Judgment
from judgekit.judges.prompt import Prompt
from judgekit.score import ScaleValue, Score
from judgekit.scorers.judged import ScopedJudgedScorer, no_reason
from judgekit.traces.message import JsonObject
from judgekit.traces.sample import Sample
from judgekit.traces.turns import Turn, find_turns, sample_until

Over: TypeAlias = Literal["share", "mean", "min", "last"]
_MOST, _BLOCK, _CHOICES = 20, 10, 200  # turns of one request, of each of several, and to a decision model
_ABOUT = "For turn {0} alone, messages {1} to {2}, and by what was known at its end, whatever came later:\n\n"


class Verdict(NamedTuple):
    """A verdict on a turn: its value or the status of a score without one, its label, the reason and other details."""

    grade: ScaleValue
    label: str
    reason: str
    details: Mapping[str, JsonValue]


_Answered: TypeAlias = tuple[Judgment[Any], Sequence[Verdict]]


@dataclass(frozen=True)
class TurnJudgedScorer(ScopedJudgedScorer):
    """The base of judged scorers that can judge each turn by itself: a message of the user and all until the next one.

    Then the value is one over turns, and a turn passes from 0.5 on. Turns that are skipped or on which the judge abstains do
    not count; without others, so is the score. Messages before the user's first, and of sub-agents of which it is unknown who
    started them, are context. A request asks about all turns, beyond 20 turns about ten of them, to a decision model about 200,
    and shows nothing later. Details: ``turns``, each with its ``turn``, the number of its first ``message``, and its ``verdict``,
    ``value``, ``reason`` and ``evidence``; ``first_bad``, the first that did not pass.

    Attributes:
        per_turn: Whether to judge each turn in place of the whole recording.
        each: Whether to send a request for each turn, which shows nothing that came after it.
        over: The value over turns: the ``share`` that passes, their ``mean`` or ``min``, or the ``last`` one.
    """

    per_turn: bool = field(default=False, kw_only=True)
    each: bool = field(default=False, kw_only=True)
    over: Over = field(default="share", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("value over turns", self.over, get_args(Over))
        if (self.each or self.over != "share") if not self.per_turn else getattr(self, "by_agent", False):
            raise ConfigError("each and over need per_turn, and by_agent asks about whole recordings, so without it")

    async def _score_turns(
        self,
        sample: Sample,
        grades: Mapping[str, ScaleValue],
        question: TypedQuestion,
        answer: type[BaseModel],
        check: AnswerCheck[Any],
        read: Callable[[Any, Sample], Verdict],
    ) -> Score:
        """Return the score over turns: a decision model gets the typed question on each, others answer as for a recording."""
        added = tuple(
            (label, "the question does not apply to this turn")
            for label in grades
            if label not in dict(question.labels)
        )
        typed = replace(question, labels=(*question.labels, *added))

        async def decide(prompt: Prompt, sample: Sample) -> _Answered:
            choices = (replace(typed, about=_ABOUT.format(*turn)) for turn in prompt.turns)
            judgment = await self._judge.ask(prompt, sample, decisions_model(*choices))
            verdicts: list[Verdict] = []
            for decided in judgment.answer.decided:
                details: JsonObject = {"evidence": [], "probabilities": dict(decided.probabilities)}
                verdicts.append(Verdict(grades[decided.label], decided.label, no_reason(self._judge, decided), details))
            return judgment, verdicts

        async def ask(prompt: Prompt, sample: Sample) -> _Answered:
            ends = {turn.number: turn.last for turn in prompt.turns}

            def check_all(answers: Any, sample: Sample) -> None:
                if (numbers := sorted(entry.turn for entry in answers.turns)) != [*ends]:
                    raise ValueError(f"must judge each of the turns {[*ends]} once, found {numbers}")
                for entry in answers.turns:
                    end = ends[entry.turn]
                    try:
                        check(entry, sample_until(sample, end))
                    except ValueError as error:
                        raise ValueError(f"turn {entry.turn}, which ends with message {end}: {error}") from error

            judgment: Judgment[Any] = await self._judge.ask(prompt, sample, _turns_model(answer), check_all)
            entries = {entry.turn: entry for entry in judgment.answer.turns}
            return judgment, [read(entries[number], judgment.sample) for number in ends]

        return self._score_over_turns(*await self._ask_blocks(sample, decide if self._judge.decides else ask))

    async def _ask_blocks(
        self, sample: Sample, ask: Callable[[Prompt, Sample], Coroutine[object, object, _Answered]]
    ) -> tuple[Judgment[Any], Sequence[Turn], Sequence[Verdict]]:
        """Return the verdict on each turn. Each request is about the turns of a prompt, of which the last ends its sample."""
        turns = find_turns(sample.trace)
        most = 1 if self.each else _CHOICES if self._judge.decides else _BLOCK if len(turns) > _MOST else _MOST
        blocks = [turns[at : at + most] for at in range(0, len(turns), most)]
        if len(blocks) > 1:
            ask_apart()
        answered = await gather_all(
            ask(replace(cast("Prompt", self.prompts[0]), turns=block), sample_until(sample, block[-1].last))
            for block in blocks
        )
        *others, judgment = sorted((judgment for judgment, _ in answered), key=lambda judgment: bool(judgment.calls))
        for other in others:
            judgment = judgment.joined(other, judgment.answer)
        return judgment, turns, [verdict for _, verdicts in answered for verdict in verdicts]

    def _score_over_turns(self, judgment: Judgment[Any], turns: Sequence[Turn], verdicts: Sequence[Verdict]) -> Score:
        judged = list(zip(turns, verdicts, strict=True))
        grades = [verdict.grade for verdict in verdicts if isinstance(verdict.grade, float)]
        passed = [grade >= 0.5 for grade in grades]
        rows: list[JsonValue] = [
            {
                **verdict.details,
                "turn": turn.number,
                "message": turn.first,
                "verdict": verdict.label,
                "reason": verdict.reason,
                "value": verdict.grade if isinstance(verdict.grade, float) else None,
            }
            for turn, verdict in judged
        ]
        details: dict[str, JsonValue] = {"turns": rows, "first_bad": None}
        if not grades:
            grade, label, reason, _ = min(verdicts, key=lambda verdict: verdict.grade != "abstained")
            reason = f"no value for any of {count_text(len(turns), 'turn')}: {reason}"
            return judgment.score(self.name, grade, label=label, reason=reason, details=details)
        reason = f"{sum(passed)} of {count_text(len(passed), 'turn')} passed"
        if not all(passed):
            turn, verdict = [pair for pair in judged if isinstance(pair[1].grade, float)][passed.index(False)]
            details["first_bad"] = {"turn": turn.number, "message": turn.first}
            reason += f"; the first that did not is turn {turn.number} (message {turn.first}), {verdict.label}: {verdict.reason}"
        if idle := len(turns) - len(grades):
            reason += f" ({count_text(idle, 'other turn')} without a value)"
        over = {"share": fmean(passed), "mean": fmean(grades), "min": min(grades), "last": grades[-1]}
        return judgment.score(self.name, over[self.over], reason=reason, details=details)


@cache
def _turns_model(answer: type[BaseModel]) -> type[BaseModel]:
    """Return the model of an answer with an entry for each turn: its number, and the parts of the scorer's own answer."""
    parts: dict[str, Any] = {name: (part.annotation, part) for name, part in answer.model_fields.items()}
    entry: Any = create_model("Turn", turn=StrictNumber, **parts)
    return create_model("Turns", turns=list[entry])
