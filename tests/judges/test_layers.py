"""The order of the layers."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from judgekit.errors import AuthenticationError, StoreError
from judgekit.judges.cache.cache import Cache, ReplayClient
from judgekit.judges.cache.cassettes import Cassette
from judgekit.judges.cache.store import ReplyStore
from judgekit.judges.call_recorder import CallRecorder
from judgekit.judges.dry_run import DryRunClient
from judgekit.judges.judge import Judge
from judgekit.judges.layers import _warn_uncached, build_client
from judgekit.judges.limits.budget import Budget
from judgekit.judges.limits.budget_client import BudgetClient
from judgekit.judges.limits.rate_limit import RateLimit
from judgekit.judges.limits.spending import SQLiteSpending
from judgekit.judges.offline import OfflineClient
from judgekit.judges.providers.deferred import DeferredClient
from judgekit.judges.providers.price import Price
from judgekit.judges.request import Reply
from judgekit.judges.retry import Retry
from judgekit.judges.structured_output import SchemaSupport, StructuredOutput
from judgekit.score import planning

ASKING = [Retry, RateLimit, StructuredOutput, CallRecorder]
OWN = {"base_url": "http://localhost:8000/v1"}


@asynccontextmanager
async def built(judge):
    async with AsyncExitStack() as closing:
        yield await build_client(judge, SQLiteSpending() if judge.budget else None, SchemaSupport(), closing)


def layers(*judges):
    """The layers of each judge from the outside in; all are built in one loop, and closed."""

    async def build_all():
        found = []
        async with AsyncExitStack() as clients:
            for judge in judges:
                found.append([await clients.enter_async_context(built(judge))])
                while hasattr(found[-1][-1], "inner"):
                    found[-1].append(found[-1][-1].inner)
        return found

    return asyncio.run(build_all())


def kinds(judge):
    [found] = layers(judge)
    return [type(layer) for layer in found]


def test_the_order_is_cache_retry_rate_limit_ladder_budget_recorder_provider(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert kinds(Judge("openai/m")) == [Cache, *ASKING, DeferredClient]
    *others, recorder = ASKING
    layers = [Cache, *others, BudgetClient, recorder, DeferredClient]
    assert kinds(Judge("openai/m", budget=Budget(requests=1))) == layers


def test_a_client_of_ones_own_takes_the_place_of_the_provider_alone(stub):
    assert kinds(Judge("any/m", client=stub())) == [Cache, *ASKING, stub]


def test_without_a_cache_all_else_stays(stub):
    assert kinds(Judge("any/m", client=stub(), cache_mode="off")) == [*ASKING, stub]


class Anonymous:
    """Says which of all clients it is, and nothing of itself."""

    made = 0

    def __init__(self, **said) -> None:
        Anonymous.made += 1
        self.text = str(Anonymous.made)
        self.__dict__.update(said)

    async def complete(self, request, /):
        return Reply(text=self.text)

    async def aclose(self) -> None:
        pass


def asked(client, question, **settings):
    """What a client says to a judge's request, over the cache of this folder."""
    judge = Judge("any/m", client=client, **settings)

    async def ask():
        async with built(judge) as layered:
            return (await layered.complete(question(key_parts=judge.key_parts))).text

    return asyncio.run(ask())


def test_closing_closes_the_files_and_the_client(stub):
    inner = stub()
    inner.identity = "a"
    [[cache, _, _, _, budget, *_]] = layers(Judge("any/m", client=inner, budget=Budget(requests=1)))
    assert inner.closed == 1
    with pytest.raises(RuntimeError, match="after shutdown"):
        budget._thread.submit(int)
    [[replay]] = layers(Judge("any/m", client=inner, cache_mode="replay"))
    for layer in (cache, replay):
        with pytest.raises(StoreError, match="closed database"):
            asyncio.run(layer.replies.get("key"))


def test_closing_that_is_canceled_closes_the_client(stub):
    inner = stub()
    inner.identity = "a"

    async def close():
        closing = AsyncExitStack()
        await build_client(Judge("any/m", client=inner), None, SchemaSupport(), closing)
        task = asyncio.create_task(closing.aclose())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(close())
    assert inner.closed == 1


@pytest.mark.parametrize("identity", [{}, {"identity": ""}, {"identity": None}])
@pytest.mark.parametrize("mode", ["read_write", "refresh"])
def test_the_replies_of_a_client_without_an_identity_are_not_cached(question, tmp_path, caplog, identity, mode):
    _warn_uncached.cache_clear()
    first, second = Anonymous(**identity), Anonymous(**identity)
    found = [asked(one, question, cache_mode=mode) for one in (first, second, first)]
    assert found == [first.text, second.text, first.text]
    assert list(tmp_path.iterdir()) == []
    warning = "any/m: replies are not cached, because the client has no identity: give Anonymous one"
    assert [record.getMessage() for record in caplog.records] == [warning]
    Judge("any/m", client=first, cache_mode=mode, cache=tmp_path).check()  # a folder, which is no cache


def test_a_dry_run_counts_no_cached_reply_of_a_client_without_an_identity(question):
    asked(Anonymous(identity="a"), question)
    with planning():
        [[plan]] = layers(Judge("any/m", client=Anonymous()))
    assert plan.replies is None
    with planning():
        [[plan]] = layers(Judge("any/m", client=Anonymous(identity="a")))
    assert plan.replies is not None


@pytest.mark.parametrize(
    "parts",
    [{"query": {"api-version": "1"}}, {"query": {"api-version": "2"}}, {"headers": {"x": "1"}}, {"client": "x"}],
)
def test_what_a_reply_depends_on_is_part_of_the_key(question, parts):
    plain, other = question(), question(key_parts=parts)
    assert plain.key != other.key == question(key_parts=parts).key
    assert plain.digests.items() ^ other.digests.items() == {(next(iter(parts)), other.digests[next(iter(parts))])}


@pytest.mark.parametrize(("name", "kind"), [("r.jsonl", Cassette), ("r.sqlite", ReplyStore)])
def test_replay_has_nothing_behind_it_that_could_ask(tmp_path, name, kind):
    (tmp_path / name).touch()
    [[replay]] = layers(Judge("nobody/m", cache=tmp_path / name, cache_mode="replay"))
    assert type(replay) is ReplayClient
    assert type(replay.replies) is kind


def test_a_dry_run_has_nothing_behind_it_that_could_ask(tmp_path):
    with planning():
        assert kinds(Judge("openai/m")) == [DryRunClient]
    assert list(tmp_path.iterdir()) == []


def test_offline_there_is_nothing_that_could_reach_a_provider_elsewhere(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert kinds(Judge("openai/m", offline=True)) == [Cache, OfflineClient]
    assert kinds(Judge("openai/m", offline=True, base_url="https://judge.test/v1", cache_mode="off")) == [OfflineClient]
    assert kinds(Judge("openai/m", offline=True, **OWN)) == [Cache, *ASKING, DeferredClient]


def test_the_layers_get_the_settings_of_the_judge(stub):
    judge = Judge(
        "any/m",
        client=stub(),
        price=Price(2, 8),
        budget=Budget(usd=3),
        cache=Path("folder/c.sqlite"),
        cache_mode="refresh",
        store_text=False,
        attempts=2,
        concurrency=5,
        requests_per_minute=60,
        tokens_per_minute=1_000,
    )
    [[cache, retry, rate_limit, _, budget, *_]] = layers(judge)
    assert (cache.mode, cache.store_text, retry.attempts) == ("refresh", False, 2)
    assert [*rate_limit.account._circuits.values()] in ([], [retry.circuit])
    assert (budget.budget, budget.price) == (Budget(usd=3), Price(2, 8))
    budget.open_shared().close()
    assert Path("folder/budgets.sqlite").exists()
    account = rate_limit.account
    assert (account.concurrency.maximum, account.per_minute) == (5, (60, 1_000))


def account_of(layers):
    [account] = [layer.account for layer in layers if isinstance(layer, RateLimit)]
    return account


def test_clients_of_ones_own_are_no_account(stub):
    one, other = (Judge("openai/m", client=stub(), cache_mode="off") for _ in range(2))
    first, second = map(account_of, layers(one, other))
    assert first is not second


def test_a_missing_key_is_found_before_a_file_is_made(tmp_path):
    with pytest.raises(AuthenticationError):
        layers(Judge("openai/m"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["replies.jsonl", "folder/replies.sqlite"])
def test_a_file_that_is_not_there_cannot_be_replayed_and_is_not_made(tmp_path, name):
    judge = Judge("nobody/m", cache=tmp_path / name, cache_mode="replay")
    for use in (judge.check, lambda: layers(judge)):
        with pytest.raises(StoreError, match=f"{name}: does not exist, so there is nothing to replay$"):
            use()
    assert list(tmp_path.iterdir()) == []
