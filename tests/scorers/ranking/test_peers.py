"""Ranking measures beside those of trec_eval, scikit-learn, ranx and others."""

import json
from math import isclose
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, roc_auc_score

from judgekit.scorers.ranking.binary import AUC, AveragePrecision, HitRate, PrecisionAtK, RecallAtK, ReciprocalRank
from judgekit.scorers.ranking.graded import ERR, NDCG
from judgekit.scorers.ranking.ranked import RankingScorer
from judgekit.traces.sample import Ranking, Sample

IDS = ["d1", "d10", "d2", "D2", "é", "e", "中", "\uff21", "😀", "z", " z", "zz"]
KS = (1, 3, 5, 20)
TREC_EVAL: dict[str, RankingScorer] = {
    "ndcg": NDCG(gains="linear"),
    "map": AveragePrecision(),
    "recip_rank": ReciprocalRank(),
    **{f"ndcg_cut_{k}": NDCG(k, gains="linear") for k in KS},
    **{f"P_{k}": PrecisionAtK(k) for k in KS},
    **{f"recall_{k}": RecallAtK(k) for k in KS},
    **{f"success_{k}": HitRate(k) for k in KS},
}
MEASURES = {
    "ndcg",
    "map",
    "recip_rank",
    *(f"{one}.{','.join(map(str, KS))}" for one in ("ndcg_cut", "P", "recall", "success")),
}
RANX: dict[str, RankingScorer] = {
    "mrr": ReciprocalRank(),
    "map": AveragePrecision(),
    "ndcg": NDCG(gains="linear"),
    "ndcg_burges": NDCG(),
    **{f"ndcg@{k}": NDCG(k, gains="linear") for k in (1, 3, 5, 10)},
    **{f"ndcg_burges@{k}": NDCG(k) for k in (1, 3, 5, 10)},
    **{f"precision@{k}": PrecisionAtK(k) for k in (1, 3, 5, 10)},
    **{f"recall@{k}": RecallAtK(k) for k in (1, 3, 5, 10)},
    **{f"hit_rate@{k}": HitRate(k) for k in (1, 3, 5, 10)},
}

# Eighths, since trec_eval keeps scores as 32-bit floats: to it, scores that differ less are equal.
scores = st.integers(-8, 8).map(lambda eighths: eighths / 8)
retrieved = st.dictionaries(st.sampled_from(IDS), scores)
relevance = st.dictionaries(st.sampled_from(IDS), st.integers(-2, 4), min_size=1)


def value(scorer: RankingScorer, ranking: Ranking) -> float:
    found = scorer.score(Sample(id="one", ranking=ranking)).value
    assert found is not None
    return found


@given(retrieved, relevance)
def test_numbers_are_those_of_trec_eval_with_equal_scores_unjudged_and_negative_grades(retrieved, relevance):
    assume(max(relevance.values()) > 0)
    theirs = pytrec_eval.RelevanceEvaluator({"q": relevance}, MEASURES).evaluate({"q": retrieved})["q"]
    ranking = Ranking(list(retrieved.items()), relevance)
    assert {name: value(scorer, ranking) for name, scorer in TREC_EVAL.items()} == pytest.approx(theirs, abs=1e-9)


@given(retrieved, relevance, st.integers(2, 4))
def test_what_is_relevant_may_begin_at_a_higher_grade_as_in_trec_eval(retrieved, relevance, least):
    assume(max(relevance.values()) >= least)
    measures = {"map", "recip_rank", "P.3", "recall.3"}
    theirs = pytrec_eval.RelevanceEvaluator({"q": relevance}, measures, relevance_level=least).evaluate(
        {"q": retrieved}
    )
    ranking = Ranking(list(retrieved.items()), relevance)
    ours = {
        "map": AveragePrecision(relevant_from=least),
        "recip_rank": ReciprocalRank(relevant_from=least),
        "P_3": PrecisionAtK(3, relevant_from=least),
        "recall_3": RecallAtK(3, relevant_from=least),
    }
    assert {name: value(scorer, ranking) for name, scorer in ours.items()} == pytest.approx(theirs["q"], abs=1e-9)


@given(st.dictionaries(st.sampled_from(IDS), st.tuples(scores, st.integers(0, 4)), min_size=2))
def test_auc_is_that_of_scikit_learn_with_equal_scores(documents):
    relevant = [grade > 0 for _, grade in documents.values()]
    assume(len(set(relevant)) == 2)
    ranking = Ranking(
        [(one, score) for one, (score, _) in documents.items()],
        {one: grade for one, (_, grade) in documents.items() if grade},
    )
    assert isclose(value(AUC(), ranking), roc_auc_score(relevant, [score for score, _ in documents.values()]))


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12).filter(any), st.none() | st.integers(1, 15))
def test_ndcg_of_judged_documents_is_that_of_scikit_learn(grades, k):
    """Without equal scores: scikit-learn takes the mean over their orders. It has linear gains alone."""
    ranking = Ranking([f"d{rank}" for rank in range(len(grades))], {f"d{rank}": one for rank, one in enumerate(grades)})
    gains = [2**grade - 1 for grade in grades]
    order = [range(len(grades), 0, -1)]
    assert isclose(value(NDCG(k, gains="linear"), ranking), ndcg_score([grades], order, k=k), abs_tol=1e-9)
    assert isclose(value(NDCG(k), ranking), ndcg_score([gains], order, k=k), abs_tol=1e-9)


def test_numbers_are_those_of_ranx():
    cases = json.loads((Path(__file__).parent / "ranx.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 40
    for case in cases:
        ranking = Ranking(case["retrieved"], case["relevance"])
        ours = {name: value(scorer, ranking) for name, scorer in RANX.items()}
        assert ours == pytest.approx(case["ranx"], abs=1e-9), case


@pytest.mark.parametrize(
    ("grades", "max_grade", "k", "expected"),
    [
        ([3, 2, 0, 1], 3, 3, 0.8984375),
        ([3, 2, 0, 1], 3, 4, 0.8984375 + 0.00244140625),
        ([3, None, 0, 1], 3, 4, 0.875 + 0.00390625),
    ],
)
def test_err_is_that_of_the_tables_in_elasticsearchs_tests(grades, max_grade, k, expected):
    """https://github.com/elastic/elasticsearch, ExpectedReciprocalRankTests: testERRAt, testERRMissingRatings."""
    judged = {f"d{rank}": grade for rank, grade in enumerate(grades) if grade is not None}
    ranking = Ranking([f"d{rank}" for rank in range(len(grades))], judged)
    assert value(ERR(max_grade, k), ranking) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("k", "ndcg", "err"), [(3, 0.46928, 0.06250), (5, 0.48523, 0.07715), (10, 0.71673, 0.09626)])
def test_ndcg_and_err_are_those_in_the_tests_of_evalir(k, ndcg, err):
    """https://github.com/semanticpc/evalIR, tests/testthat/exptest-adhoc.R, where the highest grade is 4."""
    relevant, others = ["Doc2", "Doc4", "Doc5", "Doc7", "Doc8", "Doc9"], ["Doc1", "Doc3", "Doc6", "Doc10"]
    retrieved = ["Doc5", "Doc10", "DocXa", "Doc9", "Doc6", "Doc1", "Doc8", "Doc4", "DocX", "Doc7"]
    ranking = Ranking(retrieved, dict.fromkeys(relevant, 1) | dict.fromkeys(others, 0))
    assert value(NDCG(k), ranking) == pytest.approx(ndcg, abs=5e-6)
    assert value(ERR(4, k), ranking) == pytest.approx(err, abs=5e-6)
