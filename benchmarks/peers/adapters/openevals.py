from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.caches import InMemoryCache
from langchain_openai import ChatOpenAI
from openevals.llm import create_async_llm_as_judge
from openevals.prompts import TASK_COMPLETION_PROMPT

from benchmarks.peers import work
from benchmarks.peers.adapters import gathered

CACHES: dict[str, InMemoryCache] = {}


def judged(url: str, numbers: list[int], at_once: int, cache: str | None) -> Callable[[], Awaitable[list[float]]]:
    held = CACHES.setdefault(cache, InMemoryCache()) if cache else False
    model = ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="-", cache=held)
    evaluate = create_async_llm_as_judge(prompt=TASK_COMPLETION_PROMPT, judge=model)
    given = [work.messages(number, work.calls(number)) for number in numbers]

    async def one(messages: list[dict[str, Any]]) -> float:
        return float((await evaluate(outputs=messages))["score"])

    return lambda: gathered(one, given, at_once)


async def five(
    url: str, conversations: list[list[dict[str, Any]]], questions: Mapping[str, str], at_once: int
) -> list[float]:
    """The scores of its prompt for the goal and of a prompt for each question."""
    model = ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="-")
    prompts = [f"{asked}\n\n<conversation>\n{{outputs}}\n</conversation>" for asked in questions.values()]
    judges = [create_async_llm_as_judge(prompt=prompt, judge=model) for prompt in (TASK_COMPLETION_PROMPT, *prompts)]

    async def one(given: tuple[Any, list[dict[str, Any]]]) -> float:
        evaluate, messages = given
        return float((await evaluate(outputs=messages))["score"])

    return await gathered(one, [(judge, messages) for messages in conversations for judge in judges], at_once)
