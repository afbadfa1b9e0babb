"""What tokens cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.judges.providers.price import Price
from judgekit.traces.message import Usage

USAGE = Usage(input_tokens=1000, output_tokens=50, cached_tokens=400, reasoning_tokens=30)


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        pytest.param(Price(2, 8), USAGE, (1000 * 2 + 50 * 8) / 1e6, id="cached tokens cost the same if not said"),
        pytest.param(Price(2, 8, 0), USAGE, (600 * 2 + 50 * 8) / 1e6, id="cached tokens may be free"),
        pytest.param(
            Price(input=2, output=8, cached=0.5), USAGE, (600 * 2 + 400 * 0.5 + 50 * 8) / 1e6, id="or cheaper"
        ),
        pytest.param(Price(2, 8), Usage(input_tokens=10, output_tokens=0), 20 / 1e6, id="nothing cached"),
        pytest.param(
            Price(2, 8, 1),
            Usage(input_tokens=10, output_tokens=0, cached_tokens=12),
            10 / 1e6,
            id="more cached than sent",
        ),
        pytest.param(Price(0, 0), USAGE, 0.0, id="a model of one's own"),
        pytest.param(Price(2, 8), None, None, id="no usage"),
        pytest.param(Price(2, 8), Usage(input_tokens=10), None, id="no output tokens"),
        pytest.param(Price(2, 8), Usage(output_tokens=10), None, id="no input tokens"),
    ],
)
def test_cost_is_tokens_by_price_and_unknown_where_tokens_are(price, usage, cost):
    assert price.of(usage) == (cost if cost is None else pytest.approx(cost, rel=1e-12))


dollars, tokens = st.floats(0, 1000), st.integers(0, 10**9)


@given(dollars, dollars, st.none() | dollars, tokens, tokens, st.none() | tokens)
def test_cost_lies_between_none_of_the_input_cached_and_all_of_it(
    input_price, output_price, cached_price, sent, said, cached
):
    price = Price(input_price, output_price, cached_price)
    cost = price.of(Usage(input_tokens=sent, output_tokens=said, cached_tokens=cached))
    prices = (input_price, input_price if cached_price is None else cached_price)
    least, most = sorted((sent * one + said * output_price) / 1e6 for one in prices)
    assert cost is not None
    assert least * (1 - 1e-9) <= cost <= most * (1 + 1e-9)


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "cheap", None])
def test_a_price_is_a_number_from_zero_up(wrong):
    for name in ("input", "output"):
        with pytest.raises(ValidationError, match=name):
            Price(**{"input": 1, "output": 1, name: wrong})
