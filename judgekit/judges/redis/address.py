"""Addresses of Redis and Valkey servers, which never hold a password unless they are in the environment."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from judgekit.errors import ConfigError
from judgekit.judges.offline import is_local_address
from judgekit.judges.providers.secrets import is_secret_name

REDIS_VARIABLE = "JUDGEKIT_REDIS_URL"
"""The usual name of the variable that holds an address with a password."""
SIGNING_VARIABLE = "JUDGEKIT_CACHE_SECRET"
"""The variable whose text signs replies, so that others who can write to the server cannot forge them."""
_SHORTEST_SECRET = 16

_SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis", "valkeys": "rediss"}
"""The schemes of addresses, and what the client library calls them."""
_EXAMPLE = "redis://localhost:6379/0"
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True)
class RedisAddress:
    """The address of a Redis or Valkey server.

    Attributes:
        url: The address, without user and password; empty if a variable holds it.
        env: The environment variable that holds the address.
    """

    url: str = ""
    env: str = ""

    def __str__(self) -> str:
        return self.url or self.env

    def read(self) -> str:
        """Return the whole address, perhaps with a password, in the form that the client library takes.

        Raises:
            ConfigError: The variable is not set, or holds no address.
        """
        url = self.url or os.environ.get(self.env, "").strip()
        if not url:
            raise ConfigError(f"cache: set the environment variable {self.env} to an address such as {_EXAMPLE}")
        if not _is_address(url):  # it is not shown, since it may hold a password
            raise ConfigError(f"cache: {self.env} holds no address of a Redis server, such as {_EXAMPLE}")
        scheme, _, rest = url.partition("://")
        return f"{_SCHEMES[scheme]}://{rest}"

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        url = self.read()
        return url.startswith("unix:") or is_local_address(url)


def cache_secret() -> bytes:
    """Return the secret that signs replies; empty if none is set.

    Raises:
        ConfigError: It is short enough to be guessed.
    """
    secret = os.environ.get(SIGNING_VARIABLE, "").strip()
    if 0 < len(secret) < _SHORTEST_SECRET:
        raise ConfigError(
            f"{SIGNING_VARIABLE}: needs at least {_SHORTEST_SECRET} characters, as openssl rand -hex 32 writes"
        )
    return secret.encode(errors="surrogateescape")


def cache_place(value: object) -> object:
    """Return the place of a cache, from its form in settings: a file, an address, or the variable that holds one.

    Raises:
        ConfigError: The address is not one of a Redis server, or holds a password.
    """
    if isinstance(value, dict):
        given = cast("dict[str, object]", value)
        name = given.get("env")
        if not (
            isinstance(name, str) and len(given) == 1 and _VARIABLE.fullmatch(name)
        ):  # it may be the address itself
            raise ConfigError(f"cache: env must name an environment variable in capitals, such as {REDIS_VARIABLE}")
        return RedisAddress(env=name)
    if not isinstance(value, str) or "://" not in value:
        return value
    if _holds_secret(value):
        raise ConfigError(
            "cache: the address may not contain a user or password: put it into an environment variable, such as "
            f'{REDIS_VARIABLE}, and set cache = {{env = "{REDIS_VARIABLE}"}}'
        )
    if not _is_address(value):
        raise ConfigError(
            f"cache: expected a file, or an address such as {_EXAMPLE} or valkeys://host, found {value!r}"
        )
    return RedisAddress(url=value)


def cache_option(text: str) -> Path | RedisAddress:
    """Return the place of a cache, from its form on the command line: ``env:NAME`` is a variable with the address.

    Raises:
        ConfigError: The address is not one of a Redis server, or holds a password.
    """
    cache = cache_place({"env": text.removeprefix("env:")} if text.startswith("env:") else text)
    return cache if isinstance(cache, RedisAddress) else Path(text)


def _holds_secret(url: str) -> bool:
    parts = url.partition("://")[2].partition("?")
    return "@" in parts[0] or any(is_secret_name(name) or name == "username" for name, _ in parse_qsl(parts[2]))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        path = parts.path.removeprefix("/")
        fits = bool(path) if parts.scheme == "unix" else bool(parts.hostname) and (path or "0").isdecimal()
        return parts.scheme in _SCHEMES and fits and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:
        return False
