"""Annotators, held against cases worked out by hand."""

import numpy as np
import pytest

from judgekit.stats.agreement import bootstrap_items
from judgekit.stats.annotators import human_ceiling

NONE = np.nan


def test_the_ceiling_counts_each_item_once_and_the_judge_on_the_same_items():
    ratings = [[1, 1, 1.0, NONE, NONE], [1, 1, NONE, NONE, NONE], [0, 1, 0.0, 1, NONE]]
    assert human_ceiling(ratings) == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert human_ceiling(ratings, [1, 1, 0, 0, 0]) == pytest.approx((2 / 3 + 1 + 1 / 2) / 3)
    assert human_ceiling(ratings, [1, NONE, 0, 0, 0]) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert human_ceiling(ratings, [NONE] * 5) is None
    for single in ([[1, 0, 1]], [[1, NONE], [NONE, 1]], [[]]):
        assert human_ceiling(single) is None


def test_the_ceiling_has_an_interval_by_drawing_items_again():
    random = np.random.default_rng(15)
    truth = random.choice([0, 0.5, 1], 45)
    judged, *ratings = np.where(random.random((4, 45)) < 0.6, truth, random.choice([0, 0.5, 1], (4, 45)))
    ratings = np.array(ratings)
    found = human_ceiling(ratings, judged)
    alone, grouped = (
        bootstrap_items(lambda at: human_ceiling(ratings[:, at % 45], judged[at % 45]), n, groups, draws=100)
        for n, groups in ((45, None), (90, [*range(45)] * 2))
    )
    assert alone.low < found < alone.high
    assert grouped[:2] == pytest.approx(alone[:2], rel=1e-9)
    assert grouped.method == "bootstrap, 45 groups"
