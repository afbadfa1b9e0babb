"""Worker threads for code that would block the event loop, and the signatures of sync and async versions."""

import os
from collections.abc import Callable
from contextvars import copy_context
from functools import update_wrapper
from threading import Lock, Thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")

_MOST = min(32, (os.cpu_count() or 1) + 4)
"""The maximum number of threads for an event loop, which is the default of asyncio."""

_free: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()
_lock = Lock()


def with_arguments_of(
    function: Callable[Parameters, object],
) -> Callable[[Callable[..., Result]], Callable[Parameters, Result]]:
    """Return a decorator that gives a function the arguments of another one, for type checkers and `help`."""

    def declare(version: Callable[..., Result]) -> Callable[Parameters, Result]:
        update_wrapper(version, function, assigned=(), updated=())
        return version

    return declare


async def run_in_thread(function: Callable[[], Result]) -> Result:
    """Run sync work in a thread, in the caller's context, and return its result.

    A thread cannot be stopped: if the caller is canceled, the thread continues and its result is dropped. Unlike with
    ``asyncio.to_thread``, neither the end of the event loop nor that of the program waits for it.
    """
    import asyncio  # noqa: PLC0415 - importing a scorer would take a tenth longer
    from concurrent.futures import Future  # noqa: PLC0415 - as above

    with _lock:
        free = _free.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_MOST))
    async with free:
        context, outcome = copy_context(), Future[Result]()
        outcome.set_running_or_notify_cancel()

        def do() -> None:
            try:
                outcome.set_result(context.run(function))
            except StopIteration:  # no coroutine can raise it
                outcome.set_exception(RuntimeError("a function raised StopIteration"))
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
                outcome.set_exception(error)

        Thread(target=do, name="judgekit", daemon=True).start()
        return await asyncio.wrap_future(outcome)


async def finish_in_thread(threads: "Executor", function: Callable[[], Result]) -> Result:
    """Run sync work in an executor, and return its result. If the caller is canceled, the work is finished all the same."""
    import asyncio  # noqa: PLC0415 - importing a scorer would take a tenth longer

    outcome = asyncio.wrap_future(threads.submit(function))
    outcome.add_done_callback(lambda done: done.exception())  # which asyncio logs if a canceled caller does not see it
    return await asyncio.shield(outcome)
