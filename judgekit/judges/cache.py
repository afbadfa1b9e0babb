"""The outermost layer: a question that was answered is not asked again."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, TypeAlias
from uuid import uuid4

from judgekit.errors import ReplayError, ReplyError, StoreError
from judgekit.judges.client import Client, Reply, Request
from judgekit.judges.leases import Leases
from judgekit.judges.replies import Claim
from judgekit.judges.store import Replies, ReplyStore
from judgekit.judges.verdict import verdict_alone
from judgekit.score import JudgeCall, ledger, record

CacheMode: TypeAlias = Literal["read_write", "refresh", "replay", "off"]

_FIRST_LOOK, _LONGEST_PAUSE = 0.01, 0.25
"""Seconds between looks for a reply that somebody else is getting."""


@dataclass(frozen=True)
class Replay:
    """Answers from what is kept, and from nothing else: what is not kept is an error, never a request."""

    replies: Replies

    async def complete(self, request: Request, /) -> Reply:
        """The reply that is kept."""
        if (kept := await kept_reply(self.replies, request)) is None:
            missing = f"no reply is recorded for this request of {request.prompt}, and replay sends none"
            raise ReplayError(f"{missing}; {await explain_miss(self.replies, request)}")
        return kept

    async def aclose(self) -> None:
        """Closes the file."""
        await self.replies.aclose()


async def explain_miss(replies: Replies, request: Request) -> str:
    """Why a request has no reply there: in which parts it differs from the nearest one of its prompt that has."""
    wanted = request.digests
    of_prompt = await replies.digests(request.prompt.partition("@")[0])
    nearest = max(
        of_prompt or await replies.digests(), key=lambda kept: len(kept.items() & wanted.items()), default=None
    )
    if nearest is None:
        return "nothing is recorded at all"
    changed = sorted(name for name in wanted.keys() | nearest.keys() if wanted.get(name) != nearest.get(name))
    return f"the nearest recorded request differs in {', '.join(changed) or 'its key alone'}"


@dataclass
class Cache:
    """Answers from what is kept, and keeps what is answered; what failed never gets here.

    Equal requests under way are one request, whose waiters may be cancelled one by one; with the last one it is
    cancelled. Those of others that use the same store, in this process or another, are claimed and waited for. If
    another one was faster all the same, its reply is the one that is used. With ``refresh`` it asks in any case, and
    the new reply takes the place of an older one. Without ``store_text`` it keeps no words of the judge: see
    `verdict_alone`.
    """

    inner: Client
    replies: ReplyStore
    mode: CacheMode
    store_text: bool = True
    _under_way: "dict[str, _UnderWay]" = field(default_factory=dict[str, "_UnderWay"], init=False, repr=False)
    _leases: Leases = field(init=False, repr=False)
    _owner: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False)
    _claims: Iterator[int] = field(default_factory=count, init=False, repr=False)

    def __post_init__(self) -> None:
        self._leases = Leases(self.replies.renew)

    async def complete(self, request: Request, /) -> Reply:
        """The reply that is kept, or the one that is waited for, or a new one."""
        if self.mode != "refresh" and (kept := await kept_reply(self.replies, request)) is not None:
            return kept
        asked = self._under_way.get(request.key)
        if asked is None or asked.abandoned:
            asked = _UnderWay(self._ask if self.mode == "refresh" else self._ask_once, request)
            self._under_way[request.key] = asked
            asked.task.add_done_callback(lambda _: self._landed(request.key, asked))
        return await asked.reply(request)

    async def _ask_once(self, request: Request) -> Reply:
        claim, pause = Claim(request.key, f"{self._owner} {next(self._claims)}"), _FIRST_LOOK
        with self._leases.holding(claim):
            try:
                while not (found := await self.replies.claim(claim)):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                return _remembered(request, found) if isinstance(found, Reply) else await self._ask(request, claim)
            except BaseException:
                with suppress(StoreError):
                    await self.replies.release(claim)
                raise

    async def _ask(self, request: Request, claim: Claim | None = None) -> Reply:
        reply = await self.inner.complete(request)
        if (kept := reply if self.store_text else verdict_alone(request, reply)) is None:
            if claim is not None:
                await self.replies.release(claim)
            return reply
        stands = await self.replies.put(request, kept, replace=claim is None)
        if request.mends is not None:  # the question that is answered now is that one, also the next time
            stands = await self.replies.put(request.mends, stands, replace=claim is None)
        return reply if stands == kept else _accepted(request, stands)

    def _landed(self, key: str, asked: "_UnderWay") -> None:
        if self._under_way[key] is asked:
            del self._under_way[key]
        if not asked.task.cancelled():
            asked.task.exception()  # marks it as seen: all its waiters may be gone

    async def aclose(self) -> None:
        """Ends what is under way, and closes the file and what is inside."""
        if under_way := [asked.task for asked in self._under_way.values()]:
            for task in under_way:
                task.cancel()
            await asyncio.wait(under_way)
        self._leases.close()
        try:
            await self.replies.aclose()
        finally:  # at the end of a loop, closing may be cancelled
            await self.inner.aclose()


class _UnderWay:
    """A request under way, and those who wait for its reply. The first of them that is not cancelled pays for it."""

    def __init__(self, ask: Callable[[Request], Coroutine[object, object, Reply]], request: Request) -> None:
        self.abandoned = False
        self._request = request
        self._waiting = 0
        self._paid = False
        self._calls: list[JudgeCall] = []
        self.task = asyncio.create_task(self._asked(ask))

    async def _asked(self, ask: Callable[[Request], Coroutine[object, object, Reply]]) -> Reply:
        with ledger(apart=True) as self._calls:
            return await ask(self._request)

    async def reply(self, request: Request) -> Reply:
        """The reply, for one more who waits for it."""
        self._waiting += 1
        try:
            await asyncio.wait((self.task,))
        except asyncio.CancelledError:
            if self._waiting == 1:
                await self._cancel()
                self._pay()
            raise
        finally:
            self._waiting -= 1
        is_first = self._pay()
        reply = self.task.result()
        if not is_first:
            return _remembered(request, reply)
        return reply if request is self._request else _accepted(request, reply)

    async def _cancel(self) -> None:
        """Cancels it, and waits until all that it cost is known, however often that is cancelled."""
        self.abandoned = True
        self.task.cancel()
        while not self.task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((self.task,))

    def _pay(self) -> bool:
        """Writes what it cost into the ledgers that are open here, and says so, unless another waiter did."""
        if self._paid:
            return False
        self._paid = True
        record(*self._calls)
        return True


async def kept_reply(replies: Replies, request: Request) -> Reply | None:
    """The reply to a request that is kept, written into the ledger at no cost; ``None`` if there is none.

    Raises:
        ReplyError: It is not what is asked for.
    """
    reply = await replies.get(request.key)
    return None if reply is None else _remembered(request, reply)


def _remembered(request: Request, reply: Reply) -> Reply:
    """A reply that somebody else paid for."""
    _accepted(request, reply)
    record(
        JudgeCall(
            judge=request.judge,
            prompt=request.prompt,
            model=reply.model,
            system_fingerprint=reply.system_fingerprint,
            cached=True,
            usage=reply.usage,
            cost_usd=0.0,
            exchange=request.exchange(reply.text),
        )
    )
    return reply


def _accepted(request: Request, reply: Reply) -> Reply:
    """A reply that was sent for an equal request, which may accept more than this one."""
    try:
        request.accept(reply.text)
    except ValueError as error:
        raise ReplyError(f"the reply that is kept for this request cannot be used: {error}", text=reply.text) from error
    return reply
