"""A Redis or Valkey server that processes and machines share: sends commands, and waits while it is away."""

import asyncio
import hashlib
import logging
import random
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias, cast

import redis
from hiredis import pack_command  # pyright: ignore[reportUnknownVariableType]
from redis import exceptions as redis_errors
from redis.asyncio import Connection, ConnectionPool
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from judgekit.errors import ConfigError, StoreError
from judgekit.judges.redis.address import REDIS_VARIABLE, RedisAddress

PATIENCE_SECONDS = 20.0
"""Seconds for which a server may be away, as while it restarts."""

Word: TypeAlias = bytes | str | int

_CONNECT_TIMEOUT, _TIMEOUT = 3, 5
_SETTINGS = ("maxmemory", "maxmemory-policy", "appendonly", "save")
_UNSUPPORTED = {
    "cluster": "is a part of a Redis Cluster, which is not supported: one request's keys are on several of its servers; "
    "use a server that runs without cluster-enabled",
    "sentinel": "is a Sentinel, which holds no data and is not supported: use the address of the server that it watches",
}
"""Why servers of a mode cannot be used."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_REFUSED = (redis.AuthenticationError, redis_errors.AuthorizationError, redis_errors.NoPermissionError)
_AWAY = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.ReadOnlyError,
    redis_errors.MasterDownError,
    redis_errors.TryAgainError,
    redis_errors.NoScriptError,
    OSError,
)
"""Errors that may pass: the server restarts, or another one takes its place, or it has forgotten the scripts."""
_FAILED = (*_REFUSED, *_AWAY)

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
        problems: list[str] = []
        if "unknown" in (self.policy, self.persistence):
            problems.append(
                "it does not tell its settings (CONFIG is forbidden): make sure of maxmemory-policy noeviction and "
                "appendonly yes"
            )
        if self.policy not in ("noeviction", "unknown") and self.maxmemory != "0":
            problems.append(
                f"maxmemory-policy is {self.policy}: once its memory is full, it drops replies, claims, limits or budgets "
                "without notice, and requests are paid twice; set maxmemory-policy noeviction"
            )
        if self.persistence == "off":
            problems.append(
                "it stores nothing on disk: a restart loses replies and what budgets have spent; set appendonly yes"
            )
        return problems


class RedisServer:
    """The connections to a server. Commands are resent for about 20 s while it is away; then they fail.

    Once it was away for so long, each command is tried once, until one succeeds. `ask` and `post` are for one event
    loop; `run` blocks, and any thread may call it.

    Args:
        address: The address of the server.

    Raises:
        ConfigError: The address is in a variable that is not set, or has options that do not exist.
    """

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        try:
            self._client, self._connection = connect(address.read())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"cache: {address} cannot be used as an address of Redis: {error}") from None
        self._known = set[str]()
        self._waiting: list[tuple[Command, asyncio.Future[Any] | None]] = []
        self._sending: asyncio.Task[None] | None = None
        self._is_away = False
        weakref.finalize(self, self._client.close)

    def check(self) -> ServerReport:
        """Return the settings of the server, at once, and log a warning of each that may lose something.

        Raises:
            StoreError: The server cannot be used.
        """
        try:
            self._client.ping()  # pyright: ignore[reportUnknownMemberType]
            about = self._about()
            report = ServerReport(_version(about), *self._settings())
        except (redis.RedisError, OSError) as error:
            raise self._explained(error, "cannot be reached", "start it, or check the address") from error
        mode = about.get("server_mode", about.get("redis_mode"))  # of Valkey, and of Redis
        if (why := _UNSUPPORTED.get(str(mode))) is not None:
            raise StoreError(f"{self.address}: {why}")
        for warning in report.warnings:
            _warn_once(f"{self.address}: {warning}")
        return report

    def _about(self) -> dict[str, object]:
        try:
            return cast("dict[str, object]", self._client.info("server"))  # pyright: ignore[reportUnknownMemberType]
        except redis.ResponseError:  # hosts forbid the command
            return {}

    def _settings(self) -> tuple[str, str, str]:
        settings: dict[str | None, str | None] = {}
        try:
            for name in _SETTINGS:  # one by one, as Redis 6 takes them
                settings |= self._client.config_get(name)  # pyright: ignore[reportUnknownMemberType]
        except redis.ResponseError:  # hosts forbid the command, or rename it
            return "unknown", "unknown", "unknown"
        appends, saves = settings.get("appendonly") == "yes", settings.get("save")
        persistence = "appendonly yes" if appends else f"save {saves}" if saves else "off"
        return settings.get("maxmemory") or "0", settings.get("maxmemory-policy") or "unknown", persistence

    def run(self, *commands: Command) -> list[Any]:
        """Return the results of commands, which are sent together. It blocks.

        Raises:
            StoreError: The server is away, or refuses one of them.
        """
        if not commands:
            return []
        began, attempt = time.monotonic(), 0
        while True:
            try:
                replies = self._explained_errors(self._results(commands))
            except _FAILED as error:
                self._client.connection_pool.disconnect()
                time.sleep(self._pause(error, began, attempt))
                attempt += 1
            else:
                for reply in replies:
                    if isinstance(reply, StoreError):
                        raise reply
                return replies

    def _results(self, commands: Sequence[Command]) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:  # pyright: ignore[reportUnknownMemberType]
            for command in commands:
                pipeline.execute_command(*self._words(command))  # type: ignore[no-untyped-call]
            return _checked(pipeline.execute(raise_on_error=False))

    async def ask(self, command: Command) -> Any:
        """Return the result of a command. Commands that wait are sent together, in order, even if callers are canceled.

        Raises:
            StoreError: The server is away, or refuses the command.
        """
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._enqueue(command, done)
        return await done

    def post(self, command: Command) -> None:
        """Send a command soon, and wait for nothing."""
        self._enqueue(command, None)

    def _enqueue(self, command: Command, done: asyncio.Future[Any] | None) -> None:
        self._waiting.append((command, done))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for (_, done), result in zip(waiting, await self._send([command for command, _ in waiting]), strict=True):
                if done is None or done.done():
                    continue
                if isinstance(result, Exception):
                    done.set_exception(result)
                else:
                    done.set_result(result)
        self._sending = None

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        """Return results, or in their places errors."""
        began, attempt = time.monotonic(), 0
        while True:
            try:
                try:
                    return self._explained_errors(await self._answers(commands))
                except _FAILED as error:
                    await asyncio.sleep(self._pause(error, began, attempt))
                    attempt += 1
            except asyncio.CancelledError:  # the event loop ends: one more attempt, so that nothing is lost
                self._is_away = True
            except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
                return [error] * len(commands)

    async def _answers(self, commands: Sequence[Command]) -> list[Any]:
        connection = self._connection
        try:
            async with asyncio.timeout(_TIMEOUT):
                if not connection.is_connected:
                    await connection.connect()  # type: ignore[no-untyped-call]
                packed = b"".join(_packed(self._words(command)) for command in commands)
                await connection.send_packed_command(packed, check_health=False)
                return _checked([await _answer(connection) for _ in commands])
        except BaseException as error:
            await connection.disconnect(nowait=True)
            if isinstance(error, TimeoutError):
                raise redis.TimeoutError(f"no answer within {_TIMEOUT} s") from error
            raise

    def _words(self, command: Command) -> tuple[Word, ...]:
        """Return the words to send: the whole script the first time, and then its hash."""
        if not command.script or command.script in self._known:
            return command.words
        self._known.add(command.script)
        return ("EVAL", command.script, *command.words[2:])

    def _pause(self, error: Exception, began: float, attempt: int) -> float:
        """Return the seconds to wait before the next attempt.

        Raises:
            StoreError: The server refuses the user, or is away for too long.
        """
        self._known.clear()
        if isinstance(error, _REFUSED):
            raise self._explained(error) from error
        waited, pause = time.monotonic() - began, min(_FIRST_PAUSE * (1 << attempt), _LONGEST_PAUSE)
        if self._is_away or waited + pause > PATIENCE_SECONDS:
            self._is_away = True
            state = "is away" if waited < 1 else f"is away for {waited:.0f} s"
            raise self._explained(error, state, "start it; judgekit resume continues from here") from error
        return pause * random.uniform(0.5, 1)  # noqa: S311 - no secret

    def _explained_errors(self, replies: Iterable[Any]) -> list[Any]:
        self._is_away = False
        return [self._explained(reply) if isinstance(reply, Exception) else reply for reply in replies]

    def scan(self, prefix: bytes) -> Iterable[list[bytes]]:
        """Yield the keys with a prefix, in blocks; some may come twice."""
        cursor: Word = 0
        while True:
            ((cursor, keys),) = self.run(Command(("SCAN", cursor, "MATCH", prefix + b"*", "COUNT", 1000)))
            yield keys
            if not int(cursor):
                return

    def _explained(
        self, error: Exception, problem: str = "cannot be used as a cache", advice: str = "use another server"
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
        return StoreError(f"{where}: Redis {problem}: {why}; {advice}")

    def close(self) -> None:
        """Close the connection of `run`."""
        self._client.close()

    async def aclose(self) -> None:
        """Send what waits, and close all connections. Whoever still sends something opens one anew."""
        while self._sending is not None:
            await asyncio.wait([self._sending])
        await self._connection.disconnect()
        self.close()


def connect(url: str) -> tuple[redis.Redis, Connection]:
    """Return a client of the library that blocks, and a connection that does not; both connect with the first command."""
    client = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        url,
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=_CONNECT_TIMEOUT,
        retry=Retry(NoBackoff(), 0),  # `RedisServer` retries
    )
    pool = ConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
        url, socket_timeout=None, socket_connect_timeout=_CONNECT_TIMEOUT, retry=AsyncRetry(NoBackoff(), 0)
    )
    return client, pool.make_connection()  # type: ignore[no-untyped-call]  # raises for unknown options


def _packed(words: tuple[Word, ...]) -> bytes:
    return cast("bytes", pack_command(words))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def _answer(connection: Connection) -> Any:
    try:
        return await connection.read_response()  # pyright: ignore[reportUnknownVariableType]
    except redis.ResponseError as error:
        return error


def _checked(replies: list[Any]) -> list[Any]:
    """Return results, unless one of them is an error that may pass."""
    for reply in replies:
        if isinstance(reply, _AWAY):
            raise reply
    return replies


def _version(about: Mapping[str, object]) -> str:
    valkey = about.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {about.get('redis_version', '')}".rstrip()


@cache
def _warn_once(text: str) -> None:
    _log.warning("%s", text)
