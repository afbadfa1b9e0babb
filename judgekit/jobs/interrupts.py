"""Interrupts by Ctrl-C or SIGTERM, as from a service manager: samples under way are finished first."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from judgekit.scoring import run_sync

_GRACE: dict[int, float] = {signal.SIGINT: 30.0, signal.SIGTERM: 5.0}
"""Seconds to finish samples under way, by the signal. Service managers kill soon after SIGTERM."""


@dataclass
class InterruptHandler:
    """A handler of signals in two steps: after the first signal no new work begins, after the second all work ends.

    Attributes:
        on_signal: Called at the first signal. Without it, no signal is handled: Ctrl-C raises `KeyboardInterrupt`, and
            SIGTERM ends the program.
        signal: The number of the first signal that came.
    """

    on_signal: Callable[[], object] | None = None
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of a command that a signal stopped, or 0."""
        return 0 if self.signal is None else 128 + self.signal

    def run(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Do the work. If a signal ends it early, its number is in ``signal``."""
        if self.on_signal is None:
            run_sync(work)
            return
        try:
            asyncio.run(self._handle(work(), self.on_signal))
        except KeyboardInterrupt:
            self.signal = signal.SIGINT

    @contextmanager
    def abort_on_signal(self) -> Generator[None]:
        """End the block at the first signal."""
        if self.on_signal is None:
            yield
            return

        def stop(number: int, _: object) -> None:
            self.signal = self.signal or number
            raise KeyboardInterrupt

        before = {number: signal.signal(number, stop) for number in _GRACE}
        try:
            with suppress(KeyboardInterrupt):
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def _handle(self, work: Coroutine[object, object, None], on_signal: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def stop(number: int) -> None:
            if self.signal is not None:
                task.cancel()
                return
            self.signal = number
            on_signal()
            loop.call_later(_GRACE[number], task.cancel)

        for number in _GRACE:
            with suppress(NotImplementedError, RuntimeError):  # on Windows, or in a thread: Ctrl-C then ends it at once
                loop.add_signal_handler(number, stop, number)
        try:
            await task
        except asyncio.CancelledError:
            if self.signal is None:
                raise
        finally:
            for number in _GRACE:
                with suppress(NotImplementedError, RuntimeError):
                    loop.remove_signal_handler(number)
