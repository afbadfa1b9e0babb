"""CPU that importing judgekit takes, beside importing pydantic, and what it loads.

python benchmarks/imports.py
"""

import json
import resource
import statistics
import subprocess
import sys

RUNS = 15
HEAVY = ("openai", "httpx", "httpx2", "numpy", "scipy", "sklearn", "sacrebleu", "rich", "jinja2", "yaml", "typer")
PROGRAMS = {
    "nothing": "pass",
    "import pydantic": "import pydantic",
    "import judgekit": "import judgekit",
    "from judgekit import Sample, ToolCallF1": "from judgekit import Sample, ToolCallF1",
    "from judgekit import Judge": "from judgekit import Judge",
}


def cpu_seconds(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loaded(program: str) -> str:
    report = f"{program}\nimport json, sys; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", report], check=True, capture_output=True, text=True)
    return ", ".join(json.loads(found.stdout)) or "none"


def main() -> None:
    seconds = {name: list[float]() for name in PROGRAMS}
    for _ in range(RUNS):  # in turn, so that a machine whose speed drifts is fair to all
        for name, program in PROGRAMS.items():
            seconds[name].append(cpu_seconds(program))
    pydantic = statistics.median(seconds["import pydantic"])
    print("| program | CPU seconds, median | beside pydantic | heavy modules loaded |")
    print("|---|---|---|---|")
    for name, program in PROGRAMS.items():
        median = statistics.median(seconds[name])
        print(f"| `{name}` | {median:.3f} | {median / pydantic:.2f}x | {loaded(program)} |")


if __name__ == "__main__":
    main()
