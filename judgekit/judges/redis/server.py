"""A Redis or Valkey server that processes and machines share: sends commands, and waits while it is away."""

import logging
import random
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias, cast

import redis
from redis import exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from judgekit.errors import ConfigError, StoreError
from judgekit.judges.redis.address import REDIS_VARIABLE, RedisAddress

PATIENCE_SECONDS = 20.0
"""Seconds for which a server may be away, as while it restarts."""

Word: TypeAlias = bytes | str | int
Command: TypeAlias = tuple[Word, ...]

_CONNECT_TIMEOUT, _TIMEOUT = 3, 5
_BLOCK = 16
"""The number of keys that are listed at once, whose values may be long."""
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
    OSError,
)
"""Errors that may pass: the server restarts, or another one takes its place."""

_log = logging.getLogger("judgekit")


def script(text: str, keys: Sequence[Word], *arguments: Word) -> Command:
    """Return the command that runs a Lua script, which the server does as one step.

    A script has to be such that it does no harm twice: a command whose answer is lost is sent again.
    """
    return ("EVAL", text, len(keys), *keys, *arguments)


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

    Once it was away for so long, each command is tried once, until one succeeds. Any thread may use it.

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

    def run(self, command: Command) -> Any:
        """Return the result of a command. It blocks.

        Raises:
            StoreError: The server is away, or refuses the command.
        """
        began, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            try:
                result = cast("object", self._client.execute_command(*command))  # type: ignore[no-untyped-call]
            except _REFUSED as error:
                raise self._explained(error) from error
            except _AWAY as error:
                waited = time.monotonic() - began
                if self._is_away or waited + pause > PATIENCE_SECONDS:
                    self._is_away = True
                    state = "is away" if waited < 1 else f"is away for {waited:.0f} s"
                    raise self._explained(error, state, "start it; judgekit resume continues from here") from error
                time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
                pause = min(2 * pause, _LONGEST_PAUSE)
            except redis.RedisError as error:
                self._is_away = False
                raise self._explained(error) from error
            else:
                self._is_away = False
                return result

    def scan(self, prefix: bytes) -> Iterator[list[bytes]]:
        """Yield the keys with a prefix, in blocks; some may come twice."""
        cursor: Word = 0
        while True:
            cursor, keys = self.run(("SCAN", cursor, "MATCH", prefix + b"*", "COUNT", _BLOCK))
            yield keys
            if not cursor:
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
        """Close the connections. Whoever still sends something opens one anew."""
        self._client.close()


def connect(url: str) -> redis.Redis:
    """Return a client, which connects with the first command."""
    client = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        url,
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=_CONNECT_TIMEOUT,
        retry=Retry(NoBackoff(), 0),  # `RedisServer` retries
    )
    client.connection_pool.make_connection()  # raises for unknown options
    return client


def _version(about: Mapping[str, object]) -> str:
    valkey = about.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {about.get('redis_version', '')}".rstrip()


@cache
def _warn_once(text: str) -> None:
    _log.warning("%s", text)
