"""Scorers with a judge, which may be given as the name of its model."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import judgekit
from judgekit import (
    AgentGoalAccuracyWithoutReference,
    AgentGoalAccuracyWithReference,
    Judge,
    Pairwise,
    PromptScorer,
    ScriptedJudge,
    TopicAdherence,
    WeightedCriteria,
)
from judgekit.errors import ConfigError
from judgekit.scoring import signature

MODEL = "openai/gpt-4.1-mini"
ASKING: dict[type, Callable[[Any], Any]] = {
    AgentGoalAccuracyWithReference: AgentGoalAccuracyWithReference,
    AgentGoalAccuracyWithoutReference: AgentGoalAccuracyWithoutReference,
    Pairwise: lambda judge: Pairwise("Which one?", judge),
    PromptScorer: lambda judge: PromptScorer("tone", judge),
    TopicAdherence: TopicAdherence,
    WeightedCriteria: lambda judge: WeightedCriteria({"polite": 1}, judge=judge),
}


def test_all_scorers_with_a_judge_are_tried_here():
    public = [getattr(judgekit, name) for name in judgekit.__all__]
    having = {one for one in public if is_dataclass(one) and "judge" in {known.name for known in fields(one)}}
    assert having == ASKING.keys()


@pytest.mark.parametrize("made", ASKING.values(), ids=[one.__name__ for one in ASKING])
def test_the_name_of_a_model_is_its_judge(made):
    assert made(MODEL).judge == Judge(MODEL)
    assert made(MODEL) == made(Judge(MODEL))
    assert signature(made(MODEL)) == signature(made(Judge(MODEL)))


@pytest.mark.parametrize("made", ASKING.values(), ids=[one.__name__ for one in ASKING])
def test_a_judge_stays_the_one_that_it_is(made):
    judge = ScriptedJudge([])
    assert made(judge).judge is judge


@pytest.mark.parametrize(
    ("judge", "found"),
    [
        ("gpt-4o", "did you mean 'openai/gpt-4o'?"),
        (5, 'judge is a Judge or a model such as "openai/gpt-4.1-mini", found 5'),
        (Judge, 'judge is a Judge or a model such as "openai/gpt-4.1-mini", found <class '),
    ],
)
@pytest.mark.parametrize("made", ASKING.values(), ids=[one.__name__ for one in ASKING])
def test_what_is_no_judge_is_an_error(made, judge, found):
    with pytest.raises(ConfigError) as caught:
        made(judge)
    assert found in str(caught.value)
