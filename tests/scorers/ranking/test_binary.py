"""Scorers of rankings in which a document is relevant or not."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.aggregates.total import compute_total
from judgekit.errors import ConfigError
from judgekit.scorers.ranking import measures
from judgekit.scorers.ranking.binary import AUC, AveragePrecision, HitRate, PrecisionAtK, RecallAtK, ReciprocalRank
from judgekit.traces.sample import Ranking, Sample

ALL = [ReciprocalRank(), AveragePrecision(), AUC(), PrecisionAtK(2), RecallAtK(2), HitRate(2)]
kinds = st.lists(st.booleans(), min_size=1, max_size=12)


def ranks_of(relevant: list[bool]) -> list[int]:
    return [rank for rank, one in enumerate(relevant, 1) if one]


def test_mrr_of_first_relevant_ranks_2_1_3_is_the_mean_11_18(graded):
    scores = [ReciprocalRank().score(graded(grades)) for grades in ([0, 1, 0], [1, 0, 0], [0, 0, 1])]
    assert [score.value for score in scores] == [1 / 2, 1, 1 / 3]
    assert {score.aggregate for score in scores} == {"mean"}
    assert compute_total("mean", scores).value == pytest.approx(11 / 18, abs=1e-15)


@pytest.mark.parametrize(
    ("grades", "interpolated", "expected"),
    [
        ([1, 1, 0, 0, 1, 0, 0], False, Fraction(13, 15)),
        ([0, 1, 1, 0, 1], False, Fraction(53, 90)),
        ([0, 1, 1, 0, 1], True, Fraction(29, 45)),
    ],
)
def test_average_precision_has_the_worked_values(graded, grades, interpolated, expected):
    score = AveragePrecision(interpolated=interpolated).score(graded(grades))
    assert score.value == pytest.approx(float(expected), abs=1e-15)


@given(kinds, st.integers(1, 3))
def test_average_precision_is_the_mean_of_the_precisions_by_its_definition(relevant, missed):
    total = sum(relevant) + missed
    precision = [Fraction(sum(relevant[:rank]), rank) for rank in range(1, len(relevant) + 1)]
    plain = sum((precision[rank - 1] for rank in ranks_of(relevant)), Fraction()) / total
    best = sum((max(precision[rank - 1 :]) for rank in ranks_of(relevant)), Fraction()) / total
    assert measures.average_precision(ranks_of(relevant), total) == pytest.approx(float(plain), abs=1e-14)
    found = measures.average_precision(ranks_of(relevant), total, interpolated=True)
    assert found == pytest.approx(float(best), abs=1e-14)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=12))
def test_auc_is_the_share_of_pairs_in_the_right_order_with_half_for_equal_scores(documents):
    documents.sort(key=lambda one: -one[0])
    above, below = ([score for score, one in documents if one is kind] for kind in (True, False))
    if above and below:
        won = sum(
            (Fraction(1, 2) if one == other else Fraction(one > other) for one in above for other in below), Fraction()
        )
        ranks = ranks_of([one for _, one in documents])
        scores = [float(score) for score, _ in documents]
        assert measures.auc(ranks, len(documents), scores) == float(won / (len(above) * len(below)))


def test_auc_without_scores_has_no_equal_ones(graded):
    assert AUC().score(graded([1, 0, 1, 0])).value == 3 / 4
    assert AUC().score(Sample(id="one", ranking=Ranking([("a", 1), ("b", 1)], {"a": 1}))).value == 1 / 2


def test_cuts_divide_by_k_by_all_relevant_and_by_nothing(graded):
    sample = graded([0, 1, 1], 1)
    assert PrecisionAtK(5).score(sample).value == 2 / 5
    assert PrecisionAtK(2).score(sample).value == 1 / 2
    assert RecallAtK(2).score(sample).value == 1 / 3
    assert [HitRate(k).score(sample).value for k in (1, 2)] == [0, 1]


@pytest.mark.parametrize("scorer", ALL, ids=lambda scorer: scorer.name)
def test_without_a_relevant_document_no_order_could_be_better(graded, scorer):
    for sample in (graded([]), graded([None, None]), graded([0, -1, 0.5], 0)):
        score = scorer.score(sample)
        assert (score.status, score.reason) == (
            "skipped",
            "no judged document is relevant (relevant_from=1), so every order is equally good",
        )
    assert scorer.score(Sample(id="one")).reason == "the sample has no ranking"
    assert scorer.score(Sample(id="one")).status == "skipped"


@pytest.mark.parametrize("scorer", [one for one in ALL if one.name != "auc"], ids=lambda scorer: scorer.name)
def test_nothing_retrieved_scores_0_where_something_is_relevant(graded, scorer):
    score = scorer.score(graded([], 1, 1))
    assert score.value == 0
    assert score.details == {"found": [], "relevant": 2, "retrieved": 0} | ({"k": 2} if "_at_" in scorer.name else {})


def test_auc_of_one_class_is_skipped(graded):
    for grades, which in [([1, 1], "all of 2"), ([0, None], "none of 2"), ([], "none of 0")]:
        score = AUC().score(graded(grades, 1))
        assert score.status == "skipped"
        assert score.reason == f"{which} retrieved documents are relevant, so there is no pair to compare"


@pytest.mark.parametrize(
    ("scorer", "reason"),
    [
        (ReciprocalRank(), "first relevant document at rank 2 of 4: 'd2'"),
        (AveragePrecision(), "2 of 3 relevant documents retrieved, at ranks 2, 4 of 4"),
        (AUC(), "a relevant document ranks above another in 1 of 4 pairs (equal scores count half)"),
        (PrecisionAtK(3), "1 of 3 relevant documents among the first 3 (retrieved: 4)"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_scores_say_where_relevant_documents_are(graded, scorer, reason):
    score = scorer.score(graded([0, 1, None, 2], 1))
    assert score.reason == reason
    found = [{"rank": 2, "id": "d2", "grade": 1.0}, {"rank": 4, "id": "d4", "grade": 2.0}]
    k = {"k": 3} if scorer.name == "precision_at_3" else {}
    assert score.details == {"found": found, "relevant": 3, "retrieved": 4} | k


def test_a_score_says_that_nothing_relevant_was_retrieved(graded):
    for scorer in (ReciprocalRank(), AveragePrecision()):
        assert scorer.score(graded([0, 0], 1, 1)).reason == "none of 2 relevant documents is among 2 retrieved"


def test_details_of_auc_hold_the_scores_that_were_compared():
    ranking = Ranking([("a", 1), ("b", 2)], {"a": 1})
    assert AUC().score(Sample(id="one", ranking=ranking)).details["scores"] == [2, 1]


def test_grades_of_which_all_are_relevant_are_warned_of(graded):
    warning = "all judged documents are relevant, though their grades differ (relevant_from=1)"
    assert ReciprocalRank().score(graded([1, 5, 3], 2)).warnings == (warning,)
    assert ReciprocalRank(relevant_from=3).score(graded([1, 5, 3], 2)).warnings == ()
    assert ReciprocalRank(relevant_from=3).score(graded([1, 5, 3], 2)).value == 1 / 2
    assert ReciprocalRank().score(graded([1, 1])).warnings == ()
    assert ReciprocalRank().score(graded([3, 3], 3)).warnings == ()
    assert ReciprocalRank().score(graded([0, 2, 1])).warnings == ()


@pytest.mark.parametrize("grade", [0, -1, math.inf, math.nan, True, "1"])
def test_documents_that_were_not_judged_cannot_be_made_relevant(grade):
    with pytest.raises(ConfigError, match="relevant_from must be a number above 0, found"):
        ReciprocalRank(relevant_from=grade)


def test_k_is_a_number_of_documents():
    for kind in [PrecisionAtK, RecallAtK, HitRate]:
        for k in [0, -1, 2.0, True, "5", None]:
            with pytest.raises(ConfigError, match="k must be an integer of at least 1, found"):
                kind(k)


def test_names_say_what_is_measured():
    scorers = [*ALL, AveragePrecision(interpolated=True), PrecisionAtK(3, name="p3")]
    assert [scorer.name for scorer in scorers] == [
        *("reciprocal_rank", "average_precision", "auc", "precision_at_2", "recall_at_2", "hit_rate_at_2"),
        *("interpolated_average_precision", "p3"),
    ]
