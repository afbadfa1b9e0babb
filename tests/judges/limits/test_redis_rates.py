"""The limits of an account that machines share: when requests may start, after pauses and rejections."""

import asyncio

import pytest

from judgekit.errors import AuthenticationError, OverloadError, QuotaError, RateLimitError, StoreError, UnreachableError
from judgekit.judges.limits import redis_rates
from judgekit.judges.limits.rate_limit import Account, Limits, RateLimit
from judgekit.judges.limits.redis_rates import RedisRates
from judgekit.judges.redis.server import RedisServer
from judgekit.judges.request import Reply
from judgekit.score import outage_memory

BURST = redis_rates._BURST / 1e6


class Machine:
    """The account as one machine sees it, and the times, in seconds, at which its requests may start."""

    def __init__(self, redis_server, requests=None, tokens=None, account="account"):
        self.server = RedisServer(redis_server.address)
        self.rates = RedisRates(self.server, account)
        self.account = Account(self.rates)
        self.account.add_limits(Limits(100, requests, tokens))
        self.starts = []
        self._run, self.server.run = self.server.run, self._noted

    def _noted(self, command):
        answer = self._run(command)
        if command[1] == redis_rates._TAKE_SCRIPT and answer[0] > 0:
            self.starts.append(sum(answer) / 1e6)
        return answer

    async def sent(self):
        """Wait until all is sent that nothing waits for."""
        await asyncio.wrap_future(self.rates._thread.submit(int))

    async def take(self, tokens=0, judge="judge"):
        """Take the units of a request without waiting for its time."""
        return await self.rates.take(judge, self.account._seconds(1, tokens))


@pytest.fixture
def machine(redis_server):
    made = []

    def make(*limits, **options):
        made.append(Machine(redis_server, *limits, **options))
        return made[-1]

    yield make
    for one in made:
        one.server.close()


@pytest.mark.parametrize(("requests", "tokens"), [(600, None), (None, 6_000), (600, 6_000), (10_000, 6_000)])
def test_machines_together_keep_to_requests_and_tokens_a_minute(machine, requests, tokens):
    async def test():
        machines = [machine(requests, tokens) for _ in range(3)]
        for _ in range(40):
            for one in machines:
                await one.take(10)
        return sorted(start for one in machines for start in one.starts)

    starts = asyncio.run(test())
    assert len(starts) == 120
    for seconds in (0.05, 0.5, 2, 9):
        most = max(sum(start <= one < start + seconds for one in starts) for start in starts)
        assert most <= 10 * (seconds + BURST) + 1
    assert starts[-1] - starts[0] == pytest.approx(120 / 10 - BURST, abs=0.5)


def test_without_limits_nobody_waits_and_nothing_is_stored(machine, redis_server):
    async def test():
        one = machine()
        assert [await one.take(10**9) for _ in range(20)] == [0] * 20

    asyncio.run(test())
    assert redis_server.client.keys() == []


def test_other_accounts_have_limits_of_their_own(machine):
    async def test():
        one, other = machine(60), machine(60, account="other")
        waits = [await one.take(), await one.take(), await other.take()]
        assert waits == [0, pytest.approx(1 - BURST, abs=0.1), 0]

    asyncio.run(test())


def test_the_time_of_a_request_that_is_canceled_is_anothers(machine, stub, question):
    async def test():
        one, other = machine(60), machine(60)
        layer = limited(one, stub())
        await layer.complete(question())
        waiting = asyncio.create_task(layer.complete(question()))
        await asyncio.sleep(0.05)
        assert len(one.starts) == 2
        waiting.cancel()
        await asyncio.wait([waiting])
        await one.sent()
        assert await other.take() < 1

    asyncio.run(test())


def test_tokens_that_were_not_used_are_returned(machine):
    async def test():
        one, other = machine(60, 600), machine(60, 600)
        await one.take(600)
        one.account.adjust(0, -590)
        await one.sent()
        await one.take(10)
        assert await other.take(10) < 3
        one.account.adjust(-5, -50)
        await one.sent()
        assert await other.take(10) == 0

    asyncio.run(test())


def test_a_pause_holds_for_all_machines_and_they_begin_again_one_by_one(machine):
    async def test():
        machines = [machine() for _ in range(20)]
        machines[0].rates.pause(30)
        machines[0].rates.pause(3)  # the longer one holds
        await machines[0].sent()
        return [await one.take() for one in machines]

    waits = asyncio.run(test())
    assert 29 < min(waits) < max(waits) < 31
    assert max(waits) - min(waits) > 0.3


# The layer


def test_no_request_starts_before_its_time_when_another_ends(machine, question):
    class Quick:
        starts = []  # noqa: RUF012 - of one test

        async def complete(self, _):
            self.starts.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.01)
            return Reply(text="")

    async def test():
        one, inner = machine(1_200), Quick()
        layer = limited(one, inner)
        await asyncio.gather(*(layer.complete(question()) for _ in range(25)))
        assert inner.starts[-1] - inner.starts[0] >= 24 / 20 - BURST - 0.06
        assert len(one.starts) == 25

    asyncio.run(test())


def limited(machine, inner):
    return RateLimit(inner, machine.account)


@pytest.mark.parametrize(
    ("error", "own_kind", "others"),
    [
        (AuthenticationError("the key was refused"), AuthenticationError, "rejected the key"),
        (QuotaError("spent"), QuotaError, "has no quota left"),
    ],
)
def test_an_account_that_turns_one_machine_away_turns_away_all(machine, stub, question, error, own_kind, others):
    async def test():
        fine, refused, own = stub(), stub([error]), machine()
        other, one = limited(machine(), fine), limited(own, refused)
        with outage_memory():
            await other.complete(question())
            with pytest.raises(own_kind):
                await one.complete(question())
            await own.sent()
            with pytest.raises(own_kind, match=f"the provider {others} for another process with this account") as info:
                await other.complete(question())
            assert str(error) not in str(info.value)  # it may quote what was sent
            assert len(fine.requests) == 1
        with outage_memory():  # the next run tries again
            await other.complete(question())
        await other.complete(question())
        assert len(fine.requests) == 3

    asyncio.run(test())


def test_a_spent_quota_is_that_of_one_judge(machine, stub, question):
    async def test():
        fine, refused = stub(), stub([QuotaError("spent")])
        other, one = limited(machine(), fine), limited(machine(), refused)
        with outage_memory():
            await other.complete(question(model="another"))
            with pytest.raises(QuotaError):
                await one.complete(question())
            await other.complete(question(model="another"))
            assert len(fine.requests) == 2

    asyncio.run(test())


def test_a_server_that_one_machine_cannot_reach_is_no_matter_of_others(machine, stub, question):
    async def test():
        fine, gone, own = stub(), stub([UnreachableError("refused")]), machine(60, 6_000)
        other, one = limited(machine(60, 6_000), fine), limited(own, gone)
        with outage_memory():
            with pytest.raises(UnreachableError):
                await one.complete(question())
            await own.sent()
            await asyncio.wait_for(other.complete(question()), 0.5)  # the units were returned as well

    asyncio.run(test())


def test_retry_after_pauses_the_others(machine, stub, question):
    async def test():
        one, other = machine(), machine()
        with pytest.raises(OverloadError):
            await limited(one, stub([RateLimitError("slow down", retry_after=5)])).complete(question())
        await one.sent()
        assert 4 < await other.take() <= 6.1

    asyncio.run(test())


def test_a_limit_that_cannot_be_looked_up_is_an_error_and_nothing_is_sent(machine, stub, question, monkeypatch):
    async def test():
        one, inner = machine(), stub()

        def away(_):
            raise StoreError("away")

        monkeypatch.setattr(one.server, "run", away)
        with pytest.raises(StoreError, match="away"):
            await limited(one, inner).complete(question())
        assert inner.requests == []

    asyncio.run(test())


@pytest.mark.parametrize("spoil", ["1e30", "-1e30", "nan", "inf", "x", "", "1e17", "a list"])
def test_times_that_are_not_ours_make_nobody_wait_and_fail_nobody(machine, redis_server, spoil):
    async def test():
        one = machine(60, 600)
        assert await one.take(1) == 0
        for name, fields in (
            (one.rates._account, ("requests", "tokens", "paused")),
            (one.rates._failed, ("", "judge")),
        ):
            if spoil == "a list":
                redis_server.client.delete(name)
                redis_server.client.rpush(name, "x")
            else:
                ending = " quota" if name == one.rates._failed else ""
                redis_server.client.hset(name, mapping=dict.fromkeys(fields, f"{spoil}{ending}"))
        assert await one.take(1) == 0
        redis_server.client.hset(one.rates._account, "paused", spoil)
        one.rates.pause(30)
        await one.sent()
        assert 25 < await one.take(1) < 35

    asyncio.run(test())
