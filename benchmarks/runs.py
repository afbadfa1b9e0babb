"""A run of many generated conversations with two tool scorers, by ``judgekit run``, with one process and with two.

OpenAI Chat JSONL as in reading.py, with the expected calls beside the messages; one conversation in eight has a wrong
argument, and two trials are a group. Memory is that of all processes of a run together, each page counted once (PSS),
looked at ten times a second. What is in the store in the end is counted.

python benchmarks/runs.py [CONVERSATIONS]
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from reading import conversation

CONVERSATIONS = 1_000_000
SCORERS = ("tool_call_f1", "tool_call_accuracy")


def write(path: Path, conversations: int) -> None:
    with path.open("w") as file:
        for number in range(conversations):
            row = conversation(number)
            wrong = number % 8 == 0
            expected = [
                {
                    "name": "find_order",
                    "args": {"order_id": f"#W{number + wrong:07}", "fields": ["status", "items", "address"]},
                },
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


def measured(path: Path, workers: int) -> tuple[float, int, Path]:
    """Seconds, megabytes at most, and where the run is kept."""
    store = path.with_name(f"runs-{workers}.sqlite")
    command = [
        "-c",
        "from judgekit.cli import main; main()",
        "run",
        str(path),
        "--store",
        str(store),
        "--workers",
        str(workers),
    ]
    for scorer in SCORERS:
        command += ["--scorer", scorer]
    began = time.perf_counter()
    most = 0
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, memory(process.pid))
            time.sleep(0.1)
    assert process.returncode == 0
    return time.perf_counter() - began, most, store


def scores(store: Path) -> dict[str, tuple[int, float]]:
    """How many scores each scorer has in the store, and their mean."""
    sql = "SELECT scorer, count(*), avg(value) FROM scores GROUP BY scorer"
    found = sqlite3.connect(store).execute(sql)
    return {SCORERS[place]: (count, mean) for place, count, mean in found}


def main() -> None:
    conversations = int(sys.argv[1]) if len(sys.argv) > 1 else CONVERSATIONS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "conversations.jsonl")
        write(path, conversations)
        print(f"{conversations:,} conversations, {path.stat().st_size / 1e6:,.0f} MB\n")
        print("| processes | seconds | conversations/s | MB at most | bytes kept of each |")
        print("|---|---|---|---|---|")
        found = []
        for workers in (1, 2):
            seconds, most, store = measured(path, workers)
            found.append(scores(store))
            kept = store.stat().st_size / conversations
            print(f"| {workers} | {seconds:.0f} | {conversations / seconds:,.0f} | {most} | {kept:,.0f} |", flush=True)
            store.unlink()
    assert found[0] == found[1]
    assert all(count == conversations for count, _ in found[0].values())
    print("\n" + ", ".join(f"{name} {mean:.4f}" for name, (_, mean) in found[0].items()))


if __name__ == "__main__":
    main()
