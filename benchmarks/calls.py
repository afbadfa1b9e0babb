"""The number of Python function calls that hot paths make for each sample: no clock, so every machine counts the same.

python benchmarks/calls.py [PATH ...]
"""

import asyncio
import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from cProfile import Profile
from pathlib import Path
from typing import TypeAlias

from judge_overhead import judge_at
from peers import work
from server import running

from judgekit import BLEU, ROUGE, AgentGoalAccuracyWithoutReference, Sample, ToolCallAccuracy, ToolCallF1, arun, read
from judgekit.cli import main as command_line
from judgekit.formats.writing import write

Work: TypeAlias = Callable[[], object]

FEW, MANY = 60, 180
"""The calls of a path are those for many samples less those for few, since starting takes calls too."""


def count_calls(work: Work) -> int:
    """The calls of Python functions, on all threads."""
    profiles = [Profile(builtins=False)]

    def begin(*_: object) -> None:
        profiles.append(profile := Profile(builtins=False))
        profile.enable()  # instead of this function

    threading.setprofile(begin)
    profiles[0].enable()
    try:
        work()
    finally:
        profiles[0].disable()
        threading.setprofile(None)  # type: ignore[arg-type]
    return sum(entry.callcount for profile in profiles for entry in profile.getstats())


def calls_per_sample(prepare: Callable[[range], Work]) -> float:
    """The calls that work makes for each sample, once it is warm."""
    prepare(range(FEW))()
    few, many = (count_calls(prepare(range(start, start + number))) for start, number in ((1_000, FEW), (2_000, MANY)))
    return (many - few) / (MANY - FEW)


NAMES = (
    *("read_openai_chat", "read_own_format", "score_tool_calls", "score_texts"),
    *("run_and_store", "report", "judge", "judge_from_cache"),
)


class Paths:
    """The hot paths, each as a function that prepares the work for some numbers."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url

    def recording(self, numbers: range) -> Path:
        path = self._folder / f"{numbers.start}-{len(numbers)}.jsonl"
        if not path.exists():
            work.write(path, numbers, deviating=True)
        return path

    def samples(self, numbers: range) -> list[Sample]:
        return list(read(self.recording(numbers)))

    def read_openai_chat(self, numbers: range) -> Work:
        path = self.recording(numbers)
        return lambda: list(read(path))

    def read_own_format(self, numbers: range) -> Work:
        path = self._folder / f"own-{numbers.start}-{len(numbers)}.jsonl"
        write(self.samples(numbers), path)
        return lambda: list(read(path))

    def score_tool_calls(self, numbers: range) -> Work:
        scorers, samples = (ToolCallAccuracy(), ToolCallF1()), self.samples(numbers)

        async def score() -> None:
            for sample in samples:
                for scorer in scorers:
                    await scorer.ascore(sample)

        return lambda: asyncio.run(score())

    def score_texts(self, numbers: range) -> Work:
        pairs = work.texts(100, len(numbers), numbers.start)
        samples = [
            Sample.of([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": one}], reference=other)
            for one, other in pairs
        ]
        scorers = (ROUGE(), BLEU())

        async def score() -> None:
            for sample in samples:
                for scorer in scorers:
                    await scorer.ascore(sample)

        return lambda: asyncio.run(score())

    def run_and_store(self, numbers: range) -> Work:
        scorers = ("--scorer", "tool_call_accuracy", "--scorer", "tool_call_f1")
        store = self._folder / f"runs-{numbers.start}-{len(numbers)}.sqlite"
        return lambda: command("run", self.recording(numbers), *scorers, "--store", store)

    def report(self, numbers: range) -> Work:
        self.run_and_store(numbers)()
        store = self._folder / f"runs-{numbers.start}-{len(numbers)}.sqlite"
        return lambda: command("runs", "1", "--store", store, "-o", store.with_suffix(".html"))

    def judge(self, numbers: range) -> Work:
        samples = self.samples(numbers)
        scorers = [AgentGoalAccuracyWithoutReference(judge_at(self._url, self._folder / "cache.sqlite", 8))]
        return lambda: asyncio.run(arun(samples, scorers, concurrency=8))

    def judge_from_cache(self, numbers: range) -> Work:
        self.judge(numbers)()
        return self.judge(numbers)


def command(*arguments: object) -> None:
    """A command, without its output."""
    sys.argv = ["judgekit", *map(str, arguments)]
    try:
        with Path(os.devnull).open("w") as none, contextlib.redirect_stdout(none), contextlib.redirect_stderr(none):
            command_line()
    except SystemExit as ended:
        if ended.code:
            raise


def measured(names: Iterable[str]) -> Iterator[tuple[str, float]]:
    """The calls that each path makes for a sample."""
    for name in names:
        with running("same") as url, tempfile.TemporaryDirectory() as folder:
            yield name, calls_per_sample(getattr(Paths(Path(folder), url), name))


def main() -> None:
    print("| path | calls a sample |\n|---|---|")
    for name, calls in measured(sys.argv[1:] or NAMES):
        print(f"| {name.replace('_', ' ')} | {calls:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
