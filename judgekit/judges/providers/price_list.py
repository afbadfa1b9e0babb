"""Prices and shutdown dates of models, from the list that ships with litellm, if installed. litellm is not imported."""

import os
import re
from collections.abc import Collection, Mapping
from datetime import date
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from pydantic_core import from_json

from judgekit.judges.providers.price import Price
from judgekit.traces.message import JsonObject, Many, Usage

_FILE = "model_prices_and_context_window_backup.json"
_INPUT, _OUTPUT, _CACHED = "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"
_REASONING, _WRITTEN = "output_cost_per_reasoning_token", "cache_creation_input_token_cost"
_TIER = re.compile(rf"({_INPUT}|{_OUTPUT}|{_REASONING}|{_CACHED}|{_WRITTEN})(?:_above_([0-9]+)(k?)_tokens)?(_flex)?")
_DECISIONS = "_decisions"
_OF_OTHER_REQUESTS = re.compile(
    "_(batches|balanced|priority|ultrafast|decisions)$|_above_[0-9]+hr|audio|image|video|search|grounding|file_|vector_"
    "|code_interpreter|computer_use|off_peak|explicit_cache|_cache_hit$"
)
"""Prices of what judges do not use: other service tiers, media, tools. Off-peak prices are lower than those used."""

_UNPRICED = {"databricks", "github_copilot", "oci", "perplexity", "sagemaker", "snowflake", "watsonx"}
_UNPRICED_CLOUDS = ("azure", "bedrock", "vertex_ai")
"""Providers whose price depends on more than the model and its tokens: on the region, the contract, searches."""

_NEUTRAL = {
    *("temperature", "top_p", "top_k", "min_p", "seed", "stop", "max_tokens", "max_completion_tokens", "logprobs"),
    *("top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty", "reasoning_effort", "thinking"),
    *("verbosity", "user", "metadata", "store", "allowed_openai_params", "drop_params"),
}
"""Parameters that do not affect the price of a token."""


class ListPrice(Price):
    """A price from a list, which may depend on the number of input tokens of a request.

    Attributes:
        source: The list and its version, such as ``litellm 1.106.2``.
        tiers: Prices of all tokens of requests with at least so many input tokens, in ascending order.
    """

    source: str
    tiers: Many[tuple[int, Price]] = ()

    def of(self, usage: Usage | None, tier: str | None = None) -> float | None:
        """Return the cost of a request that was billed in a tier, or ``None`` if its tokens or their price are unknown."""
        if usage is not None and usage.input_tokens is not None:
            for tokens, price in reversed(self.tiers):
                if usage.input_tokens >= tokens:
                    return price.of(usage, tier)
        return super().of(usage, tier)


def find_list_price(model: str, params: Collection[str]) -> ListPrice | None:
    """Return the price of a model by litellm's list; ``None`` if it is not certain.

    If several prices may apply that the usage of a request does not distinguish, the highest counts.

    Args:
        model: The name of a judge, such as ``openai/gpt-6-luna`` or ``litellm/anthropic/claude-sonnet-4-5``.
        params: The names of the request's parameters. The price is unknown if any of them may change it.
    """
    listing = _place(model)
    if listing is None or not _NEUTRAL.issuperset(params):
        return None
    return _price(*listing, decides=model.startswith("openai-decisions/"))


def find_list_shutdown_date(model: str) -> date | None:
    """Return the date on which a model's provider shuts it down by litellm's list; ``None`` if it has none.

    Args:
        model: The name of a judge.
    """
    listing = _place(model)
    try:
        entry = None if listing is None else _entry(*listing)
        day = None if entry is None else entry.get("deprecation_date")
        return date.fromisoformat(day) if isinstance(day, str) else None
    except (OSError, ValueError, TypeError, AttributeError):  # no list, or one in another format
        return None


def _place(model: str) -> tuple[Path, str, str] | None:
    """Return the list, the provider and the model's name there; ``None`` if the list is not for this server."""
    client, _, name = model.partition("/")
    if client in ("openai", "openai-decisions"):
        provider = "openai"
    elif client == "litellm" and "/" in name:
        provider, _, name = name.partition("/")
        if any(os.environ.get(f"{provider.upper()}_{end}") for end in ("API_BASE", "BASE_URL")):
            return None  # litellm then uses another server
    else:
        return None
    spec = find_spec("litellm")
    folders = spec.submodule_search_locations if spec is not None else None
    return (Path(folders[0]) / _FILE, provider, name) if folders else None


@lru_cache
def _price(path: Path, provider: str, name: str, *, decides: bool) -> ListPrice | None:
    if provider in _UNPRICED or provider.startswith(_UNPRICED_CLOUDS) or "search" in name:
        return None
    try:
        entry = _entry(path, provider, name)
        if entry is not None and decides:
            entry = _decision_entry(entry)
        return None if entry is None else _read(entry, provider, decides=decides)
    except (OSError, ValueError, TypeError, AttributeError):  # no list, or one in another format
        return None


def _entry(path: Path, provider: str, name: str) -> JsonObject | None:
    models: Mapping[str, JsonObject] = from_json(path.read_bytes())
    entries = (models.get(f"{provider}/{name}"), models.get(name))
    return next((entry for entry in entries if entry is not None and entry.get("litellm_provider") == provider), None)


def _decision_entry(entry: JsonObject) -> JsonObject:
    """Return an entry with the prices of decisions alone."""
    costs = {name.removesuffix(_DECISIONS): cost for name, cost in entry.items() if name.endswith(_DECISIONS)}
    return {**costs, "mode": entry.get("mode")}


def _read(entry: JsonObject, provider: str, *, decides: bool) -> ListPrice | None:
    """Return the price in an entry of the list; ``None`` if the entry has a price of an unknown kind."""
    tiers: dict[int, dict[str, float]] = {0: {}}
    flex_tiers: dict[int, dict[str, float]] = {}
    for name, cost in entry.items():
        if not cost or not ("cost" in name or "pric" in name) or _OF_OTHER_REQUESTS.search(name):
            continue
        above = _TIER.fullmatch(name)
        if above is None or not isinstance(cost, int | float) or cost < 0:
            return None
        tokens = int(above[2] or 0) * (1000 if above[3] else 1)
        (flex_tiers if above[4] else tiers).setdefault(tokens, {})[above[1]] = round(cost * 1_000_000, 9)
    if decides and entry.get(_OUTPUT) == 0:  # as is listed of decisions on purpose
        tiers[0][_OUTPUT] = 0.0
    if entry.get("mode") != "chat" or not {_INPUT, _OUTPUT} <= tiers[0].keys():  # 0 may mean unknown
        return None
    base, *above_all = (
        (
            tokens,
            _price_of(
                {**tiers[0], **tiers.get(tokens, {})},
                {**flex_tiers.get(0, {}), **flex_tiers.get(tokens, {})},
                provider,
                decides=decides,
            ),
        )
        for tokens in sorted({*tiers, *flex_tiers})
    )
    return ListPrice(**dict(base[1]), source=_source(), tiers=above_all)


def _price_of(
    costs: Mapping[str, float], flex_costs: Mapping[str, float], provider: str, *, decides: bool = False
) -> Price:
    # Some providers write to their cache by default, and charge for it. Anthropic only writes what a request marks, and
    # replies of decision models say how much was written.
    written = 0.0 if provider == "anthropic" or decides else costs.get(_WRITTEN, 0.0)
    return Price(
        input=max(costs[_INPUT], written),
        output=max(costs[_OUTPUT], costs.get(_REASONING, 0.0)),
        cached=costs.get(_CACHED),
        written=costs.get(_WRITTEN) if decides else None,
        flex=_price_of(flex_costs, {}, provider) if {_INPUT, _OUTPUT} <= flex_costs.keys() else None,
    )


def _source() -> str:
    try:
        return f"litellm {version('litellm')}"
    except PackageNotFoundError:
        return "litellm"
