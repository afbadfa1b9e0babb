"""A Redis server: what is sent to it, and what happens while it is away. Its seconds pass at once here."""

import asyncio
import sys

import pytest
import redis

from judgekit.errors import ConfigError, StoreError
from judgekit.judges.judge import Judge
from judgekit.judges.layers import connect_redis
from judgekit.judges.redis import server as module
from judgekit.judges.redis.address import RedisAddress
from judgekit.judges.redis.server import Command, RedisServer

PING = Command(("PING",))
GONE = redis.ConnectionError("Connection refused.")


class Away:
    """A server whose first attempts fail, and the seconds that passed meanwhile."""

    def __init__(self, connected, errors, monkeypatch, way):
        self.client, self.connection = connected
        self.errors, self.seconds, self.attempts = list(errors), 0.0, 0
        self._execute, self._send = self.client.pipeline, self.connection.send_packed_command
        self.client.pipeline, self.connection.send_packed_command = self._pipeline, self._packed
        monkeypatch.setattr(module, "connect", lambda _: connected)
        monkeypatch.setattr(module.time, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(module.time, "sleep", self._sleep)
        monkeypatch.setattr(module.asyncio, "sleep", self._asleep)
        self.server, self._way = RedisServer(RedisAddress("redis://fake.test")), way

    def _sleep(self, seconds):
        self.seconds += seconds

    async def _asleep(self, seconds):
        self._sleep(seconds)

    def _attempt(self):
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)

    def _pipeline(self, **options):
        self._attempt()
        return self._execute(**options)

    async def _packed(self, *arguments, **options):
        self._attempt()
        return await self._send(*arguments, **options)

    def send(self, *commands):
        """The results of commands, in one of both ways."""
        if self._way == "run":
            return [one in (True, b"PONG") for one in self.server.run(*commands)]

        async def ask():
            found = await asyncio.gather(*map(self.server.ask, commands), return_exceptions=True)
            await self.server.aclose()
            for one in found:
                if isinstance(one, Exception):
                    raise one
            return [one == b"PONG" for one in found]

        return asyncio.run(ask())


@pytest.fixture(params=["run", "ask"])
def away(redis_server, monkeypatch, request):
    """Gives a server whose first attempts fail with these errors, and which is used in one of both ways."""
    return lambda errors: Away(redis_server.connect(""), errors, monkeypatch, request.param)


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
    found = away([error] * 9)
    assert found.send(PING) == [True]
    assert 2 < found.seconds < 20


def test_a_server_that_is_away_for_long_is_an_error_and_then_each_command_is_tried_once(away):
    found = away([GONE] * 1_000)
    with pytest.raises(StoreError) as info:
        found.send(PING)
    assert str(info.value) == (
        f"redis://fake.test: Redis is away for {found.seconds:.0f} s: Connection refused; start it; "
        "judgekit resume continues from here"
    )
    assert 19 <= found.seconds <= 20
    before = found.attempts
    with pytest.raises(StoreError, match="Redis is away: Connection refused"):
        found.send(PING, PING)
    assert found.attempts == before + 1
    found.errors.clear()
    assert found.send(PING) == [True]
    found.errors = [GONE] * 3
    assert found.send(PING) == [True]  # it is waited for again


@pytest.mark.parametrize(
    "error",
    [
        redis.AuthenticationError("WRONGPASS invalid username-password pair or user is disabled."),
        redis.exceptions.NoPermissionError("this user has no permissions to run the 'evalsha' command"),
    ],
)
def test_a_server_that_refuses_the_password_is_not_asked_again(away, error):
    found = away([error])
    with pytest.raises(
        StoreError, match=f"redis://fake.test: Redis refuses the user or password: {str(error).rstrip('.')}; "
    ):
        found.send(PING)
    assert found.attempts == 1


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
        await server.aclose()

    asyncio.run(test())
    assert redis_server.client.lrange("list", 0, -1) == [str(place).encode() for place in range(50)]


def test_what_waits_when_the_event_loop_ends_is_sent_all_the_same(redis_server):
    async def leave():
        server = RedisServer(redis_server.address)
        asked = asyncio.create_task(server.ask(Command(("SET", "a", "1"))))
        await asyncio.sleep(0)
        server.post(Command(("SET", "b", "2")))
        return asked

    assert asyncio.run(leave()).cancelled()
    assert redis_server.client.mget("a", "b") == [b"1", b"2"]


def test_an_event_loop_that_ends_does_not_wait_for_a_server_that_is_away(free_port, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECONDS", float("inf"))

    async def leave():
        server = RedisServer(RedisAddress(f"redis://127.0.0.1:{free_port}"))
        server.post(PING)
        await asyncio.sleep(0.05)

    asyncio.run(leave())


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
