"""Rogan-Gladen, held against published intervals, statsmodels, a hand-made case, and how often it covers the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import confint_proportions_2indep

from judgekit.stats.misclassification import rogan_gladen
from judgekit.stats.wilson import wilson

COUNTS = st.integers(0, 60)


@pytest.mark.parametrize(
    ("positives", "n", "counts", "low", "high"),
    [
        (4060, 11284, (178, 1, 1, 358), 0.349, 0.372),
        (51, 2971, (32, 0, 1, 20), 0, 0.053),
        (712, 11862, (8, 0, 2, 12), 0, 0.147),
        (259, 509, (84, 13, 43, 96), 0.58, 0.87),
        (51, 509, (23, 8, 18, 187), 0.037, 0.195),
    ],
)
def test_the_published_intervals_come_out(positives, n, counts, low, high):
    # Lang and Reiczigel 2014, examples 1 to 4, as quoted by the R package asht 1.0.2, which has their method too
    found = rogan_gladen(positives, n, *counts)
    digits = 2 if counts[0] == 84 else 3
    assert (round(found.interval.low, digits), round(found.interval.high, digits)) == (low, high)


def test_the_value_is_the_share_set_right_by_hand():
    found = rogan_gladen(55, 100, tp=90, fp=20, fn=10, tn=80)
    assert found.value == pytest.approx((0.55 + 0.8 - 1) / (0.9 + 0.8 - 1)) == pytest.approx(0.5)
    assert found.youden == pytest.approx(0.7)
    assert rogan_gladen(93, 100, tp=90, fp=20, fn=10, tn=80).value == 1
    assert rogan_gladen(17, 100, tp=90, fp=20, fn=10, tn=80).value == 0


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.sampled_from([0.8, 0.95]))
def test_the_interval_of_youden_is_that_of_statsmodels_for_a_difference_of_shares(tp, fp, fn, tn, level):
    found = rogan_gladen(1, 2, tp, fp, fn, tn, level=level)
    if found is None:
        assert 0 in {tp + fn, fp + tn}
        return
    theirs = confint_proportions_2indep(tp, tp + fn, fp, fp + tn, method="newcomb", alpha=1 - level)
    assert found.youden_interval[:2] == pytest.approx(theirs, abs=1e-9)


@given(st.data(), st.integers(1, 500), COUNTS, COUNTS, COUNTS, COUNTS)
def test_there_is_a_value_in_an_interval_only_where_verdicts_are_clearly_better_than_chance(data, n, tp, fp, fn, tn):
    positives = data.draw(st.integers(0, n))
    found = rogan_gladen(positives, n, tp, fp, fn, tn)
    if found is None:
        return
    assert (found.value is None) == (found.interval is None)
    if found.youden_interval.low <= 0:
        assert found.value is None
    if found.interval is not None:
        assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1
        assert found.interval.low < found.interval.high


@pytest.mark.parametrize(
    "counts",
    [(50, 50, 50, 50), (29, 21, 21, 29), (0, 50, 50, 0), (1, 0, 0, 1)],
    ids=["by chance", "hardly better", "the wrong way round", "too few to tell"],
)
def test_no_value_is_made_of_verdicts_that_may_be_no_better_than_chance(counts):
    found = rogan_gladen(60, 100, *counts)
    assert (found.value, found.interval) == (None, None)
    assert found.youden_interval.low <= 0


def test_verdicts_that_go_with_no_share_at_all_have_no_value():
    found = rogan_gladen(10, 500, tp=90, fp=20, fn=10, tn=80)  # 2 % positive, of which errors alone would make 20 %
    assert (found.value, found.interval) == (None, None)
    assert found.youden_interval.low > 0
    assert rogan_gladen(490, 500, tp=80, fp=10, fn=20, tn=90).value is None


@pytest.mark.parametrize(("n", "counts"), [(0, (9, 1, 1, 9)), (9, (0, 1, 0, 9)), (9, (9, 0, 1, 0))])
def test_without_verdicts_or_with_one_class_only_nothing_can_be_said(n, counts):
    assert rogan_gladen(0, n, *counts) is None


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="expected 0 to 3 positives, found 4"):
        rogan_gladen(4, 3, 1, 1, 1, 1)
    with pytest.raises(ValueError, match=r"expected counts of 0 or more, found \(1, -1, 1, 1\)"):
        rogan_gladen(1, 3, 1, -1, 1, 1)


@pytest.mark.parametrize(("share", "sensitivity", "specificity"), [(0.5, 0.9, 0.8), (0.9, 0.9, 0.7), (0.2, 0.8, 0.99)])
@pytest.mark.parametrize("known", [20, 60])
def test_it_covers_a_share_that_the_uncorrected_one_does_not(share, sensitivity, specificity, known):
    random = np.random.default_rng(5)
    runs, n = 1_000, 1_000
    judged = random.binomial(n, share * sensitivity + (1 - share) * (1 - specificity), runs)
    tp, tn = random.binomial(known, sensitivity, runs), random.binomial(known, specificity, runs)
    found = [
        rogan_gladen(int(x), n, int(a), known - int(d), known - int(a), int(d)).interval
        for x, a, d in zip(judged, tp, tn, strict=True)
    ]
    said = [one for one in found if one is not None]
    assert len(said) > 0.9 * runs
    assert np.mean([one.low <= share <= one.high for one in said]) >= 0.93
    raw = [wilson(int(x), n) for x in judged]
    assert np.mean([one.low <= share <= one.high for one in raw]) < 0.6
