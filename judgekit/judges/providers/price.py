"""The price of tokens."""

from pydantic import Field

from judgekit.traces.message import FrozenModel, Usage


class Price(FrozenModel):
    """A price in US dollars per million tokens.

    Attributes:
        input: The price of input tokens.
        output: The price of output tokens, including reasoning.
        cached: The price of input tokens that the provider had cached; that of other input if not given.
        written: The price of input tokens that the provider wrote to its cache, where it reports them; that of other input
            if not given.
        flex: The price of the flex tier; ``None`` if it is unknown.
    """

    input: float = Field(kw_only=False, ge=0, allow_inf_nan=False)
    output: float = Field(kw_only=False, ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, kw_only=False, ge=0, allow_inf_nan=False)

    written: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    flex: "Price | None" = None

    def of(self, usage: Usage | None, tier: str | None = None) -> float | None:
        """Return the cost of a request that was billed in a tier, or ``None`` if its tokens or their price are unknown."""
        if tier == "flex":
            return None if self.flex is None else self.flex.of(usage)
        if tier == "priority":
            return None
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        cached_price = self.input if self.cached is None else self.cached
        paid = (usage.input_tokens - cached) * self.input + cached * cached_price + usage.output_tokens * self.output
        if self.written is not None and isinstance(written := usage.extra.get("cache_write_tokens"), int):
            paid += min(written, usage.input_tokens - cached) * (self.written - self.input)
        return paid / 1_000_000

    def saved(self, usage: Usage | None, tier: str | None = None) -> float | None:
        """Return what the input tokens that the provider had cached saved, or ``None`` if it is unknown."""
        if usage is None or usage.cached_tokens is None or (cost := self.of(usage, tier)) is None:
            return None
        in_full = self.of(usage.model_copy(update={"cached_tokens": 0}), tier)
        return None if in_full is None else in_full - cost
