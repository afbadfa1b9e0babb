"""The limits of an account in Redis: requests and tokens a minute, pauses and rejections, for all machines together."""

import hashlib
import json
import random
from asyncio import get_running_loop
from collections import deque
from collections.abc import Sequence
from math import ceil

from judgekit.errors import AuthenticationError, JudgeError, QuotaError
from judgekit.judges.redis.server import RedisServer, Script
from judgekit.score import known_outages

_ACCOUNT, _FAILED = b"jk1:a:", b"jk1:f:"
"""The prefixes of when accounts are free again, and of their rejections."""
_MICRO = 10**6
_BURST = _MICRO // 4
"""Microseconds whose units may be used at once, so that a process that is late by a moment loses none."""
_SPREAD = _MICRO
"""Microseconds over which the first requests after a pause are spread."""
_KINDS = {"authentication": AuthenticationError, "quota": QuotaError}

_TAKE_SCRIPT = Script("""
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
local burst, latest, found = tonumber(ARGV[3]), now, {now}
for place = 6, #ARGV do
    local units, free, start = {ARGV[5], ARGV[place]}, {}, now
    for unit = 1, 2 do
        if units[unit] ~= '' then
            free[unit] = math.max(state[unit], now - burst)
            start = math.max(start, free[unit])
        end
    end
    if state[3] > start then start = state[3] + ARGV[4] end
    if place > 6 and start > now + burst then break end
    for unit = 1, 2 do
        if free[unit] then
            state[unit] = math.max(free[unit], start - burst) + units[unit]
            latest = math.max(latest, start, state[unit])
        end
    end
    found[#found + 1] = start - now
end
for unit = 1, 2 do
    if ARGV[4 + unit] ~= '' then
        redis.call('HSET', KEYS[1], names[unit], string.format('%.0f', state[unit]))
        redis.call('EXPIREAT', KEYS[1], string.format('%.0f', math.ceil(latest / 1000000) + 3600))
    end
end
return found
""")
"""The generic cell rate algorithm, once for requests and once for tokens: it assigns the next times at which both fit.

Times beyond a day, or pauses beyond the hour for which they are kept, are not ours, and count as none. The first time may
be late; the others are within the length of a burst, so that no process takes much ahead of its use.
"""
_ADJUST_SCRIPT = Script("""
for unit, name in ipairs({'requests', 'tokens'}) do
    if ARGV[unit] ~= '0' and redis.call('HEXISTS', KEYS[1], name) == 1 then
        redis.call('HINCRBY', KEYS[1], name, ARGV[unit])
    end
end
""")
_PAUSE_SCRIPT = Script("""
local time = redis.call('TIME')
local until_ = time[1] * 1000000 + time[2] + ARGV[1]
local before = tonumber(redis.call('HGET', KEYS[1], 'paused') or 0)
if not (before and before <= time[1] * 1000000 + 3600000000 and before >= until_) then
    redis.call('HSET', KEYS[1], 'paused', string.format('%.0f', until_))
    redis.call('EXPIRE', KEYS[1], 3600)
end
""")
_FAIL_SCRIPT = Script("""
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', time[1] * 1000000 + time[2]) .. ' ' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], 3600)
""")


class RedisRates:
    """The rates of an account that machines share. Requests get the next free times, which then are taken.

    Args:
        server: The server, which the rates close.
        account: The name of the account, which is stored as a hash.
    """

    def __init__(self, server: RedisServer, account: object) -> None:
        self._server = server
        name = hashlib.sha256(json.dumps(account).encode()).digest()[:16]
        self._account, self._failed = _ACCOUNT + name, _FAILED + name
        self._requests: int | None = None
        self._tokens: int | None = None
        self._times: deque[tuple[float, int]] = deque()  # when the first in line may start, and with how many tokens
        self._outages: object = None
        self._since = 0

    @property
    def limits_tokens(self) -> bool:
        """Whether there is a limit on tokens."""
        return self._tokens is not None

    def apply_limits(self, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        """Apply the limits of another judge too; the strictest hold."""
        self._requests = min(filter(None, (self._requests, requests_per_minute)), default=None)
        self._tokens = min(filter(None, (self._tokens, tokens_per_minute)), default=None)

    async def take(self, judge: str, tokens: Sequence[int]) -> float:
        """Return 0 if the first request in line may start now, or the seconds to wait before asking again.

        Raises:
            JudgeError: The account turned away a request of another process, during this run of judges.
            StoreError: The server is away.
        """
        clock = get_running_loop().time
        while self._times and self._times[0][0] < clock() - _BURST / _MICRO:  # of a request that was canceled
            self._times.popleft()
        if not self._times:
            waits = await self._assign(judge, tokens)
            now = clock()
            self._times.extend((now + wait / _MICRO, of_one) for wait, of_one in zip(waits, tokens, strict=False))
        start, expected = self._times[0]
        if (wait := start - clock()) > 0:
            return wait
        self._times.popleft()
        if expected != tokens[0]:
            self.adjust(0, tokens[0] - expected)
        return 0

    async def _assign(self, judge: str, tokens: Sequence[int]) -> list[int]:
        outages = known_outages()
        since = self._since if self._outages is outages else ""
        jitter = random.randrange(_SPREAD)  # noqa: S311 - no secret
        units = self._units(1, tokens[0])[0], *(self._units(1, of_one)[1] for of_one in tokens)
        arguments = (since, judge, _BURST, jitter, *units)
        now, *waits = await self._server.ask(_TAKE_SCRIPT((self._account, self._failed), *arguments))
        if now < 0:
            raise _failure(judge, waits[0].decode())
        if since == "":
            self._outages, self._since = outages, now
        return list(waits)

    def adjust(self, requests: int, tokens: int) -> None:
        """Use more units, or return some (negative), once their number is known."""
        units = (unit or 0 for unit in self._units(requests, tokens))
        self._server.post(_ADJUST_SCRIPT((self._account,), *units))

    def pause(self, seconds: float) -> None:
        """Start no request for a number of seconds, and then not all at once."""
        self._server.post(_PAUSE_SCRIPT((self._account,), ceil(seconds * _MICRO)))

    def fail_waiting(self, failure: Exception, judge: str) -> None:
        """Fail the requests of all runs that are under way, or only those for one judge."""
        for kind, error in _KINDS.items():
            if isinstance(failure, error):
                self._server.post(_FAIL_SCRIPT((self._failed,), judge, kind))

    async def aclose(self) -> None:
        """Send what waits, and close the connection."""
        await self._server.aclose()

    def _units(self, requests: int, tokens: int) -> tuple[int | str, int | str]:
        """Return the microseconds that units take; empty without a limit."""
        pairs = ((requests, self._requests), (tokens, self._tokens))
        first, second = ("" if a_minute is None else ceil(units * 60 * _MICRO / a_minute) for units, a_minute in pairs)
        return first, second


def _failure(judge: str, kind: str) -> JudgeError:
    event = "rejected the key" if kind == "authentication" else "has no quota left"
    return _KINDS[kind](
        f"{judge}: the provider {event} for another process with this account, which shares its limits through Redis; "
        "see the error there"
    )
