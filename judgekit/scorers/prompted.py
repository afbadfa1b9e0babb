"""Scorers made of a prompt file with a scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from pydantic import BaseModel, JsonValue, create_model

from judgekit.errors import ConfigError, short_repr
from judgekit.judges.decisions import choice_question
from judgekit.judges.evidence import CitedMessage, Quotation, check_message_numbers, quotation_found, quotation_suffices
from judgekit.judges.judge import Judge
from judgekit.judges.label_probability import label_probability
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import ScaleValue, Score
from judgekit.scorers.judged import AgentJudgedScorer
from judgekit.scorers.turns import TurnJudgedScorer, Verdict
from judgekit.scorers.unanswered import unanswered
from judgekit.traces.ending import missing_answer
from judgekit.traces.sample import Sample
from judgekit.traces.sample_path import ValuePath
from judgekit.traces.tree import MessageNumber


class _Said(Protocol):
    """The fields of an answer to a prompt with a scale, after its steps."""

    reason: str
    evidence: Sequence[MessageNumber] | Sequence[Quotation]
    verdict: str


@dataclass(frozen=True)
class PromptScorer(AgentJudgedScorer, TurnJudgedScorer):
    """The value of the label that the judge chooses on a prompt's scale.

    The judge writes down the prompt's steps, its reason and its evidence before it chooses. Skipped if the sample lacks
    an input of the prompt, and for labels that the scale marks as skipped. One judge request a sample. The confidence
    is the probability of the label's tokens, if the judge's params request ``logprobs`` and its provider returns them
    (see `judgekit.judges.label_probability`; there is none if the cache stores no text). Details: each step under its name,
    and as ``evidence`` the numbers of the messages that show it; if the prompt asks for quotes, each with its
    ``message``, its ``quote``, and whether it was ``found`` there verbatim (``null``: there is no quote, for example
    because the cache stores no text). With ``by_agent``, also ``by_agent``: each agent, if the scorer looks at several,
    with its ``path`` and name, its ``calls``, ``errors`` and ``repeats``, and the ``verdict`` on it with its ``reason``.
    A decision model only chooses the label: the details are the ``probabilities`` of labels, and the confidence is that
    of the chosen one.

    Args:
        prompt: A prompt with a scale, the name of a built-in one, or the path of a Markdown file.
        judge: A judge, or a model as ``"provider/model"``.
        require_evidence: Whether to return a verdict that has a value but no evidence, or a quote that does not exist or
            has less than three words and is no whole line, to the judge once, and to fail if that happens again.
        name: The name of the scores; by default, the prompt's name.
        by_agent: Whether to ask about each agent too, in the same request. The value does not depend on it.
        per_turn: Whether to judge each turn, see `TurnJudgedScorer`; also if the prompt's file says so.

    Raises:
        PromptError: The prompt does not exist.
        ConfigError: It has no scale, or unfilled options.

    Example:
        ``PromptScorer("tone", judge)``
    """

    prompt: Prompt | str | Path
    judge: Judge | str
    require_evidence: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        prompt = self.prompt if isinstance(self.prompt, Prompt) else load_prompt(self.prompt)
        object.__setattr__(self, "per_turn", self.per_turn or prompt.per_turn)
        super().__post_init__()
        if not prompt.scale:
            raise ConfigError(f"the prompt {prompt.name} has no scale; only its own scorer can read its answer")
        of_whole = ("response", "tool_calls", "baseline")
        inputs = (name for name in (*prompt.inputs, *prompt.optional) if ValuePath.parse(name).root in of_whole)
        if self.per_turn and (odd := [*{"turn"}.intersection(prompt.steps), *inputs]):
            raise ConfigError(
                f"{prompt.name}: per_turn needs a prompt without {odd} (a step turn, or inputs of the whole recording)"
            )
        if unfilled := {*prompt.options} - dict(prompt.option_values).keys():
            raise ConfigError(
                f"the prompt {prompt.name} has the options {sorted(unfilled)}; set them with Prompt.given"
            )
        object.__setattr__(self, "prompt", prompt)
        if not self.name:
            object.__setattr__(self, "name", prompt.name)

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence. A client in place of a provider may always return logprobs."""
        judge = self._judge
        if judge.decides or self.per_turn:
            return not self.per_turn
        is_lost = judge.cache_mode != "off" and not judge.store_text
        return judge.client is not None or (bool(judge.params.get("logprobs")) and not is_lost)

    @property
    def can_decide(self) -> bool:
        """Whether a decision model can be asked, since no text is needed."""
        return not self.require_evidence and not self.by_agent

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt for the judge, and with ``by_agent`` that for recordings with several agents."""
        prompt = cast("Prompt", self.prompt)
        return (prompt.by_turn(),) if self.per_turn else self._prompts(prompt)

    async def _score(self, sample: Sample) -> Score:
        prompt = self.prompts[0]
        of_answer = {name for name in prompt.inputs if ValuePath.parse(name).root == "response"}
        no_answer = missing_answer(sample.trace) if of_answer else None
        missing = [name for name in prompt.missing_inputs(sample) if no_answer is None or name not in of_answer]
        if missing:
            return Score.skipped(self.name, f"the sample has no {' and no '.join(missing)}")
        if no_answer is not None:
            return unanswered(Score.scored(self.name, 0.0), no_answer)
        grade: Mapping[str, ScaleValue] = dict(prompt.scale)
        if self._judge.decides and not self.per_turn:
            return await self._decided_score(prompt, sample, grade, dict.fromkeys(grade, ""))

        def check(answer: BaseModel, sample: Sample) -> None:
            verdict = cast("_Said", answer)
            quotations = [citation for citation in verdict.evidence if isinstance(citation, Quotation)]
            numbers = (each.message if isinstance(each, Quotation) else each for each in verdict.evidence)
            check_message_numbers(numbers, sample)
            if not self.require_evidence:
                return
            if not verdict.evidence and isinstance(grade[verdict.verdict], float):  # nothing can show what is absent
                raise ValueError("cites no message; where nothing shows it, cite those where it would have to stand")
            for quotation in quotations:
                quoted, number = f"quotes {short_repr(quotation.quote)}", quotation.message
                if not quotation_found(quotation, sample):
                    raise ValueError(f"{quoted}, which message {number} does not say")
                if not quotation_suffices(quotation, sample):
                    raise ValueError(f"{quoted}: copy at least three words of message {number}, or a whole line of it")

        def read(verdict: _Said, sample: Sample) -> Verdict:
            evidence, lost = _verified_evidence(verdict.evidence, sample)
            reason = f"{verdict.reason} ({lost} of {len(evidence)} quotes not found)" if lost else verdict.reason
            details: dict[str, JsonValue] = {step: getattr(verdict, step) for step in prompt.steps}
            return Verdict(grade[verdict.verdict], verdict.verdict, reason, {**details, "evidence": evidence})

        if self.per_turn:
            whole = cast("Prompt", self.prompt)
            question = choice_question(whole, dict.fromkeys(dict(whole.scale), ""))
            return await self._score_turns(sample, grade, question, _answer(prompt), check, read)
        judgment, by_agent = await self._ask(sample, _answer(prompt), [*grade], check)
        verdict = read(cast("_Said", judgment.answer), judgment.sample)
        return judgment.score(
            self.name,
            verdict.grade,
            reason=verdict.reason,
            label=verdict.label,
            details={**verdict.details, **by_agent},
            confidence=label_probability(judgment.logprobs, "verdict", verdict.label, grade)
            if judgment.logprobs
            else None,
        )


def _verified_evidence(
    evidence: Sequence[MessageNumber] | Sequence[Quotation], sample: Sample
) -> tuple[list[JsonValue], int]:
    """Return the evidence, and the number of its quotes that do not exist."""
    checked: list[JsonValue] = [
        {**citation.model_dump(), "found": quotation_found(citation, sample) if citation.quote else None}
        if isinstance(citation, Quotation)
        else citation
        for citation in evidence
    ]
    return checked, sum(isinstance(quotation, dict) and quotation["found"] is False for quotation in checked)


@cache
def _answer(prompt: Prompt) -> type[BaseModel]:
    """Return the model of the answer, in which reasoning precedes the verdict."""
    fields: dict[str, Any] = dict.fromkeys((*prompt.steps, "reason"), str)
    fields["evidence"] = list[Quotation] if prompt.quotes else list[CitedMessage]
    fields["verdict"] = Literal[tuple(label for label, _ in prompt.scale)]
    return create_model("Answer", **fields)
