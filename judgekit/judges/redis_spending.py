"""The spending of budgets in Redis, which processes and machines share."""

from collections import defaultdict
from math import ceil
from typing import cast
from uuid import uuid4

from judgekit.errors import StoreError
from judgekit.judges.redis_server import Command, RedisServer, Script, Word
from judgekit.judges.spending import RESERVATION_LEASE_SECONDS, Amount, BudgetRefusal, Limits

_SPENT, _LEASES, _NAMES = b"jk1:b:", b"jk1:l:", b"jk1:budgets"
"""The prefixes of what budgets have spent and of the ends of their leases, and the names of all budgets."""
_NANO = 10**9
_MOST = 2**53
"""More than any budget: up to here, the server's numbers are exact. It is 9 million dollars."""

_RESERVE_SCRIPT = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 1 end
local spent = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'nano')
if ARGV[4] == 'known' and not spent[1] then return 0 end
for unit = 1, 3 do
    local limit = ARGV[7 + unit]
    if limit ~= '' and tonumber(spent[unit] or 0) + tonumber(ARGV[4 + unit]) > tonumber(limit) then
        local others = redis.call('ZCOUNT', KEYS[2], string.format('%.0f', now), '+inf')
        return {others, spent[1] or '0', spent[2] or '0', spent[3] or '0'}
    end
end
redis.call('SADD', KEYS[3], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'requests', ARGV[5])
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[6])
redis.call('HINCRBY', KEYS[1], 'nano', ARGV[7])
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 86400000))
return 1
""")
"""Reservations whose leases ended long ago can no longer be settled: they stay charged."""
_SETTLE_SCRIPT = Script("""
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return end
redis.call('HINCRBY', KEYS[1], 'requests', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'nano', ARGV[4])
""")
_RENEW_SCRIPT = Script("""
local time = redis.call('TIME')
local until_ = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1])
for place = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', until_, ARGV[place]) end
""")
_RESET_SCRIPT = Script("""
redis.call('HSET', KEYS[1], 'requests', 0, 'tokens', 0, 'nano', 0)
redis.call('DEL', KEYS[2])
""")


class RedisSpending:
    """Spending in Redis, in whole requests, tokens and billionths of a dollar, rounded up.

    Args:
        server: The server, which the spending closes.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._held: dict[str, list[tuple[str, Amount]]] = defaultdict(list)
        self._known = set[str]()

    def amount(self, name: str) -> Amount:
        """Return the spending of a budget, including reservations."""
        return self._amounts([name])[0]

    def reserve(self, name: str, limits: Limits, amount: Amount) -> BudgetRefusal | None:
        """Reserve the share of a budget that a request may take, or return why it would exceed a limit.

        Raises:
            StoreError: The server has forgotten the budget.
        """
        lease, reservation = int(RESERVATION_LEASE_SECONDS * 1000), uuid4().hex
        usd = None if limits.usd is None else _nano(limits.usd)
        most = ["" if limit is None else limit for limit in (limits.requests, limits.tokens, usd)]
        known = "known" if name in self._known else ""
        arguments = (reservation, lease, name, known, *_units(amount), *most)
        (found,) = self._server.run(_RESERVE_SCRIPT((*_keys(name), _NAMES), *arguments))
        if found == 0:
            raise StoreError(
                f"{self._server.address}: Redis has forgotten what was spent: it was emptied, or restarted without "
                "persistence; set appendonly yes. judgekit resume continues, and the budget then begins at zero"
            )
        if isinstance(found, list):
            others, *spent = map(int, cast("list[Word]", found))
            shown = Amount(amount.requests, amount.tokens, _nano(amount.usd) / _NANO)
            limit = limits.limit_exceeded_by(_amount(spent), shown) or str(limits)
            return BudgetRefusal(limit, may_fit_later=bool(others))
        self._known.add(name)
        self._held[name].append((reservation, amount))
        return None

    def renew(self) -> None:
        """Renew the lease of the requests under way from here."""
        lease = int(RESERVATION_LEASE_SECONDS * 1000)
        held = [(name, [one for one, _ in reservations]) for name, reservations in self._held.items() if reservations]
        self._server.run(*(_RENEW_SCRIPT((_keys(name)[1],), lease, *ids) for name, ids in held))

    def settle(self, name: str, reserved: Amount, used: Amount) -> None:
        """Replace a reservation with the amount that the request took. Equal reservations are interchangeable."""
        held = self._held[name]
        place = next(place for place, (_, amount) in enumerate(held) if amount == reserved)
        reservation, _ = held.pop(place)
        more = (of_used - of_reserved for of_used, of_reserved in zip(_units(used), _units(reserved), strict=True))
        self._server.run(_SETTLE_SCRIPT(_keys(name), reservation, *more))

    def reset(self, name: str) -> None:
        """Set the spending of a budget to zero. Requests under way are not counted."""
        self._server.run(_RESET_SCRIPT(_keys(name)))

    def by_budget(self) -> dict[str, Amount]:
        """Return the spending of all budgets, by name."""
        (found,) = self._server.run(Command(("SMEMBERS", _NAMES)))
        names = sorted(name.decode() for name in found)
        return dict(zip(names, self._amounts(names), strict=True))

    def _amounts(self, names: list[str]) -> list[Amount]:
        commands = [Command(("HMGET", _keys(name)[0], "requests", "tokens", "nano")) for name in names]
        return [_amount([int(one or 0) for one in found]) for found in self._server.run(*commands)]

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


def _keys(name: str) -> tuple[bytes, bytes]:
    return _SPENT + name.encode(), _LEASES + name.encode()


def _nano(usd: float) -> int:
    return min(ceil(round(usd * _NANO, 3)), _MOST)


def _units(amount: Amount) -> tuple[int, int, int]:
    return amount.requests, amount.tokens, _nano(amount.usd)


def _amount(units: list[int]) -> Amount:
    requests, tokens, nano = (max(0, unit) for unit in units)
    return Amount(requests, tokens, nano / _NANO)
