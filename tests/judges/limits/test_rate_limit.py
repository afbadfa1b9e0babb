"""The layer that holds back, for all judges of an account together. Its minutes pass at once here."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import AuthenticationError, LostError, OverloadError, QuotaError, RateLimitError, ReplyError
from judgekit.judges.limits import rate_limit
from judgekit.judges.limits.budget_client import estimated_tokens
from judgekit.judges.limits.rate_limit import Account, Limits, RateLimit, get_account
from judgekit.judges.request import Reply
from judgekit.traces.message import Usage

REPLY = Reply(text="fine")


class VirtualTime(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while there is something to do, and then goes on to what is due next."""

    def __init__(self):
        super().__init__()
        self._now = 0.0
        self._wait, self._selector.select = self._selector.select, self._skip

    def _skip(self, timeout):
        assert timeout is not None, "everybody waits, and nothing is ever going to happen"
        self._now += timeout
        return self._wait(0)

    def time(self):
        return self._now


def run(work):
    """What a coroutine returns; the minutes that it waits are over at once."""
    with asyncio.Runner(loop_factory=VirtualTime) as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rate_limit, "monotonic", runner.get_loop().time)
        return runner.run(work)


def now():
    return asyncio.get_running_loop().time()


@dataclass
class Slow:
    """A provider that takes its time, and notes when it was asked; ``ends`` may hold replies and errors by repeat."""

    seconds: float = 0.0
    ends: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    under_way: int = 0

    async def complete(self, request, /):
        self.asked.append((request.repeat, now()))
        self.under_way += 1
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        end = self.ends.get(request.repeat, REPLY)
        if isinstance(end, Exception):
            raise end
        return end

    @property
    def times(self):
        return [time for _, time in self.asked]


def account(most=20, requests=None, tokens=None):
    found = Account()
    found.add_limits(Limits(most, requests, tokens))
    return found


async def ask(limited, requests):
    """What becomes of all the requests, sent at once."""
    return await asyncio.gather(*map(limited.complete, requests), return_exceptions=True)


# How many at once


def test_as_many_requests_as_allowed_are_under_way_and_never_more(stub, question):
    for line in [REPLY, OverloadError("busy"), ReplyError("no", text="")]:
        for most in [1, 3, 8]:
            asked = stub([line])
            limited = RateLimit(asked, account(most))
            assert asyncio.run(ask(limited, [question()] * 20)) == [line] * 20
            assert asked.most_at_once == most
            assert asked.under_way == limited.account.concurrency.in_flight == 0


def test_a_rate_limit_makes_them_fewer_and_an_overload_does_not(stub, question):
    for error, limit in [(RateLimitError("busy"), 4), (OverloadError("busy"), 8), (LostError("gone"), 8)]:
        limited = RateLimit(stub([error]), account(8))
        asyncio.run(ask(limited, [question()] * 8))
        assert limited.account.concurrency.limit == pytest.approx(limit)


def test_those_that_wait_go_in_the_order_in_which_they_came(question):
    asked = Slow(1)
    run(ask(RateLimit(asked, account(2)), [question(repeat=repeat) for repeat in range(10)]))
    assert [repeat for repeat, _ in asked.asked] == list(range(10))
    assert asked.times == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_what_follows_a_reply_that_was_paid_for_goes_before_all_that_wait(question):
    asked = Slow(1)
    first, *line = (question(repeat=repeat) for repeat in range(5))
    follow_ups = [one.correction_request("?", "why") for one in line[2:]]
    run(ask(RateLimit(asked, account(1)), [first, *line[:2], *follow_ups]))
    assert [repeat for repeat, _ in asked.asked] == [0, 3, 4, 1, 2]


@given(
    most=st.integers(1, 5),
    paced=st.booleans(),
    cancels=st.lists(st.none() | st.floats(0, 10), min_size=1, max_size=20),
    ends=st.dictionaries(
        st.integers(0, 19), st.sampled_from([OverloadError("busy"), RateLimitError("b", retry_after=1)])
    ),
)
def test_whenever_requests_are_canceled_no_turn_is_lost(question, most, paced, cancels, ends):
    asked = Slow(1, ends)
    limited = RateLimit(asked, account(most, requests=120 if paced else None))

    async def ask_and_cancel(repeat, after):
        task = asyncio.create_task(limited.complete(question(repeat=repeat)))
        await asyncio.wait((task,), timeout=after)
        task.cancel()
        await asyncio.wait((task,))
        if after is None:
            assert repeat in ends or task.result() == REPLY

    async def ask_all():
        await asyncio.gather(*(ask_and_cancel(repeat, after) for repeat, after in enumerate(cancels)))
        assert asked.under_way == limited.account.concurrency.in_flight == 0
        before = now()
        await limited.complete(question(repeat=99))
        return asked.times[-1] - before

    assert run(ask_all()) < 1.001  # a pause or a pace at most


# How many a minute


def most_in_a_minute(times, weights):
    """The largest sum of weights in any minute, its end excluded."""
    return max(sum(w for t, w in zip(times, weights, strict=True) if start <= t < start + 60) for start in times)


def test_a_pause_saves_nothing_up(question):
    asked = Slow()

    async def ask_twice():
        limited = RateLimit(asked, account(requests=60))
        await ask(limited, [question()] * 2)
        await asyncio.sleep(100)
        await ask(limited, [question()] * 3)

    run(ask_twice())
    assert asked.times == pytest.approx([0, 1, 101, 102, 103])


def test_tokens_are_spread_evenly_over_the_minute(question):
    asked = Slow()
    requests = [question(params={"max_tokens": 10 * repeat}) for repeat in range(100)]
    tokens = [estimated_tokens(request) for request in requests]
    run(ask(RateLimit(asked, account(tokens=6_000)), requests))
    assert asked.times == pytest.approx([sum(tokens[:index]) / 100 for index in range(100)])
    assert 5_000 < most_in_a_minute(asked.times, tokens) <= 6_000 + max(tokens)


def test_the_stricter_of_the_two_limits_holds(question):
    each = estimated_tokens(question())
    for requests, tokens, seconds in [(60, 120 * each, 1), (120, 60 * each, 1), (30, 60 * each, 2)]:
        asked = Slow()
        run(ask(RateLimit(asked, account(requests=requests, tokens=tokens)), [question()] * 9))
        assert asked.times == pytest.approx([index * seconds for index in range(9)])


@pytest.mark.parametrize("share", [0.1, 3])
def test_what_a_reply_really_took_corrects_the_pace(question, share):
    each = estimated_tokens(question())
    used = Usage(input_tokens=int(each * share), output_tokens=0)
    asked = Slow(0, dict.fromkeys(range(1, 40), Reply(text="", usage=used)))
    run(ask(RateLimit(asked, account(tokens=60 * each)), [question(repeat=repeat) for repeat in range(40)]))
    assert asked.times[:2] == pytest.approx([0, 1])  # the first reply does not say
    gaps = [later - sooner for sooner, later in zip(asked.times[1:], asked.times[2:], strict=False)]
    assert gaps == pytest.approx([share] * len(gaps), rel=0.01)


def test_a_request_that_waits_goes_as_soon_as_tokens_are_given_back(question):
    each = estimated_tokens(question())
    asked = Slow(5, {0: Reply(text="", usage=Usage(input_tokens=0, output_tokens=0))})
    run(ask(RateLimit(asked, account(tokens=each)), [question(repeat=repeat) for repeat in range(2)]))  # one a minute
    assert asked.times == pytest.approx([0, 5])


def test_a_request_that_takes_more_than_a_minutes_tokens_goes_all_the_same(question):
    asked = Slow()
    run(ask(RateLimit(asked, account(tokens=estimated_tokens(question()) // 2)), [question()] * 3))
    assert asked.times == pytest.approx([0, 120, 240], rel=0.01)


# A provider that asks to wait


@pytest.mark.parametrize("kind", [RateLimitError, OverloadError])
def test_a_wait_that_the_provider_names_holds_for_the_whole_account(question, kind):
    asked, other, stranger = (Slow(1, {0: kind("busy", retry_after=30)}) for _ in range(3))
    shared = account(1)

    async def ask_all():
        await asyncio.gather(
            ask(RateLimit(asked, shared), [question(repeat=repeat) for repeat in range(3)]),
            ask(RateLimit(other, shared), [question(repeat=9)]),
            ask(RateLimit(stranger, account(1)), [question(repeat=9)] * 2),
        )

    run(ask_all())
    assert asked.times == [0, 31, 32]
    assert other.times == [33]
    assert stranger.times == [0, 1]


def test_the_longest_of_several_waits_holds(question):
    asked = Slow(1, {0: RateLimitError("busy", retry_after=30), 1: RateLimitError("busy", retry_after=10)})
    run(ask(RateLimit(asked, account(2)), [question(repeat=repeat) for repeat in range(3)]))
    assert asked.times == [0, 0, 31]


def test_a_wait_of_more_than_a_minute_holds_nobody_up(question):
    asked = Slow(1, {0: OverloadError("busy", retry_after=60.1)})
    run(ask(RateLimit(asked, account(1)), [question(repeat=repeat) for repeat in range(2)]))
    assert asked.times == [0, 1]


# A key or a quota that fails


@pytest.mark.parametrize("kind", [AuthenticationError, QuotaError])
@pytest.mark.parametrize("pace", [None, 1], ids=["for a place", "for their time"])
def test_a_key_or_a_quota_that_fails_turns_away_all_that_wait_and_none_that_come_later(question, kind, pace):
    failure = kind("it is over")
    failure.add_note("pay")
    asked = Slow(1, {0: failure})
    limited = RateLimit(asked, account(1, requests=pace))

    async def ask_and_ask_again():
        ends = await ask(limited, [question(repeat=repeat) for repeat in range(50)])
        assert now() == 1
        return ends, await limited.complete(question(repeat=99))

    ends, later = run(ask_and_ask_again())
    assert [(type(end), str(end), end.__notes__) for end in ends] == [(kind, "it is over", ["pay"])] * 50
    assert len(set(map(id, ends))) == 50  # each its own, with a traceback of its own
    assert [repeat for repeat, _ in asked.asked] == [0, 99]
    assert later == REPLY


def test_a_quota_that_is_spent_turns_away_those_alone_that_ask_the_same_model(question):
    asked = Slow(1, {0: QuotaError("it is over")})
    limited = RateLimit(asked, account(1))
    requests = [question(repeat=repeat, model=f"judge-{repeat % 2}") for repeat in range(6)]
    ends = run(ask(limited, requests))
    assert [type(end) for end in ends] == [QuotaError, Reply] * 3
    assert [repeat for repeat, _ in asked.asked] == [0, 1, 3, 5]


# Accounts


def test_judges_of_one_account_share_it_and_the_strictest_limits_hold(question):
    one, other = get_account("a"), get_account("a")
    assert one is other
    assert get_account("b") is not one
    one.add_limits(Limits(30, 120, None))
    other.add_limits(Limits(4, 60, 100_000))
    one.add_limits(Limits(8, 90, 200_000))
    assert (one.concurrency.maximum, one.concurrency.limit) == (4, 4)
    assert one.per_minute == (60, 100_000)
    one.remove_limits(Limits(4, 60, 100_000))
    assert (one.concurrency.maximum, one.concurrency.limit) == (8, 8)
    assert one.per_minute == (90, 200_000)


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_requests_go_at_once_from_several_threads_than_from_one(question, most):
    under_way, counts, lock = 0, [], threading.Lock()

    class Counting:
        async def complete(self, _):
            nonlocal under_way
            with lock:
                under_way += 1
                counts.append(under_way)
            await asyncio.sleep(0.01)
            with lock:
                under_way -= 1
            return REPLY

    shared = account(most)

    async def ask_all():
        return await ask(RateLimit(Counting(), shared), [question()] * 5)

    with ThreadPoolExecutor(8) as threads:
        assert [done.result() for done in [threads.submit(asyncio.run, ask_all()) for _ in range(8)]] == [
            [REPLY] * 5
        ] * 8
    assert max(counts) == most
    assert shared.concurrency.in_flight == 0
