"""Annotators, held against what the authors of the alternative test compute and against cases worked out by hand."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from judgekit.stats.agreement import bootstrap_items
from judgekit.stats.annotators import alternative_test, human_ceiling

NONE = np.nan


def test_the_ceiling_counts_each_item_once_and_the_judge_on_the_same_items():
    ratings = [[1, 1, 1.0, NONE, NONE], [1, 1, NONE, NONE, NONE], [0, 1, 0.0, 1, NONE]]
    assert human_ceiling(ratings) == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert human_ceiling(ratings, [1, 1, 0, 0, 0]) == pytest.approx((2 / 3 + 1 + 1 / 2) / 3)
    assert human_ceiling(ratings, [1, NONE, 0, 0, 0]) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert human_ceiling(ratings, [NONE] * 5) is None
    for single in ([[1, 0, 1]], [[1, NONE], [NONE, 1]], [[]]):
        assert human_ceiling(single) is None


@pytest.mark.parametrize("measure", [human_ceiling, lambda *sides: alternative_test(*sides).advantage])
def test_every_measure_has_an_interval_by_drawing_items_again(measure):
    random = np.random.default_rng(15)
    truth = random.choice([0, 0.5, 1], 45)
    judged, *ratings = np.where(random.random((4, 45)) < 0.6, truth, random.choice([0, 0.5, 1], (4, 45)))
    ratings = np.array(ratings)
    found = measure(ratings, judged)
    alone, grouped = (
        bootstrap_items(lambda at: measure(ratings[:, at % 45], judged[at % 45]), n, groups, draws=100)
        for n, groups in ((45, None), (90, [*range(45)] * 2))
    )
    assert alone.low < found < alone.high
    assert grouped[:2] == pytest.approx(alone[:2], rel=1e-9)
    assert grouped.method == "bootstrap, 45 groups"


def as_published(ratings, judged, metric, epsilon, least):
    """The alternative test item by item, as its authors define it: https://github.com/nitaytech/AltTest."""

    def score(rating, others):
        if metric == "nominal":
            return np.mean([rating == other for other in others])
        return -np.sqrt(np.mean([(rating - other) ** 2 for other in others]))

    p_values, advantages = {}, []
    for one in range(len(ratings)):
        differences, wins = [], []
        for item in range(len(judged)):
            others = [row[item] for index, row in enumerate(ratings) if index != one and not np.isnan(row[item])]
            if np.isnan(ratings[one][item]) or np.isnan(judged[item]) or not others:
                continue
            own, judge = score(ratings[one][item], others), score(judged[item], others)
            differences.append(int(own >= judge) - int(judge >= own))
            wins.append(judge >= own)
        if len(differences) >= least:
            p_values[one] = ttest_1samp(differences, epsilon, alternative="less").pvalue
            advantages.append(np.mean(wins))
    rejected, adjusted, *_ = multipletests(list(p_values.values()), 0.05, method="fdr_by")
    p = [None] * len(ratings)
    for one, value in zip(p_values, adjusted, strict=True):
        p[one] = value
    return np.mean(rejected), np.mean(advantages), p


def test_the_alternative_test_is_that_of_its_authors():
    for metric in ["nominal", "interval"]:
        for right, epsilon in [(0.9, 0.1), (0.7, 0.2), (0.5, 0.15), (0.2, 0.2)]:
            random = np.random.default_rng(int(100 * right))
            scale = [0, 1, 2, 4]  # whole numbers, of which squares that are equal are so in floats
            truth = random.choice(scale, 80)
            ratings = np.where(random.random((5, 80)) < 0.7, truth, random.choice(scale, (5, 80))).astype(float)
            ratings[random.random(ratings.shape) < 0.2] = NONE
            ratings[4, 25:] = NONE  # too few to be tested, but others are held against them
            judged = np.where(random.random(80) < right, truth, random.choice(scale, 80)).astype(float)
            judged[:3] = NONE

            found = alternative_test(ratings, judged, metric=metric, epsilon=epsilon)

            winning_rate, advantage, p = as_published(ratings, judged, metric, epsilon, least=30)
            assert (found.winning_rate, found.advantage) == pytest.approx((winning_rate, advantage), abs=1e-9)
            assert found.passed == (winning_rate >= 0.5)
            assert found.p[4] is None is p[4]
            assert found.p[:4] == pytest.approx(p[:4], abs=1e-9)


def test_a_judge_that_is_always_as_near_as_annotators_is_not_certain_to_be():
    """The authors' t test has p = 0 where all differences are 0, however few: 30 items cannot say as much."""
    same = np.ones((3, 30))
    found = alternative_test(same, same[0], epsilon=0.2)
    assert (found.winning_rate, found.advantage, found.passed) == (1, 1, True)
    assert found.p == pytest.approx([0.8**30 * (1 + 1 / 2 + 1 / 3)] * 3)
    assert not alternative_test(same, same[0], epsilon=0.05).passed  # 0.95**30 is 0.21
    assert alternative_test(same, 0 * same[0], epsilon=0.2) == (0, 0, False, (1, 1, 1))

    same, groups = np.ones((3, 300)), np.arange(300) // 10
    judged = np.arange(300) % 10 > 0  # one item of ten is wrong in each group, so that groups do not differ
    found = alternative_test(same, judged, groups, epsilon=0.2)
    assert found.p == pytest.approx([(0.8 / 0.9) ** 30 * (1 + 1 / 2 + 1 / 3)] * 3)


def test_who_is_equally_near_wins_whatever_floats_say():
    ratings = np.tile([[0.1], [0.3]], 30)
    judged = np.full(30, 0.5)  # 0.5 - 0.3 is 0.2, and 0.3 - 0.1 is less, as floats go
    found = alternative_test(ratings, judged, metric="interval")
    assert found.advantage == (1 + 0) / 2  # as near to the second as the first is; the second is nearer to the first
    assert (found.winning_rate, found.passed) == (0.5, True)


def test_items_of_one_group_are_one():
    random = np.random.default_rng(12)
    ratings, judged = random.integers(0, 2, (3, 40)), random.integers(0, 2, 40)
    once = alternative_test(ratings, judged)
    again = alternative_test(np.tile(ratings, 3), np.tile(judged, 3), [*range(40)] * 3)
    assert again.p == pytest.approx(once.p)
    assert alternative_test(ratings, judged, np.arange(40) // 2) is None  # 20 groups
    assert alternative_test(np.tile(ratings, 3), np.tile(judged, 3)).p != pytest.approx(once.p)


@pytest.mark.parametrize(
    "ratings", [np.ones((1, 50)), np.ones((3, 29)), np.kron([[1, NONE], [NONE, 1]], np.ones(40)), np.ones((0, 50))]
)
def test_with_one_annotator_or_too_few_items_there_is_no_test(ratings):
    assert alternative_test(ratings, np.ones(ratings.shape[1])) is None


def test_an_epsilon_and_a_metric_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="nominal or interval, found 'ordinal'"):
        alternative_test(np.ones((2, 30)), np.ones(30), metric="ordinal")
    for epsilon in (-0.1, 1):
        with pytest.raises(ValueError, match=r"an epsilon in \[0, 1\)"):
            alternative_test(np.ones((2, 30)), np.ones(30), epsilon=epsilon)
