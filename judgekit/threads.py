"""Worker threads for code that would block the event loop."""

import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")

_MOST = min(32, (os.cpu_count() or 1) + 4)
"""The maximum number of threads for an event loop, which is the default of asyncio."""

_free: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()
_lock = Lock()


async def run_in_thread(function: Callable[[], Result]) -> Result:
    """Run sync work in a thread, in the caller's context, and return its result.

    A thread cannot be stopped: if the caller is canceled, the thread continues and its result is dropped. Unlike with
    ``asyncio.to_thread``, neither the end of the event loop nor that of the program waits for it.
    """
    import asyncio  # noqa: PLC0415 - importing a scorer would take a tenth longer
    from concurrent.futures import Future  # noqa: PLC0415 - as above

    loop = asyncio.get_running_loop()
    with _lock:
        free = _free.setdefault(loop, asyncio.Semaphore(_MOST))
    async with free:
        context, outcome, done = copy_context(), Future[Result](), loop.create_future()

        def do() -> None:
            try:
                outcome.set_result(context.run(function))
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
                outcome.set_exception(error)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, done)

        Thread(target=do, name="judgekit", daemon=True).start()
        await done
    return outcome.result()


def _settle(done: "asyncio.Future[None]") -> None:
    if not done.done():  # else the caller was canceled
        done.set_result(None)
