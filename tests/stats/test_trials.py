"""pass@k and pass^k, held against all ways to choose k trials."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.stats.intervals import mean_interval
from judgekit.stats.trials import TaskMean, mean_over_tasks, pass_at_k, pass_hat_k


@given(st.integers(1, 9), st.data())
def test_they_are_the_shares_of_all_choices_of_k_trials(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_they_are_exact_for_many_trials():
    assert pass_at_k(100_000, 1, 100) == pass_hat_k(100_000, 99_999, 99_900) == 0.001
    assert pass_at_k(2_000, 1_000, 1_000) == 1
    assert 0 < pass_hat_k(2_000, 1_000, 500) < 1e-150


def test_counts_that_cannot_be_are_refused():
    for n, c, k, told in (
        (4, 5, 1, "expected 0 to 4 trials that succeeded, found 5"),
        (4, -1, 1, "expected 0 to 4 trials"),
        (4, 2, 5, "expected k from 1 to 4"),
        (4, 2, 0, "expected k from 1 to 4"),
    ):
        for estimate in (pass_at_k, pass_hat_k):
            with pytest.raises(ValueError, match=told):
                estimate(n, c, k)


def test_each_task_counts_once_and_those_with_too_few_trials_are_told():
    tasks = [(4, 4, 0), (4, 2, 1), (8, 2, 2), (1, 1, 3), (0, 0, 4)]
    found = mean_over_tasks(pass_hat_k, tasks, 2)
    shares = [1, 1 / 6, 1 / 28]
    assert found == TaskMean(pytest.approx(sum(shares) / 3), mean_interval(shares), tasks=3, excluded_tasks=2)
    assert mean_over_tasks(pass_at_k, tasks, 2).value == pytest.approx((1 + 5 / 6 + 13 / 28) / 3)
    assert mean_over_tasks(pass_at_k, tasks, 9) == (None, None, 0, 5)
