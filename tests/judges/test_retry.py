"""The layer that asks again, where that can help."""

import asyncio
from contextlib import suppress

import pytest

from judgekit.errors import (
    AuthenticationError,
    BudgetError,
    ContextError,
    FilterError,
    FormatError,
    JudgeDownError,
    LostError,
    ModelError,
    OfflineError,
    OverloadError,
    QuotaError,
    RateLimitError,
    RefusalError,
    RejectedError,
    ReplyError,
    StoreError,
    TruncatedError,
)
from judgekit.judges import retry
from judgekit.judges.judge import Judge
from judgekit.judges.request import Reply
from judgekit.judges.retry import Circuit, Retry
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference

REPLY = Reply(text="fine", cost_usd=0.5)


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_a_provider_that_stays_overloaded_is_asked_a_finite_number_of_times(stub, question, no_waits, attempts):
    errors = [OverloadError(f"busy {number}") for number in range(1, 9)]
    asked = stub(errors)
    with pytest.raises(OverloadError) as info:
        asyncio.run(Retry(asked, Circuit(), attempts).complete(question()))
    assert info.value is errors[attempts - 1]  # the last one, as it was raised
    assert len(asked.requests) == attempts


@pytest.mark.parametrize(("attempts", "borne"), [(1, 1), (2, 10), (4, 10), (12, 12)])
def test_a_rate_limit_is_borne_with_for_longer(stub, question, no_waits, attempts, borne):
    """Many requests that share it take several rounds until it is the turn of the last."""
    asked = stub([RateLimitError("slow down")])
    with pytest.raises(RateLimitError):
        asyncio.run(Retry(asked, Circuit(), attempts).complete(question()))
    assert len(asked.requests) == borne


def test_nothing_else_is_asked_again(stub, question, no_waits):
    cases = [
        *(
            kind("no")
            for kind in (
                AuthenticationError,
                ModelError,
                RejectedError,
                ContextError,
                FormatError,
                RefusalError,
                FilterError,
                TruncatedError,
                BudgetError,
                QuotaError,
                JudgeDownError,
                OfflineError,
                StoreError,
            )
        ),
        ReplyError("no", text=""),
        ValueError("a bug"),
    ]
    for error in cases:
        asked = stub([error])
        with pytest.raises(type(error)) as info:
            asyncio.run(Retry(asked, Circuit(), 4).complete(question()))
        assert info.value is error
        assert len(asked.requests) == 1


def test_a_wait_that_the_provider_names_is_never_cut_short_and_not_the_same_for_all():
    waits = [retry._wait(1, 50.0) for _ in range(200)]
    assert 50 <= min(waits) < 51
    assert 54 < max(waits) <= 55


@pytest.mark.parametrize("seconds", [60.1, 86_400, float("inf")])
def test_more_than_a_minute_is_not_waited_for(stub, question, no_waits, seconds):
    asked = stub([RateLimitError("busy", retry_after=seconds), REPLY])
    with pytest.raises(RateLimitError):
        asyncio.run(Retry(asked, Circuit(), 4).complete(question()))
    assert len(asked.requests) == 1


@pytest.mark.parametrize("kind", [OverloadError, LostError, RateLimitError])
def test_a_minute_is_waited_for(stub, question, monkeypatch, kind):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    asked = stub([kind("busy", retry_after=60.0), REPLY])
    assert asyncio.run(Retry(asked, Circuit(), 4).complete(question())) == REPLY
    assert sum(60 <= wait <= 66 for wait in waits) == 1


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.5), (2, 1), (5, 8), (8, 60), (10_000, 60)])
def test_waits_are_random_and_grow_up_to_a_minute(attempt, longest):
    waits = [retry._wait(attempt) for _ in range(200)]
    assert 0 <= min(waits) < longest / 2 < max(waits) <= longest


@pytest.mark.parametrize("wait", ["0", "-5", "Mon, 01 Jan 2001 00:00:00 GMT"])
def test_a_server_that_says_at_once_is_asked_as_slowly_as_one_that_says_nothing(server, sample, wait):
    server.script = [(429, {"retry-after": wait}, b"")]
    scorer = AgentGoalAccuracyWithoutReference(Judge("openai/judge-1", base_url=server.url, cache_mode="off"))

    async def ask():
        with suppress(TimeoutError):
            async with asyncio.timeout(0.8):
                await asyncio.gather(*(scorer.ascore(sample) for _ in range(50)), return_exceptions=True)

    asyncio.run(ask())
    assert len(server.requests) < 50 * 4  # after waits of 0.25 and 0.5 s on average
