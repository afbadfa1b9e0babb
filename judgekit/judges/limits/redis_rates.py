"""The limits of an account in Redis: requests and tokens a minute, pauses and rejections, for all machines together."""

import hashlib
import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import ceil

from judgekit.errors import AuthenticationError, JudgeError, QuotaError
from judgekit.judges.redis.server import Command, RedisServer, script
from judgekit.score import known_outages
from judgekit.threads import finish_in_thread

_ACCOUNT, _FAILED = b"jk1:a:", b"jk1:f:"
"""The prefixes of when accounts are free again, and of their rejections."""
_MICRO = 10**6
_BURST = _MICRO // 4
"""Microseconds whose units may be used at once, so that a process that is late by a moment loses none."""
_SPREAD = _MICRO
"""Microseconds over which the first requests after a pause are spread."""
_KINDS = {"authentication": AuthenticationError, "quota": QuotaError}

_TAKE_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local since = tonumber(ARGV[1])
for _, key in ipairs(KEYS) do
    local kind = redis.call('TYPE', key)['ok']
    if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', key) end
end
for _, failure in ipairs(since and redis.call('HMGET', KEYS[2], '', ARGV[2]) or {}) do
    local at, kind = string.match(failure or '', '^(%d+) (%a+)$')
    at = tonumber(at)
    if at and at > since and at <= now and (kind == 'authentication' or kind == 'quota') then return {-1, kind} end
end
local state, names = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'paused'), {'requests', 'tokens'}
for field = 1, 3 do
    local at = tonumber(state[field] or 0)
    local latest = now + (field < 3 and 86400000000 or 3600000000)
    state[field] = at and at <= latest and at or 0
end
local burst, start, free = tonumber(ARGV[3]), now, {}
for unit = 1, 2 do
    if ARGV[4 + unit] ~= '' then
        free[unit] = math.max(state[unit], now - burst)
        start = math.max(start, free[unit])
    end
end
if state[3] > start then start = state[3] + ARGV[4] end
for unit = 1, 2 do
    if free[unit] then
        local at = math.max(free[unit], start - burst) + ARGV[4 + unit]
        redis.call('HSET', KEYS[1], names[unit], string.format('%.0f', at))
        redis.call('EXPIREAT', KEYS[1], string.format('%.0f', math.ceil(math.max(start, at) / 1000000) + 3600))
    end
end
return {now, start - now}
"""
"""The generic cell rate algorithm, once for requests and once for tokens: it assigns the next time at which both fit.

Times beyond a day, or pauses beyond the hour for which they are kept, are not ours, and count as none.
"""
_ADJUST_SCRIPT = """
for unit, name in ipairs({'requests', 'tokens'}) do
    if ARGV[unit] ~= '0' and redis.call('HEXISTS', KEYS[1], name) == 1 then
        redis.call('HINCRBY', KEYS[1], name, ARGV[unit])
    end
end
"""
_PAUSE_SCRIPT = """
local time = redis.call('TIME')
local until_ = time[1] * 1000000 + time[2] + ARGV[1]
local before = tonumber(redis.call('HGET', KEYS[1], 'paused') or 0)
if not (before and before <= time[1] * 1000000 + 3600000000 and before >= until_) then
    redis.call('HSET', KEYS[1], 'paused', string.format('%.0f', until_))
    redis.call('EXPIRE', KEYS[1], 3600)
end
"""
_FAIL_SCRIPT = """
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', time[1] * 1000000 + time[2]) .. ' ' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], 3600)
"""


class RedisRates:
    """The rates of an account that machines share. Each request gets the next free time, which then is taken.

    Args:
        server: The server, which the rates close.
        account: The name of the account, which is stored as a hash.
    """

    def __init__(self, server: RedisServer, account: object) -> None:
        self._server = server
        self._thread = ThreadPoolExecutor(1, "judgekit-rates")  # one thread, which keeps the order
        name = hashlib.sha256(json.dumps(account).encode()).digest()[:16]
        self._account, self._failed = _ACCOUNT + name, _FAILED + name
        self._outages: object = None
        self._since = 0

    async def take(self, judge: str, seconds: Sequence[float | None]) -> float:
        """Return the seconds until a request of a judge may start, by the ``seconds`` that its units take.

        Raises:
            JudgeError: The account turned away a request of another process, during this run of judges.
            StoreError: The server is away.
        """
        outages = known_outages()
        since = self._since if self._outages is outages else ""
        jitter = random.randrange(_SPREAD)  # noqa: S311 - no secret
        arguments = (since, judge, _BURST, jitter, *_micro(seconds))
        command = script(_TAKE_SCRIPT, (self._account, self._failed), *arguments)
        now, wait = await finish_in_thread(self._thread, partial(self._server.run, command))
        if now < 0:
            raise _failure(judge, wait.decode())
        if since == "":
            self._outages, self._since = outages, now
        return float(wait / _MICRO)

    def adjust(self, seconds: Sequence[float | None]) -> None:
        """Use units that take more seconds, or return some (negative), once their number is known."""
        self._post(script(_ADJUST_SCRIPT, (self._account,), *(units or 0 for units in _micro(seconds))))

    def pause(self, seconds: float) -> None:
        """Start no request for a number of seconds, and then not all at once."""
        self._post(script(_PAUSE_SCRIPT, (self._account,), ceil(seconds * _MICRO)))

    def fail_waiting(self, failure: Exception, judge: str) -> None:
        """Fail the requests of all runs that are under way, or only those for one judge."""
        for kind, error in _KINDS.items():
            if isinstance(failure, error):
                self._post(script(_FAIL_SCRIPT, (self._failed,), judge, kind))

    def _post(self, command: Command) -> None:
        self._thread.submit(self._server.run, command)

    async def aclose(self) -> None:
        """Send what waits, and close the connections."""
        await finish_in_thread(self._thread, self._server.close)


def _micro(seconds: Sequence[float | None]) -> list[int | str]:
    """Return seconds in microseconds; empty without a limit."""
    return ["" if units is None else ceil(units * _MICRO) for units in seconds]


def _failure(judge: str, kind: str) -> JudgeError:
    event = "rejected the key" if kind == "authentication" else "has no quota left"
    return _KINDS[kind](
        f"{judge}: the provider {event} for another process with this account, which shares its limits through Redis; "
        "see the error there"
    )
