"""A Redis or Valkey server that processes and machines share: sends commands, and waits while it is away."""

import hashlib
import logging
import random
import time
import weakref
from asyncio import Future, get_running_loop
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import redis
from redis import exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from judgekit.errors import ConfigError, StoreError
from judgekit.judges.redis_address import REDIS_VARIABLE, RedisAddress

PATIENCE_SECONDS = 20.0
"""Seconds for which a server may be away, as while it restarts."""

Word: TypeAlias = bytes | str | int

_CONNECT_TIMEOUT, _TIMEOUT = 3, 5
_SETTINGS = ("maxmemory", "maxmemory-policy", "appendonly", "save")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_REFUSED = (redis.AuthenticationError, redis_errors.AuthorizationError, redis_errors.NoPermissionError)
_AWAY = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.ReadOnlyError,
    redis_errors.MasterDownError,
    redis_errors.TryAgainError,
    OSError,
)
"""Errors that may pass: the server restarts, or another one takes its place."""

_log = logging.getLogger("judgekit")


class Command(NamedTuple):
    """A command, with the text of the script if it runs one by its hash."""

    words: tuple[Word, ...]
    script: str = ""


class Script:
    """A Lua script, which the server runs as one step.

    A script has to be such that it does no harm twice: a command whose answer is lost is sent again.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._hash = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, keys: Sequence[Word], *arguments: Word) -> Command:
        """Return the command that runs the script."""
        return Command(("EVALSHA", self._hash, len(keys), *keys, *arguments), self._text)


class ServerReport(NamedTuple):
    """The settings of a server that decide what it may lose; ``unknown`` where it does not tell."""

    version: str
    maxmemory: str
    policy: str
    persistence: str

    def __str__(self) -> str:
        return f"{self.version}, maxmemory-policy {self.policy}, maxmemory {self.maxmemory}, persistence {self.persistence}"

    @property
    def warnings(self) -> list[str]:
        """The settings with which the server may lose something, each with the one to set instead."""
        found: list[str] = []
        if "unknown" in (self.policy, self.persistence):
            found.append(
                "it does not tell its settings (CONFIG is forbidden): make sure of maxmemory-policy noeviction and "
                "appendonly yes"
            )
        if self.policy not in ("noeviction", "unknown") and self.maxmemory != "0":
            found.append(
                f"maxmemory-policy is {self.policy}: once its memory is full, it drops replies, claims, limits or budgets "
                "without notice, and requests are paid twice; set maxmemory-policy noeviction"
            )
        if self.persistence == "off":
            found.append(
                "it stores nothing on disk: a restart loses replies and what budgets have spent; set appendonly yes"
            )
        return found


class RedisServer:
    """A connection to a server. Commands are resent for about 20 s while it is away; then they fail.

    Once it was away for so long, each command is tried once, until one succeeds.

    Args:
        address: The address of the server.

    Raises:
        ConfigError: The address is in a variable that is not set, or has options that do not exist.
    """

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        try:
            self._client = connect(address.read())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"cache: {address} cannot be used as an address of Redis: {error}") from None
        self._thread = ThreadPoolExecutor(1, "judgekit-redis")
        self._lock = Lock()
        self._waiting: list[tuple[Command, Future[Any] | None]] = []
        self._is_away = False
        weakref.finalize(self, self._client.close)

    def check(self) -> ServerReport:
        """Return the settings of the server, at once, and log a warning of each that may lose something.

        Raises:
            StoreError: The server cannot be used.
        """
        try:
            self._client.ping()  # pyright: ignore[reportUnknownMemberType]
            report = ServerReport(self._version(), *self._settings())
        except (redis.RedisError, OSError) as error:
            raise self._explained(error, "cannot be reached", "start it, or check the address") from error
        for warning in report.warnings:
            _warn_once(f"{self.address}: {warning}")
        return report

    def _version(self) -> str:
        try:
            about = self._client.info("server")  # pyright: ignore[reportUnknownMemberType]
        except redis.ResponseError:
            return "Redis"
        valkey = about.get("valkey_version")
        return f"Valkey {valkey}" if valkey else f"Redis {about.get('redis_version')}"

    def _settings(self) -> tuple[str, str, str]:
        try:
            found = self._client.config_get(*_SETTINGS)  # pyright: ignore[reportUnknownMemberType]
        except redis.ResponseError:  # hosts forbid the command, or rename it
            return "unknown", "unknown", "unknown"
        appends, saves = found.get("appendonly") == "yes", found.get("save")
        persistence = "appendonly yes" if appends else f"save {saves}" if saves else "off"
        return found.get("maxmemory") or "0", found.get("maxmemory-policy") or "unknown", persistence

    def run(self, *commands: Command) -> list[Any]:
        """Return the results of commands, which are sent together. It blocks.

        Raises:
            StoreError: The server is away, or refuses one of them.
        """
        found = self._run(commands) if commands else []
        for one in found:
            if isinstance(one, Exception):
                raise one
        return found

    async def ask(self, command: Command) -> Any:
        """Return the result of a command. Commands that wait are sent together, in order, even if callers are cancelled.

        Raises:
            StoreError: The server is away, or refuses the command.
        """
        done: Future[Any] = get_running_loop().create_future()
        self._enqueue(command, done)
        return await done

    def post(self, command: Command) -> None:
        """Send a command soon, and wait for nothing."""
        self._enqueue(command, None)

    def _enqueue(self, command: Command, done: Future[Any] | None) -> None:
        with self._lock:
            self._waiting.append((command, done))
            is_first = len(self._waiting) == 1
        if is_first:
            self._thread.submit(self._send_waiting)

    def _send_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        results = self._run([command for command, _ in waiting])
        ends = [(done, result) for (_, done), result in zip(waiting, results, strict=True) if done is not None]
        for loop in {done.get_loop() for done, _ in ends}:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, [end for end in ends if end[0].get_loop() is loop])

    def _run(self, commands: Sequence[Command]) -> list[Any]:
        """Return results, or in their places errors."""
        began, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            try:
                found = self._send(commands)
            except _REFUSED as error:
                return [self._explained(error) for _ in commands]
            except _AWAY as error:
                waited = time.monotonic() - began
                if self._is_away or waited + pause > PATIENCE_SECONDS:
                    self._is_away = True
                    state = "is away" if waited < 1 else f"is away for {waited:.0f} s"
                    advice = "start it; judgekit resume continues from here"
                    return [self._explained(error, state, advice) for _ in commands]
                self._client.connection_pool.disconnect()
                time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._is_away = False
                return [self._explained(one) if isinstance(one, Exception) else one for one in found]

    def _send(self, commands: Sequence[Command]) -> list[Any]:
        found = self._results(commands)
        if missing := [place for place, one in enumerate(found) if isinstance(one, redis_errors.NoScriptError)]:
            whole = [Command(("EVAL", commands[place].script, *commands[place].words[2:])) for place in missing]
            for place, result in zip(missing, self._results(whole), strict=True):
                found[place] = result
        for one in found:
            if isinstance(one, _AWAY):
                raise one
        return found

    def _results(self, commands: Sequence[Command]) -> list[Any]:
        if len(commands) == 1:
            try:
                return [self._client.execute_command(*commands[0].words)]  # type: ignore[no-untyped-call]
            except redis.ResponseError as error:
                return [error]
        with self._client.pipeline(transaction=False) as pipeline:  # pyright: ignore[reportUnknownMemberType]
            for command in commands:
                pipeline.execute_command(*command.words)  # type: ignore[no-untyped-call]
            return pipeline.execute(raise_on_error=False)

    def scan(self, prefix: bytes) -> Iterable[list[bytes]]:
        """Yield the keys with a prefix, in blocks; some may come twice."""
        cursor: Word = 0
        while True:
            ((cursor, keys),) = self.run(Command(("SCAN", cursor, "MATCH", prefix + b"*", "COUNT", 1000)))
            yield keys
            if not int(cursor):
                return

    def _explained(
        self, error: Exception, found: str = "cannot be used as a cache", advice: str = "use another server"
    ) -> StoreError:
        where, why = str(self.address), str(error).rstrip(".")
        if isinstance(error, _REFUSED) or "NOAUTH" in str(error):
            return StoreError(
                f"{where}: Redis refuses the user or password: {why}; put the address with both into an environment "
                f'variable, such as {REDIS_VARIABLE}, and set cache = {{env = "{REDIS_VARIABLE}"}}'
            )
        if isinstance(error, redis_errors.OutOfMemoryError) or "OOM " in str(error):
            return StoreError(
                f"{where}: the memory of Redis is full (maxmemory): raise it, or delete old replies with judgekit cache "
                "prune; then judgekit resume continues. The replies so far are saved"
            )
        return StoreError(f"{where}: Redis {found}: {why}; {advice}")

    def close(self) -> None:
        """Send what waits, and close the connection. It blocks."""
        self._thread.submit(self._send_waiting).result()
        self._thread.shutdown(wait=False)
        self._client.close()


def connect(url: str) -> redis.Redis:
    """Return a client of the library, which connects with the first command."""
    client = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        url,
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=_CONNECT_TIMEOUT,
        retry=Retry(NoBackoff(), 0),  # `RedisServer` retries
    )
    client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)  # raises for unknown options
    return client


def _settle(ends: Iterable[tuple[Future[Any], Any]]) -> None:
    for done, result in ends:
        if done.cancelled():
            continue
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)


@cache
def _warn_once(text: str) -> None:
    _log.warning("%s", text)
