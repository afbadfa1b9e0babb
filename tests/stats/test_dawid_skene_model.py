"""What raters say together, held against the solution that Dawid and Skene printed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.dawid_skene_model import dawid_skene

NAN = float("nan")

# Dawid and Skene 1979, table 1: 45 patients, three assessments by the first anaesthetist, one by each of four others
ASSESSMENTS = (
    "1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 "
    "1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 "
    "1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 "
    "2322222 1211111 2222222"
)
PATIENTS = np.array([[int(one) for one in patient] for patient in ASSESSMENTS.split()]).T
OBSERVERS = [1, 1, 1, 2, 3, 4, 5]


def log_likelihood(ratings, raters, found, smoothing):
    """From the definition: each item, each class, each rating in turn."""
    total = smoothing * (np.log(found.class_shares).sum() + np.log(found.confusions).sum())
    for item in np.asarray(ratings, float).T:
        likely = 0
        for number, share in enumerate(found.class_shares):
            term = share
            for rater, said in zip(raters, item, strict=True):
                if not np.isnan(said):
                    which = found.raters.index(rater)
                    term *= found.confusions[which, number, list(found.values).index(said)]
            likely += term
        total += np.log(likely)
    return total


def test_the_anaesthetists_err_as_was_published():
    found = dawid_skene(PATIENTS, OBSERVERS, smoothing=1e-9)
    assert found.class_shares == pytest.approx([0.40, 0.42, 0.11, 0.07], abs=0.005)
    first = [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]]
    assert found.confusions[0] == pytest.approx(np.array(first), abs=0.005)
    assert found.raters == (1, 2, 3, 4, 5)
    assert found.converged


@given(
    st.lists(st.lists(st.sampled_from([0, 1, 2, NAN]), min_size=6, max_size=6), min_size=3, max_size=5),
    st.sampled_from([0.01, 0.5]),
)
def test_no_step_makes_the_ratings_less_likely_and_probabilities_are_some(ratings, smoothing):
    fits = [dawid_skene(ratings, smoothing=smoothing, steps=steps) for steps in (1, 2, 3, 10, 1_000)]
    if fits[0] is None:
        return
    likely = [fit.log_posterior for fit in fits]
    assert (np.diff(likely) >= -1e-9).all()
    assert likely[-1] == pytest.approx(log_likelihood(ratings, range(len(ratings)), fits[-1], smoothing))
    assert fits[-1].probabilities.sum(axis=1) == pytest.approx(np.ones(6))
    assert fits[-1].confusions.sum(axis=2) == pytest.approx(np.ones(fits[-1].confusions.shape[:2]))


def test_raters_are_told_by_their_errors_where_votes_are_missing_and_the_best_is_outvoted():
    random = np.random.default_rng(4)
    true = random.random(2_000) < 0.3
    right = np.array([[0.95], [0.7], [0.7], [0.75], [0.7]])
    ratings = np.where(random.random((5, 2_000)) < right, true, ~true).astype(float)
    ratings[random.random(ratings.shape) < 0.2] = NAN
    found = dawid_skene(ratings)
    assert np.diagonal(found.confusions, axis1=1, axis2=2) == pytest.approx(np.hstack([right, right]), abs=0.08)
    assert found.class_shares == pytest.approx([0.7, 0.3], abs=0.05)
    given = ~np.isnan(ratings)
    votes = np.where(given, ratings, 0.5).mean(axis=0) > 0.5
    assert np.mean((found.probabilities[:, 1] > 0.5) == true) > np.mean(votes == true) + 0.02
    nobody = dawid_skene(np.hstack([ratings, np.full((5, 1), NAN)]))
    assert nobody.probabilities[-1] == pytest.approx(found.class_shares, abs=1e-3)


@pytest.mark.parametrize(
    "ratings",
    [[[0, 1, 1], [1, 1, 0]], [[1, 1], [1, 1], [1, 1]], [[1, NAN, 0], [1, 0, NAN], [NAN, 1, 0]], np.zeros((0, 0))],
)
def test_two_ratings_an_item_or_one_class_tell_nothing(ratings):
    assert dawid_skene(ratings) is None


@pytest.mark.parametrize(
    ("ratings", "raters", "smoothing", "told"),
    [
        ([0, 1], None, 0.1, r"of shape \(ratings, items\)"),
        ([[0, float("inf")]], None, 0.1, "expected finite numbers"),
        ([[0], [1]], ["a"], 0.1, "one rater for each of 2 rows, found 1"),
        ([[0], [1]], None, 0, "expected smoothing above 0, found 0"),
    ],
)
def test_what_are_no_ratings_is_refused(ratings, raters, smoothing, told):
    with pytest.raises(ValueError, match=told):
        dawid_skene(ratings, raters, smoothing=smoothing)
