"""The layer that asks again, where that can help."""

import asyncio
import time

import pytest
import tenacity

from judgekit.errors import (
    AuthenticationError,
    BudgetError,
    ContextError,
    FilterError,
    OverloadError,
    RateLimitError,
    RefusalError,
    RejectedError,
    ReplyError,
    TruncatedError,
)
from judgekit.judges import retry
from judgekit.judges.client import Reply
from judgekit.judges.ladder import Ladder
from judgekit.judges.retry import Retry
from judgekit.score import ledger

REPLY = Reply(text="fine", cost_usd=0.5)


@pytest.mark.parametrize("kind", [OverloadError, RateLimitError])
@pytest.mark.parametrize("failures", [0, 1, 3])
def test_an_overloaded_provider_is_asked_again_until_it_answers(stub, question, no_waits, kind, failures):
    asked = stub([*(kind("busy") for _ in range(failures)), REPLY])
    assert asyncio.run(Retry(asked, 4).complete(question())) == REPLY
    assert asked.requests == [question()] * (failures + 1)


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_a_provider_that_stays_overloaded_is_asked_a_finite_number_of_times(stub, question, no_waits, attempts):
    errors = [OverloadError(f"busy {number}") for number in range(1, 9)]
    asked = stub(errors)
    with pytest.raises(OverloadError) as info:
        asyncio.run(Retry(asked, attempts).complete(question()))
    assert info.value is errors[attempts - 1]  # the last one, as it was raised
    assert len(asked.requests) == attempts


@pytest.mark.parametrize(
    "error",
    [
        *(
            kind("no")
            for kind in (
                AuthenticationError,
                RejectedError,
                ContextError,
                RefusalError,
                FilterError,
                TruncatedError,
                BudgetError,
            )
        ),
        ReplyError("no", text=""),
        ValueError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_nothing_else_is_asked_again(stub, question, no_waits, error):
    asked = stub([error])
    with pytest.raises(type(error)) as info:
        asyncio.run(Retry(asked, 4).complete(question()))
    assert info.value is error
    assert len(asked.requests) == 1


def test_a_wait_that_the_provider_names_is_kept_to_the_letter(stub, question, monkeypatch):
    monkeypatch.setattr(retry, "_backoff", lambda _: pytest.fail("waits at random"))
    asked = stub([RateLimitError("busy", retry_after=0.03), OverloadError("busy", retry_after=0.0), REPLY])
    started = time.perf_counter()
    assert asyncio.run(Retry(asked, 4).complete(question())) == REPLY
    assert 0.03 <= time.perf_counter() - started < 1


@pytest.mark.parametrize("seconds", [60.1, 86_400, float("inf")])
def test_more_than_a_minute_is_not_waited_for(stub, question, no_waits, seconds):
    asked = stub([RateLimitError("busy", retry_after=seconds), REPLY])
    with pytest.raises(RateLimitError):
        asyncio.run(Retry(asked, 4).complete(question()))
    assert len(asked.requests) == 1


def test_a_minute_is_waited_for():
    assert retry._may_pass(OverloadError("busy", retry_after=60.0))


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.5), (2, 1), (5, 8), (8, 60), (10_000, 60)])
def test_waits_are_random_and_grow_up_to_a_minute(attempt, longest):
    state = tenacity.RetryCallState(None, None, (), {})
    state.attempt_number = attempt
    state.set_exception((OverloadError, OverloadError("busy"), None))
    waits = [retry._wait(state) for _ in range(200)]
    assert 0 <= min(waits) < longest / 2 < max(waits) <= longest


def test_every_attempt_is_in_the_ledger(stub, question, no_waits):
    asked = stub([RateLimitError("busy"), OverloadError("gone"), REPLY])
    with ledger() as calls:
        asyncio.run(Retry(Ladder(asked), 4).complete(question()))
    assert [(call.error, call.cost_usd, call.cached) for call in calls] == [
        ("RateLimitError", None, False),
        ("OverloadError", None, False),
        (None, 0.5, False),
    ]


def test_a_wait_can_be_cancelled(stub, question):
    asked = stub([RateLimitError("busy", retry_after=50)])

    async def ask():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await Retry(asked, 4).complete(question())

    asyncio.run(ask())
    assert len(asked.requests) == 1


def test_closing_closes_what_is_inside(stub):
    inner = stub()
    asyncio.run(Retry(inner, 4).aclose())
    assert inner.closed == 1
