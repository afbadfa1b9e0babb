"""A tool in an environment of its own: does the jobs that it reads as JSON lines, and answers with CPU and results.

Started by `benchmarks.peers` as ``python -m benchmarks.peers.worker TOOL``, in turns with the other tools' workers.
"""

import asyncio
import gc
import importlib
import inspect
import json
import os
import re
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def peak_mib() -> float:
    """The most memory that this process has held; the kernel's own figure leaves out what its parent held before."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def done(prepare: Callable[..., Callable[[], Any]], params: dict[str, Any], loop: asyncio.Runner) -> dict[str, Any]:
    """Return the result of a job, and the CPU seconds it takes once it is prepared."""
    work = prepare(**params)
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    result = work()
    if inspect.isawaitable(result):
        result = loop.run(result)  # type: ignore[arg-type]
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - began,
        "result": result,
        "mib": peak_mib(),
    }


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tools print is no answer
    with asyncio.Runner() as loop:
        try:
            adapter: Any = importlib.import_module(f"benchmarks.peers.adapters.{sys.argv[1]}")
            failed = ""
        except Exception as error:  # noqa: BLE001 - the page says so
            failed = f"{type(error).__name__}: {error}"
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                if failed:
                    raise RuntimeError(failed)
                answer = done(getattr(adapter, asked["job"]), asked["params"], loop)
            except Exception as error:  # noqa: BLE001 - the page says so
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
