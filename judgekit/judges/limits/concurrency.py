"""Adaptive concurrency: finds the number of simultaneous requests that an account can take."""

import math
from dataclasses import dataclass, field

_SMALLEST_ROUND = 4
_USED = 0.8
_FIRST_CUT = 0.5
_GROWTH, _CUT = 1.05, 0.8


@dataclass
class ConcurrencyLimit:
    """A counter of requests under way, with an adaptive limit.

    The limit is the ``maximum`` until a rate limit error. Until a whole round succeeds, errors halve it; from then on, it
    grows by 5% a round, and a rate limit error cuts it to 80%. A round is as many successful replies as the limit allows
    at once. The limit only grows if it was nearly reached. Requests that were sent before a cut neither cut it again nor
    make it grow.

    Source: additive increase, multiplicative decrease, as in TCP (RFC 5681), with the numbers of Inspect AI. It starts at
    the maximum, since where a reply takes seconds a slow start takes several of them.
    """

    maximum: int = 32
    in_flight: int = field(default=0, init=False)
    _limit: float = field(default=math.inf, init=False)
    _has_settled: bool = field(default=False, init=False)
    _successes: int = field(default=0, init=False)
    _peak: int = field(default=0, init=False)
    _cuts: int = field(default=0, init=False)

    @property
    def limit(self) -> float:
        """The number of requests that may be under way now."""
        return min(self._limit, float(self.maximum))

    @property
    def free(self) -> int:
        """The number of requests that may start now."""
        return max(0, int(self.limit) - self.in_flight)

    def acquire(self) -> int:
        """Count a request that starts now, and return its time for `succeeded` and `rate_limited`, in cuts of the limit."""
        self.in_flight += 1
        self._peak = max(self._peak, self.in_flight)
        return self._cuts

    def release(self) -> None:
        """Count a request that ended, successfully or not."""
        self.in_flight -= 1

    def succeeded(self, sent: int) -> None:
        """Count a successful reply."""
        if sent < self._cuts:
            return
        self._successes += 1
        if self._successes < max(int(self.limit), _SMALLEST_ROUND):
            return
        if self._peak >= _USED * int(self.limit):
            self._has_settled = True
            if self._limit < self.maximum:
                self._limit *= _GROWTH
        self._successes = self._peak = 0

    def rate_limited(self, sent: int) -> None:
        """Lower the limit after a rate limit error."""
        if sent < self._cuts:
            return
        self._limit = max(1.0, self.limit * (_CUT if self._has_settled else _FIRST_CUT))
        self._cuts += 1
        self._successes = self._peak = 0
