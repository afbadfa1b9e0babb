"""The cache, the outermost layer: a question that was answered before is not sent again."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Lock, Thread
from typing import Literal, TypeAlias
from uuid import uuid4

from judgekit.errors import ReplayError, StoreError
from judgekit.judges.cache.replies import CLAIM_LEASE_SECONDS, Claim
from judgekit.judges.cache.store import RecordedDigests, ReplySource, ReplyStore
from judgekit.judges.cache.textless_replies import without_judge_text
from judgekit.judges.request import Layer, Reply, Request
from judgekit.score import JudgeCall, ledger, record_calls

CacheMode: TypeAlias = Literal["read_write", "refresh", "replay", "off"]

_FIRST_LOOK, _LONGEST_PAUSE = 0.01, 0.25
"""Seconds between checks for a reply that another client is getting."""


@dataclass
class ReplayClient:
    """A client that answers from stored replies alone: a missing reply is an error, never a request."""

    replies: ReplySource
    _recorded: RecordedDigests | None = field(default=None, init=False, repr=False)

    async def complete(self, request: Request, /) -> Reply:
        """Return the stored reply."""
        if (kept := await cached_reply(self.replies, request)) is not None:
            return kept
        if self._recorded is None:  # if one request is missing, thousands may be
            self._recorded = await self.replies.digests()
        missing = f"no reply is recorded for this request of {request.prompt}, and replay mode sends no requests"
        raise ReplayError(f"{missing}; {explain_miss(self._recorded, request)}")


def explain_miss(recorded: RecordedDigests, request: Request) -> str:
    """Return why a request has no reply: the parts that differ from the nearest recorded request of its prompt."""
    wanted, prompt = request.digests, request.prompt.partition("@")[0]
    of_prompt = [digests for name, digests in recorded if name == prompt]
    every = of_prompt or [digests for _, digests in recorded]
    nearest = max(every, key=lambda digests: len(digests.items() & wanted.items()), default=None)
    if nearest is None:
        return "nothing is recorded"
    changed = sorted(name for name in wanted.keys() | nearest.keys() if wanted.get(name) != nearest.get(name))
    return f"the nearest recorded request differs in {', '.join(changed) or 'only its key'}"


@dataclass
class Cache:
    """A layer that answers from stored replies and stores new ones. Failed requests are not stored.

    Equal requests under way share one request. Its waiters can be canceled one by one; with the last one, the request
    is canceled too. Users of the same store, in this process or another, claim a request before they send it, and wait
    for each other's replies. If another user is still faster, its reply is used. In the mode ``refresh``, each request
    is sent, and the new reply replaces an older one. Without ``store_text``, no text of the judge is stored; see
    `without_judge_text`.
    """

    inner: Layer
    replies: ReplyStore
    mode: CacheMode
    store_text: bool = True
    _in_flight: "dict[str, _InFlight]" = field(default_factory=dict[str, "_InFlight"], init=False, repr=False)
    _sent: int = field(default=0, init=False, repr=False)
    _returned: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    _claims: set[Claim] = field(default_factory=set[Claim], init=False, repr=False)
    _renewal: Thread | None = field(default=None, init=False, repr=False)
    _closed: Event = field(default_factory=Event, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _owner: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False)
    _numbers: Iterator[int] = field(default_factory=count, init=False, repr=False)

    async def complete(self, request: Request, /) -> Reply:
        """Return the stored reply, the reply to an equal request under way, or a new one."""
        sent = self._in_flight.get(request.key)
        if sent is None or sent.abandoned:
            sent = self._in_flight[request.key] = _InFlight(request)
            sent.task = asyncio.create_task(self._send(sent))
        try:
            return await sent.reply(request)
        except StoreError:  # it ends the run, which cancels requests under way; their replies would be paid and lost
            while self._sent:
                self._returned.clear()
                await self._returned.wait()
            raise

    async def _send(self, sent: "_InFlight") -> Reply:
        request, pause = sent.request, _FIRST_LOOK
        claim = None if self.mode == "refresh" else Claim(request.key, f"{self._owner} {next(self._numbers)}")
        with ledger(isolated=True) as sent.calls:
            try:
                if claim is None:
                    return await self._ask(request)
                with self._lock:
                    self._claims.add(claim)
                    if self._renewal is None:
                        self._renewal = Thread(target=self._renew_claims, name="judgekit", daemon=True)
                        self._renewal.start()
                while not (kept := await self.replies.claim(claim)):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                return _recorded_reply(request, kept) if isinstance(kept, Reply) else await self._ask(request, claim)
            except BaseException:
                if claim is not None:
                    with suppress(StoreError):
                        await self.replies.release(claim)
                raise
            finally:
                if claim is not None:
                    self._claims.discard(claim)
                if self._in_flight[request.key] is sent:
                    del self._in_flight[request.key]

    def _renew_claims(self) -> None:
        """Renew the claims while there are any, in a thread, so that they survive a blocked event loop.

        The store ignores those that were not granted, or are lost.
        """
        while not self._closed.wait(CLAIM_LEASE_SECONDS / 3):
            with self._lock:
                if not (claims := tuple(self._claims)):
                    self._renewal = None
                    return
            with suppress(StoreError, RuntimeError):  # storing a reply reports the error; the store was closed just now
                self.replies.renew(claims)

    async def _ask(self, request: Request, claim: Claim | None = None) -> Reply:
        self._sent += 1
        try:
            reply = await self.inner.complete(request)
        finally:
            self._sent -= 1
            self._returned.set()
        if (kept := reply if self.store_text else without_judge_text(request, reply)) is None:
            if claim is not None:
                await self.replies.release(claim)
            return reply
        stands = await self.replies.put(request, kept, replace=claim is None)
        if request.repairs is not None:  # this reply answers the original question, also next time
            stands = await self.replies.put(request.repairs, stands, replace=claim is None)
        if stands != kept:
            request.answer(stands, is_cached=True)
            return stands
        return reply

    async def aclose(self) -> None:
        """Cancel the requests under way, and close the file."""
        if tasks := [sent.task for sent in self._in_flight.values()]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        self._closed.set()
        await self.replies.aclose()


@dataclass(eq=False)
class _InFlight:
    """A request under way and the waiters for its reply, of which the first that is not canceled pays for it."""

    request: Request
    task: asyncio.Task[Reply] = field(init=False)
    calls: list[JudgeCall] = field(default_factory=list[JudgeCall])
    abandoned: bool = False
    _waiting: int = 0
    _is_paid: bool = False

    async def reply(self, request: Request) -> Reply:
        """Return the reply, to one more waiter."""
        self._waiting += 1
        try:
            await asyncio.wait((self.task,))
        except asyncio.CancelledError:
            if self._waiting == 1:
                await self._cancel(self.task)
                self._pay()
            raise
        finally:
            self._waiting -= 1
        is_first = self._pay()
        reply = self.task.result()
        if not is_first:
            return _recorded_reply(request, reply)
        if request is not self.request:
            request.answer(reply, is_cached=True)
        return reply

    async def _cancel(self, task: asyncio.Task[Reply]) -> None:
        """Cancel the request, and wait until its cost is known, even if the wait itself is canceled."""
        self.abandoned = True
        task.cancel()
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # marks the error as retrieved, since all waiters are gone

    def _pay(self) -> bool:
        """Record the cost in the ledgers that are open here and return true, unless another waiter has done so."""
        if self._is_paid:
            return False
        self._is_paid = True
        record_calls(*self.calls)
        return True


async def cached_reply(replies: ReplySource, request: Request) -> Reply | None:
    """Return the stored reply to a request, recorded in the ledger at no cost; ``None`` if there is none.

    Raises:
        ReplyError: The request does not accept the reply.
    """
    reply = await replies.get(request.key)
    return None if reply is None else _recorded_reply(request, reply)


def _recorded_reply(request: Request, reply: Reply) -> Reply:
    """Return a reply that was paid for before, recorded in the ledger at no cost."""
    request.answer(reply, is_cached=True)
    record_calls(
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
