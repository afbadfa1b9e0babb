"""The outermost layer: a question that was answered is not asked again."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from judgekit.errors import ReplayError, ReplyError
from judgekit.judges.client import Client, Reply, Request
from judgekit.judges.replies import Replies
from judgekit.score import JudgeCall, record

CacheMode: TypeAlias = Literal["read_write", "refresh", "replay"]


@dataclass(frozen=True)
class Replay:
    """Answers from what is kept, and from nothing else: what is not kept is an error, never a request."""

    replies: Replies

    async def complete(self, request: Request, /) -> Reply:
        """The reply that is kept."""
        if (kept := _kept(self.replies, request)) is None:
            raise ReplayError(self._explain_miss(request))
        return kept

    def _explain_miss(self, request: Request) -> str:
        wanted = request.digests
        nearest = max(self.replies.digests(), key=lambda kept: len(kept.items() & wanted.items()), default=None)
        missing = f"no reply is recorded for this request of {request.prompt}, and replay sends none"
        if nearest is None:
            return f"{missing}; nothing is recorded at all"
        changed = sorted(name for name in wanted.keys() | nearest.keys() if wanted.get(name) != nearest.get(name))
        return f"{missing}; the nearest recorded request differs in {', '.join(changed)}"

    async def aclose(self) -> None:
        """Closes the file."""
        self.replies.close()


@dataclass(frozen=True)
class Cache:
    """Answers from what is kept, and keeps what is answered; what failed never gets here.

    With ``refresh`` it asks all the same, and keeps the new reply. Equal requests under way are one request, whose
    waiters may be cancelled one by one.
    """

    inner: Client
    replies: Replies
    mode: CacheMode
    _under_way: dict[str, asyncio.Task[Reply]] = field(
        default_factory=dict[str, asyncio.Task[Reply]], init=False, repr=False
    )

    async def complete(self, request: Request, /) -> Reply:
        """The reply that is kept, or the one that is waited for, or a new one."""
        if self.mode != "refresh" and (kept := _kept(self.replies, request)) is not None:
            return kept
        if (task := self._under_way.get(request.key)) is not None:
            return _remembered(request, await _result(task))
        task = asyncio.create_task(self._ask(request))
        self._under_way[request.key] = task
        task.add_done_callback(lambda done: self._landed(request.key, done))
        return await _result(task)

    async def _ask(self, request: Request) -> Reply:
        reply = await self.inner.complete(request)
        self.replies.put(request, reply)
        return reply

    def _landed(self, key: str, task: asyncio.Task[Reply]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # marks it as seen: all its waiters may be gone

    async def aclose(self) -> None:
        """Closes the file and what is inside."""
        self.replies.close()
        await self.inner.aclose()


async def _result(task: asyncio.Task[Reply]) -> Reply:
    """What a task returns, for one of its waiters. Unlike a shield, it logs no error that all of them have left."""
    await asyncio.wait((task,))
    return task.result()


def _kept(replies: Replies, request: Request) -> Reply | None:
    reply = replies.get(request.key)
    return None if reply is None else _remembered(request, reply)


def _remembered(request: Request, reply: Reply) -> Reply:
    """A reply that somebody else paid for; equal requests may accept less than the one that was sent."""
    try:
        request.accept(reply.text)
    except ValueError as error:
        raise ReplyError(f"the reply that is kept for this request cannot be used: {error}", text=reply.text) from error
    judge = f"{request.provider}/{request.model}"
    record(JudgeCall(judge=judge, prompt=request.prompt, cached=True, usage=reply.usage, cost_usd=0.0))
    return reply
