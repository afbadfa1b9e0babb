"""The one place that fixes the order of the layers: cache, budget, retry, rate limit, ladder, provider."""

from itertools import count
from pathlib import Path

from judgekit.errors import StoreError
from judgekit.judges.budget import Budget
from judgekit.judges.cache import Cache, CacheMode, Replay
from judgekit.judges.client import Client
from judgekit.judges.ladder import Ladder
from judgekit.judges.openai import OpenAIClient
from judgekit.judges.providers import provider_named
from judgekit.judges.rate_limit import RateLimit
from judgekit.judges.replies import CachedReplies, RecordedReplies, Replies
from judgekit.judges.retry import Retry
from judgekit.judges.settings import JudgeSettings


def build(judge: JudgeSettings, sent: "count[int]") -> Client:
    """The client of a judge, for the running event loop. ``sent`` counts the requests of all its clients."""
    if judge.cache is None:
        return _asking(judge, sent)
    if judge.cache_mode == "replay":
        return Replay(open_replies(judge.cache, judge.cache_mode))
    return Cache(_asking(judge, sent), open_replies(judge.cache, judge.cache_mode), judge.cache_mode)


def open_replies(path: Path, mode: CacheMode) -> Replies:
    """The replies that are kept in a file.

    Raises:
        StoreError: It cannot be used.
    """
    if mode == "replay" and not path.exists():
        raise StoreError(f"{path}: does not exist; there is nothing to replay")
    return RecordedReplies(path) if path.suffix == ".jsonl" else CachedReplies(path)


def api_key(judge: JudgeSettings) -> str:
    """The key that a judge's requests carry.

    Raises:
        AuthenticationError: The environment has none.
    """
    return provider_named(judge.provider).key(judge.base_url, judge.api_key_env)


def _asking(judge: JudgeSettings, sent: "count[int]") -> Client:
    client = judge.client
    if client is None:
        key = api_key(judge)
        client = OpenAIClient(base_url=judge.endpoint, api_key=key, timeout=judge.timeout, price=judge.price)
    return Budget(Retry(RateLimit(Ladder(client), judge.concurrency), judge.attempts), judge.max_requests, sent)
