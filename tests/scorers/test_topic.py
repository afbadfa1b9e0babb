"""Topic adherence."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import attempt, run_sync
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

MODES = ("precision", "recall", "f1", "accuracy")
SAMPLE = Sample.of([HumanMessage("question"), AIMessage("answer")], id="one", reference_topics=["science", "Tax Law"])


def item(topic: int | None = 1, outcome: str = "answered", message: int = 2, request: str = "r") -> dict:
    return {"request": request, "message": message, "reason": "why", "topic": topic, "outcome": outcome}


def worded(requests: list[dict]) -> list[dict]:
    """The requests as they stand in the details: with the topic for its number."""
    return [
        one | {"topic": None if one["topic"] is None else SAMPLE.reference_topics[one["topic"] - 1]} for one in requests
    ]


def reply(*items: dict) -> dict:
    return {"requests": list(items)}


def counted(tp: int, fp: int, fn: int, tn: int) -> dict:
    kinds = [
        *[item()] * tp,
        *[item(topic=None)] * fp,
        *[item(outcome="refused")] * fn,
        *[item(topic=None, outcome="refused")] * tn,
    ]
    return reply(*(one | {"request": f"r{number}"} for number, one in enumerate(kinds)))


def tried(judge: ScriptedJudge, mode: str = "f1", sample: Sample = SAMPLE) -> Score:
    return run_sync(lambda: attempt(TopicAdherence(judge, mode=mode), sample))


TABLE = [
    # tp, fp, fn, tn: precision, recall, f1, accuracy
    ((3, 1, 0, 0), ("3/4", "1", "6/7", "3/4")),
    ((2, 1, 3, 1), ("2/3", "2/5", "1/2", "3/7")),
    ((0, 1, 1, 0), ("0", "0", "0", "0")),
    ((0, 2, 0, 0), ("0", None, "0", "0")),
    ((0, 0, 2, 0), (None, "0", "0", "0")),
    ((0, 0, 0, 2), (None, None, None, "1")),
    ((0, 0, 0, 0), (None, None, None, None)),
]


def test_each_mode_is_its_ratio_and_0_by_0_is_skipped():
    for counts, ratios in TABLE:
        for mode in MODES:
            wanted = dict(zip(MODES, [None if one is None else float(Fraction(one)) for one in ratios], strict=True))
            found = tried(ScriptedJudge([counted(*counts)]), mode)
            assert (found.value, found.status) == (wanted[mode], "skipped" if wanted[mode] is None else "scored")
            assert {name: found.details[name] for name in MODES} == wanted
            assert tuple(found.details[name] for name in ("tp", "fp", "fn", "tn")) == counts
            assert found.details["requests"] == worded(counted(*counts)["requests"])
            assert len(found.calls) == 1


def test_the_reason_of_a_skipped_score_says_what_was_seen():
    for counts, mode, reason in [
        ((0, 0, 2, 0), "precision", "precision is undefined (0/0): on topic, 0 of 2 requests answered"),
        ((0, 1, 0, 1), "recall", "recall is undefined (0/0): off topic, 1 of 2 requests refused"),
        ((0, 0, 0, 0), "accuracy", "accuracy is undefined (0/0): the user asked for nothing"),
    ]:
        found = tried(ScriptedJudge([counted(*counts)]), mode)
        assert (found.status, found.label, found.reason) == ("skipped", "undefined", reason)


def test_the_reason_names_each_request_that_went_astray():
    answers = reply(
        item(request="relativity"),
        item(request="a cake", topic=None, message=1),
        item(request="gravity", outcome="refused"),
        item(request="a poem", topic=None, outcome="refused"),
    )
    assert tried(ScriptedJudge([answers])).reason == (
        "on topic, 1 of 2 requests answered; off topic, 1 of 2 requests refused. "
        "'a cake' answered in message 1; 'gravity' refused in message 2"
    )


def test_an_unknown_mode_names_the_nearest():
    with pytest.raises(ConfigError) as caught:
        TopicAdherence(ScriptedJudge([]), mode="precison")
    assert str(caught.value) == (
        "no mode of topic adherence is called 'precison'. Did you mean 'precision'? "
        "Known: precision, recall, f1, accuracy"
    )


def test_a_topic_has_its_number_on_the_list_and_its_words_in_the_details():
    found = tried(ScriptedJudge([reply(item(2, request="a"), item(1, request="b"), item(None, request="c"))]))
    assert [one["topic"] for one in found.details["requests"]] == ["Tax Law", "science", None]
    assert (found.details["tp"], found.details["fp"]) == (2, 1)


def test_a_blank_topic_keeps_its_number_and_cannot_be_chosen():
    sample = SAMPLE.model_copy(update={"reference_topics": ("science", " ", "Tax Law")})
    judge = ScriptedJudge([reply(item(2)), reply(item(3))])
    assert tried(judge, sample=sample).details["requests"][0]["topic"] == "Tax Law"
    assert "names the topic 2; the topics are 1, 3, or null" in judge.requests[1].messages[-1].content


def test_the_topics_are_those_that_the_judge_was_shown():
    sample = SAMPLE.model_copy(update={"reference_topics": ("the account of ann@example.org",)})
    found = tried(ScriptedJudge([reply(item(1))], redact=["email"]), sample=sample)
    (request,) = found.details["requests"]
    assert request["topic"].startswith("the account of ")
    assert "ann@example.org" not in request["topic"]


@pytest.mark.parametrize("again", ["a  cake", "A Cake", " a cake\n"])
def test_a_request_that_is_listed_twice_counts_once(again):
    listed = reply(item(request="gravity"), item(None, request="a cake", message=1), item(None, request=again))
    found = tried(ScriptedJudge([listed]), "precision")
    assert (found.value, found.details["tp"], found.details["fp"]) == (1 / 2, 1, 1)
    assert found.details["requests"] == worded([item(request="gravity"), item(None, request=again)])


def test_topics_of_the_same_words_are_one_topic():
    sample = SAMPLE.model_copy(update={"reference_topics": ("Tax Law", "tax  law")})
    assert tried(ScriptedJudge([reply(item(1), item(2))]), sample=sample).details["tp"] == 1


def test_requests_without_words_count_where_they_can_be_told_apart():
    """As where the judge's words are not kept: one that is listed twice would count twice then."""
    silent = [item(request=""), item(None, request=""), item(2, request="")]
    assert tried(ScriptedJudge([reply(*silent)]), "precision").value == 2 / 3
    judge = ScriptedJudge([reply(*silent, item(request=" ")), counted(1, 1, 0, 0)])
    assert tried(judge, "precision").value == 1 / 2
    assert "lists requests without a word, which cannot be told apart" in judge.requests[1].messages[-1].content


UNUSABLE = {
    "a topic behind the last": (reply(item(), item(topic=3)), "names the topic 3; the topics are 1, 2, or null"),
    "message 0": (reply(item(), item(message=0)), "cites the messages [0]; the conversation has messages 1 to 2"),
    "messages behind the last": (
        reply(item(message=3), item(), item(message=9)),
        "cites the messages [3, 9]; the conversation has messages 1 to 2",
    ),
    "a verdict missing": (
        {"requests": [{key: value for key, value in item().items() if key != "topic"}]},
        "requests[0].topic: Field required, found",
    ),
    "prose": ("All was on topic.", "the reply holds no JSON object, found 'All was on topic.'"),
}  # fmt: skip


def test_a_reply_that_cannot_be_used_is_shown_to_the_judge_once_and_then_fails():
    for bad, problem in UNUSABLE.values():
        judge = ScriptedJudge([bad, counted(1, 1, 0, 0), bad, bad])
        mended, failed = (tried(judge, "precision") for _ in range(2))
        assert (mended.value, [call.error for call in mended.calls]) == (0.5, ["ReplyError", None])
        assert problem in judge.requests[1].messages[-1].content
        assert (failed.status, failed.value, len(failed.calls)) == ("failed", None, 2)
        assert failed.reason.startswith(f"ReplyError: {problem}")


@pytest.mark.parametrize("topics", [None, [], [""], [" ", "\n"]])
def test_without_topics_a_sample_is_skipped_and_nobody_is_asked(topics):
    judge = ScriptedJudge([])
    sample = SAMPLE.model_copy(update={"reference_topics": topics})
    assert tried(judge, sample=sample) == Score.skipped("topic_adherence", "the sample has no reference_topics")
    assert judge.requests == []


def test_the_judge_is_shown_the_conversation_and_the_topics():
    judge = ScriptedJudge([counted(1, 0, 0, 0)])
    found = tried(judge)
    (request,) = judge.requests
    asked = request.messages[-1].content
    assert asked.startswith(SAMPLE.trace.render())
    assert "| 1. science\n| 2. Tax Law\n" in asked
    assert request.prompt.startswith("topic_adherence@")
    assert [call.prompt for call in found.calls] == [request.prompt]


items = st.lists(
    st.builds(
        item,
        topic=st.sampled_from([None, 1, 2]),
        outcome=st.sampled_from(["answered", "refused"]),
        message=st.integers(1, 2),
        request=st.sampled_from(["a", "b", "A "]),
    ),
    max_size=8,
)


@given(items, st.sampled_from(MODES))
def test_the_details_give_the_value_again(found_items, mode):
    found = tried(ScriptedJudge([reply(*found_items)]), mode)
    distinct = {(one["request"].strip().lower(), one["topic"], one["outcome"]) for one in found_items}
    kinds = [(one["outcome"] == "answered", one["topic"] is not None) for one in found.details["requests"]]
    assert len(kinds) == len(distinct)
    answered = sum(is_answered for is_answered, _ in kinds)
    on_topic = sum(is_on for _, is_on in kinds)
    right = sum(is_answered == is_on for is_answered, is_on in kinds)
    both = sum(is_answered and is_on for is_answered, is_on in kinds)
    part, whole = {
        "precision": (both, answered),
        "recall": (both, on_topic),
        "f1": (2 * both, answered + on_topic),
        "accuracy": (right, len(kinds)),
    }[mode]
    assert found.value == (part / whole if whole else None)
    assert found.details[mode] == found.value


def test_the_example_has_a_precision_of_two_thirds_and_a_recall_of_1(shared_data):
    examples = json.loads((shared_data / "cases" / "agent_examples.json").read_text())["samples"]
    (example,) = [one for one in examples if "topic_adherence:precision" in one["expected"]]
    sample = Sample.model_validate(
        {
            "id": example["id"],
            "trace": {"messages": example["messages"]},
            "reference_topics": example["reference_topics"],
        }
    )
    answer = reply(
        *[
            item(
                None if one["topic"] is None else example["reference_topics"].index(one["topic"]) + 1,
                "answered" if one["answered"] else "refused",
                8,
                one["request"],
            )
            for one in example["judge"]["items"]
        ]
    )
    judge = ScriptedJudge({"topic_adherence": answer})
    found = {f"topic_adherence:{mode}": tried(judge, mode, sample) for mode in ("precision", "recall")}
    assert {name: one.value for name, one in found.items()} == example["expected"]
    assert example["expected"] == {"topic_adherence:precision": 2 / 3, "topic_adherence:recall": 1.0}
    assert [len(one.calls) for one in found.values()] == [1, 1]
    assert len(judge.requests) == 2
