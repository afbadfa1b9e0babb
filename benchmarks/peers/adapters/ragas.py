import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from ragas.cache import DiskCacheBackend
from ragas.dataset_schema import EvaluationDataset, MultiTurnSample
from ragas.llms import llm_factory
from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from ragas.metrics import DiscreteMetric
from ragas.metrics.collections import AgentGoalAccuracyWithoutReference, ToolCallAccuracy, ToolCallF1

from benchmarks.peers import work
from benchmarks.peers.adapters import gathered

TYPES = {"user": HumanMessage, "tool": ToolMessage}


def calls(of: list[work.Call]) -> list[ToolCall]:
    return [ToolCall(name=name, args=args) for name, args in of]


def messages(record: dict[str, Any]) -> list[Any]:
    """The messages of a record in ragas's types, by hand: it reads no format of others."""
    return [
        AIMessage(
            content=one["content"] or "",
            tool_calls=calls(
                [
                    (call["function"]["name"], json.loads(call["function"]["arguments"]))
                    for call in one.get("tool_calls", ())
                ]
            ),
        )
        if one["role"] == "assistant"
        else TYPES[one["role"]](content=one["content"])
        for one in record["messages"]
    ]


def conversation(record: dict[str, Any]) -> MultiTurnSample:
    """A record in ragas's types."""
    expected = calls([(call["name"], call["args"]) for call in record["reference_tool_calls"]])
    return MultiTurnSample(user_input=messages(record), reference_tool_calls=expected)


def conversations(path: str) -> EvaluationDataset:
    return EvaluationDataset(samples=[conversation(record) for record in work.parsed(Path(path))])


def tool_calls(*, number: int, deviating: bool) -> Callable[[], Awaitable[dict[str, list[float]]]]:
    given = [conversation(record) for record in work.records(range(number), deviating=deviating)]
    return lambda: scores(given)


async def scores(given: list[Any]) -> dict[str, list[float]]:
    metrics = [ToolCallAccuracy(), ToolCallF1()]
    return {
        metric.name: [
            (await metric.ascore(user_input=one.user_input, reference_tool_calls=one.reference_tool_calls)).value
            for one in given
        ]
        for metric in metrics
    }


def reading(path: str) -> Callable[[], list[int]]:
    def read() -> list[int]:
        found = [sample.user_input for sample in conversations(path).samples]
        called = sum(len(one.tool_calls or ()) for messages in found for one in messages if one.type == "ai")
        return [len(found), sum(map(len, found)), called]

    return read


def judged(url: str, numbers: list[int], at_once: int, cache: str | None) -> Callable[[], Awaitable[list[float]]]:
    held = DiskCacheBackend(cache) if cache else None
    llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI(base_url=url, api_key="-"), cache=held)
    metric = AgentGoalAccuracyWithoutReference(llm=llm)
    given = [conversation(record).user_input for record in work.records(numbers, deviating=False)]

    async def one(messages: Any) -> float:
        return (await metric.ascore(user_input=messages)).value

    return lambda: gathered(one, given, at_once)


async def five(
    url: str, conversations: list[list[dict[str, Any]]], questions: Mapping[str, str], at_once: int
) -> list[Any]:
    """The scores of its metric for the goal and of a metric of one's own for each question."""
    llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI(base_url=url, api_key="-"))
    goal = AgentGoalAccuracyWithoutReference(llm=llm)
    own = [
        DiscreteMetric(name=name, prompt=f"{asked}\n\n{{conversation}}", allowed_values=["yes", "no"])
        for name, asked in questions.items()
    ]

    async def one(given: tuple[Any, list[dict[str, Any]]]) -> Any:
        metric, recorded = given
        shown = messages({"messages": recorded})
        if metric is goal:
            return (await goal.ascore(user_input=shown)).value
        return (await metric.ascore(llm=llm, conversation="\n".join(each.pretty_repr() for each in shown))).value

    return await gathered(one, [(metric, recorded) for recorded in conversations for metric in (goal, *own)], at_once)


def memory(path: str) -> Callable[[], Awaitable[int]]:
    async def score() -> int:
        found = await scores(list(conversations(path)))
        return len(next(iter(found.values())))

    return score
