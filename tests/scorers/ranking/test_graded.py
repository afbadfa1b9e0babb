"""Scorers of rankings in which documents are relevant by degrees."""

import math
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.scorers.ranking import measures
from judgekit.scorers.ranking.graded import ERR, NDCG
from judgekit.traces.sample import Sample


def expected_reciprocal_rank(grades: list[int], max_grade: int, rank: int = 1) -> Fraction:
    """The paper's cascade: whom this document satisfies stops here, all others read on."""
    if not grades:
        return Fraction()
    satisfied = Fraction(2 ** grades[0] - 1, 2**max_grade)
    return satisfied / rank + (1 - satisfied) * expected_reciprocal_rank(grades[1:], max_grade, rank + 1)


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(5, 8))
def test_err_is_that_of_the_user_who_reads_from_the_top(grades, max_grade):
    expected = float(expected_reciprocal_rank(grades, max_grade))
    assert measures.err(grades, max_grade) == pytest.approx(expected, abs=1e-14)


def test_err_of_a_first_document_of_the_highest_grade_is_just_below_1(graded):
    assert ERR(1).score(graded([1])).value == 1 / 2
    assert ERR(4).score(graded([4])).value == pytest.approx(15 / 16, abs=1e-15)
    assert ERR(4, 1).score(graded([0, 4])).value == 0


def test_a_grade_above_the_highest_fails_the_sample_also_where_it_was_not_retrieved(graded):
    for sample in (graded([5, 1]), graded([1], 5)):
        with pytest.raises(ValueError, match="the highest grade 5 is above max_grade=4"):
            ERR(4).score(sample)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5).filter(any), st.sampled_from(["exponential", "linear"]))
def test_ndcg_is_the_dcg_over_the_highest_of_all_orders(grades, gains):
    def dcg(order: tuple[int, ...]) -> float:
        gain = (2**grade - 1 if gains == "exponential" else grade for grade in order)
        return sum(one / math.log2(rank + 1) for rank, one in enumerate(gain, 1))

    expected = dcg(tuple(grades)) / max(map(dcg, permutations(grades)))
    assert measures.ndcg(grades, grades, None, gains) == pytest.approx(expected, abs=1e-12)


def test_what_was_not_retrieved_belongs_to_the_best_order(graded):
    assert NDCG().score(graded([1], 1)).value == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert NDCG(1).score(graded([1], 1)).value == 1
    assert NDCG().score(graded([], 1)).value == 0


@given(st.lists(st.sampled_from([0.0, 5e-324, 1e-20, 0.1, 1.0, 3.5, 2000.0, 1e308]), min_size=1).filter(any))
def test_no_grade_is_too_high_or_too_low(grades):
    for gains in ("exponential", "linear"):
        assert 0 <= measures.ndcg(grades, grades, None, gains) <= 1
        assert measures.ndcg(sorted(grades, reverse=True), grades, None, gains) == 1
    assert 0 <= measures.err(grades, max(grades)) <= 1


@pytest.mark.parametrize("scorer", [NDCG(), ERR(4)], ids=lambda scorer: scorer.name)
def test_without_a_relevant_document_no_order_could_be_better(graded, scorer):
    for sample in (graded([]), graded([None]), graded([0, -1], 0)):
        score = scorer.score(sample)
        assert (score.status, score.reason) == (
            "skipped",
            "no judged document is relevant, so every order is equally good",
        )
    assert scorer.score(Sample(id="one")).status == "skipped"


def test_a_grade_below_0_has_no_gain(graded):
    for scorer in (NDCG(), NDCG(gains="linear"), ERR(3)):
        assert scorer.score(graded([-2, 3, 1], -1)).value == scorer.score(graded([0, 3, 1], 0)).value


@pytest.mark.parametrize(
    ("scorer", "reason", "options"),
    [
        (NDCG(), "among 4 retrieved: grades 1, 2 at ranks 2, 4; judged: 3, 2, 1", {"k": None, "gains": "exponential"}),
        (
            NDCG(2, gains="linear"),
            "among the first 2 (retrieved: 4): grades 1 at rank 2; judged: 3, 2, 1",
            {"k": 2, "gains": "linear"},
        ),
        (ERR(3, 1), "none of 3 relevant documents is among the first 1 (retrieved: 4)", {"k": 1, "max_grade": 3}),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_scores_say_which_grades_were_found_and_which_there_are(graded, scorer, reason, options):
    score = scorer.score(graded([0, 1, None, 2], 3, -1))
    assert score.reason == reason
    ranks = [(2, 1.0), (4, 2.0)]
    found = [{"rank": rank, "id": f"d{rank}", "grade": grade} for rank, grade in ranks if rank <= (options["k"] or 4)]
    assert score.details == {"found": found, "judged": [3, 2, 1], "retrieved": 4} | options


def test_names_say_what_is_measured():
    scorers = [NDCG(), NDCG(10), ERR(4), ERR(4, 10), NDCG(name="n")]
    assert [scorer.name for scorer in scorers] == ["ndcg", "ndcg_at_10", "err", "err_at_10", "n"]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: NDCG(0), "k must be an integer of at least 1, found 0"),
        (lambda: NDCG(gains="exp"), "no kind of gains is called 'exp'. Known: exponential, linear"),
        (lambda: ERR(0), "max_grade must be a number above 0, found 0"),
    ],
)
def test_options_that_do_not_fit_are_errors(make, found):
    with pytest.raises(ConfigError) as raised:
        make()
    assert str(raised.value) == found
