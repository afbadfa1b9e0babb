"""How scores become one number."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.aggregates.total import AGGREGATES, aggregate_named, mean
from judgekit.errors import ConfigError
from judgekit.score import Score


def scored(values: list[float]) -> list[Score]:
    return [Score.scored("s", value) for value in values]


@pytest.mark.parametrize(("values", "expected"), [([1], 1), ([0, 1], 0.5), ([0.25, 0.5, 0.75, 1], 0.625), ([0.1] * 10, 0.1)])  # fmt: skip
def test_the_mean_is_the_arithmetic_mean(values, expected):
    assert mean(scored(values)) == expected


@settings(max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms())
def test_the_mean_is_exact_and_its_order_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert mean(scored(values)) == mean(scored(shuffled))
    assert math.isclose(mean(scored(values)), sum(map(Fraction, values)) / len(values), abs_tol=1e-300)


def test_the_known_aggregates_are_found_by_name():
    homes = {
        name: f"{found.__module__}:{found.__qualname__}" for name in AGGREGATES for found in [aggregate_named(name)]
    }
    assert homes == AGGREGATES
    assert aggregate_named("mean") is mean


def test_a_function_of_any_package_is_found_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "their_metrics.py").write_text("def lowest(scores):\n    return min(one.value for one in scores)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert aggregate_named("their_metrics:lowest")(scored([0.5, 0.25, 1])) == 0.25
    assert aggregate_named("judgekit.aggregates.total:mean") is mean


KNOWN = "answer_match, classification, corpus_bleu, corpus_chrf, corpus_ter, macro_mean, mean, within_budget"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("meen", "no aggregate is called 'meen', did you mean 'mean'? Known: " + KNOWN),
        ("", "no aggregate is called ''. Known: " + KNOWN),
        ("no_such_package.m:f", "the aggregate 'no_such_package.m:f' cannot be loaded: No module named 'no_such_package'"),
        ("math:no_such_function", "the aggregate 'math:no_such_function' cannot be loaded: module 'math' has no attribute 'no_such_function'"),
        ("math:", "the aggregate 'math:' cannot be loaded: module 'math' has no attribute ''"),
        (":f", "the aggregate ':f' cannot be loaded: Empty module name"),
        (".m:f", "the aggregate '.m:f' cannot be loaded: the 'package' argument is required to perform a relative import for '.m'"),
        ("math:pi", "the aggregate 'math:pi' cannot be loaded: it is no function but 3.141592653589793"),
    ],
)  # fmt: skip
def test_an_aggregate_that_is_not_there_is_an_error_that_says_why(name, message):
    with pytest.raises(ConfigError) as caught:
        aggregate_named(name)
    assert str(caught.value) == message
