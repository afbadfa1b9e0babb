"""What all scorers of rankings share: tools' results, ids that are texts, and rankings of any size."""

import json

import pytest

from judgekit.errors import ConfigError
from judgekit.scorers.ranking.binary import AUC, AveragePrecision, HitRate, RecallAtK, ReciprocalRank
from judgekit.scorers.ranking.graded import ERR, NDCG
from judgekit.scoring import signature
from judgekit.traces.message import AIMessage, HumanMessage, Message, ToolCall, ToolMessage
from judgekit.traces.sample import Ranking, Sample

ALL = [ReciprocalRank, AveragePrecision, AUC, NDCG]


def searched(*results: object, relevance: dict[str, float] | None = None, **options: object) -> Sample:
    """A sample whose tool ``search`` returns these results in turn, of which a text is written as it is."""
    messages: list[Message] = [HumanMessage("Find it.")]
    for index, result in enumerate(results):
        text = result if isinstance(result, str) else json.dumps(result)
        messages += [
            AIMessage(tool_calls=[ToolCall("search", id=str(index))]),
            ToolMessage(text, tool_call_id=str(index), **options),
        ]
    return Sample.of(messages, ranking=Ranking([], {"a": 1, "7": 1} if relevance is None else relevance))


@pytest.mark.parametrize(
    ("result", "path"),
    [
        (["x", "a", 7], None),
        ([["x", 3], ["a", 2.5], [7, -1]], None),
        ([[7, -1], ["x", 3], ["a", 2.5]], None),
        ({"hits": [{"id": "x"}, {"id": "a"}, {"id": 7}]}, "hits[].id"),
        (
            {"hits": [{"id": 7, "score": 0.1}, {"id": "a", "score": 0.2}, {"id": "x", "score": 0.3}]},
            "hits[].[id, score]",
        ),
    ],
)
def test_ids_are_read_from_a_tools_result(result, path):
    score = AveragePrecision(tool="search", path=path).score(searched(result))
    assert score.value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert [one["id"] for one in score.details["found"]] == ["a", "7"]


def test_the_last_result_without_an_error_counts():
    sample = searched(["a"], ["x", "a"])
    assert ReciprocalRank(tool="search").score(sample).value == 1 / 2
    failed = ToolMessage("Timeout", tool_call_id="1", is_error=True)
    sample = sample.model_copy(
        update={"trace": sample.trace.model_copy(update={"messages": (*sample.trace.messages[:-1], failed)})}
    )
    assert ReciprocalRank(tool="search").score(sample).value == 1


def test_a_tool_may_return_nothing():
    assert ReciprocalRank(tool="search").score(searched([])).value == 0


@pytest.mark.parametrize("sample", [searched(), searched(["a"], is_error=True)], ids=["no call", "an error"])
def test_without_a_result_there_is_no_ranking(sample):
    score = ReciprocalRank(tool="search").score(sample)
    assert (score.status, score.reason) == ("skipped", "the tool 'search' returned no result without an error")


def test_a_result_without_ids_is_an_error_that_names_its_message():
    cases = [
        ("No hits.", None, "expected JSON, found 'No hits.': expected"),
        ("[" * 100_000, None, "expected JSON, found '[[["),
        ({"hits": []}, None, "expected a list, found {'hits': []}"),
        ([1], "length(@)", "expected a list at 'length(@)', found 1"),
        ({"hits": 5}, "length(hits)", "In function length(), invalid type for value: 5"),
        ([{"id": "a"}], None, "retrieved[0]: Input should be a valid string, found {'id': 'a'}"),
        ([["a", None]], None, "scores[0]: Input should be a valid number, found None"),
        ("[[1, NaN]]", None, "scores[0]: Input should be a finite number, found nan"),
        (["a", "b", "a"], None, "retrieved has duplicate ids: 'a'"),
        ([["a", 1], "b"], None, "retrieved mixes (id, score) pairs with 'b'"),
    ]
    for result, path, found in cases:
        with pytest.raises(ValueError, match=r"^message 5, the result of 'search': ") as raised:
            ReciprocalRank(tool="search", path=path).score(searched(["a"], result))
        assert str(raised.value).startswith(f"message 5, the result of 'search': {found}")


def test_a_path_that_leads_nowhere_is_an_error():
    cases = [
        ({"path": "ids"}, "path='ids' selects from a tool result; set tool= as well"),
        ({"tool": "search", "path": "a["}, "path: 'a[' is not a valid JMESPath: Invalid jmespath expression"),
        ({"tool": "search", "path": 5}, "path: 5 is not a valid JMESPath: "),
    ]
    for options, found in cases:
        for kind in ALL:
            with pytest.raises(ConfigError) as raised:
                kind(**options)
            assert str(raised.value).startswith(found)


def test_ids_that_are_texts_may_be_compared_as_such():
    sample = Sample(id="one", ranking=Ranking(["The  Cat sat.", "a dog"], {"the cat SAT": 2, "A bird": 1}))
    assert NDCG().score(sample).value == 0
    score = NDCG(1, normalize=True).score(sample)
    assert score.value == 1
    assert score.details["found"] == [{"rank": 1, "id": "The  Cat sat.", "grade": 2.0}]


@pytest.mark.parametrize(
    ("ranking", "found"),
    [
        (
            Ranking(["x", "Cat", "cat"], {"cat": 1}),
            "retrieved has ids that are equal after normalization: 'Cat'; 'cat'",
        ),
        (Ranking(["x"], {"Cat": 1, "cat.": 1}), "relevance has ids that are equal after normalization: 'Cat'; 'cat.'"),
    ],
)
def test_ids_that_become_one_are_an_error_that_names_them(ranking, found):
    with pytest.raises(ValueError, match="normalization") as raised:
        ReciprocalRank(normalize=True).score(Sample(id="one", ranking=ranking))
    assert str(raised.value) == found
    assert ReciprocalRank().score(Sample(id="one", ranking=ranking)).reason


SEED = [
    (["小棕瓶精华", "小棕瓶眼霜", "面霜"], "小棕瓶眼霜", 1 / 2),
    (["skII 神仙水", "兰蔻粉水", " 菌菇水"], "skii神仙水", 1),
    (["芦荟霜", "高保湿面霜", "skii面膜"], "skii面膜", 1 / 3),
]
"""Queries as they were published: what was found, the right one, and its reciprocal rank."""


@pytest.mark.parametrize(("found", "right", "value"), SEED)
def test_published_rows_have_their_published_value(found, right, value):
    sample = Sample(id="one", ranking=Ranking(found, {right: 1}))
    assert ReciprocalRank(normalize=True).score(sample).value == value


@pytest.mark.parametrize(
    "scorer", [kind(normalize=True) for kind in ALL] + [ERR(1, normalize=True), HitRate(1, normalize=True)]
)
def test_ids_that_are_one_only_when_normalized_are_said(scorer):
    sample = Sample(id="one", ranking=Ranking(["skII 神仙水", "b", "C."], {"skii神仙水": 1, "b": 1, "c": 0}))
    score = scorer.score(sample)
    assert (
        score.value == scorer.score(Sample(id="one", ranking=Ranking(["a", "b", "c"], {"a": 1, "b": 1, "c": 0}))).value
    )
    assert score.details["normalized"] == {"skII 神仙水": "skii神仙水", "C.": "c"}
    assert score.reason.endswith("; after normalization, 'skII 神仙水' matches 'skii神仙水'; 'C.' matches 'c'")
    alike = scorer.score(Sample(id="one", ranking=Ranking(["b", "C."], {"b": 1})))
    assert "normalized" not in alike.details
    assert "normalized" not in alike.reason


def test_they_are_also_said_where_the_sample_is_skipped_for_them():
    score = AUC(normalize=True).score(Sample(id="one", ranking=Ranking(["a", "B"], {"a": 1, "b": 1})))
    assert score.reason == (
        "all of 2 retrieved documents are relevant, so there is no pair to compare; after normalization, 'B' matches 'b'"
    )


def test_many_documents_are_a_ranking():
    """Every other document is relevant, the last one of all first."""
    count = 2_000
    sample = Sample(id="one", ranking=Ranking([(n, n) for n in range(count)], {n: n % 2 for n in range(count)}))
    assert ReciprocalRank().score(sample).value == 1
    assert RecallAtK(count // 2).score(sample).value == 1 / 2
    assert AUC().score(sample).value == pytest.approx(1 / 2 + 1 / count)
    precisions = [k / (2 * k - 1) for k in range(1, count // 2 + 1)]
    assert AveragePrecision().score(sample).value == pytest.approx(sum(precisions) / len(precisions))
    assert 1 / 2 < NDCG().score(sample).value < 1
    assert len(AveragePrecision().score(sample).reason) < 200
    assert ERR(1).score(sample).reason.endswith("1, 1, and 990 more")


def test_options_that_change_the_number_change_the_signature():
    scorers = [
        NDCG(),
        NDCG(10),
        NDCG(gains="linear"),
        NDCG(normalize=True),
        NDCG(tool="search"),
        NDCG(tool="search", path="ids"),
        AveragePrecision(),
        AveragePrecision(interpolated=True),
        AveragePrecision(relevant_from=2),
    ]
    assert len({signature(scorer) for scorer in scorers}) == len(scorers)
