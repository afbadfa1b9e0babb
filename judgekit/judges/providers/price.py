"""The price of tokens."""

from pydantic import Field

from judgekit.traces.message import FrozenModel, Usage


class Price(FrozenModel):
    """A price in US dollars per million tokens.

    Attributes:
        input: The price of input tokens.
        output: The price of output tokens, including reasoning.
        cached: The price of input tokens that the provider had cached; that of other input if not given.
    """

    input: float = Field(kw_only=False, ge=0, allow_inf_nan=False)
    output: float = Field(kw_only=False, ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, kw_only=False, ge=0, allow_inf_nan=False)

    def of(self, usage: Usage | None) -> float | None:
        """Return the cost of a request, or ``None`` if its tokens are unknown."""
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        cached_price = self.input if self.cached is None else self.cached
        paid = (usage.input_tokens - cached) * self.input + cached * cached_price + usage.output_tokens * self.output
        return paid / 1_000_000
