"""The order of the layers."""

import asyncio

import pytest

from judgekit.errors import AuthenticationError, BudgetError, OfflineError, StoreError
from judgekit.judges.breaker import Breaker
from judgekit.judges.budget import Budget, Limits, Spending
from judgekit.judges.cache import Cache, Replay
from judgekit.judges.cassettes import RecordedReplies
from judgekit.judges.judge import Judge
from judgekit.judges.ladder import Footing, Ladder
from judgekit.judges.layers import build
from judgekit.judges.offline import Offline
from judgekit.judges.openai import OpenAIClient
from judgekit.judges.plan import Plan
from judgekit.judges.price import Price
from judgekit.judges.rate_limit import RateLimit
from judgekit.judges.replies import CachedReplies
from judgekit.judges.retry import Retry
from judgekit.score import ledger

ASKING = [Budget, Retry, Breaker, RateLimit, Ladder]
OWN = {"base_url": "http://localhost:8000/v1"}


def built(judge):
    return build(judge, Spending(judge.budget, judge.price), Footing())


def layers(*judges):
    """The layers of each judge from the outside in; all are built in one loop, and closed."""

    async def build_all():
        outermost = [built(judge) for judge in judges]
        found = []
        for client in outermost:
            found.append([client])
            while hasattr(found[-1][-1], "inner"):
                found[-1].append(found[-1][-1].inner)
        for client in outermost:
            await client.aclose()
        return found

    return asyncio.run(build_all())


def kinds(judge):
    [found] = layers(judge)
    return [type(layer) for layer in found]


def test_the_order_is_cache_budget_retry_breaker_rate_limit_ladder_provider(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert kinds(Judge("openai/m")) == [Cache, *ASKING, OpenAIClient]


def test_a_client_of_ones_own_takes_the_place_of_the_provider_alone(stub):
    assert kinds(Judge("any/m", client=stub())) == [Cache, *ASKING, stub]


def test_without_a_cache_all_else_stays(stub):
    assert kinds(Judge("any/m", client=stub(), cache_mode="off")) == [*ASKING, stub]


@pytest.mark.parametrize(("name", "kind"), [("r.jsonl", RecordedReplies), ("r.sqlite", CachedReplies)])
def test_replay_has_nothing_behind_it_that_could_ask(tmp_path, name, kind):
    (tmp_path / name).touch()
    [[replay]] = layers(Judge("nobody/m", cache=tmp_path / name, cache_mode="replay"))
    assert type(replay) is Replay
    assert type(replay.replies) is kind


def test_a_dry_run_has_nothing_behind_it_that_could_ask(tmp_path):
    assert kinds(Judge("openai/m", dry_run=True)) == [Plan]
    assert list(tmp_path.iterdir()) == []


def test_offline_there_is_nothing_that_could_reach_a_provider_elsewhere(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert kinds(Judge("openai/m", offline=True)) == [Cache, Offline]
    assert kinds(Judge("openai/m", offline=True, base_url="https://judge.test/v1", cache_mode="off")) == [Offline]
    assert kinds(Judge("openai/m", offline=True, **OWN)) == [Cache, *ASKING, OpenAIClient]


def test_offline_no_key_is_needed_and_what_is_cached_is_used(stub, question):
    asked, request = stub(), question(base_url="https://api.openai.com/v1")

    async def ask(judge):
        client = built(judge)
        try:
            return await client.complete(request)
        finally:
            await client.aclose()

    offline = Judge("openai/m", offline=True, budget=Limits(requests=0))
    with ledger() as calls, pytest.raises(OfflineError):
        asyncio.run(ask(offline))
    assert calls == []  # nothing was sent
    asyncio.run(ask(Judge("openai/m", client=asked)))
    assert asyncio.run(ask(offline)).text == "{}"
    assert len(asked.requests) == 1


def test_the_layers_get_the_settings_of_the_judge(stub):
    judge = Judge(
        "any/m",
        client=stub(),
        price=Price(2, 8),
        budget=Limits(requests=3),
        cache_mode="refresh",
        store_text=False,
        attempts=2,
        concurrency=5,
        requests_per_minute=60,
        tokens_per_minute=1_000,
    )
    [[cache, budget, retry, breaker, rate_limit, *_]] = layers(judge)
    assert (cache.mode, cache.store_text, retry.attempts, breaker.attempts) == ("refresh", False, 2, 2)
    assert breaker.circuit is rate_limit.account.circuit
    assert (budget.spending.limits, budget.spending.price) == (Limits(requests=3), Price(2, 8))
    account = rate_limit.account
    assert (account.concurrency.most, account.requests.a_minute, account.tokens.a_minute) == (5, 60, 1_000)


def account_of(layers):
    [account] = [layer.account for layer in layers if isinstance(layer, RateLimit)]
    return account


def test_judges_of_one_account_hold_back_together_and_the_strictest_limits_hold():
    one = Judge("openai/m", **OWN, concurrency=3, requests_per_minute=90)
    other = Judge("openai/n", **OWN, concurrency=30, requests_per_minute=60, tokens_per_minute=500)
    stranger = Judge("openai/m", base_url="http://localhost:8001/v1")
    first, second, third = map(account_of, layers(one, other, stranger))
    assert first is second
    assert (first.concurrency.most, first.requests.a_minute, first.tokens.a_minute) == (3, 60, 500)
    assert (third.concurrency.most, third.requests, third.tokens) == (32, None, None)


def test_clients_of_ones_own_are_no_account(stub):
    one, other = (Judge("openai/m", client=stub(), cache_mode="off") for _ in range(2))
    first, second = map(account_of, layers(one, other))
    assert first is not second


def test_what_is_cached_is_neither_held_back_nor_spent(stub, question):
    asked = stub()
    judge = Judge("any/m", client=asked, budget=Limits(requests=1), requests_per_minute=1, concurrency=1)

    async def ask():
        client = built(judge)
        try:
            for _ in range(5):
                await client.complete(question())
            with pytest.raises(BudgetError):
                await client.complete(question(draw=1))
            await client.complete(question())
        finally:
            await client.aclose()

    with ledger() as calls:
        asyncio.run(asyncio.wait_for(ask(), 5))  # of the minutes that it would take
    assert [call.cached for call in calls] == [False, *[True] * 5]
    assert len(asked.requests) == 1


def test_a_client_that_is_empty_is_a_client_all_the_same(stub):
    class Recording(stub):
        def __len__(self):
            return len(self.requests)

    assert kinds(Judge("openai/m", client=Recording(), cache_mode="off")) == [*ASKING, Recording]


def test_a_missing_key_is_found_before_a_file_is_made(tmp_path):
    with pytest.raises(AuthenticationError):
        layers(Judge("openai/m"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["replies.jsonl", "folder/replies.sqlite"])
def test_a_file_that_is_not_there_cannot_be_replayed_and_is_not_made(tmp_path, name):
    judge = Judge("nobody/m", cache=tmp_path / name, cache_mode="replay")
    for use in (judge.check, lambda: layers(judge)):
        with pytest.raises(StoreError, match=f"{name}: does not exist; there is nothing to replay$"):
            use()
    assert list(tmp_path.iterdir()) == []
