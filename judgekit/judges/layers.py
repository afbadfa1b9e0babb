"""The one place that fixes the order of the layers: cache, budget, retry, breaker, rate limit, ladder, provider."""

from pathlib import Path

from judgekit.errors import StoreError
from judgekit.judges.breaker import Breaker
from judgekit.judges.budget import Budget, Spending
from judgekit.judges.cache import Cache, CacheMode, Replay
from judgekit.judges.cassettes import RecordedReplies
from judgekit.judges.client import Client
from judgekit.judges.concurrency import Concurrency
from judgekit.judges.ladder import Footing, Ladder
from judgekit.judges.offline import Offline, stays_here
from judgekit.judges.plan import Plan
from judgekit.judges.providers import provider_named
from judgekit.judges.rate_limit import Account, RateLimit, account_named
from judgekit.judges.replies import CachedReplies, Replies
from judgekit.judges.retry import Retry
from judgekit.judges.settings import JudgeSettings


def build(judge: JudgeSettings, spending: Spending, footing: Footing) -> Client:
    """The client of a judge, for the running event loop. All its clients share what is spent and what was found out."""
    if judge.dry_run:
        read = judge.cache_mode in ("read_write", "replay") and judge.cache.exists()
        return Plan(open_replies(judge.cache, "replay") if read else None, judge.known_price)
    if judge.cache_mode == "replay":
        return Replay(open_replies(judge.cache, judge.cache_mode))
    asking = provider(judge)
    if not isinstance(asking, Offline):  # what is not sent is neither counted nor held back
        account = _account(judge)
        connected = Breaker(RateLimit(Ladder(asking, footing), account), account.circuit, judge.attempts)
        asking = Budget(Retry(connected, judge.attempts), spending)
    if judge.cache_mode == "off":
        return asking
    return Cache(asking, CachedReplies(judge.cache), judge.cache_mode, judge.store_text)


def provider(judge: JudgeSettings) -> Client:
    """Who answers a judge's requests."""
    if judge.client is not None:
        return judge.client
    if judge.offline and not stays_here(judge.endpoint):
        return Offline()
    connect = provider_named(judge.provider).connect
    return connect(base_url=judge.endpoint, api_key=api_key(judge), timeout=judge.timeout, price=judge.known_price)


def _account(judge: JudgeSettings) -> Account:
    if judge.client is not None:
        account = Account(Concurrency(judge.concurrency))
    else:
        account = account_named(judge.account, judge.concurrency)
    account.bears(judge.concurrency, judge.requests_per_minute, judge.tokens_per_minute)
    return account


def open_replies(path: Path, mode: CacheMode) -> Replies:
    """The replies that are kept in a file.

    Raises:
        StoreError: It cannot be used.
    """
    if mode == "replay" and not path.exists():
        raise StoreError(f"{path}: does not exist; there is nothing to replay")
    return RecordedReplies(path) if path.suffix == ".jsonl" else CachedReplies(path, read_only=mode == "replay")


def api_key(judge: JudgeSettings) -> str | None:
    """The key that a judge's requests carry; ``None`` if its provider finds keys by itself.

    Raises:
        AuthenticationError: The environment has none.
    """
    return provider_named(judge.provider).key(judge.base_url, judge.api_key_env)
