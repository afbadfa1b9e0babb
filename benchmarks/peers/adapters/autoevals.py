from collections.abc import Awaitable, Callable

from autoevals import ClosedQA
from openai import AsyncOpenAI

from benchmarks.peers import work
from benchmarks.peers.adapters import gathered

CRITERIA = "The agent did everything that the user asked for, by the end of the conversation."


def judged(url: str, numbers: list[int], at_once: int, cache: str | None) -> Callable[[], Awaitable[list[float]]]:
    if cache:
        raise NotImplementedError("no cache of its own")
    scorer = ClosedQA(model="gpt-4o-mini", client=AsyncOpenAI(base_url=url, api_key="-"))
    given = [(work.messages(number, [])[0]["content"], work.transcript(number)) for number in numbers]

    async def one(texts: tuple[str, str]) -> float:
        return (await scorer.eval_async(input=texts[0], output=texts[1], criteria=CRITERIA)).score

    return lambda: gathered(one, given, at_once)
