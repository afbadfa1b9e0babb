"""The cost of sharing work between processes and machines: the engines of a run, and a cache in Redis instead of SQLite.

Conversations a second of `judgekit run` with two tool-call scorers, start included: in one process, in two, and with two
workers of a Ray cluster on this machine that has started before. Medians of three rounds in turns.

CPU of a judged sample, end to end. A server on loopback, in a process of its own, answers at once. Rounds take turns; each
figure is the median of the rounds, and each ratio the median of the ratios within a round. With a budget, each request is
reserved and settled too. What the Redis server takes stands apart, since it may be another machine.

python benchmarks/scale.py
"""

import asyncio
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge_overhead import samples
from runs import SCORERS, write
from server import running

ROUNDS = 9
REQUESTS = 512
AT_ONCE = 32
CONVERSATIONS = 20_000
ENGINES = {"one process": (), "--workers 2": ("--workers", "2"), "--engine ray, two workers": ("--engine", "ray")}


@contextmanager
def redis_server() -> Iterator[str]:
    """The address of a Redis with an append-only file in a folder of its own."""
    import redis

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = shutil.which("redis-server")
    assert program, "install redis-server"
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "--port", str(port), "--dir", folder, "--appendonly", "yes", "--save", ""]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
            try:
                began = time.monotonic()
                while True:
                    try:
                        redis.Redis(port=port).ping()
                        break
                    except redis.ConnectionError:
                        assert time.monotonic() - began < 20
                        time.sleep(0.05)
                yield f"redis://127.0.0.1:{port}"
            finally:
                process.kill()


async def judged(url: str, cache: str, numbers: range, budget: int | None) -> float:
    """Microseconds of CPU a sample, whole scorer path, in this process."""
    from judgekit import AgentGoalAccuracyWithoutReference, Budget, Judge, arun

    judge = Judge("openai/judge", base_url=url, cache=cache, concurrency=AT_ONCE, budget=Budget(requests=budget))
    scorers = [AgentGoalAccuracyWithoutReference(judge)]
    held = list(samples(numbers))
    began = time.process_time()
    run = await arun(held, scorers, concurrency=AT_ONCE)
    taken = time.process_time() - began
    assert run.summary[scorers[0].name].value == 1
    return taken / len(held) * 1e6


def server_seconds(url: str) -> float:
    """Seconds of CPU that the Redis server has taken."""
    import redis

    with redis.Redis.from_url(url) as client:
        found = client.info("cpu")
    return found["used_cpu_user"] + found["used_cpu_sys"]


def seconds_to_run(folder: Path, words: tuple[str, ...], address: str) -> float:
    """Seconds of a command, start included."""
    options = [word for name in SCORERS for word in ("--scorer", name)]
    program = [sys.executable, "-m", "judgekit", "run", "many.jsonl", *options, "--store", f"{time.monotonic()}.sqlite"]
    began = time.monotonic()
    subprocess.run(
        [*program, *words], cwd=folder, env=os.environ | {"RAY_ADDRESS": address}, capture_output=True, check=True
    )
    return time.monotonic() - began


def report_engines(folder: Path) -> None:
    from ray.cluster_utils import Cluster

    write(folder / "many.jsonl", CONVERSATIONS, 3)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        rounds = [[seconds_to_run(folder, words, cluster.address) for words in ENGINES.values()] for _ in range(3)]
    finally:
        cluster.shutdown()
    print(f"| {CONVERSATIONS:,} conversations | seconds | conversations/s |\n|---|---|---|")
    for name, found in zip(ENGINES, zip(*rounds, strict=True), strict=True):
        seconds = statistics.median(found)
        print(f"| {name} | {seconds:.1f} | {CONVERSATIONS / seconds:,.0f} |", flush=True)


def report_caches() -> None:
    with running("same") as url, redis_server() as redis_url, tempfile.TemporaryDirectory() as folder:
        places = {"SQLite": str(Path(folder) / "cache.sqlite"), "Redis": redis_url}
        fresh = iter(range(0, 100_000_000, REQUESTS))
        print(
            "| judged sample | SQLite, us | Redis, us | ratio (goal: 1.3) | Redis server, us |\n|---|---|---|---|---|"
        )
        for name, budget in (("without a budget", None), ("with a budget", 10**9)):
            found: list[list[float]] = []
            for turn in range(ROUNDS + 1):
                numbers = range(start := next(fresh), start + REQUESTS)
                before = server_seconds(redis_url)
                figures = [asyncio.run(judged(url, place, numbers, budget)) for place in places.values()]
                figures.append((server_seconds(redis_url) - before) / REQUESTS * 1e6)
                found += [figures] if turn else []  # the first round warms up
            ratio = statistics.median(shared / own for own, shared, _ in found)
            own, shared, server = (statistics.median(figures) for figures in zip(*found, strict=True))
            print(f"| {name} | {own:.0f} | {shared:.0f} | {ratio:.2f} | {server:.0f} |", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        report_engines(Path(name))
    print()
    report_caches()


if __name__ == "__main__":
    main()
