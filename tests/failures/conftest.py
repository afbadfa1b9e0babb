"""What tests of failures share: runs whose analysis is written down, and a judge that sorts symptoms by their first word."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from judgekit import Run, Sample, Score, ScriptedJudge, load_prompt, run
from judgekit.judges.prompt import Prompt
from judgekit.judges.request import Request
from judgekit.runs.store import RunStore
from judgekit.traces.message import AIMessage, HumanMessage

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
Analyzed = Mapping[str, tuple[str, str, str] | None]
"""By the id of a sample, its label, where it failed and the symptom; ``None`` for a sample that nobody calls failed."""


def details(label: str, where: str, symptom: str) -> dict[str, object]:
    """Return the details of a score of ``failure_analysis``."""
    return {
        "candidates": [{"message": 2, "quote": "Done.", "found": True, "label": label}],
        "roots": [{"message": 2, "label": label, "where": where, "symptom": symptom}],
        "fix": {"where": "instructions", "change": f"say more about {where}"},
    }


@dataclass(frozen=True)
class Analysis:
    """The scorer that finds what is written down."""

    analyses: Analyzed
    name: str = "failure_analysis"
    prompts: ClassVar[Sequence[Prompt]] = (load_prompt("tone"),)
    label_values: ClassVar[Mapping[str, float]] = {"forgot": 0.0, "drifted": 0.0, "none_visible": 1.0}

    async def ascore(self, sample: Sample) -> Score:
        """Return the score that is written down."""
        if (failure := self.analyses[sample.id]) is None:
            return Score.skipped(self.name, "no other scorer calls it failed")
        label, where, symptom = failure
        if label == "broken":
            raise RuntimeError("no answer")
        if label == "none_visible":
            return Score.scored(self.name, 1.0, label=label, details={"roots": []})
        return Score.scored(self.name, 0.0, label=label, details=details(label, where, symptom))


@pytest.fixture
def analyzed(tmp_path: Path) -> Callable[..., Run]:
    """Stores a run with these analyses; each begins a day after the one before."""
    path = tmp_path / ".judgekit" / "runs.sqlite"

    def make(analyses: Analyzed, *, config: str | None = None, **metadata: object) -> Run:
        samples = [
            Sample.of([HumanMessage(f"Please do {name}."), AIMessage("Done.")], id=name, metadata=dict(metadata))
            for name in analyses
        ]
        made = run(samples, [Analysis(analyses)], store=path, config=config)
        store = RunStore(path)
        began = BEGAN + timedelta(days=made.number)
        store.change(made.record.model_copy(update={"started_at": began, "ended_at": began}))
        return Run.stored(made.number, path)

    return make


def listed(text: str, title: str) -> dict[int, str]:
    """Return the numbered lines of a part of a request."""
    (part,) = re.findall(rf"\[\w+ {title} begins\]\n(.*?)\n\[\w+ {title} ends\]", text, re.DOTALL)
    return {int(number): line for number, line in re.findall(r"^\| (\d+): (.*)$", part, re.MULTILINE)}


def sorts(request: Request) -> dict[str, object]:
    """Group symptoms, and match them with issues, by their first word."""
    text = request.messages[-1].content
    symptoms = listed(text, "symptoms")
    if request.prompt.startswith("failures_group"):
        kinds: dict[str, list[int]] = {}
        for number, symptom in symptoms.items():
            kinds.setdefault(symptom.split()[0], []).append(number)
        return {"groups": [{"name": f"{kind} it is", "members": numbers} for kind, numbers in kinds.items()]}
    issues = {line.split("such as: ")[1].split()[0]: number for number, line in listed(text, "issues").items()}
    matches = [{"symptom": number, "issue": issues.get(symptom.split()[0], 0)} for number, symptom in symptoms.items()]
    return {"matches": matches}


def sorting(reply: Callable[[Request], Mapping[str, object]] = sorts, **settings: object) -> ScriptedJudge:
    """Return a judge that sorts symptoms."""
    return ScriptedJudge(lambda request: dict(reply(request)), **settings)


def failing(
    symptoms: Iterable[str], label: str = "missing_call", where: str = "refund", first: int = 0
) -> dict[str, tuple[str, str, str]]:
    """Return analyses of samples that fail with these symptoms."""
    return {f"s{number}": (label, where, symptom) for number, symptom in enumerate(symptoms, first)}
