"""What tests of alignments share: recordings, what people say of them, and a judge that misses it."""

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from judgekit import HumanLabel, Judge, PromptScorer, Run, Sample, ScriptedJudge, load_prompt, run
from judgekit.judges.request import Request
from judgekit.traces.message import AIMessage, HumanMessage

WORDS = [
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll", "lagoon"),
    *("marsh", "north", "ocean", "prairie"),
]
GOOD_RULE = "Call it lacking if the agent shouts."
WRITTEN = {"reason": "people dislike shouting", "guidelines": [{"rule": GOOD_RULE, "cases": [1, 2]}]}
Writes = Mapping[str, object] | Callable[[Request], Mapping[str, object]]


def recordings(count: int = 60) -> list[Sample]:
    """Conversations in which the agent shouts in two of five."""
    dice = random.Random(1)  # noqa: S311 - conversations, and no secrets
    found: list[Sample] = []
    for number in range(count):
        asked, said = (" ".join(dice.choice(WORDS) for _ in range(6)) for _ in range(2))
        text = f"{said} LOUDLY!" if dice.random() < 0.4 else f"{said}."
        found.append(Sample.of([HumanMessage(f"{asked}?"), AIMessage(text)], id=f"s{number}"))
    return found


def shouts(sample: Sample) -> bool:
    """Whether the agent shouts, which people call lacking."""
    return "!" in sample.trace.messages[-1].text


def labels(samples: Sequence[Sample]) -> list[HumanLabel]:
    """What people say."""
    return [
        HumanLabel(sample=one.id, scorer="tone", value="lacking" if shouts(one) else "fitting", reason="as I see it")
        for one in samples
    ]


def judge(writes: Writes = WRITTEN, **settings: object) -> ScriptedJudge:
    """A judge that hears shouting only if its question names it, and that writes candidates as told."""

    def says(request: Request) -> Mapping[str, object]:
        if request.prompt.startswith("align_"):
            return writes(request) if callable(writes) else writes
        shown = request.messages[1].content
        is_lacking = "!" in shown and "shouts" in shown
        return {"reason": "heard", "evidence": [], "verdict": "lacking" if is_lacking else "fitting"}

    return ScriptedJudge(lambda request: dict(says(request)), **settings)


def tone(asked: Judge) -> PromptScorer:
    """The scorer that is aligned."""
    return PromptScorer(load_prompt("tone"), asked)


@pytest.fixture(scope="session")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a run of the old question."""
    path = tmp_path_factory.mktemp("scored") / "runs.sqlite"
    run(recordings(), [tone(judge())], store=path)
    return path


@pytest.fixture
def scored(scored_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A stored run of the old question, with the working directory beside it."""
    monkeypatch.chdir(tmp_path)
    store = tmp_path / ".judgekit" / "runs.sqlite"
    store.parent.mkdir()
    shutil.copy(scored_once, store)
    return Run.stored(1, store)
