"""Conversations a second that become traces, beside parsing their JSON and beside validating them with openai's types.

OpenAI Chat JSONL, 8 messages a conversation, two parallel tool calls among them, on one core. Each figure is the median
of five rounds, in which the three take turns. The peak memory is that of a process of its own for each length of file,
which reads the file and counts.

python benchmarks/reading.py
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 5
CONVERSATIONS = 5_000
LENGTHS = (10_000, 200_000)


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
    """With openai's own types, whose tool calls are validated when one walks them."""
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    adapter = TypeAdapter[list[dict[str, list[object]]]](list[ChatCompletionMessageParam])
    conversations = 0
    with path.open("rb") as file:
        for line in file:
            for message in adapter.validate_python(json.loads(line)["messages"]):
                list(message.get("tool_calls", ()))
            conversations += 1
    return conversations


def speed(measured: Callable[[Path], int], path: Path) -> float:
    """Conversations a second of CPU."""
    began = time.process_time()
    assert measured(path) == CONVERSATIONS
    return CONVERSATIONS / (time.process_time() - began)


def peak(path: Path) -> float:
    """The most memory that a process holds while it reads, in MB."""
    program = [sys.executable, __file__, "read", str(path)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout) / 1e3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "conversations.jsonl")
        write(path, CONVERSATIONS)
        for measured in (read, parse, validate):  # which load what they need
            measured(path)
        speeds: dict[str, list[float]] = {"json.loads": [], "json.loads, then openai's types": [], "judgekit.read": []}
        for _ in range(ROUNDS):  # in turn, so that a machine whose speed drifts is fair to all
            for name, measured in zip(speeds, (parse, validate, read), strict=True):
                speeds[name].append(speed(measured, path))
        ours = statistics.median(speeds["judgekit.read"])
        print(
            f"| reading {path.stat().st_size / CONVERSATIONS:,.0f} bytes a line | conversations/s | beside judgekit |"
        )
        print("|---|---|---|")
        for name, found in speeds.items():
            median = statistics.median(found)
            print(f"| `{name}` | {median:,.0f} | {median / ours:.2f}x |")
        print("\n| records | bytes a line | judgekit.read, us | json.loads, us |")
        print("|---|---|---|---|")
        for record in (conversation, blocks, row, row_of_messages, mixed):
            write(path, CONVERSATIONS, record)
            size = path.stat().st_size / CONVERSATIONS
            taken = [statistics.median(1e6 / speed(one, path) for _ in range(ROUNDS)) for one in (read, parse)]
            print(f"| {record.__name__} | {size:,.0f} | {taken[0]:,.0f} | {taken[1]:,.1f} |")
        print("\n| conversations in the file | MB at most |")
        print("|---|---|")
        for length in LENGTHS:
            write(path, length)
            print(f"| {length:,} | {peak(path):,.0f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        read(Path(sys.argv[2]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    else:
        main()
