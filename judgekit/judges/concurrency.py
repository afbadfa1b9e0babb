"""How many requests go at once: as many as an account bears, found out while they go."""

from dataclasses import dataclass, field

_START = 8
_ROUND = 4
_USED = 0.8
_CUT = 0.8
_GROWTH = 1.05


@dataclass
class Concurrency:
    """Counts requests under way, and says how many there may be.

    Their limit doubles each round (slow start) until the first rate limit, and grows by 5 % a round from then on; a rate
    limit cuts it to 80 %. A round is as many good replies as there are places. The limit only grows if it was nearly
    reached. What was sent before a cut neither cuts again nor makes it grow.

    Source: additive increase, multiplicative decrease, as TCP has it (RFC 5681); the numbers are those of Inspect AI.
    """

    most: int
    limit: float = field(init=False)
    under_way: int = field(default=0, init=False)
    _slow_start: bool = field(default=True, init=False)
    _good: int = field(default=0, init=False)
    _peak: int = field(default=0, init=False)
    _cuts: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.limit = float(min(_START, self.most))

    @property
    def is_full(self) -> bool:
        """Whether no further request may go now."""
        return self.under_way >= int(self.limit)

    def enter(self) -> int:
        """Counts a request that goes now. Returns what `succeeded` and `limited` want to know of when that was."""
        self.under_way += 1
        self._peak = max(self._peak, self.under_way)
        return self._cuts

    def leave(self) -> None:
        """Counts one that is done, in whichever way."""
        self.under_way -= 1

    def succeeded(self, sent: int) -> None:
        """Counts a good reply."""
        if sent < self._cuts:
            return
        self._good += 1
        if self._good < max(int(self.limit), _ROUND):
            return
        if self._peak >= _USED * int(self.limit):
            self.limit = min(self.limit * (2 if self._slow_start else _GROWTH), float(self.most))
        self._good = self._peak = 0

    def limited(self, sent: int) -> None:
        """Lowers the limit after a rate limit."""
        if sent < self._cuts:
            return
        self.limit = max(1.0, self.limit * _CUT)
        self._slow_start = False
        self._cuts += 1
        self._good = self._peak = 0
