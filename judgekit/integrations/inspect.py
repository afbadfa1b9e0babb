"""Scorers for Inspect AI. An extra, ``inspect-ai``, imported on first use."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

from pydantic import JsonValue, TypeAdapter
from pydantic_core import to_jsonable_python

from judgekit.aggregates.total import compute_total
from judgekit.distribution import install_command
from judgekit.errors import ConfigError, TraceError
from judgekit.formats.label_sources import JUDGED_MARK
from judgekit.formats.readers.inspect import InspectReader
from judgekit.registry import allow_code
from judgekit.runs.rows import ScorerRecord
from judgekit.score import Score
from judgekit.scoring import Scorer, attempt
from judgekit.traces.message import JsonObject
from judgekit.traces.sample import Sample

_JSON = TypeAdapter[JsonValue](JsonValue)

Metric: TypeAlias = Callable[[Sequence[Any]], Mapping[str, float]]


class InspectScorer(Protocol):
    """A scorer, as Inspect defines it."""

    async def __call__(self, state: Any, target: Any) -> Any:
        """Return the score of a sample."""
        ...


class _Scores(Protocol):
    """The part of ``inspect_ai.scorer`` that is used."""

    Score: Any

    def scorer(
        self, metrics: Sequence[object], name: str, **metadata: str | None
    ) -> Callable[..., Callable[[], InspectScorer]]: ...
    def metric(self, name: str, *, scores: str) -> Callable[..., Callable[[str], Metric]]: ...
    def mean(self) -> object: ...
    def stderr(self) -> object: ...


def inspect_scorer(scorer: Scorer, *, aggregate: str = "mean") -> InspectScorer:
    """Return a scorer for a task of Inspect, under the scorer's own name.

    The sample is the one that `judgekit.read` makes of the task's log: its references (``reference_tool_calls``,
    ``reference_topics``, ``label`` and so on) are taken from the metadata of Inspect's sample, and its ``fields`` hold
    the choices. A skipped, failed or abstained score is unscored in Inspect, which counts it but includes it in no
    metric; ``reason`` and ``metadata`` say which it is. Errors that would also affect the next sample are raised.

    Args:
        scorer: Any scorer.
        aggregate: The aggregate of its scores, if it is not their mean: `Score.aggregate`, such as ``corpus_bleu``. It
            is computed over all epochs; a mean is that of Inspect, with its standard error.

    Raises:
        ConfigError: Inspect is not installed. When a sample is scored: its score has another ``aggregate``.
    """
    try:
        scores = cast("_Scores", import_module("inspect_ai.scorer"))
        log: Any = import_module("inspect_ai.log")
    except ImportError as error:
        raise ConfigError(f"Inspect cannot be imported ({error}): {install_command('inspect-ai')}") from error

    metrics = [scores.mean(), scores.stderr()] if aggregate == "mean" else [_total(scores, aggregate)]

    @scores.scorer(metrics, scorer.name, signature=ScorerRecord.of(scorer).signature)
    def judgekit_scorer() -> InspectScorer:
        async def score(state: Any, target: Any) -> Any:
            try:
                sample = _sample(state, target, log.transcript().events)
            except TraceError as error:
                return _scored(Score.failed(scorer.name, str(error), error="TraceError"), None, scores)
            own_score = await attempt(scorer, sample)
            if own_score.status == "scored" and own_score.aggregate != aggregate:
                wanted = f"inspect_scorer(..., aggregate={own_score.aggregate!r})"
                raise ConfigError(
                    f"the scores of {scorer.name!r} do not have the aggregate {aggregate!r}: use {wanted}"
                )
            return _scored(own_score, sample.trace.response, scores)

        return score

    return judgekit_scorer()


def _sample(state: Any, target: Any, events: object) -> Sample:
    """Return the sample that a log would hold; see `InspectReader`."""
    record = {
        "id": state.sample_id,
        "epoch": state.epoch,
        "uuid": state.uuid,
        "input": state.input,
        "choices": [choice.value for choice in state.choices],
        "target": list(target),
        "messages": state.messages,
        "output": state.output,
        "metadata": state.metadata,
        "events": events,
    }
    json_record = _JSON.validate_python(to_jsonable_python(record, exclude_none=True, fallback=str))
    return InspectReader().sample(json_record, 0)


def _scored(score: Score, answer: str | None, scores: _Scores) -> Any:
    """Return a score as Inspect's, with metadata for the aggregate and on whether a judge was asked."""
    metadata: JsonObject = {"status": score.status, "label": score.label, "details": score.details}
    metadata[JUDGED_MARK] = bool(score.calls)
    if score.calls:
        metadata |= {"judges": [*dict.fromkeys(call.judge for call in score.calls)], "cost_usd": score.usd_paid}
    if score.warnings:
        metadata["warnings"] = list(score.warnings)
    if score.error is not None:
        metadata["error"] = score.error
    fields = {"answer": answer, "explanation": score.reason, "metadata": metadata}
    if score.value is not None:
        return scores.Score(value=score.value, **fields)
    failed = "grader_failed" if score.calls else "scoring_failed"  # Inspect's own words
    return scores.Score.unscored(reason=failed if score.status == "failed" else score.status, **fields)


def _total(scores: _Scores, aggregate: str) -> Metric:
    """Return a metric: the aggregate of the scores of all epochs, and its other figures."""
    allow_code(aggregate.partition(":")[0])

    @scores.metric("total", scores="unreduced")
    def total(aggregate: str) -> Metric:
        def come_to(sample_scores: Sequence[Any]) -> dict[str, float]:
            of = compute_total(aggregate, [_restored(sample_score.score, aggregate) for sample_score in sample_scores])
            figures = {name: number for name, number in of.metrics.items() if number is not None}
            return {aggregate: float("nan") if of.value is None else of.value, **figures}

        return come_to

    return total(aggregate)


def _restored(score: Any, aggregate: str) -> Score:
    metadata = score.metadata
    return Score.scored("", score.value, label=metadata["label"], details=metadata["details"], aggregate=aggregate)
