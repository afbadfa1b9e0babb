"""The layers of a client, in their order: cache, retry, budget, breaker, rate limit, ladder, provider."""

import logging
from functools import cache
from pathlib import Path

from judgekit.errors import StoreError
from judgekit.judges.breaker import Breaker
from judgekit.judges.budget import Budget
from judgekit.judges.cache import Cache, CacheMode, Replay
from judgekit.judges.cassettes import RecordedReplies
from judgekit.judges.client import Client
from judgekit.judges.concurrency import Concurrency
from judgekit.judges.connection import Connection
from judgekit.judges.ladder import Footing, Ladder
from judgekit.judges.offline import Offline, stays_here
from judgekit.judges.plan import Plan
from judgekit.judges.providers import provider_named
from judgekit.judges.rate_limit import Account, RateLimit, account_named
from judgekit.judges.replies import CachedReplies
from judgekit.judges.retry import Retry
from judgekit.judges.secrets import read_extras
from judgekit.judges.settings import JudgeSettings
from judgekit.judges.spending import Spending
from judgekit.judges.store import Replies, SharedReplies
from judgekit.score import current_plan
from judgekit.threads import in_thread

_log = logging.getLogger("judgekit")


async def build(judge: JudgeSettings, spending: Spending | None, footing: Footing) -> Client:
    """Return the client of a judge for the running event loop. All clients of a judge share its spending and footing.

    A thread imports the provider's package and opens the files, which may take seconds.
    """
    if current_plan() is not None:
        read = judge.cache_mode_used in ("read_write", "replay") and judge.cache.exists()
        return Plan(await in_thread(lambda: recorded(judge.cache)) if read else None, judge.known_price)
    if judge.cache_mode == "replay":
        return Replay(await in_thread(lambda: recorded(judge.cache)))
    asking = await in_thread(lambda: provider(judge))
    if not isinstance(asking, Offline):  # requests that are not sent are neither counted nor delayed
        account = _account(judge)
        asking = Breaker(RateLimit(Ladder(asking, footing), account), account.circuit, judge.attempts)
        if spending is not None:
            price = None if judge.budget.usd is None else judge.known_price
            asking = Budget(asking, judge.budget, price, judge.budget_name, judge.cache.parent, spending)
        asking = Retry(asking, judge.attempts)
    if judge.cache_mode_used == "off":
        if judge.cache_mode != "off":
            _warn_uncached(judge.model, type(judge.client).__name__)
        return asking
    replies = await in_thread(lambda: SharedReplies(judge.cache))
    return Cache(asking, replies, judge.cache_mode, judge.store_text)


def provider(judge: JudgeSettings) -> Client:
    """Return the client of a judge without layers."""
    if judge.client is not None:
        return judge.client
    if judge.offline and not stays_here(judge.endpoint):
        return Offline()
    return provider_named(judge.provider).connect(connection(judge))


def connection(judge: JudgeSettings) -> Connection:
    """Return the settings of the connection to a judge's provider.

    Raises:
        AuthenticationError: The environment has no key, or lacks a value of ``query`` or ``headers``.
    """
    return Connection(
        base_url=judge.endpoint,
        api_key=provider_named(judge.provider).key(judge.base_url, judge.api_key_env),
        timeout=judge.timeout,
        price=judge.known_price,
        extras=read_extras(judge.query, judge.headers, judge.endpoint),
        max_reply_bytes=judge.max_reply_bytes,
    )


@cache
def _warn_uncached(model: str, client: str) -> None:
    _log.warning("%s: its replies are not cached, for its client has no identity: give %s one", model, client)


def _account(judge: JudgeSettings) -> Account:
    if judge.client is not None:
        account = Account(Concurrency(judge.concurrency))
    else:
        account = account_named(judge.account, judge.concurrency)
    account.bears(judge.concurrency, judge.requests_per_minute, judge.tokens_per_minute)
    return account


def recorded(path: Path) -> Replies:
    """Return the replies in a file, for replay.

    Raises:
        StoreError: The file cannot be used.
    """
    if not path.exists():
        raise StoreError(f"{path}: does not exist; there is nothing to replay")
    return RecordedReplies(path) if path.suffix == ".jsonl" else SharedReplies(path, read_only=True)


def check_replies(path: Path, mode: CacheMode) -> None:
    """Check that replies can be stored in a file, or replayed from it.

    Raises:
        StoreError: The file cannot be used.
    """
    if mode == "replay" and (path.suffix == ".jsonl" or not path.exists()):
        recorded(path)
    else:
        CachedReplies(path, read_only=mode == "replay").close()
