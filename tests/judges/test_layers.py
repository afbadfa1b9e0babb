"""The order of the layers, and the keys of providers."""

import asyncio
from itertools import count

import pytest

from judgekit.errors import AuthenticationError, ConfigError
from judgekit.judges.budget import Budget
from judgekit.judges.cache import Cache, Replay
from judgekit.judges.judge import Judge
from judgekit.judges.ladder import Ladder
from judgekit.judges.layers import build
from judgekit.judges.openai import OpenAIClient
from judgekit.judges.providers import PROVIDERS, provider_named
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


def test_the_provider_is_known_by_name():
    assert provider_named("openai") == PROVIDERS["openai"] == ("https://api.openai.com/v1", "OPENAI_API_KEY")


def test_an_unknown_provider_is_an_error_that_lists_the_known_ones():
    with pytest.raises(
        ConfigError, match=r"no provider of judges is called 'openia', did you mean 'openai'\?.*Known: openai"
    ):
        provider_named("openia")


OWN, URL = "MY_KEY", "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("base_url", "api_key_env", "key"),
    [
        pytest.param(None, None, "sk-provider", id="the provider's own key for the provider"),
        pytest.param(None, OWN, "sk-own", id="a named key for the provider"),
        pytest.param(URL, OWN, "sk-own", id="a named key for another server"),
        pytest.param(URL, "OPENAI_API_KEY", "sk-provider", id="the provider's key for another server, if it is named"),
        pytest.param(URL, None, "no-key", id="no key for another server"),
    ],
)
def test_a_key_goes_to_nobody_but_whom_it_is_meant_for(monkeypatch, base_url, api_key_env, key):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-provider")
    monkeypatch.setenv(OWN, " sk-own\n")  # as it comes out of a file
    assert PROVIDERS["openai"].key(base_url, api_key_env) == key


@pytest.mark.parametrize("value", [None, "", " \n"])
@pytest.mark.parametrize(
    ("base_url", "api_key_env", "words"),
    [
        (None, None, "has no key for https://api.openai.com/v1: set OPENAI_API_KEY"),
        (None, OWN, "has no key for https://api.openai.com/v1: set MY_KEY"),
        (URL, OWN, "has no key for http://localhost:8000/v1: set MY_KEY"),
    ],
)
def test_a_missing_key_is_an_error_that_names_its_variable(monkeypatch, value, base_url, api_key_env, words):
    if value is not None:
        monkeypatch.setenv(api_key_env or "OPENAI_API_KEY", value)
    with pytest.raises(AuthenticationError, match=words):
        PROVIDERS["openai"].key(base_url, api_key_env)


@pytest.mark.parametrize("key", ["sk-pri\nvate", "sk-privaté", "sk-private\x00"])
def test_a_key_that_no_header_can_hold_is_an_error_that_does_not_show_it(monkeypatch, key):
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": key})
    with pytest.raises(AuthenticationError, match="OPENAI_API_KEY") as info:
        PROVIDERS["openai"].key(None, None)
    assert "sk-pri" not in str(info.value)
