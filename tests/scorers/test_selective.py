"""Selective evaluation: a verdict that is not sure enough is none, or another scorer's to give."""

import asyncio
import math
import re
from dataclasses import dataclass

import pytest

from judgekit.errors import ConfigError, OverloadError
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.request import Reply, TokenLogprob
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import JudgeCall, Score, planning, record_calls
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scorers.panel import Panel
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.repeat import Repeat
from judgekit.scorers.selective import Selective
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import attempt, signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

SAMPLE = Sample.of([HumanMessage("Book it."), AIMessage("Done.")])
BOOKED = Prompt(
    "booked", "Is it booked?", ("conversation",), "", "You judge.", "Is it booked?", scale=(("yes", 1.0), ("no", 0.0))
)


@dataclass(frozen=True)
class Says:
    """Gives one score, at the price of a call."""

    what: Score | Exception
    name: str = "cheap"

    async def ascore(self, _sample: Sample, /) -> Score:
        record_calls(JudgeCall(judge=f"judge/{self.name}", prompt="p"))
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


def sure(confidence: float | None, value: float = 1.0, name: str = "cheap") -> Says:
    details = {"told": [name]}
    return Says(
        Score.scored(name, value, label=f"label {value}", reason="why", confidence=confidence, details=details), name
    )


def answer(verdict: str) -> dict:
    return {"reason": f"why {verdict}", "evidence": [2], "verdict": verdict}


def tried(scorer: Says, **options) -> Score:
    return asyncio.run(attempt(Selective(scorer, 0.8, **options), SAMPLE))


def test_a_verdict_that_is_sure_enough_is_the_scorers_own():
    scorer = sure(0.8)
    found = tried(scorer)
    assert found == scorer.what.model_copy(update={"calls": found.calls})
    assert [call.judge for call in found.calls] == ["judge/cheap"]


def test_below_that_it_abstains_and_says_what_the_verdict_was_and_how_sure():
    found = tried(sure(0.6))
    assert (found.status, found.value, found.scorer, found.label) == ("abstained", None, "cheap", "low_confidence")
    assert found.reason == "label 1.0 with confidence 0.600, below 0.8: why"
    assert found.details["doubted"] == {
        "status": "scored",
        "value": 1.0,
        "label": "label 1.0",
        "reason": "why",
        "confidence": 0.6,
        "details": {"told": ["cheap"]},
    }
    assert len(found.calls) == 1


def test_who_escalates_gives_the_verdict_of_the_other_and_pays_for_both():
    found = tried(sure(0.6), escalate=sure(0.5, value=0.0, name="dear"))
    assert (found.scorer, found.value, found.label, found.confidence) == ("cheap", 0.0, "label 0.0", 0.5)
    assert found.reason == "label 1.0 with confidence 0.600, below 0.8; judge/dear was asked: why"
    assert (found.details["told"], found.details["doubted"]["details"]["told"]) == (["dear"], ["cheap"])
    assert [call.judge for call in found.calls] == ["judge/cheap", "judge/dear"]


def test_who_escalates_asks_the_other_also_where_the_scorer_abstains():
    nothing = Says(Score.abstained("cheap", "cannot tell"))
    found = tried(nothing, escalate=sure(None, name="dear"))
    assert (found.value, found.reason) == (1.0, "cheap abstained (cannot tell); judge/dear was asked: why")
    assert tried(nothing).reason == "cannot tell"


def test_what_the_scorer_skips_or_fails_is_not_escalated():
    for said, status in [(Score.skipped("cheap", "no reference"), "skipped"), (OverloadError("busy"), "failed")]:
        found = tried(Says(said), escalate=sure(1.0, name="dear"))
        assert (found.status, len(found.calls)) == (status, 1)


def test_it_fails_where_the_other_fails():
    found = tried(sure(0.6), escalate=Says(OverloadError("busy"), "dear"))
    assert (found.status, found.error, len(found.calls)) == ("failed", "OverloadError", 2)


def test_a_score_without_a_confidence_fails_and_says_where_one_comes_from():
    found = tried(sure(None), escalate=sure(1.0, name="dear"))
    assert (found.status, found.error, len(found.calls)) == ("failed", "ConfigError", 1)
    assert found.reason.startswith("cheap reports no confidence: ask several times (repeats) or several judges")


def judged(**settings) -> PromptScorer:
    return PromptScorer("tone", Judge("openai/a", **settings))


def test_a_scorer_that_never_says_how_sure_it_is_is_refused_before_anybody_is_asked():
    cases = [
        judged(),
        judged(params={"logprobs": True}, store_text=False),  # from the cache, its tokens are not known
        AgentGoalAccuracyWithoutReference(Judge("openai/a", params={"logprobs": True})),
        TopicAdherence(Judge("openai/a")),
        Repeat(judged(), repeats=3, aggregation="mean"),
        Panel([judged(), judged(params={"seed": 1})], rule="median"),
        Selective(Repeat(judged(), repeats=3), 0.8, judged()),
    ]
    for scorer in cases:
        with pytest.raises(ConfigError, match=f"{scorer.name} reports no confidence"):
            Selective(scorer, 0.8)
        assert Selective(Repeat(scorer, repeats=3), 0.8).name == f"{scorer.name}_x3"
        assert Selective(judged(params={"logprobs": True}), 0.8, scorer).name == "tone"


def test_a_cascade_goes_on_until_somebody_is_sure():
    last = sure(None, value=0.5, name="last")
    found = tried(sure(0.6), escalate=Selective(sure(0.7, name="middle"), 0.8, last))
    assert (found.value, [call.judge for call in found.calls]) == (0.5, ["judge/cheap", "judge/middle", "judge/last"])


def test_draws_and_votes_say_how_sure_they_are():
    judges = [ScriptedJudge([answer(verdict) for verdict in ("yes", "yes", "no")]) for _ in range(2)]
    repeated = Repeat(PromptScorer(BOOKED, judges[0]), repeats=3)
    found = Selective(repeated, 0.7).score(SAMPLE)
    assert (found.scorer, found.status, found.details["doubted"]["confidence"]) == ("booked_x3", "abstained", 2 / 3)
    assert Selective(Repeat(PromptScorer(BOOKED, judges[1]), repeats=3), 0.6).score(SAMPLE).value == 1
    votes = [sure(None, value, f"m{place}") for place, value in enumerate((1.0, 1.0, 0.0))]
    assert Selective(Panel(votes), 0.7).score(SAMPLE).status == "abstained"


def test_the_tokens_of_a_judge_say_how_sure_it_is_also_from_the_cache(tmp_path):
    def tokens(**chances: float) -> list[TokenLogprob]:
        listed = [TokenLogprob(token=text, logprob=math.log(chance)) for text, chance in chances.items()]
        label = listed[0].model_copy(update={"top_logprobs": tuple(listed)})
        around = ['{"reason": "why", "evidence": [2], "verdict": "', '"}']
        head, tail = (TokenLogprob(token=text, logprob=0.0) for text in around)
        return [head, label, tail]

    said = tokens(yes=0.6, no=0.4)
    reply = Reply(text="".join(token.token for token in said), logprobs=said)
    settings = {"params": {"logprobs": True, "top_logprobs": 5}, "cache_mode": "read_write"}
    for script in ([reply], []):  # the second time nobody is asked
        judge = ScriptedJudge(script, cache=tmp_path / "cache.sqlite", **settings)
        scorer = PromptScorer(BOOKED, judge)
        assert scorer.score(SAMPLE).confidence == pytest.approx(0.6)
        assert Selective(scorer, 0.7).score(SAMPLE).status == "abstained"
        assert Selective(scorer, 0.5).score(SAMPLE).label == "yes"
    silent = ScriptedJudge([answer("yes")])
    assert PromptScorer(BOOKED, silent).score(SAMPLE).confidence is None


def test_a_plan_has_room_for_both():
    first, second = (PromptScorer("tone", Judge(f"openai/{name}", cache_mode="off")) for name in "ab")
    with planning():
        found = asyncio.run(attempt(Selective(Repeat(first, repeats=2), 0.8, second), SAMPLE))
    assert [call.judge for call in found.calls] == ["openai/a", "openai/a", "openai/b"]


def test_it_asks_what_both_ask_each_question_once():
    one, other = PromptScorer(BOOKED, ScriptedJudge([])), PromptScorer("tone", ScriptedJudge([]))
    assert Selective(one, 0.8).prompts == Selective(one, 0.8, one).prompts == one.prompts
    assert Selective(one, 0.8, other).prompts == (*one.prompts, *other.prompts)


def test_who_is_asked_and_how_sure_they_must_be_is_part_of_the_signature():
    one, other = sure(1.0), sure(1.0, name="dear")
    made = [Selective(one, 0.8), Selective(one, 0.9), Selective(one, 0.8, other), Selective(other, 0.8)]
    assert len({signature(scorer) for scorer in (one, *made)}) == 5


@pytest.mark.parametrize("least", [0, -0.1, 1.01, True, "0.8", math.nan])
def test_a_confidence_that_nobody_can_have_is_an_error(least):
    with pytest.raises(ConfigError, match=re.escape(f"min_confidence must be above 0 and at most 1, found {least!r}")):
        Selective(sure(1.0), least)
