"""Topic adherence: does the agent handle requests on its topics, and only those?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, JsonValue

from judgekit.errors import check_choice
from judgekit.judges.evidence import CitedMessage, StrictNumber, check_message_numbers
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import Score
from judgekit.scorers.judged import ScopedJudgedScorer
from judgekit.traces.sample import Sample

TopicMode: TypeAlias = Literal["precision", "recall", "f1", "accuracy"]


class TopicRequest(BaseModel):
    """One thing that the user asked for; ``topic`` is the number of the topic, from 1."""

    request: str
    message: CitedMessage
    reason: str
    topic: StrictNumber | None
    outcome: Literal["answered", "refused"]


class TopicAnswer(BaseModel):
    """What the judge replies; what follows from it is counted in code."""

    requests: list[TopicRequest]


@dataclass(frozen=True)
class TopicAdherence(ScopedJudgedScorer):
    """1 if the agent answers every request on its topics (recall) and no other (precision).

    With TP = answered and on topic, FP = answered and off topic, FN = refused and on topic, TN = refused and off topic:
    precision = TP / (TP + FP), recall = TP / (TP + FN), f1 = 2 TP / (2 TP + FP + FN), accuracy = (TP + TN) / all. The
    details contain all four with the counts and the requests, whatever the mode. A request that spans several messages
    is one request, judged by its final outcome; duplicates with equal words, topic and outcome count once.

    Skipped without ``sample.reference_topics``, and if the mode's ratio is 0 / 0. One judge request a sample. Source:
    topic adherence of ragas (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/agents/), without its
    epsilon; accuracy is an addition.

    Raises:
        ConfigError: The mode is unknown.
    """

    judge: Judge | str
    mode: TopicMode = "f1"
    name: str = "topic_adherence"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("mode of topic adherence", self.mode, get_args(TopicMode))

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt for the judge."""
        return (load_prompt("topic_adherence"),)

    async def _score(self, sample: Sample) -> Score:
        prompt = self.prompts[0]
        if missing := prompt.missing_inputs(sample):
            return Score.skipped(self.name, f"the sample has no {' and no '.join(missing)}")
        judgment = await self._judge.ask(prompt, sample, TopicAnswer, _check)
        topics = _topics(judgment.sample)
        requests = list({_identity(request, topics): request for request in judgment.answer.requests}.values())
        figures, seen = _counted(requests)
        listed = [request.model_dump() | {"topic": _topic(request, topics)} for request in requests]
        details: dict[str, JsonValue] = {**figures, "requests": [*listed]}
        if (value := figures[self.mode]) is None:
            reason = f"{self.mode} is undefined (0/0): {seen}"
            return judgment.score(self.name, "skipped", label="undefined", reason=reason, details=details)
        wrong = [request for request in requests if (request.outcome == "answered") != (request.topic is not None)]
        astray = "; ".join(f"{request.request!r} {request.outcome} in message {request.message}" for request in wrong)
        return judgment.score(self.name, value, reason=f"{seen}. {astray}" if astray else seen, details=details)


def _check(answer: TopicAnswer, sample: Sample) -> None:
    check_message_numbers((request.message for request in answer.requests), sample)
    topics = _topics(sample)
    for request in answer.requests:
        if request.topic is not None and request.topic not in topics:
            raise ValueError(f"names the topic {request.topic}; the topics are {', '.join(map(str, topics))}, or null")
    # Without text, for example because replies are not stored, a duplicate request would count as two.
    unnamed = [_identity(request, topics) for request in answer.requests if not _folded(request.request)]
    if len(unnamed) > len({*unnamed}):
        raise ValueError("lists requests without a word, which cannot be told apart")


def _topics(sample: Sample) -> dict[int, str]:
    """Return the topics by the numbers that the judge refers to."""
    return {number: topic for number, topic in enumerate(sample.reference_topics or (), 1) if topic.strip()}


def _topic(request: TopicRequest, topics: Mapping[int, str]) -> str | None:
    return None if request.topic is None else topics[request.topic]


def _identity(request: TopicRequest, topics: Mapping[int, str]) -> tuple[str, str, str]:
    """Return a key that equal requests share."""
    return _folded(request.request), _folded(_topic(request, topics) or ""), request.outcome


def _counted(requests: Sequence[TopicRequest]) -> tuple[dict[str, float | None], str]:
    """Return the ratios and the counts that they are made of, and the counts in words."""
    kinds = [(request.outcome, request.topic is not None) for request in requests]
    tp, fp, fn, tn = (kinds.count((outcome, on)) for outcome in ("answered", "refused") for on in (True, False))
    parts = {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "f1": (2 * tp, 2 * tp + fp + fn)}
    parts["accuracy"] = tp + tn, tp + fp + fn + tn
    ratios = {mode: part / whole if whole else None for mode, (part, whole) in parts.items()}
    sentences = [f"on topic, {tp} of {tp + fn} requests answered"] if tp + fn else []
    sentences += [f"off topic, {tn} of {fp + tn} requests refused"] if fp + tn else []
    seen = "; ".join(sentences) or "the user asked for nothing"
    return {**ratios, "tp": tp, "fp": fp, "fn": fn, "tn": tn}, seen


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
