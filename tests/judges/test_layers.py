"""The order of the layers."""

import asyncio
from itertools import count

import pytest

from judgekit.errors import AuthenticationError, StoreError
from judgekit.judges.budget import Budget
from judgekit.judges.cache import Cache, Replay
from judgekit.judges.judge import Judge
from judgekit.judges.ladder import Ladder
from judgekit.judges.layers import build
from judgekit.judges.openai import OpenAIClient
from judgekit.judges.rate_limit import RateLimit
from judgekit.judges.replies import CachedReplies, RecordedReplies
from judgekit.judges.retry import Retry

ASKING = [Budget, Retry, RateLimit, Ladder]


def layers(judge):
    """The layers of a judge from the outside in; they are closed."""
    client = outermost = build(judge, count())
    found = [client]
    while hasattr(client, "inner"):
        client = client.inner
        found.append(client)
    asyncio.run(outermost.aclose())
    return found


def kinds(judge):
    return [type(layer) for layer in layers(judge)]


def test_the_order_is_cache_budget_retry_rate_limit_ladder_provider(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert kinds(Judge("openai/m")) == [Cache, *ASKING, OpenAIClient]


def test_a_client_of_ones_own_takes_the_place_of_the_provider_alone(stub):
    assert kinds(Judge("any/m", client=stub())) == [Cache, *ASKING, stub]


def test_without_a_cache_all_else_stays(stub):
    assert kinds(Judge("any/m", client=stub(), cache=None)) == [*ASKING, stub]


@pytest.mark.parametrize(("name", "kind"), [("r.jsonl", RecordedReplies), ("r.sqlite", CachedReplies)])
def test_replay_has_nothing_behind_it_that_could_ask(tmp_path, name, kind):
    (tmp_path / name).touch()
    [replay] = layers(Judge("nobody/m", cache=tmp_path / name, cache_mode="replay"))
    assert type(replay) is Replay
    assert type(replay.replies) is kind


def test_the_layers_get_the_settings_of_the_judge(stub):
    judge = Judge("any/m", client=stub(), cache_mode="refresh", max_requests=3, attempts=2, concurrency=5)
    cache, budget, retry, rate_limit, *_ = layers(judge)
    assert (cache.mode, budget.max_requests, retry.attempts, rate_limit.concurrency) == ("refresh", 3, 2, 5)


def test_a_client_that_is_empty_is_a_client_all_the_same(stub):
    class Recording(stub):
        def __len__(self):
            return len(self.requests)

    assert kinds(Judge("openai/m", client=Recording(), cache=None)) == [*ASKING, Recording]


def test_a_missing_key_is_found_before_a_file_is_made(tmp_path):
    with pytest.raises(AuthenticationError):
        build(Judge("openai/m"), count())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["replies.jsonl", "folder/replies.sqlite"])
def test_a_file_that_is_not_there_cannot_be_replayed_and_is_not_made(tmp_path, name):
    judge = Judge("nobody/m", cache=tmp_path / name, cache_mode="replay")
    for use in (judge.check, lambda: build(judge, count())):
        with pytest.raises(StoreError, match=f"{name}: does not exist; there is nothing to replay$"):
            use()
    assert list(tmp_path.iterdir()) == []
