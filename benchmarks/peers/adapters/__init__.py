"""The tools' adapters: a function for each job, which prepares the work and returns the function to time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Given = TypeVar("Given")


async def gathered(one: Callable[[Given], Awaitable[float]], given: Iterable[Given], at_once: int) -> list[float]:
    """The results for all that is given, of which so much is worked on at once."""
    free = asyncio.Semaphore(at_once)

    async def limited(item: Given) -> float:
        async with free:
            return await one(item)

    return await asyncio.gather(*map(limited, given))
