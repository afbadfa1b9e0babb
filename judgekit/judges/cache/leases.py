"""Renewal of the claims that a cache holds."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock, Timer

from judgekit.errors import StoreError
from judgekit.judges.cache.replies import Claim
from judgekit.judges.cache.reply_file import CLAIM_LEASE_SECONDS


class ClaimRenewer:
    """The claims that are held, renewed by a thread so that they survive a blocked event loop.

    Args:
        renew: Extends the leases of claims. It may block.
    """

    def __init__(self, renew: Callable[[Sequence[Claim]], None]) -> None:
        self._renew = renew
        self._held: set[Claim] = set()
        self._lock = Lock()
        self._timer: Timer | None = None

    @contextmanager
    def renewing(self, claim: Claim) -> Generator[None]:
        """Renew a claim until the context ends. The store ignores claims that were not granted, or are lost."""
        with self._lock:
            self._held.add(claim)
            if self._timer is None:
                self._start()
        try:
            yield
        finally:
            self._held.discard(claim)

    def close(self) -> None:
        """Stop renewing claims."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _start(self) -> None:
        self._timer = Timer(CLAIM_LEASE_SECONDS / 3, self._go_on)
        self._timer.daemon = True
        self._timer.start()

    def _go_on(self) -> None:
        with self._lock:
            self._timer = None
            held = tuple(self._held)
            if not held:
                return
            self._start()
        with suppress(StoreError, RuntimeError):  # storing a reply reports the error; the store was closed just now
            self._renew(held)
