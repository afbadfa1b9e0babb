"""What tests of audits share: runs of a judge, and human labels."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from judgekit.analysis.labels import HumanLabel
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.score import Score
from judgekit.stats.agreement import bootstrap_items
from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample

TONE = {"fitting": 1.0, "lacking": 0.0}


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
