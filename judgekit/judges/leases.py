"""Claims that are held, and renewed for as long as they are."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock, Timer

from judgekit.errors import StoreError
from judgekit.judges.replies import Claim
from judgekit.judges.reply_file import LEASE


class Leases:
    """Renews the claims that are held, from a thread, so that they outlast an event loop that is blocked.

    Args:
        renew: Extends the leases of claims, and blocks meanwhile.
    """

    def __init__(self, renew: Callable[[Sequence[Claim]], None]) -> None:
        self._renew = renew
        self._held: set[Claim] = set()
        self._lock = Lock()
        self._timer: Timer | None = None

    @contextmanager
    def holding(self, claim: Claim) -> Generator[None]:
        """Renew a claim until the context ends. One that was not granted, or is lost, is left alone by the store."""
        with self._lock:
            self._held.add(claim)
            if self._timer is None:
                self._start()
        try:
            yield
        finally:
            self._held.discard(claim)

    def close(self) -> None:
        """Renew no more."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _start(self) -> None:
        self._timer = Timer(LEASE / 3, self._go_on)
        self._timer.daemon = True
        self._timer.start()

    def _go_on(self) -> None:
        with self._lock:
            self._timer = None
            held = tuple(self._held)
            if not held:
                return
            self._start()
        with suppress(StoreError, RuntimeError):  # whoever puts a reply there is told; the store was closed just now
            self._renew(held)
