"""Numbers held against a budget, over a run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.aggregates.behavior import plain_number, quantile, within_budget
from judgekit.aggregates.total import Total
from judgekit.score import Score


def scored(numbers: list[float], budget: float) -> list[Score]:
    return [
        Score.scored("s", float(number <= budget), details={"number": number, "budget": budget}) for number in numbers
    ]


def test_it_is_the_share_within_the_budget():
    found = within_budget(scored([4_000, 1_000, 9_000, 8_000], 8_000))
    figures = {"mean": 5_500, "median": 6_000, "p90": 8_700, "max": 9_000}
    assert found == Total(0.75, "share within budget", "budget 8,000", pytest.approx(figures))


def test_one_score_is_all_of_its_figures():
    assert set(within_budget(scored([3], 5)).metrics.values()) == {3}


def test_scores_of_several_budgets_name_them():
    assert within_budget([*scored([1], 2), *scored([1], 0.5)]).note == "budget 0.5, 2"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(0, 1))
def test_quantiles_are_those_of_numpy(numbers, share):
    assert quantile(sorted(numbers), share) == pytest.approx(float(np.quantile(numbers, share)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (12_345, "12,345"), (100.0, "100"), (0.0125, "0.0125"), (1_234.5, "1,234.5"), (0.1 + 0.2, "0.3"), (1e-9, "1e-09")],
)  # fmt: skip
def test_numbers_are_written_as_people_write_them(number, text):
    assert plain_number(number) == text
