"""What tool-call scoring takes: by itself beside other tools, with reading beside pydantic alone, six shapes, 200 x 200 calls.

Each conversation has 8 messages and 3 calls with nested arguments. Of mixed conversations, three of ten deviate: in a
nested argument, by a missing or an extra call, or in their order. The last lines say which goals are met.

python benchmarks/tool_calls.py
python benchmarks/tool_calls.py shapes    only the six shapes beside ragas, which must be installed
"""

import copy
import itertools
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgekit import Sample

RUNS = 5
SIZES = (2_000, 20_000, 100_000)
DEVIATIONS = ("argument", "missing", "extra", "order")


def conversation(number: int, deviation: str = "") -> dict[str, object]:
    guests = [
        {"name": f"Guest {number}", "age": 41, "diet": ["no nuts", "vegetarian"]},
        {"name": "Ana", "age": 9.5, "diet": []},
    ]
    area = {"center": {"lat": 38.71, "lon": -9.14}, "radius_km": 2}
    calls: list[tuple[str, dict[str, object], str]] = [
        (
            "search_restaurants",
            {"city": "Lisbon", "filters": {"cuisine": ["seafood", "grill"], "open": True, "area": area}, "page": None},
            '{"hits": [{"id": "r-1"}]}',
        ),
        ("check_table", {"id": "r-1", "at": {"date": "2025-06-01", "time": "20:00"}, "people": 2}, '{"free": true}'),
        (
            "book_table",
            {"id": "r-1", "at": {"date": "2025-06-01", "time": "20:00"}, "guests": guests, "notify": {"sms": True}},
            '{"status": "booked"}',
        ),
    ]
    expected = [{"name": name, "args": args} for name, args, _ in calls]
    made = copy.deepcopy(calls)
    if deviation == "argument":
        made[2][1]["guests"][0]["diet"][1] = "vegan"
    elif deviation == "missing":
        del made[1]
    elif deviation == "extra":
        made.append(("cancel_table", {"id": "r-2", "reason": {"code": 3}}, "{}"))
    elif deviation == "order":
        made[0], made[1] = made[1], made[0]
    messages: list[dict[str, object]] = [
        {"role": "user", "content": f"A table for two tonight, please. I am {number}."}
    ]
    for at, (name, args, result) in enumerate(made):
        identity = f"call_{at}"
        messages.append({"role": "assistant", "tool_calls": [{"name": name, "args": args, "id": identity}]})
        messages.append({"role": "tool", "content": result, "tool_call_id": identity, "name": name})
    messages.append({"role": "assistant", "content": "Your table is booked for 20:00."})
    return {"id": f"c{number}", "trace": {"messages": messages}, "reference_tool_calls": expected}


def deviation(number: int) -> str:
    """How a mixed conversation deviates: three of ten do, in each way equally often."""
    tens, ones = divmod(number, 10)
    return DEVIATIONS[(3 * tens + ones) % len(DEVIATIONS)] if ones < 3 else ""


def parse(path: Path) -> None:
    from judgekit import Sample

    with path.open("rb") as file:
        for line in file:
            Sample.model_validate_json(line)


def read_file(path: Path) -> None:
    from judgekit import read

    for _ in read(path, on_error="raise"):
        pass


def score(path: Path) -> None:
    """What ``judgekit run`` does, without keeping it."""
    import asyncio

    from judgekit import ToolCallAccuracy, ToolCallF1, read
    from judgekit.runs.runner import make_tasks, score_tasks
    from judgekit.runs.summary import Summary

    summary = Summary()
    scorers = [ToolCallAccuracy(), ToolCallF1()]
    asyncio.run(score_tasks(make_tasks(read(path, on_error="raise"), scorers), scorers, summary.add, concurrency=1))
    assert all(line.value == 1 for line in summary)


def keep(path: Path) -> None:
    """``run``, which keeps every row and conversation in a store in memory."""
    from judgekit import ToolCallAccuracy, ToolCallF1, read, run

    assert run(read(path, on_error="raise"), [ToolCallAccuracy(), ToolCallF1()]).summary["tool_call_f1"].value == 1


JOBS = {
    "pydantic alone": parse,
    "read": read_file,
    "read + ToolCallAccuracy + ToolCallF1": score,
    "the same with run(), which keeps all in memory": keep,
}


def by_hand(samples: "Sequence[Sample]") -> Callable[[], object]:
    """The least that can be done: a comparison of names and arguments, and neither types nor reasons."""

    def loop() -> None:
        for sample in samples:
            expected = sample.reference_tool_calls or ()
            made = [call for one in sample.trace.messages if one.role == "assistant" for call in one.tool_calls]
            same = sum(
                one.name == other.name and one.args == other.args for one, other in zip(expected, made, strict=False)
            )
            assert (same == len(expected) == len(made)) is matches(sample)

    return loop


def matches(sample: "Sample", *, in_any_order: bool = False) -> bool:
    return sample.group == "" or (in_any_order and sample.group == "order")


def judgekit(samples: "Sequence[Sample]") -> Callable[[], object]:
    import asyncio

    from judgekit import ToolCallAccuracy, ToolCallF1

    async def main() -> None:
        for sample in samples:
            for scorer in (accuracy, f1):
                score = await scorer.ascore(sample)
                assert (score.value == 1) is matches(sample, in_any_order=scorer is f1)

    accuracy, f1 = ToolCallAccuracy(), ToolCallF1()
    return lambda: asyncio.run(main())


def ragas_inputs(samples: "Sequence[Sample]") -> tuple[list[tuple["Sample", list[Any], list[Any]]], list[Any]]:
    """The samples in the types of ragas, and its two scorers."""
    from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
    from ragas.metrics.collections import ToolCallAccuracy, ToolCallF1

    def calls(of: Any) -> list[ToolCall]:
        return [ToolCall(name=call.name, args=dict(call.args)) for call in of or ()]

    def convert(message: Any) -> Any:
        if message.role == "assistant":
            return AIMessage(content=message.text, tool_calls=calls(message.tool_calls))
        return {"user": HumanMessage, "tool": ToolMessage}[message.role](content=message.text)

    prepared = [(one, [*map(convert, one.trace.messages)], calls(one.reference_tool_calls)) for one in samples]
    return prepared, [ToolCallAccuracy(), ToolCallF1()]


def ragas(samples: "Sequence[Sample]") -> Callable[[], object]:
    import asyncio

    async def main() -> None:
        for sample, messages, expected in prepared:
            for metric in metrics:
                score = await metric.ascore(user_input=messages, reference_tool_calls=expected)
                assert (score.value == 1) is matches(sample, in_any_order=metric is metrics[1])

    prepared, metrics = ragas_inputs(samples)
    return lambda: asyncio.run(main())


def agentevals(samples: "Sequence[Sample]") -> Callable[[], object]:
    from agentevals.trajectory.match import create_trajectory_match_evaluator

    def message(role: str, calls: Any) -> dict[str, Any]:
        return {"role": role, "content": ""} | ({"tool_calls": [*map(call, calls)]} if calls else {})

    def call(one: Any) -> dict[str, Any]:
        return {"type": "function", "function": {"name": one.name, "arguments": json.dumps(one.args)}}

    def both(sample: "Sample") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        made = [message(one.role, one.tool_calls if one.role == "assistant" else ()) for one in sample.trace.messages]
        steps = [[message("assistant", [one]), message("tool", ())] for one in sample.reference_tool_calls or ()]
        return made, [message("user", ()), *itertools.chain(*steps), message("assistant", ())]

    def main() -> None:
        for made, expected, is_match in prepared:
            assert strict(outputs=made, reference_outputs=expected)["score"] is is_match

    strict = create_trajectory_match_evaluator(trajectory_match_mode="strict")
    prepared = [(*both(one), matches(one)) for one in samples]
    return main


def deepeval(samples: "Sequence[Sample]") -> Callable[[], object]:
    from deepeval.metrics import ToolCorrectnessMetric
    from deepeval.test_case import LLMTestCase, ToolCall, ToolCallParams

    def calls(of: Any) -> list[ToolCall]:
        return [ToolCall(name=one.name, input_parameters=dict(one.args)) for one in of]

    def main() -> None:
        for case, is_match in prepared:  # extra calls and another order also count as correct
            assert metric.measure(case, _show_indicator=False) == 1 or not is_match

    metric = ToolCorrectnessMetric(
        evaluation_params=[ToolCallParams.INPUT_PARAMETERS], model="none", include_reason=False, async_mode=False
    )
    prepared = [
        (
            LLMTestCase(
                input="",
                actual_output="",
                tools_called=calls(made.call for made in one.trace.tool_calls()),
                expected_tools=calls(one.reference_tool_calls),
            ),
            matches(one),
        )
        for one in samples
    ]
    return main


SCORING = {
    "a loop by hand": by_hand,
    "ToolCallAccuracy + ToolCallF1": judgekit,
}
PEERS = {"ragas": ragas, "agentevals": agentevals, "deepeval": deepeval}
"""What is measured too where it is installed: accuracy and F1, one strict match, one tool correctness."""
KINDS = ("matching", "mixed")


def scoring() -> None:
    """Prints microseconds of CPU a conversation for each way, which take turns in one process."""
    import gc
    import importlib.util

    from judgekit import Sample

    sizes = dict.fromkeys(SCORING, SIZES[1]) | {
        peer: SIZES[0] for peer in PEERS if importlib.util.find_spec(peer) is not None
    }
    found: dict[str, dict[str, float]] = {way: {} for way in sizes}
    for kind in KINDS:
        deviations = ["" if kind == "matching" else deviation(number) for number in range(SIZES[1])]
        samples = [
            Sample.model_validate(conversation(number, how) | {"group": how}) for number, how in enumerate(deviations)
        ]
        times: dict[str, list[float]] = {way: [] for way in sizes}
        for _ in range(RUNS):
            for way, size in sizes.items():
                score = (SCORING | PEERS)[way](samples[:size])
                gc.collect()
                gc.freeze()
                before = time.process_time()
                score()
                times[way].append((time.process_time() - before) * 1e6 / size)
                gc.unfreeze()
        for way, each in times.items():
            found[way][kind] = statistics.median(each)
    print(json.dumps(found))


def shape(kind: str, number: int) -> dict[str, Any]:
    """A conversation of a shape. Three of ten deviate from what was expected, in the ways of `deviation`."""
    rng = random.Random(f"{kind} {number}")  # noqa: S311 - no secret

    def text(words: int) -> str:
        return " ".join(rng.choice(WORDS[kind == "Chinese"]) for _ in range(words))

    def arguments(depth: int) -> dict[str, Any]:
        flat: dict[str, Any] = {"id": rng.randrange(1_000), "query": text(4), "page": rng.choice([1, 2.5, None, True])}
        return flat if depth == 0 else flat | {"filters": [arguments(depth - 1), arguments(depth - 1)], "area": flat}

    names = [f"tool_{at}" for at in range(40)] if kind == "40 tools" else ["search", "book", "pay", "cancel", "look_up"]
    depth = 2 if kind == "nested arguments" else 0
    count = {"1 call": 1, "60 messages": 29, "100 calls": 100, "40 tools": 12}.get(kind, 4)
    calls = [{"name": names[at % len(names)], "args": arguments(depth)} for at in range(count)]
    how = deviation(number)
    made = copy.deepcopy(calls)
    if how == "argument":
        made[-1]["args"]["query"] = text(5)
    elif how == "missing":
        del made[0]
    elif how == "extra":
        made.append({"name": "search", "args": arguments(depth)})
    elif how == "order":
        made.reverse()
    messages: list[dict[str, Any]] = [{"role": "user", "content": text(12)}]
    for at, call in enumerate(made):
        identity = f"call_{at}"
        messages.append({"role": "assistant", "content": "", "tool_calls": [call | {"id": identity}]})
        result = text(400 if kind == "60 messages" else 8)
        messages.append({"role": "tool", "content": result, "tool_call_id": identity, "name": call["name"]})
    messages.append({"role": "assistant", "content": text(12)})
    tools = [{"name": name, "description": text(9), "parameters": {"type": "object"}} for name in names]
    return {
        "id": f"{kind} {number}",
        "trace": {"messages": messages, "tools": tools},
        "reference_tool_calls": calls,
        "group": "order" if how == "order" and made == calls else how,
    }


SHAPES = {"1 call": 500, "nested arguments": 200, "Chinese": 300, "40 tools": 150, "60 messages": 100, "100 calls": 40}
"""The shapes, and how many conversations of each."""
WORDS = (
    ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "in", "Lisbon", "at", "20:00"],
    ["北京", "今天", "天气", "很", "好", "我", "想", "预订", "一张", "桌子", "谢谢"],
)
SHAPES_GOAL, SHAPE_GOAL = 1.0, 2.2
"""The time of both scorers with their reasons, beside ragas's for bare numbers: the geometric mean, and each."""


def shapes() -> None:
    """Prints, for each shape, microseconds of CPU a conversation, with reasons and details read, and ragas's."""
    import gc

    from judgekit import Sample

    rows: dict[str, dict[str, float]] = {}
    for kind, size in SHAPES.items():
        samples = [Sample.model_validate(shape(kind, number)) for number in range(size)]
        ways = {
            "judgekit": judgekit_explained(samples),
            "ragas": ragas_numbers(samples),
            "ragas, multi_turn_ascore": ragas_samples(samples),
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(1 + 2 * RUNS):
            for way, score in ways.items():
                gc.collect()
                before = time.process_time()
                score()
                times[way].append((time.process_time() - before) * 1e6 / size)
        medians = {way: statistics.median(each[1:]) for way, each in times.items()}
        rows[kind] = medians | {"ratio": medians["judgekit"] / medians["ragas"]}
    table(rows, "six shapes, us")
    ratios = [row["ratio"] for row in rows.values()]
    mean, most = statistics.geometric_mean(ratios), max(ratios)
    print()
    report(f"six shapes: {mean:.2f} of the time of ragas in the geometric mean", met=mean <= SHAPES_GOAL)
    report(f"six shapes: at most {most:.2f} of the time of ragas", met=most <= SHAPE_GOAL)


def judgekit_explained(samples: "Sequence[Sample]") -> Callable[[], object]:
    import asyncio

    from judgekit import ToolCallAccuracy, ToolCallF1

    async def main() -> None:
        for sample in samples:
            for scorer in scorers:
                score = await scorer.ascore(sample)
                assert score.reason
                assert score.details

    scorers = (ToolCallAccuracy(), ToolCallF1())
    return lambda: asyncio.run(main())


def ragas_numbers(samples: "Sequence[Sample]") -> Callable[[], object]:
    import asyncio

    async def main() -> None:
        for _, messages, expected in prepared:
            for metric in metrics:
                await metric.ascore(user_input=messages, reference_tool_calls=expected)

    prepared, metrics = ragas_inputs(samples)
    return lambda: asyncio.run(main())


def ragas_samples(samples: "Sequence[Sample]") -> Callable[[], object]:
    """The same two metrics in their older form, which takes a whole sample and which most examples show."""
    import asyncio

    from ragas.dataset_schema import MultiTurnSample
    from ragas.metrics import ToolCallAccuracy, ToolCallF1

    async def main() -> None:
        for sample in inputs:
            for metric in metrics:
                await metric.multi_turn_ascore(sample)

    prepared, _ = ragas_inputs(samples)
    inputs = [MultiTurnSample(user_input=messages, reference_tool_calls=expected) for _, messages, expected in prepared]
    metrics = (ToolCallAccuracy(), ToolCallF1())
    return lambda: asyncio.run(main())


def large() -> None:
    """Prints milliseconds for 200 expected calls and 200 made ones, which agree in half of their arguments' sets."""
    import scipy.optimize  # noqa: F401 - so that no figure holds its import

    from judgekit import AIMessage, Sample, ToolCall, ToolCallAccuracy, ToolCallF1, ToolCallMatch, ToolMatch

    def calls(tools: int, text: str) -> list[ToolCall]:
        return [ToolCall(f"tool_{at % tools}", {"id": at, "page": at % 3, "text": text}) for at in range(200)]

    partly = ToolMatch(order="in_order", credit="f1", args_credit="fraction")
    scorers = [
        ToolCallAccuracy(strict_order=False),
        ToolCallF1(),
        ToolCallMatch("exact", name="exact"),
        ToolCallMatch("contains", name="contains"),
        ToolCallMatch(partly, name="in order, by arguments"),
    ]
    found: dict[str, dict[str, float]] = {}
    for tools in (1, 7):
        for parallel in (1, 5):
            made = calls(tools, "x")[:100] + calls(tools, "y")[100:]
            random.Random(0).shuffle(made)  # noqa: S311 - no secret
            turns = [AIMessage(tool_calls=made[at : at + parallel]) for at in range(0, 200, parallel)]
            sample = Sample.of(turns, reference_tool_calls=calls(tools, "x"))
            for scorer in scorers:
                times: list[float] = []
                for _ in range(RUNS):
                    before = time.perf_counter()
                    assert scorer.score(sample).reason
                    times.append((time.perf_counter() - before) * 1e3)
                case = f"{tools} {'tool' if tools == 1 else 'tools'}, {parallel} a message"
                found.setdefault(scorer.name, {})[case] = statistics.median(times)
    print(json.dumps(found))


def measure(job: str, path: Path) -> tuple[float, float]:
    """Microseconds of CPU in all, and MiB of memory at the most, in a process that has imported all before."""
    done = subprocess.run([sys.executable, __file__, job, str(path)], check=True, capture_output=True, text=True)
    cpu, memory = json.loads(done.stdout)
    return cpu, memory


def inside(job: str, path: Path) -> None:
    warm = path.with_name("warm.jsonl")
    JOBS[job](warm)
    before = time.process_time()
    JOBS[job](path)
    cpu = (time.process_time() - before) * 1e6
    status = Path("/proc/self/status").read_text()  # getrusage would count what the parent had before it started this
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    print(json.dumps([cpu, int(peak) / 1024]))


def table(rows: dict[str, dict[str, float]], what: str) -> None:
    columns = list(next(iter(rows.values())))
    print(f"\n| {what} | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in cells.values())} |")


def alone(part: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, part], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def lines(size: int) -> Iterator[str]:
    return (json.dumps(conversation(number)) + "\n" for number in range(size))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "warm.jsonl").write_text("".join(lines(100)))
        paths = {size: Path(folder) / f"{size}.jsonl" for size in SIZES}
        for size, path in paths.items():
            path.write_text("".join(lines(size)))
        print("| job | " + " | ".join(f"{size:,}: us, MiB" for size in SIZES) + " | beside pydantic |")
        print("|---" * (len(SIZES) + 2) + "|")
        middle = SIZES[1]
        found = {job: dict[int, list[tuple[float, float]]]() for job in JOBS}
        for size, path in paths.items():
            for _ in range(RUNS if size <= middle else 1):
                for job in JOBS:
                    found[job].setdefault(size, []).append(measure(job, path))
        base = statistics.median(cpu for cpu, _ in found["pydantic alone"][middle])
        for job, sizes in found.items():
            cells = [
                f"{statistics.median(cpu for cpu, _ in runs) / size:.1f}, {statistics.median(mib for _, mib in runs):.0f}"
                for size, runs in sizes.items()
            ]
            ratio = statistics.median(cpu for cpu, _ in sizes[middle]) / base
            print(f"| {job} | {' | '.join(cells)} | {ratio:.2f}x |")

    scores, matrix = alone("scoring"), alone("large")
    table(scores, "scoring alone, us")
    table(matrix, "milliseconds for 200 x 200 calls")
    print()
    ours = scores["ToolCallAccuracy + ToolCallF1"]
    for kind in KINDS if "ragas" in scores else ():
        ratio = ours[kind] / scores["ragas"][kind]
        report(f"{kind}: {ratio:.2f} of the time of ragas, at most 1", met=ratio < 1)


def report(goal: str, *, met: bool) -> None:
    print(f"- {goal}: {'met' if met else 'not met'}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        inside(sys.argv[1], Path(sys.argv[2]))
    else:
        {"scoring": scoring, "shapes": shapes, "large": large}[sys.argv[1]]() if len(sys.argv) == 2 else main()
