"""A judge: an LLM that scorers ask, with its settings."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Generic, Self, TypeVar
from weakref import WeakKeyDictionary, WeakMethod

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from judgekit.errors import ConfigError, ReplyError, explain
from judgekit.judges.cache import CacheMode
from judgekit.judges.client import Client, Request
from judgekit.judges.layers import PROVIDERS, build, provider_named
from judgekit.judges.openai import Price
from judgekit.judges.prompt import Prompt
from judgekit.judges.schema import strict_schema
from judgekit.score import JudgeCall, ledger
from judgekit.traces.message import JsonObject, Record
from judgekit.traces.sample import Sample

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True)
class Judgment(Generic[Answer]):
    """A judge's answer, and the requests it took."""

    answer: Answer
    calls: tuple[JudgeCall, ...]


class Judge(Record):
    """An LLM that scorers ask.

    Its replies are cached: a question that was answered is not asked again, by any run that uses the same file.

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

    _sent: "count[int]" = PrivateAttr()
    _clients: "_Clients" = PrivateAttr()

    def model_post_init(self, _context: object, /) -> None:
        """Checks the settings against each other."""
        if not all(self.model.partition("/")):
            raise ConfigError(f"a judge is named provider/model, as in openai/gpt-4.1-mini, found {self.model!r}")
        if self.cache_mode == "replay" and self.cache is None:
            raise ConfigError("to replay, a judge needs a cache= to replay from")
        if self.cache is not None and self.cache.suffix == ".jsonl" and self.cache_mode != "replay":
            raise ConfigError(f"{self.cache} is only read: use cache_mode='replay', or a SQLite file")
        if self._needs_provider:
            provider_named(self.provider)
            if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
                raise ConfigError(f"a base_url starts with http:// or https://, found {self.base_url!r}")
        self._sent = count()
        self._clients = _Clients()

    def __copy__(self) -> Self:
        """A judge of its own: clients are bound to the settings that they were made with."""
        copied = super().__copy__()
        copied.model_post_init(None)
        return copied

    def __deepcopy__(self, _memo: dict[int, object] | None = None) -> Self:
        """The same: what it holds is frozen, or shared on purpose."""
        return self.__copy__()

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
    def _needs_provider(self) -> bool:
        return self.client is None and self.cache_mode != "replay"

    def check(self) -> None:
        """Raises what would keep the first request from being sent, such as a missing key.

        Raises:
            AuthenticationError: The environment has no key.
        """
        if self._needs_provider:
            provider_named(self.provider).key(self.base_url, self.api_key_env)

    async def ask(
        self,
        prompt: Prompt,
        sample: Sample,
        answer: type[Answer],
        check: Callable[[Answer], None] | None = None,
        *,
        draw: int = 0,
    ) -> Judgment[Answer]:
        """Asks one question about a sample. A reply that cannot be used is shown to the judge once, to be mended.

        Args:
            prompt: The question.
            sample: What fills its inputs.
            answer: The reply's shape. Explanations stand before verdicts in it.
            check: Raises ``ValueError`` on an answer that cannot be right, such as one that cites a message that is
                not there.
            draw: Tells equal questions apart that are to be answered independently.

        Raises:
            JudgeError: There is no usable answer.
        """

        def read(text: str) -> Answer:
            try:
                found = answer.model_validate_json(text)
            except ValidationError as error:
                raise ValueError(explain(error)) from error
            if check is not None:
                check(found)
            return found

        schema = strict_schema(answer)
        request = Request(
            provider=self.provider,
            base_url=self.endpoint,
            model=self.model.partition("/")[2],
            params=self.params,
            messages=prompt.turns(sample),
            schema_name=prompt.name,
            schema=schema,
            prompt=prompt.version(schema),
            accept=read,
            draw=draw,
        )
        with ledger() as calls:
            client = await self._clients.here(lambda: build(self, self._sent))
            try:
                reply = await client.complete(request)
            except ReplyError as error:
                if self.cache_mode == "replay":
                    raise
                reply = await client.complete(request.repaired(error.text, str(error)))
        return Judgment(read(reply.text), tuple(calls))


class _Clients:
    """The client of each event loop, since connections and locks belong to the loop they were made in.

    It is held by an async generator, because ``asyncio.run`` finishes those when its loop ends: connections are closed
    in their own loop, and nobody has to close a judge. The generator knows its holder weakly, so that a judge that is
    forgotten while its loop runs is finished as well.
    """

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Client, AsyncGenerator[Client]]]
        self._held = WeakKeyDictionary()
        self._lock = threading.Lock()

    async def here(self, make: Callable[[], Client]) -> Client:
        """The client of the running loop, made when it is first asked for."""
        loop = asyncio.get_running_loop()
        with self._lock:
            held = self._held.get(loop)
        if held is None:
            holder = _hold(make(), WeakMethod(self._forget))
            held = (await anext(holder), holder)  # waits for nothing, so no other task comes between
            with self._lock:
                self._held[loop] = held
        return held[0]

    def _forget(self) -> None:
        with self._lock:
            self._held.pop(asyncio.get_running_loop(), None)


async def _hold(client: Client, forget: WeakMethod[Callable[[], None]]) -> AsyncGenerator[Client]:
    try:
        yield client
    finally:
        if (forget_it := forget()) is not None:
            forget_it()
        await client.aclose()
