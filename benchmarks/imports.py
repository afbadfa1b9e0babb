"""CPU that starting judgekit takes: of imports beside importing pydantic, and of commands beside bare Python.

python benchmarks/imports.py
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 15
HEAVY = ("openai", "httpx", "httpx2", "numpy", "scipy", "sklearn", "sacrebleu", "rich", "jinja2", "yaml", "typer")
SCORER, SCORER_GOAL = "from judgekit import Sample, ToolCallF1", 3.5
"""The import of a scorer, and the most that it may take beside importing pydantic."""
IMPORTS = {
    "nothing": "pass",
    "import pydantic": "import pydantic",
    "import judgekit": "import judgekit",
    SCORER: SCORER,
    "from judgekit import Judge": "from judgekit import Judge",
}
COMMANDS = {
    "judgekit --version": (["--version"], 0.12),
    "judgekit run, of one conversation": (
        ["run", "one.jsonl", "--scorer", "tool_call_f1", "--store", "one.sqlite"],
        0.4,
    ),
}
"""The words of each command, and the most seconds beside bare Python that it may take."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""With bytecode, which an installed package has."""
CONVERSATION = {
    "messages": [
        {"role": "user", "content": "Where is my order?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "find_order", "arguments": '{"order_id": "W1"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "pending"},
        {"role": "assistant", "content": "It is pending."},
    ],
    "reference_tool_calls": [{"name": "find_order", "args": {"order_id": "W1"}}],
}


def program(words: list[str]) -> str:
    return f"import sys; sys.argv[1:] = {words!r}\nfrom judgekit.__main__ import main\ntry: main()\nexcept SystemExit: pass"


PROGRAMS = IMPORTS | {name: program(words) for name, (words, _) in COMMANDS.items()}


def cpu_seconds(source: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loaded(source: str) -> str:
    report = f"{source}\nimport json, sys; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", report], check=True, capture_output=True, text=True)
    return ", ".join(json.loads(found.stdout.splitlines()[-1])) or "none"


def main() -> None:
    seconds = {name: list[float]() for name in PROGRAMS}
    for _ in range(RUNS):  # in turn, so that a machine whose speed drifts is fair to all
        for name, source in PROGRAMS.items():
            seconds[name].append(cpu_seconds(source))
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    print("| program | CPU seconds, median | beside pydantic | heavy modules loaded |")
    print("|---|---|---|---|")
    for name, source in PROGRAMS.items():
        beside = medians[name] / medians["import pydantic"]
        print(f"| `{name}` | {medians[name]:.3f} | {beside:.2f}x | {loaded(source)} |")
    beside = medians[SCORER] / medians["import pydantic"]
    print(f"\n{SCORER}: {beside:.2f}x pydantic; goal {SCORER_GOAL}x: {'met' if beside <= SCORER_GOAL else 'not met'}")
    for name, (_, goal) in COMMANDS.items():
        took = medians[name] - medians["nothing"]
        verdict = "met" if took <= goal else "not met"
        print(f"{name}: {took * 1000:.0f} ms beside bare Python; goal {goal * 1000:.0f} ms: {verdict}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("one.jsonl").write_text(json.dumps(CONVERSATION) + "\n")
        main()
