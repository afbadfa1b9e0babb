"""The one place that fixes the order of the layers: cache, budget, retry, rate limit, ladder, provider."""

import os
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from judgekit.errors import AuthenticationError, ConfigError
from judgekit.judges.budget import Budget
from judgekit.judges.cache import Cache, Replay
from judgekit.judges.client import Client
from judgekit.judges.ladder import Ladder
from judgekit.judges.openai import OpenAIClient
from judgekit.judges.rate_limit import RateLimit
from judgekit.judges.replies import CachedReplies, RecordedReplies
from judgekit.judges.retry import Retry

if TYPE_CHECKING:
    from judgekit.judges.judge import Judge


class Provider(NamedTuple):
    """Who serves models: where, and under which name its key stands in the environment."""

    base_url: str
    api_key_env: str

    def key(self, base_url: str | None, api_key_env: str | None) -> str:
        """The key to send. A server of the user's own is sent none that it was not meant to see.

        Raises:
            AuthenticationError: The environment has no key, or none that can be sent.
        """
        if base_url is not None and api_key_env is None:
            return "no-key"
        name = api_key_env or self.api_key_env
        if not (key := os.environ.get(name, "").strip()):
            raise AuthenticationError(f"the environment has no key for {base_url or self.base_url}: set {name}")
        if not (key.isascii() and key.isprintable()):
            raise AuthenticationError(f"the key in {name} holds characters that cannot be sent: copy it again")
        return key


PROVIDERS = {"openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY")}


def provider_named(name: str) -> Provider:
    """A provider by its name.

    Raises:
        ConfigError: There is none.
    """
    if name not in PROVIDERS:
        raise ConfigError.unknown("provider of judges", name, PROVIDERS)
    return PROVIDERS[name]


def build(judge: "Judge", sent: "count[int]") -> Client:
    """The client of a judge, for the running event loop. ``sent`` counts the requests of all its clients."""
    if judge.cache is None:
        return _asking(judge, sent)
    replies = RecordedReplies(judge.cache) if judge.cache.suffix == ".jsonl" else CachedReplies(judge.cache)
    return Replay(replies) if judge.cache_mode == "replay" else Cache(_asking(judge, sent), replies, judge.cache_mode)


def _asking(judge: "Judge", sent: "count[int]") -> Client:
    client = judge.client
    if client is None:
        key = provider_named(judge.provider).key(judge.base_url, judge.api_key_env)
        client = OpenAIClient(base_url=judge.endpoint, api_key=key, timeout=judge.timeout, price=judge.price)
    return Budget(Retry(RateLimit(Ladder(client), judge.concurrency), judge.attempts), judge.max_requests, sent)
