"""The settings of a judge."""

from pathlib import Path

from pydantic import ConfigDict, Field

from judgekit.errors import ConfigError
from judgekit.judges.cache import CacheMode
from judgekit.judges.client import Client
from judgekit.judges.openai import Price
from judgekit.judges.providers import PROVIDERS, provider_named
from judgekit.traces.message import JsonObject, Record


class JudgeSettings(Record):
    """Which model is asked, where, how, and what becomes of its replies.

    Attributes:
        model: Provider and model, such as ``"openai/gpt-4.1-mini"``.
        base_url: A server that speaks the provider's API, such as ``"http://localhost:8000/v1"``.
        params: Parameters of the provider's API, such as ``{"temperature": 0}``.
        api_key_env: The environment variable that holds the key. The provider's own one if not given; with a
            ``base_url``, no key is sent unless its variable is named here.
        price: What tokens cost, for the cost of a score; unknown if not given.
        timeout: Seconds for one attempt as a whole.
        attempts: How often an overloaded or unreachable provider is asked.
        concurrency: Requests at once.
        max_requests: Requests after which no more are sent; ``None`` for no limit. Cached replies do not count.
        cache: Where replies are kept, ``None`` for nowhere. A ``.jsonl`` file of recorded replies can be replayed.
        cache_mode: ``read_write``; ``refresh``, which asks again; or ``replay``, which never asks.
        client: Answers in the place of a provider.

    Raises:
        ConfigError: There is no such provider, or the settings contradict each other.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: str = Field(kw_only=False)
    base_url: str | None = None
    params: JsonObject = Field(default_factory=dict)
    # What is excluded below changes no verdict, and is no part of a scorer's signature.
    api_key_env: str | None = Field(default=None, exclude=True)
    price: Price | None = Field(default=None, exclude=True)
    timeout: float = Field(default=60, gt=0, exclude=True)
    attempts: int = Field(default=4, ge=1, exclude=True)
    concurrency: int = Field(default=16, ge=1, exclude=True)
    max_requests: int | None = Field(default=None, ge=0, exclude=True)
    cache: Path | None = Field(default=Path(".judgekit/cache.sqlite"), exclude=True)
    cache_mode: CacheMode = Field(default="read_write", exclude=True)
    client: Client | None = Field(default=None, exclude=True, repr=False)

    def model_post_init(self, _context: object, /) -> None:
        """Checks the settings against each other."""
        if not all(self.model.partition("/")):
            raise ConfigError(f"a judge is named provider/model, as in openai/gpt-4.1-mini, found {self.model!r}")
        if self.cache_mode == "replay" and self.cache is None:
            raise ConfigError("to replay, a judge needs a cache= to replay from")
        if self.cache is not None and self.cache.suffix == ".jsonl" and self.cache_mode != "replay":
            raise ConfigError(f"{self.cache} is only read: use cache_mode='replay', or a SQLite file")
        if self.asks_a_provider:
            provider_named(self.provider)
            if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
                raise ConfigError(f"a base_url starts with http:// or https://, found {self.base_url!r}")

    @property
    def provider(self) -> str:
        """Who serves the model."""
        return self.model.partition("/")[0]

    @property
    def endpoint(self) -> str:
        """The server's address; empty for a provider that is unknown, whose replies can only be replayed."""
        known = PROVIDERS.get(self.provider)
        return self.base_url or (known.base_url if known else "")

    @property
    def asks_a_provider(self) -> bool:
        """Whether requests may go to a server."""
        return self.client is None and self.cache_mode != "replay"
