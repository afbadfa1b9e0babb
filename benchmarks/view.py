"""The time and memory that `judgekit view` takes: start, the list of 500 runs, and pages of two runs of many samples.

python benchmarks/view.py [SAMPLES] [RUNS]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from judgekit import AIMessage, HumanMessage, Sample, Score, run, scorer

SAMPLES, RUNS = 100_000, 500


@scorer(name="share")
def share(sample: Sample) -> Score:
    number = int(sample.id)
    return Score.scored("share", number % 100 / 99, reason="a reason of some words")


@scorer(name="share")
def later(sample: Sample) -> Score:
    number = int(sample.id)
    return Score.scored("share", (number + number % 7) % 100 / 99, reason="a reason of some words")


def written(store: Path, samples: int, runs: int) -> None:
    def read(count: int) -> list[Sample]:
        return [
            Sample.of([HumanMessage(f"Where is order {number}?"), AIMessage("It is on its way.")], id=str(number))
            for number in range(count)
        ]

    run(read(samples), [share], store=store)
    run(read(samples), [later], store=store)
    for _ in range(runs - 2):
        run(read(3), [share], store=store)


def megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    given = list(map(int, sys.argv[1:]))
    samples, runs = [*given, *(SAMPLES, RUNS)[len(given) :]]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        written(store, samples, runs)
        command = [sys.executable, "-m", "judgekit", "view", "--no-open", "--store", str(store)]
        began = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            url = next(word for word in server.stderr.readline().split() if word.startswith("http"))
            base, _, token = url.partition("/open?token=")
            print(
                f"{samples:,} samples in runs 1 and 2, {runs:,} runs\n\n| what | ms | ms of CPU | MB of the server |\n|---|---|---|---|"
            )
            with httpx.Client(base_url=base, timeout=600, trust_env=False) as client:

                def measure(what: str, path: str, since: float | None = None) -> None:
                    start, before = (time.perf_counter(), cpu_seconds(server.pid)) if since is None else (since, 0.0)
                    answer = client.get(path)
                    took = (time.perf_counter() - start) * 1000
                    assert answer.status_code == 200, answer.text
                    cpu = (cpu_seconds(server.pid) - before) * 1000
                    print(f"| {what} | {took:,.0f} | {cpu:,.0f} | {megabytes(server.pid):.0f} |")

                measure("start until it answers", f"/open?token={token}", began)
                measure("page of runs", "/")
                measure("list of runs, first time", "/runs.json")
                measure("list of runs, again", "/runs.json")
                measure("page of run 1", "/runs/1")
                measure("100 rows of run 1", f"/runs/1/samples.json?start={samples // 2}")
                measure("100 rows of run 1, again", f"/runs/1/samples.json?start={samples // 2}")
                measure("the lowest 100 rows of run 1", "/runs/1/samples.json?sort=low:share")
                measure("rows of run 1 with values under 0.5", "/runs/1/samples.json?value=<0.5")
                measure("a step of a search in run 1", "/runs/1/samples.json?q=nowhere")
                measure("a sample of run 1", f"/runs/1/samples/{samples // 3}.json")
                measure("first numbers of run 1", "/runs/1/head.json")
                measure("all numbers of run 1, first time", "/runs/1.json")
                measure("all numbers of run 1, again", "/runs/1/head.json")
                measure("runs 1 and 2 compared, first time", "/runs/1/compare/2.json")
                measure("100 of their pairs", f"/runs/1/compare/2/samples.json?start={samples // 2}")
                measure("their largest losses", "/runs/1/compare/2/samples.json?change=worse&sort=drop:share")
                measure("samples that differ", "/compare.json?run=1&run=2")
            server.kill()


if __name__ == "__main__":
    main()
