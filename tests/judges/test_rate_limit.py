"""The layer that holds back."""

import asyncio

import pytest

from judgekit.errors import OverloadError
from judgekit.judges.client import Reply
from judgekit.judges.rate_limit import RateLimit

REPLY = Reply(text="fine")


@pytest.mark.parametrize("line", [REPLY, OverloadError("busy")], ids=["reply", "error"])
@pytest.mark.parametrize("concurrency", [1, 3, 20])
def test_as_many_requests_as_allowed_are_under_way_and_never_more(stub, question, concurrency, line):
    asked = stub([line])
    limited = RateLimit(asked, concurrency)

    async def ask():
        return await asyncio.gather(*(limited.complete(question()) for _ in range(20)), return_exceptions=True)

    assert asyncio.run(ask()) == [line] * 20
    assert asked.most_at_once == concurrency
    assert asked.under_way == 0


@pytest.mark.parametrize("cancelled", [0, 1], ids=["one under way", "one that waits"])
def test_a_cancelled_request_gives_its_turn_back(stub, question, cancelled):
    asked = stub([REPLY])

    async def ask():
        asked.gate = asyncio.Event()
        limited = RateLimit(asked, 1)
        tasks = [asyncio.create_task(limited.complete(question())) for _ in range(3)]
        await asyncio.sleep(0)
        tasks.pop(cancelled).cancel()
        await asyncio.sleep(0)
        asked.gate.set()
        return await asyncio.wait_for(asyncio.gather(*tasks), 1)

    assert asyncio.run(ask()) == [REPLY] * 2
    assert asked.most_at_once == 1


def test_closing_closes_what_is_inside(stub):
    inner = stub()
    asyncio.run(RateLimit(inner, 1).aclose())
    assert inner.closed == 1
