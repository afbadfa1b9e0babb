"""CPU and memory that tool-call scoring takes from a JSONL file, beside parsing the same file with pydantic alone.

Each conversation has 8 messages and 3 calls. Every figure is a process of its own.

python benchmarks/tool_calls.py
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

RUNS = 5
SIZES = (2_000, 20_000, 100_000)


def conversation(number: int) -> dict[str, object]:
    calls: list[tuple[str, dict[str, object], str]] = [
        ("search_restaurants", {"city": "Lisbon", "cuisine": "seafood", "people": 4}, '{"hits": [{"id": "r-1"}]}'),
        ("check_table", {"id": "r-1", "time": "20:00", "people": 4}, '{"free": true}'),
        ("book_table", {"id": "r-1", "time": "20:00", "people": 4, "name": f"Guest {number}"}, '{"status": "booked"}'),
    ]
    messages: list[dict[str, object]] = [
        {"role": "user", "content": f"A table for four tonight, please. I am {number}."}
    ]
    for at, (name, args, result) in enumerate(calls):
        identity = f"call_{at}"
        messages.append({"role": "assistant", "tool_calls": [{"name": name, "args": args, "id": identity}]})
        messages.append({"role": "tool", "content": result, "tool_call_id": identity, "name": name})
    messages.append({"role": "assistant", "content": "Your table is booked for 20:00."})
    expected = [{"name": name, "args": args} for name, args, _ in calls]
    return {"id": f"c{number}", "trace": {"messages": messages}, "reference_tool_calls": expected}


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
    """What ``judgekit run`` does, without its table."""
    import asyncio

    from judgekit import ToolCallAccuracy, ToolCallF1, read
    from judgekit.runs.runner import score_each
    from judgekit.runs.summary import Summary

    summary = Summary()
    scorers = [ToolCallAccuracy(), ToolCallF1()]
    asyncio.run(score_each(read(path, on_error="raise"), scorers, lambda row: summary.add(row.score)))
    assert all(line.value == 1 for line in summary)


def keep(path: Path) -> None:
    """``run``, which holds every row."""
    from judgekit import ToolCallAccuracy, ToolCallF1, read, run

    assert run(read(path, on_error="raise"), [ToolCallAccuracy(), ToolCallF1()]).summary["tool_call_f1"].value == 1


JOBS = {
    "pydantic alone": parse,
    "read": read_file,
    "read + ToolCallAccuracy + ToolCallF1": score,
    "the same with run(), which holds every row": keep,
}


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


if __name__ == "__main__":
    inside(sys.argv[1], Path(sys.argv[2])) if len(sys.argv) > 1 else main()
