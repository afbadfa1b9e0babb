"""What tests of audits share: runs of a judge, and human labels."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.sampling import draw_samples
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.score import Score
from judgekit.stats.agreement import bootstrap_items
from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample

TONE = {"fitting": 1.0, "lacking": 0.0}
Verdicts = tuple[list[float], list[float]]


def _judged(
    verdicts: Sequence[float | Score],
    *,
    store: Path | None = None,
    model: str = "m-1",
    scale: Mapping[str, float] = TONE,
    messages: Callable[[int], int] = lambda index: 1 + index % 5,
    groups: Sequence[str | None] = (),
    domains: Sequence[str | None] = (),
    ids: Sequence[str] = (),
    agent: str | Sequence[str] | None = "agent-1",
) -> Run:
    names = {grade: label for label, grade in scale.items()}
    scorer = ScorerRecord(
        name="tone",
        signature=model.encode().hex().rjust(16, "0"),
        identity=["Tone", {"judge": {"model": model}}],
        judged=True,
        scale=dict(scale),
    )
    kept = RunStore(store)
    record = kept.begin(RunRecord(started_at=now(), scorers=[scorer], count_precision="exactly"))
    recorder = Recorder(kept, record)
    for index, verdict in enumerate(verdicts):
        is_score = isinstance(verdict, Score)
        score = verdict if is_score else Score.scored("tone", verdict, label=names.get(verdict), reason=f"as {index}")
        sample = Sample.of(
            [AIMessage(f"Hi {index:05}", model=agent if agent is None or isinstance(agent, str) else agent[index])]
            * messages(index),
            id=ids[index] if ids else f"s{index}",
            group=groups[index] if groups else None,
            domain=domains[index] if domains else None,
        )
        recorder.add_sample(index, sample)
        recorder.add_row(Row.of(index, sample, score))
    recorder.flush()
    return Run(kept, kept.change(record.model_copy(update={"ended_at": now()})))


def imperfect(
    n: int, share: float = 0.7, sensitivity: float = 0.95, specificity: float = 0.85, seed: int = 0
) -> Verdicts:
    """The true verdicts of n samples, and those of a judge with these error rates."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    truth = [float(dice.random() < share) for _ in range(n)]
    right = [dice.random() < (sensitivity if one else specificity) for one in truth]
    return truth, [one if is_right else 1 - one for one, is_right in zip(truth, right, strict=True)]


def drawn_from(
    run: Run,
    truth: Sequence[object],
    n: int,
    *,
    by_verdict: bool = False,
    include_skipped: bool = False,
    seed: int = 0,
    **fields: object,
) -> list[HumanLabel]:
    """Human labels of samples drawn from a run."""
    return [
        HumanLabel(
            sample=drawn.id,
            scorer="tone",
            value=truth[drawn.number],
            run=run.number,
            number=drawn.number,
            selection=drawn.selection,
            probability=drawn.probability,
            **fields,
        )
        for drawn in draw_samples(run, "tone", n, by_verdict=by_verdict, include_skipped=include_skipped, seed=seed)
    ]


def _said(values: Mapping[int, object], **fields: object) -> list[HumanLabel]:
    return [HumanLabel(sample=f"s{index}", scorer="tone", value=value, **fields) for index, value in values.items()]


@pytest.fixture(scope="session")
def judged() -> Callable[..., Run]:
    """A run of one judged scorer called tone, by its verdicts."""
    return _judged


@pytest.fixture(scope="session")
def said() -> Callable[..., list[HumanLabel]]:
    """Human labels, by the number of the sample."""
    return _said


@pytest.fixture
def quick(monkeypatch) -> None:
    """A tenth of the draws, where an audit's intervals are not what is looked at."""
    monkeypatch.setattr("judgekit.analysis.measures.bootstrap_items", partial(bootstrap_items, draws=200))
