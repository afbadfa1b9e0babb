"""The spending of budgets in Redis, which processes and machines share."""

import logging
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from typing import Any, cast
from uuid import uuid4

from judgekit.errors import StoreError
from judgekit.judges.limits.budget import Amount, Budget
from judgekit.judges.limits.spending import RESERVATION_LEASE_SECONDS, BudgetRefusal, Reserved
from judgekit.judges.redis.server import Command, RedisServer, Script, Word

_log = logging.getLogger("judgekit")

_SPENT, _LEASES, _NAMES = b"jk1:b:", b"jk1:l:", b"jk1:budgets"
"""The prefixes of what budgets have spent and of the ends of their leases, and the names of all budgets."""
_NANO = 10**9
_MOST = 2**53
"""More than any budget: up to here, the server's numbers are exact. It is 9 million dollars."""

_RESERVE_SCRIPT = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local spent, sum, number = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'nano'), {0, 0, 0}, 0
local known, found = spent[1], nil
for place = 7, #ARGV, 4 do
    if not redis.call('ZSCORE', KEYS[2], ARGV[place]) then
        if ARGV[2] == 'known' and not known then return 0 end
        for unit = 1, 3 do
            local limit = ARGV[2 + unit]
            if limit ~= '' and tonumber(spent[unit] or 0) + tonumber(ARGV[place + unit]) > tonumber(limit) then
                local others = redis.call('ZCOUNT', KEYS[2], string.format('%.0f', now), '+inf')
                found = {number, others, spent[1] or '0', spent[2] or '0', spent[3] or '0'}
            end
        end
        if found then break end
        for unit = 1, 3 do
            sum[unit] = sum[unit] + ARGV[place + unit]
            spent[unit] = string.format('%.0f', tonumber(spent[unit] or 0) + ARGV[place + unit])
        end
        redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[1]), ARGV[place])
    end
    number = number + 1
end
for unit, name in ipairs({'requests', 'tokens', 'nano'}) do
    if number > 0 then redis.call('HINCRBY', KEYS[1], name, string.format('%.0f', sum[unit])) end
end
if number > 0 then redis.call('SADD', KEYS[3], ARGV[6]) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 86400000))
return found or {number}
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
_SPENT_SCRIPT = Script("""
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then return {} end
return kind == 'hash' and redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'nano') or {kind}
""")
_RESET_SCRIPT = Script("""
redis.call('DEL', KEYS[1])
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
        self._settled: deque[tuple[str, Amount, Amount]] = deque()
        self._unsent: list[Command] = []
        self._known = set[str]()

    def amount(self, name: str) -> Amount:
        """Return the spending of a budget, including reservations."""
        return self._whole_amount(name, self._units_spent(name))

    def reserve(self, name: str, budget: Budget, amounts: Sequence[Amount]) -> Reserved:
        """Reserve the shares of a budget that requests may take, in order, up to the first that would exceed a limit.

        Raises:
            StoreError: The server has forgotten the budget.
        """
        reservations = [(uuid4().hex, amount) for amount in amounts]
        usd = None if budget.usd is None else _nano(budget.usd)
        most = ["" if limit is None else limit for limit in (budget.requests, budget.tokens, usd)]
        state = "known" if name in self._known else ""
        words = (word for reservation, amount in reservations for word in (reservation, *_units(amount)))
        command = _RESERVE_SCRIPT((*_keys(name), _NAMES), _lease(), state, *most, name, *words)
        (answer,) = self._run(command)
        if answer == 0:
            raise StoreError(
                f"{self._server.address}: Redis has forgotten what was spent: it was emptied, or restarted without "
                "persistence; set appendonly yes. judgekit resume continues, and the budget then begins at zero"
            )
        number, *spent = cast("tuple[int, *tuple[Word, ...]]", answer)
        if number:
            self._known.add(name)
            self._held[name] += reservations[:number]
        if not spent:
            return Reserved(number, None)
        others = int(spent.pop(0))
        amount = amounts[number]
        shown = Amount(amount.requests, amount.tokens, _nano(amount.usd) / _NANO)
        limit = budget.limit_exceeded_by(self._whole_amount(name, spent), shown) or str(budget)
        return Reserved(number, BudgetRefusal(limit, may_fit_later=bool(others)))

    def settle(self, name: str, reserved: Amount, used: Amount) -> None:
        """Replace a reservation with the amount that the request took. Equal reservations are interchangeable."""
        self._settled.append((name, reserved, used))

    def flush(self) -> None:
        """Record what was settled."""
        self._run()

    def renew(self) -> None:
        """Renew the lease of the requests under way from here, and record what was settled."""
        held = [
            (name, [reservation for reservation, _ in reservations])
            for name, reservations in self._held.items()
            if reservations
        ]
        self._run(*(_RENEW_SCRIPT((_keys(name)[1],), _lease(), *ids) for name, ids in held))

    def _run(self, *commands: Command) -> list[Any]:
        """Return the results of commands. What was settled is sent with them, and again if they fail."""
        self._unsent += [self._settlement(*self._settled.popleft()) for _ in range(len(self._settled))]
        answers = self._server.run(*self._unsent, *commands)[len(self._unsent) :]
        self._unsent.clear()
        return answers

    def _settlement(self, name: str, reserved: Amount, used: Amount) -> Command:
        held = self._held[name]
        index = next(index for index, (_, amount) in enumerate(held) if amount == reserved)
        reservation, _ = held.pop(index)
        more = (of_used - of_reserved for of_used, of_reserved in zip(_units(used), _units(reserved), strict=True))
        return _SETTLE_SCRIPT(_keys(name), reservation, *more)

    def reset(self, name: str) -> None:
        """Set the spending of a budget to zero. Requests under way are not counted."""
        self._run(_RESET_SCRIPT(_keys(name)))

    def by_budget(self) -> dict[str, Amount]:
        """Return the spending of all budgets, by name."""
        (members,) = self._server.run(Command(("SMEMBERS", _NAMES)))
        spent: dict[str, Amount] = {}
        for member in sorted(members):
            name = member.decode(errors="surrogateescape")
            units = self._units_spent(name)
            try:
                spent[name] = self._whole_amount(name, units)
            except StoreError as error:
                _log.warning("%s", error)
        return spent

    def _units_spent(self, name: str) -> list[Word]:
        (units,) = self._run(_SPENT_SCRIPT((_keys(name)[0],)))
        return units or [0, 0, 0]

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
