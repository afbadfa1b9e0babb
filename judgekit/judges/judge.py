"""A judge: an LLM that scorers ask, with its settings."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from itertools import count
from typing import Generic, Self, TypeVar
from weakref import WeakKeyDictionary, WeakMethod

from pydantic import BaseModel, PrivateAttr, ValidationError

from judgekit.errors import ReplyError, explain
from judgekit.judges.client import Client, Request
from judgekit.judges.layers import api_key, build, open_replies
from judgekit.judges.prompt import Prompt
from judgekit.judges.schema import strict_schema
from judgekit.judges.settings import JudgeSettings
from judgekit.score import JudgeCall, ledger
from judgekit.traces.sample import Sample

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True)
class Judgment(Generic[Answer]):
    """A judge's answer, and the requests it took."""

    answer: Answer
    calls: tuple[JudgeCall, ...]


class Judge(JudgeSettings):
    """An LLM that scorers ask.

    Its replies are cached: a question that was answered is not asked again, by any run that uses the same file. The
    settings are those of `JudgeSettings`.
    """

    _sent: "count[int]" = PrivateAttr()
    _clients: "_Clients" = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Checks the settings, and starts to count."""
        super().model_post_init(context)
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

    def check(self) -> None:
        """Raises what would keep every request from being answered: a missing key, a cache that cannot be used.

        Raises:
            AuthenticationError: The environment has no key.
            StoreError: The cache cannot be used.
        """
        if self.asks_a_provider:
            api_key(self)
        if self.cache is not None:
            open_replies(self.cache, self.cache_mode).close()

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
