"""A Redis server: what is sent to it, and what happens while it is away. Its seconds pass at once here."""

import asyncio
import sys

import pytest
import redis

from judgekit.errors import ConfigError, StoreError
from judgekit.judges import redis_server as module
from judgekit.judges.judge import Judge
from judgekit.judges.layers import connect_redis
from judgekit.judges.redis_address import RedisAddress
from judgekit.judges.redis_server import Command, RedisServer

PING = Command(("PING",))
GONE = redis.ConnectionError("Connection refused.")


class Away:
    """A client whose first attempts fail, and the seconds that passed meanwhile."""

    def __init__(self, client, errors, monkeypatch):
        self.client, self.errors, self.seconds, self.attempts = client, list(errors), 0.0, 0
        self.connection_pool = client.connection_pool
        monkeypatch.setattr(module.time, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(module.time, "sleep", self._sleep)

    def _sleep(self, seconds):
        self.seconds += seconds

    def execute_command(self, *words):
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.client.execute_command(*words)

    def pipeline(self, **_):
        self.execute_command("PING")
        return self.client.pipeline()

    def close(self):
        self.client.close()


@pytest.fixture
def away(redis_server, monkeypatch):
    """Gives a server whose first attempts fail with these errors."""

    def made(errors):
        client = Away(redis_server.client, errors, monkeypatch)
        monkeypatch.setattr(module, "connect", lambda _: client)
        return RedisServer(redis_server.address), client

    return made


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
    server, client = away([error] * 9)
    assert server.run(PING) == [True]
    assert 2 < client.seconds < 20
    server.close()


def test_a_server_that_is_away_for_long_is_an_error_and_then_each_command_is_tried_once(away):
    server, client = away([GONE] * 1_000)
    with pytest.raises(StoreError) as info:
        server.run(PING)
    assert str(info.value) == (
        f"redis://fake.test: Redis is away for {client.seconds:.0f} s: Connection refused; start it; "
        "judgekit resume continues from here"
    )
    assert 19 <= client.seconds <= 20
    before = client.attempts
    with pytest.raises(StoreError, match="Redis is away: Connection refused"):
        server.run(PING, PING)
    assert client.attempts == before + 1
    client.errors.clear()
    assert server.run(PING) == [True]
    client.errors = [GONE] * 3
    assert server.run(PING) == [True]  # it is waited for again
    server.close()


@pytest.mark.parametrize(
    "error",
    [
        redis.AuthenticationError("WRONGPASS invalid username-password pair or user is disabled."),
        redis.exceptions.NoPermissionError("this user has no permissions to run the 'evalsha' command"),
    ],
)
def test_a_server_that_refuses_the_password_is_not_asked_again(away, error):
    server, client = away([error])
    with pytest.raises(
        StoreError, match=f"redis://fake.test: Redis refuses the user or password: {str(error).rstrip('.')}; "
    ):
        server.run(PING)
    assert client.attempts == 1
    server.close()


def test_commands_that_wait_are_sent_together_in_their_order_and_fail_alone(redis_server):
    async def test():
        server = RedisServer(redis_server.address)
        asked = [server.ask(Command(("RPUSH", "list", place))) for place in range(50)]
        asked.insert(25, server.ask(Command(("INCR", "list"))))
        server.post(Command(("SET", "posted", "1")))
        found = await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(StoreError, match="Redis cannot be used as a cache: WRONGTYPE"):
            raise found.pop(25)
        assert found == [*range(1, 51)]
        assert await server.ask(Command(("GET", "posted"))) == b"1"
        server.close()

    asyncio.run(test())
    assert redis_server.client.lrange("list", 0, -1) == [str(place).encode() for place in range(50)]


def test_what_waits_is_sent_before_the_connection_closes_and_the_loop_may_be_gone(redis_server):
    server = RedisServer(redis_server.address)

    async def leave():
        asyncio.create_task(server.ask(Command(("SET", "a", "1"))))  # noqa: RUF006 - it is left alone
        await asyncio.sleep(0)

    asyncio.run(leave())
    server.close()
    assert redis_server.client.get("a") == b"1"


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "judgekit.judges.redis_server", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError, match=r"cache = 'redis://h' needs redis: pip install 'judgekit\[redis\]'"):
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
