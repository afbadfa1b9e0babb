"""Values, and which of them are independent of each other."""

import numpy as np
import pytest

from judgekit.stats.units import Units

VALUES = [0.0, 0.5, 1.0, 0.25, 1.0]


@pytest.mark.parametrize(
    "groups",
    [
        ["a", "b", "a", "c", "b"],
        [("task", 7), None, ("task", 7), None, None],
        [3, -1, 3, 10**30, -1],
        np.array([3, -1, 3, 7, -1]),
        np.array([3, 0, 3, 7, 0], dtype=np.uint8),
        np.array(["a", "b", "a", "c", "b"]),
    ],
)
def test_whatever_tells_groups_apart_is_a_group_and_none_is_alone(groups):
    units = Units.of(VALUES, groups)
    alone = isinstance(groups, list) and None in groups
    assert len(units) == (4 if alone else 3)
    assert sorted(units.sums(units.values)) == ([0.25, 0.5, 1, 1] if alone else [0.25, 1, 1.5])


@pytest.mark.parametrize("groups", [None, list("abcde"), [None] * 5, np.arange(5)])
def test_groups_of_one_value_are_no_groups(groups):
    units = Units.of(VALUES, groups)
    assert (len(units), units.codes) == (5, None)


def test_the_standard_error_is_that_of_independent_units():
    cases = [
        ([0, 1, 1], None, np.sqrt(1 / 3 / 3)),  # s**2 is 1/3
        ([0, 1, 1], ["a", "b", "b"], np.sqrt(2 * 2 * (2 / 3) ** 2) / 3),  # the sums of deviations are -2/3 and 2/3
        ([0.1] * 3, None, 0),  # the mean of which is not 0.1
        ([0, 0, 1, 1, 0, 0], list("abcabc"), np.sqrt(3 / 2 * 3 * 2 / 9) / 6),
        ([0.1, 0.7, 0.2, 0.2, 0.7, 0.1], list("aaabbb"), 0),
        ([1e9, 1e9, 1e9 + 1e-6], None, 0),
        ([1], None, None),
        ([0, 1], ["a", "a"], None),
        ([], None, None),
    ]
    for values, groups, error in cases:
        assert Units.of(values, groups).standard_error() == (error if not error else pytest.approx(error))


def test_what_is_no_list_of_numbers_with_a_group_each_is_refused():
    for values, groups, told in (
        ([0.5, float("nan")], None, "expected a list of finite numbers"),
        ([[0.5, 1]], None, "expected a list of finite numbers"),
        ([0.5, 1], ["a"], "expected one group for each of 2 values, found 1"),
    ):
        with pytest.raises(ValueError, match=told):
            Units.of(values, groups)
