"""The layers of a client, in their order: cache, retry, budget, breaker, rate limit, ladder, provider."""

import logging
from functools import cache, partial
from pathlib import Path

from judgekit.errors import StoreError
from judgekit.judges.breaker import CircuitBreaker
from judgekit.judges.budget import Budget
from judgekit.judges.cache import Cache, CacheMode, ReplayClient
from judgekit.judges.cassettes import Cassette
from judgekit.judges.client import Client
from judgekit.judges.concurrency import ConcurrencyLimit
from judgekit.judges.connection import Connection
from judgekit.judges.deferred import DeferredClient
from judgekit.judges.dry_run import DryRunClient
from judgekit.judges.offline import OfflineClient, is_local_address
from judgekit.judges.providers import get_provider
from judgekit.judges.rate_limit import Account, RateLimit, get_account
from judgekit.judges.replies import ReplyDatabase
from judgekit.judges.retry import Retry
from judgekit.judges.secrets import read_extras
from judgekit.judges.settings import JudgeSettings
from judgekit.judges.spending import Spending
from judgekit.judges.store import ReplySource, SQLiteReplyStore
from judgekit.judges.structured_output import SchemaSupport, StructuredOutput
from judgekit.score import current_plan
from judgekit.threads import run_in_thread

_log = logging.getLogger("judgekit")


async def build_client(judge: JudgeSettings, spending: Spending | None, schema_support: SchemaSupport) -> Client:
    """Return the client of a judge for the running event loop. All clients of a judge share its spending and footing.

    A thread opens the files, which may take seconds.
    """
    if current_plan() is not None:
        read = judge.cache_mode_used in ("read_write", "replay") and judge.cache.exists()
        return DryRunClient(await run_in_thread(lambda: open_replies(judge.cache)) if read else None, judge.known_price)
    if judge.cache_mode == "replay":
        return ReplayClient(await run_in_thread(lambda: open_replies(judge.cache)))
    asking = await run_in_thread(lambda: provider_client(judge))
    if not isinstance(asking, OfflineClient):  # requests that are not sent are neither counted nor delayed
        account = _account(judge)
        asking = CircuitBreaker(
            RateLimit(StructuredOutput(asking, schema_support), account), account.circuit, judge.attempts
        )
        if spending is not None:
            price = None if judge.budget.usd is None else judge.known_price
            asking = Budget(asking, judge.budget, price, judge.budget_name, judge.cache.parent, spending)
        asking = Retry(asking, judge.attempts)
    if judge.cache_mode_used == "off":
        if judge.cache_mode != "off":
            _warn_uncached(judge.model, type(judge.client).__name__)
        return asking
    replies = await run_in_thread(lambda: SQLiteReplyStore(judge.cache))
    return Cache(asking, replies, judge.cache_mode, judge.store_text)


def provider_client(judge: JudgeSettings) -> Client:
    """Return the client of a judge without layers, not yet connected.

    Raises:
        AuthenticationError: The environment has no key, or lacks a value of ``query`` or ``headers``.
    """
    if judge.client is not None:
        return judge.client
    if judge.offline and not is_local_address(judge.endpoint):
        return OfflineClient()
    return DeferredClient(partial(get_provider(judge.provider).connect, connection_settings(judge)))


def connection_settings(judge: JudgeSettings) -> Connection:
    """Return the settings of the connection to a judge's provider.

    Raises:
        AuthenticationError: The environment has no key, or lacks a value of ``query`` or ``headers``.
    """
    return Connection(
        base_url=judge.endpoint,
        api_key=get_provider(judge.provider).read_key(judge.base_url, judge.api_key_env),
        timeout=judge.timeout,
        price=judge.known_price,
        extras=read_extras(judge.query, judge.headers, judge.endpoint),
        max_reply_bytes=judge.max_reply_bytes,
    )


@cache
def _warn_uncached(model: str, client: str) -> None:
    _log.warning("%s: replies are not cached, because the client has no identity: give %s one", model, client)


def _account(judge: JudgeSettings) -> Account:
    if judge.client is not None:
        account = Account(ConcurrencyLimit(judge.concurrency))
    else:
        account = get_account(judge.account, judge.concurrency)
    account.apply_limits(judge.concurrency, judge.requests_per_minute, judge.tokens_per_minute)
    return account


def open_replies(path: Path) -> ReplySource:
    """Return the replies in a file, for replay.

    Raises:
        StoreError: The file cannot be used.
    """
    if not path.exists():
        raise StoreError(f"{path}: does not exist, so there is nothing to replay")
    return Cassette(path) if path.suffix == ".jsonl" else SQLiteReplyStore(path, read_only=True)


def check_reply_file(path: Path, mode: CacheMode) -> None:
    """Check that replies can be stored in a file, or replayed from it.

    Raises:
        StoreError: The file cannot be used.
    """
    if mode == "replay" and (path.suffix == ".jsonl" or not path.exists()):
        open_replies(path)
    else:
        ReplyDatabase(path, read_only=mode == "replay").close()
