"""A Redis server: what is sent to it, and what happens while it is away. Its seconds pass at once here."""

import sys

import pytest
import redis

from judgekit.errors import ConfigError, StoreError
from judgekit.judges.judge import Judge
from judgekit.judges.layers import connect_redis
from judgekit.judges.redis import server as module
from judgekit.judges.redis.address import RedisAddress
from judgekit.judges.redis.server import RedisServer

PING = ("PING",)
GONE = redis.ConnectionError("Connection refused.")


class Away(RedisServer):
    """A server whose first attempts fail, and the seconds that passed meanwhile."""

    def __init__(self, errors, monkeypatch):
        super().__init__(RedisAddress("redis://fake.test"))
        self.errors, self.seconds, self.attempts = list(errors), 0.0, 0
        self._execute, self._client.execute_command = self._client.execute_command, self._attempt
        monkeypatch.setattr(module.time, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(module.time, "sleep", self._sleep)

    def _sleep(self, seconds):
        self.seconds += seconds

    def _attempt(self, *words):
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return self._execute(*words)


@pytest.fixture
def away(redis_server, monkeypatch):
    """Gives a server whose first attempts fail with these errors."""
    return lambda errors: Away(errors, monkeypatch)


@pytest.mark.parametrize(
    "error",
    [
        GONE,
        redis.TimeoutError("Timeout reading from socket"),
        redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
        redis.ReadOnlyError("You can't write against a read only replica."),
        OSError(113, "No route to host"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_server_that_comes_back_in_time_is_waited_for(away, error):
    server = away([error] * 9)
    assert server.run(PING)
    assert 2 < server.seconds < 20


def test_a_server_that_is_away_for_long_is_an_error_and_then_each_command_is_tried_once(away):
    server = away([GONE] * 1_000)
    with pytest.raises(StoreError) as info:
        server.run(PING)
    assert str(info.value) == (
        f"redis://fake.test: Redis is away for {server.seconds:.0f} s: Connection refused; start it; "
        "judgekit resume continues from here"
    )
    assert 19 <= server.seconds <= 20
    before = server.attempts
    with pytest.raises(StoreError, match="Redis is away: Connection refused"):
        server.run(PING)
    assert server.attempts == before + 1
    server.errors.clear()
    assert server.run(PING)
    server.errors = [GONE] * 3
    assert server.run(PING)  # it is waited for again


@pytest.mark.parametrize(
    "error",
    [
        redis.AuthenticationError("WRONGPASS invalid username-password pair or user is disabled."),
        redis.exceptions.NoPermissionError("this user has no permissions to run the 'eval' command"),
    ],
)
def test_a_server_that_refuses_the_password_is_not_asked_again(away, error):
    server = away([error])
    with pytest.raises(
        StoreError, match=f"redis://fake.test: Redis refuses the user or password: {str(error).rstrip('.')}; "
    ):
        server.run(PING)
    assert server.attempts == 1


def test_a_command_that_does_not_fit_is_an_error(away):
    server = away([])
    server.run(("RPUSH", "list", 1))
    with pytest.raises(StoreError, match="Redis cannot be used as a cache: WRONGTYPE"):
        server.run(("INCR", "list"))


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "judgekit.judges.redis.server", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError, match=r"cache = 'redis://h' needs redis: pip install 'redis"):
        connect_redis(RedisAddress("redis://h"))


@pytest.mark.parametrize("options", ["foo=1", "db=x", "socket_timeout=soon"])
def test_options_that_do_not_exist_are_an_error(monkeypatch, options):
    monkeypatch.setenv("MY_REDIS", f"redis://:correct-horse@localhost?{options}")
    with pytest.raises(ConfigError, match="cache: MY_REDIS cannot be used as an address of Redis: ") as info:
        RedisServer(RedisAddress(env="MY_REDIS"))
    assert options.partition("=")[0] in str(info.value)
    assert "horse" not in str(info.value)


def test_a_judge_is_checked_at_once_where_its_server_is_away(free_port):
    judge = Judge("openai/x", base_url="http://localhost:1/v1", cache=f"redis://127.0.0.1:{free_port}")
    with pytest.raises(
        StoreError, match=f"redis://127.0.0.1:{free_port}: Redis cannot be reached: .*; start it, or che"
    ):
        judge.check()
