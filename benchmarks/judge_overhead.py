"""CPU that judgekit takes for a judged sample, beside a raw AsyncOpenAI on the same transport, and from the cache.

Both ask a server on loopback, which is a process of its own, for the same verdict on the same conversations of 8
messages. judgekit does its whole work: rendering, cache file, claim, budget, retries, rate limit, checks of the reply,
row. Rounds of the two take turns; each figure is the median of the rounds.

python benchmarks/judge_overhead.py        on aiohttp if it is installed
python benchmarks/judge_overhead.py httpx  on httpx even so
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from server import running

if TYPE_CHECKING:
    import openai

    from judgekit import Judge, Sample

ROUNDS = 7
REQUESTS = 512
AT_ONCE = (1, 32, 128, 256)
REPLY_SECONDS = (0.05, 0.8, 2, 5)
CACHED = 10_000


def samples(numbers: range) -> "Iterator[Sample]":
    from judgekit import AIMessage, HumanMessage, Sample, ToolCall, ToolMessage

    for number in numbers:
        messages: list[HumanMessage | AIMessage | ToolMessage] = [
            HumanMessage(f"A table for four tonight, please. I am guest {number}.")
        ]
        for at, name in enumerate(("search_restaurants", "check_table", "book_table")):
            arguments = {"city": "Lisbon", "time": "20:00", "people": 4, "guest": number}
            messages.append(AIMessage("One moment.", tool_calls=[ToolCall(name, arguments, id=str(at))]))
            messages.append(
                ToolMessage('{"status": "ok", "hits": [{"id": "r-1", "free": true}]}', tool_call_id=str(at))
            )
        messages.append(AIMessage("Your table is booked for 20:00."))
        yield Sample.of(messages, id=str(number))


def judge_at(url: str, cache: Path, at_once: int) -> "Judge":
    from judgekit import Judge

    return Judge("openai/judge", base_url=url, cache=cache, concurrency=at_once)


async def judged(url: str, cache: Path, numbers: range, at_once: int) -> float:
    """Microseconds of CPU a sample, whole scorer path."""
    from judgekit import AgentGoalAccuracyWithoutReference, arun

    scorers = [AgentGoalAccuracyWithoutReference(judge_at(url, cache, at_once))]
    held = list(samples(numbers))
    began = time.process_time()
    run = await arun(held, scorers, concurrency=at_once)
    taken = time.process_time() - began
    assert run.summary[scorers[0].name].value == 1
    return taken / len(held) * 1e6


def http_client() -> "openai.DefaultAsyncHttpxClient":
    """The transport that judgekit takes."""
    import openai

    return openai.DefaultAioHttpClient() if has_aiohttp() else openai.DefaultAsyncHttpxClient()


def has_aiohttp() -> bool:
    import openai

    try:
        openai.DefaultAioHttpClient()
    except RuntimeError:
        return False
    return True


async def raw(url: str, numbers: range, at_once: int) -> float:
    """Microseconds of CPU a request: the same words and schema, and the verdict read with json.loads."""
    import openai

    from judgekit import load_prompt
    from judgekit.judges.schema import strict_schema
    from judgekit.scorers.goal import GoalAnswer

    prompt = load_prompt("agent_goal_without_reference")
    turns = [[turn._asdict() for turn in prompt.fill(sample).messages] for sample in samples(numbers)]
    schema = {"name": prompt.name, "schema": strict_schema(GoalAnswer), "strict": True}
    waiting = iter(turns)

    async def work(client: openai.AsyncOpenAI) -> None:
        for messages in waiting:
            completed = await client.chat.completions.create(
                model="judge",
                messages=messages,  # type: ignore[arg-type]
                response_format={"type": "json_schema", "json_schema": schema},  # type: ignore[typeddict-item]
            )
            assert json.loads(completed.choices[0].message.content or "")["goals"][0]["verdict"] == "achieved"

    async with openai.AsyncOpenAI(base_url=url, api_key="-", max_retries=0, http_client=http_client()) as client:
        began = time.process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work(client))
        return (time.process_time() - began) / len(turns) * 1e6


async def hits(url: str, cache: Path) -> tuple[float, float]:
    """Microseconds of CPU for a reply from the cache: request, key, file, checks, ledger.

    The second figure is for another question about a conversation that was just rendered.
    """
    from judgekit import load_prompt
    from judgekit.judges.layers import build_client
    from judgekit.judges.structured_output import SchemaSupport
    from judgekit.scorers.goal import GoalAnswer

    judge, prompt = judge_at(url, cache, 1), load_prompt("agent_goal_without_reference")
    held = list(samples(range(10_000_000, 10_000_000 + CACHED // 4)))
    closing = AsyncExitStack()
    client = await build_client(judge, None, SchemaSupport(), closing)

    async def taken(times: int) -> float:
        began = time.process_time()
        for sample in held:
            for _ in range(times):
                await client.complete(judge.build_request(prompt, sample, GoalAnswer))
        return (time.process_time() - began) / len(held) * 1e6

    first, all_three = await taken(1), await taken(3)
    await closing.aclose()
    return first, (all_three - first) / 2


def main() -> None:
    from judgekit import AgentGoalAccuracyWithoutReference, run

    with running("same") as url, tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.sqlite"
        fresh = iter(range(0, 10_000_000, REQUESTS))
        print(f"transport: {'aiohttp' if has_aiohttp() else 'httpx'}\n")
        print("| at once | raw AsyncOpenAI, us | judgekit, us | ratio |\n|---|---|---|---|")
        for at_once in AT_ONCE:
            found: list[tuple[float, float]] = []
            for turn in range(ROUNDS + 1):
                numbers = range(start := next(fresh), start + REQUESTS)
                pair = asyncio.run(raw(url, numbers, at_once)), asyncio.run(judged(url, cache, numbers, at_once))
                found += [pair] if turn else []  # the first round warms up
            ratio = statistics.median(mine / theirs for theirs, mine in found)
            medians = " | ".join(f"{statistics.median(figures):.0f}" for figures in zip(*found, strict=True))
            print(f"| {at_once} | {medians} | {ratio:.2f} |", flush=True)
        asyncio.run(judged(url, cache, range(10_000_000, 10_000_000 + CACHED), 32))
        found = [asyncio.run(hits(url, cache)) for _ in range(ROUNDS)]
        first, another = (statistics.median(figures) for figures in zip(*found, strict=True))
        print(f"\na reply from the cache, with its request and key: {first:.0f} us")
        print(f"the same of a conversation that another scorer rendered just before: {another:.0f} us (goal: 30)")
        held = list(samples(range(10_000_000, 10_000_000 + CACHED)))
        began = time.perf_counter()
        again = run(held, [AgentGoalAccuracyWithoutReference(judge_at(url, cache, 32))], concurrency=32)
        took = time.perf_counter() - began
        assert again.summary["agent_goal_accuracy_without_reference"].cached == CACHED
        print(f"{CACHED:,} judged samples, all cached: {took:.1f} s\n")
    throughput_ratios()


def throughput_ratios() -> None:
    """Print the throughput of a raw client and of judgekit where replies take a while."""
    slow_throughputs(0, 32)  # imports and warms up
    print("| replies after | at once | raw AsyncOpenAI, requests/s | judgekit | ratio |\n|---|---|---|---|---|")
    for seconds in REPLY_SECONDS:
        for at_once in AT_ONCE[1:]:
            throughputs = slow_throughputs(seconds, at_once)
            ratio = throughputs[1] / throughputs[0]
            print(
                f"| {seconds} s | {at_once} | {throughputs[0]:.0f} | {throughputs[1]:.0f} | {ratio:.2f} |", flush=True
            )


def slow_throughputs(seconds: float, at_once: int) -> list[float]:
    """Requests per second of a raw client and of judgekit, in rounds of replies that take 10 seconds and more."""
    numbers = range(at_once * max(2, min(round(10 / (seconds or 1)), round(10_000 / at_once))))
    throughputs = list[float]()
    for client in ("raw", "judgekit"):
        with running("slow", seconds) as url, tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            if client == "raw":
                asyncio.run(raw(url, numbers, at_once))
            else:
                asyncio.run(judged(url, Path(folder) / "cache.sqlite", numbers, at_once))
            throughputs.append(len(numbers) / (time.perf_counter() - began))
    return throughputs


if __name__ == "__main__":
    if "httpx" in sys.argv:
        sys.modules["aiohttp"] = None  # type: ignore[assignment]  # which hides it from openai
        assert not has_aiohttp()
    main()
