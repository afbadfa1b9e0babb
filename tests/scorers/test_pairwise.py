"""Pairwise comparison."""

import asyncio
import re

import pytest

from judgekit.errors import ConfigError, RefusalError
from judgekit.judges.judge import Judge
from judgekit.judges.request import Reply, Request
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.pairwise import Pairwise
from judgekit.scoring import attempt, run_sync, signature
from judgekit.traces.message import AIMessage, HumanMessage, ToolMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

QUESTION = "Which agent did what the user asked for?"


def recording(quality: int, messages: int = 2) -> Trace:
    """A recording whose last message says how good it is."""
    asked = [HumanMessage("Book a table.")] * (messages - 1)
    return Trace(messages=[*asked, AIMessage(f"quality {quality}")])


def sample(trace: int = 1, baseline: int = 0) -> Sample:
    return Sample(id="one", trace=recording(trace), baseline=recording(baseline))


def answer(verdict: str = "first", **changes: object) -> dict:
    return {
        "strengths_first": "it is booked",
        "strengths_second": "it is polite",
        "reason": f"said {verdict}",
        "evidence_first": [2],
        "evidence_second": [1],
        "verdict": verdict,
        **changes,
    }


def qualities(request: Request) -> tuple[int, int]:
    """Those of the first and the second recording, as they are shown."""
    first, second = map(int, re.findall(r"^\| quality (\d+)$", request.messages[1].content, re.MULTILINE))
    return first, second


def in_orders(straight: object, turned: object) -> ScriptedJudge:
    """A judge that says one thing with the better trace of `sample` first, and another with its baseline first."""
    return ScriptedJudge(lambda request: straight if qualities(request) == (1, 0) else turned)


def by_content(request: Request) -> dict:
    first, second = qualities(request)
    return answer("first" if first > second else "second" if second > first else "tie")


def tried(judge: Judge, of: Sample | None = None) -> Score:
    return run_sync(lambda: attempt(Pairwise(QUESTION, judge), of or sample()))


def test_each_order_is_one_request_which_shows_both_recordings_with_another_one_first():
    judge = ScriptedJudge(by_content)
    found = tried(judge)
    assert [qualities(request) for request in judge.requests] == [(1, 0), (0, 1)]
    assert len(found.calls) == 2
    for request, (first, second) in zip(judge.requests, [(1, 0), (0, 1)], strict=True):
        asked = request.messages[1].content
        shown = [recording(quality).render() for quality in (first, second)]
        assert asked.startswith(shown[0])
        assert asked.index("The recording above is the first.") < asked.index(shown[1]) < asked.index(QUESTION)


def test_the_question_is_that_of_the_author_and_part_of_the_signature():
    judge = ScriptedJudge(by_content)
    one, other = Pairwise("Which is kinder?", judge), Pairwise("Which is shorter {{ baseline }}?", judge)
    other.score(sample())
    assert "Which is shorter {{ baseline }}?" in judge.requests[0].messages[1].content
    assert signature(one) == signature(Pairwise("Which is kinder?", judge))
    assert signature(one) != signature(other)


def test_without_a_question_in_words_there_is_no_comparison():
    for question in ["", " \n", 3, None]:
        with pytest.raises(ConfigError, match=r"^a pairwise comparison needs a question") as error:
            Pairwise(question, ScriptedJudge([]))
        assert str(error.value).endswith(repr(question))


def test_both_orders_are_asked_at_once():
    both = asyncio.Barrier(2)

    class AtOnce(ScriptedJudge):
        async def ask(self, *arguments):
            await asyncio.wait_for(both.wait(), 5)
            return await super().ask(*arguments)

    assert tried(AtOnce(by_content)).value == 1


PREFERRED = {
    ("first", "second"): (1, "better", "high"),
    ("second", "first"): (0, "worse", "high"),
    ("tie", "tie"): (0.5, "tie", "high"),
    ("first", "tie"): (0.5, "tie", "low"),
    ("tie", "second"): (0.5, "tie", "low"),
    ("second", "tie"): (0.5, "tie", "low"),
    ("tie", "first"): (0.5, "tie", "low"),
    ("first", "first"): (0.5, "position_bias", "low"),
    ("second", "second"): (0.5, "position_bias", "low"),
}
"""Verdicts with the trace first and with the baseline first; value, label and confidence."""


def test_only_a_preference_that_outlives_the_change_of_places_counts():
    for verdicts, expected in PREFERRED.items():
        found = tried(in_orders(*map(answer, verdicts)))
        value, label, confidence = expected
        assert (found.status, found.value, found.label) == ("scored", value, label)
        assert found.details["confidence"] == confidence
        assert found.details["flipped"] is (label == "position_bias")
        assert found.confidence == (1 if confidence == "high" else 0.5 if label == "tie" else 0)


def test_the_details_keep_both_verdicts_and_which_recording_each_is_about():
    judge = in_orders(answer("first"), answer("tie", reason="equal", evidence_first=[]))
    found = tried(judge)
    assert found.details["verdicts"] == [
        {"shown_first": "trace", **answer("first"), "preferred": "trace"},
        {"shown_first": "baseline", **answer("tie", reason="equal", evidence_first=[]), "preferred": "tie"},
    ]
    assert (
        found.reason == "with the trace first, the trace is better: said first; with the baseline first, a tie: equal"
    )
    turned = tried(in_orders(answer("second"), answer("first")))
    assert [one["preferred"] for one in turned.details["verdicts"]] == ["baseline", "baseline"]


def test_recordings_that_read_the_same_are_worth_a_half_without_a_request():
    judge = ScriptedJudge([])
    found = tried(
        judge, Sample(id="one", trace=recording(1), baseline=recording(1).model_copy(update={"id": "another"}))
    )
    assert (found.value, found.label, found.calls) == (0.5, "same", ())
    assert (found.details["confidence"], found.details["flipped"]) == ("high", False)
    assert judge.requests == []


@pytest.mark.parametrize("other", ["x", "y"])
def test_what_is_too_long_to_be_shown_whole_is_compared_whole(other):
    """The judge sees neither middle, and is asked where they differ."""
    trace, baseline = (
        Trace(messages=[ToolMessage(f"{'a' * 9_000}{middle}{'b' * 9_000}"), AIMessage("quality 1")])
        for middle in ("x", other)
    )
    judge = ScriptedJudge(by_content)
    assert tried(judge, Sample(id="one", trace=trace, baseline=baseline)).label == ("same" if other == "x" else "tie")
    assert len(judge.requests) == (0 if other == "x" else 2)


@pytest.mark.parametrize(
    ("of", "lacking"),
    [
        (Sample(id="one", trace=recording(1)), "baseline"),
        (Sample(id="one", trace=recording(1), baseline=Trace()), "baseline"),
        (Sample(id="one", baseline=recording(1)), "conversation"),
        (Sample(id="one", baseline=Trace()), "conversation and no baseline"),
    ],
)
def test_without_messages_on_both_sides_it_is_skipped(of, lacking):
    judge = ScriptedJudge([])
    assert tried(judge, of) == Score.skipped("pairwise", f"the sample has no {lacking}")
    assert judge.requests == []


LONG = Sample(id="one", trace=recording(1, messages=3), baseline=recording(0, messages=2))
UNUSABLE = {
    "behind the last of the first": (
        answer(evidence_first=[4], evidence_second=[]),
        "evidence_first cites the messages [4]; the conversation has messages 1 to 3",
    ),
    "behind the last of the second": (
        answer(evidence_first=[], evidence_second=[2, 3]),
        "evidence_second cites the messages [3]; the conversation has messages 1 to 2",
    ),
    "none at all": (
        answer("second", evidence_first=[], evidence_second=[]),
        "says second without the number of a message that shows it",
    ),
    "another verdict": (answer("both"), "verdict: Input should be 'first', 'second' or 'tie', found 'both'"),
}


@pytest.mark.parametrize(("bad", "problem"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_answer_that_cannot_be_used_is_shown_to_the_judge_once(bad, problem):
    turned = answer("second", evidence_first=[2], evidence_second=[3])
    said = iter([bad, answer(evidence_first=[3])])
    judge = ScriptedJudge(lambda request: next(said) if qualities(request) == (1, 0) else turned)
    found = tried(judge, LONG)
    assert (found.value, sorted(str(call.error) for call in found.calls)) == (1, ["None", "None", "ReplyError"])
    (repair,) = [request for request in judge.requests if len(request.messages) > 2]
    assert problem in repair.messages[-1].content


@pytest.mark.parametrize("side", ["first", "second"])
def test_a_number_that_is_there_in_one_order_may_not_be_there_in_the_other(side):
    """One recording has three messages and the other two, so that 3 stands in either place once."""
    judge = ScriptedJudge(lambda _: answer(**{f"evidence_{side}": [3]}))
    found = tried(judge, LONG)
    assert (found.status, found.error) == ("failed", "ReplyError")
    assert f"evidence_{side} cites the messages [3]; the conversation has messages 1 to 2" in found.reason
    assert sorted(str(call.error) for call in found.calls) == ["None", "ReplyError", "ReplyError"]


def test_a_tie_needs_no_evidence():
    nothing = answer("tie", evidence_first=[], evidence_second=[])
    assert tried(in_orders(nothing, nothing)).label == "tie"


@pytest.mark.parametrize("fails", [0, 1], ids=["trace first", "baseline first"])
def test_where_one_order_fails_the_score_fails_and_keeps_the_cost_of_both(fails):
    said = [answer("first"), answer("second")]
    said[fails] = RefusalError("I do not compare")
    scripted = in_orders(*said)

    class Slow:
        """Answers what can be answered later than it fails."""

        async def complete(self, request: Request) -> Reply:
            if (qualities(request) == (1, 0)) != (fails == 0):
                await asyncio.sleep(0.02)
            return await scripted.client.complete(request)

        async def aclose(self) -> None: ...

    found = tried(Judge("slow/judge", client=Slow(), cache_mode="off", attempts=1))
    assert (found.status, found.value, found.error) == ("failed", None, "RefusalError")
    assert sorted(str(call.error) for call in found.calls) == ["None", "RefusalError"]


def test_a_score_says_how_much_of_the_recordings_the_judge_was_not_shown():
    long = [
        Trace(messages=[HumanMessage("Hi"), AIMessage(f"word {side} " * 2_000), AIMessage(f"quality {side}")])
        for side in (0, 1)
    ]
    judge = ScriptedJudge(by_content, conversation_tokens=400)
    found = tried(judge, Sample(id="one", trace=long[1], baseline=long[0]))
    said = sum(len(message.text) for trace in long for message in trace.messages)
    assert found.label == "better"
    assert said / 2 < found.details["omitted_characters"] < said
