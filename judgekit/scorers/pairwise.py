"""Pairwise comparison: which of two recordings of the same task is better?"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, JsonValue

from judgekit.errors import ConfigError
from judgekit.gathering import ask_apart, gather_all
from judgekit.judges.evidence import CitedMessage, check_message_numbers
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import ScaleValue, Score
from judgekit.scorers.judged import ScopedJudgedScorer
from judgekit.traces.rendering import find_media
from judgekit.traces.sample import Sample

_IN_ORDER = {"first": "trace", "second": "baseline", "tie": "tie"}
_TURNED = {"first": "baseline", "second": "trace", "tie": "tie"}
_LABELS = {"trace": "better", "baseline": "worse", "tie": "tie"}
_IN_WORDS = {"trace": "the trace is better", "baseline": "the baseline is better", "tie": "a tie"}
_VALUES = {"better": 1.0, "tie": 0.5, "worse": 0.0}


class PairAnswer(BaseModel):
    """What the judge replies about two recordings in one order; it looks at each before it chooses."""

    strengths_first: str
    strengths_second: str
    reason: str
    evidence_first: list[CitedMessage]
    evidence_second: list[CitedMessage]
    verdict: Literal["first", "second", "tie"]


@dataclass(frozen=True)
class Pairwise(ScopedJudgedScorer):
    """1 if the trace is better than its baseline in both orders, 0 if the baseline is, 0.5 if neither.

    Two concurrent judge requests a sample: one with ``sample.trace`` as the first recording, one with ``sample.baseline``.
    The label is ``better`` or ``worse`` if both orders prefer the same recording, and ``position_bias`` if both prefer
    the same position: such a flip says nothing about the recordings. Everything else is a ``tie``, including a
    preference in one order and a tie in the other. The confidence is the share of the two orders that agree with the
    label: 1 if they agree with each other, 0.5 if one of them is a tie, and 0 for a flip, as neither called it a tie.

    Skipped without a baseline, and if one of the two has no messages. Two recordings with the same text and media score 0.5 without
    a request, with the label ``same``: they say nothing about the judge's position bias. Details: ``confidence``
    (``high`` if the two orders agree, else ``low``); ``flipped``; and as ``verdicts``, for each order, which recording
    was ``shown_first``, the remarks on the ``first`` and the ``second`` with the numbers of the messages that support
    them, and which one was ``preferred``. Source: MT-Bench (https://arxiv.org/abs/2306.05685).

    Args:
        question: The criterion by which a recording is better.
        judge: A judge, or a model as ``"provider/model"``.
        name: The name of the scores.

    Raises:
        ConfigError: The question is empty.

    Example:
        ``Pairwise("Which agent did what the user asked for?", judge)``
    """

    question: str
    judge: Judge | str
    name: str = "pairwise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.question, str) or not self.question.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - a config file may say anything
            raise ConfigError(f"a pairwise comparison needs a question, found {self.question!r}")

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of its labels, which combine both orders."""
        return _VALUES

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence, which is always the case."""
        return True

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt for the judge."""
        return (load_prompt("pairwise").with_options(question=self.question),)

    async def _score(self, sample: Sample) -> Score:
        (prompt,) = self.prompts
        if missing := prompt.missing_inputs(sample):
            return Score.skipped(self.name, f"the sample has no {' and no '.join(missing)}")
        swapped = _swapped(sample)
        if _content(sample) == _content(swapped):
            return Score.scored(
                self.name,
                0.5,
                label="same",
                reason="the two conversations are identical; no judge was asked",
                details={"confidence": "high", "flipped": False, "verdicts": []},
                confidence=1,
            )
        ask_apart()
        straight, turned = await gather_all(
            self._judge.ask(prompt, order, PairAnswer, _check) for order in (sample, swapped)
        )
        judgment = straight.joined(turned, straight.answer)
        first, other = _IN_ORDER[straight.answer.verdict], _TURNED[turned.answer.verdict]
        label = _LABELS[first] if first == other else "tie" if "tie" in (first, other) else "position_bias"
        details: dict[str, JsonValue] = {
            "confidence": "high" if first == other else "low",
            "flipped": label == "position_bias",
            "verdicts": [
                {"shown_first": "trace", **straight.answer.model_dump(), "preferred": first},
                {"shown_first": "baseline", **turned.answer.model_dump(), "preferred": other},
            ],
        }
        comparison = (
            f"with the trace first, {_IN_WORDS[first]}: {straight.answer.reason}",
            f"with the baseline first, {_IN_WORDS[other]}: {turned.answer.reason}",
        )
        return judgment.score(
            self.name,
            _VALUES.get(label, 0.5),
            label=label,
            reason="; ".join(comparison),
            details=details,
            confidence=(_LABELS[first], _LABELS[other]).count(label) / 2,
        )


def _swapped(sample: Sample) -> Sample:
    return sample.model_copy(update={"trace": sample.baseline, "baseline": sample.trace})


def _content(sample: Sample) -> tuple[str, Sequence[str]]:
    """Return all that the recording holds: its text, and what its text only mentions."""
    media = [part.model_dump_json(exclude={"extra"}) for part in find_media(sample.trace)]
    return sample.trace.render(tool_result_limit=sys.maxsize), media


def _check(answer: PairAnswer, sample: Sample) -> None:
    sides = (
        ("evidence_first", answer.evidence_first, sample),
        ("evidence_second", answer.evidence_second, _swapped(sample)),
    )
    for side, cited, shown in sides:
        try:
            check_message_numbers(cited, shown)
        except ValueError as error:
            raise ValueError(f"{side} {error}") from error
    if answer.verdict != "tie" and not answer.evidence_first and not answer.evidence_second:
        raise ValueError(f"says {answer.verdict} without the number of a message that shows it")
