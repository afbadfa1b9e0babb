"""The layer that refuses to send more than the user allows."""

import asyncio
from itertools import count

import pytest

from judgekit.errors import BudgetError, OverloadError
from judgekit.judges.budget import Budget
from judgekit.judges.client import Reply


async def refused_of(budget, requests):
    """How many of them are refused."""
    ends = await asyncio.gather(*(budget.complete(one) for one in requests), return_exceptions=True)
    assert {type(end) for end in ends} <= {Reply, BudgetError, OverloadError}
    return sum(isinstance(end, BudgetError) for end in ends)


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_the_request_after_the_last_one_allowed_is_refused_before_it_is_sent(stub, question, limit):
    asked = stub()
    assert asyncio.run(refused_of(Budget(asked, limit, count()), [question()] * 20)) == 20 - limit
    assert len(asked.requests) == limit


def test_the_refusal_says_which_limit_is_spent(stub, question):
    with pytest.raises(BudgetError, match=r"^the judge's limit of 0 requests \(max_requests\) is spent$"):
        asyncio.run(Budget(stub(), 0, count()).complete(question()))


def test_none_is_no_limit(stub, question):
    asked = stub()
    assert asyncio.run(refused_of(Budget(asked, None, count()), [question()] * 20)) == 0
    assert len(asked.requests) == 20


def test_requests_that_fail_count_too(stub, question):
    asked = stub([OverloadError("busy")])
    assert asyncio.run(refused_of(Budget(asked, 3, count()), [question()] * 5)) == 2
    assert len(asked.requests) == 3


def test_one_limit_holds_for_all_clients_and_loops_of_a_judge(stub, question):
    asked, sent = stub(), count()
    refused = [asyncio.run(refused_of(Budget(asked, 5, sent), [question()] * 3)) for _ in range(3)]
    assert refused == [0, 1, 3]
    assert len(asked.requests) == 5


def test_closing_closes_what_is_inside(stub):
    inner = stub()
    asyncio.run(Budget(inner, 0, count()).aclose())
    assert inner.closed == 1
