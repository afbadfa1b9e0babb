import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import ConversationalGEval, GoalAccuracyMetric, ToolCorrectnessMetric
from deepeval.models import GPTModel
from deepeval.test_case import ConversationalTestCase, LLMTestCase, MultiTurnParams, ToolCall, ToolCallParams, Turn

from benchmarks.peers import work

QUIET = DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False)
SHOWN = [MultiTurnParams.ROLE, MultiTurnParams.CONTENT, MultiTurnParams.TOOLS_CALLED]
NEVER_ASKED = GPTModel(model="gpt-4o-mini", api_key="-")


def calls(of: list[work.Call]) -> list[ToolCall]:
    return [ToolCall(name=name, input_parameters=args) for name, args in of]


def tool_case(made: list[work.Call], expected: list[work.Call]) -> LLMTestCase:
    return LLMTestCase(input="", actual_output="", tools_called=calls(made), expected_tools=calls(expected))


def correctness(*, reason: bool) -> ToolCorrectnessMetric:
    compared = [ToolCallParams.INPUT_PARAMETERS]
    return ToolCorrectnessMetric(evaluation_params=compared, model=NEVER_ASKED, include_reason=reason, async_mode=False)


def tool_calls(*, number: int, deviating: bool) -> Callable[[], dict[str, list[float]]]:
    metric = correctness(reason=False)
    given = [tool_case(*pair) for pair in work.pairs(range(number), deviating=deviating)]
    return lambda: {"tool_correctness": [metric.measure(case, _show_indicator=False) for case in given]}


def conversation(messages: list[dict[str, Any]]) -> ConversationalTestCase:
    """Users and agents alone have turns here: results are the outputs of calls."""
    results = {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}
    turns = [
        Turn(
            role=one["role"],
            content=one["content"] or "",
            tools_called=[
                ToolCall(
                    name=call["function"]["name"],
                    input_parameters=json.loads(call["function"]["arguments"]),
                    output=results.get(call["id"]),
                )
                for call in one.get("tool_calls", ())
            ]
            or None,
        )
        for one in messages
        if one["role"] != "tool"
    ]
    return ConversationalTestCase(turns=turns)


def reading(path: str) -> Callable[[], list[int]]:
    def read() -> list[int]:
        found = [conversation(record["messages"]) for record in work.parsed(Path(path))]
        called = [len(turn.tools_called or ()) for case in found for turn in case.turns]
        results = sum(call.output is not None for c in found for t in c.turns for call in t.tools_called or ())
        return [len(found), len(called) + results, sum(called)]

    return read


def judged(url: str, numbers: list[int], at_once: int, cache: str | None) -> Callable[[], list[float]]:
    metric = GoalAccuracyMetric(model=GPTModel(model="gpt-4o-mini", base_url=url, api_key="-"))
    given = [conversation(work.messages(number, work.calls(number))) for number in numbers]

    def score() -> list[float]:
        done = evaluate(
            given,
            [metric],
            async_config=AsyncConfig(max_concurrent=at_once),
            display_config=QUIET,
            cache_config=CacheConfig(write_cache=bool(cache), use_cache=bool(cache)),
        )
        return [one.score for result in done.test_results for one in result.metrics_data]

    return score


def five(
    url: str, conversations: list[list[dict[str, Any]]], questions: Mapping[str, str], at_once: int
) -> list[float]:
    """The scores of its metric for the goal and of a metric of one's own for each question."""
    model = GPTModel(model="gpt-4o-mini", base_url=url, api_key="-")
    own = [
        ConversationalGEval(name=name, criteria=asked, evaluation_params=SHOWN, model=model)
        for name, asked in questions.items()
    ]
    done = evaluate(
        [conversation([one for one in messages if one["role"] != "system"]) for messages in conversations],
        [GoalAccuracyMetric(model=model), *own],
        async_config=AsyncConfig(max_concurrent=at_once),
        display_config=QUIET,
        cache_config=CacheConfig(write_cache=False),
    )
    return [one.score for result in done.test_results for one in result.metrics_data]


def memory(path: str) -> Callable[[], int]:
    def score() -> int:
        given = [
            tool_case(
                [
                    (call["function"]["name"], json.loads(call["function"]["arguments"]))
                    for one in record["messages"]
                    for call in one.get("tool_calls", ())
                ],
                [(call["name"], call["args"]) for call in record["reference_tool_calls"]],
            )
            for record in work.parsed(Path(path))
        ]
        done = evaluate(
            given,
            [correctness(reason=True)],
            async_config=AsyncConfig(run_async=False),
            display_config=QUIET,
            cache_config=CacheConfig(write_cache=False),
        )
        return len(done.test_results)

    return score
