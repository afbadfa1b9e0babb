"""Failure analysis: what went wrong, in which message it began, and what to change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, create_model

from judgekit.errors import PlannedError, ReplyError, count_text, join_limited, short_repr, truncated
from judgekit.follow_ups import SampleScores
from judgekit.gathering import ask_apart
from judgekit.judges.evidence import CitedMessage, Quotation, has_quote, quotation_found
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import NOT_FAILED, Score
from judgekit.scorers.failure_labels import NONE_VISIBLE, read_failure_labels
from judgekit.scorers.judged import ScopedJudgedScorer
from judgekit.scoring import NO_CONVERSATION
from judgekit.traces.flaws import claims_without_call, errors_ignored, invented_arguments, repeated_calls, unfinished
from judgekit.traces.message import JsonObject
from judgekit.traces.pairing import pair_results
from judgekit.traces.rendering import call_text, compact_json
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Branch, MessageNumber, Scope, find_message, walk_messages

_THRESHOLD, _MOST_CANDIDATES, _FLAWS_SHOWN, _REASON_SHOWN = 0.5, 6, 20, 500


class FailureCandidate(Quotation):
    """A message at which something went wrong."""

    wrong: str
    label: str
    repaired: bool
    decisive: Literal["yes", "no", "unclear"]


class FailureRoot(BaseModel):
    """The message where a failure began, and the failure in a few words."""

    message: CitedMessage
    symptom: str


class FailureFix(BaseModel):
    """A change after which it would not happen again."""

    where: Literal["instructions", "tool", "tool_description", "agent_code", "nothing"]
    change: str


class FailureAnswer(BaseModel):
    """What the judge replies; it lists and explains before it decides."""

    expected: str
    candidates: list[FailureCandidate] = Field(max_length=_MOST_CANDIDATES)
    roots: list[FailureRoot] = Field(max_length=2)
    reason: str
    fix: FailureFix
    label: str
    verdict: Literal["none_visible", "failed"]


@dataclass(frozen=True)
class FailureAnalysis(ScopedJudgedScorer):
    """1 if the recording of a failed sample shows no failure (``none_visible``), else 0 with a label that says what went wrong.

    It runs after the other scorers of a sample, and skips it unless one of them, or a person, calls it failed with a value under
    0.5. The judge sees the references, the other scores with their reasons, and the flaws that code finds
    (`judgekit.traces.flaws`). It lists candidates, of which code picks the root: the earliest that would have changed the
    outcome and was not made good. If the judge names another one, that is taken with low confidence. Candidates whose
    message or quote does not exist are returned to the judge once, and then dropped.

    One judge request a sample, never together with others. Details: ``expected``, ``candidates`` (``found``: whether the quote is
    in the message, ``null`` without one), ``roots`` (two at most; ``where``: a tool, an agent or ``user``), ``judge_roots``,
    ``confidence``, ``fix``, ``failed_by`` (the scorers) and the number of ``dropped`` candidates. Source: judgekit; see the prompt.

    Args:
        of: The scorers that decide which samples failed, by default all others; ``"all"`` looks at every sample.
        labels: A TOML file with groups of labels, in place of ``prompts/failure_labels.toml``.
    """

    judge: Judge | str
    of: Sequence[str] | str = ()
    labels: Path | str | None = field(default=None, compare=False)  # the prompt has its content
    name: str = "failure_analysis"
    scope: Scope = field(default="tree", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = (self.of,) if isinstance(self.of, str) else tuple(map(str, self.of))
        object.__setattr__(self, "of", "all" if names == ("all",) else names)
        _ = self._labels

    @cached_property
    def _labels(self) -> Mapping[str, tuple[str, str]]:
        return read_failure_labels(None if self.labels is None else Path(self.labels))

    @property
    def label_values(self) -> Mapping[str, float]:
        """The values of its labels."""
        return {NONE_VISIBLE: 1.0, **dict.fromkeys(self._labels, 0.0)}

    @property
    def label_groups(self) -> Mapping[str, str]:
        """The group of each label, for agreement on the coarser level."""
        return {label: group for label, (group, _) in self._labels.items()}

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt for the judge, with the labels."""
        lines = [f"- {label} ({group}): {definition}" for label, (group, definition) in self._labels.items()]
        return (load_prompt("failure_analysis").with_options(labels="\n".join(lines)),)

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of a sample without other scores, which is skipped unless ``of="all"``."""
        return await self.ascore_after(sample, SampleScores())

    async def ascore_after(self, sample: Sample, /, scores: SampleScores) -> Score:
        """Return the score of a sample with these other scores."""
        by_code, by_people = ([score for score in some if score.scorer != self.name] for some in scores)
        deciding = [score for score in (*by_code, *by_people) if self.of in ((), "all") or score.scorer in self.of]
        values = [(score.scorer, value) for score in deciding if (value := _value(score)) is not None]
        failed_by = [*dict.fromkeys(scorer for scorer, value in values if value < _THRESHOLD)]
        if not failed_by and self.of != "all":
            if not deciding:
                return Score.skipped(self.name, "no other score says whether it failed; of='all' looks at every sample")
            unknown = dict.fromkeys(score.scorer for score in deciding if score.status in ("failed", "abstained"))
            without = f"; {join_limited(unknown, separator=', ')} gave no value" if unknown else ""
            return Score.skipped(self.name, f"no other scorer and no person calls it failed{without}", label=NOT_FAILED)
        lines = [_score_line(score) for score in by_code if _value(score) is not None]
        lines += [_score_line(score, annotator="a person") for score in by_people]
        facts: JsonObject = {"failed_by": [*failed_by], "scores": "\n".join(lines) or None}
        if sample.reference_tool_calls is not None:
            calls = [call.model_dump(mode="json", exclude_defaults=True) for call in sample.reference_tool_calls]
            facts["expected_calls"] = "\n".join(map(compact_json, calls)) or "none"
        return await super().ascore(sample.model_copy(update={"fields": facts}))

    async def _score(self, sample: Sample) -> Score:
        if not sample.trace.messages:
            return Score.skipped(self.name, NO_CONVERSATION)
        ask_apart()
        (prompt,) = self.prompts
        facts = {**sample.fields, "flaws": "\n".join(_flaw_lines(sample.trace)) or None}
        model = _answer_model(tuple(self._labels))
        judgment = await self._judge.ask(prompt, sample.model_copy(update={"fields": facts}), model, _check)
        if dropped := _problems(judgment.answer, judgment.sample):
            again = {**facts, "problems": "\n".join(dropped.values())}
            judgment = await self._judge.ask(prompt, sample.model_copy(update={"fields": again}), model, _check)
            dropped = _problems(judgment.answer, judgment.sample)
        answer = judgment.answer
        places = {branch.number(at): (branch, at) for branch, at in walk_messages(Branch(judgment.sample.trace))}
        kept = [candidate for at, candidate in enumerate(answer.candidates) if at not in dropped]
        kept.sort(key=lambda candidate: [*places].index(candidate.message))
        judge_roots = [root.message for root in answer.roots]
        numbers, confidence = select_roots(kept, judge_roots)
        if any(answer.candidates[at].message in judge_roots for at in dropped):
            confidence = "low"
            if not numbers:
                raise ReplyError(f"the judge's roots do not exist: {'; '.join(dropped.values())}", text="")
        roots: list[JsonObject] = []
        for number in numbers:
            at_message = [candidate for candidate in kept if candidate.message == number]
            root = max(at_message, key=lambda candidate: candidate.label == answer.label)
            where = _where(*places[number], root.quote if self._labels[root.label][0] == "tools" else None)
            symptom = next((own.symptom for own in answer.roots if own.message == number), root.wrong)
            roots.append({"message": number, "label": root.label, "where": where, "symptom": symptom})
        reasons = [f"message {root['message']}, {root['label']}: {root['symptom']}." for root in roots]
        reasons.append(answer.reason)
        reasons += ["(Low confidence: the judge and its candidates do not agree on the roots.)"] * (confidence == "low")
        lost = f"({count_text(len(dropped), 'candidate')} dropped: the message or quote does not exist.)"
        reasons += [lost] * bool(dropped)
        return judgment.score(
            self.name,
            float(not roots),
            label=str(roots[0]["label"]) if roots else NONE_VISIBLE,
            reason=" ".join(reasons),
            details={
                "expected": answer.expected,
                "candidates": [{**each.model_dump(), "found": bool(each.quote) or None} for each in kept],
                "roots": list[JsonValue](roots),
                "judge_roots": list[JsonValue](judge_roots),
                "confidence": confidence,
                "fix": answer.fix.model_dump(),
                "failed_by": sample.fields["failed_by"],
                "dropped": len(dropped),
            },
        )


def select_roots(
    candidates: Sequence[FailureCandidate], own: Sequence[MessageNumber]
) -> tuple[list[MessageNumber], str]:
    """Return the messages of the roots, earliest first, and whether their confidence is ``high`` or ``low``.

    The root is the earliest candidate that is decisive and was not repaired. The judge's own roots among the candidates
    are taken if there are any, with low confidence if the first is another one.
    """
    order = list(dict.fromkeys(candidate.message for candidate in candidates))
    decisive = [candidate.message for candidate in candidates if candidate.decisive == "yes" and not candidate.repaired]
    judged = sorted({*own} & {*order}, key=order.index)
    return judged or decisive[:1], "high" if judged[:1] == decisive[:1] else "low"


def _value(score: Score) -> float | None:
    """Return the value of a score, which in a plan may turn out to be 0."""
    return 0.0 if score.error == PlannedError.__name__ else score.value


def _score_line(score: Score, **more: str) -> str:
    """Return a score as a line of JSON, which no text in it can end; a plan takes the reason to be as long as possible."""
    reason = truncated(score.reason, _REASON_SHOWN) if score.value is not None else "." * _REASON_SHOWN
    line = {"scorer": score.scorer, "value": _value(score), "label": score.label, "reason": reason, **more}
    return compact_json(line)


def _flaw_lines(trace: Trace) -> Iterator[str]:
    """Yield the flaws that code finds, each in a line that no text of the recording can end."""
    others = (find(trace) for find in (invented_arguments, claims_without_call, unfinished, repeated_calls))
    for flaws, _ in (errors_ignored(trace, lambda result: bool(result.is_error)), *others):
        for flaw in flaws[:_FLAWS_SHOWN]:
            yield f"message {flaw.message}: {flaw.label}: {truncated(' '.join(flaw.reason.split()), _REASON_SHOWN)}"
        yield from [f"and {len(flaws) - _FLAWS_SHOWN:,} more: {flaw.label}" for flaw in flaws[_FLAWS_SHOWN:][:1]]


def _check(answer: FailureAnswer, _sample: Sample) -> None:
    """Raise a `ValueError` if an answer contradicts itself."""
    labels = [(candidate.message, candidate.label) for candidate in answer.candidates]
    numbers = [root.message for root in answer.roots]
    if strange := {*numbers} - {*dict(labels)}:
        raise ValueError(f"the roots {[*strange]} are none of the candidates")
    if (numbers[0], answer.label) not in labels if numbers else answer.label != NONE_VISIBLE:
        raise ValueError(f"label must be that of the first root, or {NONE_VISIBLE} without one, found {answer.label}")
    if answer.verdict != ("failed" if numbers else NONE_VISIBLE):
        raise ValueError(f"verdict is {answer.verdict}, with {count_text(len(numbers), 'root')}")


def _problems(answer: FailureAnswer, sample: Sample) -> dict[int, str]:
    """Return why candidates cannot be used, by their positions: their messages or quotes do not exist."""
    problems: dict[int, str] = {}
    for at, candidate in enumerate(answer.candidates):
        if find_message(sample.trace, candidate.message) is None:
            problems[at] = f"there is no message {candidate.message}"
        elif candidate.quote and not quotation_found(candidate, sample):
            problems[at] = f"message {candidate.message} does not say {short_repr(candidate.quote)}"
    return problems


def _where(branch: Branch, index: int, quote: str | None) -> str:
    """Return the tool or agent that a message is from, or ``user``; if a ``quote`` is about a call, the tool called."""
    message = branch.trace.messages[index]
    if message.role == "tool":
        answered = pair_results(branch.trace.messages).calls.get(index)
        return message.name or (answered.call.name if answered else "tool")
    if message.role != "assistant":
        return "user" if message.role == "user" else branch.agent or "agent"
    calls = () if quote is None else message.tool_calls
    quoted = [call for call in calls if has_quote(call_text(call), quote or "")]
    return next((call.name for call in (*quoted, *calls)), branch.speaker(message)) or "agent"


@cache
def _answer_model(labels: tuple[str, ...]) -> type[FailureAnswer]:
    label: Any = Literal[labels]
    candidate: Any = create_model("FailureCandidate", __base__=FailureCandidate, label=label)
    candidates: Any = (list[candidate], Field(max_length=_MOST_CANDIDATES))
    label = Literal[(*labels, NONE_VISIBLE)]
    return create_model("FailureAnswer", __base__=FailureAnswer, candidates=candidates, label=label)
