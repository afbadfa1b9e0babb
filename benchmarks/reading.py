"""Microseconds to read a conversation, beside parsing its JSON and beside validating it with openai's types.

8 messages a conversation, three tool calls with nested arguments among them, and something unusual in three of ten: the
same conversations as OpenAI Chat JSONL, as OpenAI Chat in the varied shapes of real recordings (more columns, parts in
place of texts, null fields, requests with their responses), and in judgekit's own format. Then other kinds of records, tau2-bench's files
beside ``json.load`` if they are there, and the peak memory of a process of its own for each length of file, which reads
the file and counts. On one core; each figure is the median of five rounds, in which the programs take turns.

python benchmarks/reading.py
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

ROUNDS = 5
CONVERSATIONS = 5_000
LENGTHS = (10_000, 200_000)
TAU2 = Path(__file__).parents[2] / "shared" / "data" / "traces" / "tau2"
GOALS = {"OpenAI Chat": 6, "OpenAI Chat of varied shapes": 8, "our own format": 4}
"""Times ``json.loads`` of the same lines."""
GOAL_TAU2 = 4
"""Times ``json.load``."""
GOAL_MEMORY = 1.1
"""Times the memory that the short file takes."""
CITIES = ("Austin", "Lisbon", "Kyoto", "Gda\u0144sk", "Quito")
GOODS = ("desk lamp", "bookshelf", "water bottle", "backpack", "garden hose", "coffee maker", "jigsaw puzzle")


def conversation(number: int) -> dict[str, object]:
    """A request of a length as agents have it: some 2 kB."""
    calls = [
        ("find_order", {"order_id": f"#W{number:07}", "fields": ["status", "items", "address"]}),
        ("find_customer", {"email": f"ann.{number}@example.com"}),
    ]
    found = [
        {
            "order_id": f"#W{number:07}",
            "status": "pending",
            "items": [
                {"name": "Desk lamp", "product_id": "6817146515", "price": 153.06, "options": {"color": "black"}},
                {"name": "Bookshelf", "product_id": "8600330539", "price": 463.04, "options": {"height": "5 ft"}},
            ],
        },
        {"name": "Ann Lee", "address": {"city": "Austin", "zip": "78712"}, "payment": ["credit_card_9513926"]},
    ]
    messages = [
        {"role": "system", "content": "You are an agent of a shop. " + "Ask before you change an order. " * 12},
        {"role": "user", "content": f"Hi! Where is my order #W{number:07}? It should have been here last Tuesday."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": f"call_{number}_{at}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for at, (name, arguments) in enumerate(calls)
            ],
        },
        *(
            {"role": "tool", "tool_call_id": f"call_{number}_{at}", "content": json.dumps(result)}
            for at, result in enumerate(found)
        ),
        {
            "role": "assistant",
            "content": "Your order of a desk lamp and a bookshelf is still pending and has not left our warehouse. "
            "I can change its address or cancel it, or we wait until it ships, which takes two more days.",
        },
        {"role": "user", "content": "Then please wait. But tell me whether it still goes to my old address in Austin."},
        {"role": "assistant", "content": "It does: Austin, 78712. Shall I change that to another address of yours?"},
    ]
    return {"id": f"conversation-{number}", "messages": messages}


def agent(number: int) -> dict[str, object]:
    """A conversation with three calls whose arguments are nested. Three of ten are unusual."""
    city, goods = CITIES[number % len(CITIES)], [GOODS[(number + at) % len(GOODS)] for at in range(3)]
    order = f"#W{number * 7919 % 10**7:07}"
    address = {"street": f"{number % 900 + 1} Oak Street", "city": city, "zip": f"{number % 90000 + 10000}"}
    items = [
        {
            "name": one,
            "quantity": at + 1,
            "price": number % 997 + at / 4,
            "options": {"color": "black", "gift": at == 1},
        }
        for at, one in enumerate(goods)
    ]
    calls = [
        ("find_orders", {"filter": {"email": f"ann.{number}@example.com", "status": ["pending"]}, "limit": 5}),
        ("find_customer", {"by": {"order": {"id": order}}, "fields": ["name", "address"], "verbose": False}),
        ("change_order", {"order_id": order, "items": items, "ship_to": {"address": address, "notify": None}}),
    ]
    results = [{"orders": [{"id": order, "items": items}]}, {"name": "Ann Lee", "address": address}, {"changed": order}]
    made = [
        {"id": f"call_{number}_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for at, (name, args) in enumerate(calls)
    ]
    told: list[dict[str, object]] = [
        {"role": "tool", "tool_call_id": f"call_{number}_{at}", "content": json.dumps(result)}
        for at, result in enumerate(results)
    ]
    messages: list[dict[str, object]] = [
        {
            "role": "system",
            "content": f"You are an agent of a shop in {city}. " + "Ask before you change an order. " * 8,
        },
        {
            "role": "user",
            "content": f"Hi! Please send my order {order} to {address['street']}, {city}, and add a gift.",
        },
        {"role": "assistant", "content": None, "tool_calls": made[:2]},
        *told[:2],
        {"role": "assistant", "content": f"I change order {order} of a {goods[0]}.", "tool_calls": made[2:]},
        told[2],
        {"role": "assistant", "content": f"Done: your {', '.join(goods)} now go to {city}. Anything else?"},
    ]
    return _unusual({"id": f"conversation-{number}", "messages": messages}, messages, number % 20)


def _unusual(row: dict[str, object], messages: list[dict[str, object]], kind: int) -> dict[str, object]:
    """Change a conversation: the first six of twenty kinds have something unusual."""
    if kind == 0:
        del row["id"]
    elif kind == 1:
        del messages[4]["tool_call_id"]
    elif kind == 2:
        messages[6] |= {"content": "Error: the order was shipped already.", "is_error": True}
    elif kind == 3:
        messages[7] |= {"reasoning_content": "The order is changed.", "refusal": None}
    elif kind == 4:
        messages[1]["content"] = [{"type": "text", "text": messages[1]["content"]}]
    elif kind == 5:
        row |= {"reference": "changed", "score": 0.5, "trace_url": "https://example.com/1"}
    return row


def varied(number: int) -> dict[str, object]:
    """The conversation of an agent with another column, in one of four shapes that real recordings have."""
    row = agent(number) | {"source": "shop", "created": 1_700_000_000 + number}
    messages = cast("list[dict[str, object]]", row.pop("messages"))
    kind = number % 4
    if kind < 2:  # parts in place of texts, or only in place of tool results
        for message in messages:
            if isinstance(text := message["content"], str) and (kind == 0 or message["role"] == "tool"):
                message["content"] = [{"type": "text", "text": text}]
    elif kind == 2:  # as the SDK dumps a reply
        for message in messages:
            if message["role"] == "assistant":
                message |= {"refusal": None, "audio": None, "function_call": None}
    if kind < 3:
        return row | {"messages": messages, "model": "gpt-4o-mini", "metadata": {"shop": number % 7}}
    choice = {"index": 0, "message": messages.pop(), "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
    response = {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "gpt-4o-mini", "usage": usage}
    return row | {"request": {"messages": messages, "temperature": 0}, "response": response | {"choices": [choice]}}


def blocks(number: int) -> dict[str, object]:
    """The same length in Anthropic's words."""
    asked = [{"type": "text", "text": "Where is my order? " * 20}]
    use = {"type": "tool_use", "id": f"t{number}", "name": "find_order", "input": {"order_id": number}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "pending " * 40}
    turns = [{"role": "user", "content": asked}, {"role": "assistant", "content": [use]}]
    turns += [{"role": "user", "content": [result]}, {"role": "assistant", "content": "Still pending. " * 20}]
    return {"model": "claude-x", "max_tokens": 1024, "messages": turns * 2}


def row(number: int) -> dict[str, object]:
    """A question and an answer."""
    return {
        "id": number,
        "input": "Where is my order?",
        "response": "Pending.",
        "reference": "Pending.",
        "language": "en",
    }


def row_of_messages(number: int) -> dict[str, object]:
    """A question and an answer as tracers export them."""
    asked = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Where is my order?"}]
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Pending."}}], "model": "m"}
    return {"id": number, "input": asked, "output": answer, "tags": ["shop"]}


def mixed(number: int) -> dict[str, object]:
    """All of these in turn."""
    return (conversation, blocks, row, row_of_messages)[number % 4](number)


def write(path: Path, conversations: int, record: Callable[[int], dict[str, object]] = conversation) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps(record(number)) + "\n" for number in range(conversations))


def read(path: Path) -> int:
    """Into traces, as users read a file."""
    import judgekit

    return sum(1 for _ in judgekit.read(path, on_error="raise"))


def parse(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in map(json.loads, file))


def validate(path: Path) -> int:
    """With openai's own types, whose tool calls are validated when one walks them. They refuse one in twenty."""
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter[list[dict[str, list[object]]]](list[ChatCompletionMessageParam])
    conversations = 0
    with path.open("rb") as file:
        for line in file:
            with suppress(ValidationError):
                for message in adapter.validate_python(json.loads(line)["messages"]):
                    list(message.get("tool_calls", ()))
            conversations += 1
    return conversations


def load(path: Path) -> int:
    with path.open("rb") as file:
        return len(json.load(file)["simulations"])


def microseconds(measured: Callable[[Path], int], path: Path) -> float:
    """The CPU time of a conversation."""
    began = time.process_time()
    conversations = measured(path)
    return 1e6 * (time.process_time() - began) / conversations


def medians(jobs: Mapping[str, tuple[Callable[[Path], int], Path]]) -> dict[str, float]:
    """The microseconds of a conversation in each job. They take turns: a machine whose speed drifts is fair to all."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for measured, path in jobs.values():  # which load what they need
        measured(path)
    for _ in range(ROUNDS):
        for name, (measured, path) in jobs.items():
            found[name].append(microseconds(measured, path))
    return {name: statistics.median(times) for name, times in found.items()}


def peak(path: Path) -> float:
    """The most memory that a process holds while it reads, in MB."""
    program = [sys.executable, __file__, "read", str(path)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout) / 1e3


def report(goal: str, *, met: bool) -> None:
    print(f"\nGoal: {goal}: {'met' if met else 'not met'}.")


def report_formats(folder: Path) -> None:
    import judgekit

    paths = {name: folder / f"{name}.jsonl" for name in GOALS}
    chat, shapes, own = paths.values()
    write(chat, CONVERSATIONS, agent)
    write(shapes, CONVERSATIONS, varied)
    judgekit.write(judgekit.read(chat), own)
    programs = {"json.loads": parse, "json.loads, then openai's types": validate, "judgekit.read": read}
    found = medians(
        {
            f"{program}: {name}": (measured, path)
            for name, path in paths.items()
            for program, measured in programs.items()
            if measured is not validate or path is chat
        }
    )
    print("| 8 messages, 3 calls | bytes | program | us | beside json.loads |\n|---|---|---|---|---|")
    for job, taken in found.items():
        program, _, name = job.partition(": ")
        size = paths[name].stat().st_size / CONVERSATIONS
        print(f"| {name} | {size:,.0f} | `{program}` | {taken:,.1f} | {taken / found[f'json.loads: {name}']:.1f}x |")
    for name, goal in GOALS.items():
        times = found[f"judgekit.read: {name}"] / found[f"json.loads: {name}"]
        report(f"{name}, at most {goal} times json.loads of the same lines", met=times <= goal)


def report_kinds(folder: Path) -> None:
    path = folder / "kind.jsonl"
    print("\n| records | bytes a line | judgekit.read, us | json.loads, us |")
    print("|---|---|---|---|")
    for record in (conversation, blocks, row, row_of_messages, mixed):
        write(path, CONVERSATIONS, record)
        found = medians({"read": (read, path), "parse": (parse, path)})
        size = path.stat().st_size / CONVERSATIONS
        print(f"| {record.__name__} | {size:,.0f} | {found['read']:,.0f} | {found['parse']:,.1f} |")


def report_tau2() -> None:
    files = sorted(TAU2.glob("*.json"))
    if not files:
        print(f"\ntau2-bench: skipped, its files are not in {TAU2}")
        return
    print("\n| tau2-bench | judgekit.read, us | json.load, us | beside json.load |")
    print("|---|---|---|---|")
    worst = 0.0
    for path in files:
        found = medians({"read": (read, path), "load": (load, path)})
        worst = max(worst, found["read"] / found["load"])
        print(f"| {path.stem} | {found['read']:,.0f} | {found['load']:,.0f} | {found['read'] / found['load']:.1f}x |")
    report(f"at most {GOAL_TAU2} times json.load", met=worst <= GOAL_TAU2)


def report_memory(folder: Path) -> None:
    path = folder / "long.jsonl"
    print("\n| conversations in the file | MB at most |")
    print("|---|---|")
    peaks: list[float] = []
    for length in LENGTHS:
        write(path, length, agent)
        peaks.append(peak(path))
        print(f"| {length:,} | {peaks[-1]:,.0f} |")
    report("memory independent of the number of conversations", met=peaks[-1] <= GOAL_MEMORY * peaks[0])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report_formats(folder)
        report_kinds(folder)
        report_tau2()
        report_memory(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        read(Path(sys.argv[2]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    else:
        main()
