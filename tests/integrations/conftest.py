"""What the tests of integrations share."""

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from judgekit import HumanMessage, PromptScorer, Row, Run, Sample, Score, ScriptedJudge, ToolCallF1, load_prompt, run
from judgekit.score import JudgeCall

PAID = JudgeCall(judge="openai/a", prompt="tone@1", cost_usd=0.25)
SCORES = (
    Score.scored("tone", 0.5, label="partly", reason="It is kind.", details={"tp": 1}, calls=[PAID, PAID]),
    Score.skipped("f1", "no reference"),
    Score.failed("goal", "TruncatedError: cut off", error="TruncatedError", calls=[PAID]),
    Score.abstained("panel", "they disagree", calls=[PAID, PAID.model_copy(update={"cost_usd": None})]),
)
"""One of each status."""


@pytest.fixture
def rows_of() -> Callable[..., list[Row]]:
    """Rows of a sample with these scores, the first four if not given, and ids."""

    def make(scores: Iterable[Score] = SCORES, *, sample_id: str = "s1", trace_id: str | None = None) -> list[Row]:
        return [Row(index=0, sample_id=sample_id, score=score, trace_id=trace_id) for score in scores]

    return make


@pytest.fixture
def coin_flipper() -> Callable[[str], PromptScorer]:
    """A scorer of this name whose judge flips a coin."""
    coin = random.Random(0)  # noqa: S311 - any coin will do

    def flipped(_: object) -> dict[str, object]:
        return {"reason": "heads or tails", "evidence": [], "verdict": coin.choice(["fitting", "lacking"])}

    return lambda name: PromptScorer(load_prompt("tone"), ScriptedJudge(flipped), name=name)


@pytest.fixture
def coin_flips(coin_flipper: Callable[[str], PromptScorer]) -> Run:
    """Thirty verdicts of a judge that flips a coin, under the name ``mine``, and as many scores without a judge."""
    conversation = Sample.of([HumanMessage("Hi")], id="s1", reference_tool_calls=[])
    trace = conversation.trace.model_copy(update={"id": "tr-" + "a" * 32})
    samples = [conversation.model_copy(update={"trace": trace})] * 30
    return run(samples, [coin_flipper("mine"), ToolCallF1()])


@pytest.fixture
def snippet() -> Callable[[str], str]:
    """The snippet of the documentation that stands below a heading."""
    text = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")

    def below(heading: str) -> str:
        return re.search(rf"^## {heading}\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]

    return below
