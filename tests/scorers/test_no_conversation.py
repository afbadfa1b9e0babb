"""What scorers make of a sample without messages: those that read the conversation skip it, the others score it."""

import asyncio
from collections.abc import Callable

import pytest

from judgekit.config import Config, describe_scorers
from judgekit.score import Score
from judgekit.scoring import attempt
from judgekit.specs import ScorerSpec
from judgekit.traces.sample import ExpectedCall, Ranking, Sample

WITHOUT = {"classification", "adaptability", "collaboration_efficiency", "portability"} | {
    *("auc", "average_precision", "err", "hit_rate", "ndcg", "precision_at_k", "recall_at_k", "reciprocal_rank")
}
"""Scorers of `ranking`, `prediction`, `label` and `fields`, which need no conversation."""
EMPTY = Sample(
    id="empty",
    reference="r",
    reference_tool_calls=[ExpectedCall("find", {"id": 7})],
    reference_topics=["orders"],
    label="a",
    prediction="a",
    documents=["d"],
    ranking=Ranking(["d", "e"], {"d": 1}),
    fields={
        "results": [{"score": 0.85, "domain": "a"}, {"score": 0.72, "domain": "b"}],
        "task_quality": 0.9,
        "communication_rounds": 5,
        "task_time": 30,
        "original_score": 0.9,
        "transferred_score": 0.75,
    },
)


@pytest.fixture
def score(needed_options) -> Callable[[str], Score]:
    def score(name: str) -> Score:
        options = needed_options.get(name, ":tone" if name == "prompt" else "")
        scorer = Config(None, "openai/m", {}, offline=True).build(ScorerSpec.parse(name + options))
        return asyncio.run(attempt(scorer, EMPTY))

    return score


NAMES = [name for name, *_ in describe_scorers() if name != "panel"]


def test_a_scorer_that_reads_the_conversation_skips_a_sample_without_one_and_others_score_it(score):
    statuses = {name: score(name).status for name in NAMES}
    assert {name for name, status in statuses.items() if status == "scored"} == WITHOUT
    assert {*statuses.values()} == {"scored", "skipped"}
