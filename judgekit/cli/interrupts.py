"""Ctrl-C, and a service manager's SIGTERM: what is under way is finished first."""

import asyncio
import signal
from collections.abc import Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from judgekit.reports.terminal import console

Item = TypeVar("Item")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GRACE = 30.0
"""Seconds for what is under way."""


class Interrupts:
    """Stops work in two steps: after one signal nothing new begins, after another all of it ends."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def until(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, until a signal comes."""
        if self.signal is None:
            for item in items:
                yield item
                if self.signal is not None:  # before another one is taken, which would then be lost
                    return

    @contextmanager
    def at_once(self) -> Generator[None]:
        """Raise `KeyboardInterrupt` for every signal."""

        def stop(number: int, _: object) -> None:
            self.signal = self.signal or number
            raise KeyboardInterrupt

        before = {number: signal.signal(number, stop) for number in _SIGNALS}
        try:
            with suppress(KeyboardInterrupt):
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def heed(self, work: Coroutine[object, object, None]) -> None:
        """Does the work, and returns early where a signal ended it."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def stop(number: int) -> None:
            if self.signal is not None:
                task.cancel()
                return
            self.signal = number
            console(stderr=True).print("stopping when the samples under way are done; once more to stop at once")
            loop.call_later(_GRACE, task.cancel)

        for number in _SIGNALS:
            with suppress(NotImplementedError, RuntimeError):  # on Windows, or in a thread: Ctrl-C then ends it at once
                loop.add_signal_handler(number, stop, number)
        try:
            await task
        except asyncio.CancelledError:
            if self.signal is None:
                raise
        finally:
            for number in _SIGNALS:
                with suppress(NotImplementedError, RuntimeError):
                    loop.remove_signal_handler(number)
