"""The layer next to the provider: the ledger, and whether the reply is what was asked for."""

import asyncio

import pytest

from judgekit.errors import ConfigError, OverloadError, RateLimitError, RefusalError, ReplyError
from judgekit.judges.client import Reply
from judgekit.judges.ladder import Ladder
from judgekit.score import JudgeCall, ledger
from judgekit.traces.message import Usage

USAGE = Usage(input_tokens=3, output_tokens=1)
CALL = JudgeCall(judge="openai/judge-1", prompt="goodness@12345678")


def unacceptable(text):
    raise ValueError(f"good: is missing in {text}")


def without_time(calls):
    assert all(0 < call.seconds < 5 for call in calls)
    return [call.model_copy(update={"seconds": 0.0}) for call in calls]


@pytest.mark.parametrize(("usage", "cost"), [(USAGE, 0.25), (USAGE, None), (None, None)])
def test_a_reply_that_is_accepted_goes_through_and_its_cost_is_written_down(stub, question, usage, cost):
    reply, seen = Reply(text="fine", usage=usage, cost_usd=cost), []
    with ledger() as calls:
        assert asyncio.run(Ladder(stub([reply])).complete(question(accept=seen.append))) == reply
    assert seen == ["fine"]
    assert without_time(calls) == [CALL.model_copy(update={"usage": usage, "cost_usd": cost})]


def test_a_reply_that_is_not_accepted_is_an_error_that_keeps_its_text_and_was_paid(stub, question):
    asked = stub([Reply(text="bad", usage=USAGE, cost_usd=0.25)])
    with ledger() as calls, pytest.raises(ReplyError, match=r"^good: is missing in bad$") as info:
        asyncio.run(Ladder(asked).complete(question(accept=unacceptable)))
    assert info.value.text == "bad"
    assert without_time(calls) == [
        CALL.model_copy(update={"usage": USAGE, "cost_usd": 0.25, "error": "ReplyError"}),
    ]
    assert len(asked.requests) == 1


@pytest.mark.parametrize("kind", [OverloadError, RateLimitError, RefusalError])
def test_a_request_that_fails_is_written_down_at_an_unknown_cost(stub, question, kind):
    error = kind("no")
    with ledger() as calls, pytest.raises(kind) as info:
        asyncio.run(Ladder(stub([error])).complete(question()))
    assert info.value is error
    assert without_time(calls) == [CALL.model_copy(update={"error": kind.__name__})]


def test_what_never_was_a_request_is_not_written_down(stub, question):
    with ledger() as calls, pytest.raises(ConfigError):
        asyncio.run(Ladder(stub([ConfigError("no script")])).complete(question()))
    assert calls == []


def test_closing_closes_the_provider(stub):
    inner = stub()
    asyncio.run(Ladder(inner).aclose())
    assert inner.closed == 1
