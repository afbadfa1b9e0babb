"""Budgets: the most that a judge may spend."""

from typing import NamedTuple

from pydantic import Field

from judgekit.traces.message import FrozenModel


class Amount(NamedTuple):
    """An amount of requests, tokens and US dollars."""

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: "Amount", times: int = 1) -> "Amount":
        """Return the sum with another amount, or with ``times=-1`` the difference, which is never below zero."""
        usd = round(self.usd + times * other.usd, 12)  # so that sums of cents are exact
        requests, tokens = self.requests + times * other.requests, self.tokens + times * other.tokens
        return Amount(max(0, requests), max(0, tokens), max(0.0, usd))


class Budget(FrozenModel):
    """The most that a judge may spend. What is not given is not limited.

    A budget applies to a run: all its processes, and every resume of it. Outside of a run it applies to the judge
    object. Cached replies cost nothing.

    Attributes:
        usd: US dollars, at least 0; the price must be known.
        requests: Requests that reach a server, at least 0.
        tokens: Input and output tokens, at least 0.
        name: The name of a budget that runs share until it is reset (``judgekit cache budgets --reset``).
    """

    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    requests: int | None = Field(default=None, ge=0, le=10**15)
    tokens: int | None = Field(default=None, ge=0, le=10**15)
    name: str | None = Field(default=None, min_length=1)

    def __bool__(self) -> bool:
        return (self.usd, self.requests, self.tokens) != (None, None, None)

    def __str__(self) -> str:
        usd = "" if self.usd is None else f"${self.usd:g}"
        requests = "" if self.requests is None else f"{self.requests:,} requests"
        tokens = "" if self.tokens is None else f"{self.tokens:,} tokens"
        return ", ".join(filter(None, (usd, requests, tokens)))

    def limit_exceeded_by(self, amount: Amount, more: Amount) -> str | None:
        """Return the limit that another request would exceed, or ``None``."""
        if self.requests is not None and amount.requests + more.requests > self.requests:
            return f"{self.requests:,} requests (spent: {amount.requests:,})"
        if self.tokens is not None and amount.tokens + more.tokens > self.tokens:
            return f"{self.tokens:,} tokens (spent: {amount.tokens:,}, the request may take {more.tokens:,})"
        if self.usd is not None and amount.plus(more).usd > self.usd:
            return f"${self.usd:g} (spent: ${amount.usd:g}, the request may cost ${more.usd:g})"
        return None
