"""Scorers with a judge, which may be given as the name of its model."""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import pytest
from pydantic import BaseModel

import judgekit
from judgekit import Judge, JudgedScorer, Pairwise, PromptScorer, Repeat, Sample, Score, ScriptedJudge, load_prompt, run
from judgekit.errors import ConfigError
from judgekit.judges.prompt import Prompt
from judgekit.scorers.criteria import WeightedCriteria
from judgekit.scorers.failure_analysis import FailureAnalysis
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.groundedness import Groundedness
from judgekit.scorers.handoffs import HandoffQuality
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import JudgedScorerProtocol, Scorer, attempt, scorer, signature
from judgekit.traces.message import AIMessage, HumanMessage

MODEL = "openai/judge-model"
ASKING: dict[type, Callable[[Any], Any]] = {
    AgentGoalAccuracyWithReference: AgentGoalAccuracyWithReference,
    AgentGoalAccuracyWithoutReference: AgentGoalAccuracyWithoutReference,
    Groundedness: Groundedness,
    FailureAnalysis: FailureAnalysis,
    HandoffQuality: HandoffQuality,
    Pairwise: lambda judge: Pairwise("Which one?", judge),
    PromptScorer: lambda judge: PromptScorer("tone", judge),
    TopicAdherence: TopicAdherence,
    WeightedCriteria: lambda judge: WeightedCriteria({"polite": 1}, judge=judge),
}


def test_all_scorers_with_a_judge_are_tried_here():
    public = [getattr(judgekit, name) for name in judgekit.__all__]
    having = {one for one in public if is_dataclass(one) and "judge" in {known.name for known in fields(one)}}
    assert having == ASKING.keys()


def test_the_name_of_a_model_is_its_judge():
    for made in ASKING.values():
        assert made(MODEL).judge == Judge(MODEL)
        assert made(MODEL) == made(Judge(MODEL))
        assert signature(made(MODEL)) == signature(made(Judge(MODEL)))


def test_what_is_no_judge_is_an_error():
    cases = [
        ("gpt-x", "Did you mean 'openai/gpt-x'?"),
        (5, 'judge must be a Judge or a "provider/model", found 5'),
        (Judge, 'judge must be a Judge or a "provider/model", found <class '),
    ]
    for judge, found in cases:
        for made in ASKING.values():
            with pytest.raises(ConfigError) as caught:
                made(judge)
            assert found in str(caught.value)


SAMPLE = Sample.of([HumanMessage("Book it."), AIMessage("Done.")], id="one")
TONE, OTHER = load_prompt("tone"), load_prompt("user_frustration")
KIND = {"reason": "kind", "evidence": [], "verdict": TONE.scale[0][0]}


class ToneAnswer(BaseModel):
    """What is asked for."""

    reason: str
    verdict: str


async def asks(judge: Judge, sample: Sample, prompt: Prompt = TONE) -> float:
    return dict(prompt.scale)[(await judge.ask(prompt, sample, ToneAnswer)).answer.verdict]


@dataclass(frozen=True)
class OwnTone(JudgedScorer):
    """Asks one question."""

    judge: Judge | str
    asked: Prompt = TONE
    name: str = "own"

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (TONE,)

    async def ascore(self, sample: Sample, /) -> Score:
        return Score.scored(self.name, await asks(self._judge, sample, self.asked))


@dataclass(frozen=True)
class Undeclared:
    """Asks, and does not say so."""

    judge: Judge
    name: str = "own"

    async def ascore(self, sample: Sample, /) -> Score:
        return Score.scored(self.name, await asks(self.judge, sample))


@dataclass(frozen=True)
class HalfDeclared(Undeclared):
    """Says what it asks, but not what its labels are worth."""

    prompts: tuple[Prompt, ...] = (TONE,)


@dataclass(frozen=True)
class Wrapping:
    """Asks through another scorer, and does not say so."""

    inner: Scorer
    name: str = "outer"

    async def ascore(self, sample: Sample, /) -> Score:
        return (await attempt(self.inner, sample)).model_copy(update={"scorer": self.name})


def function_of(asked: Judge, /, **declared: object) -> Scorer:
    @scorer(name="own", **declared)
    async def own(sample: Sample) -> float:
        return await asks(asked, sample)

    return own


def test_a_judged_scorer_of_ones_own_is_seen_as_judged():
    judge = ScriptedJudge([KIND] * 2)
    for own in (OwnTone(judge), function_of(judge, judge=judge, prompts=[TONE], version="1")):
        assert isinstance(own, JudgedScorerProtocol)
        done = run([SAMPLE], [own])
        [known] = done.scorers
        assert (known.judged, known.question, known.instructions) == (True, TONE.description, TONE.instructions)
        assert known.scale == dict(TONE.scale)
        assert next(iter(done.rows())).score.value == TONE.scale[0][1]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            Undeclared,
            "own asks a judge for 'tone', but has no prompts and no label_values and no has_confidence: inherit",
        ),
        (HalfDeclared, "own asks a judge for 'tone', but has no label_values and no has_confidence: inherit"),
        (
            lambda judge: OwnTone(judge, OTHER),
            "own asks a judge for 'user_frustration', but does not have 'user_frustration' among",
        ),
        (function_of, "own asks a judge for 'tone', but does not have 'tone' among its prompts: inherit"),
        (
            lambda judge: Wrapping(OwnTone(judge)),
            "outer asks a judge for 'tone', but has no prompts and no label_values",
        ),
        (lambda judge: Repeat(Undeclared(judge), 2), "own_x2 asks a judge for 'tone', but does not have 'tone' among"),
    ],
    ids=["class", "half", "another prompt", "function", "through another", "repeated"],
)
def test_a_scorer_that_asks_what_it_does_not_declare_stops_the_run_before_anything_is_paid(made, says):
    judge = ScriptedJudge([KIND] * 4)
    with pytest.raises(ConfigError, match=re.escape(says)):
        run([SAMPLE], [made(judge)])
    assert judge.requests == []


def test_the_prompt_and_the_judge_of_a_function_are_part_of_its_signature():
    judge, warmer = ScriptedJudge([]), ScriptedJudge([], params={"temperature": 1})

    def signed(judge: Judge, prompt: Prompt) -> str:
        return signature(scorer(name="own", version="1", judge=judge, prompts=[prompt])(lambda _: 1.0))

    assert len({signed(judge, TONE), signed(judge, OTHER), signed(warmer, TONE)}) == 3
    assert signed(judge, TONE) == signed(judge, TONE)


@pytest.mark.parametrize("declared", [{"judge": ScriptedJudge([])}, {"prompts": [TONE]}], ids=["judge", "prompts"])
def test_a_function_names_its_judge_and_its_prompts_or_none_of_them(declared):
    with pytest.raises(ConfigError, match="a function that asks a judge needs both"):
        scorer(**declared)


def test_all_shipped_scorers_with_a_judge_declare_themselves():
    judge = ScriptedJudge([])
    assert all(isinstance(made(judge), JudgedScorerProtocol) for made in ASKING.values())
