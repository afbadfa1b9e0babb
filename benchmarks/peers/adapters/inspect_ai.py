import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from inspect_ai import score_async
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec
from inspect_ai.model import CachePolicy, ChatMessage, GenerateConfig, ModelOutput, get_model, messages_from_openai
from inspect_ai.scorer import model_graded_qa

from benchmarks.peers import work

CRITERION = "The agent does everything that the user asked for, by the end of the conversation."


async def typed(messages: list[dict[str, Any]]) -> list[ChatMessage]:
    return await messages_from_openai(messages)


def reading(path: str) -> Callable[[], Awaitable[list[int]]]:
    async def read() -> list[int]:
        found = [Sample(input=await typed(record["messages"])) for record in work.parsed(Path(path))]
        called = sum(len(one.tool_calls or ()) for s in found for one in s.input if one.role == "assistant")
        return [len(found), sum(len(sample.input) for sample in found), called]

    return read


async def recorded(numbers: list[int]) -> EvalLog:
    """The conversations as a log of Inspect's, which its scorers take."""
    samples = []
    for at, number in enumerate(numbers):
        messages = await typed(work.messages(number, work.calls(number)))
        output = ModelOutput.from_content("mockllm/model", messages[-1].text)
        samples.append(
            EvalSample(id=at, epoch=1, input=messages[0].text, target=CRITERION, messages=messages, output=output)
        )
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="goal",
        dataset=EvalDataset(),
        model="mockllm/model",
        config=EvalConfig(),
    )
    return EvalLog(eval=spec, status="success", samples=samples)


def judged(url: str, numbers: list[int], at_once: int, cache: str | None) -> Callable[[], Awaitable[list[float]]]:
    config = GenerateConfig(max_connections=at_once, cache=CachePolicy(expiry=None) if cache else False)
    model = get_model("openai/gpt-4o-mini", base_url=url, api_key="-", config=config, memoize=False)

    given, grade = asyncio.run(recorded(numbers)), model_graded_qa(include_history=True, model=model)

    async def score() -> list[float]:
        log = await score_async(given, [grade], display="none", copy=False)
        return [float(one.as_str() == "C") for sample in log.samples or () for one in (sample.scores or {}).values()]

    return score
