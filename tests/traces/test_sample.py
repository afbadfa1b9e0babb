"""A trace and what is known to be right about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.errors import ConfigError
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import ExpectedCall, Ranking, Sample
from judgekit.traces.trace import Trace

MESSAGES = [HumanMessage("Hi"), AIMessage("Hello")]


@given(st.from_type(Sample))
def test_any_sample_is_the_same_after_a_json_round_trip(sample):
    again = Sample.model_validate_json(sample.model_dump_json())
    assert again == sample
    assert again.model_dump_json() == sample.model_dump_json()


def test_a_call_that_was_made_may_be_expected():
    made = ToolCall("f", {"a": 1}, id="1", metadata={"b": 2})
    sample = Sample.of(MESSAGES, reference_tool_calls=[made, ExpectedCall("g", compare_args=["x"])])
    assert sample.reference_tool_calls == (
        ExpectedCall("f", {"a": 1}, id="1", metadata={"b": 2}, compare_args=None),
        ExpectedCall("g", compare_args=("x",)),
    )


def test_an_expected_call_is_the_agents_and_of_any_turn_unless_said_otherwise():
    assert (ExpectedCall("f").requestor, ExpectedCall("f").turn) == ("assistant", None)


def test_no_arguments_to_compare_is_not_all_arguments():
    assert ExpectedCall("f", compare_args=[]).compare_args == ()
    assert ExpectedCall("f").compare_args is None


@pytest.mark.parametrize("args", ["oops", [1], {"a": float("nan")}], ids=repr)
def test_arguments_of_an_expected_call_must_be_readable(args):
    with pytest.raises(ValidationError, match="arguments of an expected call must be a JSON object"):
        ExpectedCall("f", args)
    with pytest.raises(ValidationError, match="arguments of an expected call must be a JSON object"):
        Sample.of(MESSAGES, reference_tool_calls=[ToolCall("f", args)])


def test_a_sample_of_messages_is_named_after_them():
    sample = Sample.of(MESSAGES, reference="x")
    assert sample == Sample(id=sample.id, trace=Trace(messages=MESSAGES), reference="x")
    assert len(sample.id) == 12
    assert Sample.of(MESSAGES).id == sample.id
    assert Sample.of(MESSAGES[:1]).id != sample.id


PAIRS = [("a", 1), ("c", 3), ("b", 3), ("B", 3)]


def test_a_ranking_of_pairs_is_in_the_order_of_trec_eval():
    """The highest score first, and equal scores by id in descending order."""
    ranking = Ranking(PAIRS, {"a": 1})
    assert ranking.retrieved == ("c", "b", "B", "a")
    assert ranking.scores == (3, 3, 3, 1)
    assert Ranking(["a", "c", "b", "B"], {"a": 1}, scores=[1, 3, 3, 3]) == ranking
    assert Ranking.model_validate({"retrieved": [list(one) for one in PAIRS], "relevance": {"a": 1}}) == ranking
    assert Ranking.model_validate_json(ranking.model_dump_json()) == ranking


def test_ids_that_are_whole_floats_have_no_decimals():
    """Tables turn whole numbers into such where one is missing."""
    assert Ranking([7.0, 10.0, "7.0"], {7: 1}).retrieved == ("7", "10", "7.0")
    assert Ranking([(7.0, 0.5), (1e15, 1)], {"7": 1}).retrieved == ("1000000000000000", "7")
    assert Ranking.model_validate({"retrieved": [7.0, "a"], "relevance": {}}) == Ranking(["7", "a"], {})
    assert Ranking([7.5, "a"], {}).retrieved == ("7.5", "a")
    with pytest.raises(ValidationError, match="retrieved has duplicate ids: '7'"):
        Ranking([7.0, 7], {})


def test_a_ranking_that_does_not_fit_is_an_error():
    cases = [
        (["a", "b", "a", "c", "b"], {}, None, "retrieved has duplicate ids: 'a', 'b'"),
        ([1, "1"], {}, None, "retrieved has duplicate ids: '1'"),
        ([], {1: 1, "1": 0}, None, "relevance has duplicate ids: '1'"),
        (["a", "b"], {}, [1], "expected a score for each of 2 ids, found 1 scores"),
        ([("a", 1)], {}, [1], "retrieved already has \\(id, score\\) pairs; omit scores, or pass only ids"),
        (["a", ("b", 1)], {}, None, "retrieved mixes \\(id, score\\) pairs with 'a'"),
        ([("a", 1), ("b", 1, 2)], {}, None, r"retrieved mixes \(id, score\) pairs with \('b', 1, 2\)"),
        ([("a", float("nan"))], {}, None, r"scores\.0\n  Input should be a finite number"),
        ({"a": 1}, {}, None, "retrieved\n  Input should be a valid tuple"),
    ]
    for retrieved, relevance, scores, found in cases:
        with pytest.raises(ValidationError, match=found):
            Ranking(retrieved, relevance, scores=scores)
    with pytest.raises(ValidationError, match="Ranking"):
        Ranking.model_validate("a")


def test_all_references_are_the_reference_and_the_others_once_each_and_none_of_them_blank():
    both = Sample(id="a", reference="14 days", references=["two weeks", " ", "14 days"])
    assert both.all_references == ("14 days", "two weeks")
    assert Sample(id="b", references=["two weeks"]).all_references == ("two weeks",)
    assert Sample(id="c", reference=" ").all_references == ()


def test_lone_surrogates_are_carried_and_are_part_of_the_name():
    samples = [
        Sample.of([HumanMessage(text), AIMessage("", tool_calls=[ToolCall(text, {"a": text})])])
        for text in ("\ud800", "\udc00")
    ]
    assert [one.trace.messages[0].text for one in samples] == ["\ud800", "\udc00"]
    assert len({one.id for one in samples}) == 2


def test_arguments_that_are_too_deep_are_an_error_in_words():
    args = {}
    for _ in range(100_000):
        args = {"a": args}
    with pytest.raises(ValidationError, match="nested too deeply"):
        ToolCall("f", args)


def test_a_misspelt_argument_names_the_nearest():
    with pytest.raises(
        ConfigError, match=r"^no argument of Sample.of is called 'refrence'. Did you mean 'reference'\?"
    ):
        Sample.of([HumanMessage("Hi")], refrence="x")
