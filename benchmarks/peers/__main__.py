"""judgekit beside other tools: an environment for each, the same work in turns, and a page with tables and a plot.

python -m benchmarks.peers [--environments FOLDER] [--only TOOL ...]
"""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import judgekit
from benchmarks.peers.measure import SCALE, SECTIONS, Bench
from benchmarks.peers.page import cell, filled, plot, table
from benchmarks.peers.tools import JUDGEKIT, PEERS, ROOT, workers_of
from benchmarks.server import running

TITLE = "CPU time relative to judgekit's: to the right of 1x, judgekit is faster"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    cache = Path.home() / ".cache" / "judgekit-peers"
    parser.add_argument("--environments", type=Path, default=cache, help="where the tools are installed")
    parser.add_argument("--only", nargs="*", default=[tool.name for tool in PEERS], help="the tools to compare with")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="the folder of benchmarks.md and its plot")
    given = parser.parse_args()
    tools = (JUDGEKIT, *(tool for tool in PEERS if tool.name in given.only))
    with tempfile.TemporaryDirectory() as folder, running("counting") as url:
        workers, errors = workers_of(tools, given.environments.absolute(), Path(folder))
        bench = Bench(workers, url, Path(folder))
        try:
            sections = [found for section in SECTIONS for found in section(bench)]
        finally:
            bench.stop()
    page = given.output / "benchmarks.md"
    parts = {section.name: table(section) for section in sections}
    parts["measured"] = measured(
        dict.fromkeys(requirement for tool in tools for requirement in tool.requirements), errors
    )
    page.write_text(filled(page.read_text(encoding="utf-8"), parts), encoding="utf-8")
    page.with_suffix(".svg").write_text(plot(sections, TITLE), encoding="utf-8")
    print(f"written: {page}, {page.with_suffix('.svg')}")
    if bench.disagreements:
        sys.exit("\n".join(f"not equal: {disagreement}" for disagreement in bench.disagreements))


def measured(versions: Iterable[str], errors: Mapping[str, str]) -> str:
    """When, on what and with what, and which tools could not be installed."""
    day = f"{datetime.now(tz=UTC):%Y-%m-%d}"
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    lines = [f"Measured on {day}: {machine}; judgekit {judgekit.__version__}, {', '.join(versions)}.\n"]
    lines += [f"Scale: {SCALE}. With other programs running, expect ratios to differ by a third from run to run.\n"]
    return "\n".join([*lines, *(f"{name} could not be installed: {cell(error)}\n" for name, error in errors.items())])


if __name__ == "__main__":
    main()
