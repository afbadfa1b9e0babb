"""Scorers of texts as comparers of arguments."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from rapidfuzz.distance import Levenshtein

from judgekit.errors import ConfigError
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.classification.answers import AnswerMatch
from judgekit.scorers.goal import AgentGoalAccuracyWithReference
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.ranking.graded import NDCG
from judgekit.scorers.text.matches import ExactMatch, Regex, Similarity, StringPresence
from judgekit.scorers.text.rouge import ROUGE
from judgekit.scorers.text.structure import JSONMatch
from judgekit.scorers.text.translation import BLEU, CHRF, TER
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.arguments import ArgMatch, check_args_option
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scoring import attempt, scorer, signature
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample

EXPECTED, MADE = "cheap hotels in Paris", "hotels in Paris that are cheap"
TEXT_SCORERS = [ExactMatch(), StringPresence(), Similarity(), ROUGE(), BLEU(), CHRF(), TER()]


def sample_of(expected: list[dict], made: list[dict]) -> Sample:
    return Sample.of(
        [HumanMessage("Hi"), *(AIMessage(tool_calls=[ToolCall("f", args)]) for args in made)],
        reference_tool_calls=[ToolCall("f", args) for args in expected],
    )


def of_texts(expected: str, made: str) -> Sample:
    return Sample.of([AIMessage(made)], reference=expected)


def test_any_text_scorer_compares_texts_as_it_compares_a_response_with_a_reference():
    for comparer in TEXT_SCORERS:
        expected, made = {"q": EXPECTED, "n": 3, "city": "Rome"}, {"q": MADE, "n": 3, "city": "Rome"}
        number = comparer.score(of_texts(EXPECTED, MADE)).value
        for args in (comparer, ArgMatch(text=comparer)):
            score = ToolCallAccuracy(args=args).score(sample_of([expected], [made]))
            assert score.value == pytest.approx((number + 2) / 3)
            assert score.details["pairs"][0]["similarities"] == {"args.q": pytest.approx(number)}


def test_a_scorer_given_as_args_is_the_one_that_compares_texts():
    assert check_args_option(ROUGE()) == ArgMatch(text=ROUGE())
    assert ToolCallF1(args=ROUGE()) == ToolCallF1(args=ArgMatch(text=ROUGE()))
    assert ToolMatch(args=ROUGE(), tools={"f": Similarity()}) == ToolMatch(
        args=ArgMatch(text=ROUGE()), tools={"f": ArgMatch(text=Similarity())}
    )


texts = st.sampled_from(["a", "ab", "abc", "xbc", "hotels", "hotel", "motel", "ABC"])
values = texts | st.integers(0, 2) | st.lists(texts, max_size=3) | st.dictionaries(st.sampled_from("xy"), texts)
calls = st.lists(st.dictionaries(st.sampled_from("pq"), values, max_size=2), max_size=4)
modes = st.builds(
    ToolMatch,
    order=st.sampled_from(["sequence", "in_order", "any"]),
    credit=st.sampled_from(["f1", "recall"]),
    args_credit=st.just("fraction"),
)


@settings(max_examples=2 * settings.default.max_examples)
@given(calls, calls, modes, st.sampled_from(["ordered", "unordered", "contains"]))
def test_calls_are_paired_as_by_a_function_that_gives_the_same_numbers(expected, made, how, lists):
    by_scorer, by_function = (
        ToolCallMatch(how.model_copy(update={"args": ArgMatch(text=text, lists=lists)})).score(
            sample_of(expected, made)
        )
        for text in (Similarity(), Levenshtein.normalized_similarity)
    )
    assert (by_scorer.value, by_scorer.reason, by_scorer.details) == (
        by_function.value,
        by_function.reason,
        by_function.details,
    )


def test_a_function_of_a_sample_may_wait_and_is_asked_once_for_each_two_texts_and_at_once():
    seen = []
    waiting = 0

    @scorer(version="1")
    async def alike(sample: Sample) -> float:
        nonlocal waiting
        seen.append((sample.reference, sample.trace.response))
        waiting += 1
        await asyncio.sleep(0.01)
        assert waiting == 4
        return 0.5

    sample = sample_of([{"q": "a"}, {"q": "b"}, {"q": "a"}], [{"q": "c"}, {"q": "d"}])
    score = ToolCallMatch(ToolMatch(order="any", args=alike, credit="recall", args_credit="fraction")).score(sample)
    assert score.value == pytest.approx(1 / 3)
    assert "(similarity 0.50)" in score.reason
    assert sorted(seen) == [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]


def test_calls_that_are_as_expected_are_not_compared():
    @scorer(version="1")
    def never(sample: Sample) -> float:
        pytest.fail("it was asked")

    args = [{"q": "a"}, {"q": "b"}]
    assert ToolCallF1(args=never).score(sample_of(args, args)).value == 1


def test_the_number_of_each_argument_that_a_comparer_compared_is_said():
    expected = {"q": "cheap hotels", "city": "Rome", "day": "Monday", "n": 1}
    made = {"q": "hotels", "city": "rome", "day": "Monday", "n": 2}
    score = ToolCallAccuracy(args=ROUGE("rouge1")).score(sample_of([expected], [made]))
    assert score.value == pytest.approx((2 / 3 + 1 + 1 + 0) / 4)
    assert score.reason == (
        '0 of 1 expected calls matched; f: args.q expected "cheap hotels", got "hotels" (similarity 0.67), '
        "args.n expected 1, got 2"
    )
    [pair] = score.details["pairs"]
    assert pair["similarities"] == {"args.q": pytest.approx(2 / 3), "args.city": 1.0}
    matched = ToolCallF1(args=ROUGE("rouge1")).score(sample_of([{"city": "Rome"}], [{"city": "rome"}]))
    assert (matched.value, matched.details["pairs"][0]["similarities"]) == (1, {"args.city": 1.0})


@pytest.mark.parametrize(
    ("comparer", "expected", "why"),
    [
        (Similarity(), " ", "the reference is empty"),
        (ROUGE(), "!?", "no reference has words"),
        (BLEU(), "", "the reference is empty"),
    ],
)
def test_texts_that_a_comparer_skips_are_different_and_a_warning_says_so(comparer, expected, why):
    score = ToolCallAccuracy(args=comparer).score(sample_of([{"q": expected, "n": 1}], [{"q": "hotels", "n": 1}]))
    assert score.value == 1 / 2
    assert score.warnings == (f"{comparer.name} skips some argument texts ({why}); they count as different",)


def test_what_a_comparer_warns_of_is_said():
    score = ToolCallAccuracy(args=BLEU()).score(sample_of([{"q": "北京的旅馆"}], [{"q": "北京旅馆"}]))
    assert [warning.partition(" treats ")[0] for warning in score.warnings] == ["bleu: tokenize='13a'"]


def test_a_comparer_that_fails_fails_the_score():
    @scorer(version="1")
    def broken(sample: Sample) -> Score:
        return Score.failed("broken", "no connection", error="OSError")

    sample = sample_of([{"q": "a"}], [{"q": "b"}])
    score = asyncio.run(attempt(ToolCallF1(args=broken), sample))
    assert (score.status, score.reason) == ("failed", "ValueError: broken cannot compare 'a' with 'b': no connection")
    score = asyncio.run(attempt(ToolCallF1(args=JSONMatch()), sample))
    assert score.reason.startswith("ValueError: a reference is not JSON")


JUDGE = ScriptedJudge([])
UNFIT = {
    "tool calls": (ToolCallF1(), "tool_call_f1"),
    "a ranking": (NDCG(), "ndcg"),
    "a label": (AnswerMatch(), "answer_match"),
    "no reference": (Regex("a"), "regex"),
    "a prompt": (PromptScorer("tone", JUDGE), "tone"),
    "a judged scorer": (AgentGoalAccuracyWithReference(JUDGE), "agent_goal_accuracy_with_reference"),
}


@pytest.mark.parametrize(("unfit", "name"), UNFIT.values(), ids=UNFIT)
def test_a_scorer_of_anything_else_is_refused_by_name_with_what_fits(unfit, name):
    said = f"{name} cannot compare two texts; BLEU, CHRF, "
    for made in (
        lambda: ToolCallF1(args=unfit),
        lambda: ToolCallAccuracy(args=unfit),
        lambda: ToolCallMatch({"args": unfit}),
        lambda: ToolCallMatch({"tools": {"f": unfit}}),
    ):
        with pytest.raises(ConfigError, match=said):
            made()
    for made in (lambda: ArgMatch(text=unfit), lambda: ToolMatch(args=unfit)):
        with pytest.raises(ValidationError, match=said):
            made()


def test_a_class_is_refused_since_it_is_no_scorer_yet():
    made = {
        "args": (lambda: ToolCallF1(args=ROUGE), lambda: ToolMatch(args=ROUGE), lambda: ToolMatch(tools={"f": ROUGE})),
        "text": (lambda: ArgMatch(text=ROUGE), lambda: ToolCallMatch({"args": {"text": ROUGE}})),
    }
    for option, makers in made.items():
        for make in makers:
            with pytest.raises(
                ConfigError, match=rf"^{option}: expected a scorer, found the class ROUGE: call it, ROUGE\(\)$"
            ):
                make()


def test_the_comparer_is_part_of_the_signature():
    scorers = [
        ToolCallF1(),
        *(
            ToolCallF1(args=args)
            for args in (ROUGE(), ROUGE("rouge1"), Similarity(), ArgMatch(text=Similarity("indel")))
        ),
        ToolCallF1(args=ArgMatch(text=ROUGE(), ignore=["a"])),
        ToolCallMatch(ToolMatch(args=ROUGE())),
        ToolCallMatch(ToolMatch(tools={"f": ROUGE()})),
    ]
    assert len({signature(one) for one in scorers}) == len(scorers)
    assert signature(ToolCallF1(args=ROUGE())) == signature(ToolCallF1(args=ArgMatch(text=ROUGE())))
