"""The layers of a client, in their order: cache, retry, rate limit, structured output, budget, recorder, provider."""

import logging
from contextlib import AsyncExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from judgekit.distribution import install_command
from judgekit.errors import ConfigError, StoreError
from judgekit.judges.cache.cache import Cache, ReplayClient
from judgekit.judges.cache.cassettes import Cassette
from judgekit.judges.cache.replies import ReplyDatabase
from judgekit.judges.cache.store import ReplySource, ReplyStore
from judgekit.judges.call_recorder import CallRecorder
from judgekit.judges.dry_run import DryRunClient
from judgekit.judges.limits.budget_client import BudgetClient
from judgekit.judges.limits.rate_limit import Account, Limits, RateLimit, get_account
from judgekit.judges.limits.spending import Spending, SQLiteSpending
from judgekit.judges.offline import OfflineClient, is_local_address
from judgekit.judges.providers.bodies import MAX_REPLY_BYTES
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.deferred import DeferredClient
from judgekit.judges.providers.provider import get_provider
from judgekit.judges.providers.secrets import read_extras
from judgekit.judges.redis.address import RedisAddress, cache_secret
from judgekit.judges.request import Client, Layer
from judgekit.judges.retry import Retry
from judgekit.judges.settings import JudgeSettings
from judgekit.judges.structured_output import SchemaSupport, StructuredOutput
from judgekit.score import cache_bypassed, current_plan
from judgekit.threads import run_in_thread

BUDGETS_FILE = "budgets.sqlite"
"""The file next to the cache that holds the spending of runs and of named budgets."""
_REDIS_THREADS = 8

if TYPE_CHECKING:
    from judgekit.judges.cache.redis_replies import RedisReplies
    from judgekit.judges.limits.redis_rates import RedisRates
    from judgekit.judges.redis.server import RedisServer

_log = logging.getLogger("judgekit")


async def build_client(
    judge: JudgeSettings,
    spending: Spending | None,
    schema_support: SchemaSupport,
    closing: AsyncExitStack,
    account: Account | None = None,
) -> Layer:
    """Return the outermost layer of a judge in the running event loop. Those of all loops share its spending.

    A thread opens the files, which may take seconds. ``closing`` closes them, and the provider's client at last. The
    ``account`` is that of a client of the user's own; other judges share theirs by name.
    """
    if isinstance(judge.cache, RedisAddress):
        await run_in_thread(lambda: check_replies(judge))
    if (bypassed := cache_bypassed.get()) and judge.cache_mode == "replay":
        raise ConfigError(
            f"{judge.model} replays recorded replies: it cannot be asked again with cache_mode = 'replay'"
        )
    if current_plan.get() is not None:
        is_there = isinstance(judge.cache, RedisAddress) or judge.cache.exists()
        read = judge.cache_mode_used in ("read_write", "replay") and is_there and not bypassed
        stored = await run_in_thread(lambda: open_recorded(judge.cache, judge.max_reply_bytes)) if read else None
        if stored is not None:
            closing.push_async_callback(stored.aclose)
        return DryRunClient(stored, judge.known_price)
    if judge.cache_mode == "replay":
        recorded = await run_in_thread(lambda: open_recorded(judge.cache, judge.max_reply_bytes))
        closing.push_async_callback(recorded.aclose)
        return ReplayClient(recorded)
    provider = await run_in_thread(lambda: provider_client(judge))
    closing.push_async_callback(provider.aclose)
    asking: Layer = provider
    if not isinstance(provider, OfflineClient):  # requests that are not sent are neither counted nor delayed
        account = _account(judge, account, closing)
        asking = CallRecorder(provider, judge.price)
        if spending is not None:  # next to the provider, so that what only waits to be sent reserves nothing
            price = None if judge.budget.usd is None else judge.known_price
            open_shared = partial(open_spending, judge.cache)
            asking = budget = BudgetClient(asking, judge.budget, price, judge.budget_name, open_shared, spending)
            closing.push_async_callback(budget.aclose)
        asking = RateLimit(StructuredOutput(asking, schema_support, provider), account)
        asking = Retry(asking, account.circuit(), judge.attempts)
    if judge.cache_mode_used == "off" or bypassed:
        if judge.cache_mode != "off" and not bypassed:
            _warn_uncached(judge.model, type(judge.client).__name__)
        return asking
    replies = await run_in_thread(lambda: _open_store(judge.cache, max_reply_bytes=judge.max_reply_bytes))
    cache = Cache(asking, replies, judge.cache_mode, judge.store_text)
    closing.push_async_callback(cache.aclose)
    return cache


def provider_client(judge: JudgeSettings) -> Client:
    """Return the client of a judge without layers, not yet connected.

    Raises:
        AuthenticationError: The environment has no key, or lacks a value of ``query`` or ``headers``.
    """
    if judge.client is not None:
        return judge.client
    if judge.offline and not is_local_address(judge.endpoint):
        return OfflineClient()
    provider = get_provider(judge.provider)
    connection = Connection(
        base_url=judge.endpoint,
        api_key=provider.read_key(judge.base_url, judge.api_key_env),
        timeout=judge.attempt_seconds,
        price=judge.known_price,
        extras=read_extras(judge.query, judge.headers, judge.endpoint),
        max_reply_bytes=judge.max_reply_bytes,
        offline=judge.offline,
    )
    return DeferredClient(partial(provider.connect, connection))


@cache
def _warn_uncached(model: str, client: str) -> None:
    _log.warning("%s: replies are not cached, because the client has no identity: give %s one", model, client)


def _account(judge: JudgeSettings, own: Account | None, closing: AsyncExitStack) -> Account:
    """Return the account of a judge; its limits apply until ``closing``."""
    if judge.client is not None:
        account = own or Account()
    elif isinstance(judge.cache, RedisAddress):
        account = get_account((*judge.account, judge.cache), partial(_share_rates, judge.cache, judge.account))
    else:
        account = get_account(judge.account)
    if account.shared is not None:
        closing.push_async_callback(account.shared.aclose)
    limits = Limits(judge.concurrency, judge.requests_per_minute, judge.tokens_per_minute)
    account.add_limits(limits)
    closing.callback(account.remove_limits, limits)
    return account


def open_spending(cache: Path | RedisAddress) -> Spending:
    """Return the spending of runs and of named budgets that share a cache: on its server, or in a file next to it."""
    if not isinstance(cache, RedisAddress):
        return SQLiteSpending(cache.with_name(BUDGETS_FILE))
    server = connect_redis(cache)
    from judgekit.judges.limits.redis_spending import RedisSpending  # noqa: PLC0415 - an extra

    return RedisSpending(server)


def connect_redis(address: RedisAddress) -> "RedisServer":
    """Return a server that can be used.

    Raises:
        ConfigError: The client library is not installed, or the variable that holds the address is not set.
        StoreError: The server cannot be used.
    """
    server = _open_redis(address)
    try:
        server.check()
    except StoreError:
        server.close()
        raise
    return server


def _open_redis(address: RedisAddress) -> "RedisServer":
    try:
        from judgekit.judges.redis.server import RedisServer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError(f"cache = {str(address)!r} needs redis: {install_command('redis')}") from error
    cache_secret()
    return RedisServer(address)


def _share_rates(address: RedisAddress, account: tuple[str, str | None]) -> "RedisRates":
    server = _open_redis(address)
    from judgekit.judges.limits.redis_rates import RedisRates  # noqa: PLC0415 - an extra

    return RedisRates(server, account)


def open_replies(
    location: Path | RedisAddress, *, read_only: bool = False, max_reply_bytes: int = MAX_REPLY_BYTES
) -> "ReplyDatabase | RedisReplies":
    """Return the replies in a file or on a server.

    Raises:
        StoreError: They cannot be used.
    """
    if isinstance(location, Path):
        return ReplyDatabase(location, read_only=read_only)
    server = connect_redis(location)
    from judgekit.judges.cache.redis_replies import RedisReplies  # noqa: PLC0415 - an extra

    return RedisReplies(server, read_only=read_only, max_reply_bytes=max_reply_bytes)


def _open_store(location: Path | RedisAddress, *, read_only: bool = False, max_reply_bytes: int) -> ReplyStore:
    replies = open_replies(location, read_only=read_only, max_reply_bytes=max_reply_bytes)
    if isinstance(location, Path):
        return ReplyStore(replies, at_once=ReplyDatabase(location, read_only=read_only, waits=False))
    return ReplyStore(replies, _REDIS_THREADS)


def open_recorded(location: Path | RedisAddress, max_reply_bytes: int = MAX_REPLY_BYTES) -> ReplySource:
    """Return the replies in a cassette, a file or on a server, for replay.

    Raises:
        StoreError: They cannot be used.
    """
    if isinstance(location, Path):
        if not location.exists():
            raise StoreError(f"{location}: does not exist, so there is nothing to replay")
        if location.suffix == ".jsonl":
            return Cassette(location)
    return _open_store(location, read_only=True, max_reply_bytes=max_reply_bytes)


def check_replies(judge: JudgeSettings) -> None:
    """Check that replies can be stored in the cache of a judge, or replayed from it.

    Raises:
        ConfigError: The cache is on another machine, and the judge is offline.
        StoreError: The cache cannot be used.
    """
    location, mode = judge.cache, judge.cache_mode
    if isinstance(location, RedisAddress):
        if judge.offline and not location.is_local:
            raise ConfigError(f"offline: the cache {location} is on another machine; set cache to a file")
        connect_redis(location).close()
    elif mode == "replay" and (location.suffix == ".jsonl" or not location.exists()):
        open_recorded(location)
    else:
        ReplyDatabase(location, read_only=mode == "replay").close()
