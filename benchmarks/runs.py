"""Runs of many generated conversations with two tool scorers, by the commands, and what reading them again takes.

OpenAI Chat JSONL as in reading.py, with the expected calls beside the messages. Arguments are nested, 30 % of the
conversations have a wrong one, and two trials are a group. Memory is that of all processes of a run together, each page
counted once (PSS), looked at ten times a second. CPU is that of the whole command, start included. What is in the store
in the end is counted.

python benchmarks/runs.py [CONVERSATIONS]
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reading import conversation

CONVERSATIONS = 100_000
SCORERS = ("tool_call_f1", "tool_call_accuracy")
CPU_GOAL = 400  # microseconds a conversation
SPEEDUP_GOAL = 1.65
MORE_CPU_GOAL = 0.1
MEMORY_GOAL = 100  # megabytes
SECONDS_GOAL = {"runs 1 -o run.html": 6, "compare 1 2 -o both.html": 20}  # for 100,000 conversations


class Cost(NamedTuple):
    """The time and memory that a command took."""

    seconds: float
    cpu: float
    megabytes: int


def order(number: int, *, wrong: bool = False) -> dict[str, object]:
    """Arguments as agents have them: objects and lists within each other."""
    items = [{"sku": f"A-{number % 97}", "count": 1}, {"sku": "B-2", "count": 3 if wrong else 2, "options": ["blue"]}]
    address = {"street": "Main St 1", "city": "Austin", "zip": f"{number % 100_000:05}"}
    return {"order": {"id": f"#W{number:07}", "items": items, "address": address}, "express": bool(number % 2)}


def write(path: Path, conversations: int, wrong_tenths: int) -> None:
    with path.open("w") as file:
        for number in range(conversations):
            row = conversation(number)
            calls = row["messages"][2]["tool_calls"]  # type: ignore[index]
            calls[0]["function"]["arguments"] = json.dumps(order(number, wrong=number % 10 < wrong_tenths))
            expected = [
                {"name": "find_order", "args": order(number)},
                {"name": "find_customer", "args": {"email": f"ann.{number}@example.com"}},
            ]
            file.write(json.dumps({**row, "group": f"task {number // 2}", "reference_tool_calls": expected}) + "\n")


def family(pid: int) -> Iterator[int]:
    """A process and those that it started."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from family(int(child))


def memory(pid: int) -> int:
    """Megabytes of a process and those that it started."""
    found = 0
    for one in family(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:  # it ended just now
            continue
        found += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return found // 1024


def cost(*words: str) -> Cost:
    """Return the time and memory of a command of judgekit, with the processes that it starts."""
    before, began, most = os.times(), time.perf_counter(), 0
    command = [sys.executable, "-m", "judgekit", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, memory(process.pid))
            time.sleep(0.1)
    assert process.returncode == 0, words
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(time.perf_counter() - began, cpu, most)


def score(path: Path, store: Path, workers: int = 1) -> Cost:
    named = (word for scorer in SCORERS for word in ("--scorer", scorer))
    return cost("run", str(path), "--store", str(store), "--workers", str(workers), *named)


def scores(store: Path) -> dict[str, tuple[int, float]]:
    """How many scores each scorer has in the store, and their mean."""
    sql = "SELECT scorer, count(*), avg(value) FROM scores GROUP BY scorer"
    found = sqlite3.connect(store).execute(sql)
    return {SCORERS[place]: (count, mean) for place, count, mean in found}


def verdict(text: str, *, met: bool) -> None:
    print(f"{text}: {'met' if met else 'not met'}")


def main() -> None:
    conversations = int(sys.argv[1]) if len(sys.argv) > 1 else CONVERSATIONS
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        a, b = Path("a.jsonl"), Path("b.jsonl")
        write(a, conversations, 3)
        write(b, conversations, 4)
        print(f"{conversations:,} conversations, {a.stat().st_size / 1e6:,.0f} MB\n")
        print("| processes | seconds | conversations/s | CPU us of each | MB at most | bytes kept of each |")
        print("|---|---|---|---|---|---|")
        costs, found = list[Cost](), list[dict[str, tuple[int, float]]]()
        for workers in (1, 2):
            store = Path(f"runs-{workers}.sqlite")
            one = score(a, store, workers)
            costs.append(one)
            found.append(scores(store))
            kept, each = store.stat().st_size / conversations, one.cpu / conversations * 1e6
            speed = conversations / one.seconds
            print(f"| {workers} | {one.seconds:.0f} | {speed:,.0f} | {each:.0f} | {one.megabytes} | {kept:,.0f} |")
        assert found[0] == found[1]
        assert all(count == conversations for count, _ in found[0].values())
        print("\n" + ", ".join(f"{name} {mean:.4f}" for name, (_, mean) in found[0].items()) + "\n")
        alone, both = costs
        each, faster, more = alone.cpu / conversations * 1e6, alone.seconds / both.seconds, both.cpu / alone.cpu - 1
        verdict(f"{each:.0f} us of CPU a conversation, goal {CPU_GOAL}", met=each <= CPU_GOAL)
        verdict(f"2 workers {faster:.2f} times as fast, goal {SPEEDUP_GOAL}", met=faster >= SPEEDUP_GOAL)
        verdict(f"2 workers take {more:+.0%} CPU, goal {MORE_CPU_GOAL:+.0%}", met=more <= MORE_CPU_GOAL)
        verdict(f"{alone.megabytes} MB at most, goal {MEMORY_GOAL}", met=alone.megabytes <= MEMORY_GOAL)
        print("\n| command | seconds | CPU seconds | MB at most |\n|---|---|---|---|")
        score(b, Path("runs-1.sqlite"))
        again = {
            words: cost(*words.split(), "--store", "runs-1.sqlite") for words in ("runs 1", "resume 1", *SECONDS_GOAL)
        }
        for words, one in again.items():
            print(f"| `judgekit {words}` | {one.seconds:.1f} | {one.cpu:.1f} | {one.megabytes} |")
        print()
        for words, goal in SECONDS_GOAL.items():
            most = goal * conversations / CONVERSATIONS
            verdict(f"judgekit {words}: {again[words].cpu:.1f} s, goal {most:g} s", met=again[words].cpu <= most)


if __name__ == "__main__":
    main()
