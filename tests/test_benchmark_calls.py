"""The guard against slower hot paths: it counts calls, and refuses growth."""

import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
GUARD = """
import sys
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
import calls
calls.RECORDED, calls.PACKAGES = Path("calls.json"), Path("calls.txt")
{change}
calls.main()
"""
SLOWER = """
from judgekit import ToolCallF1
score = ToolCallF1.ascore
async def slower(self, sample):
    [(lambda: one)() for one in range({more})]
    return await score(self, sample)
ToolCallF1.ascore = slower
"""


@pytest.fixture
def guard(run_python):
    """A function that runs the guard on the path of tool calls, with records of its own."""

    def run(option: str, change: str = ""):
        code = GUARD.format(benchmarks=str(BENCHMARKS), change=change)
        return run_python("-c", code, "score_tool_calls", option)

    return run


def test_a_path_with_more_calls_than_recorded_is_refused(guard, tmp_path):
    recorded = guard("--record")
    assert recorded.returncode == 0, recorded.stderr
    calls = json.loads((tmp_path / "calls.json").read_text())["calls"]["score_tool_calls"]
    same = guard("--check")
    assert (same.returncode, same.stderr) == (0, "")
    assert same.stdout.endswith("| 1.00 |\n")
    few = guard("--check", SLOWER.format(more=int(calls * 0.1)))
    assert few.returncode == 0, few.stderr
    slow = guard("--check", SLOWER.format(more=int(calls * 0.2)))
    assert slow.returncode == 1
    assert slow.stderr.startswith("over 15 % more calls than recorded: score_tool_calls.")


def test_numbers_of_other_packages_are_not_compared(guard, tmp_path):
    assert guard("--record").returncode == 0
    packages = tmp_path / "calls.txt"
    assert "pydantic==" in packages.read_text()
    packages.write_text(packages.read_text().replace("pydantic==", "pydantic==0."))
    other = guard("--check")
    assert other.returncode == 1
    assert "belong to Python" in other.stderr


def test_calls_on_every_thread_count(run_python):
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from concurrent.futures import ThreadPoolExecutor
import calls
def called(): pass
def work(times):
    with ThreadPoolExecutor(2) as threads:
        for thread in [threads.submit(lambda: [called() for _ in range(times)]) for _ in range(2)]:
            thread.result()
print(calls.count_calls(lambda: work(1_000)) - calls.count_calls(lambda: work(0)))
"""
    counted = run_python("-c", code, BENCHMARKS)
    assert abs(int(counted.stdout) - 2_000) < 100, counted.stderr
