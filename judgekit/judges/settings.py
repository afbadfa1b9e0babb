"""The settings of a judge."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator

from judgekit.errors import ConfigError, explain
from judgekit.judges.budget import Limits
from judgekit.judges.cache import CacheMode
from judgekit.judges.client import Client
from judgekit.judges.price import Price
from judgekit.judges.price_list import listed_price
from judgekit.judges.providers import PROVIDERS, likely_model, provider_named
from judgekit.judges.redaction import PATTERNS
from judgekit.traces.message import JsonObject, Many, Record

_OURS = {"api_base", "api_key", "base_url", "messages", "model", "n", "response_format", "stream", "timeout"}
"""Parameters of the providers' APIs that judgekit sets itself."""


_TABLES: Mapping[str, type[Record]] = {"price": Price, "budget": Limits}
"""Settings that have settings of their own."""


class JudgeSettings(Record):
    """Which model is asked, where, how, and what becomes of its replies.

    Attributes:
        model: Provider and model, such as ``"openai/gpt-4.1-mini"`` or ``"litellm/anthropic/claude-sonnet-4-5"``.
        base_url: A server that speaks the provider's API, such as ``"http://localhost:8000/v1"``.
        params: Parameters of the provider's API, such as ``{"temperature": 0}``.
        redact: What is taken out of a sample's texts before the judge sees it: ``url``, ``secret``, ``email``, ``iban``,
            ``card``, ``ip``, ``phone``; or a function from text to text, with a ``version`` (an attribute).
        conversation_tokens: About how many tokens of a recording are shown; all if not given. See `Trace.render`.
        fallback: Judges that are asked in its place, in turn, where it is overloaded or down, or its context too short.
        api_key_env: The environment variable that holds the key. The provider's own one if not given; with a
            ``base_url``, no key is sent unless its variable is named here.
        price: What tokens cost, for the cost of a score. If not given, it is what the provider says, or else the price
            by litellm's list where litellm is installed (see `known_price`), or else unknown.
        budget: The most that may be spent: ``usd`` (needs a price), ``requests``, ``tokens``.
        timeout: Seconds for one attempt as a whole.
        attempts: How often an overloaded or unreachable provider is asked. Rate limits are borne with ten times, unless
            it is 1. A provider that is not reached in so many attempts is down for the rest of the run.
        concurrency: The most requests at once; fewer go where the provider cannot bear as many.
        requests_per_minute: No limit if not given. Of the limits that judges of one account have, the strictest hold.
        tokens_per_minute: The same for tokens, in and out.
        cache: Where replies are kept. A ``.jsonl`` file of recorded replies can be replayed.
        cache_mode: ``read_write``; ``refresh``, which asks again; ``replay``, which never asks; or ``off``.
        store_text: Whether the cache keeps the judge's words, which may quote the conversation. If not, it keeps the
            verdicts alone, and what can only be told from words is asked again.
        offline: Lets no request out of this machine.
        dry_run: Sends nothing, and writes into the ledger what would be sent.
        client: Answers in the place of a provider.

    Raises:
        ConfigError: There is no such provider or setting, a setting is out of range, or settings contradict each other.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: str = Field(kw_only=False)
    base_url: str | None = None
    params: JsonObject = Field(default_factory=dict)
    redact: Callable[[str], str] | Many[str] = ()
    conversation_tokens: int | None = Field(default=None, ge=100)
    fallback: Many[Self] = ()
    # What is excluded below changes no verdict, and is no part of a scorer's signature.
    api_key_env: str | None = Field(default=None, exclude=True)
    price: Price | None = Field(default=None, exclude=True)
    budget: Limits = Field(default=Limits(), exclude=True)
    timeout: float = Field(default=60, gt=0, allow_inf_nan=False, exclude=True)
    attempts: int = Field(default=4, ge=1, exclude=True)
    concurrency: int = Field(default=32, ge=1, exclude=True)
    requests_per_minute: int | None = Field(default=None, ge=1, exclude=True)
    tokens_per_minute: int | None = Field(default=None, ge=1, exclude=True)
    cache: Path = Field(default=Path(".judgekit/cache.sqlite"), exclude=True)
    cache_mode: CacheMode = Field(default="read_write", exclude=True)
    store_text: bool = Field(default=True, exclude=True)
    offline: bool = Field(default=False, exclude=True)
    dry_run: bool = Field(default=False, exclude=True)
    client: Client | None = Field(default=None, exclude=True, repr=False)

    if not TYPE_CHECKING:

        def __init__(self, /, *args: object, **settings: object) -> None:
            try:
                super().__init__(*args, **settings)
            except ValidationError as error:
                raise _misfit(error, settings) from None  # which would show the value, perhaps a key

        __init__.__pydantic_base_init__ = True  # as in Record

    @field_validator("redact")
    @classmethod
    def _in_one_order(cls, redact: Callable[[str], str] | tuple[str, ...]) -> Callable[[str], str] | tuple[str, ...]:
        return redact if callable(redact) else tuple(sorted(redact))

    def model_post_init(self, _context: object, /) -> None:
        """Checks the settings against each other."""
        if not all(self.model.partition("/")):
            hint = "" if "/" in self.model or not self.model else f", did you mean {likely_model(self.model)!r}?"
            raise ConfigError(f"a judge is named provider/model, as in openai/gpt-4.1-mini, found {self.model!r}{hint}")
        if self.cache.suffix == ".jsonl" and self.cache_mode not in ("replay", "off"):
            raise ConfigError(f"{self.cache} is only read: use cache_mode='replay', or a SQLite file")
        if callable(self.redact):
            _must_have_a_version(self.redact)
        else:
            _must_be_known("pattern to redact", self.redact, PATTERNS)
        if ours := _OURS & self.params.keys():
            raise ConfigError(f"params cannot set {', '.join(sorted(ours))}: judgekit does")
        try:
            json.dumps(self.params, allow_nan=False, ensure_ascii=False).encode()
        except ValueError as error:
            raise ConfigError(f"params hold what cannot be sent as JSON: {error}") from error
        if self.budget.usd is not None and self.known_price is None:
            raise ConfigError(
                f"a budget in US dollars needs the price of {self.model}: price = {{input=..., output=...}}"
            )
        if self.asks_a_provider:
            provider_named(self.provider)
            if self.base_url is not None:
                _must_be_an_address(self.base_url)

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
    def known_price(self) -> Price | None:
        """The price of tokens: the judge's own ``price``, or that of litellm's list if the provider's own server is asked."""
        known = PROVIDERS.get(self.provider)
        is_own = known is not None and self.endpoint.rstrip("/") == known.base_url.rstrip("/")
        if self.price is not None or self.client is not None or not is_own:
            return self.price
        return listed_price(self.model, self.params)

    @property
    def account(self) -> tuple[str, str | None]:
        """Whose limits its requests count against: where they go, and the variable that holds the key they carry."""
        known = PROVIDERS.get(self.provider)
        own_key = known.api_key_env if known and self.base_url is None else None
        where = self.endpoint.rstrip("/") or "/".join(self.model.split("/")[:2])
        return where, self.api_key_env or own_key

    @property
    def sends_a_key(self) -> bool:
        """Whether its requests carry a key from the environment."""
        return self.asks_a_provider and (self.base_url is None or self.api_key_env is not None)

    @property
    def asks_a_provider(self) -> bool:
        """Whether requests may go to a server."""
        return self.client is None and self.cache_mode != "replay" and not self.dry_run


def unknown_setting(kind: str, table: str, name: str, params: str) -> ConfigError:
    """Return the error of a setting that a judge does not have.

    Args:
        kind: What is not called so, such as ``setting of a judge``.
        table: The setting that it is a part of, such as ``price``; empty if none.
        name: What it is called.
        params: How it is written as a parameter of the provider's API.
    """
    if table in _TABLES:
        return ConfigError.unknown(kind, name, _TABLES[table].model_fields)
    if "key" in name and name != "api_key_env":
        return ConfigError(
            f"no {kind} is called {name!r}: keys come from the environment, and api_key_env names the variable"
        )
    guess = "base_url" if name == "api_base" else "" if name in _OURS else params
    found = ConfigError.unknown(kind, name, JudgeSettings.model_fields, guess=guess)
    return ConfigError(f"{found}; parameters of the provider's API stand in params")


def _misfit(error: ValidationError, settings: Mapping[str, object]) -> ConfigError:
    """Return in the words of Python what is wrong with the settings of a judge."""
    for problem in error.errors():
        if problem["type"] == "extra_forbidden":
            *tables, name = map(str, problem["loc"])
            table, value = "".join(tables), problem["input"]
            shown = repr(value) if isinstance(value, int | float) else "..."
            kind = f"setting of a judge's {table}" if table else "setting of a judge"
            return unknown_setting(kind, table, name, f'params={{"{name}": {shown}}}')
    return ConfigError(f"a judge's settings: {explain(error, settings)}")


def _must_be_known(kind: str, names: Iterable[str], choices: Iterable[str]) -> None:
    for name in names:
        if name not in choices:
            raise ConfigError.unknown(kind, name, choices)


def _must_have_a_version(redact: Callable[[str], str]) -> None:
    if not isinstance(getattr(redact, "version", None), str):
        raise ConfigError(f"redact: {redact!r} needs a version (a text attribute) to tell its scores from older ones")


def _must_be_an_address(url: str) -> None:
    if "@" in url:  # it is not shown, for a password may stand there
        raise ConfigError("a base_url holds no user and no password: name the key's variable with api_key_env")
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not url.isprintable() or " " in url:
        raise ConfigError(f"a base_url is an address such as http://localhost:8000/v1, found {url!r}")
