"""The layer that refuses to send more than the user allows."""

import asyncio
import threading
from contextlib import closing, suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import (
    AuthenticationError,
    BudgetError,
    ContextError,
    JudgeError,
    LostError,
    OverloadError,
    RateLimitError,
    UnreachableError,
)
from judgekit.judges.call_recorder import CallRecorder
from judgekit.judges.limits.budget import Amount, Budget
from judgekit.judges.limits.budget_client import BudgetClient, estimated_tokens, max_amount
from judgekit.judges.limits.redis_spending import RedisSpending
from judgekit.judges.limits.spending import SQLiteSpending
from judgekit.judges.providers.price import Price
from judgekit.judges.redis.server import RedisServer
from judgekit.judges.request import ChatMessage, Reply
from judgekit.judges.retry import Circuit, Retry
from judgekit.score import in_run, ledger
from judgekit.traces.message import Usage

PRICE = Price(2, 8)  # US dollars for a million tokens


def budget(inner, price=PRICE, own=None, **limits):
    return BudgetClient(
        CallRecorder(inner),
        Budget(**limits),
        price,
        "judge",
        lambda: SQLiteSpending(Path("budgets.sqlite")),
        own or SQLiteSpending(),
    )


def spent(budget, name=""):
    """Return the amounts spent once all requests are settled."""
    where = budget.unnamed_spending if not name else SQLiteSpending(Path("budgets.sqlite"))
    budget._thread.submit((budget._shared_spending or where).flush).result()
    return where.amount(name)


async def until(holds):
    """Waits until something holds."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - it is about what others do
            await asyncio.sleep(0.001)


async def refused_of(budget, requests):
    """How many of them are refused."""
    ends = await asyncio.gather(*(budget.complete(one) for one in requests), return_exceptions=True)
    assert {type(end) for end in ends} <= {Reply, BudgetError, OverloadError}
    return sum(isinstance(end, BudgetError) for end in ends)


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_the_request_after_the_last_one_allowed_is_refused_before_it_is_sent(stub, question, limit):
    asked = stub()
    assert asyncio.run(refused_of(budget(asked, requests=limit), [question()] * 20)) == 20 - limit
    assert len(asked.requests) == limit


@pytest.fixture
def thousand(question):
    """A request that takes at most 1,000 tokens in and 100 out, which cost $0.0028."""
    asked = question(messages=(ChatMessage("user", ""),), params={"max_tokens": 100})
    asked = question(
        messages=(ChatMessage("user", "x" * (1000 - asked.most_input_tokens)),), params={"max_tokens": 100}
    )
    assert max_amount(asked, PRICE) == Amount(1, 1_100, 0.0028)
    return asked


@pytest.mark.parametrize(
    ("limits", "fit"), [({"tokens": 3_299}, 2), ({"tokens": 3_300}, 3), ({"usd": 0.0083}, 2), ({"usd": 0.0084}, 3)]
)
def test_tokens_and_dollars_are_spent_up_to_their_limit_and_not_beyond(stub, thousand, limits, fit):
    asked = stub([Reply(text="", usage=Usage(input_tokens=1000, output_tokens=100), cost_usd=0.0028)])
    assert asyncio.run(refused_of(budget(asked, **limits), [thousand] * 5)) == 5 - fit
    assert len(asked.requests) == fit


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        ({"requests": 1}, "1 requests (spent: 1)"),
        ({"tokens": 1_500}, "1,500 tokens (spent: 600, the request may take 1,100)"),
        ({"usd": 0.004}, "$0.004 (spent: $0.002, the request may cost $0.0028)"),
    ],
    ids=str,
)
def test_the_refusal_says_which_limit_would_be_passed_and_what_is_spent(stub, thousand, limits, found):
    reply = Reply(text="", usage=Usage(input_tokens=500, output_tokens=100), cost_usd=0.002)
    held = budget(stub([reply]), **limits)
    asyncio.run(held.complete(thousand))
    with pytest.raises(BudgetError) as info:
        asyncio.run(held.complete(thousand))
    assert (
        str(info.value) == f"openai/judge-1: one more request would exceed the budget of {found}: raise it to continue"
    )


def test_an_output_limit_of_any_size_can_be_reserved(stub, thousand):
    vast = replace(thousand, params={"max_tokens": 10**25})
    asked = stub([Reply(text="", usage=Usage(input_tokens=1000, output_tokens=100))])
    free = budget(asked, price=Price(0, 0), usd=1, name="vast")
    asyncio.run(free.complete(vast))
    assert spent(free, "named vast").tokens == 1_100


def test_a_refusal_names_the_output_limit_that_is_reserved(stub, thousand):
    own = replace(thousand, params={}, max_output_tokens=8_192)
    with pytest.raises(
        BudgetError, match=r"raise it to continue, or lower max_output_tokens \(8,192\), which each request"
    ):
        asyncio.run(budget(stub(), tokens=8_192).complete(own))


@pytest.mark.parametrize(
    ("params", "tokens"),
    [
        ({}, 500),
        ({"max_tokens": 40}, 40),
        ({"max_completion_tokens": 4_000}, 4_000),
        ({"max_tokens": 40, "max_completion_tokens": 90}, 90),
    ],
    ids=str,
)
def test_a_request_is_expected_to_take_its_bytes_and_the_room_for_its_reply(question, params, tokens):
    asked = question(
        messages=(ChatMessage("system", "é" * 30), ChatMessage("user", "abcd" * 10)), schema={}, params=params
    )
    assert estimated_tokens(asked) == (60 + 40 + len("{}")) // 4 + tokens


@pytest.mark.parametrize(
    ("params", "own", "most"),
    [
        ({"max_tokens": 40}, None, 40),
        ({"max_tokens": 40, "max_completion_tokens": 90}, None, 90),
        ({}, 8192, 8192),
        ({"max_tokens": -1}, 8192, 8192),
    ],
    ids=str,
)
def test_the_most_it_takes_is_its_bytes_and_its_output_limit_and_what_is_sent_keeps_to_it(question, params, own, most):
    asked = question(params=params, max_output_tokens=own)
    said = sum(len(content.encode()) for _, content in asked.messages)
    requests, tokens, usd = max_amount(asked, Price(1, 1_000, cached=2))
    assert (requests, usd) == (1, pytest.approx((2 * (tokens - most) + 1_000 * most) / 1e6))
    assert said + most < tokens < said + most + 1_000
    sent = asked.sent_params("max_tokens")
    assert max(sent.values()) == most
    assert estimated_tokens(asked) < 600


def test_a_request_waits_while_those_under_way_may_leave_it_room(stub, thousand):
    asked = stub([Reply(text="", usage=Usage(input_tokens=10, output_tokens=1))])

    async def ask():
        asked.gate = asyncio.Event()
        refused = asyncio.create_task(refused_of(budget(asked, tokens=2_500), [thousand] * 20))
        await until(lambda: asked.under_way == 2)
        asked.gate.set()
        return await refused

    assert asyncio.run(ask()) == 0
    assert len(asked.requests) == 20
    assert asked.most_at_once == 2


def test_a_request_that_waits_for_room_is_not_overtaken_by_smaller_ones(stub, question):
    asked = stub([Reply(text="", usage=Usage(input_tokens=1, output_tokens=1))])
    held = budget(asked, price=None, tokens=max_amount(question(params={"max_tokens": 1_800}), None).tokens)
    large, small = ({"max_tokens": room} for room in (1_200, 10))

    async def ask():
        asked.gate = asyncio.Event()
        requests = [
            question(repeat=repeat, params=params) for repeat, params in enumerate([large, large, small, small])
        ]
        tasks = [asyncio.create_task(held.complete(one)) for one in requests]
        await until(lambda: asked.under_way)
        asked.gate.set()
        await asyncio.wait_for(asyncio.gather(*tasks), 5)

    asyncio.run(ask())
    assert [request.repeat for request in asked.requests] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "follows", [lambda request: request.with_doubled_limit(), lambda request: request.correction_request("?", "why")]
)
def test_what_follows_a_reply_that_was_paid_for_goes_before_the_line(stub, question, follows):
    asked = stub([Reply(text="", usage=Usage(input_tokens=1, output_tokens=1))])
    first, *others = (question(repeat=repeat, params={"max_tokens": 900}) for repeat in range(5))
    next_one = follows(others.pop())
    room = max(max_amount(one, None).tokens for one in (first, next_one))
    held = budget(asked, price=None, tokens=room + 10)

    async def ask():
        asked.gate = asyncio.Event()
        tasks = [asyncio.create_task(held.complete(first))]
        await until(lambda: asked.under_way)
        tasks += [asyncio.create_task(held.complete(one)) for one in (*others, next_one)]
        await asyncio.sleep(0.01)
        asked.gate.set()
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    asyncio.run(ask())
    assert [request.repeat for request in asked.requests[:3]] == [0, 4, 1]


@pytest.mark.parametrize(
    ("line", "paid"),
    [
        (Reply(text=""), (1, 1_100, 0.0028)),
        (Reply(text="", usage=Usage(input_tokens=7)), (1, 1_100, 0.0028)),
        (LostError("gone"), (1, 1_100, 0.0028)),
        (ValueError("a bug"), (1, 1_100, 0.0028)),
        (Reply(text="", usage=Usage(input_tokens=7, output_tokens=1)), (1, 8, 0.0028)),
        (Reply(text="", usage=Usage(input_tokens=7, output_tokens=1), cost_usd=0.5), (1, 8, 0.5)),
        (OverloadError("busy"), (1, 0, 0.0)),
        (UnreachableError("nobody there"), (0, 0, 0.0)),
        (RateLimitError("busy"), (1, 0, 0.0)),
        (AuthenticationError("no"), (1, 0, 0.0)),
        (ContextError("long"), (1, 0, 0.0)),
    ],
    ids=str,
)
def test_what_nobody_knows_counts_as_expected_and_what_no_model_answered_costs_nothing(stub, thousand, line, paid):
    held = budget(stub([line]))
    with suppress(JudgeError, ValueError):
        asyncio.run(held.complete(thousand))
    assert spent(held) == paid


def test_no_attempt_and_no_longer_reply_is_asked_for_that_would_pass_the_limit(stub, thousand, no_waits):
    asked = stub([LostError("gone")])
    held = budget(asked, tokens=2_500)
    with pytest.raises(BudgetError, match="spent: 2,200"):
        asyncio.run(Retry(held, Circuit(), 4).complete(thousand))
    assert len(asked.requests) == 2
    asked = stub([Reply(text="", finish_reason="length", usage=Usage(input_tokens=1000, output_tokens=100))])
    held = budget(asked, tokens=2_299)  # with twice the room it may take 1,200
    with pytest.raises(BudgetError, match="may take 1,200"):
        asyncio.run(Retry(held, Circuit(), 4).complete(thousand))
    assert len(asked.requests) == 1


def test_each_run_has_a_budget_of_its_own_and_a_named_one_is_shared(stub, question):
    asked = stub()

    def refused(run, **limits):
        async def ask():
            with in_run(run):
                return await refused_of(budget(asked, requests=2, **limits), [question()] * 3)

        return asyncio.run(ask())

    assert [refused(run) for run in ("a", "b", "a")] == [1, 1, 3]
    assert [refused(run, name="team") for run in ("a", "b")] == [1, 3]
    # outside of runs, too
    assert asyncio.run(refused_of(budget(asked, requests=3, name="team"), [question()] * 3)) == 2
    assert spent(budget(asked, name="team"), "named team") == (
        3,
        3 * max_amount(question(), None).tokens,
        3 * PRICE.of(Usage(input_tokens=question().most_input_tokens, output_tokens=0)),
    )


class Held(SQLiteSpending):
    """Spending whose reservations can be held up."""

    def __init__(self):
        super().__init__()
        self.reservations = 0
        self.free = threading.Event()

    def reserve(self, name, limits, amount):
        self.reservations += 1
        refusal = super().reserve(name, limits, amount)
        assert self.free.wait(5)
        return refusal


@pytest.mark.parametrize("kind", ["file", "redis"])
def test_leases_are_renewed_while_a_request_waits_for_room(stub, thousand, monkeypatch, redis_server, kind):
    monkeypatch.setattr("judgekit.judges.limits.budget_client.RESERVATION_LEASE_SECONDS", 0.3)
    # shorter than the time between renewals
    monkeypatch.setattr("judgekit.judges.limits.budget_client._LONGEST_PAUSE", 0.05)
    ends, others = redis_server.client, SQLiteSpending(Path("budgets.sqlite"))
    asked = stub([Reply(text="", usage=Usage(input_tokens=10, output_tokens=1), cost_usd=0.0)])
    held = budget(asked, name="team", tokens=1_200)
    if kind == "redis":
        held.open_shared = lambda: RedisSpending(RedisServer(redis_server.address))

    def end():
        if kind == "redis":
            return [end for _, end in ends.zrange("jk1:l:named team", 0, -1, withscores=True)]
        return others._db.execute("SELECT until FROM under_way").fetchall()

    async def ask():
        asked.gate = asyncio.Event()
        tasks = [asyncio.create_task(held.complete(thousand)) for _ in range(2)]
        await until(lambda: asked.under_way)
        for _ in range(2):
            before = end()
            await until(lambda before=before: end() > before)
        asked.gate.set()
        await asyncio.gather(*tasks)
        await held.aclose()

    asyncio.run(ask())


def test_a_request_waits_for_those_under_way_although_a_stalled_loop_did_not_renew_their_leases(
    stub, thousand, redis_server
):
    asked = stub([Reply(text="", usage=Usage(input_tokens=10, output_tokens=1), cost_usd=0.0)])
    held = budget(asked, name="team", tokens=1_200)
    held.open_shared = lambda: RedisSpending(RedisServer(redis_server.address))

    async def ask():
        asked.gate = asyncio.Event()
        first = asyncio.create_task(held.complete(thousand))
        await until(lambda: asked.under_way)
        leases = redis_server.client.zrange("jk1:l:named team", 0, -1)
        redis_server.client.zadd("jk1:l:named team", dict.fromkeys(leases, 1))  # ended long ago
        second = asyncio.create_task(held.complete(thousand))
        await asyncio.wait([second], timeout=0.3)
        asked.gate.set()
        await asyncio.gather(first, second)
        await held.aclose()

    asyncio.run(ask())
    assert len(asked.requests) == 2


def test_what_is_settled_is_recorded_soon_even_if_the_loop_has_stopped(stub, thousand):
    asked = stub([Reply(text="", usage=Usage(input_tokens=10, output_tokens=1), cost_usd=0.0)])
    others = SQLiteSpending(Path("budgets.sqlite"))
    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(budget(asked, name="team").complete(thousand))
    asyncio.run(until(lambda: others.amount("named team") == (1, 11, 0.0)))


def test_what_is_settled_is_recorded_once_the_file_can_be_written_again(stub, thousand):
    asked = stub([Reply(text="", usage=Usage(input_tokens=10, output_tokens=1), cost_usd=0.0)])
    held, others = budget(asked, name="team"), SQLiteSpending(Path("budgets.sqlite"))

    def opened():
        spending = SQLiteSpending(Path("budgets.sqlite"))
        spending._db.execute("PRAGMA busy_timeout = 0")
        return spending

    held.open_shared = opened

    async def ask():
        asked.gate = asyncio.Event()
        task = asyncio.create_task(held.complete(thousand))
        await until(lambda: asked.under_way)
        others._db.execute("BEGIN IMMEDIATE")
        asked.gate.set()
        await task
        await asyncio.wrap_future(held._thread.submit(int))
        others._db.execute("ROLLBACK")
        assert others.amount("named team") == max_amount(thousand, PRICE)
        await held.aclose()

    asyncio.run(ask())
    assert others.amount("named team") == (1, 11, 0.0)


def test_requests_that_are_canceled_while_they_reserve_are_released(stub, thousand):
    spending, asked = Held(), stub()
    held = budget(asked, own=spending, requests=3)

    async def ask():
        tasks = [asyncio.create_task(held.complete(thousand)) for _ in range(3)]
        await until(lambda: spending.reservations)
        for task in tasks[:2]:
            task.cancel()
        await asyncio.wait(tasks[:2])
        spending.free.set()
        await tasks[2]
        return await refused_of(held, [thousand] * 3)

    assert asyncio.run(ask()) == 1
    assert len(asked.requests) == spent(held).requests == 3


def test_requests_that_wait_fail_when_the_budget_is_closed_and_so_do_later_ones(stub, question):
    asked = stub()
    held, first = budget(asked, name="team", requests=1), question(params={"max_tokens": 900})

    async def ask():
        asked.gate = asyncio.Event()
        sent = asyncio.create_task(held.complete(first))
        await until(lambda: asked.under_way)
        waiting = [asyncio.create_task(held.complete(one)) for one in (first, first, first.with_doubled_limit())]
        await asyncio.sleep(0.02)
        waiting[0].cancel()
        await held.aclose()
        waiting.append(asyncio.create_task(held.complete(first)))
        ends = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
        asked.gate.set()
        await sent
        return [type(end) for end in ends]

    assert asyncio.run(ask()) == [asyncio.CancelledError] + [RuntimeError] * 3
    assert len(asked.requests) == 1


@dataclass
class Fate:
    """What becomes of a request: how long its reply takes, what share of the expected tokens it uses or which error
    there is, and whether and when it is canceled. Times are turns of the event loop."""

    turns: int
    end: float | JudgeError | None
    canceled_after: int | None


FATES = st.builds(
    Fate,
    st.integers(0, 4),
    st.floats(0, 1) | st.none() | st.sampled_from([OverloadError("busy"), LostError("gone"), ContextError("long")]),
    st.none() | st.integers(0, 6),
)


@dataclass
class Fateful:
    """A provider that says what fate has in store; the fate of a request is named by its ``repeat``."""

    fates: list[Fate]
    limits: Budget
    spending: SQLiteSpending

    async def complete(self, request, /):
        assert self.limits.limit_exceeded_by(self.spending.amount(""), Amount()) is None
        fate = self.fates[request.repeat]
        for _ in range(fate.turns):
            await asyncio.sleep(0)
        if isinstance(fate.end, JudgeError):
            raise copy(fate.end)
        if fate.end is None:
            return Reply(text="")
        used = Usage(input_tokens=int(fate.end * request.most_input_tokens), output_tokens=int(fate.end * 500))
        return Reply(text="", usage=used, cost_usd=PRICE.of(used))


@given(
    fates=st.lists(FATES, max_size=12),
    limits=st.builds(
        Budget,
        requests=st.none() | st.integers(0, 12),
        tokens=st.none() | st.integers(0, 12_000),
        usd=st.none() | st.floats(0, 0.06),
    ),
)
def test_no_limit_is_ever_passed_and_nothing_stays_set_aside(question, fates, limits):
    spending = SQLiteSpending()
    held = budget(Fateful(fates, limits, spending), own=spending, **limits.model_dump())
    share = max_amount(question(params={"max_tokens": 500}), PRICE)

    async def ask(repeat, fate):
        task = asyncio.create_task(held.complete(question(repeat=repeat, params={"max_tokens": 500})))
        if fate.canceled_after is not None:
            for _ in range(fate.canceled_after):
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, JudgeError):
            raise error

    async def ask_all():
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            for repeat, fate in enumerate(fates):
                group.create_task(ask(repeat, fate))

    with ledger() as calls:
        asyncio.run(ask_all())
    requests, tokens, usd = spent(held)
    assert requests == len(calls)
    assert tokens == sum(share.tokens if call.tokens_paid is None else call.tokens_paid for call in calls)
    assert usd == pytest.approx(sum(share.usd if call.usd_paid is None else call.usd_paid for call in calls), abs=1e-9)
    assert limits.limit_exceeded_by(Amount(requests, tokens, usd), Amount()) is None
    assert not held._in_flight
    assert spending.reserve("", Budget(requests=0), Amount(1)).may_fit_later is False
