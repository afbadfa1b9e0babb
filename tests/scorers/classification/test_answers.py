"""Answer matching."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.classification.answers import AnswerMatch
from judgekit.scoring import signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

TEXTS = st.text(alphabet=st.sampled_from("ab 不支持退款no5,.")) | st.text()


def score(response: str, expected: str | None, **options: object) -> Score:
    return AnswerMatch(**options).score(Sample.of([HumanMessage("?"), AIMessage(response)], id="one", label=expected))


SAME = [
    ("Paris", "paris!"),
    ("The refund is approved", "Your refund has been approved"),
    ("Refunds are not possible", "Refunds aren't possible"),
    ("Yes", "Yes, it is."),
    ("1000", "The total is $1,000."),
    ("法国的首都是巴黎", "巴黎是法国的首都。"),
    ("不支持退款", "我们不支持退款。"),
    ("不支持退款", "退款不支持"),
    ("没有库存", "目前没有库存"),
    ("南非", "位于南非"),
    ("🎉", "🎉!"),
]
OTHER = [
    ("The refund is approved", "The refund is not approved"),
    ("We ship to Norway", "We don't ship to Norway"),
    ("5", "-5"),
    ("2024-05-01", "2024-05-02"),
    ("A", "B"),
    ("支持退款", "不支持退款"),
    ("不支持退款", "支持退款"),
    ("有库存", "没有库存"),
    ("已发货", "未发货"),
    ("合法", "非法"),
    ("特别大", "别大"),
]


def test_a_similarity_of_just_the_threshold_is_a_match():
    ten = "one two three four five six seven eight nine ten"
    at, below = (score(ten, expected, stop_words=[]) for expected in ("one two three", "one two"))
    assert (at.details["similarity"], at.label) == (3 / 10, "matched")
    assert (below.details["similarity"], below.label) == (2 / 10, "wrong")


def test_pairs_judged_by_hand_have_their_verdict_at_the_default_threshold():
    for expected, response, value in [(*pair, 1) for pair in SAME] + [(*pair, 0) for pair in OTHER]:
        found = score(response, expected)
        assert (found.value, found.label) == (value, "matched" if value else "wrong"), found.reason


def test_a_negation_late_in_the_clause_leaves_most_words_and_is_warned_of():
    expected, response = (
        "The flight from Paris to London is available",
        "The flight from Paris to London is not available",
    )
    found = score(response, expected)
    assert (found.value, found.details["similarity"]) == (1, 3 / 6)
    assert found.warnings == (ONE_NEGATED,)
    assert score(response, expected, threshold=0.6).value == 0
    assert score(response, response).warnings == ()


def test_the_score_says_what_it_was_made_of():
    found = score("The refund was not approved, and 5 dollars are due.", "Refund approved: 5 dollars")
    assert found.details == {
        "similarity": 3 / 7,
        "threshold": 0.3,
        "equal": False,
        "expected": "Refund approved: 5 dollars",
        "shared": ["5", "dollars", "refund"],
        "only_expected": ["approved"],
        "only_response": ["approved_NEG", "due", "not"],
        "measure": "accuracy",
    }
    assert found.reason == (
        "similarity 0.43, at least 0.3; shared: '5', 'dollars', 'refund'; only expected: 'approved'; "
        "only response: 'approved_NEG', 'due', 'not'"
    )
    assert found.aggregate == "answer_match"


@given(TEXTS, TEXTS.filter(str.strip), st.sampled_from(["content", "published"]))
def test_the_value_follows_from_the_details(response, expected, recipe):
    found = score(response, expected, recipe=recipe)
    details = found.details
    sides = [details["shared"], details["only_expected"], details["only_response"]]
    union = sum(map(len, sides))
    assert details["similarity"] == (len(sides[0]) / union if union else 0)
    assert found.value == (details["equal"] or details["similarity"] >= details["threshold"])
    assert (found.label == "no_answer") == (not response.strip())


@given(TEXTS.filter(str.strip), TEXTS.filter(str.strip))
def test_the_verdict_is_the_same_from_both_sides(one, other):
    assert score(one, other).value == score(other, one).value


@given(TEXTS.filter(str.strip), st.sampled_from(["content", "published"]))
def test_equal_texts_always_match(text, recipe):
    assert score(f" {text}\n", text, recipe=recipe, threshold=1).label == "matched"


@given(TEXTS, TEXTS.filter(str.strip))
def test_the_published_recipe_gives_the_published_similarity_and_verdict(response, expected):
    def words(text: str) -> set[str]:
        found = set(re.findall(r"\b\w+\b", text.lower()))
        return {
            w for w in found if w not in {"的", "是", "在", "了", "和", "有", "就", "不", "人", "都"} and len(w) > 1
        }

    shared, union = words(expected) & words(response), words(expected) | words(response)
    similarity = len(shared) / len(union) if len(union) > 0 else 0.0
    found = score(response, expected, recipe="published")
    assert found.details["similarity"] == similarity
    assert found.details["equal"] or found.value == (similarity >= 0.3)


ONE_NEGATED = "matched, although only one of the response and the expected text negates a word"


@pytest.mark.parametrize("recipe", ["content", "published"])
@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Does it support refunds? Yes", "Does it support refunds? No"),
        ("It does support refunds", "Does it support refunds or not"),
    ],
)
def test_a_negation_of_one_side_with_nothing_behind_it_is_warned_of(response, expected, recipe):
    for one, other in ((response, expected), (expected, response)):
        found = score(one, other, recipe=recipe)
        assert (found.value, found.warnings) == (1, (ONE_NEGATED,))


@pytest.mark.parametrize(
    ("response", "expected"), [("支持退款吗\uff1f是", "支持退款吗\uff1f不"), ("退款支持不了", "支持退款")]
)
def test_a_negation_at_the_end_of_a_chinese_clause_is_warned_of(response, expected):
    assert score(response, expected).warnings == score(expected, response).warnings == (ONE_NEGATED,)
    assert score(expected, expected).warnings == score(response, response).warnings == ()


@pytest.mark.parametrize(
    ("response", "expected", "similarity"),
    [
        ("不过支持退款", "支持退款", 4 / 5),
        ("没问题可以退款", "可以退款", 4 / 5),
        ("No problem, the refund is approved", "The refund is approved", 2 / 3),
        ("Not only the refund is approved", "The refund is approved", 2 / 3),
        ("No doubt the refund is approved", "No doubt: the refund is approved", 1),
    ],
)
def test_what_only_looks_like_a_negation_is_a_word_and_not_warned_of(response, expected, similarity):
    for one, other in ((response, expected), (expected, response)):
        found = score(one, other)
        assert (found.value, found.details["similarity"], found.warnings) == (1, similarity, ())


def test_the_expected_output_may_be_a_list_of_texts_or_other_json_and_goes_before_the_reference():
    cases = [
        (["four", "five"], "five", 1, "five"),
        (["six five", "five"], "It is five.", 1, "five"),
        ([4, 5, None], "5", 1, "5"),
        (5, "It is 5.", 1, "5"),
        (5.0, "It is 5.", 1, "5"),
        (0.5, "0.5", 1, "0.5"),
        (True, "true", 1, "true"),
        (False, "true", 0, "false"),
        ({"city": "巴黎"}, "巴黎 city", 1, '{"city": "巴黎"}'),
        ([["Paris", "Rome"]], "Paris and Rome", 1, '["Paris", "Rome"]'),
    ]
    for expected, response, value, best in cases:
        fields = {"expected_output": expected}
        found = AnswerMatch().score(Sample.of([AIMessage(response)], reference=response + "?", fields=fields))
        assert (found.value, found.details["expected"]) == (value, best)


@pytest.mark.parametrize("nothing", [None, "", [], ["", " "], [None]])
def test_an_expected_output_that_says_nothing_leaves_the_reference(nothing):
    sample = Sample.of([AIMessage("five")], reference="five", fields={"expected_output": nothing})
    assert AnswerMatch().score(sample).details["expected"] == "five"
    alone = AnswerMatch().score(sample.model_copy(update={"reference": None}))
    assert (alone.status, alone.reason) == ("skipped", "the sample has no reference, no label and no expected_output")


def test_the_label_comes_before_the_expected_output_and_that_before_the_best_reference():
    cases = [
        ({"label": "one", "reference": "three", "fields": {"expected_output": "two"}}, "one"),
        ({"label": " ", "reference": "three", "fields": {"expected_output": "two"}}, "two"),
        ({"reference": "three", "fields": {"expected_output": 2}}, "2"),
        ({"references": ["three"], "fields": {"expected_output": ["six", "five"]}}, "five"),
        ({"label": "one", "fields": {"expected_output": ["five"]}}, "one"),
        ({"reference": "", "references": ["four", " ", "six"]}, "four"),
        ({"references": ["four", "five", "six five"]}, "five"),
    ]
    for known, expected in cases:
        assert AnswerMatch().score(Sample.of([AIMessage("five")], **known)).details["expected"] == expected


def test_an_equal_reference_is_better_than_a_similar_one():
    found = AnswerMatch().score(Sample.of([AIMessage("B")], references=["C plan", "B."]))
    assert (found.value, found.details["expected"]) == (1, "B.")


@pytest.mark.parametrize("response", ["", " \n"])
def test_an_empty_response_is_no_answer(response):
    found = score(response, "Paris")
    assert (found.value, found.label, found.reason, found.warnings) == (0, "no_answer", "the response is empty", ())


@pytest.mark.parametrize(
    ("expected", "response"), [("A", "B"), ("A", "The answer is A."), ("...", "!!"), ("是", "yes")]
)
def test_texts_without_content_words_match_only_if_they_are_equal_and_are_warned_of(expected, response):
    found = score(response, expected)
    assert (found.value, found.details["similarity"]) == (0, 0)
    assert found.warnings == ("the response or the expected text has no content words, so only an equal text matches",)


@pytest.mark.parametrize(
    ("messages", "known", "reason"),
    [
        ([], {"label": "x"}, "the sample has no response: there is no agent message"),
        ([HumanMessage("Hi")], {}, "the sample has no reference, no label and no expected_output"),
        ([AIMessage("Hi")], {"reference": " "}, "the reference is empty, no label and no expected_output"),
    ],
)
def test_a_sample_without_a_response_or_an_expected_text_is_skipped(messages, known, reason):
    found = AnswerMatch().score(Sample.of(messages, **known))
    assert (found.status, found.reason) == ("skipped", reason)


def test_a_percentage_is_not_its_number_unless_asked():
    for texts in (("20%", "20"), ("20", "20%"), ("It is 20 percent.", "20"), ("百分之20", "20")):
        assert score(*texts).label == "wrong"
        assert score(*texts, ignore_percent=True).label == "matched"
    assert score("It is 20 percent.", "20%").label == score("百分之20", "20%").label == "matched"
    assert signature(AnswerMatch(ignore_percent=True)) != signature(AnswerMatch())


def test_stop_words_can_be_given_and_are_then_the_only_ones():
    assert score("the PARIS", "paris", stop_words=["Paris"]).details["only_response"] == ["the"]
    assert score("foo bar", "bar", stop_words=("foo",), recipe="published").details["similarity"] == 1
    assert signature(AnswerMatch(stop_words=["a"])) != signature(AnswerMatch())


def test_options_that_do_not_fit_are_refused():
    cases = [
        ({"threshold": 0}, "threshold must be above 0 and at most 1, found 0"),
        ({"measure": "f2"}, "no measure is called 'f2'. Known: accuracy, precision, recall, f1"),
        ({"recipe": "publish"}, "no recipe is called 'publish'. Did you mean 'published'? Known: content, published"),
        ({"tokenize": "words"}, "no way to split a text into words is called 'words'"),
        (
            {"recipe": "published", "tokenize": "jieba"},
            "recipe='published' splits words itself; remove tokenize='jieba'",
        ),
        ({"stop_words": "的是"}, "stop_words must be a list of words, found '的是'"),
        ({"stop_words": ["a", 5]}, "stop_words must be a list of words, found ['a', 5]"),
    ]
    for options, message in cases:
        with pytest.raises(ConfigError, match=re.escape(message)):
            AnswerMatch(**options)
