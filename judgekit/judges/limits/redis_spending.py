"""The spending of budgets in Redis, which processes and machines share."""

import logging
from collections import defaultdict, deque
from contextlib import suppress
from math import ceil
from uuid import uuid4

from judgekit.errors import StoreError
from judgekit.judges.limits.budget import Amount, Budget
from judgekit.judges.limits.spending import RESERVATION_LEASE_SECONDS, BudgetRefusal
from judgekit.judges.redis.server import RedisServer, Word, script

_log = logging.getLogger("judgekit")

_SPENT, _LEASES, _NAMES = b"jk1:b:", b"jk1:l:", b"jk1:budgets"
"""The prefixes of what budgets have spent and of the ends of their leases, and the names of all budgets."""
_NANO = 10**9
_MOST = 2**53
"""More than any budget: up to here, the server's numbers are exact. It is 9 million dollars."""

_RESERVE_SCRIPT = """
if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return {} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local spent = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'nano')
if ARGV[2] == 'known' and not spent[1] then return 0 end
for unit = 1, 3 do
    local limit = ARGV[7 + unit]
    if limit ~= '' and tonumber(spent[unit] or 0) + tonumber(ARGV[4 + unit]) > tonumber(limit) then
        local others = redis.call('ZCOUNT', KEYS[2], string.format('%.0f', now), '+inf')
        return {others, spent[1] or '0', spent[2] or '0', spent[3] or '0'}
    end
end
for unit, name in ipairs({'requests', 'tokens', 'nano'}) do redis.call('HINCRBY', KEYS[1], name, ARGV[4 + unit]) end
redis.call('SADD', KEYS[3], ARGV[4])
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[1]), ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 86400000))
return {}
"""
"""Reservations whose leases ended long ago can no longer be settled: they stay charged."""
_SETTLE_SCRIPT = """
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return end
redis.call('HINCRBY', KEYS[1], 'requests', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'nano', ARGV[4])
"""
_RENEW_SCRIPT = """
local time = redis.call('TIME')
local until_ = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1])
for place = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', until_, ARGV[place]) end
"""
_SPENT_SCRIPT = """
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then return {} end
return kind == 'hash' and redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'nano') or {kind}
"""
_RESET_SCRIPT = """
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'requests', 0, 'tokens', 0, 'nano', 0)
redis.call('DEL', KEYS[2])
"""


class RedisSpending:
    """Spending in Redis, in whole requests, tokens and billionths of a dollar, rounded up.

    Args:
        server: The server, which the spending closes.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._held: dict[str, list[tuple[str, Amount]]] = defaultdict(list)
        self._settled: deque[tuple[str, Amount, Amount]] = deque()
        self._known = set[str]()

    def amount(self, name: str) -> Amount:
        """Return the spending of a budget, including reservations."""
        return self._whole_amount(name, self._units_spent(name))

    def reserve(self, name: str, budget: Budget, amount: Amount) -> BudgetRefusal | None:
        """Reserve the most that a request may take, unless that would exceed a limit.

        Raises:
            StoreError: The server has forgotten the budget.
        """
        self.flush()
        reservation, state = uuid4().hex, "known" if name in self._known else ""
        usd = None if budget.usd is None else _nano(budget.usd)
        limits = ["" if limit is None else limit for limit in (budget.requests, budget.tokens, usd)]
        words = (_lease(), state, reservation, name, *_units(amount), *limits)
        spent = self._server.run(script(_RESERVE_SCRIPT, (*_keys(name), _NAMES), *words))
        if spent == 0:
            raise StoreError(
                f"{self._server.address}: Redis has forgotten what was spent: it was emptied, or restarted without "
                "persistence; set appendonly yes. judgekit resume continues, and the budget then begins at zero"
            )
        if not spent:
            self._known.add(name)
            self._held[name].append((reservation, amount))
            return None
        others = int(spent.pop(0))
        shown = Amount(amount.requests, amount.tokens, _nano(amount.usd) / _NANO)
        limit = budget.limit_exceeded_by(self._whole_amount(name, spent), shown) or str(budget)
        return BudgetRefusal(limit, may_fit_later=bool(others))

    def settle(self, name: str, reserved: Amount, used: Amount) -> None:
        """Replace a reservation with the amount that the request took. Equal reservations are interchangeable."""
        self._settled.append((name, reserved, used))

    def flush(self) -> None:
        """Record what was settled. What cannot be recorded now is recorded later."""
        while self._settled:
            name, reserved, used = self._settled[0]
            held = next(held for held in self._held[name] if held[1] == reserved)
            more = (unit - of_reserved for unit, of_reserved in zip(_units(used), _units(reserved), strict=True))
            self._server.run(script(_SETTLE_SCRIPT, _keys(name), held[0], *more))
            self._held[name].remove(held)
            self._settled.popleft()

    def renew(self) -> None:
        """Renew the lease of the requests under way from here, and record what was settled."""
        self.flush()
        for name, held in self._held.items():
            if held:
                _, leases = _keys(name)
                self._server.run(script(_RENEW_SCRIPT, (leases,), _lease(), *(reservation for reservation, _ in held)))

    def reset(self, name: str) -> None:
        """Set the spending of a budget to zero. Requests under way are not counted."""
        self.flush()
        self._server.run(script(_RESET_SCRIPT, _keys(name)))

    def by_budget(self) -> dict[str, Amount]:
        """Return the spending of all budgets, by name."""
        spent: dict[str, Amount] = {}
        for member in sorted(self._server.run(("SMEMBERS", _NAMES))):
            name = member.decode(errors="surrogateescape")
            units = self._units_spent(name)
            try:
                spent[name] = self._whole_amount(name, units)
            except StoreError as error:
                _log.warning("%s", error)
        return spent

    def _units_spent(self, name: str) -> list[Word]:
        self.flush()
        return self._server.run(script(_SPENT_SCRIPT, _keys(name)[:1])) or [0, 0, 0]

    def _whole_amount(self, name: str, units: list[Word]) -> Amount:
        try:
            name.encode()
            return _amount([int(unit or 0) for unit in units])
        except ValueError as error:
            key = (_SPENT + name.encode(errors="surrogateescape")).decode(errors="backslashreplace")
            raise StoreError(
                f"{self._server.address}: skipped a budget whose spending is no number, or whose name no text; delete "
                f"the key {key!r} in Redis, and the budget begins at zero"
            ) from error

    def close(self) -> None:
        """Record what was settled, unless the server is away, and close the connection."""
        with suppress(StoreError):
            self.flush()
        self._server.close()


def _keys(name: str) -> tuple[bytes, bytes]:
    member = name.encode(errors="surrogateescape")
    return _SPENT + member, _LEASES + member


def _lease() -> int:
    return int(RESERVATION_LEASE_SECONDS * 1000)


def _nano(usd: float) -> int:
    return min(ceil(round(usd * _NANO, 3)), _MOST)


def _units(amount: Amount) -> tuple[int, int, int]:
    return amount.requests, amount.tokens, _nano(amount.usd)


def _amount(units: list[int]) -> Amount:
    requests, tokens, nano = (max(0, unit) for unit in units)
    return Amount(requests, tokens, nano / _NANO)
