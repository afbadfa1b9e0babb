"""The settings of a judge."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, JsonValue, ValidationError, computed_field, field_validator

from judgekit.errors import ConfigError, validation_message
from judgekit.judges.cache.cache import CacheMode
from judgekit.judges.limits.budget import Budget
from judgekit.judges.providers.bodies import MAX_REPLY_BYTES
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.price_list import find_list_price
from judgekit.judges.providers.provider import (
    DECISIONS,
    PROVIDERS,
    Provider,
    find_provider,
    get_provider,
    suggest_model,
)
from judgekit.judges.providers.secrets import FromEnvironment, is_secret_name
from judgekit.judges.redaction.patterns import REDACTABLE
from judgekit.judges.redis.address import RedisAddress, cache_place
from judgekit.judges.request import Client, output_limit
from judgekit.locations import require_local
from judgekit.traces.images import ImageSettings
from judgekit.traces.message import FrozenModel, JsonObject, Many

_OURS = {"api_base", "api_key", "base_url", "messages", "model", "n", "response_format", "stream", "timeout"}
"""Parameters of the providers' APIs that judgekit sets itself."""

_OF_SCORERS = ("repeats", "min_confidence", "escalate")
"""Options of scorers that ask a judge. As parameters of an API, some servers would silently ignore them."""

_ELSEWHERE = {
    **dict.fromkeys(("extra_headers", "default_headers", "headers"), "put them in headers"),
    "extra_query": "put it in query",
    "extra_body": "put its fields directly in params",
}
"""Parameters of SDKs that go elsewhere in a judge's settings."""

_FLEX_SECONDS = 900.0
"""The time-out that OpenAI advises for its flex tier."""

_FROM_ENVIRONMENT = '{env = "MY_KEY"}'
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")

_TABLES: Mapping[str, type[FrozenModel]] = {"price": Price, "budget": Budget, "images": ImageSettings}
"""Settings that are tables of settings."""


class JudgeSettings(FrozenModel):
    """The settings of a judge: its model, how it is asked, and what is done with its replies.

    Attributes:
        model: Provider and model, such as ``"openai/gpt-6-luna"`` or ``"litellm/anthropic/claude-sonnet-4-5"``.
        base_url: A server that speaks the provider's API, such as ``"http://localhost:8000/v1"``; that of the
            provider if not given.
        params: Parameters of the provider's API, such as ``{"temperature": 0}``.
        query: Query parameters of the address: public values, such as ``{"api-version": "2024-10-21"}``, or secrets
            from environment variables, such as ``{"key": {"env": "MY_KEY"}}``.
        headers: Headers of each request, in the same form.
        redact: The data to remove from a sample before the judge sees it: ``url``, ``secret``, ``email``, ``iban``,
            ``card``, ``ip``, ``phone``, all in text, and ``image``; in Python also a function of a text, with a ``version``.
        conversation_tokens: The approximate number of tokens of a recording to show, at least 100; all if not given.
            See `Trace.render`.
        long: What is done with a longer recording: ``shorten``, the default, or ``parts``, which reads all of it in several
            requests for findings with quotes, and asks the question about these.
        images: Whether to show the judge the images of a recording: ``True``, or `ImageSettings` with the detail, the
            limits, and whether addresses may be sent; by default, they are only mentioned. The model must take images.
        fallback: Judges to ask instead, in order, if this one is overloaded or down, or its quota or context is too
            small.
        api_key_env: The environment variable that holds the key, by default that of the provider; with a ``base_url``,
            no key is sent unless its variable is named here.
        price: The price of tokens. If not given, the cost is the one that the provider reports, or else by litellm's list
            (see `known_price`), or else unknown.
        budget: The most that a run may spend: ``usd`` (needs a price), ``requests``, ``tokens``. See `Budget`.
        max_output_tokens: The limit on a reply's tokens, including reasoning, that is sent if a budget in US dollars or
            tokens needs one and ``params`` set none: at least 1, by default 8192. A truncated reply is retried with twice that.
        tier: ``flex`` asks for the cheaper tier of OpenAI or Gemini, whose replies may take minutes. Requests for which it
            has no capacity are sent at the full price.
        timeout: Seconds for one attempt as a whole, including reading and decompressing the reply: above 0, by default
            60, and 900 in the flex tier.
        max_reply_bytes: The maximum size of a reply, decompressed: at least 1, by default 16,000,000.
        attempts: The number of attempts while a provider is overloaded or unreachable: at least 1, by default 4. Rate
            limit errors are retried up to ten times, unless this is 1.
        concurrency: The maximum number of requests at once, from 1 to 10,000, by default 32; fewer if the provider
            cannot take as many.
        requests_per_minute: At least 1; no limit if not given. Judges of one account share the strictest of their limits.
        tokens_per_minute: At least 1; no limit if not given. Input and output tokens count.
        cache: The file of stored replies, by default ``.judgekit/cache.sqlite``. A ``.jsonl`` file of recorded replies
            can be replayed. Or a Redis or Valkey server that machines share, with limits and budgets: an address such as
            ``"redis://host:6379/0"``, or ``{"env": "JUDGEKIT_REDIS_URL"}`` for one with a password.
        cache_mode: ``read_write``, the default; ``refresh``, which asks again; ``replay``, which never asks; or ``off``.
        store_text: Whether the cache stores the judge's text, which may quote the conversation, as it does by default.
        offline: Whether to send no request out of this machine.
        together: Whether the scorers of a run ask all questions about a sample in one request; by default, each is sent by
            itself. Decision models are always asked so.
        client: A client that replaces the provider. Its replies are cached only if it has an identity; see `Client`.

    Raises:
        ConfigError: There is no such provider or setting, a setting is out of range, or settings contradict each other.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: str = Field(kw_only=False)
    base_url: str | None = None
    params: JsonObject = Field(default_factory=dict)
    redact: Callable[[str], str] | Many[str] = ()
    conversation_tokens: int | None = Field(default=None, ge=100)
    images: ImageSettings | None = None
    fallback: Many[Self] = ()
    # The fields excluded below change no verdict, or are in key_parts, and are not part of a scorer's signature.
    query: dict[str, str | FromEnvironment] = Field(default_factory=dict[str, str | FromEnvironment], exclude=True)
    headers: dict[str, str | FromEnvironment] = Field(default_factory=dict[str, str | FromEnvironment], exclude=True)
    api_key_env: str | None = Field(default=None, exclude=True)
    price: Price | None = Field(default=None, exclude=True)
    budget: Budget = Field(default=Budget(), exclude=True)
    max_output_tokens: int = Field(default=8192, ge=1, exclude=True)
    tier: Literal["default", "flex"] = Field(default="default", exclude=True)
    timeout: float = Field(default=60, gt=0, allow_inf_nan=False, exclude=True)
    max_reply_bytes: int = Field(default=MAX_REPLY_BYTES, ge=1, exclude=True)
    attempts: int = Field(default=4, ge=1, exclude=True)
    concurrency: int = Field(default=32, ge=1, le=10_000, exclude=True)
    requests_per_minute: int | None = Field(default=None, ge=1, exclude=True)
    tokens_per_minute: int | None = Field(default=None, ge=1, exclude=True)
    cache: Path | RedisAddress = Field(default=Path(".judgekit/cache.sqlite"), exclude=True)
    cache_mode: CacheMode = Field(default="read_write", exclude=True)
    store_text: bool = Field(default=True, exclude=True)
    offline: bool = Field(default=False, exclude=True)
    together: bool = Field(default=False, exclude=True)
    long: Literal["shorten", "parts"] = Field(default="shorten", exclude=True)
    client: Client | None = Field(default=None, exclude=True, repr=False)
    if not TYPE_CHECKING:

        def __init__(self, /, *args: object, **settings: object) -> None:
            try:
                super().__init__(*args, **settings)
            except ValidationError as error:
                raise _settings_error(error, settings) from None  # the original shows the value, perhaps a key

        __init__.__pydantic_base_init__ = True  # as in Record

    @field_validator("images", mode="before")
    @classmethod
    def _switched_on(cls, images: object) -> object:
        return {} if images is True else None if images is False else images

    @field_validator("cache", mode="before")
    @classmethod
    def _address_or_file(cls, cache: object) -> object:
        return cache_place(cache)

    @field_validator("base_url")
    @classmethod
    def _without_slash(cls, base_url: str | None) -> str | None:
        return base_url and re.sub(r"(?<![:/])/+\Z", "", base_url)

    @field_validator("redact")
    @classmethod
    def _in_one_order(cls, redact: Callable[[str], str] | tuple[str, ...]) -> Callable[[str], str] | tuple[str, ...]:
        return redact if callable(redact) else tuple(sorted(redact))

    @field_validator("query", "headers", mode="wrap")
    @classmethod
    def _check_texts(
        cls, values: object, validate: Callable[[object], dict[str, str | FromEnvironment]]
    ) -> dict[str, str | FromEnvironment]:
        try:
            checked = validate(values)
        except ValidationError:
            # The value is not shown, since it may be a key.
            raise ValueError(f"each value must be a text or {_FROM_ENVIRONMENT}") from None
        for name, value in checked.items():
            if not isinstance(value, str):
                _must_be_a_variable(f"env of {name}", value["env"])
            elif is_secret_name(name):
                raise ValueError(f"{name} looks like a secret: give it as {_FROM_ENVIRONMENT}")
            elif not (value.isascii() and value.isprintable()):
                raise ValueError(f"{name} contains characters that cannot be sent")
        return checked

    def model_post_init(self, _context: object, /) -> None:
        """Check the settings against each other."""
        if not all(self.model.partition("/")):
            hint = "" if "/" in self.model or not self.model else f". Did you mean {suggest_model(self.model)!r}?"
            raise ConfigError(f"a judge's model is written as provider/model, found {self.model!r}{hint}")
        if isinstance(self.cache, Path):
            require_local(self.cache, "stored replies must be in a local file")
        if isinstance(self.cache, Path) and self.cache.suffix == ".jsonl" and self.cache_mode not in ("replay", "off"):
            raise ConfigError(f"{self.cache} is read-only: use cache_mode='replay', or a SQLite file")
        if callable(self.redact):
            if not isinstance(getattr(self.redact, "version", None), str):
                raise ConfigError(
                    f"redact: {self.redact!r} needs a version attribute (a string) that distinguishes its scores from older ones"
                )
        elif unknown := [name for name in self.redact if name not in REDACTABLE]:
            raise ConfigError.unknown("kind of data to redact", unknown[0], REDACTABLE)
        if ours := _OURS & self.params.keys():
            raise ConfigError(f"params cannot set {', '.join(sorted(ours))}: judgekit sets that itself")
        _must_be_public(self.params)
        if self.api_key_env is not None:
            _must_be_a_variable("api_key_env", self.api_key_env)
        if not isinstance(getattr(self.client, "identity", None), str | None):
            raise ConfigError(f"the identity of {type(self.client).__name__} must be a text")
        if self.base_url is not None:
            _must_hold_no_secret(self.base_url)
        try:
            json.dumps(self.params, allow_nan=False, ensure_ascii=False).encode()
        except ValueError as error:
            raise ConfigError(f"params contain a value that cannot be sent as JSON: {error}") from error
        if self.budget.usd is not None and self.known_price is None:
            raise ConfigError(
                f"a budget in US dollars needs the price of {self.model}: price = {{input=..., output=...}}"
            )
        if self.tier == "flex":
            if "service_tier" in self.params:
                raise ConfigError("params.service_tier and tier='flex' contradict each other: leave one out")
            if self.price is not None and self.price.flex is None:
                raise ConfigError("tier='flex' has a price of its own: price = {..., flex = {input=..., output=...}}")
        if self.decides:
            object.__setattr__(self, "together", True)
            if self.tier == "flex":
                raise ConfigError("tier='flex': decision models have no such tier; leave it out")
        if any(other.decides != self.decides for other in self.fallback):
            raise ConfigError("fallback: decision models and judges that write cannot stand in for each other")
        if self.images is not None and self.images.addresses and self.provider == "litellm":
            raise ConfigError("images.addresses: litellm would fetch the addresses in this process; leave it out")
        if self.uses_provider:
            if not self._is_own_provider:  # whose file is imported by the first request
                get_provider(self.provider)
            if self.base_url is not None:
                _must_be_an_address(self.base_url)

    @property
    def decides(self) -> bool:
        """Whether it is a decision model, which answers with labels and gives no text."""
        return self.provider == DECISIONS

    @property
    def provider(self) -> str:
        """The provider of the model."""
        return self.model.partition("/")[0]

    @property
    def _is_own_provider(self) -> bool:
        module, colon, _ = self.provider.partition(":")
        return bool(colon) and module not in PROVIDERS

    @cached_property
    def _known_provider(self) -> Provider | None:
        return find_provider(self.provider)

    @property
    def endpoint(self) -> str:
        """The address of the server; empty for an unknown provider, whose replies can only be replayed."""
        return self.base_url or (self._known_provider.base_url if self._known_provider else "")

    @property
    def known_price(self) -> Price | None:
        """The price of tokens: the judge's own, or by litellm's list if requests go to the provider's own server."""
        if self.price is not None or self._is_own_provider or not self.asks_the_providers_server:
            return self.price
        return find_list_price(self.model, self.params)

    @property
    def asks_the_providers_server(self) -> bool:
        """Whether requests go to the provider's own server."""
        is_own = self._known_provider is not None and self.endpoint.rstrip("/") == self._known_provider.base_url.rstrip(
            "/"
        )
        return is_own and self.client is None

    @property
    def attempt_seconds(self) -> float:
        """The seconds for one attempt."""
        is_patient = self.tier == "flex" and "timeout" not in self.model_fields_set
        return _FLEX_SECONDS if is_patient else self.timeout

    @property
    def own_output_limit(self) -> int | None:
        """The output limit that judgekit sends, if the budget needs one and ``params`` set none."""
        is_limited = self.budget.usd is not None or self.budget.tokens is not None
        return self.max_output_tokens if is_limited and output_limit(self.params) is None else None

    @property
    def budget_name(self) -> str:
        """The name of its budget within a run; judges that give the same verdicts share one."""
        settings = {**self.model_dump(), "key_parts": self.request_key_parts}
        text = json.dumps(settings, sort_keys=True, default=lambda redact: redact.version)
        return f"{self.model} {hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def account(self) -> tuple[str, str | None]:
        """The account whose limits apply to its requests: their server, and the variable that holds their key."""
        own_key = self._known_provider.api_key_env if self._known_provider and self.base_url is None else None
        where = self.endpoint.rstrip("/") or "/".join(self.model.split("/")[:2])
        return where, self.api_key_env or own_key

    @property
    def sends_a_key(self) -> bool:
        """Whether its requests carry a key from the environment."""
        return self.uses_provider and (self.base_url is None or self.api_key_env is not None)

    @property
    def uses_provider(self) -> bool:
        """Whether requests may go to a server."""
        return self.client is None and self.cache_mode != "replay"

    @computed_field(repr=False)  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def key_parts(self) -> JsonObject:
        """The public query and headers, the client's identity, and how it is asked, on which verdicts depend.

        Values from the environment are not included.
        """
        parts: dict[str, JsonValue] = {}
        for name, given in (("query", self.query), ("headers", self.headers)):
            parts[name] = {key: text for key, text in given.items() if isinstance(text, str)}
        identity: str | None = getattr(self.client, "identity", None)
        parts["client"] = identity and str(identity)  # a member of an enumeration is a text of another kind
        parts["together"] = self.together
        parts["long"] = None if self.long == "shorten" else self.long
        return {name: part for name, part in parts.items() if part}

    @property
    def request_key_parts(self) -> JsonObject:
        """The ``key_parts`` of requests; without ``long``, since a recording that fits is shown alike."""
        return {name: part for name, part in self.key_parts.items() if name != "long"}

    @property
    def cache_mode_used(self) -> CacheMode:
        """The cache mode, which is ``off`` for a client without an identity, unless replies are replayed."""
        is_unknown = self.client is not None and "client" not in self.key_parts
        return "off" if is_unknown and self.cache_mode != "replay" else self.cache_mode


def unknown_setting_error(kind: str, table: str, name: str, params: str) -> ConfigError:
    """Return the error of a setting that a judge does not have.

    Args:
        kind: The kind of setting, such as ``setting of a judge``.
        table: The setting that it is a part of, such as ``price``; empty if none.
        name: The unknown name.
        params: The setting as a parameter of the provider's API.
    """
    if table in _TABLES:
        return ConfigError.unknown(kind, name, _TABLES[table].model_fields)
    if "key" in name and name != "api_key_env":
        return ConfigError(
            f"no {kind} is called {name!r}: keys come from the environment, and api_key_env names the variable"
        )
    if name in _OF_SCORERS:
        return ConfigError(f"no {kind} is called {name!r}: it is an option of a scorer, as in [[scorers]]")
    guess = "base_url" if name == "api_base" else "" if name in _OURS else params
    problem = ConfigError.unknown(kind, name, JudgeSettings.model_fields, guess=guess)
    return ConfigError(f"{problem}; put parameters of the provider's API in params")


def _settings_error(error: ValidationError, settings: Mapping[str, object]) -> ConfigError:
    """Return the error of invalid settings of a judge, in terms of Python."""
    for problem in error.errors():
        if problem["type"] == "extra_forbidden":
            *tables, name = map(str, problem["loc"])
            table, value = "".join(tables), problem["input"]
            shown = repr(value) if isinstance(value, int | float) else "..."
            kind = f"setting of a judge's {table}" if table else "setting of a judge"
            return unknown_setting_error(kind, table, name, f'params={{"{name}": {shown}}}')
        if problem["loc"][:1] == ("fallback",) and isinstance(name := problem["input"], str):
            return ConfigError(f"fallback: expected a Judge such as Judge({name!r}), found {name!r}")
    return ConfigError(f"a judge's settings: {validation_message(error, settings)}")


def _must_be_public(params: JsonValue, path: str = "params") -> None:
    """Check that there is no key in parameters, which are stored."""
    if isinstance(params, list):
        for value in params:
            _must_be_public(value, path)
    elif isinstance(params, dict):
        for name, value in params.items():
            if name in _ELSEWHERE:
                raise ConfigError(f"{path} cannot set {name}: {_ELSEWHERE[name]}")
            if is_secret_name(name):
                raise ConfigError(
                    f"{path} cannot set {name}: keys come from the environment, under the provider's own names or"
                    f" named by api_key_env, query or headers"
                )
            _must_be_public(value, f"{path}.{name}")


def _must_be_a_variable(setting: str, name: str) -> None:
    if not _VARIABLE.fullmatch(name):  # it is not shown, since it may be the key itself
        raise ConfigError(f"{setting} must name an environment variable in capitals, such as OPENAI_API_KEY")


def _must_hold_no_secret(url: str) -> None:
    # None of these errors shows the address.
    if "@" in url:
        raise ConfigError("a base_url may not contain a user or password: name the key's variable with api_key_env")
    if "?" in url or "#" in url:
        raise ConfigError(
            'a base_url may not contain a query: write query = {api-version = "2024-10-21"}, or with a key in an environment '
            f"variable query = {{key = {_FROM_ENVIRONMENT}}}"
        )


def _must_be_an_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not url.isprintable() or " " in url:
        raise ConfigError(f"expected a base_url such as http://localhost:8000/v1, found {url!r}")
